//! The callback of a queued message, and what it decides.

use crate::spi::{MessageError, Transfer};

#[cfg(doc)]
use super::Device;
#[cfg(doc)]
use crate::spi::Error;

/// The fate of a message after it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Then {
    /// The message is done, and its owner is told.
    Done,
    /// The message is queued again, behind what is queued now. Its owner is not told.
    Again,
}

/// A message that ran, for its callback.
#[derive(Debug)]
pub struct Completed<'c> {
    result: Result<usize, MessageError>,
    message: &'c mut [Transfer<'static>],
}

impl<'c> Completed<'c> {
    pub(super) fn new(
        result: Result<usize, MessageError>,
        message: &'c mut [Transfer<'static>],
    ) -> Self {
        Self { result, message }
    }

    /// The message's length in bytes, or its error.
    ///
    /// # Errors
    /// As [`Device::sync`].
    pub fn result(&self) -> Result<usize, MessageError> {
        self.result
    }

    /// The bytes received in transfer `index`; `None` if it only sends.
    ///
    /// # Panics
    /// If there is no transfer `index`.
    #[must_use]
    pub fn rx(&self, index: usize) -> Option<&[u8]> {
        self.message[index].data().rx()
    }
}

/// Called after a message ran, by the thread that ran it, which holds the bus.
///
/// A callback may submit, cancel and drop other messages. It must not wait for the bus: sync fails with
/// [`Error::WouldDeadlock`], and lock panics. Cancelling or dropping the message that ran ends the program. (On a
/// platform that does not tell contexts apart, all of these wait for ever.) If it panics, the message is done with the result it had. It is not called for a message
/// whose controller panicked.
pub type Callback = &'static (dyn Fn(&mut Completed<'_>) -> Then + Sync);
