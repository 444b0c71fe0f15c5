//! Signals as written on a command line.
//!
//! *Read first*: [`Signal`], whose kinds these are.
//!
//! # How it works
//! A kind and its fields, joined by colons: `constant:MV`, `sine:FREQ_HZ:AMPLITUDE_MV:OFFSET_MV`,
//! `ramp:FREQ_HZ:FROM_MV:TO_MV`, `file:PATH:RATE_HZ`. Numbers may have fractions, which are rounded
//! to whole microvolts and microhertz. A path may contain colons: the rate is after the last one.
//!
//! This module reads no files: [`SignalSpec::File`] has the path for the caller, and
//! [`SignalSpec::with_file`] takes the file's text.
//!
//! # Not supported
//! Units (`3.3V`), a sine's phase.

use std::fmt;
use std::str::FromStr;

use super::{Samples, SamplesError, Signal};

/// The syntax of each kind.
const FORMS: [(&str, &str); 4] = [
    ("constant", "constant:MV"),
    ("sine", "sine:FREQ_HZ:AMPLITUDE_MV:OFFSET_MV"),
    ("ramp", "ramp:FREQ_HZ:FROM_MV:TO_MV"),
    ("file", "file:PATH:RATE_HZ"),
];

/// A parsed signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignalSpec {
    /// The signal is complete.
    Ready(Signal),
    /// The samples are in a file.
    File {
        /// The path.
        path: String,
        /// Samples per second.
        rate_uhz: u64,
    },
}

/// Why a text is not a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecError {
    /// There is no such kind.
    UnknownKind {
        /// A kind with a similar name, if there is one.
        near: Option<&'static str>,
    },
    /// Fields are missing, or there are too many.
    FieldCount {
        /// The syntax of the kind.
        form: &'static str,
        /// The number of its fields.
        expected: usize,
        /// The number of fields in the text.
        actual: usize,
    },
    /// A field is not a number.
    NotANumber {
        /// The syntax of the kind.
        form: &'static str,
        /// The field's name in it.
        field: &'static str,
    },
    /// A frequency or a rate is not above 0, or beyond 1 GHz.
    FrequencyOutOfRange {
        /// The syntax of the kind.
        form: &'static str,
        /// The field's name in it.
        field: &'static str,
    },
    /// A voltage is beyond 1,000,000 mV.
    VoltageOutOfRange {
        /// The syntax of the kind.
        form: &'static str,
        /// The field's name in it.
        field: &'static str,
    },
    /// `file:` without a path.
    NoPath,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKind { near: Some(near) } => {
                write!(f, "no such signal; did you mean {near:?}?")
            }
            Self::UnknownKind { near: None } => {
                let forms = FORMS.map(|(_, form)| form).join(", ");
                write!(f, "no such signal; there are {forms}")
            }
            Self::FieldCount { form, expected, actual } => {
                write!(f, "{actual} fields instead of {expected}; write {form}")
            }
            Self::NotANumber { form, field } => {
                write!(f, "{field} is not a number; write {form}, numbers without units")
            }
            Self::FrequencyOutOfRange { form, field } => {
                write!(f, "{field} in {form} must be above 0 and at most 1000000000")?;
                f.write_str("; for a level that stays, write constant:MV")
            }
            Self::VoltageOutOfRange { form, field } => {
                write!(f, "{field} in {form} is in millivolts, at most 1000000 either way")
            }
            Self::NoPath => f.write_str("no file is named; write file:PATH:RATE_HZ"),
        }
    }
}

impl std::error::Error for SpecError {}

impl SignalSpec {
    /// The signal. `text` is the file's content, for a signal from a file.
    ///
    /// # Errors
    /// As [`Samples::parse`].
    pub fn with_file(self, text: &str) -> Result<Signal, SamplesError> {
        match self {
            Self::Ready(signal) => Ok(signal),
            Self::File { rate_uhz, .. } => Samples::parse(text, rate_uhz).map(Signal::Samples),
        }
    }
}

impl FromStr for SignalSpec {
    type Err = SpecError;

    fn from_str(spec: &str) -> Result<Self, SpecError> {
        let (kind, rest) = spec.split_once(':').unwrap_or((spec, ""));
        let Some(&(_, form)) = FORMS.iter().find(|(name, _)| *name == kind) else {
            return Err(SpecError::UnknownKind { near: near(kind) });
        };
        let fields = Fields { form, rest };
        match kind {
            "constant" => {
                let [level] = fields.split()?;
                let level_uv = fields.voltage_uv("MV", level)?;
                Ok(Self::Ready(Signal::Constant { level_uv }))
            }
            "sine" => {
                let [frequency, amplitude, offset] = fields.split()?;
                Ok(Self::Ready(Signal::Sine {
                    frequency_uhz: fields.frequency_uhz("FREQ_HZ", frequency)?,
                    amplitude_uv: fields.voltage_uv("AMPLITUDE_MV", amplitude)?,
                    offset_uv: fields.voltage_uv("OFFSET_MV", offset)?,
                    phase_mdeg: 0,
                }))
            }
            "ramp" => {
                let [frequency, from, to] = fields.split()?;
                Ok(Self::Ready(Signal::Ramp {
                    frequency_uhz: fields.frequency_uhz("FREQ_HZ", frequency)?,
                    from_uv: fields.voltage_uv("FROM_MV", from)?,
                    to_uv: fields.voltage_uv("TO_MV", to)?,
                }))
            }
            _ => {
                let Some((path, rate)) = rest.rsplit_once(':') else {
                    let actual = usize::from(!rest.is_empty());
                    return Err(SpecError::FieldCount { form, expected: 2, actual });
                };
                if path.is_empty() {
                    return Err(SpecError::NoPath);
                }
                let rate_uhz = fields.frequency_uhz("RATE_HZ", rate)?;
                Ok(Self::File { path: path.into(), rate_uhz })
            }
        }
    }
}

/// The text after the first colon.
#[derive(Clone, Copy)]
struct Fields<'a> {
    form: &'static str,
    rest: &'a str,
}

impl<'a> Fields<'a> {
    fn split<const EXPECTED: usize>(self) -> Result<[&'a str; EXPECTED], SpecError> {
        let fields: Vec<&str> = self.rest.split(':').collect();
        let actual = if self.rest.is_empty() { 0 } else { fields.len() };
        let form = self.form;
        fields.try_into().ok().filter(|_| actual == EXPECTED).ok_or(SpecError::FieldCount {
            form,
            expected: EXPECTED,
            actual,
        })
    }

    fn number(self, field: &'static str, text: &str) -> Result<f64, SpecError> {
        let number: f64 = text.trim().parse().unwrap_or(f64::NAN);
        let form = self.form;
        if number.is_nan() { Err(SpecError::NotANumber { form, field }) } else { Ok(number) }
    }

    fn voltage_uv(self, field: &'static str, text: &str) -> Result<i64, SpecError> {
        let mv = self.number(field, text)?;
        if mv.abs() > 1e6 {
            return Err(SpecError::VoltageOutOfRange { form: self.form, field });
        }
        Ok((mv * 1e3).round() as i64)
    }

    fn frequency_uhz(self, field: &'static str, text: &str) -> Result<u64, SpecError> {
        let frequency_uhz = (self.number(field, text)? * 1e6).round();
        if !(1.0..=1e15).contains(&frequency_uhz) {
            return Err(SpecError::FrequencyOutOfRange { form: self.form, field });
        }
        Ok(frequency_uhz as u64)
    }
}

fn near(kind: &str) -> Option<&'static str> {
    FORMS
        .iter()
        .map(|&(name, _)| (strsim::jaro_winkler(kind, name), name))
        .filter(|&(likeness, _)| likeness > 0.75)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}
