//! Decodes a descriptor: the eight bytes of a table entry.
//!
//! *Read first*: Arm ARM DDI 0487, D8.3 (formats), D8.4 (access), D8.6 (memory types).
//!
//! Hardware ignores or tolerates some encodings that software should not write: reserved bits, or a
//! block at a level that has none. Here each of these is a [`Flaw`].

use barewire_iommu::{Access, MemoryType, Shareability, Stage};

use crate::shape::Shape;

/// The decoded permissions and memory type of a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Meaning {
    /// A device may read.
    pub read: bool,
    /// A device may write.
    pub write: bool,
    /// The memory type.
    pub memory: MemoryType,
    /// The shareability.
    pub shareability: Shareability,
}

/// The bytes of 16 pages of 4 KiB that have the Contiguous hint (D8.7.1).
pub(crate) const GROUP: u64 = 16 << 12;

/// A leaf: the translation at the end of a walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// The first input address.
    pub iova: u64,
    /// The level of its table.
    pub level: u32,
    /// Its length in bytes.
    pub len: u64,
    /// The first output address.
    pub output: u64,
    /// The permissions and memory type.
    pub meaning: Meaning,
    /// The Contiguous hint: this and its neighbours, 16 pages of 4 KiB, may be one entry of a TLB.
    pub contiguous: bool,
    /// Not tagged with an ASID: nG is clear, at stage 1.
    pub global: bool,
    /// The descriptor.
    pub raw: u64,
}

impl Leaf {
    /// The first input address after it.
    pub fn end(&self) -> u64 {
        self.iova + self.len
    }

    /// The entry that a TLB may keep for it: a page with the Contiguous hint stands for its group.
    pub fn widened(&self) -> Self {
        if !self.contiguous {
            return *self;
        }
        let offset = self.iova % GROUP;
        let (iova, output) = (self.iova - offset, self.output.wrapping_sub(offset));
        Self { iova, output, len: GROUP, raw: self.raw.wrapping_sub(offset), ..*self }
    }

    /// Whether software may replace one by the other under a walker: only the permissions differ.
    pub fn differs_in_permissions(&self, other: &Self) -> bool {
        let meaning =
            Meaning { read: other.meaning.read, write: other.meaning.write, ..self.meaning };
        let place = self.level == other.level
            && self.iova == other.iova
            && !self.contiguous
            && !other.contiguous;
        place && Self { meaning, ..*self }.agrees(other)
    }

    /// Whether both give the same translation for every address that both translate.
    pub fn agrees(&self, other: &Self) -> bool {
        self.meaning == other.meaning
            && self.global == other.global
            && self.output.wrapping_sub(self.iova) == other.output.wrapping_sub(other.iova)
    }
}

/// The kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// Bit 0 is clear.
    Invalid,
    /// The walk continues in the table at this address.
    Table(u64),
    /// The walk ends here.
    Leaf(Leaf),
}

/// Why software should not have written this descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// A block at a level that has none; at level 3, 0b01.
    BlockHere,
    /// These bits are set, although they are reserved or the library does not use them.
    Bits(u64),
    /// The output address is too wide.
    AddressSize(u64),
    /// The access flag is clear.
    AccessFlag,
    /// A memory type that the library does not name.
    Memory,
    /// SH = 0b01.
    Shareability,
    /// Devices may neither read nor write.
    NoAccess,
    /// Devices may execute.
    Executable,
}

/// A bit of a table descriptor that hardware ignores and software may use (D8.3.1). The library
/// sets it in an entry that leads to a table once the entry is clean.
pub(crate) const MARK: u64 = 1 << 55;

/// The entry as far as hardware reads it.
pub(crate) fn to_hardware(level: u32, raw: u64) -> u64 {
    if level < 3 && raw & 0b11 == 0b11 { raw & !MARK } else { raw }
}

/// Bits `low..=high`.
const fn bits(high: u32, low: u32) -> u64 {
    (u64::MAX >> (63 - high)) & (u64::MAX << low)
}

/// Decodes `raw`, an entry in a table of `level` that translates from `iova` on.
///
/// # Errors
/// See [`Flaw`].
pub fn decode(shape: &Shape, mair: u64, level: u32, iova: u64, raw: u64) -> Result<Entry, Flaw> {
    match raw & 0b11 {
        0b00 | 0b10 => Ok(Entry::Invalid),
        0b11 if level < 3 => table(shape, raw).map(Entry::Table),
        0b01 if level == 3 || !shape.block_at(level) => Err(Flaw::BlockHere),
        _ => leaf(shape, mair, level, iova, raw).map(Entry::Leaf),
    }
}

fn table(shape: &Shape, raw: u64) -> Result<u64, Flaw> {
    let address = raw & bits(47, shape.page_shift());
    let rest = raw & !address & !0b11 & !MARK;
    if rest != 0 {
        return Err(Flaw::Bits(rest));
    }
    below(shape, address)
}

fn below(shape: &Shape, address: u64) -> Result<u64, Flaw> {
    if address >> shape.output_bits != 0 {
        return Err(Flaw::AddressSize(address));
    }
    Ok(address)
}

fn leaf(shape: &Shape, mair: u64, level: u32, iova: u64, raw: u64) -> Result<Leaf, Flaw> {
    let output = below(shape, raw & bits(47, shape.shift(level)))?;
    // Bits between the lower attributes and the address, and bits that no attribute uses:
    // Contiguous (52) but for pages of 4 KiB, DBM (51), GP (50), software's bits (55 to 58), PBHA and the
    // hierarchical bits (59 to 63).
    let hint = if level == 3 && shape.page_shift() == 12 { bits(52, 52) } else { 0 };
    let unused = raw & (bits(shape.shift(level) - 1, 12) | bits(52, 48) & !hint | bits(63, 55));
    if unused != 0 {
        return Err(Flaw::Bits(unused));
    }
    if raw & bits(10, 10) == 0 {
        return Err(Flaw::AccessFlag);
    }
    let (read, write, memory) = match shape.stage {
        Stage::One => stage_1(mair, raw)?,
        Stage::Two => stage_2(raw)?,
    };
    if !read && !write {
        return Err(Flaw::NoAccess);
    }
    let shareability = match raw >> 8 & 0b11 {
        0b00 => Shareability::Non,
        0b10 => Shareability::Outer,
        0b11 => Shareability::Inner,
        _ => return Err(Flaw::Shareability),
    };
    let meaning = Meaning { read, write, memory, shareability };
    let global = shape.stage == Stage::One && raw & bits(11, 11) == 0;
    let contiguous = raw & hint != 0;
    Ok(Leaf { iova, level, len: shape.span(level), output, meaning, contiguous, global, raw })
}

/// AttrIndx 4:2, NS 5, AP 7:6, PXN 53, UXN 54.
fn stage_1(mair: u64, raw: u64) -> Result<(bool, bool, MemoryType), Flaw> {
    if raw & bits(5, 5) != 0 {
        return Err(Flaw::Bits(bits(5, 5)));
    }
    if raw & bits(54, 53) != bits(54, 53) {
        return Err(Flaw::Executable);
    }
    // A byte of MAIR for each index: 0xff is write-back both ways with allocation, 0x44
    // non-cacheable, 0x04 Device-nGnRE.
    let memory = match mair >> (8 * (raw >> 2 & 0b111)) & 0xff {
        0xff => MemoryType::NormalWriteBack,
        0x44 => MemoryType::NormalNonCacheable,
        0x04 => MemoryType::DeviceNGnRE,
        _ => return Err(Flaw::Memory),
    };
    // A device's accesses are unprivileged unless configured otherwise.
    let (read, write) = match raw >> 6 & 0b11 {
        0b01 => (true, true),
        0b11 => (true, false),
        _ => (false, false),
    };
    Ok((read, write, memory))
}

/// MemAttr 5:2, S2AP 7:6, XN 54:53.
fn stage_2(raw: u64) -> Result<(bool, bool, MemoryType), Flaw> {
    if raw & bits(11, 11) != 0 {
        return Err(Flaw::Bits(bits(11, 11)));
    }
    // 54:53 = 0b10 forbids execution, with FEAT_XNX and without.
    if raw & bits(54, 53) != bits(54, 54) {
        return Err(Flaw::Executable);
    }
    let memory = match raw >> 2 & 0b1111 {
        0b1111 => MemoryType::NormalWriteBack,
        0b0101 => MemoryType::NormalNonCacheable,
        0b0001 => MemoryType::DeviceNGnRE,
        _ => return Err(Flaw::Memory),
    };
    Ok((raw & bits(6, 6) != 0, raw & bits(7, 7) != 0, memory))
}

impl Meaning {
    /// The meaning of the library's attributes.
    pub fn new(
        stage: Stage,
        access: Access,
        memory: MemoryType,
        shareability: Shareability,
    ) -> Self {
        // Stage 1 has no encoding for write only.
        let read = access != Access::Write || stage == Stage::One;
        Self { read, write: access != Access::Read, memory, shareability }
    }

    /// Normal memory, inner shareable.
    pub fn normal(stage: Stage, access: Access) -> Self {
        Self::new(stage, access, MemoryType::NormalWriteBack, Shareability::Inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barewire_iommu::{Attributes, Config, Granule};

    fn shape(granule: Granule, stage: Stage) -> Shape {
        Shape::new(&Config { granule, stage, ..Config::default() })
    }

    /// The walker reads every combination of attributes as the library named it.
    #[test]
    fn attributes_mean_what_they_are_named() {
        let mut meanings = 0;
        for stage in [Stage::One, Stage::Two] {
            let shape = shape(Granule::Size4K, stage);
            for access in [Access::Read, Access::ReadWrite, Access::Write] {
                for memory in [
                    MemoryType::NormalWriteBack,
                    MemoryType::NormalNonCacheable,
                    MemoryType::DeviceNGnRE,
                ] {
                    for sh in [Shareability::Non, Shareability::Outer, Shareability::Inner] {
                        let raw = Attributes::with(stage, access, memory, sh).bits() | 0x5000 | 3;
                        let entry = decode(&shape, Attributes::MAIR, 3, 0, raw);
                        let Ok(Entry::Leaf(leaf)) = entry else { panic!("{entry:?}") };
                        assert_eq!(leaf.meaning, Meaning::new(stage, access, memory, sh));
                        assert!(!leaf.global);
                        assert_eq!(leaf.output, 0x5000);
                        meanings += 1;
                    }
                }
            }
        }
        assert_eq!(meanings, 54);
    }

    #[test]
    fn what_nobody_should_write_is_a_flaw() {
        let one = shape(Granule::Size4K, Stage::One);
        let good = Attributes::new(Stage::One, Access::ReadWrite).bits();
        let at = |level, raw| decode(&one, Attributes::MAIR, level, 0, raw);
        assert_eq!(at(3, good | 0x1000), Ok(Entry::Invalid));
        assert_eq!(at(3, good | 0x1002), Ok(Entry::Invalid));
        assert_eq!(at(3, good | 0x1001), Err(Flaw::BlockHere));
        assert_eq!(at(0, good | 1), Err(Flaw::BlockHere));
        assert!(matches!(at(1, good | 1), Ok(Entry::Leaf(leaf)) if leaf.len == 1 << 30));
        assert!(matches!(at(2, good | 1), Ok(Entry::Leaf(leaf)) if leaf.len == 1 << 21));
        assert_eq!(at(2, good | 0x1001), Err(Flaw::Bits(0x1000)), "a block's address is aligned");
        assert_eq!(at(2, 0x1003), Ok(Entry::Table(0x1000)));
        assert_eq!(at(2, 0x1003 | 1 << 63), Err(Flaw::Bits(1 << 63)));
        assert_eq!(at(2, 0x1003 | MARK), Ok(Entry::Table(0x1000)), "hardware ignores it");
        assert_eq!(at(2, good | 1 | MARK), Err(Flaw::Bits(MARK)), "a mark is for tables");
        assert_eq!(at(3, good | 3 | MARK), Err(Flaw::Bits(MARK)), "a mark is for tables");
        assert_eq!(at(3, (good & !(1 << 10)) | 3), Err(Flaw::AccessFlag));
        assert_eq!(at(3, (good & !(1 << 54)) | 3), Err(Flaw::Executable));
        assert_eq!(at(3, (good & !(1 << 6)) | 3), Err(Flaw::NoAccess));
        assert_eq!(at(3, (good & !(1 << 9)) | 3), Err(Flaw::Shareability));
        assert_eq!(at(3, good | 3 << 2 | 3), Err(Flaw::Memory));
        assert!(matches!(at(3, good | 1 << 52 | 3), Ok(Entry::Leaf(leaf)) if leaf.contiguous));
        assert_eq!(at(2, good | 1 << 52 | 1), Err(Flaw::Bits(1 << 52)));
        let small = Shape::new(&Config { output_bits: 32, ..Config::default() });
        let far = decode(&small, Attributes::MAIR, 3, 0, good | 1 << 32 | 3);
        assert_eq!(far, Err(Flaw::AddressSize(1 << 32)));
        let wide = shape(Granule::Size64K, Stage::One);
        assert_eq!(decode(&wide, 0, 1, 0, good | 1), Err(Flaw::BlockHere));
        let hint = decode(&wide, Attributes::MAIR, 3, 0, good | 1 << 52 | 3);
        assert_eq!(hint, Err(Flaw::Bits(1 << 52)));
        assert_eq!(decode(&wide, 0, 2, 0, 0x1_1003), Err(Flaw::Bits(0x1000)));
    }
}
