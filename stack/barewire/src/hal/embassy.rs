//! `SetConfig` of [embassy-embedded-hal]: a device takes other settings between two messages.
//!
//! [embassy-embedded-hal]: https://docs.rs/embassy-embedded-hal

use embassy_embedded_hal::SetConfig;

use super::HalDevice;
use crate::bus::Uses;
use crate::controller::Controller;
use crate::spi::{Error, Settings};

/// New settings apply from the next message on. They also reset [`HalDevice::with_delay_max_ns`] to the
/// controller's longest delay. Needs the feature `embassy`.
///
/// ```
/// use barewire::bus::Bus;
/// use barewire::controller::null::Null;
/// use barewire::hal::HalDevice;
/// use barewire::spi::Settings;
/// use embassy_embedded_hal::SetConfig;
///
/// let bus = Bus::new(Null::new());
/// // An SD card is identified at 400 kHz, and used at 25 MHz.
/// let mut card = HalDevice::new(bus.device(&Settings::new(0, 400_000))?);
/// card.set_config(&Settings::new(0, 25_000_000))?;
/// assert_eq!(card.device().settings().speed_hz, 25_000_000);
/// # Ok::<(), barewire::spi::Error>(())
/// ```
impl<C: Controller + ?Sized, U: Uses, const TRANSFERS: usize> SetConfig
    for HalDevice<'_, C, TRANSFERS, U>
{
    type Config = Settings;
    type ConfigError = Error;

    /// # Errors
    /// As [`Bus::device`](crate::bus::Bus::device); the device keeps the settings it had.
    fn set_config(&mut self, config: &Settings) -> Result<(), Error> {
        let before = self.device();
        let (bus, priority) = (before.bus(), before.priority());
        let device = bus.device(config)?.with_priority(priority);
        *self = HalDevice::new(device).with_room();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::Bus;
    use crate::controller::null::Null;

    #[test]
    fn refused_settings_leave_the_device_as_it_was() {
        let bus = Bus::new(Null::new());
        let device = bus.device(&Settings::new(0, 400_000)).expect("it has that");
        let mut device = HalDevice::new(device.with_priority(3));
        assert_eq!(device.set_config(&Settings::new(0, 0)), Err(Error::SpeedZero));
        assert_eq!(device.device().settings().speed_hz, 400_000);
        assert_eq!(device.set_config(&Settings::new(0, 800_000)), Ok(()));
        assert_eq!(device.device().settings().speed_hz, 800_000);
        assert_eq!(device.device().priority(), 3, "the priority is no setting");
    }
}
