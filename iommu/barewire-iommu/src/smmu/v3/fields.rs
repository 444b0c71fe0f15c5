//! Every field of an entry that takes a caller's value: what fits is in its bits and changes no other; what
//! does not fit is refused.
//!
//! *Read first*: IHI 0070, 5.2 (stream table entries) and 5.4 (context descriptors). The bits are copied from
//! there, and not from the code that writes them.

use std::vec::Vec;

use super::context_descriptor::ContextDescriptor;
use super::entry::Entry;
use super::features::{Features, tests::all};
use super::{SmmuError, Stream};
use crate::address::PhysAddr;
use crate::format::{Config, Geometry, Granule, Stage};

/// What a caller chooses.
#[derive(Clone, Copy)]
struct Values {
    config: Config,
    at: u64,
    tag: u16,
    substream_bits: u8,
}

/// A field: its name, word, highest and lowest bit, and the entry that has it.
struct Field {
    name: &'static str,
    word: usize,
    high: u32,
    low: u32,
    entry: fn(&Values, &Features) -> Result<Entry, SmmuError>,
    /// Puts a value into what the caller chooses. The field should then be as the second function says.
    set: fn(&mut Values, u64),
    field: fn(u64) -> u64,
    values: &'static [u64],
    refused: &'static [u64],
}

fn descriptor(values: &Values, features: &Features) -> Result<Entry, SmmuError> {
    let geometry = Geometry::new(Config { stage: Stage::One, ..values.config }).unwrap();
    ContextDescriptor { geometry, root: PhysAddr(values.at), asid: values.tag }.words(features)
}

fn stage1(values: &Values, features: &Features) -> Result<Entry, SmmuError> {
    let (contexts, substream_bits) = (PhysAddr(values.at), values.substream_bits);
    Stream::Stage1 { contexts, substream_bits }.words(features)
}

fn stage2(values: &Values, features: &Features) -> Result<Entry, SmmuError> {
    let geometry = Geometry::new(Config { stage: Stage::Two, ..values.config }).unwrap();
    Stream::Stage2 { geometry, root: PhysAddr(values.at), vmid: values.tag }.words(features)
}

fn set_at(values: &mut Values, at: u64) {
    values.at = at;
}

fn set_tag(values: &mut Values, tag: u64) {
    values.tag = tag as u16;
}

fn set_input(values: &mut Values, bits: u64) {
    values.config.input_bits = bits as u8;
}

fn set_output(values: &mut Values, bits: u64) {
    values.config.output_bits = bits as u8;
}

fn set_granule(values: &mut Values, shift: u64) {
    let granules = [Granule::Size4K, Granule::Size16K, Granule::Size64K];
    let is_it = |granule: &Granule| u64::from(granule.shift()) == shift;
    values.config.granule = granules.into_iter().find(is_it).unwrap();
}

fn granule_field(shift: u64) -> u64 {
    match shift {
        12 => 0,
        14 => 2,
        _ => 1,
    }
}

fn size_field(bits: u64) -> u64 {
    [32, 36, 40, 42, 44, 48].iter().position(|size| *size == bits).unwrap() as u64
}

/// The tables of a test are 64 KiB at most, and addresses multiples of that or wrong.
const FIELDS: &[Field] = &[
    Field {
        name: "CD.TTB0",
        word: 1,
        high: 47,
        low: 4,
        entry: descriptor,
        set: set_at,
        field: |at| at >> 4,
        values: &[0, 0x1_0000, 0xffff_ffff_0000],
        // Bit 0 is NSCFG0. The root has 4 KiB.
        refused: &[1, 2, 8, 16, 32, 0x800, 0x1_0800, 1 << 48, 1 << 63],
    },
    Field {
        name: "CD.ASID",
        word: 0,
        high: 63,
        low: 48,
        entry: descriptor,
        set: set_tag,
        field: |tag| tag,
        values: &[0, 1, 0x7fff],
        refused: &[0x8000, 0xffff],
    },
    Field {
        name: "CD.T0SZ",
        word: 0,
        high: 5,
        low: 0,
        entry: descriptor,
        set: set_input,
        field: |bits| 64 - bits,
        values: &[32, 33, 47, 48],
        refused: &[],
    },
    Field {
        name: "CD.TG0",
        word: 0,
        high: 7,
        low: 6,
        entry: descriptor,
        set: set_granule,
        field: granule_field,
        values: &[12, 14, 16],
        refused: &[],
    },
    Field {
        name: "CD.IPS",
        word: 0,
        high: 34,
        low: 32,
        entry: descriptor,
        set: set_output,
        field: size_field,
        values: &[32, 36, 40, 42, 44, 48],
        refused: &[],
    },
    Field {
        name: "STE.S1ContextPtr",
        word: 0,
        high: 47,
        low: 6,
        entry: stage1,
        set: set_at,
        field: |at| at >> 6,
        values: &[0, 64, 0x1_0040, 0xffff_ffff_ffc0],
        // Bits 3 to 1 are Config, 5 and 4 S1Fmt.
        refused: &[1, 2, 8, 16, 32, 0x1_0020, 1 << 48, 1 << 59, 1 << 63],
    },
    Field {
        name: "STE.S1CDMax",
        word: 0,
        high: 63,
        low: 59,
        entry: stage1,
        set: |values, bits| values.substream_bits = bits as u8,
        field: |bits| bits,
        values: &[0, 1, 8],
        refused: &[9, 20, 32, 255],
    },
    Field {
        name: "STE.S2VMID",
        word: 2,
        high: 15,
        low: 0,
        entry: stage2,
        set: set_tag,
        field: |tag| tag,
        values: &[1, 0x7fff],
        refused: &[0, 0x8000, 0xffff],
    },
    Field {
        name: "STE.S2T0SZ",
        word: 2,
        high: 37,
        low: 32,
        entry: stage2,
        set: set_input,
        field: |bits| 64 - bits,
        values: &[44, 47, 48],
        refused: &[],
    },
    Field {
        name: "STE.S2PS",
        word: 2,
        high: 50,
        low: 48,
        entry: stage2,
        set: set_output,
        field: size_field,
        values: &[32, 36, 40, 42, 44, 48],
        refused: &[],
    },
    Field {
        name: "STE.S2TTB",
        word: 3,
        high: 47,
        low: 4,
        entry: stage2,
        set: set_at,
        field: |at| at >> 4,
        values: &[0, 0x1_0000, 0xffff_ffff_0000],
        refused: &[1, 2, 8, 16, 32, 0x800, 0x1_0800, 1 << 48, 1 << 63],
    },
];

#[test]
fn a_caller_s_value_is_in_its_field_or_refused() {
    // 15 bits of ASID and VMID, so that a refused one fits the type.
    let features = Features { asid_bits: 15, vmid_bits: 15, ..all() };
    let config = Config { bbml2: false, ..Config::default() };
    let plain = Values { config, at: 0x1_0000, tag: 1, substream_bits: 0 };
    let mut names = Vec::new();
    for Field { name, word, high, low, entry, set, field, values, refused } in FIELDS {
        let with = |value: u64| {
            let mut chosen = plain;
            set(&mut chosen, value);
            entry(&chosen, &features)
        };
        let mask = (u64::MAX >> (63 - high)) & (u64::MAX << low);
        let rest = |words: &Entry| {
            let mut words = *words;
            words[*word] &= !mask;
            words
        };
        for &value in *values {
            let words = with(value).unwrap_or_else(|error| panic!("{name} {value:#x}: {error}"));
            assert_eq!((words[*word] & mask) >> low, field(value), "{name} {value:#x}");
            assert_eq!(rest(&words), rest(&entry(&plain, &features).unwrap()), "{name} {value:#x}");
        }
        for &value in *refused {
            assert!(with(value).is_err(), "{name} {value:#x}: {:x?}", with(value));
        }
        names.push(*name);
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), FIELDS.len());
}

#[test]
fn errors_of_fields_say_what_to_do() {
    let geometry = |stage| Geometry::new(Config { stage, ..Config::default() }).unwrap();
    let root = PhysAddr(0x1_0040);
    let one = ContextDescriptor { geometry: geometry(Stage::One), root, asid: 1 };
    let to = 4096;
    let unaligned = |field| SmmuError::Unaligned { field, at: root, to };
    assert_eq!(one.words(&all()), Err(unaligned("CD.TTB0")));
    let two = |root, vmid| Stream::Stage2 { geometry: geometry(Stage::Two), root, vmid };

    assert_eq!(two(root, 1).words(&all()), Err(unaligned("STE.S2TTB")));
    assert_eq!(two(PhysAddr(0), 0).words(&all()), Err(SmmuError::VmidOfStage1));
    let alone = Features { stage1: false, ..all() };
    assert!(two(PhysAddr(0), 0).words(&alone).is_ok(), "nothing else has VMID 0");
    let text = std::format!("{}", unaligned("CD.TTB0"));
    assert_eq!(text, "CD.TTB0 0x10040 is no multiple of 0x1000: align the table to its size");
    // A root of 16 entries is 128 bytes.
    let small = Config { granule: Granule::Size16K, input_bits: 40, ..Config::default() };
    let geometry = Geometry::new(small).unwrap();
    let at = |root| ContextDescriptor { geometry, root: PhysAddr(root), asid: 1 }.words(&all());
    assert!(at(0x80).is_ok());
    assert_eq!(
        at(0x40),
        Err(SmmuError::Unaligned { field: "CD.TTB0", at: PhysAddr(0x40), to: 128 })
    );
}
