//! The description of a board: one row each.

use barewire::controller::CsLine;

use crate::error::Version;
use crate::program::QemuProgram;

/// QEMU for 32-bit Arm.
pub(crate) const QEMU_ARM: QemuProgram = QemuProgram {
    command: "qemu-system-arm",
    variable: "BAREWIRE_QEMU_ARM",
    package: "qemu-system-arm",
};

/// QEMU for 64-bit Arm.
pub(crate) const QEMU_AARCH64: QemuProgram = QemuProgram {
    command: "qemu-system-aarch64",
    variable: "BAREWIRE_QEMU_AARCH64",
    package: "qemu-system-arm",
};

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

/// A board's controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silicon {
    /// SPI0 of the BCM2835 and its successors.
    Bcm2835 {
        /// The address of its registers.
        base: u32,
        /// The core clock, in hertz.
        reference_hz: u32,
        /// The address of the GPIO block's registers.
        gpio_base: u32,
        /// Chip selects 0 and 1.
        cs: [GpioLine; 2],
    },
    /// i.MX ECSPI with a chip select by GPIO.
    Ecspi {
        /// The address of its registers.
        base: u32,
        /// Its reference clock, in hertz.
        reference_hz: u32,
        /// The address of the GPIO bank's registers.
        gpio_base: u32,
        /// Chip select 0.
        cs: CsLine,
    },
    /// Arm's PrimeCell PL022.
    Pl022 {
        /// The address of its registers.
        base: u32,
        /// SSPCLK, in hertz.
        reference_hz: u32,
        /// The address of a PL061's registers: the one with the chip select, or the first.
        gpio_base: u32,
        /// Chip select 0, if there is one.
        cs: Option<GpioLine>,
    },
}

/// A line of a GPIO block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpioLine {
    /// Its number in the block.
    pub bit: u8,
    /// The level that selects.
    pub active_high: bool,
}

impl GpioLine {
    fn chip_select(self) -> CsLine {
        CsLine::Gpio { bit: self.bit, active_high: self.active_high }
    }
}

/// An object of QEMU whose interrupt line can be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptTap {
    /// An input of an interrupt controller.
    In {
        /// The controller's path.
        path: &'static str,
        /// The input.
        line: u32,
    },
    /// The first interrupt output of a device. QEMU 7.2 accepts this, but reports nothing.
    Out {
        /// The device's path.
        path: &'static str,
    },
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

impl Silicon {
    /// The vendor's name of the controller.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bcm2835 { .. } => "BCM2835 SPI0",
            Self::Ecspi { .. } => "ECSPI",
            Self::Pl022 { .. } => "PL022",
        }
    }

    /// The chip selects, in the form its driver takes.
    #[must_use]
    pub fn chip_selects(&self) -> [CsLine; 4] {
        let absent = CsLine::Absent;
        match *self {
            Self::Bcm2835 { cs: [first, second], .. } => {
                [first.chip_select(), second.chip_select(), absent, absent]
            }
            Self::Ecspi { cs, .. } => [cs, absent, absent, absent],
            Self::Pl022 { cs, .. } => {
                [cs.map_or(absent, |line| line.chip_select()), absent, absent, absent]
            }
        }
    }

    /// The address of its registers.
    #[must_use]
    pub fn base(&self) -> u32 {
        match *self {
            Self::Bcm2835 { base, .. } | Self::Ecspi { base, .. } | Self::Pl022 { base, .. } => {
                base
            }
        }
    }

    /// The address of the registers of its chip select's GPIO block.
    #[must_use]
    pub fn gpio_base(&self) -> u32 {
        match *self {
            Self::Bcm2835 { gpio_base, .. }
            | Self::Ecspi { gpio_base, .. }
            | Self::Pl022 { gpio_base, .. } => gpio_base,
        }
    }
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
