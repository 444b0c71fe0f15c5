//! Tests of the clock, whose dividers are searched. All else that the driver does is judged in
//! `barewire-sim`.

use super::*;
use crate::controller::block::BlockConfig;
use crate::controller::{ALWAYS_POLL, CsLine};
use crate::spi::Settings;

const CONFIG: Pl022Config = Pl022Config {
    reference_hz: 80_000_000,
    chip_selects: [
        CsLine::Gpio { bit: 3, active_high: false },
        CsLine::Absent,
        CsLine::Absent,
        CsLine::Absent,
    ],
    poll_limit_ns: ALWAYS_POLL,
};

#[test]
fn the_clock_is_the_fastest_not_above_what_was_asked() {
    // Under Miri only one value of each: this tests arithmetic, most of it the test's own.
    let some = |all: usize| if cfg!(miri) { 1 } else { all };
    for reference_hz in [99_999_989, 24_000_000, 80_000_000, 150_000_000].into_iter().take(some(4))
    {
        let config = Pl022Config { reference_hz, ..CONFIG };
        let min_hz = config.limits(1).min_speed_hz;
        let asked = [3_600_000, min_hz, 10_000, 99_999, 400_000, 19_999_999, 200_000_000];
        for asked_hz in asked.into_iter().take(some(7)) {
            let (preset, effective) =
                config.configure(&Settings::new(0, asked_hz), 8_000_000).expect("is in range");
            let control = preset.plan.control;
            assert!((2..=254).contains(&(control >> 16)) && control >> 16 & 1 == 0);
            let best = (2..=254_u32)
                .step_by(2)
                .flat_map(|prescaler| (1..=256).map(move |divisor| prescaler * divisor))
                .filter(|&product| u64::from(product) * u64::from(asked_hz) >= reference_hz.into())
                .min();
            assert_eq!(Some(divisor(control)), best, "{asked_hz} Hz of {reference_hz}");
            assert_eq!(effective.speed_hz, reference_hz / divisor(control));
            assert!(effective.speed_hz <= asked_hz);
        }
    }
    let limits = CONFIG.limits(8_000_000);
    assert_eq!((limits.max_speed_hz, limits.min_speed_hz), (40_000_000, 1_231));
}
