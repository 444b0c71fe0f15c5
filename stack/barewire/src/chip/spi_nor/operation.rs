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
//!    WRDI if WEL is set, since the same user may have left that, or AAI programming.
//! 3. Enter: EN4B, if the part is addressed in 4-byte mode.
//! 4. Run: the operation itself.
//! 5. Leave: EX4B, then [`Port::end`], also after errors and panics.
//!
//! If the chip has a single user, steps 2, 3 and 5 are skipped: the driver enters 4-byte mode once,
//! and leaves it when it is dropped.

use super::opcode::{EN4B, EX4B, RDSR, WRDI};
use super::{BUSY, NorError, SpiNor, WEL, read_register};
use crate::chip::{Port, Sharing};
use crate::spi::Transfer;
use crate::time::{Timer, ticks_at_least};

/// The longest wait of step 2: more than any part needs for a block. Erasing the whole chip takes
/// longer.
const READY_MAX_NS: u64 = 10_000_000_000;
/// The interval between two polls of the status in step 2.
const READY_INTERVAL_NS: u64 = 100_000;

/// A port between steps 1 and 5, whose chip is not identified yet.
pub(super) struct Begun<'p, P: Port> {
    pub(super) port: &'p mut P,
    pub(super) sharing: Sharing,
}

impl<'p, P: Port> Begun<'p, P> {
    /// Steps 1 and 2: begin, and settle.
    pub(super) fn new(port: &'p mut P, timer: &mut impl Timer) -> Result<Self, NorError> {
        let sharing = port.begin()?;
        let this = Self { port, sharing };
        if sharing == Sharing::Shared {
            settle(this.port, timer)?;
        }
        Ok(this)
    }
}

impl<P: Port> Drop for Begun<'_, P> {
    fn drop(&mut self) {
        self.port.end();
    }
}

/// A chip between steps 1 and 5.
struct Operation<'c, P: Port, T: Timer> {
    chip: &'c mut SpiNor<P, T>,
    /// EX4B must be sent.
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
        if sharing == Sharing::Shared {
            operation.take_over()?;
        }
        // Step 4, run: the operation itself.
        run(operation.chip)
    }
}

impl<P: Port, T: Timer> Operation<'_, P, T> {
    fn take_over(&mut self) -> Result<(), NorError> {
        // Step 2, settle: until the chip is ready and its latch clear.
        settle(&mut self.chip.port, &mut self.chip.timer)?;
        // Step 3, enter: 4-byte mode. It is left again even if this fails, because the chip may
        // have received the command.
        self.entered = true;
        self.chip.four_byte_mode(EN4B)
    }
}

impl<P: Port, T: Timer> Drop for Operation<'_, P, T> {
    fn drop(&mut self) {
        // Step 5, leave: 3-byte mode, and release the chip.
        if self.entered {
            // The error cannot be returned from here. The next operation enters the mode it needs.
            let _ = self.chip.four_byte_mode(EX4B);
        }
        self.chip.port.end();
    }
}

/// Step 2, settle.
fn settle(port: &mut impl Port, timer: &mut impl Timer) -> Result<(), NorError> {
    let begun = timer.now_ticks();
    let limit_ticks = ticks_at_least(READY_MAX_NS, timer.frequency_hz());
    loop {
        let late = timer.now_ticks().wrapping_sub(begun) > limit_ticks;
        let status = read_register(port, RDSR)?;
        // All ones is an idle line and not a status; the chip's id will show it.
        if status == 0xff || status & (BUSY | WEL) == 0 {
            return Ok(());
        }
        if status & BUSY == 0 {
            port.run(&mut [Transfer::write(&[WRDI])])?;
            return Ok(());
        }
        if late {
            return Err(NorError::Occupied { waited_ns: READY_MAX_NS, status });
        }
        timer.sleep_ns(READY_INTERVAL_NS);
    }
}
