//! The interrupt of a mapped controller: a UIO device's, or none.
//!
//! *Read first*: [`Uio`] on what the kernel does at each interrupt; [`Interrupt`] in
//! `barewire::controller` on when its methods are called.

use std::time::Duration;

use barewire::controller::Interrupt;

use super::{MapError, Uio};

/// How long to sleep if waiting for the device fails, before the block is polled.
const BLIND_SLEEP: Duration = Duration::from_micros(50);

/// Sleeps until a mapped controller interrupts.
#[derive(Debug)]
pub struct MappedInterrupt(Option<Uio>);

impl MappedInterrupt {
    /// No interrupt, for a controller that is always polled.
    #[must_use]
    pub fn none() -> Self {
        Self(None)
    }

    /// The interrupt of `uio`, masked until a message needs it.
    ///
    /// # Errors
    /// [`MapError::NoInterrupt`] if the device has none, or none that can be masked;
    /// [`MapError::Os`].
    pub fn of(uio: Uio) -> Result<Self, MapError> {
        // A device without an interrupt refuses this call.
        uio.disable_interrupt()?;
        Ok(Self(Some(uio)))
    }
}

impl Interrupt for MappedInterrupt {
    fn enable(&mut self) {
        // An error here also shows in the wait, which then ends by its timeout.
        let _ = self.0.as_ref().map(Uio::enable_interrupt);
    }

    fn wait(&mut self, timeout_us: u32) -> bool {
        let timeout = Duration::from_micros(timeout_us.into());
        let Some(uio) = &self.0 else { return true };
        match uio.wait_interrupt(timeout) {
            Ok(count) => count.is_some(),
            // The device failed after it was opened: the message ends by polling now and then, or
            // at its own deadline.
            Err(_) => {
                std::thread::sleep(BLIND_SLEEP.min(timeout));
                false
            }
        }
    }
}
