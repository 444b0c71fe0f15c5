//! PL022 (PrimeCell SSP) and PL061 on mapped registers.
//!
//! Read first: [`barewire::controller::pl022`].
//!
//! The kernel has both on its AMBA bus, not among the platform devices; see
//! [`bound`](super::bound).
//!
//! # Not supported
//! The pins' functions, which whoever brought the board up has set.

use barewire::controller::gpio::Pl061;
use barewire::controller::pl022::{Pl022, Pl022Config};

use super::MappedInterrupt;
use super::block::{Board, Facts, Parts};
use super::cs::CsGpio;
use crate::sys::MappedRegisters;
use crate::timer::Monotonic;

/// A PL022 on mapped registers.
pub type MappedPl022 =
    Pl022<MappedRegisters, CsGpio<Pl061<MappedRegisters>>, Monotonic, MappedInterrupt>;

pub(super) const FACTS: Facts = Facts {
    name: "pl022",
    // To the identification registers, as every PrimeCell.
    registers_len: 0x1000,
    bank_len: 0x1000,
    native_lines: 1,
    bank_pins: 8,
    written_whole: false,
    native_alone: true,
    always_clocked: false,
    is_compatible: |name| name == "arm,pl022",
};

pub(super) fn start(parts: Parts, board: Board) -> MappedPl022 {
    let Board { reference_hz, chip_selects, poll_limit_ns, .. } = board;
    let chip_selects = parts.selects.table(chip_selects);
    let config = Pl022Config { reference_hz, chip_selects, poll_limit_ns };
    let gpio = parts.selects.start(|bank, _| Pl061::new(bank));
    Pl022::new(parts.registers, gpio, Monotonic::new(), config).with_interrupt(parts.interrupt)
}
