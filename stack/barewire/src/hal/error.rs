//! Our errors as `embedded-hal` sees them.
//!
//! Its kinds are few: what keeps a chip select from doing what was asked is a `ChipSelectFault`,
//! what came from a foreign bus keeps its kind, a lost word is an `Overrun`, and everything else is
//! `Other`. A timeout is no `Overrun`, and a refusal no `FrameFormat`.

use embedded_hal::spi::{self, ErrorKind};

use crate::spi::{Error, MessageError};

impl spi::Error for Error {
    fn kind(&self) -> ErrorKind {
        match *self {
            Error::NoSuchChipSelect { .. }
            | Error::CsPolarity { .. }
            | Error::NoIdleChipSelect
            | Error::CsCanSleep
            | Error::NativeCsWouldPulse { .. }
            | Error::NativeCsDelay { .. }
            | Error::NativeCsSpeed { .. } => ErrorKind::ChipSelectFault,
            Error::Overrun => ErrorKind::Overrun,
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
