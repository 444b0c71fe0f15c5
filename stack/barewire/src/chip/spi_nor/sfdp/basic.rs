//! The basic flash parameter table: size, page, erase types, times.

use super::map::Map;
use super::{BFPT_WORDS, SfdpError};
use crate::chip::spi_nor::address::Addressing;
use crate::chip::spi_nor::assume::Assume;
use crate::chip::spi_nor::geometry::{
    EraseType, Geometry, JedecId, Programming, REGIONS_MAX, Region,
};
use crate::chip::spi_nor::notes::{Note, Notes};
use crate::chip::spi_nor::part;

/// The largest page used. A page of more wraps there on parts that are not configured for it.
const PAGE_MAX: u32 = 256;
/// The largest part whose bulk erase is used. Larger parts are stacks of dies. They have no bulk erase
/// (MT25QL02G), or one whose end the status register does not show (W25Q01NW).
const CHIP_ERASE_MAX: u64 = 64 << 20;

/// For parts without times: a page's typical program time, and the ratio of maximum to typical
/// times.
const UNTIMED_PROGRAM_NS: u64 = 700 * US;
const UNTIMED_MULTIPLIER: u64 = 64;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// The table, with the tables that extend it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Basic<'a> {
    pub(super) bfpt: &'a [u32; BFPT_WORDS],
    /// The number of its words that there are: at least 9.
    pub(super) words: usize,
    /// The 4-byte address instruction table.
    pub(super) address_4b: Option<[u32; 2]>,
    pub(super) id: JedecId,
}

impl Basic<'_> {
    /// From JESD216A (16 words) on: times, page size, 4-byte mode.
    fn timed(&self) -> bool {
        self.words >= 11
    }

    /// Word 2: the number of bits minus one, or with bit 31 its power of two.
    pub(super) fn size(&self) -> Result<u64, SfdpError> {
        let word = self.bfpt[1];
        let bits = if word >> 31 == 0 {
            u64::from(word) + 1
        } else {
            // 2^35 bits are 4 GiB, the reach of a 4-byte address.
            match word & 0x7fff_ffff {
                exponent @ 3..=35 => 1 << exponent,
                _ => return Err(SfdpError::Density { word }),
            }
        };
        if bits % 8 == 0 && bits >= 8 { Ok(bits / 8) } else { Err(SfdpError::Density { word }) }
    }

    /// The geometry of a chip of `size` bytes.
    pub(super) fn geometry(
        &self,
        size: u64,
        map: &Map,
        assume: &Assume,
    ) -> Result<Geometry, SfdpError> {
        let mut notes = Notes::default();
        let width = self.width(size, assume);
        if assume.size.is_none() {
            if let Some(id) = self.id.size().filter(|id| *id != size) {
                notes.add(Note::Density { sfdp: size, id });
            }
        }
        if width.reach < size {
            notes.add(Note::Reach { reach: width.reach });
        }
        // A type larger than the chip is ignored.
        let listed = self.listed().map(|erase| erase.filter(|erase| u64::from(erase.size) <= size));
        if listed.iter().all(Option::is_none) {
            return Err(SfdpError::NoEraseType);
        }
        let types = if width.addressing == Addressing::FourByteOpcodes {
            core::array::from_fn(|index| {
                let opcode = self.four_byte_erase(index)?;
                listed[index].map(|erase| EraseType { opcode, ..erase })
            })
        } else {
            listed
        };
        let regions = match (map, assume.erase_size) {
            (Map::Regions(regions), _) => *regions,
            (Map::None, _) | (Map::Unclear, Some(_)) => Geometry::one_region(size, &types),
            (Map::Unclear, None) => {
                notes.add(Note::SectorMap);
                Geometry::one_region(size, &[None; 4])
            }
        };
        let (erase_types, regions) = settle(types, regions, assume.erase_size, &mut notes);
        let page = self.page_size();
        if page > PAGE_MAX {
            notes.add(Note::Page { sfdp: page, used: PAGE_MAX });
        }
        let timed = self.timed();
        let (erase_multiplier, program_multiplier) = self.multipliers();
        let program_typical_ns =
            if timed { program_time_ns(self.bfpt[10]) } else { UNTIMED_PROGRAM_NS };
        let chip_erase_typical_ns = if timed { chip_erase_time_ns(self.bfpt[10]) } else { 100 * S };
        let quad_enable = (self.words >= 15).then(|| (self.bfpt[14] >> 20 & 7) as u8);
        let maker = part::of_maker(self.id, size, quad_enable);
        Ok(Geometry {
            size,
            reach: width.reach,
            programming: Programming::Page { size: page.min(PAGE_MAX) },
            erase_types,
            regions,
            addressing: width.addressing,
            exit: width.exit,
            extended_address: width.extended_address,
            has_fast_read: width.has_fast_read,
            chip_erase: size <= CHIP_ERASE_MAX,
            program_typical_ns,
            program_max_ns: program_typical_ns * program_multiplier,
            chip_erase_typical_ns,
            times_known: timed,
            chip_erase_max_ns: chip_erase_typical_ns * erase_multiplier,
            // SFDP has no time for it; 40 ms is the maximum in common use.
            status_write_max_ns: 40 * MS,
            read_max_hz: 0,
            max_hz: None,
            protection: assume.protection.unwrap_or(maker.protection),
            volatile_protection: self.volatile_protection(),
            quad_enable,
            status_form: if self.volatile_write_enable() { maker.volatile() } else { maker.form },
            report: maker.report,
            name: None,
            notes,
        })
    }

    /// Word 1, bit 3: the protection bits are volatile. Not believed where word 16 says otherwise.
    fn volatile_protection(&self) -> bool {
        let lasting = self.words >= 16 && self.bfpt[15] & 0b1001 != 0;
        self.bfpt[0] >> 3 & 1 == 1 && !lasting
    }

    /// Word 1, bit 4: such bits are written after 50h, not 06h.
    fn volatile_write_enable(&self) -> bool {
        self.volatile_protection() && self.bfpt[0] >> 4 & 1 == 0
    }

    /// The erase types in the table's order, with their 3-byte opcodes.
    fn listed(&self) -> [Option<EraseType>; 4] {
        let (erase_multiplier, _) = self.multipliers();
        core::array::from_fn(|index| {
            let half = self.bfpt[7 + index / 2] >> (16 * (index % 2));
            let exponent = half & 0xff;
            // Parts have 2^8 to 2^24 bytes; another value is no erase type.
            let size = 1 << Some(exponent).filter(|exponent| (8..=24).contains(exponent))?;
            let typical_ns = if self.timed() {
                erase_time_ns(self.bfpt[9] >> (4 + 7 * index))
            } else {
                untimed_erase_ns(size)
            };
            let max_ns = typical_ns * erase_multiplier;
            Some(EraseType { size, opcode: (half >> 8) as u8, typical_ns, max_ns })
        })
    }

    /// The 4-byte opcode of the table's erase type `index`, if it is granted.
    pub(super) fn four_byte_erase(&self, index: usize) -> Option<u8> {
        let [granted, opcodes] = self.address_4b?;
        let listed = self.bfpt[7 + index / 2] >> (16 * (index % 2)) & 0xff != 0;
        (listed && granted >> (9 + index) & 1 == 1).then_some((opcodes >> (8 * index)) as u8)
    }

    /// The multipliers of the longest erase and program times.
    fn multipliers(&self) -> (u64, u64) {
        let of = |word: u32| 2 * (u64::from(word & 0xf) + 1);
        if self.timed() {
            (of(self.bfpt[9]), of(self.bfpt[10]))
        } else {
            (UNTIMED_MULTIPLIER, UNTIMED_MULTIPLIER)
        }
    }

    fn page_size(&self) -> u32 {
        let exponent = self.bfpt[10] >> 4 & 0xf;
        if self.timed() && exponent > 0 {
            1 << exponent
        } else if self.bfpt[0] >> 2 & 1 == 1 {
            // The first edition only says "64 bytes or more", and part of a page is always right.
            64
        } else {
            1
        }
    }
}

type Types = [Option<EraseType>; 4];
type Regions = [Option<Region>; REGIONS_MAX];

/// Removes from each region the erase types that are not certain to hold there, and sorts the types by size.
fn settle(
    types: Types,
    mut regions: Regions,
    given: Option<u32>,
    notes: &mut Notes,
) -> (Types, Regions) {
    for region in regions.iter_mut().flatten() {
        let there = |n: usize, mask: u8| types[n].filter(|_| mask >> n & 1 == 1);
        let all = region.erase_types;
        for (a, b) in (0..4).flat_map(|a| (a + 1..4).map(move |b| (a, b))) {
            let (Some(one), Some(other)) = (there(a, all), there(b, all)) else { continue };
            if one.opcode != other.opcode || one.size == other.size {
                continue;
            }
            let wrong = |n: usize, erase: EraseType| u8::from(given != Some(erase.size)) << n;
            region.erase_types &= !(wrong(a, one) | wrong(b, other));
            if given.is_none() {
                let [smaller, larger] = [one.size.min(other.size), one.size.max(other.size)];
                notes.add(Note::SharedOpcode { opcode: one.opcode, smaller, larger });
            }
        }
        region.erase_types &= (0..4).fold(0, |mask, n| mask | u8::from(types[n].is_some()) << n);
    }
    leave_out_unclear_ends(&types, &mut regions);
    let mut order = [0, 1, 2, 3];
    order.sort_unstable_by_key(|&n: &usize| types[n].map_or(u32::MAX, |erase| erase.size));
    for region in regions.iter_mut().flatten() {
        let old = region.erase_types;
        region.erase_types = (0..4).fold(0, |mask, new| mask | (old >> order[new] & 1) << new);
    }
    let used = regions.iter().flatten().fold(0, |mask, region| mask | region.erase_types);
    let sorted = core::array::from_fn(|new| types[order[new]].filter(|_| used >> new & 1 == 1));
    (sorted, regions)
}

/// A block that reaches beyond its region erases only what is in it, if the neighbour has other types (S25FS-S
/// datasheet: 4 KiB sectors overlay a part of the first or last block). If the neighbour has the same type, the
/// map contradicts itself.
fn leave_out_unclear_ends(types: &Types, regions: &mut Regions) {
    for (n, erase) in types.iter().enumerate() {
        let Some(size) = erase.map(|erase| u64::from(erase.size)) else { continue };
        for at in 1..REGIONS_MAX {
            let (Some(before), Some(after)) = (regions[at - 1], regions[at]) else { break };
            let both = before.erase_types & after.erase_types;
            if both >> n & 1 == 1 && after.start % size != 0 {
                for region in regions[at - 1..=at].iter_mut().flatten() {
                    region.erase_types &= !(1 << n);
                }
            }
        }
    }
}

/// The erase time of a block on parts of the first edition's time: 50 ms for 4 KiB, 150 ms for 64
/// KiB, and so on in proportion.
fn untimed_erase_ns(size: u32) -> u64 {
    match size {
        ..=0x1000 => 50 * MS,
        0x1001..=0x1_0000 => 150 * MS,
        _ => 150 * MS * u64::from(size >> 16),
    }
}

/// Seven bits: a count and its unit.
fn erase_time_ns(field: u32) -> u64 {
    let unit_ns = [MS, 16 * MS, 128 * MS, S][(field >> 5 & 3) as usize];
    (u64::from(field & 0x1f) + 1) * unit_ns
}

fn program_time_ns(word: u32) -> u64 {
    let unit_ns = [8 * US, 64 * US][(word >> 13 & 1) as usize];
    (u64::from(word >> 8 & 0x1f) + 1) * unit_ns
}

fn chip_erase_time_ns(word: u32) -> u64 {
    let unit_ns = [16 * MS, 256 * MS, 4 * S, 64 * S][(word >> 29 & 3) as usize];
    (u64::from(word >> 24 & 0x1f) + 1) * unit_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_would_reach_into_a_neighbour_is_left_out_of_both() {
        let erase = |size| EraseType { size, opcode: 0x20, typical_ns: 1, max_ns: 1 };
        let types = [Some(erase(0x1000)), Some(erase(0x8000)), None, None];
        let left = |border: u64| {
            let region = |start, end| Some(Region { start, end, erase_types: 0b11 });
            let mut regions = [None; REGIONS_MAX];
            (regions[0], regions[1]) = (region(0, border), region(border, 0x2_0000));
            leave_out_unclear_ends(&types, &mut regions);
            [0, 1].map(|at| regions[at].expect("two regions").erase_types)
        };
        assert_eq!(left(0x1_0000), [0b11; 2], "blocks of both sizes end there");
        assert_eq!(left(0x1_4000), [0b01; 2]);
        assert_eq!(left(0x1_4800), [0; 2]);
    }
}
