//! 4 bytes exchanged, then 4 written and 64 read: by `sync`, on a bus with one user and plain messages.
#![no_std]
#![no_main]

use core::hint::black_box;

use barewire::bus::{Bus, Plain};
use barewire::spi::{Settings, Transfer};
use cortex_m_rt::entry;
use panic_halt as _;

#[entry]
fn main() -> ! {
    let bus = Bus::with_uses(firmware_size::plain(), Plain);
    let Ok(device) = bus.device(&Settings::new(0, 10_000_000)) else { loop {} };
    let (mut rx4, mut rx64) = ([0; 4], [0; 64]);
    loop {
        let _ = black_box(device.sync(&mut [Transfer::exchange(&[0x9f, 0, 0, 0], &mut rx4)]));
        let _ = black_box(
            device.sync(&mut [Transfer::write(&[3, 0, 0, 0]), Transfer::read(&mut rx64)]),
        );
    }
}
