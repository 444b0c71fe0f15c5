//! An operation: messages between which no other user of the chip may come.
//!
//! A chip keeps its mode, its write enable latch and its work from message to message. Between two
//! messages of a user alone nothing changes them; another process with the same chip does. So on a
//! [shared](Sharing::Shared) chip nothing is believed: each operation brings the chip into a known
//! state, and leaves it as a boot ROM wants it, in 3-byte mode.
//!
//! # Ordering
//! 1. [`Port::begin`]: the chip is this user's until step 5.
//! 2. RDSR until the chip is ready: a user that was killed may have left it at work. WRDI, if WEL is
//!    set: the same user may have left that, or AAI programming.
//! 3. EN4B, if the part is addressed in 4-byte mode.
//! 4. The operation.
//! 5. EX4B, then [`Port::end`]: after errors and panics too.
//!
//! A user that has the chip alone skips 2, 3 and 5: it enters 4-byte mode once, and leaves it when
//! the driver is dropped.

use super::opcode::{EN4B, EX4B, RDSR, WRDI};
use super::{BUSY, NorError, SpiNor, WEL, read_register};
use crate::chip::{Port, Sharing};
use crate::spi::Transfer;
use crate::time::{Timer, ticks_at_least};

/// The longest that step 2 waits: more than any part takes for a block. What erases the whole chip
/// takes longer.
const READY_MAX_NS: u64 = 10_000_000_000;
/// Between two looks at the status meanwhile.
const READY_INTERVAL_NS: u64 = 100_000;

/// A port between steps 1 and 5, of a chip that is not identified yet.
pub(super) struct Begun<'p, P: Port> {
    pub(super) port: &'p mut P,
    pub(super) sharing: Sharing,
}

impl<'p, P: Port> Begun<'p, P> {
    /// Steps 1 and 2.
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
    /// EX4B is due.
    entered: bool,
}

impl<P: Port, T: Timer> SpiNor<P, T> {
    /// Runs `run` as one operation.
    #[inline]
    pub(super) fn operation<R>(
        &mut self,
        run: impl FnOnce(&mut Self) -> Result<R, NorError>,
    ) -> Result<R, NorError> {
        // Step 1: the chip is this user's.
        let sharing = self.port.begin()?;
        let mut operation = Operation { chip: self, entered: false };
        if sharing == Sharing::Shared {
            operation.take_over()?;
        }
        // Step 4: the operation.
        run(operation.chip)
    }
}

impl<P: Port, T: Timer> Operation<'_, P, T> {
    fn take_over(&mut self) -> Result<(), NorError> {
        // Step 2: until it is ready, with no write enabled.
        settle(&mut self.chip.port, &mut self.chip.timer)?;
        // Step 3: 4-byte mode. Left again even if this fails: the chip may have heard it.
        self.entered = true;
        self.chip.four_byte_mode(EN4B)
    }
}

impl<P: Port, T: Timer> Drop for Operation<'_, P, T> {
    fn drop(&mut self) {
        // Step 5: 3-byte mode, and the chip is others' too.
        if self.entered {
            // Without a way to tell of an error. The next operation enters the mode it needs.
            let _ = self.chip.four_byte_mode(EX4B);
        }
        self.chip.port.end();
    }
}

/// Step 2.
fn settle(port: &mut impl Port, timer: &mut impl Timer) -> Result<(), NorError> {
    let begun = timer.now_ticks();
    let limit_ticks = ticks_at_least(READY_MAX_NS, timer.frequency_hz());
    loop {
        let late = timer.now_ticks().wrapping_sub(begun) > limit_ticks;
        let status = read_register(port, RDSR)?;
        // All ones is no status but an idle line: the chip's id will tell.
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
