//! Samples and their evaluation.

use super::config::REPEATS_MAX;
use super::control::{Position, code, word};
use super::{Axis, Config, Filter, TouchError};

/// The codes over one plate's whole resistance.
const CODES: u64 = 4_096;

/// One sample, filtered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Sample {
    /// X, from X- to X+: 0 to 4,095.
    pub x: u16,
    /// Y, from Y- to Y+: 0 to 4,095.
    pub y: u16,
    /// The position of the touch on the X plate, with Y+ against X-; 0 without a touch.
    pub z1: u16,
    /// The position of the touch on the Y plate, likewise; full scale without a touch.
    pub z2: u16,
    /// The largest minus the smallest repeat, of X and of Y.
    pub spread: [u16; 2],
}

/// The position and pressure of the pen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Touch {
    /// X, from X- to X+: 0 to 4,095.
    pub x: u16,
    /// Y, from Y- to Y+: 0 to 4,095.
    pub y: u16,
    /// The resistance of the touch, in ohms. Higher pressure means lower resistance.
    pub ohms: u32,
}

impl Sample {
    /// Decodes the received bytes of a sample.
    pub(super) fn decode(config: &Config, received: &[u8]) -> Result<Self, TouchError> {
        let mut all = 0;
        for index in 0..config.conversions() {
            all |= code(word(received, index))?;
        }
        if all == 0 {
            return Err(TouchError::StuckLow);
        }
        let mut sample = Self { x: 0, y: 0, z1: 0, z2: 0, spread: [0; 2] };
        for (position, first) in config.values() {
            let mut repeats = [0; REPEATS_MAX as usize];
            let repeats = &mut repeats[..usize::from(config.repeats)];
            for (repeat, index) in repeats.iter_mut().zip(first..) {
                *repeat = code(word(received, index))?;
            }
            repeats.sort_unstable();
            let (value, spread) =
                (config.filter.of(repeats), repeats[repeats.len() - 1] - repeats[0]);
            match position {
                Position::X => (sample.x, sample.spread[0]) = (value, spread),
                Position::Y => (sample.y, sample.spread[1]) = (value, spread),
                Position::Z1 => sample.z1 = value,
                Position::Z2 => sample.z2 = value,
            }
        }
        Ok(sample)
    }

    /// The resistance of the touch, in ohms; `None` without a touch.
    ///
    /// This is the data sheet's equation that needs only one plate's resistance. The resistance of
    /// the X plate up to the touch is the fraction X of it. The touch's resistance relates to that
    /// as Z2 minus Z1 to Z1.
    #[must_use]
    pub fn touch_ohms(&self, config: &Config) -> Option<u32> {
        // A quotient of very small codes would turn noise into a touch at a random position with a
        // random pressure.
        if self.z1 <= config.floor || self.x <= config.floor {
            return None;
        }
        let z1 = u64::from(self.z1);
        let beyond = u64::from(self.z2).saturating_sub(z1);
        let plate = u64::from(config.x_plate_ohms) * u64::from(self.x);
        Some(u32::try_from(plate * beyond / (CODES * z1)).unwrap_or(u32::MAX))
    }

    /// Whether the pen is down according to the pressure.
    #[must_use]
    pub fn is_down(&self, config: &Config) -> bool {
        self.touch_ohms(config).is_some_and(|ohms| ohms <= config.touch_max_ohms)
    }

    /// The position of the pen, if it was down all the time.
    pub(super) fn judge(&self, config: &Config) -> Result<Touch, TouchError> {
        let Self { x, y, z1, z2, spread } = *self;
        // Without a pen the positions are meaningless, so this is checked first.
        let ohms = match self.touch_ohms(config) {
            Some(ohms) if ohms <= config.touch_max_ohms => ohms,
            _ => return Err(TouchError::PenUp { z1, z2 }),
        };
        for (axis, spread) in [Axis::X, Axis::Y].into_iter().zip(spread) {
            if spread > config.spread_max {
                let spread_max = config.spread_max;
                return Err(TouchError::Inconsistent { axis, spread, spread_max });
            }
        }
        Ok(Touch { x, y, ohms })
    }
}

impl Filter {
    /// Combines repeats, which are sorted.
    fn of(self, repeats: &[u16]) -> u16 {
        match self {
            Self::Median => repeats[(repeats.len() - 1) / 2],
            Self::Mean => {
                let (sum, len) =
                    (repeats.iter().copied().map(u32::from).sum::<u32>(), repeats.len() as u32);
                ((sum + len / 2) / len) as u16
            }
        }
    }
}

/// The chip's temperature in thousandths of a kelvin, from the codes of
/// [`Temp0`](super::Aux::Temp0) and [`Temp1`](super::Aux::Temp1): 2.573 K per millivolt of
/// difference, without calibration.
#[must_use]
pub fn temperature_millikelvin(temp0: u16, temp1: u16) -> u32 {
    let microvolts = u64::from(temp1.saturating_sub(temp0)) * 2_500_000 / CODES;
    (microvolts * 2_573 / 1_000) as u32
}
