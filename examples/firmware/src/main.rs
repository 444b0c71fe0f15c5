//! Firmware without an operating system: one controller, two chips, nothing allocated.
//!
//! Board: Arm's MPS2 with the AN386 image (Cortex-M4 at 25 MHz, Application Note AN386), whose SPI is a
//! PL022. No chip is needed: the devices ask for loopback. In QEMU: `cargo run`.
#![no_std]
#![no_main]

use panic_semihosting as _;

use barewire::bus::Bus;
use barewire::controller::gpio::GpioBank;
use barewire::controller::pl022::{Pl022, Pl022Config};
use barewire::controller::{ALWAYS_POLL, CsLine};
use barewire::reg::{CycleCounter, MmioBlock, Registers};
use barewire::spi::{Error, Mode, Settings, Transfer};
use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};

const CLOCK_HZ: u32 = 25_000_000;

/// CMSDK's GPIO block: a bank that barewire does not have, so the firmware writes it.
///
/// Cortex-M System Design Kit Technical Reference Manual (Arm DDI 0479), "AHB GPIO".
struct CmsdkGpio<R>(R);

impl<R: Registers> CmsdkGpio<R> {
    const DATAOUT: u32 = 0x04;
    const OUTENSET: u32 = 0x10;
}

impl<R: Registers> GpioBank for CmsdkGpio<R> {
    fn drive(&mut self, mask: u32, high: bool) {
        self.0.barrier();
        let pins = self.0.read(Self::DATAOUT);
        self.0.write(Self::DATAOUT, if high { pins | mask } else { pins & !mask });
        self.0.barrier();
    }

    fn output(&mut self, mask: u32, high: bool) {
        self.drive(mask, high);
        self.0.write(Self::OUTENSET, mask);
    }
}

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
    // SAFETY: the addresses of AN386's memory map; nothing else in this program uses these blocks.
    let (spi, gpio, systick) = unsafe {
        (
            MmioBlock::<0x1000>::new(0x4002_0000 as *mut u32),
            MmioBlock::<0x1000>::new(0x4001_0000 as *mut u32),
            MmioBlock::<0x10>::new(0xe000_e010 as *mut u32),
        )
    };
    let config = Pl022Config {
        reference_hz: CLOCK_HZ,
        chip_selects: [
            CsLine::Gpio { bit: 0, active_high: false },
            CsLine::Gpio { bit: 1, active_high: false },
            CsLine::Absent,
            CsLine::Absent,
        ],
        poll_limit_ns: ALWAYS_POLL,
    };
    let timer = CycleCounter::systick(systick, CLOCK_HZ);
    let bus = Bus::new(Pl022::new(spi, CmsdkGpio(gpio), timer, config));

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
