//! 4 bytes exchanged, then 4 written and 64 read: prepared, on a bus that may be used in any way.
#![no_std]
#![no_main]

use core::hint::black_box;

use barewire::bus::Bus;
use barewire::spi::{Settings, Transfer};
use cortex_m_rt::entry;
use panic_halt as _;

#[entry]
fn main() -> ! {
    let bus = Bus::new(firmware_size::interrupted());
    let Ok(device) = bus.device(&Settings::new(0, 10_000_000)) else { loop {} };
    let Ok(mut access) = device.prepare([0x9f, 0, 0, 0]) else { loop {} };
    let mut rx = [0; 64];
    let mut message = [Transfer::write(&[3, 0, 0, 0]), Transfer::read(&mut rx)];
    let Ok(mut read) = device.prepare_message(&mut message) else { loop {} };
    loop {
        let _ = black_box(access.run());
        let _ = black_box(read.run());
    }
}
