//! The fields of a descriptor, by the architecture's names (D8.3).

use super::Kind;
use crate::format::{Descriptor, Stage};

/// A named group of bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// The architecture's name.
    pub name: &'static str,
    /// The value.
    pub value: u8,
    /// The width in bits.
    pub bits: u32,
    /// The meaning of the value, if it is more than set or clear.
    pub meaning: Option<&'static str>,
}

/// The position of a field and how to decode it.
struct Place {
    name: &'static str,
    low: u32,
    bits: u32,
    meaning: fn(u8) -> Option<&'static str>,
}

const fn place(name: &'static str, low: u32, bits: u32) -> Place {
    Place { name, low, bits, meaning: plain }
}

const STAGE1_LEAF: &[Place] = &[
    place("AttrIndx", 2, 3),
    place("NS", 5, 1),
    Place { meaning: ap, ..place("AP[2:1]", 6, 2) },
    Place { meaning: sh, ..place("SH", 8, 2) },
    place("AF", 10, 1),
    place("nG", 11, 1),
    place("GP", 50, 1),
    place("DBM", 51, 1),
    place("Contiguous", 52, 1),
    place("PXN", 53, 1),
    place("UXN", 54, 1),
    place("software", 55, 4),
    place("PBHA", 59, 4),
];

const STAGE2_LEAF: &[Place] = &[
    Place { meaning: mem_attr, ..place("MemAttr", 2, 4) },
    Place { meaning: s2ap, ..place("S2AP", 6, 2) },
    Place { meaning: sh, ..place("SH", 8, 2) },
    place("AF", 10, 1),
    place("FnXS", 11, 1),
    place("DBM", 51, 1),
    place("Contiguous", 52, 1),
    Place { meaning: xn, ..place("XN", 53, 2) },
    place("software", 55, 4),
    place("PBHA", 59, 4),
];

/// Only in a block, besides a leaf's fields.
const BLOCK: &[Place] = &[place("nT", 16, 1)];

/// Bits 58 to 51 of a table are ignored. This crate uses bit 55.
const TABLE: &[Place] = &[Place { meaning: mark, ..place("software", 55, 4) }];

const STAGE1_TABLE: &[Place] = &[
    place("PXNTable", 59, 1),
    place("UXNTable", 60, 1),
    Place { meaning: ap_table, ..place("APTable", 61, 2) },
    place("NSTable", 63, 1),
];

/// The fields of a descriptor of kind `kind`, from low bits to high. None if it is not valid.
pub fn fields(descriptor: Descriptor, kind: Kind, stage: Stage) -> impl Iterator<Item = Field> {
    let (places, more): (&[Place], &[Place]) = match (kind, stage) {
        (Kind::Page, Stage::One) => (STAGE1_LEAF, &[]),
        (Kind::Block, Stage::One) => (STAGE1_LEAF, BLOCK),
        (Kind::Page, Stage::Two) => (STAGE2_LEAF, &[]),
        (Kind::Block, Stage::Two) => (STAGE2_LEAF, BLOCK),
        (Kind::Table, Stage::One) => (TABLE, STAGE1_TABLE),
        // Bits 63 to 59 of a stage 2 table are reserved.
        (Kind::Table, Stage::Two) => (TABLE, &[]),
        (Kind::Invalid | Kind::Reserved, _) => (&[], &[]),
    };
    places.iter().chain(more).map(move |place| {
        let value = (descriptor.0 >> place.low) as u8 & ((1 << place.bits) - 1);
        Field { name: place.name, value, bits: place.bits, meaning: (place.meaning)(value) }
    })
}

fn plain(_: u8) -> Option<&'static str> {
    None
}

fn mark(value: u8) -> Option<&'static str> {
    (value == 1).then_some("clean, for walkers that do not snoop")
}

fn ap(value: u8) -> Option<&'static str> {
    Some(match value {
        0b00 => "read-write, privileged only",
        0b01 => "read-write",
        0b10 => "read-only, privileged only",
        _ => "read-only",
    })
}

fn ap_table(value: u8) -> Option<&'static str> {
    match value {
        0b01 => Some("privileged only below"),
        0b10 => Some("read-only below"),
        0b11 => Some("read-only and privileged only below"),
        _ => None,
    }
}

fn s2ap(value: u8) -> Option<&'static str> {
    Some(match value {
        0b00 => "no access",
        0b01 => "read-only",
        0b10 => "write-only",
        _ => "read-write",
    })
}

fn sh(value: u8) -> Option<&'static str> {
    Some(match value {
        0b00 => "non-shareable",
        0b10 => "outer shareable",
        0b11 => "inner shareable",
        _ => "reserved",
    })
}

fn xn(value: u8) -> Option<&'static str> {
    Some(match value {
        0b00 => "executable",
        0b01 => "executable at EL0 alone",
        0b10 => "not executable",
        _ => "executable at EL1 alone",
    })
}

fn mem_attr(value: u8) -> Option<&'static str> {
    Some(match value {
        0b0000 => "Device-nGnRnE",
        0b0001 => "Device-nGnRE",
        0b0010 => "Device-nGRE",
        0b0011 => "Device-GRE",
        0b0101 => "Normal, non-cacheable",
        0b0110 => "Normal, outer non-cacheable, inner write-through",
        0b0111 => "Normal, outer non-cacheable, inner write-back",
        0b1001 => "Normal, outer write-through, inner non-cacheable",
        0b1010 => "Normal, write-through",
        0b1011 => "Normal, outer write-through, inner write-back",
        0b1101 => "Normal, outer write-back, inner non-cacheable",
        0b1110 => "Normal, outer write-back, inner write-through",
        0b1111 => "Normal, write-back",
        _ => "reserved",
    })
}
