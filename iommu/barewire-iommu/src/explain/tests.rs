//! Walks of tables assembled by hand, and of random bytes compared with a naive walker.

use std::collections::HashMap;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::format::{Config, Granule};

const AF: u64 = 1 << 10;

fn walker(config: Config, root: u64) -> Walker {
    let geometry = Geometry::new(config).expect("a shape");
    Walker::new(geometry, PhysAddr(root)).expect("aligned")
}

fn config(granule: Granule, stage: Stage, input_bits: u8) -> Config {
    Config { granule, stage, input_bits, ..Config::default() }
}

/// Memory from a sorted list of entries. Other addresses inside `tables` (4 KiB each) read 0.
fn memory<'m>(
    tables: &'m [u64],
    entries: &'m [(u64, u64)],
) -> impl Fn(PhysAddr) -> Option<u64> + Copy + 'm {
    move |at| {
        let known = tables.contains(&(at.0 & !0xfff));
        let after = entries.partition_point(|entry| entry.0 <= at.0);
        let entry = entries[..after].last().filter(|entry| entry.0 == at.0);
        known.then(|| entry.map_or(0, |entry| entry.1))
    }
}

/// Prints a walk: level, index and kind of each step, then the outcome.
fn told(walk: &Walk) -> String {
    let mut text: String =
        walk.steps().iter().map(|s| format!("{}[{}] {:?} ", s.level, s.index, s.kind)).collect();
    text += &match walk.outcome {
        Outcome::Mapped(to) => format!("-> {} of {:#x}", to.phys, to.size),
        Outcome::Fault { fault, level } => format!("-> {fault:?} at {level}"),
        Outcome::Unreadable { level, entry } => format!("-> no {entry} at {level}"),
    };
    text
}

#[test]
fn each_end_of_a_walk_of_4k_pages() {
    let tables = [0x1000, 0x2000, 0x3000, 0x4000];
    let entries = [
        (0x1000, 0x2003),                     // level 0, entry 0: a table
        (0x1008, 0x8000_0001 | AF),           // level 0 has no blocks
        (0x1010, 0x9000_0003),                // a table that is not in memory
        (0x2000, 0x3003),                     // level 1: a table
        (0x2008, 0x1_4000_0001 | AF),         // a block of 1 GiB
        (0x2010, 1 << 47 | 0x1000 | 0b11),    // a table too far
        (0x3000, 0x4003),                     // level 2: a table
        (0x3008, 0x4020_0001 | AF | 1 << 16), // a block of 2 MiB, nT
        (0x3010, 0x4020_0001),                // the same, never accessed
        (0x3018, 1 << 47 | 0x1 | AF),         // a block too far
        (0x4008, 0x5555_5003 | AF),           // level 3: a page
        (0x4010, 0x5555_5001 | AF),           // reserved there
        (0x4018, 0x5555_5002 | AF),           // not valid
    ];
    let read = memory(&tables, &entries);
    let walker = walker(Config { output_bits: 44, ..Config::default() }, 0x1000);
    for (iova, expected) in [
        (0x1234, "0[0] Table 1[0] Table 2[0] Table 3[1] Page -> 0x55555234 of 0x1000"),
        (0x2000, "0[0] Table 1[0] Table 2[0] Table 3[2] Reserved -> Translation at 3"),
        (0x3000, "0[0] Table 1[0] Table 2[0] Table 3[3] Invalid -> Translation at 3"),
        (0x20_0000, "0[0] Table 1[0] Table 2[1] Block -> 0x40200000 of 0x200000"),
        (0x3f_ffff, "0[0] Table 1[0] Table 2[1] Block -> 0x403fffff of 0x200000"),
        (0x40_0000, "0[0] Table 1[0] Table 2[2] Block -> AccessFlag at 2"),
        (0x60_0000, "0[0] Table 1[0] Table 2[3] Block -> AddressSize at 2"),
        (0x80_0000, "0[0] Table 1[0] Table 2[4] Invalid -> Translation at 2"),
        (0x4000_0001, "0[0] Table 1[1] Block -> 0x140000001 of 0x40000000"),
        (0x8000_0000, "0[0] Table 1[2] Table -> AddressSize at 1"),
        (0x80_0000_0000, "0[1] Reserved -> Translation at 0"),
        (0x100_0000_0000, "0[2] Table -> no 0x90000000 at 1"),
        (0xffff_ffff_ffff, "0[511] Invalid -> Translation at 0"),
        (0x1_0000_0000_0000, "-> Translation at 0"),
        (u64::MAX, "-> Translation at 0"),
    ] {
        assert_eq!(told(&walker.explain(Iova(iova), read)), expected, "{iova:#x}");
    }
    let far = Walker { root: PhysAddr(1 << 44), ..walker };
    assert_eq!(told(&far.explain(Iova(0), read)), "-> AddressSize at 0");
}

#[test]
fn other_granules_have_other_blocks() {
    let at = |granule, input_bits, entries: &[(u64, u64)], iova| {
        let walker = walker(config(granule, Stage::One, input_bits), 0x1_0000);
        let read = |at: PhysAddr| {
            Some(entries.iter().find(|entry| entry.0 == at.0).map_or(0, |entry| entry.1))
        };
        told(&walker.explain(Iova(iova), read))
    };
    // 16 KiB, 36 bits: levels 2 and 3, blocks of 32 MiB; bits 13 and 12 are no address.
    let entries = [(0x1_0008, 0x8200_3001 | AF), (0x1_0000, 0x2_3003), (0x2_0010, 0x7_5003 | AF)];
    let expected = "2[1] Block -> 0x82000123 of 0x2000000";
    assert_eq!(at(Granule::Size16K, 36, &entries, 0x200_0123), expected);
    let expected = "2[0] Table 3[2] Page -> 0x75678 of 0x4000";
    assert_eq!(at(Granule::Size16K, 36, &entries, 0x8000 + 0x1678), expected);
    // 64 KiB, 48 bits: level 1 has only tables.
    let entries = [(0x1_0000, 0x4000_0001 | AF), (0x1_0008, 0x2_0003), (0x2_0008, 0x6000_0401)];
    assert_eq!(at(Granule::Size64K, 48, &entries, 0), "1[0] Reserved -> Translation at 1");
    let expected = "1[1] Table 2[1] Block -> 0x60000007 of 0x20000000";
    assert_eq!(at(Granule::Size64K, 48, &entries, (1 << 42) + (1 << 29) + 7), expected);
}

#[test]
fn a_concatenated_root_is_one_table() {
    // 40 bits of 4 KiB at stage 2: two tables of level 1 side by side.
    let walker = walker(config(Granule::Size4K, Stage::Two, 40), 0x2000);
    let read = memory(&[0x2000, 0x3000], &[(0x3008, 0x4000_0001 | AF | 0b01 << 6)]);
    let walk = walker.explain(Iova((1 << 39) + (1 << 30) + 5), read);
    assert_eq!(told(&walk), "1[513] Block -> 0x40000005 of 0x40000000");
    let Outcome::Mapped(to) = walk.outcome else { unreachable!() };
    assert_eq!([to.permits.readable, to.permits.writable], [true, false]);
    let unaligned = Walker::new(*walker.geometry(), PhysAddr(0x3000)).expect_err("unaligned");
    assert_eq!(
        unaligned.to_string(),
        "a root of this shape is aligned to 0x2000 bytes, and 0x3000 is not"
    );
}

#[test]
fn permissions_are_the_leaf_s_less_what_tables_take() {
    let permitted = |table: u64, leaf: u64| {
        let walker = walker(config(Granule::Size4K, Stage::One, 39), 0x1000);
        let entries = [(0x1000, 0x2003 | table), (0x2000, 0x4000_0001 | AF | leaf)];
        let walk = walker.explain(Iova(0), memory(&[0x1000, 0x2000], &entries));
        let Outcome::Mapped(to) = walk.outcome else { panic!("{walk:?}") };
        let spans = walker.spans(memory(&[0x1000, 0x2000], &entries), 1_000);
        let listed = spans.map(|span| span.what).next();
        let same = matches!(listed, Some(What::Mapped { permits, .. }) if permits == to.permits);
        assert!(same, "{listed:?}");
        [to.permits.readable, to.permits.writable, to.permits.unprivileged]
    };
    assert_eq!(permitted(0, 0), [true, true, false]);
    assert_eq!(permitted(0, 1 << 6), [true, true, true]);
    assert_eq!(permitted(0, 3 << 6), [true, false, true]);
    assert_eq!(permitted(1 << 62, 1 << 6), [true, false, true]);
    assert_eq!(permitted(1 << 61, 1 << 6), [true, true, false]);
}

#[test]
fn fields_are_where_the_manual_has_them() {
    let told = |bits, kind, stage| -> Vec<String> {
        let set = |field: &Field| field.value != 0;
        let text = |field: Field| format!("{}={}", field.name, field.value);
        fields(Descriptor(bits), kind, stage).filter(set).map(text).collect()
    };
    let one = |bit| told(1_u64 << bit, Kind::Block, Stage::One);
    for (bit, expected) in [
        (2, "AttrIndx=1"),
        (4, "AttrIndx=4"),
        (5, "NS=1"),
        (6, "AP[2:1]=1"),
        (7, "AP[2:1]=2"),
        (8, "SH=1"),
        (9, "SH=2"),
        (10, "AF=1"),
        (11, "nG=1"),
        (16, "nT=1"),
        (50, "GP=1"),
        (51, "DBM=1"),
        (52, "Contiguous=1"),
        (53, "PXN=1"),
        (54, "UXN=1"),
        (55, "software=1"),
        (58, "software=8"),
        (59, "PBHA=1"),
        (62, "PBHA=8"),
    ] {
        assert_eq!(one(bit), [expected], "bit {bit}");
    }
    assert_eq!(told(0x7f << 2, Kind::Page, Stage::Two), ["MemAttr=15", "S2AP=3", "SH=1"]);
    assert_eq!(told(7 << 52, Kind::Page, Stage::Two), ["Contiguous=1", "XN=3"]);
    assert_eq!(
        told(u64::MAX, Kind::Table, Stage::One),
        ["software=15", "PXNTable=1", "UXNTable=1", "APTable=3", "NSTable=1"]
    );
    assert_eq!(told(u64::MAX, Kind::Table, Stage::Two), ["software=15"]);
    assert!(told(u64::MAX, Kind::Invalid, Stage::One).is_empty());
    // A table whose entry is marked as clean.
    let marked = Descriptor::table(PhysAddr(0x5000)).marked();
    let meant: Vec<_> = fields(marked, Kind::Table, Stage::Two).filter_map(|f| f.meaning).collect();
    assert_eq!(meant, ["clean, for walkers that do not snoop"]);
    // The library's own attributes are explained by the names that they were made from.
    let ours = crate::Attributes::new(Stage::Two, crate::Access::Read);
    let meant: Vec<_> =
        fields(Descriptor(ours.bits()), Kind::Page, Stage::Two).filter_map(|f| f.meaning).collect();
    assert_eq!(meant, ["Normal, write-back", "read-only", "inner shareable", "not executable"]);
}

/// Prints a span.
fn span(span: &Span) -> String {
    let Span { iova, size, entries, what } = span;
    let what = match what {
        What::Mapped { phys, attributes, .. } => format!("{phys} {attributes:#x}"),
        What::Fault { fault, level, descriptor } => {
            format!("{fault:?} {level} {:#x}", descriptor.0)
        }
        What::Unreadable { entry } => format!("no {entry}"),
        What::Loop { table, level } => format!("loop to {table} at {level}"),
        What::Stopped => "stopped".into(),
    };
    format!("{iova}+{size:#x} {entries} {what}")
}

fn all(walker: &Walker, read: impl FnMut(PhysAddr) -> Option<u64>, max: u64) -> Vec<String> {
    walker.spans(read, max).map(|found| span(&found)).collect()
}

#[test]
fn neighbours_are_merged_across_tables_and_leaf_sizes() {
    let walker = walker(config(Granule::Size4K, Stage::One, 39), 0x1000);
    let tables = [0x1000, 0x2000, 0x3000];
    let mut entries = std::vec![
        (0x1000, 0x2003),
        (0x1008, 0x4000_0001 | AF),
        (0x1010, 0x8000_0001 | AF | 1 << 52), // only Contiguous differs: merged
        (0x1018, 0xc000_0001 | AF | 1 << 7),
        (0x1020, 0x1003), // the root itself
        (0x1028, 0x1003),
        (0x1030, 0x7_0003), // not in memory
        (0x2ff0, 0x3003),
        (0x2ff8, 0x3fe0_0001 | AF),
    ];
    for page in 0..512 {
        entries.push((0x3000 + 8 * page, (0x3fc0_0000 + 0x1000 * page) | 0b11 | AF));
    }
    entries[0x09 + 3].1 &= !AF;
    entries[0x09 + 4].1 &= !AF;
    let read = memory(&tables, &entries);
    let expected = [
        "0x3fc00000+0x3000 3 0x3fc00000 0x400",
        "0x3fc03000+0x2000 2 AccessFlag 3 0x3fc03003",
        "0x3fc05000+0x803fb000 510 0x3fc05000 0x400",
        "0xc0000000+0x40000000 1 0xc0000000 0x480",
        "0x100000000+0x80000000 2 loop to 0x1000 at 1",
        "0x180000000+0x40000000 512 no 0x70000",
    ];
    assert_eq!(all(&walker, read, u64::MAX), expected);
    // The root, entry 0, level 2 up to its entry 510, and four entries of level 3.
    let stopped = all(&walker, read, 1 + 511 + 4);
    assert_eq!(
        stopped[1..],
        ["0x3fc03000+0x1000 1 AccessFlag 3 0x3fc03003", "0x3fc04000+0x7fc03fc000 0 stopped"]
    );
    let far = Walker { root: PhysAddr(1 << 48), ..walker };
    assert_eq!(all(&far, read, 1), ["0x0+0x8000000000 0 AddressSize 0 0x0"]);
}

/// Tables of random words. Most are valid and point back to one of the few tables.
fn garbage() -> impl Strategy<Value = (Config, HashMap<u64, u64>, Vec<u64>)> {
    let granule = prop::sample::select(&[Granule::Size4K, Granule::Size16K, Granule::Size64K][..]);
    let stage = prop::sample::select(&[Stage::One, Stage::Two][..]);
    let output = prop::sample::select(&[32_u8, 36, 40, 42, 44, 48][..]);
    (granule, stage, 32_u8..=48, output).prop_flat_map(
        |(granule, stage, input_bits, output_bits)| {
            let config = Config { granule, stage, input_bits, output_bits, bbml2: false };
            let near = (0_u64..64, any::<u64>(), 0_u64..4).prop_map(move |(page, bits, kind)| {
                bits & !0x0000_ffff_ffff_f003 | page << 16 | kind
            });
            let word = prop_oneof![4 => near, 1 => any::<u64>()];
            let place = (0_u64..64, 0_u64..8).prop_map(|(page, entry)| page << 16 | entry << 3);
            let memory = prop::collection::hash_map(place, word, 0..200);
            // Indices that are low at every level, where the words are.
            let iova = (any::<u64>(), any::<bool>()).prop_map(move |(bits, low)| {
                let shift = granule.shift();
                let few =
                    (0..4).map(|level| 7 << (shift + level * (shift - 3))).fold(0, |a, b| a | b);
                if low { bits & few } else { bits >> 16 }
            });
            (Just(config), memory, prop::collection::vec(iova, 1..20))
        },
    )
}

/// The same walk written as simply as possible, with figures from the manual instead of
/// [`Geometry`]'s.
fn naive(config: Config, root: u64, iova: u64, memory: &HashMap<u64, u64>) -> Result<u64, String> {
    let page_shift = config.granule.shift();
    let per_level = page_shift - 3;
    let too_large = |address: u64| address >> config.output_bits != 0;
    if iova >> config.input_bits != 0 {
        return Err("Translation at 0".into());
    }
    let mut level = 3 - (u32::from(config.input_bits) - page_shift - 1) / per_level;
    let top = u32::from(config.input_bits) - (page_shift + (3 - level) * per_level);
    if config.stage == Stage::Two && top <= 4 && level < 3 {
        level += 1;
    }
    let (mut table, mut first) = (root, true);
    loop {
        let shift = page_shift + (3 - level) * per_level;
        let index = if first { iova >> shift } else { iova >> shift & ((1 << per_level) - 1) };
        let word = *memory.get(&(table + 8 * index)).unwrap_or(&0);
        first = false;
        let low = |bits: u32| word & ((1 << 48) - 1) & !((1 << bits) - 1);
        let block = level == 2 || (level == 1 && page_shift == 12);
        match word & 3 {
            3 if level < 3 => {
                table = low(page_shift);
                if too_large(table) {
                    return Err(format!("AddressSize at {level}"));
                }
                level += 1;
            }
            kind if (kind == 3) || (kind == 1 && block) => {
                return if too_large(low(shift)) {
                    Err(format!("AddressSize at {level}"))
                } else if word & AF == 0 {
                    Err(format!("AccessFlag at {level}"))
                } else {
                    Ok(low(shift) + (iova & ((1 << shift) - 1)))
                };
            }
            _ => return Err(format!("Translation at {level}")),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_bytes_are_walked_as_a_naive_walker_does((config, memory, iovas) in garbage()) {
        let walker = walker(config, 0);
        let read = |at: PhysAddr| Some(*memory.get(&at.0).unwrap_or(&0));
        for iova in iovas {
            let walk = walker.explain(Iova(iova), read);
            let ours = match walk.outcome {
                Outcome::Mapped(to) => Ok(to.phys.0),
                Outcome::Fault { fault, level } => Err(format!("{fault:?} at {level}")),
                Outcome::Unreadable { .. } => unreachable!("all is read"),
            };
            prop_assert_eq!(ours, naive(config, 0, iova, &memory), "{:#x}: {:?}", iova, walk);
        }
    }

    #[test]
    fn the_list_agrees_with_each_walk((config, memory, iovas) in garbage()) {
        let walker = walker(config, 0);
        let read = |at: PhysAddr| Some(*memory.get(&at.0).unwrap_or(&0));
        let spans: Vec<Span> = walker.spans(read, 100_000).collect();
        for pair in spans.windows(2) {
            prop_assert!(pair[0].iova.0 + pair[0].size <= pair[1].iova.0, "{:?}", pair);
            prop_assert!(pair[0].merged(pair[1]).is_none(), "{:?}", pair);
        }
        for iova in iovas.into_iter().filter(|iova| iova >> config.input_bits == 0) {
            let over = |span: &&Span| span.iova.0 <= iova && iova - span.iova.0 < span.size;
            let outcome = walker.explain(Iova(iova), read).outcome;
            match (spans.iter().find(over).map(|span| (span.iova, span.what)), outcome) {
                (Some((start, What::Mapped { phys, .. })), Outcome::Mapped(to)) => {
                    prop_assert_eq!(phys.0 + (iova - start.0), to.phys.0);
                }
                (Some((_, What::Fault { fault, level, .. })), outcome) => {
                    prop_assert_eq!(outcome, Outcome::Fault { fault, level });
                }
                (None, Outcome::Fault { fault: Fault::Translation, .. })
                | (Some((_, What::Loop { .. } | What::Stopped)), _) => {}
                other => prop_assert!(false, "{:#x}: {:?}", iova, other),
            }
        }
    }
}
