//! The simulated boards, as data.
//!
//! *Read first*: the SoC's reference manual, memory map; the board's schematic or Linux device
//! tree, for what stands behind each chip select.
//!
//! The number of a chip select is its place in [`BoardSpec::cs`]: the user's number, whatever the
//! controller or Linux call the line.

use std::any::Any;
use std::fmt;

use super::Pad;
pub use super::chips::{AdcSpec, BoardChip, CanSpec, FlashSpec, TouchSpec};
use crate::model::adc::AdcPart;
use crate::model::gpio::{
    atmel_pio, bcm2835 as bcm2835_gpio, imx, omap, pl061, rp1, sifive as sifive_gpio,
    zynq as zynq_gpio,
};
use crate::model::mcp2518fd::PartKind;
use crate::model::nor::Part;
pub use crate::model::{ControllerKind, gpio::GpioKind};
use crate::model::{atmel, bcm2835, cadence, dw_ssi, ecspi, mcspi, pl022, sifive};
use crate::profile::Profile;
use crate::wire::Driver;

/// A block of GPIO registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpioSpec {
    /// The kind of block.
    pub kind: &'static GpioKind,
    /// The SoC's name of the block.
    pub name: &'static str,
    /// Where its registers are.
    pub base: u64,
}

impl GpioSpec {
    /// The SoC's name of the pad at `bit`, as [`CsSpec::name`] has it.
    #[must_use]
    pub fn pad_name(&self, bit: u8) -> String {
        let Self { kind, name, .. } = self;
        if **kind == imx::KIND {
            format!("{name}_IO{bit:02}")
        } else if **kind == atmel_pio::KIND {
            format!("{}{bit}", name.replace("PIO", "P"))
        } else if [omap::KIND, pl061::KIND].contains(kind) {
            format!("{name}_{bit}")
        } else {
            format!("{name}{bit}")
        }
    }

    /// The name that Linux's driver gives the block, a GPIO chip's label.
    #[must_use]
    pub fn linux_label(&self) -> String {
        if *self.kind == bcm2835_gpio::KIND {
            "pinctrl-bcm2835".into()
        } else if *self.kind == rp1::KIND {
            "pinctrl-rp1".into()
        } else {
            format!("{:x}.gpio", self.base)
        }
    }
}

/// A chip select line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsSpec {
    /// The SoC's name of the line.
    pub name: &'static str,
    /// The block that drives the line.
    pub driver: Driver,
    /// Active high instead of low.
    pub active_high: bool,
    /// The pad that has the line. `None` for a controller's own line whose pad is in none of the board's
    /// GPIO blocks.
    pub pad: Option<Pad>,
}

impl CsSpec {
    /// An active-low chip select on a GPIO.
    #[must_use]
    pub const fn gpio(name: &'static str, block: u8, bit: u8) -> Self {
        let (driver, pad) = (Driver::Gpio { block, bit }, Some(Pad { block, bit }));
        Self { name, driver, active_high: false, pad }
    }

    /// An active-low line of the controller's own.
    #[must_use]
    pub const fn native(name: &'static str, line: u8) -> Self {
        Self { name, driver: Driver::Native(line), active_high: false, pad: None }
    }

    /// An active-low line of the controller's own, at a pad that a GPIO block can have instead.
    #[must_use]
    pub const fn native_at(name: &'static str, line: u8, block: u8, bit: u8) -> Self {
        let pad = Some(Pad { block, bit });
        Self { name, driver: Driver::Native(line), active_high: false, pad }
    }
}

/// A board.
#[derive(Clone, Debug)]
pub struct BoardSpec {
    /// The name after `sim:`.
    pub name: &'static str,
    /// The board and its flash, in words.
    pub title: &'static str,
    /// The costs it charges.
    pub profile: Profile,
    /// The kind of its controller.
    pub kind: &'static ControllerKind,
    /// The controller's name in the SoC.
    pub controller: &'static str,
    /// Where the controller's registers are.
    pub controller_base: u64,
    /// Its GPIO blocks, those that drive a chip select.
    pub gpio: &'static [GpioSpec],
    /// Its chip selects, by number.
    pub cs: &'static [CsSpec],
    /// The chips behind its chip selects, in any order: one flash, and at most one chip of each
    /// other kind.
    pub chips: &'static [&'static dyn BoardChip],
}

/// All boards.
pub static BOARDS: [BoardSpec; 10] = [
    // Chips at the header: the first line at P9.12, the others at P9.15 (with an interrupt at P9.23) and P8.11.
    BoardSpec {
        name: "beaglebone",
        title: "BeagleBone Black (AM3358), SPI0 with a 32 MiB W25Q256JV flash",
        profile: Profile::BEAGLEBONE,
        kind: &mcspi::KIND,
        controller: "SPI0",
        controller_base: 0x4803_0000,
        gpio: &[GpioSpec { kind: &omap::KIND, name: "GPIO1", base: 0x4804_c000 }],
        cs: &[
            CsSpec::gpio("GPIO1_28", 0, 28),
            CsSpec::native("SPI0_CS1", 1),
            CsSpec::gpio("GPIO1_16", 0, 16),
            CsSpec::gpio("GPIO1_13", 0, 13),
        ],
        chips: &[
            &FlashSpec { cs: 1, part: Part::w25q256jv },
            &AdcSpec { cs: 0, part: AdcPart::Mcp3008, supply_mv: 3_300, vref_mv: 3_300 },
            &CanSpec {
                cs: 2,
                part: PartKind::Mcp2518Fd,
                oscillator_hz: 40_000_000,
                int: Pad { block: 0, bit: 17 },
            },
            &TouchSpec { cs: 3 },
        ],
    },
    // Linux's device trees have no SSP of this SoC; QEMU's highbank has one, where Calxeda put it.
    BoardSpec {
        name: "highbank",
        title: "Calxeda Highbank (ECX-1000), SSP with a 32 MiB W25Q256JV flash",
        profile: Profile::HIGHBANK,
        kind: &pl022::KIND,
        controller: "SSP",
        controller_base: 0xfff3_9000,
        gpio: &[GpioSpec { kind: &pl061::KIND, name: "GPIOE", base: 0xfff3_0000 }],
        cs: &[CsSpec::gpio("GPIOE_0", 0, 0), CsSpec::native("SSPFSSOUT", 0)],
        chips: &[&FlashSpec { cs: 0, part: Part::w25q256jv }],
    },
    // Wired as Linux's imx6dl-plym2m.dts has it, a board of Protonic's.
    BoardSpec {
        name: "imx6dl",
        title: "a board with i.MX 6DualLite, ECSPI1 with a 4 MiB W25Q32JV flash",
        profile: Profile::IMX6DL,
        kind: &ecspi::KIND,
        controller: "ECSPI1",
        controller_base: 0x0200_8000,
        gpio: &[GpioSpec { kind: &imx::KIND, name: "GPIO3", base: 0x020a_4000 }],
        cs: &[CsSpec::gpio("GPIO3_IO19", 0, 19), CsSpec::native("ECSPI1_SS0", 0)],
        chips: &[&FlashSpec { cs: 0, part: Part::w25q32jv }],
    },
    BoardSpec {
        name: "imx8mp",
        title: "NXP i.MX 8M Plus EVK, ECSPI1 with a 32 MiB W25Q256JV flash",
        profile: Profile::IMX8MP,
        kind: &ecspi::KIND,
        controller: "ECSPI1",
        controller_base: 0x3082_0000,
        gpio: &[GpioSpec { kind: &imx::KIND, name: "GPIO5", base: 0x3024_0000 }],
        cs: &[
            CsSpec::gpio("GPIO5_IO09", 0, 9),
            CsSpec::native("ECSPI1_SS1", 1),
            // An adapter's, as on the board of Jander's measurements.
            CsSpec::gpio("GPIO5_IO13", 0, 13),
            // For the touch screen of the adapter above.
            CsSpec::gpio("GPIO5_IO04", 0, 4),
        ],
        chips: &[
            &FlashSpec { cs: 0, part: Part::w25q256jv },
            // INT at the adapter's free pin beside the chip select.
            &CanSpec {
                cs: 2,
                part: PartKind::Mcp2518Fd,
                oscillator_hz: 40_000_000,
                int: Pad { block: 0, bit: 12 },
            },
            &TouchSpec { cs: 3 },
        ],
    },
    BoardSpec {
        name: "rpi3",
        title: "Raspberry Pi 3 Model B, SPI0 with an MCP3008 and a 4 MiB W25Q32JV flash",
        profile: Profile::RPI3,
        kind: &bcm2835::KIND,
        controller: "SPI0",
        controller_base: 0x3f20_4000,
        gpio: &[GpioSpec { kind: &bcm2835_gpio::KIND, name: "GPIO", base: 0x3f20_0000 }],
        cs: &[
            // The header's CE0, driven as Linux does: as a GPIO.
            CsSpec::gpio("GPIO8", 0, 8),
            CsSpec::native_at("SPI0_CE1_N", 1, 0, 7),
        ],
        chips: &[
            &FlashSpec { cs: 1, part: Part::w25q32jv },
            // As in Ellis's article: at 5 V, its reference its supply.
            &AdcSpec { cs: 0, part: AdcPart::Mcp3008, supply_mv: 5_000, vref_mv: 5_000 },
        ],
    },
    BoardSpec {
        name: "rpi5",
        title: "Raspberry Pi 5, RP1's SPI0 with an MCP3008 and a 4 MiB W25Q32JV flash",
        profile: Profile::RPI5,
        kind: &dw_ssi::KIND,
        controller: "SPI0",
        controller_base: 0x1f_0005_0000,
        gpio: &[GpioSpec { kind: &rp1::KIND, name: "GPIO", base: 0x1f_000d_0000 }],
        cs: &[
            // The header's CE0, driven as Linux does: as a GPIO.
            CsSpec::gpio("GPIO8", 0, 8),
            CsSpec::native_at("SPI0_CE1_N", 1, 0, 7),
            // The block's own line would rise in the middle of a long read.
            CsSpec::gpio("GPIO25", 0, 25),
        ],
        chips: &[
            &FlashSpec { cs: 2, part: Part::w25q32jv },
            &AdcSpec { cs: 0, part: AdcPart::Mcp3008, supply_mv: 5_000, vref_mv: 5_000 },
        ],
    },
    BoardSpec {
        name: "sabrelite",
        title: "Boundary Devices SABRE Lite (i.MX 6Quad), ECSPI1 with a 2 MiB SST25VF016B flash",
        profile: Profile::SABRELITE,
        kind: &ecspi::KIND,
        controller: "ECSPI1",
        controller_base: 0x0200_8000,
        gpio: &[GpioSpec { kind: &imx::KIND, name: "GPIO3", base: 0x020a_4000 }],
        cs: &[
            // The block's and QEMU's CS1; nothing is wired to SS0.
            CsSpec::gpio("GPIO3_IO19", 0, 19),
            CsSpec::native("ECSPI1_SS0", 0),
        ],
        chips: &[&FlashSpec { cs: 0, part: Part::sst25vf016b }],
    },
    BoardSpec {
        name: "sama5d36",
        title: "Atmel SAMA5D36-EK, SPI1 with a 64 MiB S25FL512S flash",
        profile: Profile::SAMA5D36,
        kind: &atmel::KIND,
        controller: "SPI1",
        controller_base: 0xf800_8000,
        gpio: &[GpioSpec { kind: &atmel_pio::KIND, name: "PIOC", base: 0xffff_f600 }],
        cs: &[
            // The pin of NPCS0, as a GPIO.
            CsSpec::gpio("PC25", 0, 25),
            CsSpec::native_at("SPI1_NPCS1", 1, 0, 26),
        ],
        chips: &[&FlashSpec { cs: 0, part: Part::s25fl512s }],
    },
    BoardSpec {
        name: "unleashed",
        title: "SiFive HiFive Unleashed (FU540-C000), SPI0 with a 32 MiB W25Q256JV for its flash",
        profile: Profile::UNLEASHED,
        kind: &sifive::KIND,
        controller: "SPI0",
        controller_base: 0x1004_0000,
        gpio: &[GpioSpec { kind: &sifive_gpio::KIND, name: "GPIO", base: 0x1006_0000 }],
        cs: &[
            CsSpec::gpio("GPIO11", 0, 11),
            // SPI0 has this one line.
            CsSpec::native("SPI0_SS0", 0),
        ],
        chips: &[&FlashSpec { cs: 1, part: Part::w25q256jv }],
    },
    BoardSpec {
        name: "zynq",
        title: "Avnet ZedBoard (Zynq-7020), SPI1 on connector JE with a 4 MiB W25Q32JV flash",
        profile: Profile::ZYNQ,
        kind: &cadence::KIND,
        controller: "SPI1",
        controller_base: 0xe000_7000,
        gpio: &[GpioSpec { kind: &zynq_gpio::KIND, name: "MIO", base: 0xe000_a000 }],
        cs: &[
            // JE7, a pin beside the bus.
            CsSpec::gpio("MIO0", 0, 0),
            // JE1, where a Pmod with SPI has its chip select: MIO13. The other two follow: MIO14 and MIO15.
            CsSpec::native_at("SPI1_SS0", 0, 0, 13),
            CsSpec::native_at("SPI1_SS1", 1, 0, 14),
            CsSpec::native_at("SPI1_SS2", 2, 0, 15),
        ],
        chips: &[&FlashSpec { cs: 1, part: Part::w25q32jv }],
    },
];

/// The kinds of controller that [`BOARDS`] have and none of the boards called `names` has: for a test
/// that runs on one board of each kind, and is to fail when a kind is added.
#[must_use]
pub fn kinds_without(names: &[&str]) -> Vec<&'static str> {
    let has = |kind: &ControllerKind| {
        BOARDS.iter().any(|board| *board.kind == *kind && names.contains(&board.name))
    };
    BOARDS.iter().map(|board| board.kind).filter(|kind| !has(kind)).map(|kind| kind.name).collect()
}

/// There is no such board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownBoard {
    /// The name asked for.
    pub name: String,
    /// The board whose name is nearest, if any is near.
    pub near: Option<&'static str>,
}

impl fmt::Display for UnknownBoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no simulated board is called {:?}", self.name)?;
        match self.near {
            Some(near) => write!(f, "; did you mean {near:?}?"),
            None => {
                let names: Vec<&str> = BOARDS.iter().map(|board| board.name).collect();
                write!(f, "; there are {}", names.join(", "))
            }
        }
    }
}

impl std::error::Error for UnknownBoard {}

impl BoardSpec {
    /// The vendor's name of a register block: 0 is the controller, the GPIO banks follow.
    ///
    /// # Panics
    /// If the board has no such block.
    #[must_use]
    pub fn block_name(&self, block: u8) -> &'static str {
        match block.checked_sub(1) {
            None => self.kind.name,
            Some(bank) => self.gpio[usize::from(bank)].kind.name,
        }
    }

    /// The manual's name of the register at `offset` of a block, as [`BoardSpec::block_name`] counts them; `None` where no
    /// name is known.
    ///
    /// # Panics
    /// If the board has no such block.
    #[must_use]
    pub fn register_name(&self, block: u8, offset: u32) -> Option<&'static str> {
        let registers = match block.checked_sub(1) {
            None => self.kind.registers,
            Some(bank) => self.gpio[usize::from(bank)].kind.registers,
        };
        registers.iter().find(|(at, _)| *at == offset).map(|(_, name)| *name)
    }

    /// The board's flash.
    ///
    /// # Panics
    /// If [`BoardSpec::chips`] lists none.
    #[must_use]
    pub fn flash(&self) -> FlashSpec {
        self.chip().expect("every board has a flash")
    }

    /// The board's converter; `None` if it has none.
    #[must_use]
    pub fn adc(&self) -> Option<AdcSpec> {
        self.chip()
    }

    /// The board's CAN controller; `None` if it has none.
    #[must_use]
    pub fn can(&self) -> Option<CanSpec> {
        self.chip()
    }

    /// The board's touch controller; `None` if it has none.
    #[must_use]
    pub fn touch(&self) -> Option<TouchSpec> {
        self.chip()
    }

    /// The board's chip whose row is a `T`; `None` if it has none.
    #[must_use]
    pub fn chip<T: BoardChip + Copy>(&self) -> Option<T> {
        self.chips.iter().find_map(|&chip| (chip as &dyn Any).downcast_ref::<T>()).copied()
    }

    /// The board called `name`.
    ///
    /// # Errors
    /// If there is no such board. The message has the most similar name.
    pub fn find(name: &str) -> Result<&'static Self, UnknownBoard> {
        if let Some(board) = BOARDS.iter().find(|board| board.name == name) {
            return Ok(board);
        }
        let near = BOARDS
            .iter()
            .map(|board| (strsim::jaro_winkler(name, board.name), board.name))
            .filter(|&(likeness, _)| likeness > 0.75)
            .max_by(|(one, _), (other, _)| one.total_cmp(other));
        Err(UnknownBoard { name: name.into(), near: near.map(|(_, name)| name) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second chip of a kind would never be found, and two chips on one line would both answer.
    #[test]
    fn a_boards_chips_have_a_kind_and_a_chip_select_each() {
        for board in &BOARDS {
            let name = board.name;
            assert!(board.chip::<FlashSpec>().is_some(), "{name}");
            let kind = |chip: &dyn BoardChip| (chip as &dyn Any).type_id();
            for (index, &chip) in board.chips.iter().enumerate() {
                assert!(usize::from(chip.cs()) < board.cs.len(), "{name}: {chip:?}");
                for &other in &board.chips[..index] {
                    assert_ne!(chip.cs(), other.cs(), "{name}: one line, two chips");
                    assert_ne!(kind(chip), kind(other), "{name}: two of a kind");
                }
            }
        }
    }

    #[test]
    fn a_kind_that_no_board_has_is_named() {
        assert_eq!(kinds_without(&BOARDS.each_ref().map(|board| board.name)), [""; 0]);
        let other = BOARDS.iter().filter(|board| *board.kind != atmel::KIND);
        let other: Vec<&str> = other.map(|board| board.name).collect();
        assert_eq!(kinds_without(&other), ["Atmel SPI"]);
    }

    #[test]
    fn a_board_is_found_by_its_name_or_its_near_name_told() {
        for board in &BOARDS {
            assert_eq!(BoardSpec::find(board.name).unwrap().name, board.name);
            assert!(board.profile.name == board.name);
            for cs in board.cs {
                if let Driver::Gpio { block, bit } = cs.driver {
                    assert!(usize::from(block) < board.gpio.len() && bit < 32);
                }
            }
        }
        let near = |name| BoardSpec::find(name).unwrap_err().near;
        assert_eq!(near("imx8m"), Some("imx8mp"));
        assert_eq!(near("sabrelight"), Some("sabrelite"));
        assert_eq!(near("zzz"), None);
        assert_eq!(near(""), None);
        let told = BoardSpec::find("zzz").unwrap_err().to_string();
        let start =
            "no simulated board is called \"zzz\"; there are beaglebone, highbank, imx6dl, ";
        assert!(told.starts_with(start), "{told}");
        assert!(BOARDS.iter().all(|board| told.contains(board.name)), "{told}");
    }
}
