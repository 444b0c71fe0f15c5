//! ECSPI (i.MX 6, 7, 8M) and the i.MX GPIO block on mapped registers.
//!
//! Read first: [`barewire::controller::ecspi`].
//!
//! Its clock gate can be looked at: see [`clock`](super::clock).
//!
//! # Not supported
//! The pins' functions (IOMUXC), which the boot loader or the kernel has set.

use barewire::controller::ecspi::{Ecspi, EcspiConfig};
use barewire::controller::gpio::{ImxGpio, Ownership};

use super::MappedInterrupt;
use super::block::{Board, Facts, Parts};
use super::cs::CsGpio;
use crate::sys::MappedRegisters;
use crate::timer::Monotonic;

/// An ECSPI on mapped registers.
pub type MappedEcspi =
    Ecspi<MappedRegisters, CsGpio<ImxGpio<MappedRegisters>>, Monotonic, MappedInterrupt>;

pub(super) const FACTS: Facts = Facts {
    name: "ecspi",
    registers_len: 0x40,
    // To EDGE_SEL.
    bank_len: 0x20,
    native_lines: 4,
    bank_pins: 32,
    written_whole: true,
    native_alone: false,
    always_clocked: false,
    is_compatible: |name| name.starts_with("fsl,") && name.ends_with("-ecspi"),
};

pub(super) fn start(parts: Parts, board: Board) -> MappedEcspi {
    let Board { reference_hz, chip_selects, poll_limit_ns, .. } = board;
    let chip_selects = parts.selects.table(chip_selects);
    let config = EcspiConfig { reference_hz, chip_selects, poll_limit_ns };
    let gpio = parts.selects.start(|bank, ours| {
        let ownership = if ours { Ownership::Exclusive } else { Ownership::Shared };
        ImxGpio::new(bank, ownership)
    });
    Ecspi::new(parts.registers, gpio, Monotonic::new(), config).with_interrupt(parts.interrupt)
}
