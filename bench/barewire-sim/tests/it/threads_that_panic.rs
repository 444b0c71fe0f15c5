//! A simulated thread panics while others are on its bus: the run ends with that panic, the others
//! are unwound wherever they stand, and the bus is whole afterwards.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::rc::Rc;

use barewire::bus::{Bus, Platform, Pump};
use barewire::spi::{Settings, Transfer};
use barewire_sim::bring_up::{AnyController, Charged, any};
use barewire_sim::engine::Thread;
use barewire_sim::model::echo::Echo;
use barewire_sim::platform::InheritingPlatform;
use barewire_sim::{Board, SimPlatform};

const SETTINGS: Settings = Settings::new(0, 1_000_000);
/// 400 bytes at 1 MHz take 3.2 ms, so this is in the middle of the first message.
const MID_MESSAGE_PS: u64 = 1_000_000_000;

struct Bench {
    board: Board,
    chip: Rc<RefCell<Echo>>,
    bus: Bus<Charged<AnyController>>,
    /// How many values on threads' stacks were dropped.
    dropped: Cell<u32>,
}

fn bench(platform: &'static dyn Platform, pump: Pump) -> Bench {
    let board = crate::board("imx8mp");
    let chip = Rc::new(RefCell::new(Echo::default()));
    board.attach(0, chip.clone());
    let controller = Charged::new(any(&board), board.clone());
    let bus = Bus::with_platform(controller, platform).with_pump(pump);
    Bench { board, chip, bus, dropped: Cell::new(0) }
}

struct Counts<'a>(&'a Cell<u32>);

impl Drop for Counts<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

impl Bench {
    /// Has the bus for 3.2 ms.
    fn holds(&self) -> Thread<'_> {
        Thread::new("holds", || {
            let _counts = Counts(&self.dropped);
            let device = self.bus.device(&SETTINGS).expect("opens");
            let _ = device.sync(&mut [Transfer::write(&[1; 400])]);
        })
    }

    /// Waits for the holder, with bytes that the caller of `run` does not have.
    fn waits(&self) -> Thread<'_> {
        Thread::new("waits", || {
            let _counts = Counts(&self.dropped);
            let device = self.bus.device(&SETTINGS).expect("opens");
            self.board.engine().spend_ps(MID_MESSAGE_PS / 2);
            let bytes = [2; 8];
            let _ = device.sync(&mut [Transfer::write(&bytes)]);
        })
    }

    /// Waits for a message that it submitted behind the holder's.
    fn waits_for_a_queued_message(&self) -> Thread<'_> {
        Thread::new("waits for a queued message", || {
            let _counts = Counts(&self.dropped);
            let device = self.bus.device(&SETTINGS).expect("opens");
            self.board.engine().spend_ps(MID_MESSAGE_PS / 2);
            let mut queued = pin!(device.queued([3; 8]).expect("plans"));
            queued.as_mut().submit().expect("is free");
            let _ = queued.as_mut().wait();
        })
    }

    /// Locks the bus and sleeps for ever, or as good as.
    fn sleeps_with_the_bus(&self) -> Thread<'_> {
        Thread::new("sleeps with the bus", || {
            let _counts = Counts(&self.dropped);
            let device = self.bus.device(&SETTINGS).expect("opens");
            let _locked = device.bus().lock();
            self.board.engine().sleep_until(1_000 * MID_MESSAGE_PS);
        })
    }

    fn panics(&self) -> Thread<'_> {
        Thread::new("panics", || {
            let _counts = Counts(&self.dropped);
            self.board.engine().spend_ps(MID_MESSAGE_PS);
            resume_unwind(Box::new("the first"));
        })
    }

    /// Runs them, and then a message of each path, outside any simulated thread.
    fn run(&self, threads: Vec<Thread<'_>>) {
        let count = threads.len();
        let panic = catch_unwind(AssertUnwindSafe(|| self.board.engine().run(threads)));
        let panic = panic.expect_err("the panic goes on");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"the first"));
        assert_eq!(self.dropped.get() as usize, count, "every stack was unwound");
        // A message that is broken off rightly ends between two edges.
        self.board.clear_violations();
        let device = self.bus.device(&SETTINGS).expect("the bus is free");
        assert_eq!(device.sync(&mut [Transfer::write(&[4])]), Ok(1));
        let mut queued = pin!(device.queued([5]).expect("plans"));
        queued.as_mut().submit().expect("is free");
        assert_eq!(queued.as_mut().wait(), Some(Ok(1)));
        assert!(self.chip.borrow().received().ends_with(&[4, 5]));
        assert!(self.board.violations().is_empty(), "{:#?}", self.board.violations());
    }
}

/// All orders of `n` things.
fn orders(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![vec![]];
    }
    let put = |order: Vec<usize>| {
        (0..n).map(move |at| {
            let mut order = order.clone();
            order.insert(at, n - 1);
            order
        })
    };
    orders(n - 1).into_iter().flat_map(put).collect()
}

/// Threads may be unwound in any order: a thread that waits for another's message does not wait for
/// ever.
fn in_every_order(
    platform: &'static dyn Platform,
    pump: Pump,
    make: &[for<'b> fn(&'b Bench) -> Thread<'b>],
) {
    for order in orders(make.len()) {
        let bench = bench(platform, pump);
        bench.run(order.iter().map(|&index| make[index](&bench)).collect());
    }
}

#[test]
fn a_thread_panics_while_others_wait_for_a_message_on_the_wire() {
    let threads: [for<'b> fn(&'b Bench) -> Thread<'b>; 4] =
        [Bench::holds, Bench::waits, Bench::waits_for_a_queued_message, Bench::panics];
    in_every_order(&SimPlatform, Pump::Caller, &threads);
    in_every_order(&InheritingPlatform, Pump::Caller, &threads);
}

#[test]
fn a_thread_panics_while_others_wait_for_one_that_sleeps_with_the_bus() {
    let threads: [for<'b> fn(&'b Bench) -> Thread<'b>; 4] = [
        Bench::sleeps_with_the_bus,
        Bench::waits,
        Bench::waits_for_a_queued_message,
        Bench::panics,
    ];
    in_every_order(&SimPlatform, Pump::Caller, &threads);
    in_every_order(&InheritingPlatform, Pump::Caller, &threads);
}

#[test]
fn a_thread_that_never_began_is_dropped() {
    let bench = bench(&SimPlatform, Pump::Caller);
    let counts = Counts(&bench.dropped);
    // Of threads with equal times, the one listed first runs first, so the other has not begun when
    // it panics.
    let never = Thread::new("never begins", move || drop(counts));
    let panics = Thread::new("panics", || {
        let _counts = Counts(&bench.dropped);
        resume_unwind(Box::new("the first"));
    });
    bench.run(vec![panics.on(0, 1), never.on(0, 1)]);
}
