//! Exchanges 4 bytes, then writes 4 and reads 64: by `embedded-hal`, on a bus that allows every use.
#![no_std]
#![no_main]

use core::hint::black_box;

use barewire::bus::Bus;
use barewire::hal::HalDevice;
use barewire::spi::Settings;
use cortex_m_rt::entry;
use embedded_hal::spi::{Operation, SpiDevice};
use panic_halt as _;

#[entry]
fn main() -> ! {
    let bus = Bus::new(firmware_size::interrupted());
    let Ok(device) = bus.device(&Settings::new(0, 10_000_000)) else { loop {} };
    let mut device = HalDevice::new(device);
    let (mut rx4, mut rx64) = ([0; 4], [0; 64]);
    loop {
        let _ = black_box(device.transfer(&mut rx4, &[0x9f, 0, 0, 0]));
        let _ = black_box(
            device.transaction(&mut [Operation::Write(&[3, 0, 0, 0]), Operation::Read(&mut rx64)]),
        );
    }
}
