//! How a block runs a message.
//!
//! A message takes the first of these paths that it can:
//!
//! 1. A single transfer that the driver calls short, mostly one that a load of the FIFO holds, takes the block's
//!    [shorter path](super::short), inlined in the caller as far as the block wants. So does each transfer of a message of a
//!    few under one chip select.
//! 2. A message with a transfer that waits by interrupt puts its caller to sleep ([`Block::run_blocking`]).
//! 3. Any other message is polled ([`run_message`]).

use core::task::Poll;

use super::{Block, BlockDriver, InFlight, State};
use crate::controller::gpio::GpioBank;
use crate::controller::waits::waits;
use crate::controller::{Controller, Interrupt, Preset, Unfinished, run_message, start_message};
use crate::reg::Registers;
use crate::spi::Transfer;
use crate::time::Timer;

impl<B: State, R: Registers, G: GpioBank, T: Timer, I: Interrupt> Block<B, R, G, T, I>
where
    Self: BlockDriver,
{
    /// Runs any planned message.
    #[inline(never)]
    pub(super) fn run_any(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        if I::PRESENT && waits(message) {
            return self.run_blocking(preset, message);
        }
        self.look_ahead(preset, message);
        run_message(self, preset, message)
    }

    /// Runs any planned exchange. Not inlined, so that the caller of a short one has no [`Transfer`] in
    /// memory.
    #[inline(never)]
    pub(super) fn run_any_exchange(
        &mut self,
        preset: &Preset,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        self.run_any(preset, &mut [Transfer::of_plan(tx, rx, preset.plan)])
    }

    /// The body of [`Controller::start`].
    pub(super) fn start_any(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        if !I::FLIGHTS || !waits(message) {
            return Poll::Ready(self.run(preset, message));
        }
        self.look_ahead(preset, message);
        start_message(self, preset, message)
    }

    /// Runs a message; the caller sleeps while the wire works.
    #[cold]
    fn run_blocking(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        let abandoned = AbandonedMessage(self);
        let mut polled = abandoned.0.start(preset, message);
        let ran = loop {
            match polled {
                Poll::Ready(ran) => break ran,
                Poll::Pending => abandoned.0.sleep(),
            }
            polled = abandoned.0.resume(preset, message);
        };
        core::mem::forget(abandoned);
        ran
    }

    /// Unmasks the interrupt, and sleeps until it came or the deadline passed. [`Controller::resume`] decides which of the
    /// two it was.
    fn sleep(&mut self) {
        self.interrupt.enable();
        self.unmask();
        self.interrupt.wait(self.flight.deadline().sleep_us());
    }
}

/// Reclaims a block whose message is abandoned by a panic while the caller slept.
struct AbandonedMessage<'b, C: Controller>(&'b mut C);

impl<C: Controller> Drop for AbandonedMessage<'_, C> {
    fn drop(&mut self) {
        self.0.reclaim();
    }
}
