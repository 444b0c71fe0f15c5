//! A device that owns a pointer to its bus: a function can return it, a struct can store it.

use core::fmt;
use core::ops::Deref;

use super::uses::Uses;
use super::{Bus, Device};
use crate::controller::{Controller, Limits, Preset};
use crate::spi::{Effective, Error, Settings};

/// A [`Device`] with the pointer to its bus: an `Arc`, an `Rc`, a `&'static`, or any other.
///
/// A `Device` borrows the bus, so a function that makes the bus cannot return the device. An
/// `OwnedDevice` may be returned, stored, and sent to other threads if its pointer may.
/// [`OwnedDevice::device`] lends the `Device` to call; it copies about 150 bytes and recomputes
/// nothing. Drivers for `embedded-hal` take an `OwnedDevice` as it is.
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
    preset: Preset,
    effective: Effective,
    limits: Limits,
    priority: u8,
}

impl<B, C, U> OwnedDevice<B>
where
    B: Deref<Target = Bus<C, U>>,
    C: Controller + ?Sized,
    U: Uses,
{
    /// Opens a device with `settings` and keeps `bus`. The pointer must dereference to the same bus
    /// for as long as the device lives, as the standard library's pointers do: what the settings
    /// imply is computed here, once.
    ///
    /// # Errors
    /// As [`Bus::device`].
    pub fn new(bus: B, settings: &Settings) -> Result<Self, Error> {
        let device = bus.device(settings)?;
        let (settings, preset) = (*device.settings(), *device.preset());
        let (effective, limits, priority) =
            (*device.effective(), *device.limits(), device.priority());
        Ok(Self { bus, settings, preset, effective, limits, priority })
    }

    /// Sets the priority, as [`Device::with_priority`] does.
    #[must_use]
    pub fn with_priority(self, priority: u8) -> Self {
        Self { priority, ..self }
    }

    /// Borrows the device.
    #[must_use]
    pub fn device(&self) -> Device<'_, C, U> {
        let device =
            Device::new(&self.bus, self.settings, self.preset, self.effective, self.limits);
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
