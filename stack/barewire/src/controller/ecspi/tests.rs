//! Tests of the clock, whose dividers are searched. All else that the driver does is judged in
//! `barewire-sim`.

use super::*;
use crate::controller::block::BlockConfig;
use crate::controller::{ALWAYS_POLL, CsLine};
use crate::spi::Settings;

#[test]
fn the_clock_is_never_faster_than_asked_and_the_divider_never_larger_than_needed() {
    let config = EcspiConfig {
        reference_hz: 80_000_000,
        chip_selects: [
            CsLine::Gpio { bit: 9, active_high: false },
            CsLine::Absent,
            CsLine::Absent,
            CsLine::Absent,
        ],
        poll_limit_ns: ALWAYS_POLL,
    };
    for asked_hz in [
        153,
        154,
        1_000,
        99_999,
        1_000_000,
        3_600_000,
        19_999_999,
        20_000_000,
        80_000_000,
        200_000_000,
    ] {
        let (preset, effective) =
            config.configure(&Settings::new(0, asked_hz), 8_000_000).expect("is in range");
        assert!(effective.speed_hz <= asked_hz, "{asked_hz}");
        let divisor = u64::from(divisor(preset.plan.control));
        // Any smaller divisor of the block would be too fast.
        let smaller = (0..16)
            .flat_map(|post| (1..=16_u64).map(move |pre| pre << post))
            .filter(|&d| d < divisor)
            .max();
        if let Some(smaller) = smaller {
            assert!(
                80_000_000 > u64::from(asked_hz) * smaller,
                "{asked_hz}: a divider of {smaller} would do"
            );
        }
    }
}
