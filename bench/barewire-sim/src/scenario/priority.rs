//! The time that an access of high priority waits for the bus, with and without the remedies.
//!
//! # How it works
//! [`inversion`]: one processor. A thread of low priority streams long messages, one of medium
//! priority works in bursts, and one of high priority makes short accesses at random moments. When
//! it finds the bus taken it waits for the low thread, and that for the medium one: unless the low
//! one inherits its priority ([`SimPlatform::WITH_INHERITANCE`]).
//!
//! [`queueing`]: a processor for each thread. Six of them send long messages, and a seventh makes
//! short accesses at random moments, through a device of higher priority or of the same. Either the
//! six never pause, so that the queue is always full, or they do, so that the bus is idle now and
//! then: then the seventh may be the one that holds it when others come, and runs theirs.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use barewire::bus::{Bus, Platform};
use barewire::controller::{Controller, Preset, Unfinished};
use barewire::middleware::Layer;
use barewire::spi::Transfer;

use super::{Moments, Times};
use crate::bring_up::{Charged, any};
use crate::chip::{PS_PER_NS, Ps};
use crate::engine::{Engine, Thread};
use crate::profile::CostLevel;
use crate::{Board, SimPlatform};

/// Bytes of a long message.
pub const LONG_BYTES: usize = 256;
const LONG: [u8; LONG_BYTES] = [0xa5; LONG_BYTES];
const SHORT: [u8; 4] = [0x9f, 0, 0, 0];
const ACCESSES: u32 = 200;
/// The number of accesses in runs whose streams pause: larger, so that rare events happen there
/// too.
const ACCESSES_PAUSING: u32 = 1_000;
/// Up to this passes before the next access.
const PAUSE_PS: Ps = 1_000_000 * PS_PER_NS;
/// The medium thread's bursts, and the most that passes between two.
const BURST_PS: Ps = 2_000_000 * PS_PER_NS;
const BETWEEN_BURSTS_PS: Ps = 500_000 * PS_PER_NS;
/// Up to this passes between two messages of a stream that pauses.
const STREAM_PAUSE_PS: Ps = 1_300_000 * PS_PER_NS;
/// Threads that stream.
const STREAMS: usize = 6;
/// The urgent device's priority; the others' is 0.
const URGENT: u8 = 7;

/// The result of [`inversion`]: times of the high thread's calls, from the call to the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inversion {
    /// The median.
    pub median_ns: u64,
    /// The slowest call's.
    pub longest_ns: u64,
    /// The longest that a message of the low thread is on the wire, undisturbed.
    pub message_ns: u64,
    /// A call of the high thread on an idle bus.
    pub own_ns: u64,
}

/// The result of [`queueing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queueing {
    /// From the call until its message begins: the median.
    pub begun_median_ns: u64,
    /// From the call until its message begins: the longest.
    pub begun_longest_ns: u64,
    /// From the call to the result: the median.
    pub median_ns: u64,
    /// From the call to the result: the longest.
    pub longest_ns: u64,
    /// The longest that a single message of the others was on the wire.
    pub message_ns: u64,
    /// A call on an idle bus.
    pub own_ns: u64,
}

/// A message that was run: its length, and from when to when.
#[derive(Clone, Copy, Debug)]
struct MessageSpan {
    bytes: usize,
    begun_ps: Ps,
    ended_ps: Ps,
}

type Log = Rc<RefCell<Vec<MessageSpan>>>;

/// Writes down what runs.
struct NotingController<C> {
    inner: C,
    engine: Engine,
    log: Log,
}

impl<C: Controller> Layer for NotingController<C> {
    barewire::wrapped_controller!(inner: C);

    fn run_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        let begun_ps = self.engine.now_ps();
        let ran = self.inner.run(preset, message);
        let ended_ps = self.engine.now_ps();
        self.log.borrow_mut().push(MessageSpan { bytes: ran.unwrap_or(0), begun_ps, ended_ps });
        ran
    }
}

fn noted_bus(board: &Board, platform: &'static dyn Platform) -> (Bus<impl Controller>, Log) {
    let (log, engine) = (Log::default(), board.engine().clone());
    let charged = Charged::new(any(board), board.clone());
    (
        Bus::with_platform(NotingController { inner: charged, engine, log: log.clone() }, platform),
        log,
    )
}

/// How long a long message and a short access take on an idle bus, in picoseconds.
fn undisturbed(bus: &Bus<impl Controller>, log: &Log, engine: &Engine) -> (Ps, Ps) {
    let device = super::device(bus);
    // The block's first message configures it.
    device.sync(&mut [Transfer::write(&LONG)]).expect("runs");
    device.sync(&mut [Transfer::write(&LONG)]).expect("runs");
    let long = log.borrow().last().map_or(0, |ran| ran.ended_ps - ran.begun_ps);
    let mut access = device.prepare(SHORT).expect("four bytes are whole words");
    let begun = engine.now_ps();
    access.run().expect("runs");
    let own = engine.now_ps() - begun;
    log.borrow_mut().clear();
    (long, own)
}

/// Low, medium and high on one processor, with priority inheritance or without, on a
/// board of those costs.
///
/// # Panics
/// If a message fails.
#[must_use]
pub fn inversion(inheritance: bool, costs: CostLevel) -> Inversion {
    let board = super::board(costs);
    let platform: &'static dyn Platform =
        if inheritance { &SimPlatform::WITH_INHERITANCE } else { &SimPlatform };
    let (bus, log) = noted_bus(&board, platform);
    let engine = board.engine();
    let (message_ps, own_ps) = undisturbed(&bus, &log, engine);
    let (times, over) = (Times::default(), Cell::new(false));
    let low = Thread::new("low", || {
        let device = super::device(&bus);
        while !over.get() {
            device.sync(&mut [Transfer::write(&LONG)]).expect("runs");
        }
    });
    let medium = Thread::new("medium", || {
        let mut moments = Moments::new();
        while !over.get() {
            engine.sleep_until(engine.now_ps() + moments.below_ps(BETWEEN_BURSTS_PS));
            engine.spend_ps(BURST_PS);
        }
    });
    let high = Thread::new("high", || {
        let device = super::device(&bus);
        let mut access = device.prepare(SHORT).expect("four bytes are whole words");
        let mut moments = Moments::new();
        for _ in 0..ACCESSES {
            engine.sleep_until(engine.now_ps() + moments.below_ps(PAUSE_PS));
            let begun = engine.now_ps();
            access.run().expect("runs");
            times.add(engine.now_ps() - begun);
        }
        over.set(true);
    });
    engine.run(vec![low.on(0, 1), medium.on(0, 5), high.on(0, 9)]);
    // If a polling thread loses its processor in a burst, the SPI clock pauses, which does no harm.
    assert_eq!(board.harms_total(), 0, "{:#?}", board.violations());
    Inversion {
        median_ns: times.median_ns(),
        longest_ns: times.longest_ns(),
        message_ns: message_ps / PS_PER_NS,
        own_ns: own_ps / PS_PER_NS,
    }
}

/// One access while six threads stream, through an urgent device or one of their priority, on a
/// board with those costs.
///
/// # Panics
/// If a message fails.
#[must_use]
pub fn queueing(urgent: bool, pausing: bool, costs: CostLevel) -> Queueing {
    let board = super::board(costs);
    let (bus, log) = noted_bus(&board, &SimPlatform);
    let engine = board.engine();
    let (_, own_ps) = undisturbed(&bus, &log, engine);
    let (begun_times, times, over) = (Times::default(), Times::default(), Cell::new(false));
    let access = Thread::new("access", || {
        let device = super::device(&bus).with_priority(if urgent { URGENT } else { 0 });
        let mut access = device.prepare(SHORT).expect("four bytes are whole words");
        let mut moments = Moments::new();
        for _ in 0..if pausing { ACCESSES_PAUSING } else { ACCESSES } {
            engine.sleep_until(engine.now_ps() + moments.below_ps(PAUSE_PS));
            let called = engine.now_ps();
            access.run().expect("runs");
            times.add(engine.now_ps() - called);
            let begun = log.borrow().iter().rev().find(|ran| ran.bytes == SHORT.len()).copied();
            begun_times.add(begun.expect("it was run").begun_ps - called);
        }
        over.set(true);
    });
    let mut threads = vec![access];
    let shared = RefCell::new(Moments::new());
    for stream in 0..STREAMS {
        threads.push(Thread::new(&format!("stream {stream}"), || {
            let device = super::device(&bus);
            while !over.get() {
                device.sync(&mut [Transfer::write(&LONG)]).expect("runs");
                if pausing {
                    let pause = shared.borrow_mut().below_ps(STREAM_PAUSE_PS);
                    engine.sleep_until(engine.now_ps() + pause);
                }
            }
        }));
    }
    engine.run(threads);
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    let long = |ran: &&MessageSpan| ran.bytes == LONG_BYTES;
    let message_ps =
        log.borrow().iter().filter(long).map(|ran| ran.ended_ps - ran.begun_ps).max().unwrap_or(0);
    Queueing {
        begun_median_ns: begun_times.median_ns(),
        begun_longest_ns: begun_times.longest_ns(),
        median_ns: times.median_ns(),
        longest_ns: times.longest_ns(),
        message_ns: message_ps / PS_PER_NS,
        own_ns: own_ps / PS_PER_NS,
    }
}
