//! The board of the examples: Arm's MPS2 with the AN386 image (Cortex-M4 at 25 MHz, Application Note AN386), whose SPI is a
//! PL022.
#![no_std]

use barewire::bus::platform::{AtomicU32, WaitWord};
use barewire::bus::{Bus, Platform, Uses};
use barewire::controller::CsLine;
use barewire::controller::gpio::GpioBank;
use barewire::controller::pl022::{Pl022, Pl022Config};
use barewire::reg::{CycleCounter, MmioBlock, Registers};
use cortex_m::interrupt::InterruptNumber;

pub const CLOCK_HZ: u32 = 25_000_000;

/// CMSDK's GPIO block: a bank that barewire does not have, so the firmware writes it.
///
/// Cortex-M System Design Kit Technical Reference Manual (Arm DDI 0479), "AHB GPIO".
pub struct CmsdkGpio<R>(R);

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

/// The board's SPI, with two chip selects.
pub type Spi =
    Pl022<MmioBlock<0x1000>, CmsdkGpio<MmioBlock<0x1000>>, CycleCounter<MmioBlock<0x10>>>;

/// Takes the SPI. Transfers above `poll_limit_ns` wait by interrupt, if its bus has a handler.
///
/// # Safety
/// Called once; nothing else in the program uses the SPI, the GPIO bank or SysTick.
pub unsafe fn spi(poll_limit_ns: u32) -> Spi {
    // SAFETY: the addresses of AN386's memory map; the caller's promise.
    let (spi, gpio, systick) = unsafe {
        (
            MmioBlock::new(0x4002_0000 as *mut u32),
            MmioBlock::new(0x4001_0000 as *mut u32),
            MmioBlock::new(0xe000_e010 as *mut u32),
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
        poll_limit_ns,
    };
    let timer = CycleCounter::systick(systick, CLOCK_HZ);
    Pl022::new(spi, CmsdkGpio(gpio), timer, config)
}

/// One processor: the controller's interrupt is kept away by masking all. Inlined into the programs, which are built without
/// link-time optimisation: else each poll of a message in flight takes one more call for each function.
pub struct OneCore;

impl Platform for OneCore {
    #[inline]
    fn wait(&self, _: WaitWord<'_>, _: u32) {
        self.relax();
    }

    #[inline]
    fn wake(&self, _: *const AtomicU32) {}

    #[inline]
    fn masked(&self, f: &mut dyn FnMut()) {
        cortex_m::interrupt::free(|_| f());
    }
}

impl Uses for OneCore {
    type Platform = Self;

    #[inline]
    fn platform(&self) -> &Self {
        self
    }
}

/// The board's bus, with queue, futures and the interrupt's handler.
pub type SpiBus = Bus<Spi, OneCore>;

/// Interrupts of AN386.
#[derive(Clone, Copy)]
#[repr(u16)]
pub enum Irq {
    Timer0 = 8,
    Spi0 = 11,
}

// SAFETY: the numbers of AN386, table "Interrupt assignments".
unsafe impl InterruptNumber for Irq {
    fn number(self) -> u16 {
        self as u16
    }
}
