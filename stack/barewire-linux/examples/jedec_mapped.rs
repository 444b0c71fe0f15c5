//! Reads a flash chip's JEDEC id with the controller's registers mapped into this process.
//!
//! The kernel's driver must be unbound from the controller. `barewire list` shows the buses of a
//! machine, and what to do for each. Then, on an i.MX 8M Plus with its chip select on GPIO5, pin 9:
//!
//! `cargo run -p barewire-linux --example jedec_mapped -- 0x30820000,reference-hz=80M,cs=gpio@0x30240000:9`

use std::error::Error;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::spi::Settings;
use barewire_linux::Root;
use barewire_linux::bus_text::parse_mem;
use barewire_linux::map::Mapped;
use barewire_linux::shared::ProcessShared;

fn main() -> Result<(), Box<dyn Error>> {
    let text = std::env::args().nth(1).ok_or("name a controller: 0xADDRESS,reference-hz=…,cs=…")?;
    let mut mapped = Mapped::open(&Root::system(), &parse_mem(&text)?)?;
    for warning in mapped.warnings() {
        eprintln!("warning: {warning}");
    }
    let bus: Box<Bus<dyn Controller>> = match mapped.take_lock() {
        None => Box::new(Bus::new(mapped.start())),
        Some(lock) => Box::new(Bus::new(ProcessShared::bring_up(lock, || mapped.start())?)),
    };
    let flash = bus.device(&Settings::new(0, 10_000_000))?;

    // Known in advance: validated here once; a run then takes some 130 instructions and the wire's
    // time.
    let mut identify = flash.prepare([0x9f, 0, 0, 0])?;
    let [_, manufacturer, kind, capacity] = *identify.run()?;
    println!("JEDEC id {manufacturer:02x} {kind:02x} {capacity:02x}");
    Ok(())
}
