//! What every controller checks of a message, and the ticks every plan carries.

use super::{After, Plan, Program};
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

/// Validates `message` and writes every transfer's plan; `block` adds the block's own checks and
/// register values, given the transfer and its word length in bytes.
///
/// # Errors
/// [`Error::Empty`], [`Error::CsChangeOnLast`], [`Error::Length`], [`Error::BitsPerWord`],
/// [`Error::DelayTooLong`], and whatever `block` refuses.
#[inline]
pub fn plan_message<F>(
    program: &Program,
    timer_hz: u32,
    message: &mut [Transfer<'_>],
    mut block: F,
) -> Result<(), MessageError>
where
    F: FnMut(&Transfer<'_>, u8) -> Result<[u32; 2], Error>,
{
    match message.last() {
        None => return Err(MessageError::refused(Error::Empty, 0)),
        Some(last) if last.cs_change => {
            return Err(MessageError::refused(
                Error::CsChangeOnLast,
                message.len() - 1,
            ));
        }
        Some(_) => {}
    }
    for (index, transfer) in message.iter_mut().enumerate() {
        transfer.plan = plan_one(program, timer_hz, transfer, &mut block)
            .map_err(|error| MessageError::refused(error, index))?;
    }
    Ok(())
}

#[inline]
fn plan_one<F>(
    program: &Program,
    timer_hz: u32,
    transfer: &Transfer<'_>,
    block: &mut F,
) -> Result<Plan, Error>
where
    F: FnMut(&Transfer<'_>, u8) -> Result<[u32; 2], Error>,
{
    let word_bytes = if transfer.bits_per_word == 0 {
        program.word_bytes
    } else {
        word_bytes(transfer.bits_per_word)?
    };
    let len = transfer.data.len();
    // Words are 1, 2 or 4 bytes: a mask finds a remainder without a division.
    if len & usize::from(word_bytes - 1) != 0 {
        return Err(Error::Length { len, word_bytes });
    }
    let mut plan = Plan {
        regs: block(transfer, word_bytes)?,
        delay_ticks: 0,
        cs_change_ticks: 0,
        word_delay_ticks: program.word_delay_ticks,
        word_bytes,
        after: if transfer.cs_change {
            After::CsChange
        } else {
            After::Nothing
        },
    };
    if transfer.delay_ns | transfer.cs_change_delay_ns | transfer.word_delay_ns != 0 {
        plan_delays(program, timer_hz, transfer, &mut plan)?;
    }
    Ok(plan)
}

#[cold]
fn plan_delays(
    program: &Program,
    timer_hz: u32,
    transfer: &Transfer<'_>,
    plan: &mut Plan,
) -> Result<(), Error> {
    plan.delay_ticks = delay_ticks(transfer.delay_ns, timer_hz)?;
    plan.word_delay_ticks = plan
        .word_delay_ticks
        .max(delay_ticks(transfer.word_delay_ns, timer_hz)?);
    if transfer.cs_change {
        // Deselecting waits the device's cs_inactive already; only the rest is to come.
        plan.cs_change_ticks = delay_ticks(transfer.cs_change_delay_ns, timer_hz)?
            .saturating_sub(program.cs_inactive_ticks);
    } else if plan.delay_ticks > 0 {
        plan.after = After::Delay;
    }
    Ok(())
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
