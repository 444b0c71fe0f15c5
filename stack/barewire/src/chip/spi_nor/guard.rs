//! Write enable as a guard: while it lives the chip may be changed; when it goes, it may not.
//!
//! # Ordering
//! 1. WREN, then RDSR: the latch is seen set, or nothing was begun.
//! 2. The caller's command; it takes effect when CS rises.
//! 3. [`WriteEnabled::finish`] waits until the chip is ready; the chip then has cleared its latch.
//! 4. Without step 3 (an error, a panic), dropping the guard sends WRDI: unless the chip is known to
//!    be busy for good, or gone, for then it hears no command, and clears its latch itself if it is
//!    ever done.

use super::opcode::{WRDI, WREN};
use super::{BUSY, NorError, SpiNor, WEL};
use crate::chip::Port;
use crate::spi::Transfer;
use crate::time::{Timer, ticks_at_least};

/// A chip that may be changed.
pub(super) struct WriteEnabled<'c, P: Port, T: Timer> {
    chip: &'c mut SpiNor<P, T>,
    /// Protection bits before the change: if they differ after it, nobody drives the line.
    protection_bits: u8,
    /// No WRDI is due.
    disabled: bool,
}

impl<P: Port, T: Timer> SpiNor<P, T> {
    /// Step 1. `address` is named in errors.
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

    /// Step 3. `address` is named in errors.
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

    /// Sleeps the typical time, then asks at intervals until `max_ns` are over. Where the typical time is
    /// not known it asks from the beginning, ever more seldom.
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
        // Short waits are cheaper asked for than slept; the interval keeps the bus free for others.
        let longest_ns = (typical_ns / 8).max(1_000);
        let mut interval_ns = longest_ns;
        if self.chip.geometry.times_known {
            self.chip.timer.sleep_ns(typical_ns);
        } else {
            interval_ns = longest_ns.min(10_000);
        }
        loop {
            // The time is read first: a chip that is ready in time counts, however late we ask.
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
            // An error is on its way to the caller already, or nobody is left to tell.
            let _ = self.chip.port.run(&mut [Transfer::write(&[WRDI])]);
        }
    }
}
