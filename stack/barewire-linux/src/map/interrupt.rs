//! The interrupt of a mapped controller: a UIO device's, or none.
//!
//! *Read first*: [`Uio`] on what the kernel does at each interrupt; `barewire::controller`,
//! [`Interrupt`] on who calls what when.

use std::time::Duration;

use barewire::controller::Interrupt;

use super::{MapError, Uio};

/// How long is slept where the device cannot be waited for, before the block is looked at.
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
        // A device without one refuses to be told.
        uio.disable_interrupt()?;
        Ok(Self(Some(uio)))
    }
}

impl Interrupt for MappedInterrupt {
    fn enable(&mut self) {
        // What goes wrong here shows in the wait, which then ends by its time.
        let _ = self.0.as_ref().map(Uio::enable_interrupt);
    }

    fn wait(&mut self, timeout_us: u32) -> bool {
        let timeout = Duration::from_micros(timeout_us.into());
        let Some(uio) = &self.0 else { return true };
        match uio.wait_interrupt(timeout) {
            Ok(count) => count.is_some(),
            // A device that went wrong since it was opened: the message is finished by looking now
            // and then, or given up by its own deadline.
            Err(_) => {
                std::thread::sleep(BLIND_SLEEP.min(timeout));
                false
            }
        }
    }
}
