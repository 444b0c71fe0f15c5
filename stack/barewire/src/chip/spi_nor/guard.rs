//! Write enable as a guard: the chip can be changed while it lives, and not afterwards.
//!
//! # Ordering
//! 1. Enable: WREN, then RDSR. If the latch is not set, nothing else is done.
//! 2. Command: the caller's command takes effect when CS rises.
//! 3. Wait: [`WriteEnabled::finish`] waits until the chip is ready. A failure that the chip reports is read and
//!    cleared. If the latch is still set, the chip ignored the command, or it never clears the latch (QEMU's
//!    models). Reading back decides which; an operation that does not read back fails.
//! 4. Drop: if the latch is not known to be clear (an error, a panic, a latch still set), dropping the guard
//!    sends WRDI. It does not if the chip is known to be busy for good or gone: such a chip accepts no
//!    command, and the next operation settles it.

use core::task::Poll;

use super::fault::Report;
use super::opcode::{RDFSR, WRDI, WREN};
use super::wait::Wait;
use super::{NorError, SpiNor, WEL, read_register};
use crate::chip::Port;
use crate::spi::Transfer;
use crate::time::Timer;

/// A chip whose write enable latch is set.
pub(super) struct WriteEnabled<'c, P: Port, T: Timer> {
    chip: &'c mut SpiNor<P, T>,
    /// The status after WREN. If all bits are set after the change, the chip no longer drives MISO.
    status: u8,
    /// WRDI is not needed.
    disabled: bool,
}

impl<P: Port, T: Timer> SpiNor<P, T> {
    /// Step 1, enable. Errors report `address`.
    pub(super) fn write_enable(
        &mut self,
        address: u64,
    ) -> Result<WriteEnabled<'_, P, T>, NorError> {
        self.unsettled = true;
        let mut guard = WriteEnabled { chip: self, status: 0, disabled: false };
        guard.chip.port.run(&mut [Transfer::write(&[WREN])])?;
        guard.status = guard.chip.status_now()?;
        guard.chip.geometry.enabled(guard.status, address)?;
        Ok(guard)
    }
}

impl<P: Port, T: Timer> WriteEnabled<'_, P, T> {
    pub(super) fn chip(&mut self) -> &mut SpiNor<P, T> {
        self.chip
    }

    /// The latch is known to be clear, and the chip to be ready.
    pub(super) fn done(mut self) {
        self.disabled = true;
        self.chip.unsettled = false;
    }

    /// Step 3, wait. Errors report `address`.
    pub(super) fn finish(
        mut self,
        typical_ns: u64,
        max_ns: u64,
        address: u64,
    ) -> Result<(), NorError> {
        let status = self.wait_ready((typical_ns, max_ns), address)?;
        if status & WEL == 0 {
            self.done();
        } else if self.chip.read_back {
            self.chip.ignored = Some(status);
        } else {
            return Err(NorError::Ignored { address, status });
        }
        Ok(())
    }

    /// Sleeps the typical time, then polls at intervals until the maximum has passed. Returns the status.
    pub(super) fn wait_ready(&mut self, times: (u64, u64), address: u64) -> Result<u8, NorError> {
        let chip = &mut *self.chip;
        let report = chip.geometry.report;
        let mut wait = Wait::new(&chip.geometry, &mut chip.timer, times, self.status, address);
        chip.timer.sleep_ns(wait.first_ns);
        loop {
            let late = wait.is_late(&mut chip.timer);
            let status = chip.status_now()?;
            let mut judged = wait.judge(status, late);
            if judged == Poll::Ready(Ok(())) && report == Report::FlagStatus {
                judged = wait.judge_flags(read_register(&mut chip.port, RDFSR)?, status, late);
            }
            match judged {
                Poll::Ready(Ok(())) => return Ok(status),
                Poll::Ready(Err(error)) => {
                    if let (NorError::Failed { .. }, Some(clear)) = (error, report.clear()) {
                        // The latch stays set, and the drop clears it. The failure itself is what is returned.
                        let _ = chip.port.run(&mut [Transfer::write(&[clear])]);
                    } else {
                        // A chip that is busy for good or gone accepts no command.
                        self.disabled = true;
                    }
                    return Err(error);
                }
                Poll::Pending => {}
            }
            chip.timer.sleep_ns(wait.next_ns());
        }
    }
}

impl<P: Port, T: Timer> Drop for WriteEnabled<'_, P, T> {
    fn drop(&mut self) {
        if !self.disabled {
            // Either an error is being returned already, or there is no caller to return one to.
            let _ = self.chip.port.run(&mut [Transfer::write(&[WRDI])]);
        }
    }
}
