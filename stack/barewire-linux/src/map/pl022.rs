//! PL022 (PrimeCell SSP) and PL061 on mapped registers.
//!
//! Read first: [`barewire::controller::pl022`].
//!
//! The kernel has both on its AMBA bus, not among the platform devices; see
//! [`bound`](super::bound).
//!
//! # Not supported
//! The pins' functions: the board's bring-up must have set them.

use barewire::controller::gpio::Pl061;
use barewire::controller::pl022::{Pl022, Pl022Config};
use barewire::reg::MmioBlock;

use super::MappedInterrupt;
use super::cs::CsGpio;
use super::facts::{Board, Facts, LinuxSelects, Parts};
use super::harmless::Harmless;
use crate::sys::MappedRegisters;
use crate::timer::Monotonic;

/// Bytes of its registers: to the identification registers, as in every PrimeCell.
const REGISTERS_LEN: u32 = 0x1000;
/// Bytes of a GPIO bank's registers.
const BANK_LEN: u32 = 0x1000;

/// A PL022 on mapped registers.
pub type MappedPl022 = Pl022<
    MappedRegisters<MmioBlock<REGISTERS_LEN>>,
    CsGpio<Pl061<MappedRegisters<MmioBlock<BANK_LEN>>>>,
    Monotonic,
    MappedInterrupt,
>;

pub(super) const FACTS: Facts = Facts {
    name: "pl022",
    machines: "PrimeCell SSP",
    registers_len: REGISTERS_LEN,
    bank_len: BANK_LEN,
    first_read: ("SSPSR", 0x0c),
    bank_first_read: ("GPIODIR", 0x400),
    harmless: Harmless::new(("SSPSR", 0x0c), ("SSPICR", 0x20), 0),
    bank_harmless: Harmless::new(("GPIODIR", 0x400), ("GPIODATA of no pin", 0x000), 0),
    linux_driver: "ssp-pl022",
    linux_selects: LinuxSelects { default: 1, reads_num_cs: true, native: 1 },
    native_lines: 1,
    bank_pins: 8,
    written_whole: false,
    native_exclusive: true,
    always_clocked: false,
    has_pipe: false,
    kernel_clock: None,
    pins_warning: None,
    is_compatible: |name| name == "arm,pl022",
    is_bank: |name| name == "arm,pl061",
};

pub(super) fn start(parts: Parts, board: Board) -> MappedPl022 {
    let Board { reference_hz, chip_selects, poll_limit_ns, .. } = board;
    let chip_selects = parts.selects.table(chip_selects);
    let config = Pl022Config { reference_hz, chip_selects, poll_limit_ns };
    let gpio = parts.selects.start(|bank, _| Pl061::new(bank.known()));
    Pl022::new(parts.registers.known(), gpio, Monotonic::new(), config)
        .with_interrupt(parts.interrupt)
}
