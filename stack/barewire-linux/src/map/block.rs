//! The controllers that can be mapped, and what is known of each before it is touched.
//!
//! How it works: each block's room ([`ecspi`], [`bcm2835`], [`pl022`], [`atmel`], [`dw_ssi`]) has its [`Facts`]
//! and its bring-up; what is the same for all asks here.

use std::fmt;

use barewire::controller::CsLine;
use barewire::controller::atmel::Pipe;

use super::cs::Selects;
use super::{MappedInterrupt, atmel, bcm2835, dw_ssi, ecspi, pl022};
use crate::sys::MappedRegisters;

/// A controller that can be mapped, and with it the GPIO block of its family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// i.MX 6, 7 and 8M: ECSPI, and the i.MX GPIO block.
    Ecspi,
    /// Raspberry Pi up to the 4: SPI0 (and SPI3 to 6 of the 4), and its GPIO block.
    Bcm2835,
    /// PrimeCell SSP: PL022, and PL061.
    Pl022,
    /// SAMA5D3 and the AT91 and SAM9 before it: SPI, and PIO.
    Atmel,
    /// Raspberry Pi 5: DW_apb_ssi, and RP1's GPIO.
    DwSsi,
}

impl Block {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 5] = [Self::Ecspi, Self::Bcm2835, Self::Pl022, Self::Atmel, Self::DwSsi];

    /// Its name in a bus's text.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// The block with that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|block| block.name() == name)
    }

    /// The block of a device-tree node with this `compatible` (zero-terminated strings). `None` if
    /// it is none of these, or UIO's, which does not name the block.
    #[must_use]
    pub fn of_compatible(compatible: &str) -> Option<Self> {
        compatible.split('\0').find_map(|name| {
            Self::ALL.into_iter().find(|block| (block.facts().is_compatible)(name))
        })
    }

    pub(super) fn facts(self) -> &'static Facts {
        match self {
            Self::Ecspi => &ecspi::FACTS,
            Self::Bcm2835 => &bcm2835::FACTS,
            Self::Pl022 => &pl022::FACTS,
            Self::Atmel => &atmel::FACTS,
            Self::DwSsi => &dw_ssi::FACTS,
        }
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is known of a block on every board.
pub(super) struct Facts {
    /// Its name in a bus's text.
    pub(super) name: &'static str,
    /// Bytes of its registers.
    pub(super) registers_len: u32,
    /// Bytes of a GPIO bank's registers.
    pub(super) bank_len: u32,
    /// A register that can be read at any time without an effect: its name and offset.
    pub(super) first_read: (&'static str, u32),
    /// Such a register of a GPIO bank.
    pub(super) bank_first_read: (&'static str, u32),
    /// Linux's driver.
    pub(super) linux_driver: &'static str,
    /// The number of its native lines.
    pub(super) native_lines: u8,
    /// The number of a GPIO bank's pins.
    pub(super) bank_pins: u8,
    /// Whether the bank has one data register for all pins, without set and clear registers, so
    /// that Linux's driver writes all pins at once.
    pub(super) written_whole: bool,
    /// Whether its native line falls whichever chip is addressed, so that a chip on it must be the
    /// only one.
    pub(super) native_alone: bool,
    /// Whether its clock is never gated.
    pub(super) always_clocked: bool,
    /// Whether a string in a device tree's `compatible` names the block.
    pub(super) is_compatible: fn(&str) -> bool,
}

/// The board's properties, as the core's drivers need them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Board {
    pub(super) reference_hz: u32,
    pub(super) chip_selects: [CsLine; 4],
    pub(super) poll_limit_ns: u32,
    pub(super) pipe: Pipe,
}

/// The parts of a controller.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) registers: MappedRegisters,
    pub(super) selects: Selects,
    pub(super) interrupt: MappedInterrupt,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_known_by_their_names() {
        for block in Block::ALL {
            assert_eq!(Block::named(block.name()), Some(block));
        }
        assert_eq!(Block::ALL.map(Block::name), ["ecspi", "bcm2835", "pl022", "atmel", "dw-ssi"]);
        assert_eq!(Block::named("ECSPI"), None);
        assert_eq!(Block::named(""), None);
    }

    #[test]
    fn blocks_are_known_by_what_they_are_compatible_with() {
        for (compatible, block) in [
            ("fsl,imx8mp-ecspi\0fsl,imx6ul-ecspi\0", Some(Block::Ecspi)),
            ("fsl,imx51-ecspi", Some(Block::Ecspi)),
            ("fsl,imx27-cspi\0", None),
            ("brcm,bcm2835-spi\0", Some(Block::Bcm2835)),
            ("brcm,bcm2711-spi\0brcm,bcm2835-spi\0", Some(Block::Bcm2835)),
            ("brcm,bcm2835-aux-spi\0", None),
            ("arm,pl022\0arm,primecell\0", Some(Block::Pl022)),
            ("arm,pl061\0arm,primecell\0", None),
            ("atmel,at91rm9200-spi\0", Some(Block::Atmel)),
            ("microchip,sam9x60-spi\0atmel,at91rm9200-spi\0", Some(Block::Atmel)),
            ("generic-uio\0", None),
            ("snps,dw-apb-ssi\0", Some(Block::DwSsi)),
            ("altr,socfpga-spi\0snps,dw-apb-ssi\0", Some(Block::DwSsi)),
            ("snps,dwc-ssi-1.01a\0", None),
            ("", None),
        ] {
            assert_eq!(Block::of_compatible(compatible), block, "{compatible:?}");
        }
    }
}
