//! A simulated board, as data: the shipped ones and a user's own are read from [files](super::file).
//!
//! The number of a chip select is its place in [`BoardSpec::cs`]: the user's number, whatever the
//! controller or Linux call the line.

use super::Pad;
pub use super::chips::{AdcSpec, CanSpec, ChipSpec, DisplaySpec, FlashSpec, LedsSpec, TouchSpec};
use crate::model::gpio::{atmel_pio, bcm2835 as bcm2835_gpio, imx, omap, pl061, rp1};
pub use crate::model::{ControllerKind, gpio::GpioKind};
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
    /// The program moves the line, at its pad: the controller has no line for this chip select.
    pub by_program: bool,
}

impl CsSpec {
    /// An active-low chip select on a GPIO.
    #[must_use]
    pub const fn gpio(name: &'static str, block: u8, bit: u8) -> Self {
        let (driver, pad) = (Driver::Gpio { block, bit }, Some(Pad { block, bit }));
        Self { name, driver, active_high: false, pad, by_program: false }
    }

    /// An active-low line of the controller's own.
    #[must_use]
    pub const fn native(name: &'static str, line: u8) -> Self {
        Self {
            name,
            driver: Driver::Native(line),
            active_high: false,
            pad: None,
            by_program: false,
        }
    }

    /// An active-low line of the controller's own, at a pad that a GPIO block can have instead.
    #[must_use]
    pub const fn native_at(name: &'static str, line: u8, block: u8, bit: u8) -> Self {
        let pad = Some(Pad { block, bit });
        Self { name, driver: Driver::Native(line), active_high: false, pad, by_program: false }
    }
}

/// A board.
#[derive(Clone, Debug)]
pub struct BoardSpec {
    /// The name after `sim:`. A user's board has its file's path.
    pub name: &'static str,
    /// The shipped board whose pins and controller a user's board has.
    pub like: Option<&'static str>,
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
    /// The controller has no chip select lines at all: their pads are the program's.
    pub no_cs: bool,
    /// The chips behind its chip selects, in any order, at most one behind each.
    pub chips: &'static [ChipSpec],
    /// Wires from a pad to another, which follows it.
    pub wires: &'static [(Pad, Pad)],
}

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

    /// The board's flash, the first if it has several.
    ///
    /// # Panics
    /// If it has none. Every shipped board has one; a user's board may have none: [`BoardSpec::first_flash`].
    #[must_use]
    pub fn flash(&self) -> FlashSpec {
        self.first_flash().expect("every shipped board has a flash")
    }

    /// The board's flash, the first if it has several; `None` if it has none.
    #[must_use]
    pub fn first_flash(&self) -> Option<FlashSpec> {
        self.chips.iter().find_map(ChipSpec::flash)
    }

    /// The board's converter, the first if it has several; `None` if it has none.
    #[must_use]
    pub fn adc(&self) -> Option<AdcSpec> {
        self.chips.iter().find_map(ChipSpec::adc)
    }

    /// The board's CAN controller, the first if it has several; `None` if it has none.
    #[must_use]
    pub fn can(&self) -> Option<CanSpec> {
        self.chips.iter().find_map(ChipSpec::can)
    }

    /// The board's touch controller, the first if it has several; `None` if it has none.
    #[must_use]
    pub fn touch(&self) -> Option<TouchSpec> {
        self.chips.iter().find_map(ChipSpec::touch)
    }

    /// The chip behind chip select `cs`; `None` if there is none.
    #[must_use]
    pub fn chip_at(&self, cs: u8) -> Option<&'static ChipSpec> {
        self.chips.iter().find(|chip| chip.cs() == cs)
    }
}
