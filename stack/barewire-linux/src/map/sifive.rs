//! SiFive SPI and SiFive's GPIO block on mapped registers.
//!
//! Read first: [`barewire::controller::sifive`]; SiFive, *SiFive FU540-C000 Manual*, chapter "Memory
//! Map".
//!
//! On a HiFive Unleashed SPI0 is at 0x1004_0000 and the GPIO bank at 0x1006_0000. `reference_hz` is
//! `tlclk`, half of the clock of its cores. No register gates it.
//!
//! # Not supported
//! The native lines 1 to 3 of the FU540's SPI1: SPI0 and SPI2 have one line, and a block does not
//! report how many it has. Setting the pins' functions.

use barewire::controller::gpio::{Ownership, SiFiveGpio};
use barewire::controller::sifive::{SiFive, SiFiveConfig};
use barewire::reg::MmioBlock;

use super::MappedInterrupt;
use super::cs::CsGpio;
use super::facts::{Board, Facts, LinuxSelects, Parts};
use super::harmless::Harmless;
use crate::sys::MappedRegisters;
use crate::timer::Monotonic;

/// Bytes of its registers: to `ip`.
const REGISTERS_LEN: u32 = 0x78;
/// Bytes of a GPIO bank's registers: to `out_xor`.
const BANK_LEN: u32 = 0x44;

/// A SiFive SPI on mapped registers.
pub type MappedSiFive = SiFive<
    MappedRegisters<MmioBlock<REGISTERS_LEN>>,
    CsGpio<SiFiveGpio<MappedRegisters<MmioBlock<BANK_LEN>>>>,
    Monotonic,
    MappedInterrupt,
>;

pub(super) const FACTS: Facts = Facts {
    name: "sifive",
    machines: "HiFive Unleashed, Unmatched",
    registers_len: REGISTERS_LEN,
    bank_len: BANK_LEN,
    first_read: ("sckdiv", 0x00),
    bank_first_read: ("output_en", 0x08),
    harmless: Harmless::rewriting(("sckdiv", 0x00), ("ie", 0x70)),
    bank_harmless: Harmless::rewriting(("output_en", 0x08), ("pue", 0x10)),
    linux_driver: "sifive_spi",
    linux_selects: LinuxSelects { default: 32, reads_num_cs: false, native: 32 },
    native_lines: 1,
    bank_pins: 16,
    written_whole: true,
    native_exclusive: false,
    always_clocked: true,
    has_pipe: false,
    kernel_clock: None,
    pins_warning: None,
    is_compatible: |name| {
        name == "sifive,spi0" || (name.starts_with("sifive,fu") && name.ends_with("-spi"))
    },
    is_bank: |name| {
        name == "sifive,gpio0" || (name.starts_with("sifive,fu") && name.ends_with("-gpio"))
    },
};

pub(super) fn start(parts: Parts, board: Board) -> MappedSiFive {
    let Board { reference_hz, chip_selects, poll_limit_ns, .. } = board;
    let chip_selects = parts.selects.table(chip_selects);
    let config = SiFiveConfig { reference_hz, chip_selects, poll_limit_ns };
    let gpio = parts.selects.start(|bank, ours| {
        let ownership = if ours { Ownership::Exclusive } else { Ownership::Shared };
        SiFiveGpio::new(bank.known(), ownership)
    });
    SiFive::new(parts.registers.known(), gpio, Monotonic::new(), config)
        .with_interrupt(parts.interrupt)
}
