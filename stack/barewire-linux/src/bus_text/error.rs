//! What can be wrong with a bus's text, and what was probably meant.

use std::fmt;

use super::{CS, OPTIONS};
use crate::map::SpecError;

/// What is wrong with a bus's text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BusTextError {
    /// What stands first is no device or address.
    Device {
        /// What stands there.
        text: String,
        /// What should.
        expected: &'static str,
    },
    /// There is no such option.
    UnknownOption {
        /// What was given.
        option: String,
        /// What was probably meant.
        near: Option<&'static str>,
    },
    /// There is nothing of that name that the option could take.
    UnknownName {
        /// Which option.
        option: &'static str,
        /// What was given.
        name: String,
        /// What was probably meant.
        near: Option<&'static str>,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// An option is given twice.
    Twice {
        /// Which.
        option: &'static str,
    },
    /// An option that must be given is not.
    Missing {
        /// Which.
        option: &'static str,
        /// How it looks.
        example: &'static str,
    },
    /// An option's value cannot be read.
    Value {
        /// Which option.
        option: &'static str,
        /// What was given.
        value: String,
        /// What should be.
        expected: &'static str,
    },
    /// A GPIO chip is named by its number, which is another one from kernel to kernel.
    ChipNumber {
        /// Which option.
        option: &'static str,
        /// What was given.
        text: String,
    },
    /// More chip selects than the controller's table holds.
    TooManyLines {
        /// How many.
        count: usize,
    },
    /// It can be read, and makes no sense.
    Spec(SpecError),
}

impl fmt::Display for BusTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device { text, expected } => write!(f, "{text:?} is not {expected}"),
            Self::UnknownOption { option, near } => {
                write!(f, "there is no option {option:?}: ")?;
                if let Some(near) = near {
                    write!(f, "did you mean {near:?}? ")?;
                }
                write!(f, "(known: {})", OPTIONS.join(", "))
            }
            Self::UnknownName { option, name, near, known } => {
                write!(f, "option {option}: there is no {name:?}: ")?;
                if let Some(near) = near {
                    write!(f, "did you mean {near:?}? ")?;
                }
                write!(f, "(known: {})", known.join(", "))
            }
            Self::Twice { option } => write!(f, "option {option} is given twice"),
            Self::Missing { option, example } => {
                write!(f, "option {option} is missing: add {example}")
            }
            Self::Value { option, value, expected } => {
                write!(f, "option {option}: {value:?} is not {expected}")
            }
            Self::ChipNumber { option, text } => write!(
                f,
                "option {option}: {text:?} names a GPIO chip by its number, which depends on the order in which the kernel finds them: write the address of its registers, gpio@0x30240000:9, or its label, gpio@LABEL:9 (`gpiodetect` prints labels)"
            ),
            Self::TooManyLines { count } => {
                write!(f, "option {CS}: {count} chip selects are more than the 4 there can be")
            }
            Self::Spec(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BusTextError {}
