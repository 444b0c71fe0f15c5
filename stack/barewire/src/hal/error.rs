//! Errors as `embedded-hal`'s kinds.
//!
//! There are few kinds. An error about the chip select is a `ChipSelectFault`, an error of a
//! foreign bus keeps its kind, a lost word is an `Overrun`, and everything else is `Other`: a
//! timeout is not an `Overrun`, and a refused message not a `FrameFormat`.

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
