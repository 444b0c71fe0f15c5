//! The controllers that can be mapped, and what is known of each before it is touched.
//!
//! # How it works
//! Each block has a module with its [`Facts`], its bring-up (`start`) and the type of its driver. The
//! table `blocks!` below lists the modules. The rest of [`map`](super) names no block: what differs
//! between blocks is a field of [`Facts`].

use std::fmt;
use std::task::Poll;

use barewire::controller::atmel::Pipe;
use barewire::controller::{Controller, CsLine, Limits, Plan, Program, Unfinished};
use barewire::spi::{Effective, Error, MessageError, Settings, Transfer};

use super::cs::Selects;
use super::in_use::MappedBlock;
use super::{Mapped, MappedInterrupt};
use crate::sys::MappedRegisters;

/// Makes [`Block`], [`MappedController`] and every choice between blocks from one row per block.
///
/// A row is `VARIANT => MODULE, DRIVER;`. The module has `FACTS`, `start`, and the type of its driver.
macro_rules! blocks {
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

        /// A controller on mapped registers, in use: one variant per block.
        ///
        /// A bus over this enum looks up the block for each message. A program that knows its board
        /// avoids that by a bus over the [`MappedBlock`] inside, whose driver is then compiled into
        /// its messages. A program that does not, but can be compiled for each block, uses
        /// [`Mapped::start_each`].
        ///
        /// ```no_run
        /// use barewire::bus::Bus;
        /// use barewire::spi::Settings;
        /// use barewire_linux::map::{Mapped, MappedController};
        /// # fn bring_up(mapped: Mapped) -> Result<(), Box<dyn std::error::Error>> {
        /// let MappedController::Ecspi(ecspi) = mapped.start() else {
        ///     return Err("the board has an ECSPI".into());
        /// };
        /// let bus = Bus::new(ecspi);
        /// let device = bus.device(&Settings::new(0, 20_000_000))?;
        /// # Ok(()) }
        /// ```
        #[derive(Debug)]
        pub enum MappedController {
            $($(#[$doc])+ $variant(MappedBlock<super::$module::$driver>),)+
        }

        impl Mapped {
            /// Steps 6 and 7 of [`mapped`](super::mapped). The registers are accessed from here on.
            /// If other processes use them too, call this while holding [their lock](Mapped::lock).
            #[must_use]
            pub fn start(self) -> MappedController {
                match self.block() {
                    $(Block::$variant => {
                        MappedController::$variant(self.start_by(super::$module::start))
                    })+
                }
            }

            /// [`Mapped::start`] with the type of the block's own driver, for code that is compiled
            /// once per block: `user` gets the function that starts the driver.
            pub fn start_each<U: MappedUser>(self, user: U) -> U::Output {
                match self.block() {
                    $(Block::$variant => user.run(|| self.start_by(super::$module::start)),)+
                }
            }
        }

        impl Controller for MappedController {
            fn limits(&self) -> Limits {
                match self { $(Self::$variant(block) => block.limits(),)+ }
            }

            fn configure(&self, settings: &Settings) -> Result<(Program, Effective), Error> {
                match self { $(Self::$variant(block) => block.configure(settings),)+ }
            }

            fn plan(
                &self,
                program: &Program,
                message: &mut [Transfer<'_>],
            ) -> Result<(), MessageError> {
                match self { $(Self::$variant(block) => block.plan(program, message),)+ }
            }

            #[inline]
            fn run(
                &mut self,
                program: &Program,
                message: &mut [Transfer<'_>],
            ) -> Result<usize, Unfinished> {
                match self { $(Self::$variant(block) => block.run(program, message),)+ }
            }

            #[inline]
            fn run_exchange(
                &mut self,
                program: &Program,
                plan: &Plan,
                tx: &[u8],
                rx: &mut [u8],
            ) -> Result<usize, Unfinished> {
                match self { $(Self::$variant(block) => block.run_exchange(program, plan, tx, rx),)+ }
            }

            fn start(
                &mut self,
                program: &Program,
                message: &mut [Transfer<'_>],
            ) -> Poll<Result<usize, Unfinished>> {
                match self { $(Self::$variant(block) => block.start(program, message),)+ }
            }

            fn resume(
                &mut self,
                program: &Program,
                message: &mut [Transfer<'_>],
            ) -> Poll<Result<usize, Unfinished>> {
                match self { $(Self::$variant(block) => block.resume(program, message),)+ }
            }

            fn arm(&mut self) {
                match self { $(Self::$variant(block) => block.arm(),)+ }
            }

            fn reclaim(&mut self) {
                match self { $(Self::$variant(block) => block.reclaim(),)+ }
            }
        }
    };
}

// A new block is a row here and a `pub mod` in `mod.rs`.
blocks! {
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
}

/// Code that is compiled once per block, with the block's own driver; see [`Mapped::start_each`].
pub trait MappedUser {
    /// The result.
    type Output;

    /// Uses the controller that `start` brings up. No register is accessed before `start` is
    /// called.
    fn run<C: Controller + 'static>(self, start: impl FnOnce() -> C) -> Self::Output;
}

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

/// What is known of a block on every board.
pub(super) struct Facts {
    /// Its name in a bus's text.
    pub(super) name: &'static str,
    /// The machines that have it, as text for a list.
    pub(super) machines: &'static str,
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
    pub(super) native_exclusive: bool,
    /// Whether its clock is never gated.
    pub(super) always_clocked: bool,
    /// Whether some versions have no FIFO, so that [`MapSpec::pipe`](super::MapSpec::pipe) is an
    /// option.
    pub(super) has_pipe: bool,
    /// Its clock's name in `/sys/kernel/debug/clk`, if that is equal on all machines.
    pub(super) kernel_clock: Option<&'static str>,
    /// Reads in the GPIO bank whether the pins carry the signals of the controller at the address,
    /// and returns a warning if not. Writes nothing.
    pub(super) pins_warning: Option<fn(u64, &mut MappedRegisters) -> Option<String>>,
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
                assert!(len > 0 && len.is_multiple_of(4), "{block}: {len} bytes");
            }
            assert!(facts.first_read.1 < facts.registers_len, "{block}: {:?}", facts.first_read);
            assert!(facts.bank_first_read.1 < facts.bank_len, "{block}");
            assert!((1..=32).contains(&facts.bank_pins), "{block}");
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
            ("", None),
        ] {
            assert_eq!(Block::of_compatible(compatible), block, "{compatible:?}");
        }
    }
}
