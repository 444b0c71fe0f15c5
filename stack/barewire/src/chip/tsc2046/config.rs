//! How a sample is taken and filtered.

use super::TouchError;
use super::control::{CONVERTER_ON, POWER_DOWN, Position};

/// The largest number of repeats.
pub(super) const REPEATS_MAX: u8 = 8;
/// The largest number of discarded conversions.
pub(super) const SETTLE_MAX: u8 = 30;
/// The clocks from one control byte to the next.
const CLOCKS_PER_CONVERSION: u64 = 16;
/// The last clocks of a control byte, in which the input is sampled.
const CLOCKS_TO_SAMPLE: u64 = 3;

/// How the repeats of a value are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Filter {
    /// The middle one, of an even number the lower of the two: a single outlier has no effect.
    Median,
    /// Their mean, rounded.
    Mean,
}

/// How a sample is taken and filtered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Config {
    /// The resistance of the X plate, from X+ to X-, in ohms. The pressure is computed from it.
    pub x_plate_ohms: u32,
    /// The number of conversions discarded each time another plate is driven, 0 to 30: see
    /// [`Config::settle_for`].
    pub settle: u8,
    /// The number of conversions kept of each value, 1 to 8.
    pub repeats: u8,
    /// How they are combined.
    pub filter: Filter,
    /// The largest difference between the repeats of a position.
    pub spread_max: u16,
    /// X and Z1 codes up to this value mean no touch: they are noise without a current. The edge of
    /// the panel at X- is insensitive over the same width.
    pub floor: u16,
    /// The touch resistance above which the pen counts as up, in ohms.
    pub touch_max_ohms: u32,
    /// The time from the end of a sample to the next while the pen is down, in microseconds.
    pub interval_us: u32,
    /// How long PENIRQ may take to rise after the pen is lifted, in microseconds: its pull-up
    /// charges the capacitors on the plate's wires. See [`service`](super::Tsc2046::service).
    pub recheck_us: u32,
    /// The number of conversions discarded while the reference rises, 0 to 30.
    pub reference_settle: u8,
}

impl Config {
    /// A small panel at 1 MHz.
    pub const DEFAULT: Self = Self {
        x_plate_ohms: 500,
        settle: 3,
        repeats: 3,
        filter: Filter::Median,
        spread_max: 32,
        floor: 8,
        touch_max_ohms: 4_000,
        interval_us: 5_000,
        recheck_us: 200,
        reference_settle: 8,
    };

    /// The number of conversions to discard so that a plate has been driven for `settle_ns`
    /// nanoseconds, at a clock of `speed_hz`, when the first one is kept. 255 stands for any larger
    /// number.
    #[must_use]
    pub const fn settle_for(settle_ns: u32, speed_hz: u32) -> u8 {
        let clocks = (settle_ns as u64 * speed_hz as u64).div_ceil(1_000_000_000);
        let conversions = clocks.saturating_sub(CLOCKS_TO_SAMPLE).div_ceil(CLOCKS_PER_CONVERSION);
        if conversions > 255 { 255 } else { conversions as u8 }
    }

    /// The number of conversions in a sample. X, Y and Z1 settle; Z2 need not.
    #[must_use]
    pub const fn conversions(&self) -> usize {
        3 * self.settle as usize + 4 * self.repeats as usize
    }

    /// The bytes of a sample: two per conversion, and the control byte of the first.
    #[must_use]
    pub const fn message_bytes(&self) -> usize {
        2 * self.conversions() + 1
    }

    pub(super) fn check(&self) -> Result<(), TouchError> {
        let Self { settle, repeats, reference_settle, .. } = *self;
        let out_of_range =
            repeats == 0 || repeats > REPEATS_MAX || settle.max(reference_settle) > SETTLE_MAX;
        match out_of_range {
            true => Err(TouchError::Config { repeats, settle: settle.max(reference_settle) }),
            false => Ok(()),
        }
    }

    /// The values in the order of their conversions, each with the index of the first one kept.
    pub(super) fn values(&self) -> [(Position, usize); 4] {
        let (settle, each) = (usize::from(self.settle), usize::from(self.settle + self.repeats));
        [
            (Position::X, settle),
            (Position::Y, each + settle),
            (Position::Z1, 2 * each + settle),
            (Position::Z2, 3 * each),
        ]
    }

    /// The control bytes of one sample.
    pub(super) fn controls(&self) -> impl Iterator<Item = u8> {
        let (each, last) = (usize::from(self.settle + self.repeats), self.conversions() - 1);
        (0..=last).map(move |index| {
            let position =
                [Position::X, Position::Y, Position::Z1, Position::Z2][(index / each).min(3)];
            position.control(if index == last { POWER_DOWN } else { CONVERTER_ON })
        })
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}
