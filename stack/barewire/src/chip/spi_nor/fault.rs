//! How a chip reports that a program or an erase failed, and how the driver reacts.
//!
//! Read first: S25FL512S datasheet, status register 1 (P_ERR, E_ERR) and CLSR; S25HS-T datasheet, the same and
//! CLPEF; MT25Q datasheet, flag status register.
//!
//! Most parts tell nothing: If WEL stays set, the command was ignored; reading back confirms it.

use super::opcode::{CLFSR, CLPEF, CLSR};

/// Spansion's status register 1: an erase failed, a program failed. BUSY stays set with them.
const E_ERR: u8 = 1 << 5;
const P_ERR: u8 = 1 << 6;
/// Both.
pub(super) const ERRORS: u8 = E_ERR | P_ERR;

/// The flag status register: ready, erase failed, program failed, the place is protected.
const FSR_READY: u8 = 1 << 7;
const FSR_ERASE: u8 = 1 << 5;
const FSR_PROGRAM: u8 = 1 << 4;
const FSR_VPP: u8 = 1 << 3;
const FSR_PROTECTED: u8 = 1 << 1;
const FSR_ERRORS: u8 = FSR_ERASE | FSR_PROGRAM | FSR_VPP | FSR_PROTECTED;

/// How a chip reports failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Report {
    /// It does not report failures.
    None,
    /// Bits 5 (erase) and 6 (program) of status register 1, until 30h clears them (Spansion).
    StatusBits,
    /// The same, until 82h clears them (Infineon's later families).
    StatusBitsClpef,
    /// The flag status register, which must be read after each change (Micron).
    FlagStatus,
}

/// The operation that a chip failed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Operation {
    /// A program.
    Program,
    /// An erase.
    Erase,
    /// A change of a place that is protected.
    Protected,
}

impl core::fmt::Display for Operation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Operation::Program => "programming",
            Operation::Erase => "erasing",
            Operation::Protected => "changing a protected place",
        })
    }
}

impl Report {
    /// The bits of status register 1 that report a failure.
    pub(super) const fn status_bits(self) -> u8 {
        match self {
            Report::StatusBits | Report::StatusBitsClpef => ERRORS,
            Report::None | Report::FlagStatus => 0,
        }
    }

    /// The failed operation in a status with one of those bits.
    pub(super) const fn failed(self, status: u8) -> Option<Operation> {
        match status & self.status_bits() {
            0 => None,
            bits if bits & P_ERR != 0 => Some(Operation::Program),
            _ => Some(Operation::Erase),
        }
    }

    /// The command that clears the error bits.
    pub(super) const fn clear(self) -> Option<u8> {
        match self {
            Report::None => None,
            Report::StatusBits => Some(CLSR),
            Report::StatusBitsClpef => Some(CLPEF),
            Report::FlagStatus => Some(CLFSR),
        }
    }
}

/// The state that the flag status register reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flags {
    /// Ready, or no such register answers.
    Good,
    Busy,
    Failed(Operation),
}

impl Flags {
    pub(super) fn of(flags: u8) -> Self {
        match flags {
            // No answer: MISO is idle.
            0 | 0xff => Flags::Good,
            _ if flags & FSR_READY == 0 => Flags::Busy,
            _ if flags & FSR_ERRORS == 0 => Flags::Good,
            _ if flags & FSR_PROTECTED != 0 => Flags::Failed(Operation::Protected),
            _ if flags & FSR_ERASE != 0 => Flags::Failed(Operation::Erase),
            _ => Flags::Failed(Operation::Program),
        }
    }
}
