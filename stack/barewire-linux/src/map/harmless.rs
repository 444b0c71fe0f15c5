//! Accesses of a block without any effect, to time them.
//!
//! *Read first*: the block's manual, on the registers named in the `FACTS` of its module.
//!
//! A write that must change nothing is one of three kinds: zeros to a register in which a one does something (sets a pin,
//! disables or clears an interrupt), a masked write whose mask has no pin, or what was read from the same register before.

use super::block::Block;
use super::mapped::Mapped;
use crate::sys::MappedRegisters;

/// A register's name in the manual and its offset in bytes.
type At = (&'static str, u32);

/// A read and a write of a block that have no effect while the block is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Harmless {
    /// A register that may be read at any time: its name in the manual, and its offset in bytes.
    pub read: (&'static str, u32),
    /// The register to write.
    pub write: (&'static str, u32),
    /// What is written there; `None` is what was read there.
    pub value: Option<u32>,
}

impl Harmless {
    /// A write of `value`.
    pub(super) const fn new(read: At, write: At, value: u32) -> Self {
        Self { read, write, value: Some(value) }
    }

    /// A write of what is read.
    pub(super) const fn rewriting(read: At, write: At) -> Self {
        Self { read, write, value: None }
    }
}

impl Block {
    /// Harmless accesses of the controller, and of the GPIO block of its family.
    #[must_use]
    pub fn harmless(self) -> [Harmless; 2] {
        let facts = self.facts();
        [facts.harmless, facts.bank_harmless]
    }
}

impl Mapped {
    /// The controller's registers, and those of the first GPIO bank that it writes itself: to time
    /// [`Harmless`] accesses before [`Mapped::start`].
    #[must_use]
    pub fn to_time(&mut self) -> (&mut MappedRegisters, Option<&mut MappedRegisters>) {
        (&mut self.parts.registers, self.parts.selects.registers())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_within_their_block() {
        for block in Block::ALL {
            let facts = block.facts();
            for (harmless, len) in
                block.harmless().into_iter().zip([facts.registers_len, facts.bank_len])
            {
                for (name, offset) in [harmless.read, harmless.write] {
                    assert!(offset % 4 == 0 && offset < len, "{block}: {name} at {offset:#x}");
                }
            }
        }
    }
}
