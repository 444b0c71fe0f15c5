//! What an analog input carries: a voltage as a function of virtual time.
//!
//! *Read first*: [`crate::chip::Ps`] for what time is here.
//!
//! # How it works
//! A [`Signal`] is data and [`Signal::at`] a pure function: the same time gives the same voltage,
//! whoever asks, however often and in which order. So a test computes what a converter must have
//! read from the moment at which it sampled. Voltages are whole microvolts and frequencies whole
//! microhertz; the phase is counted in integers, without any sum that could drift, and the sine is
//! a polynomial of additions and multiplications, so that every machine rounds it alike.
//!
//! [`SignalSpec`] is the same from a command line's words.
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

/// One turn of a periodic signal: a picosecond at a microhertz is one of these parts.
const TURN: u128 = 1_000_000_000_000_000_000;

/// A turn in thousandths of a degree.
const TURN_MDEG: u128 = 360_000;

/// Volts beyond which a line of a file is no voltage of a chip's input any more.
const VOLTS_MAX: f64 = 1_000.0;

/// A voltage as a function of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The same all the time.
    Constant {
        /// Its level.
        level_uv: i64,
    },
    /// `offset + amplitude * sin(phase + 2 pi * frequency * time)`.
    Sine {
        /// Its frequency.
        frequency_uhz: u64,
        /// Half of peak to peak.
        amplitude_uv: i64,
        /// Its mean.
        offset_uv: i64,
        /// Its phase at power-up, in thousandths of a degree; a whole turn is 360,000.
        phase_mdeg: u32,
    },
    /// A sawtooth: straight from one level to the other in each period, then back at once.
    Ramp {
        /// How many teeth a second.
        frequency_uhz: u64,
        /// Where each tooth begins.
        from_uv: i64,
        /// Where each tooth ends; never reached, as the next one begins there.
        to_uv: i64,
    },
    /// Samples at a rate from power-up on, each held until the next; the last one stays.
    Samples(Samples),
}

/// A file's samples.
#[derive(Clone, PartialEq, Eq)]
pub struct Samples {
    rate_uhz: u64,
    /// At least one. Shared, as signals are cloned into inputs.
    levels_uv: Arc<[i64]>,
}

/// A file is no list of voltages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplesError {
    /// A line is not a number.
    NotANumber {
        /// The line, the first being 1.
        line: usize,
    },
    /// A line is a number, but no voltage of up to 1,000 V.
    OutOfRange {
        /// The line, the first being 1.
        line: usize,
    },
    /// There is no number in it.
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
    /// The voltages `levels_uv` at `rate_uhz`; `None` if there is none.
    #[must_use]
    pub fn new(levels_uv: &[i64], rate_uhz: u64) -> Option<Self> {
        (!levels_uv.is_empty()).then(|| Self { rate_uhz, levels_uv: levels_uv.into() })
    }

    /// The voltages of a text, one a line in volts, `1.65` or `16.5e-1`; empty lines and what
    /// follows a `#` count for nothing.
    ///
    /// # Errors
    /// [`SamplesError::NotANumber`] and [`SamplesError::OutOfRange`] name the first line that is no
    /// voltage; [`SamplesError::Empty`] if there is none at all.
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

    /// How many there are.
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

    /// The same all the time.
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

/// How much of the present turn is over, in parts of [`TURN`].
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
    // The second and the fourth quarter run the first one's way back.
    let along = if quarter % 2 == 0 { within } else { QUARTER - within };
    let angle = along as f64 / QUARTER as f64 * std::f64::consts::FRAC_PI_2;
    let square = angle * angle;
    let sum = SERIES.iter().fold(0.0, |sum, &coefficient| sum * square + coefficient);
    let sine = angle * (1.0 + square * sum);
    if quarter < 2 { sine } else { -sine }
}
