//! An analog input's signal: a voltage as a function of virtual time.
//!
//! *Read first*: [`crate::chip::Ps`] for what time is here.
//!
//! # How it works
//! A [`Signal`] is data and [`Signal::at`] a pure function: the same time gives the same voltage,
//! in whatever order it is asked for. So a test can compute a converter's result from the time at
//! which it sampled. Voltages are whole microvolts and frequencies whole microhertz. The phase is
//! computed in integers, without a sum that could drift. The sine is a polynomial of additions and
//! multiplications, so that every machine rounds it alike.
//!
//! [`SignalSpec`] parses a signal from a command line.
//!
//! ```
//! use barewire_sim::model::signal::{Signal, SignalSpec};
//!
//! let SignalSpec::Ready(ramp) = "ramp:100:0:3300".parse()? else { unreachable!() };
//! assert_eq!(ramp.at(0), 0);
//! // A quarter of its 10 ms is over.
//! assert_eq!(ramp.at(2_500_000_000), 825_000);
//! # Ok::<(), barewire_sim::model::signal::SpecError>(())
//! ```
//!
//! # Not supported
//! Noise, source impedance, sums of signals, interpolation between a file's samples.

mod spec;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

pub use spec::{SignalSpec, SpecError};

use crate::chip::Ps;

/// One turn of a periodic signal, in units of a picosecond times a microhertz.
const TURN: u128 = 1_000_000_000_000_000_000;

/// A turn in thousandths of a degree.
const TURN_MDEG: u128 = 360_000;

/// The largest voltage in a file: above it a line cannot be a chip's input.
const VOLTS_MAX: f64 = 1_000.0;

/// A voltage as a function of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A constant voltage.
    Constant {
        /// The level.
        level_uv: i64,
    },
    /// `offset + amplitude * sin(phase + 2 pi * frequency * time)`.
    Sine {
        /// The frequency.
        frequency_uhz: u64,
        /// Half of the peak-to-peak voltage.
        amplitude_uv: i64,
        /// The mean.
        offset_uv: i64,
        /// The phase at power-up, in thousandths of a degree; a whole turn is 360,000.
        phase_mdeg: u32,
    },
    /// A sawtooth: linear from one level to the other in each period, then back at once.
    Ramp {
        /// The number of teeth per second.
        frequency_uhz: u64,
        /// The start of each tooth.
        from_uv: i64,
        /// The end of each tooth. It is never reached, since the next tooth begins there.
        to_uv: i64,
    },
    /// Samples at a fixed rate from power-up on. Each is held until the next; the last one stays.
    Samples(Samples),
}

/// Samples of a file.
#[derive(Clone, PartialEq, Eq)]
pub struct Samples {
    rate_uhz: u64,
    /// At least one. Shared, because signals are cloned into inputs.
    levels_uv: Arc<[i64]>,
}

/// Why a file is not a list of voltages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplesError {
    /// A line is not a number.
    NotANumber {
        /// The line number, from 1.
        line: usize,
    },
    /// A number is beyond 1,000 V.
    OutOfRange {
        /// The line number, from 1.
        line: usize,
    },
    /// The file contains no number.
    Empty,
}

impl fmt::Display for SamplesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber { line } => {
                write!(f, "line {line} is not a number: each line is one voltage, as in 1.65")
            }
            Self::OutOfRange { line } => {
                write!(f, "line {line} is beyond 1000 V: lines are volts, not codes or millivolts")
            }
            Self::Empty => f.write_str("no voltage in it: each line is one, as in 1.65"),
        }
    }
}

impl std::error::Error for SamplesError {}

impl Samples {
    /// Samples `levels_uv` at `rate_uhz`. `None` if there are no samples.
    #[must_use]
    pub fn new(levels_uv: &[i64], rate_uhz: u64) -> Option<Self> {
        (!levels_uv.is_empty()).then(|| Self { rate_uhz, levels_uv: levels_uv.into() })
    }

    /// Parses a text with a voltage per line, in volts: `1.65` or `16.5e-1`. Empty lines, and text
    /// after a `#`, are ignored.
    ///
    /// # Errors
    /// [`SamplesError::NotANumber`] and [`SamplesError::OutOfRange`] for the first wrong line;
    /// [`SamplesError::Empty`] if there is no voltage at all.
    pub fn parse(text: &str, rate_uhz: u64) -> Result<Self, SamplesError> {
        let mut levels_uv = Vec::new();
        for (line, content) in (1..).zip(text.lines()) {
            let content = content.split('#').next().unwrap_or_default().trim();
            if content.is_empty() {
                continue;
            }
            let volts: f64 = content.parse().map_err(|_| SamplesError::NotANumber { line })?;
            if volts.is_nan() {
                return Err(SamplesError::NotANumber { line });
            }
            if volts.abs() > VOLTS_MAX {
                return Err(SamplesError::OutOfRange { line });
            }
            levels_uv.push((volts * 1e6).round() as i64);
        }
        Self::new(&levels_uv, rate_uhz).ok_or(SamplesError::Empty)
    }

    /// The number of samples.
    #[must_use]
    pub fn count(&self) -> usize {
        self.levels_uv.len()
    }

    fn at(&self, at: Ps) -> i64 {
        let index = u128::from(at) * u128::from(self.rate_uhz) / TURN;
        let last = self.levels_uv.len() - 1;
        self.levels_uv[usize::try_from(index).unwrap_or(last).min(last)]
    }
}

impl fmt::Debug for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Samples")
            .field("rate_uhz", &self.rate_uhz)
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

impl Signal {
    /// 0 V.
    pub const GROUND: Self = Self::Constant { level_uv: 0 };

    /// A constant voltage.
    #[must_use]
    pub const fn constant_mv(level_mv: i32) -> Self {
        Self::Constant { level_uv: level_mv as i64 * 1_000 }
    }

    /// A sine that rises through its offset at power-up.
    #[must_use]
    pub const fn sine(frequency_uhz: u64, amplitude_uv: i64, offset_uv: i64) -> Self {
        Self::Sine { frequency_uhz, amplitude_uv, offset_uv, phase_mdeg: 0 }
    }

    /// A sawtooth that begins at power-up.
    #[must_use]
    pub const fn ramp(frequency_uhz: u64, from_uv: i64, to_uv: i64) -> Self {
        Self::Ramp { frequency_uhz, from_uv, to_uv }
    }

    /// The voltage at a time, in microvolts.
    #[must_use]
    pub fn at(&self, at: Ps) -> i64 {
        match *self {
            Self::Constant { level_uv } => level_uv,
            Self::Sine { frequency_uhz, amplitude_uv, offset_uv, phase_mdeg } => {
                let phase = u128::from(phase_mdeg) * TURN / TURN_MDEG;
                let sine = sine_of_turn((turn(at, frequency_uhz) + phase) % TURN);
                offset_uv.saturating_add((amplitude_uv as f64 * sine).round() as i64)
            }
            Self::Ramp { frequency_uhz, from_uv, to_uv } => {
                let whole = i128::from(to_uv) - i128::from(from_uv);
                // Both factors' product stays below 2^65 * 2^60.
                let risen = (whole * turn(at, frequency_uhz) as i128).div_euclid(TURN as i128);
                i64::try_from(i128::from(from_uv) + risen).unwrap_or(to_uv)
            }
            Self::Samples(ref samples) => samples.at(at),
        }
    }
}

impl Default for Signal {
    fn default() -> Self {
        Self::GROUND
    }
}

/// The elapsed part of the present turn, in units of [`TURN`].
fn turn(at: Ps, frequency_uhz: u64) -> u128 {
    u128::from(at) * u128::from(frequency_uhz) % TURN
}

/// The sine of a part of a turn below [`TURN`]: exact at its zeros, within 1e-11 elsewhere.
fn sine_of_turn(turn: u128) -> f64 {
    /// Coefficients of the Taylor series from x^15 down to x^3, over x.
    const SERIES: [f64; 7] = [
        -1.0 / 1_307_674_368_000.0,
        1.0 / 6_227_020_800.0,
        -1.0 / 39_916_800.0,
        1.0 / 362_880.0,
        -1.0 / 5_040.0,
        1.0 / 120.0,
        -1.0 / 6.0,
    ];
    const QUARTER: u128 = TURN / 4;

    let (quarter, within) = (turn / QUARTER, turn % QUARTER);
    // The second and the fourth quarter mirror the first.
    let along = if quarter % 2 == 0 { within } else { QUARTER - within };
    let angle = along as f64 / QUARTER as f64 * std::f64::consts::FRAC_PI_2;
    let square = angle * angle;
    let sum = SERIES.iter().fold(0.0, |sum, &coefficient| sum * square + coefficient);
    let sine = angle * (1.0 + square * sum);
    if quarter < 2 { sine } else { -sine }
}
