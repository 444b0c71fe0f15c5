//! SPI modes and their flags, under Linux's names.

use core::fmt;
use core::ops::BitOr;

/// Clock polarity and phase, and the flags that Linux keeps with them.
///
/// The bits are those of Linux's `SPI_*` flags, so a mode read from spidev can be used unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Mode(u8);

/// Clock idles low, data sampled on the leading edge.
pub const MODE_0: Mode = Mode(0);
/// Clock idles low, data sampled on the trailing edge.
pub const MODE_1: Mode = Mode::CPHA;
/// Clock idles high, data sampled on the leading edge.
pub const MODE_2: Mode = Mode::CPOL;
/// Clock idles high, data sampled on the trailing edge.
pub const MODE_3: Mode = Mode(Mode::CPHA.0 | Mode::CPOL.0);

impl Mode {
    /// Clock phase: data is sampled on the trailing edge.
    pub const CPHA: Mode = Mode(0x01);
    /// Clock polarity: the clock idles high.
    pub const CPOL: Mode = Mode(0x02);
    /// Chip select is active high.
    pub const CS_HIGH: Mode = Mode(0x04);
    /// Words are sent least significant bit first.
    pub const LSB_FIRST: Mode = Mode(0x08);
    /// Loopback: the controller receives what it sends, for self-test.
    pub const LOOP: Mode = Mode(0x20);
    /// No chip select: the settings' `chip_select` is ignored, and no chip's line moves. The caller
    /// selects the chip, if that is necessary.
    pub const NO_CS: Mode = Mode(0x40);

    /// Whether every flag of `flags` is set.
    #[must_use]
    pub const fn contains(self, flags: Mode) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Its bits as Linux's `SPI_*` flags.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The mode number, 0 to 3, from clock polarity and phase only.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0 & 3
    }

    /// MODE_`number`, or `None` above 3.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Mode> {
        if number < 4 { Some(Mode(number)) } else { None }
    }
}

impl BitOr for Mode {
    type Output = Mode;

    fn bitor(self, other: Mode) -> Mode {
        Mode(self.0 | other.0)
    }
}

/// The flags beside polarity and phase, as they are shown behind these.
const SHOWN: [(Mode, &str); 4] = [
    (Mode::CS_HIGH, " | CS_HIGH"),
    (Mode::LSB_FIRST, " | LSB_FIRST"),
    (Mode::LOOP, " | LOOP"),
    (Mode::NO_CS, " | NO_CS"),
];

#[cfg(feature = "defmt")]
impl defmt::Format for Mode {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "MODE_{=u8}", self.number());
        for (flag, name) in SHOWN {
            if self.contains(flag) {
                defmt::write!(f, "{=str}", name);
            }
        }
    }
}

impl fmt::Debug for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MODE_{}", self.number())?;
        for (flag, name) in SHOWN {
            if self.contains(flag) {
                f.write_str(name)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn numbers_and_flags_are_apart() {
        for number in 0..4 {
            let mode = Mode::from_number(number).expect("0 to 3 are modes") | Mode::CS_HIGH;
            assert_eq!(mode.number(), number);
            assert_eq!(mode.contains(Mode::CPOL), number >= 2);
            assert_eq!(mode.contains(Mode::CPHA), number % 2 == 1);
        }
        assert_eq!(Mode::from_number(4), None);
        assert_eq!(format!("{:?}", MODE_3 | Mode::LOOP), "MODE_3 | LOOP");
        assert_eq!(format!("{:?}", MODE_0 | Mode::NO_CS), "MODE_0 | NO_CS");
    }
}
