//! A controller whose messages a hard interrupt continues, while their caller sleeps.

use std::cell::{Cell, RefCell};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;

use barewire::bus::Platform;
use barewire::controller::{Controller, Preset, Unfinished};
use barewire::middleware::Layer;
use barewire::spi::Transfer;
use barewire_sim::engine::Thread;
use barewire_sim::{Board, SimPlatform};

/// Runs each message of `inner` by `start`, `arm` and, in an interrupt thread, `resume`. Called
/// from outside any simulated thread.
#[derive(Debug)]
pub(crate) struct ByHandler<C> {
    pub inner: C,
    pub board: Board,
    /// How often the handler was entered.
    pub interrupts: u64,
}

impl<C: Controller> Layer for ByHandler<C> {
    barewire::wrapped_controller!(inner: C);

    fn run_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        let board = &self.board;
        let interrupts = Cell::new(0);
        let begun = RefCell::new((&mut self.inner, message));
        let (done, result) = (AtomicU32::new(0), Cell::new(Poll::Pending));
        let caller = Thread::new("caller", || {
            let (controller, message) = &mut *begun.borrow_mut();
            match controller.start(preset, message) {
                Poll::Pending => controller.arm(),
                ready => {
                    result.set(ready);
                    done.store(1, Relaxed);
                }
            }
        });
        let handler = Thread::new("handler", || {
            while board.wait_interrupt(None) {
                interrupts.set(interrupts.get() + 1);
                let (controller, message) = &mut *begun.borrow_mut();
                match controller.resume(preset, message) {
                    Poll::Pending => controller.arm(),
                    ready => {
                        result.set(ready);
                        done.store(1, Relaxed);
                        SimPlatform.wake(&raw const done);
                    }
                }
            }
        });
        let waiter = Thread::new("waiter", || {
            while done.load(Relaxed) == 0 {
                SimPlatform.wait((&done).into(), 0);
            }
        });
        // The caller goes first: of threads with equal times, the one listed first runs first.
        board.engine().run(vec![caller.on(0, 2), waiter.on(0, 1), handler.interrupt(0)]);
        self.interrupts += interrupts.get();
        match result.get() {
            Poll::Ready(ran) => ran,
            Poll::Pending => unreachable!("the waiter ends when the message has"),
        }
    }
}
