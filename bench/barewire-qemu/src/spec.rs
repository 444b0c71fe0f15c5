//! The description of a board: one row each.

use barewire::controller::CsLine;
use barewire_qtest::{QemuProgram, Version};

use crate::driver::QemuBlock;
use crate::interrupt::InterruptTap;

/// A board: what QEMU needs as options, and what board code would know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoardSpec {
    /// The name users type.
    pub name: &'static str,
    /// QEMU's name of the machine.
    pub machine: &'static str,
    /// The size of its memory, in QEMU's notation.
    pub memory: &'static str,
    /// The QEMU program that has the machine.
    pub program: QemuProgram,
    /// The oldest version that was tried.
    pub needed: Version,
    /// The controller and its lines.
    pub silicon: Silicon,
    /// Where QEMU shows the controller's interrupt line, in the order to try: the paths of a
    /// machine's objects differ between versions.
    pub interrupt: &'static [InterruptTap],
    /// Whether the controller's model can loop back: receive what it sends.
    pub loopback: bool,
    /// The chip on chip select 0 whose content is a file.
    pub storage: Option<Storage>,
    /// Parts of messages that are QEMU's fault and not the driver's.
    pub tolerated: &'static [&'static str],
}

/// A board's controller: what board code would know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silicon {
    /// Its block, with the driver.
    pub block: &'static QemuBlock,
    /// The address of its registers.
    pub base: u32,
    /// Its reference clock, in hertz.
    pub reference_hz: u32,
    /// The address of the registers of the GPIO block: the one with the chip selects, or the first.
    pub gpio_base: u32,
    /// The chip selects, by number, in the form the driver takes.
    pub chip_selects: [CsLine; 4],
}

/// Chip selects from 0 on: these pins of the GPIO block, active low.
pub(crate) const fn gpio_lines(pins: &[u8]) -> [CsLine; 4] {
    let mut lines = [CsLine::Absent; 4];
    let mut cs = 0;
    while cs < pins.len() {
        lines[cs] = CsLine::Gpio { bit: pins[cs], active_high: false };
        cs += 1;
    }
    lines
}

/// A chip whose content is a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Its name.
    pub name: &'static str,
    /// The size in bytes.
    pub size: usize,
    /// The kind of chip.
    pub medium: Medium,
}

/// The kinds of chip whose content is a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A flash chip.
    Flash,
    /// An SD card in its SPI mode.
    SdCard,
}

impl Medium {
    /// The interface of QEMU's `-drive`.
    pub(crate) fn interface(self) -> &'static str {
        match self {
            Self::Flash => "mtd",
            Self::SdCard => "sd",
        }
    }
}
