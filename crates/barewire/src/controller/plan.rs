//! What every controller checks of a message, and the ticks every plan carries.

use super::{After, Program};
use crate::spi::{Error, MessageError, Transfer};
use crate::time::ticks_at_least;

/// A delay in ticks of the controller's timer, rounded up.
///
/// # Errors
/// [`Error::DelayTooLong`] if the count does not fit 32 bits.
pub fn delay_ticks(ns: u32, timer_hz: u32) -> Result<u32, Error> {
    if ns == 0 {
        return Ok(0);
    }
    u32::try_from(ticks_at_least(u64::from(ns), timer_hz))
        .map_err(|_| Error::DelayTooLong { asked_ns: ns })
}

/// Validates and plans `message` if every transfer is as the device has it: then no controller
/// is needed, nor the bus. Returns whether it was so; if not, nothing is settled and the
/// controller must [plan](super::Controller::plan).
///
/// # Errors
/// [`Error::Empty`], [`Error::CsChangeOnLast`], [`Error::Length`].
#[inline]
pub(crate) fn plan_plain(
    program: &Program,
    message: &mut [Transfer<'_>],
) -> Result<bool, MessageError> {
    check_ends(message)?;
    if program.one_transfer && message.len() > 1 {
        return Ok(false);
    }
    for (index, transfer) in message.iter_mut().enumerate() {
        if !transfer.is_plain() || transfer.data.len() > program.max_len {
            return Ok(false);
        }
        plan_one(program, transfer).map_err(|error| MessageError::refused(error, index))?;
    }
    Ok(true)
}

/// Validates `message` and writes every transfer's plan; `block` adds the block's own checks and
/// register value of a transfer that is not as the device has it.
///
/// # Errors
/// [`Error::Empty`], [`Error::CsChangeOnLast`], [`Error::Length`], [`Error::BitsPerWord`],
/// [`Error::DelayTooLong`], and whatever `block` refuses.
pub fn plan_message<F>(
    program: &Program,
    timer_hz: u32,
    message: &mut [Transfer<'_>],
    mut block: F,
) -> Result<(), MessageError>
where
    F: FnMut(&Transfer<'_>) -> Result<u32, Error>,
{
    check_ends(message)?;
    for (index, transfer) in message.iter_mut().enumerate() {
        let planned = if transfer.is_plain() {
            plan_one(program, transfer)
        } else {
            plan_special(program, timer_hz, transfer, &mut block)
        };
        planned.map_err(|error| MessageError::refused(error, index))?;
    }
    Ok(())
}

#[inline]
fn check_ends(message: &[Transfer<'_>]) -> Result<(), MessageError> {
    match message.last() {
        None => Err(MessageError::refused(Error::Empty, 0)),
        Some(last) if last.cs_change => {
            Err(MessageError::refused(Error::CsChangeOnLast, message.len() - 1))
        }
        Some(_) => Ok(()),
    }
}

#[inline]
fn plan_one(program: &Program, transfer: &mut Transfer<'_>) -> Result<(), Error> {
    transfer.plan = program.plan;
    if transfer.cs_change {
        transfer.plan.after = After::CsChange;
    }
    check_len(transfer.data.len(), program.plan.word_bytes)
}

#[inline]
fn check_len(len: usize, word_bytes: u8) -> Result<(), Error> {
    // Words are 1, 2 or 4 bytes: a mask finds a remainder without a division.
    if len & usize::from(word_bytes - 1) == 0 {
        Ok(())
    } else {
        Err(Error::Length { len, word_bytes })
    }
}

/// A transfer with a speed, a word length or delays of its own.
#[cold]
fn plan_special<F>(
    program: &Program,
    timer_hz: u32,
    transfer: &mut Transfer<'_>,
    block: &mut F,
) -> Result<(), Error>
where
    F: FnMut(&Transfer<'_>) -> Result<u32, Error>,
{
    transfer.plan = program.plan;
    transfer.plan.control = block(transfer)?;
    if transfer.bits_per_word != 0 {
        transfer.plan.word_bytes = word_bytes(transfer.bits_per_word)?;
    }
    let word_delay_ticks = delay_ticks(transfer.word_delay_ns, timer_hz)?;
    transfer.plan.word_delay_ticks = transfer.plan.word_delay_ticks.max(word_delay_ticks);
    transfer.delay_ticks = delay_ticks(transfer.delay_ns, timer_hz)?;
    // Deselecting waits the device's cs_inactive already; only the rest is to come.
    transfer.inactive_ticks = delay_ticks(transfer.cs_change_delay_ns, timer_hz)?
        .saturating_sub(program.cs_inactive_ticks);
    if transfer.cs_change && transfer.delay_ticks | transfer.inactive_ticks != 0 {
        transfer.plan.after = After::TimedCsChange;
    } else if transfer.cs_change {
        transfer.plan.after = After::CsChange;
    } else if transfer.delay_ticks != 0 {
        transfer.plan.after = After::Delay;
    }
    check_len(transfer.data.len(), transfer.plan.word_bytes)
}

/// Bytes of a word of `bits`.
///
/// # Errors
/// [`Error::BitsPerWord`] unless `bits` is 8, 16 or 32.
pub fn word_bytes(bits: u8) -> Result<u8, Error> {
    match bits {
        8 | 16 | 32 => Ok(bits / 8),
        _ => Err(Error::BitsPerWord { bits }),
    }
}
