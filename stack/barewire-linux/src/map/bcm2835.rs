//! BCM2835 SPI0 (Raspberry Pi up to the 4) and its GPIO block on mapped registers.
//!
//! Read first: [`barewire::controller::bcm2835`]; BCM2835 ARM Peripherals, section 6.2 (functions
//! of the pins); this crate's README, on a Raspberry Pi.
//!
//! Addresses are the processor's (0x3f20_4000 on a Pi 2 or 3), not the manual's (0x7e20_4000).
//! `reference_hz` is the core clock.
//!
//! The core clock drives the block and the chip's buses. Linux marks it critical, so unbinding a
//! driver does not stop it. **But unbinding changes the pins**: the kernel's pin controller then
//! makes them inputs (`bcm2835_pmx_free`). So, if the GPIO block is mapped anyway, the driver
//! checks before the start whether a pin carries SCK, and tells the user how to restore it.
//!
//! # Not supported
//! Setting the functions of SCK, MOSI, MISO, CE0 and CE1: the board must connect them. A GPIO chip
//! select becomes an output, whatever its function was.

use barewire::controller::bcm2835::{Bcm2835, Bcm2835Config};
use barewire::controller::gpio::Bcm2835Gpio;
use barewire::reg::{MmioBlock, Registers};

use super::MappedInterrupt;
use super::cs::CsGpio;
use super::facts::{Board, Facts, LinuxSelects, Parts};
use super::harmless::Harmless;
use crate::sys::MappedRegisters;
use crate::timer::Monotonic;

/// Bytes of its registers: to DC.
const REGISTERS_LEN: u32 = 0x18;
/// Bytes of a GPIO bank's registers: to the last register in the chapter.
const BANK_LEN: u32 = 0xb4;

/// SPI0 on mapped registers.
pub type MappedBcm2835 = Bcm2835<
    MappedRegisters<MmioBlock<REGISTERS_LEN>>,
    CsGpio<Bcm2835Gpio<MappedRegisters<MmioBlock<BANK_LEN>>>>,
    Monotonic,
    MappedInterrupt,
>;

pub(super) const FACTS: Facts = Facts {
    name: "bcm2835",
    machines: "Raspberry Pi up to the 4: SPI0",
    registers_len: REGISTERS_LEN,
    bank_len: BANK_LEN,
    first_read: ("CS", 0x00),
    bank_first_read: ("GPFSEL0", 0x00),
    harmless: Harmless::rewriting(("CS", 0x00), ("DLEN", 0x0c)),
    bank_harmless: Harmless::new(("GPFSEL0", 0x00), ("GPSET0", 0x1c), 0),
    linux_driver: "spi-bcm2835",
    linux_selects: LinuxSelects { default: 3, reads_num_cs: false, native: 2 },
    native_lines: 2,
    // The core's driver supports these 32; only they are on a header.
    bank_pins: 32,
    written_whole: false,
    native_exclusive: false,
    always_clocked: true,
    has_pipe: false,
    kernel_clock: Some("vpu"),
    pins_warning: Some(pins_warning),
    is_compatible: |name| matches!(name, "brcm,bcm2835-spi" | "brcm,bcm2711-spi"),
    is_bank: |name| matches!(name, "brcm,bcm2835-gpio" | "brcm,bcm2711-gpio"),
};

/// SPI0's offset in the peripherals' 16 MiB, on every chip.
const SPI0: u64 = 0x20_4000;
const PERIPHERALS_LEN: u64 = 0x100_0000;
/// The pins that can be SPI0's SCLK, both by alternate function 0.
const SCLK_PINS: [u32; 2] = [11, 39];
const ALT0: u32 = 0b100;

pub(super) fn start(parts: Parts, board: Board) -> MappedBcm2835 {
    let Board { reference_hz, chip_selects, poll_limit_ns, .. } = board;
    let chip_selects = parts.selects.table(chip_selects);
    let config = Bcm2835Config { core_hz: reference_hz, chip_selects, poll_limit_ns };
    let gpio = parts.selects.start(|bank, _| Bcm2835Gpio::new(bank.known()));
    Bcm2835::new(parts.registers.known(), gpio, Monotonic::new(), config)
        .with_interrupt(parts.interrupt)
}

/// The warning to print if no pin carries the clock of the controller at `address`, as far as the
/// GPIO block shows it. Writes nothing.
pub(super) fn pins_warning(address: u64, bank: &mut impl Registers) -> Option<String> {
    // The other blocks have other pins.
    if address % PERIPHERALS_LEN != SPI0 {
        return None;
    }
    let mut carries = |pin: u32| bank.read(pin / 10 * 4) >> (pin % 10 * 3) & 0b111 == ALT0;
    if SCLK_PINS.into_iter().any(&mut carries) {
        return None;
    }
    Some(
        "no pin carries the controller's SCK (neither GPIO 11 nor 39 has function ALT0): a kernel driver that is unbound leaves its pins as inputs; `pinctrl set 9-11 a0` gives them back (on older systems `raspi-gpio set 9-11 a0`)"
            .into(),
    )
}

#[cfg(test)]
mod tests {
    use barewire::reg::Access::Read;
    use barewire::reg::Fake;

    use super::*;

    fn warned(address: u64, script: &[barewire::reg::Access]) -> bool {
        let mut bank = Fake::new(script);
        let warning = pins_warning(address, &mut bank);
        assert_eq!(bank.remaining(), 0);
        warning.is_some_and(|text| text.contains("pinctrl set 9-11 a0"))
    }

    #[test]
    fn sck_is_looked_for_on_both_its_pins() {
        let (gpfsel1, gpfsel3) = (0x04, 0x0c);
        for spi0 in [0x2020_4000, 0x3f20_4000, 0xfe20_4000] {
            assert!(!warned(spi0, &[Read(gpfsel1, 0b100 << 3)]), "GPIO 11");
            let on_39 = [Read(gpfsel1, 0), Read(gpfsel3, 0b100 << 27)];
            assert!(!warned(spi0, &on_39), "GPIO 39");
            // Its neighbours', or another function, is not it.
            let on_none = [Read(gpfsel1, 0b100_000_100 | 0b001 << 3), Read(gpfsel3, 0b100 << 24)];
            assert!(warned(spi0, &on_none), "inputs and outputs");
        }
        assert!(!warned(0xfe20_4600, &[]), "SPI3 has other pins");
    }
}
