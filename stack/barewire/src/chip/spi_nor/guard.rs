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

use super::opcode::{WRDI, WREN};
use super::{BUSY, NorError, SpiNor, WEL};
use crate::chip::Port;
use crate::spi::Transfer;
use crate::time::{Timer, ticks_at_least};

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
        if status == 0xff {
            return Err(NorError::Gone { address });
        }
        if status & (WEL | BUSY) != WEL {
            return Err(NorError::WriteEnableRefused { status });
        }
        guard.protection_bits = status & guard.chip.geometry.protection.bits();
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

    /// Sleeps the typical time, then polls at intervals until `max_ns` have passed. If the typical
    /// time is unknown, it polls from the beginning, at growing intervals.
    pub(super) fn wait_ready(
        &mut self,
        typical_ns: u64,
        max_ns: u64,
        address: u64,
    ) -> Result<(), NorError> {
        let protection = self.chip.geometry.protection.bits();
        let timer_hz = self.chip.timer.frequency_hz();
        let begun = self.chip.timer.now_ticks();
        let limit_ticks = ticks_at_least(max_ns, timer_hz);
        // For short waits polling is cheaper than sleeping. The interval leaves the bus to others.
        let longest_ns = (typical_ns / 8).max(1_000);
        let mut interval_ns = longest_ns;
        if self.chip.geometry.times_known {
            self.chip.timer.sleep_ns(typical_ns);
        } else {
            interval_ns = longest_ns.min(10_000);
        }
        loop {
            // The time is read before the status, so a chip that is ready in time counts as ready,
            // however late the poll.
            let late = self.chip.timer.now_ticks().wrapping_sub(begun) > limit_ticks;
            let status = self.chip.status_now()?;
            if status == 0xff && self.protection_bits != protection {
                self.disabled = true;
                return Err(NorError::Gone { address });
            }
            if status & BUSY == 0 {
                return Ok(());
            }
            if late {
                self.disabled = true;
                return Err(NorError::StaysBusy { limit_ns: max_ns, status });
            }
            self.chip.timer.sleep_ns(interval_ns);
            interval_ns = (interval_ns * 2).min(longest_ns);
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
