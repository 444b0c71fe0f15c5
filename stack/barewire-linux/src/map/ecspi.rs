//! ECSPI (i.MX 6, 7, 8M) and the i.MX GPIO block on mapped registers.
//!
//! Read first: [`barewire::controller::ecspi`].
//!
//! Its clock gate can be checked: see [`clock`](super::clock).
//!
//! # Not supported
//! The pins' functions (IOMUXC): the boot loader or the kernel must have set them.

use barewire::controller::ecspi::{Ecspi, EcspiConfig};
use barewire::controller::gpio::{ImxGpio, Ownership};
use barewire::reg::MmioBlock;

use super::MappedInterrupt;
use super::cs::CsGpio;
use super::facts::{Board, Facts, LinuxSelects, Parts};
use super::harmless::Harmless;
use crate::sys::MappedRegisters;
use crate::timer::Monotonic;

/// Bytes of its registers.
const REGISTERS_LEN: u32 = 0x40;
/// Bytes of a GPIO bank's registers: to EDGE_SEL.
const BANK_LEN: u32 = 0x20;

/// An ECSPI on mapped registers.
pub type MappedEcspi = Ecspi<
    MappedRegisters<MmioBlock<REGISTERS_LEN>>,
    CsGpio<ImxGpio<MappedRegisters<MmioBlock<BANK_LEN>>>>,
    Monotonic,
    MappedInterrupt,
>;

pub(super) const FACTS: Facts = Facts {
    name: "ecspi",
    machines: "i.MX 6, 7, 8M",
    registers_len: REGISTERS_LEN,
    bank_len: BANK_LEN,
    first_read: ("STATREG", 0x18),
    bank_first_read: ("GPIO_GDIR", 0x04),
    harmless: Harmless::new(("STATREG", 0x18), ("STATREG", 0x18), 0),
    bank_harmless: Harmless::new(("GPIO_GDIR", 0x04), ("GPIO_ISR", 0x18), 0),
    linux_driver: "spi_imx",
    linux_selects: LinuxSelects { default: 3, reads_num_cs: true, native: 4 },
    native_lines: 4,
    bank_pins: 32,
    written_whole: true,
    native_exclusive: false,
    always_clocked: false,
    has_pipe: false,
    kernel_clock: None,
    pins_warning: None,
    is_compatible: |name| name.starts_with("fsl,") && name.ends_with("-ecspi"),
    is_bank: |name| matches!(name, "fsl,imx31-gpio" | "fsl,imx35-gpio"),
};

pub(super) fn start(parts: Parts, board: Board) -> MappedEcspi {
    let Board { reference_hz, chip_selects, poll_limit_ns, .. } = board;
    let chip_selects = parts.selects.table(chip_selects);
    let config = EcspiConfig { reference_hz, chip_selects, poll_limit_ns };
    let gpio = parts.selects.start(|bank, ours| {
        let ownership = if ours { Ownership::Exclusive } else { Ownership::Shared };
        ImxGpio::new(bank.known(), ownership)
    });
    Ecspi::new(parts.registers.known(), gpio, Monotonic::new(), config)
        .with_interrupt(parts.interrupt)
}
