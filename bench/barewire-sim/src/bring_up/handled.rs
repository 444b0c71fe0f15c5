//! Buses whose messages end by the board's interrupt.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use barewire::bus::{Bus, Pump};
use barewire::controller::{Controller, NoInterrupt};

use super::{AnyController, Charged, any_interrupt};
use crate::board::Board;
use crate::engine::Thread;
use crate::platform::SimPlatform;

/// A bus as [`bus`](super::bus), whose transfers above `poll_limit_ns` are left to the [handler](run_handled).
#[must_use]
pub fn handled_bus(board: &Board, poll_limit_ns: u32) -> Bus<Charged<AnyController>> {
    let controller = any_interrupt(board, poll_limit_ns, NoInterrupt);
    let controller = Charged::new(controller, board.clone());
    Bus::with_platform(controller, &SimPlatform).with_pump(Pump::Interrupt)
}

/// What a bus's interrupt handler did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandlerCounts {
    /// How often it was entered.
    pub interrupts: u64,
    /// How often there was nothing to attend to: on one processor never.
    pub in_vain: u64,
}

/// Runs `threads`, with the bus's interrupt handler on processor 0.
pub fn run_handled(
    board: &Board,
    bus: &Bus<impl Controller>,
    threads: Vec<Thread<'_>>,
) -> HandlerCounts {
    let handled = Cell::new(HandlerCounts::default());
    let handler = Thread::new("handler", || {
        while board.wait_interrupt(None) {
            let HandlerCounts { interrupts, in_vain } = handled.get();
            let in_vain = in_vain + u64::from(!bus.interrupt());
            handled.set(HandlerCounts { interrupts: interrupts + 1, in_vain });
        }
    });
    board.engine().run(threads.into_iter().chain([handler.interrupt(0)]).collect());
    handled.get()
}

/// What a processor does while no task is woken, in nanoseconds.
const IDLE_NS: u64 = 500;

/// Whether a task is woken.
#[derive(Debug)]
pub struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Woken {
    /// A task that counts as woken, because it was never polled.
    #[must_use]
    pub fn new() -> (Arc<Self>, Waker) {
        let woken = Arc::new(Self(AtomicBool::new(true)));
        (woken.clone(), woken.into())
    }

    /// Whether it was woken since the last call.
    #[must_use]
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// Polls `future` whenever it is woken, and idles otherwise. Also returns how often it was pending.
pub fn await_woken<T>(board: &Board, future: impl Future<Output = T>) -> (T, u64) {
    let mut future = pin!(future);
    let (woken, waker) = Woken::new();
    let mut pending = 0;
    loop {
        if !woken.take() {
            board.cpu_work(IDLE_NS);
            continue;
        }
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return (output, pending);
        }
        pending += 1;
    }
}
