//! Notes on a chip for its user, besides the description: contradictions, unknowns, and actions of the driver.

use core::fmt;

/// One note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Note {
    /// SFDP and the id's capacity byte give different sizes, in bytes. SFDP's is used.
    Density {
        /// SFDP's.
        sfdp: u64,
        /// The id's.
        id: u64,
    },
    /// SFDP names larger pages than are used. Some parts wrap at 256 bytes unless they are configured (S25FS-S
    /// datasheet, CR3V).
    Page {
        /// SFDP's, in bytes.
        sfdp: u32,
        /// The page size in use.
        used: u32,
    },
    /// Two erase types have one opcode, and nothing says which of them holds: neither is used.
    SharedOpcode {
        /// The opcode.
        opcode: u8,
        /// The smaller size, in bytes.
        smaller: u32,
        /// The larger size.
        larger: u32,
    },
    /// The chip has a sector map that the driver cannot follow: its erase types are not used.
    SectorMap,
    /// Addresses above this many bytes are out of reach: no way into 4-byte mode and out of it is known.
    Reach {
        /// The bytes within reach.
        reach: u64,
    },
    /// The chip was in 4-byte mode when it was opened, and was brought back.
    WasInFourByteMode,
    /// The chip was in 4-byte mode when it was opened, and stays there.
    StaysInFourByteMode,
    /// The driver does not know which bits of the status register protect. Any of them counts.
    ProtectionUnknown,
    /// The protection that the chip sets at power-up was opened.
    LockOpened,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Note::Density { sfdp, id } => write!(
                f,
                "SFDP gives a size of {sfdp} bytes, the id's capacity byte one of {id}: SFDP's is used unless another is given"
            ),
            Note::Page { sfdp, used } => write!(
                f,
                "SFDP names pages of {sfdp} bytes: {used} are used, since some such parts wrap there"
            ),
            Note::SharedOpcode { opcode, smaller, larger } => write!(
                f,
                "SFDP names blocks of {smaller} and of {larger} bytes by one opcode, {opcode:02X}h, and does not say where each holds: neither is used unless one is given"
            ),
            Note::SectorMap => f.write_str(
                "the chip's sector map does not say which of its maps holds: no erase type is used unless a size is given",
            ),
            Note::Reach { reach } => write!(
                f,
                "no way into 4-byte mode and out of it is known: addresses from {reach:#x} on are out of reach unless one is given"
            ),
            Note::WasInFourByteMode => {
                f.write_str("the chip was in 4-byte mode and was brought back to 3-byte mode")
            }
            Note::StaysInFourByteMode => f.write_str(
                "the chip is in 4-byte mode and stays there: a boot ROM that reads with 3-byte addresses fails until its power is cycled",
            ),
            Note::ProtectionUnknown => f.write_str(
                "which status bits protect is not known for this chip: any of bits 6 to 2 counts, and none is cleared unless a layout is given",
            ),
            Note::LockOpened => {
                f.write_str("the protection that the chip sets at power-up was opened (until the next power-up)")
            }
        }
    }
}

/// The most notes on a chip.
const NOTES_MAX: usize = 10;

/// The notes on a chip, each once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Notes([Option<Note>; NOTES_MAX]);

impl Notes {
    /// In the order in which they were made.
    pub fn iter(&self) -> impl Iterator<Item = Note> + '_ {
        self.0.iter().flatten().copied()
    }

    pub(super) fn add(&mut self, note: Note) {
        if !self.iter().any(|had| had == note) {
            if let Some(free) = self.0.iter_mut().find(|slot| slot.is_none()) {
                *free = Some(note);
            }
        }
    }
}
