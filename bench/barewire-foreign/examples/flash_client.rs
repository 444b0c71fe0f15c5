//! The crates `w25q32jv`, `embedded-hal-bus`, `linux-embedded-hal` and `gpio-cdev` on a W25Q32JV behind
//! `/dev/spidev0.0`, which the program selects by line 25 of `/dev/gpiochip0`: a client of `barewire run`, which knows
//! nothing of barewire. Its argument is the file that gets what it has read.

use embedded_hal::digital::{ErrorType, OutputPin};
use embedded_hal_bus::spi::ExclusiveDevice;
use embedded_storage::nor_flash::{NorFlash, ReadNorFlash};
use linux_embedded_hal::gpio_cdev::{Chip, LineRequestFlags};
use linux_embedded_hal::spidev::{SpiModeFlags, SpidevOptions};
use linux_embedded_hal::{CdevPin, Delay, SpidevBus};
use w25q32jv::W25q32jv;

/// HOLD and WP are wired to the supply.
struct Wired;

impl ErrorType for Wired {
    type Error = std::convert::Infallible;
}

impl OutputPin for Wired {
    fn set_low(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

fn main() {
    let mut chip = Chip::new("/dev/gpiochip0").expect("opens");
    let line = chip.get_line(25).expect("there is one");
    let handle = line.request(LineRequestFlags::OUTPUT, 1, "flash_client").expect("free");
    let select = CdevPin::new(handle).expect("an output");

    let mut bus = SpidevBus::open("/dev/spidev0.0").expect("opens");
    let options = SpidevOptions::new()
        .bits_per_word(8)
        .max_speed_hz(8_000_000)
        .mode(SpiModeFlags::SPI_MODE_0 | SpiModeFlags::SPI_NO_CS)
        .build();
    bus.0.configure(&options).expect("configures");

    let device = ExclusiveDevice::new(bus, select, Delay).expect("not selected");
    let mut flash = W25q32jv::new(device, Wired, Wired).expect("pins");
    let data: Vec<u8> = (0..600_u32).map(|index| (index * 7 + 1) as u8).collect();
    // It begins in the middle of a page. The driver verifies itself.
    NorFlash::erase(&mut flash, 0x1_2000, 0x1_3000).expect("erases");
    NorFlash::write(&mut flash, 0x1_20c8, &data).expect("writes");
    let mut back = vec![0; 0x1000];
    ReadNorFlash::read(&mut flash, 0x1_2000, &mut back).expect("reads");
    let path = std::env::args().nth(1).expect("a file's name");
    std::fs::write(path, back).expect("written");
    println!("written and read by a select of its own");
}
