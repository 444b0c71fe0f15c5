//! Decides which transfers wait by interrupt, and lets a caller sleep through them.

use core::task::Poll;

use super::{Controller, Plan, Program, Unfinished, Wire};
use crate::spi::Transfer;

/// A limit, in nanoseconds on the wire, below which every transfer is polled.
pub const ALWAYS_POLL: u32 = u32::MAX;

const PS_PER_S: u128 = 1_000_000_000_000;

/// The longest transfer of `plan` that is polled, in bytes. A word takes `word_ps` picoseconds on
/// the wire, without the timer's delay after it.
pub(super) fn poll_bytes_max(
    poll_limit_ns: u32,
    plan: &Plan,
    word_ps: u128,
    timer_hz: u32,
) -> usize {
    if poll_limit_ns == ALWAYS_POLL {
        return usize::MAX;
    }
    let gap_ps = u128::from(plan.word_delay_ticks) * PS_PER_S;
    let cost_ps = word_ps + gap_ps.div_ceil(timer_hz.into());
    let words = u128::from(poll_limit_ns) * 1_000 / cost_ps.max(1);
    usize::try_from(words.saturating_mul(plan.word_bytes().into())).unwrap_or(usize::MAX)
}

/// Decides for each transfer of a planned message whether it waits by interrupt. `bytes_max` is
/// [`poll_bytes_max`] of a plan.
pub(super) fn plan_waits(
    program: &Program,
    message: &mut [Transfer<'_>],
    bytes_max: impl Fn(&Plan) -> usize,
) {
    if program.poll_bytes_max == usize::MAX {
        return;
    }
    let device = program.plan;
    for transfer in message {
        let plan = transfer.plan;
        let same_pace = plan.control == device.control
            && plan.word_delay_ticks == device.word_delay_ticks
            && plan.word_bytes() == device.word_bytes();
        let max = if same_pace { program.poll_bytes_max } else { bytes_max(&plan) };
        transfer.plan = plan.with_interrupt(transfer.data.len() > max);
    }
}

/// Whether any transfer of a planned message waits by interrupt.
#[inline]
pub(super) fn waits(message: &[Transfer<'_>]) -> bool {
    message.iter().any(|transfer| transfer.plan.by_interrupt())
}

/// A controller whose caller may sleep until the block interrupts.
pub(super) trait Sleeps: Controller + Wire {
    /// Whether there is an interrupt to wait for.
    const CAN_SLEEP: bool;

    /// Prepares the block for a whole message before it runs.
    #[inline]
    fn look_ahead(&mut self, program: &Program, message: &[Transfer<'_>]) {
        let _ = (program, message);
    }

    /// Unmasks the block's interrupt, and sleeps until it came or the deadline passed.
    /// [`Controller::resume`] decides which of the two it was.
    fn sleep(&mut self);
}

/// Runs a message; the caller sleeps while the wire works.
#[cold]
pub(super) fn run_blocking<B: Sleeps>(
    block: &mut B,
    program: &Program,
    message: &mut [Transfer<'_>],
) -> Result<usize, Unfinished> {
    let abandoned = Abandoned(block);
    let mut polled = abandoned.0.start(program, message);
    let ran = loop {
        match polled {
            Poll::Ready(ran) => break ran,
            Poll::Pending => abandoned.0.sleep(),
        }
        polled = abandoned.0.resume(program, message);
    };
    core::mem::forget(abandoned);
    ran
}

/// Reclaims a block whose message is abandoned by a panic while the caller slept.
struct Abandoned<'b, B: Sleeps>(&'b mut B);

impl<B: Sleeps> Drop for Abandoned<'_, B> {
    fn drop(&mut self) {
        self.0.reclaim();
    }
}
