//! An operation: a sequence of messages without messages of other users in between.
//!
//! A chip keeps its mode, its write enable latch and its work from message to message. A single
//! user's messages are not disturbed, but another process with the same chip may change that state
//! in between. So on a [shared](Sharing::Shared) chip no state is assumed: each operation brings
//! the chip into a known state, and leaves it as a boot ROM expects it, in 3-byte mode.
//!
//! # Ordering
//! 1. Begin: [`Port::begin`] reserves the chip for this user until step 5.
//! 2. Settle: RDSR until the chip is ready, since a user that was killed may have left it busy.
//!    WRDI if WEL is set, since the same user may have left that, or AAI programming. Error bits that keep a
//!    chip busy are cleared.
//! 3. Enter: 4-byte mode, if the part is addressed so.
//! 4. Run: the operation itself.
//! 5. Leave: 4-byte mode, then [`Port::end`], also after errors and panics.
//!
//! If the chip has a single user, steps 3 and 5 are skipped: the driver enters 4-byte mode once, and leaves
//! it when it is dropped. Step 2 is done when the chip is opened, and after a change that did not end well.

use super::fault::{ERRORS, Flags, Report};
use super::opcode::{CLFSR, CLSR, RDFSR, RDSR, WRDI};
use super::{BUSY, NorError, SpiNor, WEL, read_register};
use crate::chip::{Port, Sharing};
use crate::spi::Transfer;
use crate::time::{Timer, ticks_at_least};

/// The longest wait of step 2: more than any part needs for a block. Erasing the whole chip takes
/// longer.
const READY_MAX_NS: u64 = 10_000_000_000;
/// The interval between two polls of the status in step 2.
const READY_INTERVAL_NS: u64 = 100_000;
/// Before a chip is identified, bits 5 and 6 may be protection bits of a busy chip. After this time they are
/// taken for the error bits of a chip that waits for CLSR. A chip that is only busy ignores CLSR.
const ERRORS_AFTER_NS: u64 = 1_000_000_000;

/// A port between steps 1 and 5, whose chip is not identified yet.
pub(super) struct UnidentifiedChip<'p, P: Port> {
    pub(super) port: &'p mut P,
    pub(super) sharing: Sharing,
}

impl<'p, P: Port> UnidentifiedChip<'p, P> {
    /// Steps 1 and 2: begin, and settle.
    pub(super) fn new(port: &'p mut P, timer: &mut impl Timer) -> Result<Self, NorError> {
        let sharing = port.begin()?;
        let this = Self { port, sharing };
        settle(this.port, timer, Report::None)?;
        Ok(this)
    }
}

impl<P: Port> Drop for UnidentifiedChip<'_, P> {
    fn drop(&mut self) {
        self.port.end();
    }
}

/// A chip between steps 1 and 5.
struct Operation<'c, P: Port, T: Timer> {
    chip: &'c mut SpiNor<P, T>,
    /// 4-byte mode must be left.
    entered: bool,
}

impl<P: Port, T: Timer> SpiNor<P, T> {
    /// Runs `run` as one operation.
    #[inline]
    pub(super) fn operation<R>(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<R, NorError>,
    ) -> Result<R, NorError> {
        // Step 1, begin: reserve the chip for this user.
        let sharing = self.port.begin()?;
        let mut operation = Operation { chip: self, entered: false };
        operation.chip.ignored = None;
        if sharing == Sharing::Shared {
            operation.take_over()?;
        } else if operation.chip.unsettled {
            operation.chip.settle()?;
        }
        // Step 4, run: the operation itself.
        run(operation.chip)
    }
}

impl<P: Port, T: Timer> Operation<'_, P, T> {
    fn take_over(&mut self) -> Result<(), NorError> {
        // Step 2, settle: until the chip is ready and its latch clear.
        self.chip.settle()?;
        // Step 3, enter: 4-byte mode. It is left again even if this fails, because the chip may
        // have received the command.
        self.entered = true;
        self.chip.upper = None;
        self.chip.enter()
    }
}

impl<P: Port, T: Timer> SpiNor<P, T> {
    fn settle(&mut self) -> Result<(), NorError> {
        // A chip that was identified has a status.
        if settle(&mut self.port, &mut self.timer, self.geometry.report)? == 0xff {
            return Err(NorError::Silent);
        }
        self.unsettled = false;
        Ok(())
    }
}

impl<P: Port, T: Timer> Drop for Operation<'_, P, T> {
    fn drop(&mut self) {
        // Step 5, leave: 3-byte mode, and release the chip.
        if self.entered {
            // The error cannot be returned from here. The next operation enters the mode it needs.
            let _ = self.chip.leave();
        }
        self.chip.port.end();
    }
}

/// Step 2, settle. `report` is [`Report::None`] also if the chip is not identified yet.
/// Returns the last status.
fn settle(port: &mut impl Port, timer: &mut impl Timer, report: Report) -> Result<u8, NorError> {
    let begun = timer.now_ticks();
    let frequency_hz = timer.frequency_hz();
    let limit_ticks = ticks_at_least(READY_MAX_NS, frequency_hz);
    let errors_ticks = ticks_at_least(ERRORS_AFTER_NS, frequency_hz);
    let mut cleared = false;
    loop {
        let passed = timer.now_ticks().wrapping_sub(begun);
        let status = read_register(port, RDSR)?;
        // All ones is an idle line and not a status; the chip's id will show it.
        if status == 0xff {
            return Ok(status);
        }
        if status & BUSY == 0 {
            if report == Report::FlagStatus {
                read_flags(port)?;
            }
            if status & WEL != 0 {
                port.run(&mut [Transfer::write(&[WRDI])])?;
            }
            return Ok(status);
        }
        let errors = match report {
            Report::None => status & ERRORS != 0 && passed > errors_ticks,
            _ => report.failed(status).is_some(),
        };
        if errors && !cleared {
            let clear = report.clear().unwrap_or(CLSR);
            port.run(&mut [Transfer::write(&[clear])])?;
            cleared = true;
            continue;
        }
        if passed > limit_ticks {
            return Err(NorError::Occupied { waited_ns: READY_MAX_NS, status });
        }
        timer.sleep_ns(READY_INTERVAL_NS);
    }
}

/// Reads the flag status register, which lets the chip go on, and clears what an earlier change left there.
pub(super) fn read_flags(port: &mut impl Port) -> Result<(), NorError> {
    if matches!(Flags::of(read_register(port, RDFSR)?), Flags::Failed(_)) {
        port.run(&mut [Transfer::write(&[CLFSR])])?;
    }
    Ok(())
}
