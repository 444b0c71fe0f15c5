//! `embedded-can`'s traits.

use embedded_can::{ErrorKind, Id};
use nb::Error::{Other, WouldBlock};

use super::regs::FRAME_BYTES;
use super::{CanError, ErrorState, Found, Frame, Mcp251xfd, Received};
use crate::regmap::Frames;
use crate::time::Timer;

impl embedded_can::Error for CanError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::RxOverflow => ErrorKind::Overrun,
            _ => ErrorKind::Other,
        }
    }
}

/// The trait creates only classic frames; it also represents frames of CAN FD.
impl embedded_can::Frame for Frame {
    fn new(id: impl Into<Id>, data: &[u8]) -> Option<Self> {
        Self::classic(id, data)
    }

    fn new_remote(id: impl Into<Id>, dlc: usize) -> Option<Self> {
        u8::try_from(dlc).ok().and_then(|dlc| Self::remote(id, dlc))
    }

    fn is_extended(&self) -> bool {
        matches!(self.id(), Id::Extended(_))
    }

    fn is_remote_frame(&self) -> bool {
        self.is_remote()
    }

    fn id(&self) -> Id {
        self.id()
    }

    fn dlc(&self) -> usize {
        self.dlc().into()
    }

    fn data(&self) -> &[u8] {
        self.data()
    }
}

/// The error that a trait reports for an event.
fn error_of(found: &Found) -> Option<CanError> {
    match found {
        Found { state: Some(ErrorState::BusOff), .. } => Some(CanError::BusOff),
        Found { overflow: true, .. } => Some(CanError::RxOverflow),
        _ => None,
    }
}

impl<F: Frames<FRAME_BYTES>, T: Timer> embedded_can::nb::Can for Mcp251xfd<F, T> {
    type Frame = Frame;
    type Error = CanError;

    /// Never returns a frame: frames in the chip are not replaced by more urgent ones.
    fn transmit(&mut self, frame: &Frame) -> nb::Result<Option<Frame>, CanError> {
        match Mcp251xfd::transmit(self, frame) {
            Ok(_) => Ok(None),
            Err(CanError::TxFull) => Err(WouldBlock),
            Err(error) => Err(Other(error)),
        }
    }

    fn receive(&mut self) -> nb::Result<Frame, CanError> {
        if let Some(error) = self.deferred.take() {
            return Err(Other(error));
        }
        let mut received = Received::EMPTY;
        let found = self.service(&mut received).map_err(Other)?;
        let error = error_of(&found);
        match (found.frame, error) {
            (true, _) => {
                self.deferred = error;
                Ok(received.frame)
            }
            (false, Some(error)) => Err(Other(error)),
            (false, None) => Err(WouldBlock),
        }
    }
}

impl<F: Frames<FRAME_BYTES>, T: Timer> embedded_can::blocking::Can for Mcp251xfd<F, T> {
    type Frame = Frame;
    type Error = CanError;

    /// Waits for a free place, spinning.
    fn transmit(&mut self, frame: &Frame) -> Result<(), CanError> {
        nb::block!(embedded_can::nb::Can::transmit(self, frame)).map(drop)
    }

    /// Waits for a frame, spinning.
    fn receive(&mut self) -> Result<Frame, CanError> {
        nb::block!(embedded_can::nb::Can::receive(self))
    }
}
