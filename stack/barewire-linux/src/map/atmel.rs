//! Atmel's SPI (SAMA5D3, and the AT91 and SAM9 before it) and PIO on mapped registers.
//!
//! Read first: [`barewire::controller::atmel`], on how many words are in flight.
//!
//! MR selects the line ([`PeripheralSelect::Fixed`]): a change of device costs a write.
//!
//! # Not supported
//! [`PeripheralSelect::Variable`]; the PIO of SAMA5D2 and later (PIO4); the pins' functions, except
//! that a GPIO chip select is taken from the peripheral that had it.

use barewire::controller::atmel::{Atmel, AtmelConfig, PeripheralSelect};
use barewire::controller::gpio::AtmelPio;
use barewire::reg::MmioBlock;

use super::MappedInterrupt;
use super::cs::CsGpio;
use super::facts::{Board, Facts, LinuxSelects, Parts};
use super::harmless::Harmless;
use crate::sys::MappedRegisters;
use crate::timer::Monotonic;

/// Bytes of its registers: to the version register.
const REGISTERS_LEN: u32 = 0x100;
/// Bytes of a GPIO bank's registers.
const BANK_LEN: u32 = 0x100;

/// Atmel's SPI on mapped registers.
pub type MappedAtmel = Atmel<
    MappedRegisters<MmioBlock<REGISTERS_LEN>>,
    CsGpio<AtmelPio<MappedRegisters<MmioBlock<BANK_LEN>>>>,
    Monotonic,
    MappedInterrupt,
>;

pub(super) const FACTS: Facts = Facts {
    name: "atmel",
    machines: "SAMA5D3, SAM9, AT91",
    registers_len: REGISTERS_LEN,
    // A bank's length in device trees; PIOA of SAMA5D3 begins 0x200 into its page.
    bank_len: BANK_LEN,
    first_read: ("SPI_MR", 0x04),
    bank_first_read: ("PIO_OSR", 0x18),
    harmless: Harmless::new(("SPI_MR", 0x04), ("SPI_IDR", 0x18), 0),
    bank_harmless: Harmless::new(("PIO_OSR", 0x18), ("PIO_SODR", 0x30), 0),
    linux_driver: "atmel_spi",
    linux_selects: LinuxSelects { default: 4, reads_num_cs: false, native: 4 },
    native_lines: 4,
    bank_pins: 32,
    written_whole: false,
    native_exclusive: false,
    always_clocked: false,
    has_pipe: true,
    kernel_clock: None,
    pins_warning: None,
    is_compatible: |name| matches!(name, "atmel,at91rm9200-spi" | "microchip,sam9x60-spi"),
    is_bank: |name| matches!(name, "atmel,at91rm9200-gpio" | "atmel,at91sam9x5-gpio"),
};

pub(super) fn start(parts: Parts, board: Board) -> MappedAtmel {
    let Board { reference_hz, chip_selects, poll_limit_ns, pipe, .. } = board;
    let chip_selects = parts.selects.table(chip_selects);
    let peripheral_select = PeripheralSelect::Fixed;
    let config = AtmelConfig { reference_hz, chip_selects, pipe, peripheral_select, poll_limit_ns };
    let gpio = parts.selects.start(|bank, _| AtmelPio::new(bank.known()));
    Atmel::new(parts.registers.known(), gpio, Monotonic::new(), config)
        .with_interrupt(parts.interrupt)
}
