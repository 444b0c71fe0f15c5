//! A descriptor's bits (D8.3).

use super::geometry::LAST;
use crate::address::PhysAddr;

const VALID: u64 = 1;
/// Bit 1. Set: a table at levels 0 to 2, a page at level 3. Clear: a block; reserved at level 3.
const TABLE_OR_PAGE: u64 = 1 << 1;
/// The bits of the address, 47 to 12.
const ADDRESS: u64 = 0x0000_ffff_ffff_f000;

/// Bit 52 of a leaf: the Contiguous hint (D8.7.1).
const CONTIGUOUS: u64 = 1 << 52;

/// Bit 55. In a table descriptor bits 58 to 51 are ignored by hardware (D8.3.1).
const MARK: u64 = 1 << 55;

/// Whether the descriptor of a table is [`marked`](Descriptor::marked).
#[derive(Clone, Copy)]
pub(crate) enum Marked {
    No,
    Yes,
    Either,
}

/// An entry of a table, as the walker reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct Descriptor(pub u64);

impl Descriptor {
    /// Not valid: a walk faults here. The value is 0, though any even number is invalid too.
    pub const EMPTY: Self = Self(0);

    /// A descriptor of the table at this address.
    pub const fn table(at: PhysAddr) -> Self {
        Self(at.0 | TABLE_OR_PAGE | VALID)
    }

    /// The same descriptor of a table with bit 55 set, which hardware ignores. The mark says that the
    /// entry is clean: a walker that does not snoop the caches reads it.
    pub const fn marked(self) -> Self {
        Self(self.0 | MARK)
    }

    /// Whether the descriptor of a table is [`marked`](Self::marked).
    pub const fn is_marked(self) -> bool {
        self.0 & MARK != 0
    }

    /// A page (level 3) or block with attribute bits.
    pub const fn leaf(at: PhysAddr, level: u32, attributes: u64) -> Self {
        Self(at.0 | attributes | Self::leaf_type(level))
    }

    /// The two type bits of a leaf at `level`.
    pub const fn leaf_type(level: u32) -> u64 {
        if level == LAST { TABLE_OR_PAGE | VALID } else { VALID }
    }

    /// All bits but address, type and the Contiguous hint, as a mask.
    pub(crate) const ATTRIBUTES: u64 = !(ADDRESS | TABLE_OR_PAGE | VALID | CONTIGUOUS);

    /// The same leaf with the Contiguous hint: 16 of them may be one entry of a TLB.
    pub(crate) const fn with_hint(self) -> Self {
        Self(self.0 | CONTIGUOUS)
    }

    /// The same leaf without the Contiguous hint.
    pub(crate) const fn without_hint(self) -> Self {
        Self(self.0 & !CONTIGUOUS)
    }

    /// Whether a leaf has the Contiguous hint.
    pub const fn is_contiguous(self) -> bool {
        self.0 & CONTIGUOUS != 0
    }

    /// The same leaf, not valid. The walker ignores its other bits.
    pub(crate) const fn broken(self) -> Self {
        Self(self.0 & !VALID)
    }

    /// The leaf that was [`broken`](Self::broken).
    pub(crate) const fn mended(self) -> Self {
        Self(self.0 | VALID)
    }

    /// Whether a walk does not fault here.
    pub const fn is_valid(self) -> bool {
        self.0 & VALID != 0
    }

    /// Whether the walk continues in another table.
    pub const fn is_table(self, level: u32) -> bool {
        level != LAST && self.0 & (TABLE_OR_PAGE | VALID) == TABLE_OR_PAGE | VALID
    }

    /// The table that this descriptor leads to, if it says nothing else. It is one above the last level.
    #[inline(always)]
    pub(crate) const fn plain_table(self, mark: Marked) -> Option<PhysAddr> {
        let (set, ignored) = match mark {
            Marked::No => (0, 0),
            Marked::Yes => (MARK, 0),
            Marked::Either => (0, MARK),
        };
        // What is left has bits of an address only: one test, and no mask before the next load.
        let left = self.0.wrapping_sub(set | TABLE_OR_PAGE | VALID);
        if left & !(ADDRESS | ignored) == 0 { Some(PhysAddr(left & !ignored)) } else { None }
    }

    /// Whether the walk ends here with an address.
    pub const fn is_leaf(self, level: u32) -> bool {
        self.0 & (TABLE_OR_PAGE | VALID) == Self::leaf_type(level)
    }

    /// The address of a table, or of a leaf whose span is at least a page of 4 KiB.
    pub const fn address(self) -> PhysAddr {
        PhysAddr(self.0 & ADDRESS)
    }

    /// All bits but address, type and the Contiguous hint.
    pub const fn attributes(self) -> u64 {
        self.0 & Self::ATTRIBUTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plain table is what the two questions of a walk, and its address, say it is.
    #[test]
    fn a_plain_table_has_an_address_and_nothing_else() {
        let at = PhysAddr(0x0000_8765_4321_f000);
        let table = Descriptor::table(at);
        let marks = [Marked::No, Marked::Yes, Marked::Either];
        let found = |table: Descriptor| marks.map(|mark| table.plain_table(mark));
        assert_eq!(found(table), [Some(at), None, Some(at)]);
        assert_eq!(found(table.marked()), [None, Some(at), Some(at)]);
        assert_eq!(
            found(Descriptor::table(PhysAddr(0))),
            [Some(PhysAddr(0)), None, Some(PhysAddr(0))]
        );
        for other in [0, 1, 2, at.0, at.0 | 1, at.0 | 2] {
            assert_eq!(found(Descriptor(other)), [None; 3], "{other:#x} is no table");
        }
        for bit in (2..12).chain(48..64).filter(|bit| 1 << bit != MARK) {
            assert_eq!(found(Descriptor(table.0 | 1 << bit)), [None; 3], "bit {bit} says more");
            assert_eq!(found(Descriptor(table.marked().0 | 1 << bit)), [None; 3], "bit {bit}");
        }
    }
}
