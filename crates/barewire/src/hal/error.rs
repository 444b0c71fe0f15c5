//! Our errors as `embedded-hal` sees them.
//!
//! Its kinds are few: what keeps a chip select from doing what was asked is a `ChipSelectFault`,
//! what came from a foreign bus keeps its kind, and everything else is `Other`. A timeout is no
//! `Overrun`, and a refusal no `FrameFormat`.

use embedded_hal::spi::{self, ErrorKind};

use crate::spi::{Error, MessageError};

impl spi::Error for Error {
    fn kind(&self) -> ErrorKind {
        match *self {
            Error::NoSuchChipSelect { .. }
            | Error::CsPolarity { .. }
            | Error::NoCs
            | Error::CsCanSleep
            | Error::NativeCsWouldPulse { .. }
            | Error::NativeCsDelay { .. } => ErrorKind::ChipSelectFault,
            Error::Foreign { kind } => kind,
            _ => ErrorKind::Other,
        }
    }
}

impl spi::Error for MessageError {
    fn kind(&self) -> ErrorKind {
        self.error.kind()
    }
}
