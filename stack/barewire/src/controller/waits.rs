//! Decides which transfers wait by interrupt.

use super::{Plan, Preset};
use crate::spi::Transfer;

/// A limit, in nanoseconds on the wire, below which every transfer is polled: of a controller, or of a device
/// ([`Settings::poll_limit_ns`](crate::spi::Settings::poll_limit_ns)).
pub const ALWAYS_POLL: u32 = u32::MAX;

const PS_PER_S: u128 = 1_000_000_000_000;

/// The longest transfer of `plan` that is polled, in bytes. A word takes `word_ps` picoseconds on
/// the wire, without the timer's delay after it.
pub(super) fn poll_bytes_max(
    poll_limit_ns: u32,
    plan: &Plan,
    word_ps: impl FnOnce() -> u128,
    timer_hz: u32,
) -> usize {
    if poll_limit_ns == ALWAYS_POLL {
        return usize::MAX;
    }
    let gap_ps = u128::from(plan.word_delay_ticks) * PS_PER_S;
    let cost_ps = word_ps() + gap_ps.div_ceil(timer_hz.into());
    let words = u128::from(poll_limit_ns) * 1_000 / cost_ps.max(1);
    usize::try_from(words.saturating_mul(plan.word_bytes().into())).unwrap_or(usize::MAX)
}

/// Decides for each transfer of a planned message whether it waits by interrupt. `bytes_max` is
/// [`poll_bytes_max`] of a plan.
pub(super) fn plan_waits(
    preset: &Preset,
    message: &mut [Transfer<'_>],
    bytes_max: impl Fn(&Plan) -> usize,
) {
    if preset.poll_bytes_max == usize::MAX {
        return;
    }
    let device = preset.plan;
    for transfer in message {
        let plan = transfer.plan;
        let same_pace = plan.control == device.control
            && plan.word_delay_ticks == device.word_delay_ticks
            && plan.word_bytes() == device.word_bytes();
        let max = if same_pace { preset.poll_bytes_max } else { bytes_max(&plan) };
        transfer.plan = plan.with_interrupt(transfer.data.len() > max);
    }
}

/// Whether any transfer of a planned message waits by interrupt.
#[inline]
pub(super) fn waits(message: &[Transfer<'_>]) -> bool {
    message.iter().any(|transfer| transfer.plan.by_interrupt())
}
