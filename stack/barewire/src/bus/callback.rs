//! What is called when a queued message has run, and what it says is to come then.

use crate::spi::{MessageError, Transfer};

#[cfg(doc)]
use super::Device;
#[cfg(doc)]
use crate::spi::Error;

/// What is to become of a message that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Then {
    /// It is done: its owner is told.
    Done,
    /// It runs again, after what is queued now; its owner is not told.
    Again,
}

/// A message that ran, as its callback sees it.
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

    /// Its length in bytes, or what went wrong.
    ///
    /// # Errors
    /// As [`Device::sync`].
    pub fn result(&self) -> Result<usize, MessageError> {
        self.result
    }

    /// What came in for transfer `index`; `None` if it only sends.
    ///
    /// # Panics
    /// If there is no transfer `index`.
    #[must_use]
    pub fn rx(&self, index: usize) -> Option<&[u8]> {
        self.message[index].data().rx()
    }
}

/// What to do when a message ran: called by whoever ran it, who holds the bus.
///
/// It must not wait for the bus, which is held: sync fails with [`Error::WouldDeadlock`], lock
/// panics, and cancelling or dropping a queued message waits for ever. Submitting others is what it
/// is for. If it panics the message is done, with the result it had; it is not called for a message
/// whose controller panicked.
pub type Callback = &'static (dyn Fn(&mut Completed<'_>) -> Then + Sync);
