//! What the programs share: a controller, by the feature that is on, and a bank of GPIO lines.
//!
//! The programs never run: their addresses are invented. Their sizes are counted.
#![no_std]

use barewire::controller::gpio::GpioBank;
use barewire::controller::{ALWAYS_POLL, CsLine, NoInterrupt, PollOnly};
use barewire::reg::{CycleCounter, MmioBlock, Registers};
use barewire::time::NoDelays;

const CLOCK_HZ: u32 = 125_000_000;

type Regs = MmioBlock<0x1000>;
type Ticks = CycleCounter<MmioBlock<0x10>>;

/// A bank with registers that set and clear.
pub struct Pins(MmioBlock<0x100>);

impl GpioBank for Pins {
    fn drive(&mut self, mask: u32, high: bool) {
        self.0.write(if high { 0x14 } else { 0x18 }, mask);
    }

    fn output(&mut self, mask: u32, high: bool) {
        self.drive(mask, high);
        self.0.write(0x24, mask);
    }
}

#[cfg(feature = "atmel")]
mod block {
    pub use barewire::controller::atmel::Atmel as Block;
    use barewire::controller::atmel::{AtmelConfig, PeripheralSelect, Pipe};

    pub fn config(poll_limit_ns: u32) -> AtmelConfig {
        AtmelConfig {
            reference_hz: super::CLOCK_HZ,
            chip_selects: super::LINES,
            pipe: Pipe::OneWord,
            peripheral_select: PeripheralSelect::Fixed,
            poll_limit_ns,
        }
    }
}

#[cfg(feature = "bcm2835")]
mod block {
    pub use barewire::controller::bcm2835::Bcm2835 as Block;
    use barewire::controller::bcm2835::Bcm2835Config;

    pub fn config(poll_limit_ns: u32) -> Bcm2835Config {
        Bcm2835Config { core_hz: super::CLOCK_HZ, chip_selects: super::LINES, poll_limit_ns }
    }
}

#[cfg(feature = "dw_ssi")]
mod block {
    pub use barewire::controller::dw_ssi::DwSsi as Block;
    use barewire::controller::dw_ssi::DwSsiConfig;

    pub fn config(poll_limit_ns: u32) -> DwSsiConfig {
        DwSsiConfig {
            reference_hz: super::CLOCK_HZ,
            chip_selects: super::LINES,
            native_lines: 1,
            poll_limit_ns,
        }
    }
}

#[cfg(feature = "mcspi")]
mod block {
    pub use barewire::controller::mcspi::Mcspi as Block;
    use barewire::controller::mcspi::McspiConfig;

    pub fn config(poll_limit_ns: u32) -> McspiConfig {
        McspiConfig {
            reference_hz: super::CLOCK_HZ,
            chip_selects: super::LINES,
            d0_sends: true,
            poll_limit_ns,
        }
    }
}

macro_rules! plain_block {
    ($feature:literal, $block:ident :: $Block:ident, $Config:ident) => {
        #[cfg(feature = $feature)]
        mod block {
            pub use barewire::controller::$block::$Block as Block;
            use barewire::controller::$block::$Config;

            pub fn config(poll_limit_ns: u32) -> $Config {
                $Config { reference_hz: super::CLOCK_HZ, chip_selects: super::LINES, poll_limit_ns }
            }
        }
    };
}

plain_block!("cadence", cadence::Cadence, CadenceConfig);
plain_block!("ecspi", ecspi::Ecspi, EcspiConfig);
plain_block!("pl022", pl022::Pl022, Pl022Config);
plain_block!("sifive", sifive::SiFive, SiFiveConfig);

const LINES: [CsLine; 4] =
    [CsLine::Gpio { bit: 17, active_high: false }, CsLine::Absent, CsLine::Absent, CsLine::Absent];

/// The smallest controller: everything is polled, and nothing delayed.
pub type Plain = block::Block<Regs, Pins, NoDelays<Ticks>, PollOnly>;
/// Everything is polled.
pub type Polled = block::Block<Regs, Pins, Ticks, PollOnly>;
/// Long transfers wait by interrupt.
pub type Interrupted = block::Block<Regs, Pins, Ticks, NoInterrupt>;

fn parts() -> (Regs, Pins, Ticks) {
    // SAFETY: the programs never run.
    unsafe {
        (
            MmioBlock::new(0x4003_c000 as *mut u32),
            Pins(MmioBlock::new(0xd000_0000 as *mut u32)),
            CycleCounter::systick(MmioBlock::new(0xe000_e010 as *mut u32), CLOCK_HZ),
        )
    }
}

/// A [`Plain`] controller.
pub fn plain() -> Plain {
    let (regs, pins, ticks) = parts();
    Plain::polled(regs, pins, NoDelays(ticks), block::config(ALWAYS_POLL))
}

/// A [`Polled`] controller.
pub fn polled() -> Polled {
    let (regs, pins, ticks) = parts();
    Polled::polled(regs, pins, ticks, block::config(ALWAYS_POLL))
}

/// An [`Interrupted`] controller.
pub fn interrupted() -> Interrupted {
    let (regs, pins, ticks) = parts();
    Interrupted::new(regs, pins, ticks, block::config(20_000))
}
