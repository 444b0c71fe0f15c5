//! The price of a hop: sync against the same message handed to a worker thread.
//!
//! # How it works
//! A caller with a processor to itself sends a 4-byte message, works a while, and sends the next.
//! Either it runs each by itself, or it submits it to a bus with
//! [`Pump::Worker`](barewire::bus::Pump) and waits for the result. The worker is of higher priority
//! and asleep when a message comes, on the caller's processor or on another.

use std::pin::pin;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use barewire::bus::Pump;
use barewire::spi::Transfer;

use super::Times;
use crate::SimPlatform;
use crate::engine::Thread;
use crate::profile::CostLevel;

const MESSAGES: u32 = 100;
const BYTES: [u8; 4] = [0x9f, 0, 0, 0];
/// Instructions between two messages: the worker falls asleep meanwhile.
const WORK: u64 = 48_000;

/// The thread that runs the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Its caller.
    Sync,
    /// A worker on that processor; the caller's is 0.
    Worker {
        /// The worker's processor.
        cpu: usize,
    },
}

/// The time of a message, from the call to the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The median.
    pub median_ns: u64,
    /// The slowest message's.
    pub longest_ns: u64,
}

/// Every way, with what to call it.
pub const WAYS: [(&str, Way); 3] = [
    ("sync", Way::Sync),
    ("worker, same cpu", Way::Worker { cpu: 0 }),
    ("worker, other cpu", Way::Worker { cpu: 1 }),
];

/// Runs the scenario on a board of those costs.
///
/// # Panics
/// If a message fails.
#[must_use]
pub fn run(way: Way, costs: CostLevel) -> Cost {
    let board = super::board(costs);
    let pump = if way == Way::Sync { Pump::Caller } else { Pump::Worker };
    let bus = super::bus(&board, &SimPlatform).with_pump(pump);
    let device = super::device(&bus);
    let engine = board.engine();
    // The block's first message configures it.
    device.sync(&mut [Transfer::write(&BYTES)]).expect("runs");
    let (times, stop) = (Times::default(), AtomicBool::new(false));
    let caller = Thread::new("caller", || {
        let mut queued = pin!(device.queued(BYTES).expect("four bytes are whole words"));
        let mut rx = [0; 4];
        let mut message = [Transfer::exchange(&BYTES, &mut rx)];
        for _ in 0..MESSAGES {
            board.cpu_work(WORK);
            let begun = engine.now_ps();
            let ran = if way == Way::Sync {
                device.sync(&mut message)
            } else {
                queued.as_mut().submit().expect("it is not submitted");
                queued.as_mut().wait().expect("it was submitted")
            };
            assert_eq!(ran, Ok(BYTES.len()));
            times.add(engine.now_ps() - begun);
        }
        stop.store(true, Relaxed);
        bus.ring();
    });
    let mut threads = vec![caller.on(0, 5)];
    if let Way::Worker { cpu } = way {
        let worker = Thread::new("worker", || {
            bus.serve(&stop);
        });
        threads.push(worker.on(cpu, 9));
    }
    engine.run(threads);
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    Cost { median_ns: times.median_ns(), longest_ns: times.longest_ns() }
}
