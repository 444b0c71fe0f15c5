//! Levels and spans, as tables copied from the manual.
//!
//! *Read first*: Arm ARM DDI 0487, D8.2.
//!
//! The library computes these numbers; here they are the manual's tables. So an error in either
//! shows as a difference.

use barewire_iommu::{Config, Granule, Stage};

/// The registers' settings for a walk: granule, input size, initial level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// The stage, which decides the encoding of a leaf's attributes.
    pub stage: Stage,
    /// The width of an input address.
    pub input_bits: u32,
    /// The width of an output address; a wider one is an address size fault.
    pub output_bits: u32,
    /// The level of the root (SL0 at stage 2).
    pub start: u32,
    granule: Granule,
}

impl Shape {
    /// The shape that software configures for `config`. At stage 2 it concatenates wherever the
    /// root then has at most 16 tables.
    pub fn new(config: &Config) -> Self {
        let bits = u32::from(config.input_bits);
        let start = match (config.granule, config.stage, bits) {
            (Granule::Size4K, Stage::One, 40..=48) => 0,
            (Granule::Size4K, Stage::One, 31..=39) => 1,
            (Granule::Size4K, Stage::Two, 44..=48) => 0,
            (Granule::Size4K, Stage::Two, 35..=43) => 1,
            (Granule::Size4K, Stage::Two, 26..=34) => 2,
            (Granule::Size16K, Stage::One, 48) => 0,
            (Granule::Size16K, Stage::One, 37..=47) => 1,
            (Granule::Size16K, Stage::One, 26..=36) => 2,
            (Granule::Size16K, Stage::Two, 41..=48) => 1,
            (Granule::Size16K, Stage::Two, 30..=40) => 2,
            (Granule::Size64K, Stage::One, 43..=48) => 1,
            (Granule::Size64K, Stage::One, 30..=42) => 2,
            (Granule::Size64K, Stage::Two, 47..=48) => 1,
            (Granule::Size64K, Stage::Two, 34..=46) => 2,
            (Granule::Size64K, Stage::Two, 30..=33) => 3,
            other => panic!("no walk has this shape: {other:?}"),
        };
        Self {
            stage: config.stage,
            input_bits: bits,
            output_bits: u32::from(config.output_bits),
            start,
            granule: config.granule,
        }
    }

    /// log2 of the bytes one entry at `level` covers.
    ///
    /// # Panics
    /// If the granule has no such level.
    pub fn shift(&self, level: u32) -> u32 {
        let shifts: [u32; 4] = match self.granule {
            Granule::Size4K => [39, 30, 21, 12],
            Granule::Size16K => [47, 36, 25, 14],
            Granule::Size64K => [0, 42, 29, 16],
        };
        let shift = shifts[level as usize];
        assert!(shift != 0, "64 KiB granules have no level 0 without LPA");
        shift
    }

    /// The bytes one entry at `level` covers.
    pub fn span(&self, level: u32) -> u64 {
        1 << self.shift(level)
    }

    /// The number of entries of a table at `level`. For the root, of all its concatenated tables.
    pub fn entries(&self, level: u32) -> usize {
        if level == self.start {
            return 1 << (self.input_bits.saturating_sub(self.shift(level)));
        }
        match self.granule {
            Granule::Size4K => 512,
            Granule::Size16K => 2048,
            Granule::Size64K => 8192,
        }
    }

    /// Whether blocks are allowed at `level`.
    pub fn block_at(&self, level: u32) -> bool {
        match self.granule {
            Granule::Size4K => level == 1 || level == 2,
            Granule::Size16K | Granule::Size64K => level == 2,
        }
    }

    /// log2 of the granule.
    pub fn page_shift(&self) -> u32 {
        self.shift(3)
    }

    /// The first input address that is too large.
    pub fn input_end(&self) -> u64 {
        1 << self.input_bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barewire_iommu::Geometry;

    /// The library's arithmetic equals the manual's tables, for every shape.
    #[test]
    fn the_library_computes_what_the_tables_say() {
        let mut shapes = 0;
        for granule in [Granule::Size4K, Granule::Size16K, Granule::Size64K] {
            for stage in [Stage::One, Stage::Two] {
                for input_bits in 32..=48 {
                    let config = Config { granule, stage, input_bits, ..Config::default() };
                    let (ours, theirs) = (Shape::new(&config), Geometry::new(config).unwrap());
                    assert_eq!(ours.start, theirs.start_level(), "{config:?}");
                    assert_eq!(ours.page_shift(), theirs.page_shift());
                    assert_eq!(ours.entries(ours.start) * 8, theirs.root_bytes(), "{config:?}");
                    for level in ours.start..=3 {
                        assert_eq!(ours.shift(level), theirs.shift(level), "{config:?} {level}");
                        assert_eq!(ours.entries(level), theirs.entries(level), "{config:?}");
                        let leaf = level == 3 || ours.block_at(level);
                        assert_eq!(leaf, theirs.leaf_at(level), "{config:?} {level}");
                    }
                    shapes += 1;
                }
            }
        }
        assert_eq!(shapes, 3 * 2 * 17);
    }

    /// The root has at most 16 concatenated tables, and more than one only at stage 2.
    #[test]
    fn no_root_is_longer_than_the_manual_allows() {
        for granule in [Granule::Size4K, Granule::Size16K, Granule::Size64K] {
            for (stage, tables) in [(Stage::One, 1), (Stage::Two, 16)] {
                for input_bits in 32..=48 {
                    let config = Config { granule, stage, input_bits, ..Config::default() };
                    let shape = Shape::new(&config);
                    let single = 1 << (shape.page_shift() - 3);
                    assert!(shape.entries(shape.start) <= single * tables, "{config:?}");
                }
            }
        }
    }
}
