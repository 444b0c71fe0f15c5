//! TI's McSPI (AM335x, AM437x) and the GPIO block of OMAP4 on mapped registers.
//!
//! Read first: [`barewire::controller::mcspi`]; TI, *AM335x and AMIC110 Sitara Processors Technical Reference
//! Manual* (SPRUH73), chapter 2, "Memory Map".
//!
//! On a BeagleBone SPI0 is at 0x4803_0000, SPI1 at 0x481a_0000, and GPIO1 at 0x4804_c000. `reference_hz` is the
//! functional clock, 48 MHz. MOSI is on SPIDAT\[1\] and MISO on SPIDAT\[0\], as trees without
//! `ti,pindir-d0-out-d1-in` have it.
//!
//! # Not supported
//! `ti,omap2-mcspi`, whose registers begin elsewhere; pins the other way round; the GPIO of AM62x and AM64x. Setting
//! the pins' functions.

use barewire::controller::gpio::OmapGpio;
use barewire::controller::mcspi::{Mcspi, McspiConfig};
use barewire::reg::MmioBlock;

use super::MappedInterrupt;
use super::cs::CsGpio;
use super::facts::{Board, Facts, LinuxSelects, Parts};
use super::harmless::Harmless;
use crate::sys::MappedRegisters;
use crate::timer::Monotonic;

/// Bytes of its registers: to MCSPI_XFERLEVEL and the two for DMA behind it.
const REGISTERS_LEN: u32 = 0x1a4;
/// Bytes of a GPIO bank's registers: to GPIO_SETDATAOUT.
const BANK_LEN: u32 = 0x198;

/// McSPI on mapped registers.
pub type MappedMcspi = Mcspi<
    MappedRegisters<MmioBlock<REGISTERS_LEN>>,
    CsGpio<OmapGpio<MappedRegisters<MmioBlock<BANK_LEN>>>>,
    Monotonic,
    MappedInterrupt,
>;

pub(super) const FACTS: Facts = Facts {
    name: "mcspi",
    machines: "BeagleBone (AM335x), AM437x, AM62x, AM64x",
    registers_len: REGISTERS_LEN,
    bank_len: BANK_LEN,
    first_read: ("MCSPI_MODULCTRL", 0x128),
    bank_first_read: ("GPIO_OE", 0x134),
    harmless: Harmless::new(("MCSPI_MODULCTRL", 0x128), ("MCSPI_IRQSTATUS", 0x118), 0),
    bank_harmless: Harmless::new(("GPIO_OE", 0x134), ("GPIO_SETDATAOUT", 0x194), 0),
    linux_driver: "omap2_mcspi",
    // It reads `ti,spi-num-cs`.
    linux_selects: LinuxSelects { default: 4, reads_num_cs: false, native: 4 },
    native_lines: 4,
    bank_pins: 32,
    written_whole: false,
    native_exclusive: false,
    always_clocked: false,
    has_pipe: false,
    kernel_clock: None,
    pins_warning: None,
    is_compatible: |name| matches!(name, "ti,omap4-mcspi" | "ti,am654-mcspi"),
    is_bank: |name| name == "ti,omap4-gpio",
};

pub(super) fn start(parts: Parts, board: Board) -> MappedMcspi {
    let Board { reference_hz, chip_selects, poll_limit_ns, d0_sends, .. } = board;
    let chip_selects = parts.selects.table(chip_selects);
    let config = McspiConfig { reference_hz, chip_selects, d0_sends, poll_limit_ns };
    let gpio = parts.selects.start(|bank, _| OmapGpio::new(bank.known()));
    Mcspi::new(parts.registers.known(), gpio, Monotonic::new(), config)
        .with_interrupt(parts.interrupt)
}
