//! The controllers that can be mapped.
//!
//! # How it works
//! Each block has a module with its [`Facts`], its bring-up (`start`) and the type of its driver. The
//! table `blocks!` below lists the modules, for [`Block`] and for what [`in_use`](super::in_use) makes of
//! it. The rest of [`map`](super) names no block: what differs between blocks is a field of [`Facts`].

use std::fmt;

use super::facts::{Facts, LinuxSelects};
use super::harmless::Harmless;

/// Hands the rows of the table to the macro `$make`, which makes from them what differs by block.
///
/// A row is `VARIANT => MODULE, DRIVER;`. The module has `FACTS`, `start`, and the type of its driver.
macro_rules! blocks {
    ($make:ident) => {
        // A new block is a row here and a `pub mod` in `mod.rs`.
        $make! {
            /// i.MX 6, 7 and 8M: ECSPI, and the i.MX GPIO block.
            Ecspi => ecspi, MappedEcspi;
            /// Raspberry Pi up to the 4: SPI0 (and SPI3 to 6 of the 4), and its GPIO block.
            Bcm2835 => bcm2835, MappedBcm2835;
            /// PrimeCell SSP: PL022, and PL061.
            Pl022 => pl022, MappedPl022;
            /// SAMA5D3 and the AT91 and SAM9 before it: SPI, and PIO.
            Atmel => atmel, MappedAtmel;
            /// Raspberry Pi 5: DW_apb_ssi, and RP1's GPIO.
            DwSsi => dw_ssi, MappedDwSsi;
            /// HiFive Unleashed and Unmatched: SiFive SPI, and SiFive's GPIO block.
            SiFive => sifive, MappedSiFive;
            /// BeagleBone and other boards with TI's Sitara: McSPI, and the GPIO block of OMAP4.
            Mcspi => mcspi, MappedMcspi;
            /// Zynq-7000 and Zynq UltraScale+: Cadence SPI, and Zynq-7000's GPIO controller.
            Cadence => cadence, MappedCadence;
        }
    };
}
pub(super) use blocks;

macro_rules! block {
    ($($(#[$doc:meta])+ $variant:ident => $module:ident, $driver:ident;)+) => {
        /// A controller that can be mapped, and the GPIO block of its family.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Block {
            $($(#[$doc])+ $variant,)+
        }

        impl Block {
            /// All blocks, in the order of the table.
            pub const ALL: [Self; [$(Self::$variant),+].len()] = [$(Self::$variant),+];

            pub(super) fn facts(self) -> &'static Facts {
                match self {
                    $(Self::$variant => &super::$module::FACTS,)+
                }
            }
        }
    };
}
blocks!(block);

impl Block {
    /// The block of a bus whose name has no `controller=`.
    pub const DEFAULT: Self = Self::Ecspi;

    /// Its name in a bus's text.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// The machines that have it, as text for a list.
    #[must_use]
    pub fn machines(self) -> &'static str {
        self.facts().machines
    }

    /// The number of its native chip select lines.
    #[must_use]
    pub fn native_lines(self) -> u8 {
        self.facts().native_lines
    }

    /// Accesses without an effect of the controller, and of the GPIO block of its family.
    #[must_use]
    pub fn harmless(self) -> [Harmless; 2] {
        let facts = self.facts();
        [facts.harmless, facts.bank_harmless]
    }

    /// The chip selects of Linux's driver.
    pub(crate) fn linux_selects(self) -> LinuxSelects {
        self.facts().linux_selects
    }

    /// The block with that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|block| block.name() == name)
    }

    /// The block of a device-tree node with this `compatible` (zero-terminated strings). `None` if
    /// it is none of these. UIO's `generic-uio` does not name the block; a second string does,
    /// `barewire,` and its name.
    #[must_use]
    pub fn of_compatible(compatible: &str) -> Option<Self> {
        compatible.split('\0').find_map(|name| {
            let ours = name.strip_prefix("barewire,").and_then(Self::named);
            ours.or_else(|| Self::ALL.into_iter().find(|block| (block.facts().is_compatible)(name)))
        })
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_known_by_their_names() {
        for block in Block::ALL {
            assert_eq!(Block::named(block.name()), Some(block));
        }
        let names = Block::ALL.map(Block::name);
        assert!(
            names.starts_with(&["ecspi", "bcm2835", "pl022", "atmel", "dw-ssi", "sifive"]),
            "{names:?}"
        );
        assert_eq!(Block::named("ECSPI"), None);
        assert_eq!(Block::named(""), None);
    }

    /// The module of a block is called as the block, with an underscore for a hyphen.
    #[test]
    fn the_documentation_has_every_block() {
        let documentation = include_str!("mod.rs");
        for block in Block::ALL {
            let row = format!("//! | [`{}`] |", block.name().replace('-', "_"));
            assert!(documentation.contains(&row), "add a row {row:?} to the table in map/mod.rs");
        }
    }

    /// Two blocks of one name, or of one device-tree string, could not be told apart.
    #[test]
    fn names_are_unique_and_facts_make_sense() {
        for (index, block) in Block::ALL.into_iter().enumerate() {
            let facts = block.facts();
            assert!(Block::ALL[..index].iter().all(|other| other.name() != block.name()));
            for len in [facts.registers_len, facts.bank_len] {
                assert!(len > 0 && len % 4 == 0, "{block}: {len} bytes");
            }
            assert!(facts.first_read.1 < facts.registers_len, "{block}: {:?}", facts.first_read);
            assert!(facts.bank_first_read.1 < facts.bank_len, "{block}");
            let lens = [facts.registers_len, facts.bank_len];
            for (harmless, len) in block.harmless().into_iter().zip(lens) {
                for (name, offset) in [harmless.read, harmless.write] {
                    assert!(offset % 4 == 0 && offset < len, "{block}: {name} at {offset:#x}");
                }
            }
            assert!((1..=32).contains(&facts.bank_pins), "{block}");
            assert!(facts.linux_selects.native >= facts.native_lines, "{block}");
            assert!(!facts.linux_driver.is_empty() && !facts.machines.is_empty(), "{block}");
        }
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
            ("sifive,fu540-c000-spi\0sifive,spi0\0", Some(Block::SiFive)),
            ("sifive,spi0", Some(Block::SiFive)),
            ("sifive,fu540-c000-gpio\0sifive,gpio0\0", None),
            ("ti,omap4-mcspi\0", Some(Block::Mcspi)),
            ("ti,am654-mcspi\0ti,omap4-mcspi\0", Some(Block::Mcspi)),
            ("ti,omap2-mcspi\0", None),
            ("xlnx,zynq-spi-r1p6\0", Some(Block::Cadence)),
            ("cdns,spi-r1p6\0", Some(Block::Cadence)),
            ("", None),
        ] {
            assert_eq!(Block::of_compatible(compatible), block, "{compatible:?}");
        }
    }
}
