//! A device that keeps its bus, for functions that return one and structs that hold one.

use core::fmt;
use core::ops::Deref;

use super::{Bus, Device};
use crate::controller::{Controller, Limits, Program};
use crate::spi::{Effective, Error, Settings};

/// A [`Device`] with the pointer to its bus: an `Arc`, an `Rc`, a `&'static`, or any other.
///
/// A `Device` borrows the bus, so a function that makes the bus cannot return the device. This one
/// may be returned, stored and sent to other threads as its pointer may. [`OwnedDevice::device`]
/// lends the `Device` for its calls; that copies some 150 bytes and looks nothing up. Drivers for
/// `embedded-hal` take an `OwnedDevice` as it is.
///
/// ```
/// use std::sync::Arc;
///
/// use barewire::bus::{Bus, OwnedDevice};
/// use barewire::controller::null::Null;
/// use barewire::spi::{Error, Settings, Transfer};
///
/// fn flash_and_adc() -> Result<[OwnedDevice<Arc<Bus<Null>>>; 2], Error> {
///     let bus = Arc::new(Bus::new(Null::new()));
///     let flash = OwnedDevice::new(Arc::clone(&bus), &Settings::new(0, 20_000_000))?;
///     let adc = OwnedDevice::new(bus, &Settings::new(1, 1_000_000))?;
///     Ok([flash, adc])
/// }
///
/// let [flash, _adc] = flash_and_adc()?;
/// flash.device().sync(&mut [Transfer::write(&[0x06])])?;
/// # Ok::<(), Error>(())
/// ```
pub struct OwnedDevice<B> {
    bus: B,
    settings: Settings,
    program: Program,
    effective: Effective,
    limits: Limits,
    priority: u8,
}

impl<B, C> OwnedDevice<B>
where
    B: Deref<Target = Bus<C>>,
    C: Controller + ?Sized,
{
    /// Opens a device of `settings`, which keeps `bus`. The pointer must lead to the same bus for as
    /// long as the device lives, as those of the standard library do: what the settings imply is
    /// computed here, once.
    ///
    /// # Errors
    /// As [`Bus::device`].
    pub fn new(bus: B, settings: &Settings) -> Result<Self, Error> {
        let device = bus.device(settings)?;
        let (settings, program) = (*device.settings(), *device.program());
        let (effective, limits, priority) =
            (*device.effective(), *device.limits(), device.priority());
        Ok(Self { bus, settings, program, effective, limits, priority })
    }

    /// The same device with another priority: [`Device::with_priority`].
    #[must_use]
    pub fn with_priority(self, priority: u8) -> Self {
        Self { priority, ..self }
    }

    /// The device, on loan.
    #[must_use]
    pub fn device(&self) -> Device<'_, C> {
        let device =
            Device::new(&self.bus, self.settings, self.program, self.effective, self.limits);
        device.with_priority(self.priority)
    }
}

impl<B> fmt::Debug for OwnedDevice<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedDevice")
            .field("settings", &self.settings)
            .field("effective", &self.effective)
            .finish_non_exhaustive()
    }
}
