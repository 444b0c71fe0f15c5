//! Cadence SPI and Zynq-7000's GPIO controller on mapped registers.
//!
//! Read first: [`barewire::controller::cadence`]; Xilinx, *Zynq-7000 SoC Technical Reference Manual* (UG585),
//! appendix B.1, "Register overview".
//!
//! On a Zynq-7000 SPI0 is at 0xe000_6000, SPI1 at 0xe000_7000, the GPIO controller at 0xe000_a000. `reference_hz` is
//! SPI_Ref_Clk, which SPI_CLK_CTRL of the SLCR derives from a PLL: 166.67 MHz unless the board's boot code says
//! otherwise. Linux gates it, and the clock of the registers, while its driver is unbound.
//!
//! # Not supported
//! Pins of the GPIO controller beyond bank 0, MIO 0 to 31; the controller of Zynq UltraScale+, whose bank 0 has 26
//! pins. Setting the pins' functions.

use barewire::controller::cadence::{Cadence, CadenceConfig};
use barewire::controller::gpio::ZynqGpio;
use barewire::reg::MmioBlock;

use super::MappedInterrupt;
use super::cs::CsGpio;
use super::facts::{Board, Facts, LinuxSelects, Parts};
use super::harmless::Harmless;
use crate::sys::MappedRegisters;
use crate::timer::Monotonic;

/// Bytes of its registers: to RX_thres_reg0.
const REGISTERS_LEN: u32 = 0x30;
/// Bytes of a GPIO bank's registers: to OEN_0.
const BANK_LEN: u32 = 0x20c;

/// A Cadence SPI on mapped registers.
pub type MappedCadence = Cadence<
    MappedRegisters<MmioBlock<REGISTERS_LEN>>,
    CsGpio<ZynqGpio<MappedRegisters<MmioBlock<BANK_LEN>>>>,
    Monotonic,
    MappedInterrupt,
>;

pub(super) const FACTS: Facts = Facts {
    name: "cadence",
    machines: "Zynq-7000, Zynq UltraScale+",
    registers_len: REGISTERS_LEN,
    bank_len: BANK_LEN,
    first_read: ("Config_reg0", 0x00),
    bank_first_read: ("DIRM_0", 0x204),
    harmless: Harmless::new(("Config_reg0", 0x00), ("Intrpt_dis_reg0", 0x0c), 0),
    bank_harmless: Harmless::new(
        ("DIRM_0", 0x204),
        ("MASK_DATA_0_LSW of no pin", 0x000),
        0xffff_0000,
    ),
    linux_driver: "cdns-spi",
    linux_selects: LinuxSelects { default: 4, reads_num_cs: true, native: 3 },
    native_lines: 3,
    bank_pins: 32,
    written_whole: false,
    native_exclusive: false,
    always_clocked: false,
    has_pipe: false,
    kernel_clock: None,
    pins_warning: None,
    is_compatible: |name| matches!(name, "cdns,spi-r1p6" | "xlnx,zynq-spi-r1p6"),
    is_bank: |name| name == "xlnx,zynq-gpio-1.0",
};

pub(super) fn start(parts: Parts, board: Board) -> MappedCadence {
    let Board { reference_hz, chip_selects, poll_limit_ns, .. } = board;
    let chip_selects = parts.selects.table(chip_selects);
    let config = CadenceConfig { reference_hz, chip_selects, poll_limit_ns };
    let gpio = parts.selects.start(|bank, _| ZynqGpio::new(bank.known()));
    Cadence::new(parts.registers.known(), gpio, Monotonic::new(), config)
        .with_interrupt(parts.interrupt)
}
