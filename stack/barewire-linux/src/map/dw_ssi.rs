//! DW_apb_ssi, and RP1's GPIO, on mapped registers.
//!
//! Read first: [`barewire::controller::dw_ssi`]; Raspberry Pi Ltd, *RP1 Peripherals*
//! (<https://datasheets.raspberrypi.com/rp1/rp1-peripherals.pdf>), on addresses and pins; this crate's
//! README.
//!
//! On a Raspberry Pi 5 the processor sees RP1's registers from 0x1f_0000_0000 on (0x4000_0000 in
//! RP1's own addresses): SPI0 is at 0x1f_0005_0000 and its GPIO bank at 0x1f_000d_0000.
//! `reference_hz` is `ssi_clk`, 200 MHz there.
//!
//! RP1's system clock drives SPI0; without that clock none of RP1's registers answers.
//!
//! # Not supported
//! Setting the functions of SCK, MOSI and MISO: on a Raspberry Pi 5 its boot loader or its kernel
//! gives GPIO 9 to 11 function 0. More than two native lines. DWC_ssi (`snps,dwc-ssi-1.01a`). Chip
//! selects through registers of other SoCs' GPIO blocks: use the kernel for them. A UIO device with
//! RP1's three GPIO blocks as three maps: the bank is mapped in one piece.

use barewire::controller::dw_ssi::{DwSsi, DwSsiConfig};
use barewire::controller::gpio::Rp1Gpio;
use barewire::reg::MmioBlock;

use super::MappedInterrupt;
use super::cs::CsGpio;
use super::facts::{Board, Facts, LinuxSelects, Parts};
use super::harmless::Harmless;
use crate::sys::MappedRegisters;
use crate::timer::Monotonic;

/// Bytes of its registers: to RX_SAMPLE_DLY, and further registers of newer versions.
const REGISTERS_LEN: u32 = 0x100;
/// Bytes of a GPIO bank's registers: IO_BANK0, SYS_RIO0 and PADS_BANK0.
const BANK_LEN: u32 = 0x3_0000;
/// The number of native lines: `num-cs` of RP1's SPI0 in Raspberry Pi's device tree.
const NATIVE_LINES: u8 = 2;

/// A DW_apb_ssi on mapped registers.
pub type MappedDwSsi = DwSsi<
    MappedRegisters<MmioBlock<REGISTERS_LEN>>,
    CsGpio<Rp1Gpio<MappedRegisters<MmioBlock<BANK_LEN>>>>,
    Monotonic,
    MappedInterrupt,
>;

pub(super) const FACTS: Facts = Facts {
    name: "dw-ssi",
    machines: "Raspberry Pi 5",
    registers_len: REGISTERS_LEN,
    bank_len: BANK_LEN,
    first_read: ("SSI_VERSION_ID", 0x5c),
    bank_first_read: ("GPIO0_CTRL", 0x04),
    harmless: Harmless::rewriting(("SR", 0x28), ("IMR", 0x2c)),
    bank_harmless: Harmless::new(("GPIO0_CTRL", 0x04), ("RIO_OUT_SET", 0x1_2000), 0),
    linux_driver: "dw_spi_mmio",
    linux_selects: LinuxSelects { default: 16, reads_num_cs: true, native: 16 },
    native_lines: NATIVE_LINES,
    bank_pins: 28,
    written_whole: false,
    native_exclusive: false,
    always_clocked: false,
    has_pipe: false,
    kernel_clock: None,
    pins_warning: None,
    is_compatible: |name| name == "snps,dw-apb-ssi",
    is_bank: |name| name == "raspberrypi,rp1-gpio",
};

pub(super) fn start(parts: Parts, board: Board) -> MappedDwSsi {
    let Board { reference_hz, chip_selects, poll_limit_ns, .. } = board;
    let chip_selects = parts.selects.table(chip_selects);
    let native_lines = NATIVE_LINES;
    let config = DwSsiConfig { reference_hz, chip_selects, native_lines, poll_limit_ns };
    let gpio = parts.selects.start(|bank, _| Rp1Gpio::new(bank.known()));
    DwSsi::new(parts.registers.known(), gpio, Monotonic::new(), config)
        .with_interrupt(parts.interrupt)
}
