//! Reading a device out when its INT pin rises, from the hard interrupt and from threads.
//!
//! # How it works
//! The device's line rises in the middle of other work. Its handler runs a prepared read of 4 bytes
//! by itself (`try_run`), or wakes a thread that does, on its own processor or on another; or a
//! thread is woken by a kernel's handler, as through UIO.

use std::cell::{Cell, RefCell};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use barewire::bus::Platform;

use crate::SimPlatform;
use crate::engine::Thread;
use crate::profile::CostLevel;

const EVENTS: u32 = 100;

/// The code that drains the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The hard interrupt's handler.
    Interrupt,
    /// A thread that the handler, on processor 0, wakes.
    Woken {
        /// The thread's processor.
        cpu: usize,
    },
    /// A thread that a kernel's handler wakes.
    Uio,
}

/// Every reader, with what to call it.
pub const READERS: [(&str, Reader); 4] = [
    ("hard interrupt", Reader::Interrupt),
    ("woken thread, same cpu", Reader::Woken { cpu: 0 }),
    ("woken thread, other cpu", Reader::Woken { cpu: 1 }),
    ("UIO thread, same cpu", Reader::Uio),
];

/// How long it took: means, and the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// From the line to the reader's first instruction.
    pub entry_ns: u64,
    /// The call.
    pub read_ns: u64,
    /// From the line to the arrival of the bytes.
    pub in_hand_ns: u64,
    /// The largest of those.
    pub in_hand_max_ns: u64,
}

#[derive(Default)]
struct Sums {
    events: u32,
    entry_ps: u64,
    read_ps: u64,
    in_hand_ps: u64,
    in_hand_max_ps: u64,
}

/// Runs the scenario on a board of those costs.
///
/// # Panics
/// If a read fails, or one is missing.
#[must_use]
pub fn run(reader: Reader, costs: CostLevel) -> Times {
    let board = super::board(costs);
    let bus = super::bus(&board, &SimPlatform);
    let device = super::device(&bus);
    let prepared = RefCell::new(device.prepare([0x5a; 4]).expect("prepares"));
    // The block's first message configures it.
    prepared.borrow_mut().run().expect("runs");
    let (line, times) = (board.line(), RefCell::new(Sums::default()));
    let engine = board.engine();
    let (bell, over) = (AtomicU32::new(0), Cell::new(false));

    let read_out = || {
        let entered = engine.now_ps();
        let rose = line.risen_at().expect("it rose");
        prepared.borrow_mut().try_run().expect("runs");
        let done = engine.now_ps();
        let times = &mut *times.borrow_mut();
        times.events += 1;
        times.entry_ps += entered - rose;
        times.read_ps += done - entered;
        times.in_hand_ps += done - rose;
        times.in_hand_max_ps = times.in_hand_max_ps.max(done - rose);
    };
    let handler = Thread::new("handler", || {
        while line.wait(None) {
            line.lower();
            if reader == Reader::Interrupt {
                read_out();
            } else {
                bell.fetch_add(1, Relaxed);
                SimPlatform.wake(&raw const bell);
            }
        }
    });
    let worker = Thread::new("worker", || {
        let mut answered = 0;
        loop {
            while bell.load(Relaxed) == answered {
                SimPlatform.wait((&bell).into(), answered);
            }
            if over.get() {
                return;
            }
            answered += 1;
            read_out();
        }
    });
    let uio = Thread::new("uio", || {
        while !over.get() {
            if line.wait(Some(1_000_000_000)) {
                line.lower();
                read_out();
            }
        }
    });
    let other_work = Thread::new("other work", || {
        for event in 0..EVENTS {
            // An odd period, so that each event falls at another place in the other thread's work.
            line.raise_at(engine.now_ps() + 20_000_000 + u64::from(event) * 7_001);
            board.cpu_work(96_000);
        }
        over.set(true);
        bell.fetch_add(1, Relaxed);
        SimPlatform.wake(&raw const bell);
    });
    let other_work = other_work.on(0, 1);
    let threads = match reader {
        Reader::Interrupt => vec![handler.interrupt(0), other_work],
        Reader::Woken { cpu } => vec![handler.interrupt(0), worker.on(cpu, 9), other_work],
        Reader::Uio => vec![uio.on(0, 9), other_work],
    };
    engine.run(threads);
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    let times = times.take();
    assert_eq!(times.events, EVENTS, "one read for each rise");
    let mean_ns = |sum: u64| sum / u64::from(EVENTS) / 1_000;
    Times {
        entry_ns: mean_ns(times.entry_ps),
        read_ns: mean_ns(times.read_ps),
        in_hand_ns: mean_ns(times.in_hand_ps),
        in_hand_max_ns: times.in_hand_max_ps / 1_000,
    }
}
