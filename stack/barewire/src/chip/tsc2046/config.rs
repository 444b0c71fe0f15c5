//! How a sample is taken and judged.

use super::TouchError;
use super::control::{CONVERTER_ON, POWER_DOWN, Position};

/// Repeats there can be.
pub(super) const REPEATS_MAX: u8 = 8;
/// Conversions that can be thrown away.
pub(super) const SETTLE_MAX: u8 = 30;
/// From one control byte to the next.
const CLOCKS_PER_CONVERSION: u64 = 16;
/// The last of a control byte's, in which the input is sampled.
const CLOCKS_TO_SAMPLE: u64 = 3;

/// What becomes of repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// The middle one, of an even number the lower: a spike has no say.
    Median,
    /// Their mean, rounded.
    Mean,
}

/// How a sample is taken and judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Resistance of the X plate, from X+ to X-, in ohms: what the pressure is measured in.
    pub x_plate_ohms: u32,
    /// Conversions thrown away each time another plate is driven, 0 to 30: see [`Config::settle_for`].
    pub settle: u8,
    /// Conversions kept of each value, 1 to 8.
    pub repeats: u8,
    /// What becomes of them.
    pub filter: Filter,
    /// The most by which the repeats of a position may differ.
    pub spread_max: u16,
    /// Codes of X and of Z1 up to which there is no touch: the noise of a current that does not flow. The
    /// edge of the panel at X- that is as narrow is lost.
    pub floor: u16,
    /// The resistance of a touch above which the pen counts as up, in ohms.
    pub touch_max_ohms: u32,
    /// From the end of a sample to the next while the pen is down, in microseconds.
    pub interval_us: u32,
    /// How long PENIRQ may take to rise behind a pen that is up: its pull-up charges what hangs on the
    /// plate's wires. In microseconds; see [`service`](super::Tsc2046::service).
    pub recheck_us: u32,
    /// Conversions thrown away while the reference comes up, 0 to 30.
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

    /// The conversions to throw away so that a plate has been driven for `settle_ns` nanoseconds at
    /// a clock of `speed_hz` when the first is kept; 255 for more than that.
    #[must_use]
    pub const fn settle_for(settle_ns: u32, speed_hz: u32) -> u8 {
        let clocks = (settle_ns as u64 * speed_hz as u64).div_ceil(1_000_000_000);
        let conversions = clocks.saturating_sub(CLOCKS_TO_SAMPLE).div_ceil(CLOCKS_PER_CONVERSION);
        if conversions > 255 { 255 } else { conversions as u8 }
    }

    /// Conversions of one sample: X, Y and Z1 settle, Z2 need not.
    #[must_use]
    pub const fn conversions(&self) -> usize {
        3 * self.settle as usize + 4 * self.repeats as usize
    }

    /// Bytes of one sample: two a conversion, and the control byte of the first.
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

    /// The values in the order of their conversions, with the first that is kept.
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
