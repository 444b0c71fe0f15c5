//! Write enable as a guard: the chip can be changed while it lives, and not afterwards.
//!
//! # Ordering
//! 1. Enable: WREN, then RDSR. If the latch is not set, nothing else is done.
//! 2. Command: the caller's command takes effect when CS rises.
//! 3. Wait: [`WriteEnabled::finish`] waits until the chip is ready. The chip has then cleared its
//!    latch.
//! 4. Drop: without step 3 (an error, a panic), dropping the guard sends WRDI. It does not if the
//!    chip is known to be busy for good or gone: such a chip accepts no command, and clears its
//!    latch itself if it ever becomes ready.

use core::task::Poll;

use super::opcode::{WRDI, WREN};
use super::wait::Wait;
use super::{NorError, SpiNor};
use crate::chip::Port;
use crate::spi::Transfer;
use crate::time::Timer;

/// A chip whose write enable latch is set.
pub(super) struct WriteEnabled<'c, P: Port, T: Timer> {
    chip: &'c mut SpiNor<P, T>,
    /// The protection bits before the change. If they differ after it, the chip no longer drives
    /// MISO.
    protection_bits: u8,
    /// WRDI is not needed.
    disabled: bool,
}

impl<P: Port, T: Timer> SpiNor<P, T> {
    /// Step 1, enable. Errors report `address`.
    pub(super) fn write_enable(
        &mut self,
        address: u64,
    ) -> Result<WriteEnabled<'_, P, T>, NorError> {
        let mut guard = WriteEnabled { chip: self, protection_bits: 0, disabled: false };
        guard.chip.port.run(&mut [Transfer::write(&[WREN])])?;
        let status = guard.chip.status_now()?;
        guard.protection_bits = guard.chip.geometry.enabled(status, address)?;
        Ok(guard)
    }
}

impl<P: Port, T: Timer> WriteEnabled<'_, P, T> {
    pub(super) fn chip(&mut self) -> &mut SpiNor<P, T> {
        self.chip
    }

    /// Step 3, wait. Errors report `address`.
    pub(super) fn finish(
        mut self,
        typical_ns: u64,
        max_ns: u64,
        address: u64,
    ) -> Result<(), NorError> {
        self.wait_ready(typical_ns, max_ns, address)?;
        self.disabled = true;
        Ok(())
    }

    /// Sleeps the typical time, then polls at intervals until `max_ns` have passed.
    pub(super) fn wait_ready(
        &mut self,
        typical_ns: u64,
        max_ns: u64,
        address: u64,
    ) -> Result<(), NorError> {
        let chip = &mut *self.chip;
        let times = (typical_ns, max_ns);
        let mut wait =
            Wait::new(&chip.geometry, &mut chip.timer, times, self.protection_bits, address);
        chip.timer.sleep_ns(wait.first_ns);
        loop {
            let late = wait.is_late(&mut chip.timer);
            let status = chip.status_now()?;
            if let Poll::Ready(over) = wait.judge(status, late) {
                // A chip that is busy for good or gone accepts no command.
                self.disabled = over.is_err();
                return over;
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
