//! Where a part keeps its protection and status bits, and what its erase commands reach.
//!
//! Read first: the datasheets named in each vendor's file, their tables of block protection and of sectors.

use core::ops::Range;

use super::{KIB, Part, Span};

/// A bit of status register 1 (0) or 2 (1). A mask of 0 is a bit that the part has not.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Bit {
    pub(in super::super) register: usize,
    pub(in super::super) mask: u8,
}

impl Bit {
    pub(super) const NONE: Self = Self { register: 0, mask: 0 };

    pub(super) const fn new(register: usize, bit: u8) -> Self {
        Self { register, mask: 1 << bit }
    }

    fn is_set(self, status: [u8; 2]) -> bool {
        status[self.register] & self.mask != 0
    }
}

/// The writable bits of the status registers, and their initial values.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct StatusLayout {
    /// Bits of registers 1 to 3 that commands write.
    pub(in super::super) writable: [u8; 3],
    /// Bits of register 2 that can be set but never cleared again.
    pub(in super::super) one_time_2: u8,
    /// Registers 1 to 3 as delivered.
    pub(in super::super) factory: [u8; 3],
    /// The most data bytes of 01h, a register each. A byte more makes the command void.
    pub(in super::super) write_bytes: usize,
    /// 01h with one byte clears register 2 (JESD216, quad enable requirement 001b). Otherwise it is kept.
    pub(in super::super) one_byte_clears_2: bool,
    /// Register 1 is volatile.
    pub(in super::super) volatile_1: bool,
    /// Bits of register 1 that show a busy chip.
    pub(in super::super) busy: u8,
    /// Register 1 shows AAI mode in this bit.
    pub(in super::super) aai_mode: u8,
    /// Register 3 shows 4-byte mode in this bit.
    pub(in super::super) four_byte_mode: u8,
    /// What happens if a command changes a protected range.
    pub(in super::super) refusal: Refusal,
}

/// What happens after protection refused a program or an erase. It changes nothing in either case.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Refusal {
    /// WEL is cleared.
    ClearsWel,
    /// WEL stays set.
    KeepsWel,
    /// Bits of register 1 report it. They stay set, with BUSY and WEL, until they are cleared.
    Errors(ErrorBits),
    /// Bits of the flag status register report it, and WEL stays set.
    Flags,
}

/// The bits of register 1 for each kind of failed operation.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct ErrorBits {
    pub(in super::super) program: u8,
    pub(in super::super) erase: u8,
}

/// How the protection bits select the protected range.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Protection {
    /// The level's bits in status register 1, the lowest first.
    pub(super) level: &'static [u8],
    pub(super) scale: Scale,
    /// The range is at the bottom of the array instead of the top.
    pub(super) bottom: Bit,
    /// The level counts 4 KiB sectors.
    pub(super) sectors: Bit,
    /// All but the range is protected instead.
    pub(super) complement: Bit,
}

/// The range of a level.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scale {
    /// 64 KiB at level 1, twice as much at each level above, until it is the array.
    Blocks,
    /// The array at level 7, half as much at each level below.
    Fraction,
}

impl Protection {
    /// No bits protect.
    pub(super) const NONE: Self = Self::new(&[], Scale::Blocks);
    /// Winbond up to 128 Mbit, GigaDevice and those that follow them: BP2..BP0, TB, SEC, and CMP in register 2.
    pub(super) const SEC_TB_CMP: Self = Self {
        bottom: Bit::new(0, 5),
        sectors: Bit::new(0, 6),
        complement: Bit::new(1, 6),
        ..Self::new(&[2, 3, 4], Scale::Fraction)
    };
    /// Winbond from 256 Mbit, GigaDevice likewise: BP3..BP0, TB, and CMP in register 2.
    pub(super) const TB_CMP: Self = Self {
        bottom: Bit::new(0, 6),
        complement: Bit::new(1, 6),
        ..Self::new(&[2, 3, 4, 5], Scale::Blocks)
    };
    /// Macronix: BP3..BP0, TB in the configuration register. Bit 6 is QE.
    pub(super) const TB_IN_CONFIGURATION: Self =
        Self { bottom: Bit::new(1, 3), ..Self::new(&[2, 3, 4, 5], Scale::Blocks) };
    /// Micron: BP3 at bit 6, above TB.
    pub(super) const BP3_ABOVE_TB: Self =
        Self { bottom: Bit::new(0, 5), ..Self::new(&[2, 3, 4, 6], Scale::Blocks) };
    /// Spansion, Cypress, Infineon: BP2..BP0, TBPROT in the configuration register. Bits 5 and 6 report errors.
    pub(super) const TBPROT: Self =
        Self { bottom: Bit::new(1, 5), ..Self::new(&[2, 3, 4], Scale::Fraction) };

    pub(super) const fn new(level: &'static [u8], scale: Scale) -> Self {
        let none = Bit::NONE;
        Self { level, scale, bottom: none, sectors: none, complement: none }
    }
}

/// Which blocks there are for [`EraseUnit::OfMap`](super::EraseUnit::OfMap).
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum EraseMap {
    /// None: each opcode erases a size of its own.
    Uniform,
    /// Runs of equal blocks from address 0: how many, and how large.
    Runs(&'static [(usize, usize)]),
    /// Equal blocks of this size, and eight 4 KiB sectors laid over the first or the last of them: of that block,
    /// a block erase leaves these sectors as they are. Configuration registers 1 and 3 say where, and whether.
    Parameters(usize),
}

/// The sectors of [`EraseMap::Parameters`], in all.
const PARAMETERS: usize = 32 * KIB;
/// TBPARM of configuration register 1: the sectors are at the top.
const TBPARM: u8 = 1 << 2;
/// Configuration register 3, 20h_NV: there are none.
const UNIFORM: u8 = 1 << 3;
/// Configuration register 3, D8h_NV: a block erase erases 256 KiB.
const LARGE: u8 = 1 << 1;

/// Configuration registers 1 and 3, as [`EraseMap::Parameters`] needs them.
pub(in super::super) type Configuration = [u8; 2];

fn aligned(at: usize, bytes: usize) -> Range<usize> {
    let start = at & !(bytes - 1);
    start..start + bytes
}

impl Part {
    /// The bytes that these values of status registers 1 and 2 protect from program and erase. Locks beside the
    /// status registers are not looked at.
    #[must_use]
    pub fn protected(&self, status_1: u8, status_2: u8) -> Range<usize> {
        const SECTOR: usize = 4 * KIB;
        const SECTORS_MAX: usize = 32 * KIB;
        const BLOCK: usize = 64 * KIB;

        let status = [status_1, status_2];
        let layout = self.protection;
        let bits = (0..).zip(layout.level);
        let level: u32 =
            bits.fold(0, |level, (n, &bit)| level | u32::from(status_1 >> bit & 1) << n);
        let protected = match (layout.scale, level) {
            (_, 0) => 0,
            (_, 1..=6) if layout.sectors.is_set(status) => (SECTOR << (level - 1)).min(SECTORS_MAX),
            (Scale::Blocks, _) => (BLOCK << (level - 1)).min(self.size),
            (Scale::Fraction, _) => self.size >> (7 - level),
        };
        // The complement of a range at one end is a range at the other end.
        match (layout.bottom.is_set(status), layout.complement.is_set(status)) {
            (false, false) => self.size - protected..self.size,
            (false, true) => 0..self.size - protected,
            (true, false) => 0..protected,
            (true, true) => protected..self.size,
        }
    }

    /// The bits of status register 1 that count the protected range. If all are set, they protect
    /// the whole array, or, with CMP set, nothing; 0 if no bits protect.
    #[must_use]
    pub fn level_mask(&self) -> u8 {
        self.protection.level.iter().fold(0, |mask, bit| mask | 1_u8 << bit)
    }

    /// The block of the map at `at`.
    pub(in super::super) fn map_block(&self, at: usize, [cr1, cr3]: Configuration) -> Range<usize> {
        match self.map {
            EraseMap::Uniform => aligned(at, 64 * KIB),
            EraseMap::Runs(runs) => {
                let mut start = 0;
                for &(count, bytes) in runs {
                    let end = start + count * bytes;
                    if at < end {
                        let block = start + (at - start) / bytes * bytes;
                        return block..block + bytes;
                    }
                    start = end;
                }
                at..at
            }
            EraseMap::Parameters(bytes) => {
                let bytes = if cr3 & LARGE != 0 { 256 * KIB } else { bytes };
                let block = aligned(at, bytes);
                let Some(sectors) = self.parameters([cr1, cr3]) else {
                    return block;
                };
                if block.start == sectors.start {
                    sectors.end..block.end
                } else if block.end == sectors.end {
                    block.start..sectors.start
                } else {
                    block
                }
            }
        }
    }

    /// The 4 KiB sectors of a map that has them at one end.
    pub(in super::super) fn parameters(&self, [cr1, cr3]: Configuration) -> Option<Range<usize>> {
        match self.map {
            EraseMap::Parameters(_) if cr3 & UNIFORM == 0 => Some(match cr1 & TBPARM {
                0 => 0..PARAMETERS,
                _ => self.size - PARAMETERS..self.size,
            }),
            _ => None,
        }
    }

    /// How long it takes to erase this many bytes at once.
    pub(in super::super) fn erase_time(&self, bytes: usize) -> Span {
        let times = &self.times;
        match bytes / KIB {
            _ if bytes == self.size => times.chip_erase,
            ..=8 => times.sector_erase,
            9..=32 => times.block32_erase,
            33..=128 => times.block64_erase,
            129..=256 => times.block256_erase,
            // A die of a stack.
            _ => times.chip_erase,
        }
    }
}
