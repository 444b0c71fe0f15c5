//! The form in which status registers are written.
//!
//! Read first: JESD216B, BFPT word 15, bits 22 to 20 (quad enable requirement).

/// How status registers 1 and 2 are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum StatusForm {
    /// 01h with one byte. There is no second register at 35h.
    One,
    /// 01h with two bytes. With one the second register may be cleared.
    Both,
    /// 01h and 31h with one byte each.
    Separate,
    /// Not known: write both bytes in one command, and if the chip ignores that, each by its own.
    Unknown,
    /// 50h instead of 06h, then 01h with one byte: a volatile register.
    Volatile,
}

impl StatusForm {
    /// The form that a quad enable requirement implies; `None` if there is no requirement or a
    /// reserved one.
    pub(super) const fn of_requirement(requirement: Option<u8>) -> Self {
        match requirement {
            // QE is bit 6 of register 1; bit 7 of a register that is read by 3Fh; or there is none.
            Some(0 | 2 | 3) => StatusForm::One,
            // QE is bit 1 of register 2. With 001b a one-byte write clears the second register;
            // with 100b it does not.
            Some(1 | 4 | 5) => StatusForm::Both,
            Some(6) => StatusForm::Separate,
            _ => StatusForm::Unknown,
        }
    }

    /// Whether there is a register 2 at 35h.
    pub(super) const fn has_second(self) -> bool {
        matches!(self, StatusForm::Both | StatusForm::Separate | StatusForm::Unknown)
    }
}
