//! The chips that boards have behind their chip selects: a row's type, and how a board attaches it.
//!
//! # How it works
//! Each chip has a file: the type of its row, which a [`ChipSpec`] of a [`BoardSpec`](super::BoardSpec) holds, and
//! the methods of [`Board`](super::Board) that build the model and put it behind the chip select. A method without
//! a row takes the board's first chip of that type.

mod adc;
mod can;
mod display;
mod flash;
mod leds;
mod touch;

pub use adc::AdcSpec;
pub use can::CanSpec;
pub use display::DisplaySpec;
pub use flash::FlashSpec;
pub use leds::LedsSpec;
pub use touch::TouchSpec;

/// A chip on a board.
#[derive(Clone, Debug)]
pub enum ChipSpec {
    /// NOR flash.
    Flash(FlashSpec),
    /// A converter.
    Adc(AdcSpec),
    /// A CAN controller.
    Can(CanSpec),
    /// A touch controller.
    Touch(TouchSpec),
    /// A display.
    Display(DisplaySpec),
    /// LED drivers.
    Leds(LedsSpec),
    /// A wire from MOSI to MISO, at this chip select.
    Jumper(u8),
}

impl ChipSpec {
    /// Its chip select.
    #[must_use]
    pub fn cs(&self) -> u8 {
        match self {
            Self::Flash(row) => row.cs,
            Self::Adc(row) => row.cs,
            Self::Can(row) => row.cs,
            Self::Touch(row) => row.cs,
            Self::Display(row) => row.cs,
            Self::Leds(row) => row.cs,
            Self::Jumper(cs) => *cs,
        }
    }

    /// The row, if it is a flash.
    #[must_use]
    pub fn flash(&self) -> Option<FlashSpec> {
        if let Self::Flash(row) = self { Some(*row) } else { None }
    }

    /// The row, if it is a converter.
    #[must_use]
    pub fn adc(&self) -> Option<AdcSpec> {
        if let Self::Adc(row) = self { Some(*row) } else { None }
    }

    /// The row, if it is a CAN controller.
    #[must_use]
    pub fn can(&self) -> Option<CanSpec> {
        if let Self::Can(row) = self { Some(*row) } else { None }
    }

    /// The row, if it is a touch controller.
    #[must_use]
    pub fn touch(&self) -> Option<TouchSpec> {
        if let Self::Touch(row) = self { Some(*row) } else { None }
    }
}
