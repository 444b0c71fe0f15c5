//! Reads a flash chip's JEDEC id through the kernel's driver.
//!
//! `cargo run -p barewire-linux --example jedec_spidev -- /dev/spidev0.0`

use std::error::Error;

use barewire::bus::Bus;
use barewire::spi::{Settings, Transfer};
use barewire_linux::spidev::Spidev;

fn main() -> Result<(), Box<dyn Error>> {
    let node = std::env::args().nth(1).ok_or("name a node: /dev/spidev0.0")?;
    let spidev = Spidev::open(node)?;
    let last_error = spidev.last_error();
    let bus = Bus::new(spidev);
    let flash = bus.device(&Settings::new(0, 10_000_000))?;

    let mut id = [0; 3];
    let ran = flash.sync(&mut [Transfer::write(&[0x9f]), Transfer::read(&mut id)]);
    if let Err(error) = ran {
        // spidev's error has the remedy, the bus's error only the place.
        return Err(last_error.take().map_or_else(|| error.into(), Into::into));
    }
    println!("JEDEC id {:02x} {:02x} {:02x}", id[0], id[1], id[2]);
    Ok(())
}
