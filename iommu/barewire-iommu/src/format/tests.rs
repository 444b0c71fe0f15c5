//! Compares shapes and bits with numbers worked out by hand from the manual.

use super::*;
use crate::address::PhysAddr;

const fn config(granule: Granule, stage: Stage, input_bits: u8) -> Config {
    Config { granule, stage, input_bits, output_bits: 48, bbml2: false }
}

/// The start level and the number of entries of the root.
fn root(granule: Granule, stage: Stage, input_bits: u8) -> (u32, usize) {
    let geometry = Geometry::new(config(granule, stage, input_bits)).expect("possible");
    let level = geometry.start_level();
    assert_eq!(geometry.root_bytes(), 8 * geometry.entries(level));
    (level, geometry.entries(level))
}

#[test]
fn roots_of_4k_granules() {
    use Granule::Size4K;
    use Stage::{One, Two};
    // Levels resolve 9 bits each above the 12 of a page: level 1 begins at bit 30, level 0 at 39.
    assert_eq!(root(Size4K, One, 48), (0, 512));
    assert_eq!(root(Size4K, One, 44), (0, 32));
    assert_eq!(root(Size4K, One, 40), (0, 2));
    assert_eq!(root(Size4K, One, 39), (1, 512));
    assert_eq!(root(Size4K, One, 32), (1, 4));
    // A root of 2 to 16 entries becomes that many concatenated tables (D8.2.2).
    assert_eq!(root(Size4K, Two, 48), (0, 512));
    assert_eq!(root(Size4K, Two, 44), (0, 32));
    assert_eq!(root(Size4K, Two, 43), (1, 16 * 512));
    assert_eq!(root(Size4K, Two, 40), (1, 2 * 512));
    assert_eq!(root(Size4K, Two, 39), (1, 512));
    assert_eq!(root(Size4K, Two, 35), (1, 32));
    assert_eq!(root(Size4K, Two, 34), (2, 16 * 512));
    assert_eq!(root(Size4K, Two, 32), (2, 4 * 512));
}

#[test]
fn roots_of_16k_granules() {
    use Granule::Size16K;
    use Stage::{One, Two};
    // 11 bits a level above 14: level 2 begins at bit 25, level 1 at 36, level 0 at 47.
    assert_eq!(root(Size16K, One, 48), (0, 2));
    assert_eq!(root(Size16K, One, 47), (1, 2048));
    assert_eq!(root(Size16K, One, 37), (1, 2));
    assert_eq!(root(Size16K, One, 36), (2, 2048));
    assert_eq!(root(Size16K, One, 32), (2, 128));
    assert_eq!(root(Size16K, Two, 48), (1, 2 * 2048));
    assert_eq!(root(Size16K, Two, 41), (1, 32));
    assert_eq!(root(Size16K, Two, 40), (2, 16 * 2048));
    assert_eq!(root(Size16K, Two, 36), (2, 2048));
}

#[test]
fn roots_of_64k_granules() {
    use Granule::Size64K;
    use Stage::{One, Two};
    // 13 bits a level above 16: level 2 begins at bit 29, level 1 at 42; there is no level 0.
    assert_eq!(root(Size64K, One, 48), (1, 64));
    assert_eq!(root(Size64K, One, 43), (1, 2));
    assert_eq!(root(Size64K, One, 42), (2, 8192));
    assert_eq!(root(Size64K, One, 32), (2, 8));
    assert_eq!(root(Size64K, Two, 48), (1, 64));
    assert_eq!(root(Size64K, Two, 46), (2, 16 * 8192));
    assert_eq!(root(Size64K, Two, 42), (2, 8192));
    assert_eq!(root(Size64K, Two, 34), (2, 32));
    assert_eq!(root(Size64K, Two, 33), (3, 16 * 8192));
    assert_eq!(root(Size64K, Two, 32), (3, 8 * 8192));
}

#[test]
fn every_possible_shape_covers_its_input_and_no_more() {
    for granule in [Granule::Size4K, Granule::Size16K, Granule::Size64K] {
        for stage in [Stage::One, Stage::Two] {
            for bits in 32..=48 {
                let geometry = Geometry::new(config(granule, stage, bits)).expect("possible");
                let start = geometry.start_level();
                let covered = geometry.entries(start) as u64 * geometry.span(start);
                assert_eq!(covered, geometry.input_end());
                assert_eq!(geometry.input_end(), 1 << bits);
                for level in start..3 {
                    let below = geometry.entries(level + 1) as u64 * geometry.span(level + 1);
                    assert_eq!(geometry.span(level), below);
                }
                assert_eq!(geometry.span(3), granule.bytes());
                let last = geometry.input_end() - 1;
                for level in start..=3 {
                    assert_eq!(geometry.index(0, level), 0);
                    assert_eq!(geometry.index(last, level), geometry.entries(level) - 1);
                }
            }
        }
    }
}

#[test]
fn leaves_have_the_manuals_sizes() {
    let sizes = |granule| {
        let geometry = Geometry::new(config(granule, Stage::One, 48)).expect("possible");
        let level = move |shift| geometry.leaf_level(shift);
        (0..64).filter_map(move |shift| level(shift).map(|level| (shift, level)))
    };
    assert!(sizes(Granule::Size4K).eq([(12, 3), (21, 2), (30, 1)]));
    assert!(sizes(Granule::Size16K).eq([(14, 3), (25, 2)]));
    assert!(sizes(Granule::Size64K).eq([(16, 3), (29, 2)]));
}

#[test]
fn impossible_shapes_are_named() {
    for bits in [0, 31, 49, 52, 255] {
        let asked = config(Granule::Size4K, Stage::One, bits);
        assert_eq!(Geometry::new(asked), Err(ConfigError::InputBits(bits)));
    }
    for bits in [0, 33, 47, 52, 255] {
        let asked = Config { output_bits: bits, ..Config::default() };
        assert_eq!(Geometry::new(asked), Err(ConfigError::OutputBits(bits)));
    }
    assert_eq!(
        std::format!("{}", ConfigError::InputBits(52)),
        "52 bits of input address: 32 to 48 are possible"
    );
}

#[test]
fn attributes_are_the_manuals_bits() {
    use Access::{Read, ReadWrite, Write};
    use MemoryType::{DeviceNGnRE, NormalNonCacheable, NormalWriteBack};
    use Shareability::{Inner, Non, Outer};
    let bits = |stage, access, memory, sh| Attributes::with(stage, access, memory, sh).bits();
    // Stage 1: UXN 54, PXN 53, nG 11, AF 10, SH 9:8, AP[2:1] 7:6, AttrIndx 4:2.
    let one = |access, memory, sh| bits(Stage::One, access, memory, sh);
    assert_eq!(one(ReadWrite, NormalWriteBack, Inner), 0x0060_0000_0000_0f44);
    assert_eq!(one(Read, NormalWriteBack, Inner), 0x0060_0000_0000_0fc4);
    assert_eq!(one(Write, NormalWriteBack, Inner), 0x0060_0000_0000_0f44);
    assert_eq!(one(ReadWrite, NormalNonCacheable, Outer), 0x0060_0000_0000_0e40);
    assert_eq!(one(ReadWrite, DeviceNGnRE, Non), 0x0060_0000_0000_0c48);
    // Stage 2: XN[1] 54, AF 10, SH 9:8, S2AP 7:6, MemAttr 5:2.
    let two = |access, memory, sh| bits(Stage::Two, access, memory, sh);
    assert_eq!(two(ReadWrite, NormalWriteBack, Inner), 0x0040_0000_0000_07fc);
    assert_eq!(two(Read, NormalWriteBack, Inner), 0x0040_0000_0000_077c);
    assert_eq!(two(Write, NormalNonCacheable, Outer), 0x0040_0000_0000_0694);
    assert_eq!(two(Read, DeviceNGnRE, Non), 0x0040_0000_0000_0444);
}

#[test]
fn descriptors_are_the_manuals_bits() {
    let at = PhysAddr(0x8765_4321_f000);
    let attributes = Attributes::new(Stage::One, Access::ReadWrite).bits();
    let page = Descriptor::leaf(at, 3, attributes);
    assert_eq!(page, Descriptor(0x0060_8765_4321_ff47));
    let block = Descriptor::leaf(PhysAddr(0x8765_4320_0000), 2, attributes);
    assert_eq!(block, Descriptor(0x0060_8765_4320_0f45));
    let table = Descriptor::table(at);
    assert_eq!(table, Descriptor(0x8765_4321_f003));
    assert_eq!((page.address(), table.address()), (at, at));
    assert_eq!((page.attributes(), table.attributes()), (attributes, 0));
    // Valid and bit 1: a table above level 3, a page there; without bit 1 a block, reserved there.
    for level in 0..4 {
        assert_eq!(table.is_table(level), level < 3);
        assert_eq!(page.is_leaf(level), level == 3);
        assert_eq!(block.is_leaf(level), level < 3);
        assert!(!block.is_table(level));
        assert!(!Descriptor::EMPTY.is_leaf(level) && !Descriptor::EMPTY.is_table(level));
        // Any even number is as invalid as 0.
        let link = Descriptor(0x1234_5678_9abe);
        assert!(!link.is_valid() && !link.is_leaf(level) && !link.is_table(level));
    }
}
