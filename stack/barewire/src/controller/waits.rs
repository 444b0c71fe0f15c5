//! Decides which transfers wait by interrupt.

use super::{Plan, Preset};
use crate::spi::Transfer;
use crate::time::{NS_PER_S, divide, mul_div, mul_div_ceil};

/// A limit, in nanoseconds on the wire, below which every transfer is polled: of a controller, or of a device
/// ([`Settings::poll_limit_ns`](crate::spi::Settings::poll_limit_ns)).
pub const ALWAYS_POLL: u32 = u32::MAX;

/// The longest transfer of `plan` that is polled, in bytes. A word takes `word_periods` of the block's clock of
/// `reference_hz`, without the timer's delay after it.
pub(super) fn poll_bytes_max(
    poll_limit_ns: u32,
    plan: &Plan,
    word_periods: u32,
    reference_hz: u32,
    timer_hz: u32,
) -> usize {
    let words = if plan.word_delay_ticks == 0 {
        // In periods, so that no word's time is rounded.
        let periods = mul_div(poll_limit_ns.into(), reference_hz, NS_PER_S);
        divide(periods, word_periods.max(1)).0
    } else {
        let word_ns = mul_div_ceil(word_periods.into(), NS_PER_S, reference_hz)
            .saturating_add(mul_div_ceil(plan.word_delay_ticks.into(), NS_PER_S, timer_hz));
        u32::try_from(word_ns).map_or(0, |word_ns| divide(poll_limit_ns.into(), word_ns.max(1)).0)
    };
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
