//! The control byte, and the 16 bits after it.

use super::TouchError;

/// PD1 and PD0: converter and drivers are off between conversions, and PENIRQ works.
pub(super) const POWER_DOWN: u8 = 0b00;
/// The converter stays on, for positions also the drivers; the reference is off.
pub(super) const CONVERTER_ON: u8 = 0b01;
/// The reference stays on too.
pub(super) const ALL_ON: u8 = 0b11;

const START: u8 = 1 << 7;
/// SER/DFR: measured against the reference.
const SINGLE_ENDED: u8 = 1 << 2;

/// A value measured against the driven plate: A2 to A0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    Y = 0b001,
    Z1 = 0b011,
    Z2 = 0b100,
    X = 0b101,
}

impl Position {
    pub(super) const fn control(self, power: u8) -> u8 {
        START | (self as u8) << 4 | power
    }
}

/// An input measured against the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Aux {
    /// A diode: about 600 mV at 25 °C, 2.1 mV less per kelvin.
    Temp0 = 0b000,
    /// VBAT, divided by four.
    Battery = 0b010,
    /// AUX.
    Auxiliary = 0b110,
    /// The diode at 91 times the current.
    Temp1 = 0b111,
}

impl Aux {
    pub(super) const fn control(self, power: u8) -> u8 {
        START | (self as u8) << 4 | SINGLE_ENDED | power
    }
}

/// The 16 bits after the control byte of conversion `index`.
pub(super) fn word(received: &[u8], index: usize) -> u16 {
    u16::from_be_bytes([received[2 * index + 1], received[2 * index + 2]])
}

/// The bit during BUSY and the three after the code, which must be zero.
const FRAME: u16 = 0x8007;

/// The code in a word; `NoChip` if a bit is set that must be zero.
pub(super) fn code(word: u16) -> Result<u16, TouchError> {
    match word & FRAME {
        0 => Ok(word >> 3),
        _ => Err(TouchError::NoChip { received: word }),
    }
}
