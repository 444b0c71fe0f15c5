//! Firmware without an operating system: one controller, two chips, nothing allocated.
//!
//! No chip is needed: the devices ask for loopback. In QEMU: `cargo run`.
#![no_std]
#![no_main]

use panic_semihosting as _;

use barewire::bus::Bus;
use barewire::controller::ALWAYS_POLL;
use barewire::spi::{Error, Mode, Settings, Transfer};
use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};

#[entry]
fn main() -> ! {
    match run() {
        Ok(()) => debug::exit(debug::EXIT_SUCCESS),
        Err(error) => {
            hprintln!("{}", error);
            debug::exit(debug::EXIT_FAILURE);
        }
    }
    loop {}
}

fn run() -> Result<(), Error> {
    // SAFETY: the only call.
    let bus = Bus::new(unsafe { firmware::spi(ALWAYS_POLL) });

    let looped = |chip_select, speed_hz| {
        let settings = Settings::new(chip_select, speed_hz);
        bus.device(&Settings { mode: settings.mode | Mode::LOOP, ..settings })
    };
    let (first, second) = (looped(0, 10_000_000)?, looped(1, 1_000_000)?);

    // Any message: what is sent comes back.
    let tx: [u8; 64] = core::array::from_fn(|at| at as u8);
    let mut rx = [0; 64];
    first.sync(&mut [Transfer::exchange(&tx, &mut rx)])?;
    assert_eq!(rx, tx);

    // A register access, validated once and run as often as needed.
    let mut access = second.prepare([0x9f, 0x5a])?;
    for _ in 0..100 {
        assert_eq!(*access.run()?, [0x9f, 0x5a]);
    }
    hprintln!(
        "66 bytes came back, at {} and {} Hz",
        first.effective().speed_hz,
        second.effective().speed_hz
    );
    Ok(())
}
