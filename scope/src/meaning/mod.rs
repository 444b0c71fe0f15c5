//! What pauses mean: causes whose signature is in the data, each with its evidence and how sure it is.
//!
//! # Read first
//! Linux, `drivers/spi/spi.c` for the wait at a `cs_change` and the queue's task; BCM2835 ARM Peripherals, chapter 10, and
//! barewire's lab, for nine clocks a byte. The lab's tables (`lab/src/own/linux.rs`, `lab/src/kernel/`) have the same causes
//! as costs.
//!
//! # How it works
//! [`WireSigns`] takes a capture's messages one by one. [`of_trace`] looks at a trace's, [`of_joined`] at both. A cause is
//! told only if nearly all times that it would make are as it would make them: a pause with another cause, or with several,
//! has no name.

mod traced;
mod wire;

pub use traced::{of_joined, of_trace};
pub use wire::WireSigns;

/// How sure a cause is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sure {
    /// Other causes look the same.
    Possible,
    /// Hardly anything else looks so.
    Likely,
    /// The data name it.
    Certain,
}

impl Sure {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Certain => "certain",
        }
    }
}

/// A cause of pauses.
#[derive(Clone, Debug, PartialEq)]
pub struct Meaning {
    /// Its name: `cs-change-delay`.
    pub cause: &'static str,
    /// The device, or the place of the chip select.
    pub of: Of,
    /// What happens, in a sentence.
    pub what: String,
    /// What in the data says so.
    pub evidence: String,
    /// How sure it is.
    pub sure: Sure,
}

/// Whose messages have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    /// A chip select of a capture, by its place; none without.
    Select(Option<usize>),
    /// A device of a trace.
    Device(String),
}

/// `12.3 us`.
fn us(ns: f64) -> String {
    format!("{:.2} us", ns / 1e3)
}
