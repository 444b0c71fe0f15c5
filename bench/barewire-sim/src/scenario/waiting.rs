//! Waiting for one exchange, by polling and by interrupt: processor time, wire use, break-even.
//!
//! # How it works
//! A caller of high priority exchanges some bytes while other work gets the rest of its processor.
//! The processor time of the exchange is the time that the other work did not get. The driver runs
//! alone, without a bus and without its charges. The message is the device's second, so the block is
//! configured already.
//!
//! # Not supported
//! The time that a kernel's own handler takes from others while the caller sleeps.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;

use barewire::bus::Platform;
use barewire::controller::{ALWAYS_POLL, Controller, Interrupt};
use barewire::spi::{Settings, Transfer};

use crate::bring_up::{SimInterrupt, any_interrupt};
use crate::chip::Ps;
use crate::engine::Thread;
use crate::model::echo::Echo;
use crate::{Board, BoardOptions, BoardSpec, SimPlatform};

/// The quantum of other work, and so the resolution of the measurement.
const QUANTUM_PS: Ps = 10_000;

/// The waiting code, and how it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// The caller looks until it is done.
    Polled,
    /// The caller's thread sleeps in the kernel until UIO's interrupt.
    Asleep,
    /// A hard interrupt goes on with the message, and wakes the caller at its end.
    Handler,
}

/// The cost of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Register accesses, of the controller and its pins.
    pub accesses: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// From the call until the caller goes on.
    pub call_ns: u64,
    /// The part of `call_ns` that no other thread of the processor could use.
    pub cpu_ns: u64,
    /// The share of the call in which SCK ran, in thousandths.
    pub wire_use_milli: u64,
}

/// The board's interrupt, counted.
struct CountingInterrupt(SimInterrupt, Rc<Cell<u64>>);

impl Interrupt for CountingInterrupt {
    fn enable(&mut self) {
        self.0.enable();
    }

    fn wait(&mut self, timeout_us: u32) -> bool {
        let came = self.0.wait(timeout_us);
        self.1.set(self.1.get() + u64::from(came));
        came
    }
}

/// Runs the scenario on chip select `cs` of `board`, an echo behind it.
///
/// # Panics
/// If the message fails, or breaks a rule of the wire.
#[must_use]
pub fn run(board: &'static BoardSpec, cs: u8, speed_hz: u32, bytes: usize, waits: Waits) -> Cost {
    let board = Board::new(board, BoardOptions::default());
    board.attach(cs, Rc::new(RefCell::new(Echo::default())));
    let engine = board.engine();
    let interrupts = Rc::new(Cell::new(0));
    let limit_ns = if waits == Waits::Polled { ALWAYS_POLL } else { 0 };
    let counted = CountingInterrupt(SimInterrupt::new(&board), interrupts.clone());
    let mut controller = any_interrupt(&board, limit_ns, counted);
    let (preset, _) = controller.configure(&Settings::new(cs, speed_hz)).expect("opens");
    let tx = vec![0x5a; bytes];
    let mut rx = vec![0; bytes];
    let mut message = [Transfer::exchange(&tx, &mut rx)];
    controller.plan(&preset, &mut message).expect("a good message");
    // The first configures the block.
    controller.run(&preset, &mut message).expect("runs");
    board.cpu_work(10_000);
    board.reset_marks();
    interrupts.set(0);

    let shared = RefCell::new((controller, message));
    let (done, over, other_ps) = (AtomicU32::new(0), Cell::new(false), Cell::new(0));
    let (call_ps, cpu_ps, clock_ps) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let caller = Thread::new("caller", || {
        let begun_ps = engine.now_ps();
        if waits == Waits::Handler {
            let (controller, message) = &mut *shared.borrow_mut();
            let polled = controller.start(&preset, message);
            assert_eq!(polled, Poll::Pending);
            controller.arm();
        } else {
            let (controller, message) = &mut *shared.borrow_mut();
            assert_eq!(controller.run(&preset, message), Ok(bytes));
            done.store(1, Relaxed);
        }
        while done.load(Relaxed) == 0 {
            SimPlatform.wait((&done).into(), 0);
        }
        call_ps.set(engine.now_ps() - begun_ps);
        cpu_ps.set(call_ps.get() - other_ps.get());
        clock_ps.set(board.wire_use().clock_ps);
        over.set(true);
    });
    let handler = Thread::new("handler", || {
        while waits == Waits::Handler && board.wait_interrupt(None) {
            interrupts.set(interrupts.get() + 1);
            let (controller, message) = &mut *shared.borrow_mut();
            match controller.resume(&preset, message) {
                Poll::Pending => controller.arm(),
                Poll::Ready(ran) => {
                    assert_eq!(ran, Ok(bytes));
                    done.store(1, Relaxed);
                    SimPlatform.wake(&raw const done);
                }
            }
        }
    });
    let other_work = Thread::new("other work", || {
        while !over.get() {
            engine.spend_ps(QUANTUM_PS);
            other_ps.set(other_ps.get() + QUANTUM_PS);
        }
    });
    engine.run(vec![caller.on(0, 9), handler.interrupt(0), other_work.on(0, 1)]);
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    Cost {
        accesses: board.access_counts().iter().map(|block| block.reads + block.writes).sum(),
        interrupts: interrupts.get(),
        call_ns: call_ps.get() / 1_000,
        cpu_ns: cpu_ps.get() / 1_000,
        wire_use_milli: clock_ps.get() * 1_000 / call_ps.get().max(1),
    }
}

/// The break-even length in bytes: from this length on, waiting as `waits` takes less processor
/// time than polling. `None` if it is above `max_bytes`.
#[must_use]
pub fn break_even(
    board: &'static BoardSpec,
    cs: u8,
    speed_hz: u32,
    waits: Waits,
    max_bytes: usize,
) -> Option<usize> {
    let pays = |bytes| {
        run(board, cs, speed_hz, bytes, waits).cpu_ns
            < run(board, cs, speed_hz, bytes, Waits::Polled).cpu_ns
    };
    let (mut below, mut at) = (0, 1);
    while !pays(at) {
        if at >= max_bytes {
            return None;
        }
        (below, at) = (at, (2 * at).min(max_bytes));
    }
    while at - below > 1 {
        let middle = usize::midpoint(below, at);
        if pays(middle) { at = middle } else { below = middle }
    }
    Some(at)
}
