//! Errors in a bus's text, with the name that was probably meant.

use std::fmt;

use super::{CS, OPTIONS};
use crate::map::SpecError;

/// An error in a bus's text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BusTextError {
    /// The first part is neither a device nor an address.
    Device {
        /// The first part.
        text: String,
        /// The parts that are accepted there.
        expected: &'static str,
    },
    /// The option does not exist.
    UnknownOption {
        /// The option given.
        option: String,
        /// The known name that was probably meant.
        near: Option<&'static str>,
    },
    /// The kernel module knows it, so `barewire:N` has no such option.
    KnownByKernel {
        /// The option.
        option: &'static str,
    },
    /// The option does not accept this name.
    UnknownName {
        /// The option.
        option: &'static str,
        /// The name given.
        name: String,
        /// The known name that was probably meant.
        near: Option<&'static str>,
        /// The names it accepts.
        known: Vec<&'static str>,
    },
    /// An option is given twice.
    Duplicate {
        /// The option.
        option: &'static str,
    },
    /// A bus is to be shared and not to be shared.
    SharedOrExclusive,
    /// A required option is missing.
    Missing {
        /// The option.
        option: &'static str,
        /// An example of it.
        example: &'static str,
    },
    /// The value of an option cannot be parsed.
    Value {
        /// The option.
        option: &'static str,
        /// The value given.
        value: String,
        /// What is expected.
        expected: &'static str,
    },
    /// A GPIO chip is named by its number, which changes from kernel to kernel.
    ChipNumber {
        /// The option.
        option: &'static str,
        /// The text given.
        text: String,
    },
    /// There are more chip selects than the controller's table holds.
    TooManyLines {
        /// How many were given.
        count: usize,
    },
    /// The text can be parsed, but its specification is invalid.
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
            Self::KnownByKernel { option } => {
                write!(f, "option {option}: the kernel knows it for barewire:N: leave it out")
            }
            Self::UnknownName { option, name, near, known } => {
                write!(f, "option {option}: there is no {name:?}: ")?;
                if let Some(near) = near {
                    write!(f, "did you mean {near:?}? ")?;
                }
                write!(f, "(known: {})", known.join(", "))
            }
            Self::Duplicate { option } => write!(f, "option {option} is given twice"),
            Self::SharedOrExclusive => f.write_str(
                "a bus is shared, which it is without an option, or exclusive: leave one of the two out",
            ),
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
