//! Levels, indices and sizes that follow from a [`Config`].

use super::config::{Config, ConfigError, Stage};

/// The last level: its descriptors are pages.
pub(crate) const LAST: u32 = 3;

/// The largest number of concatenated tables in a stage 2 root (D8.2.2).
const CONCATENATED_MAX: u32 = 16;

/// The shape of a table. Levels count from the root's to 3, as in the manual.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    config: Config,
    /// The bytes of a page.
    page_bytes: u64,
    /// log2 of the granule.
    page_shift: u32,
    /// log2 of the number of entries of a table.
    index_bits: u32,
    /// The level of the root.
    start: u32,
    /// log2 of the number of entries of the root.
    root_bits: u32,
    /// log2 of the bytes that one entry of the root covers.
    root_shift: u32,
    /// The first IOVA that is too large.
    input_end: u64,
    /// The first physical address that is too large.
    output_end: u64,
    /// 4 KiB granules and four levels, and no page has the Contiguous hint.
    four_of_4k: bool,
    /// Pages may have the Contiguous hint.
    contiguous: bool,
}

impl Geometry {
    /// Computes the shape for `config`.
    ///
    /// # Errors
    /// [`ConfigError::InputBits`], [`ConfigError::OutputBits`].
    pub const fn new(config: Config) -> Result<Self, ConfigError> {
        if config.input_bits < 32 || config.input_bits > 48 {
            return Err(ConfigError::InputBits(config.input_bits));
        }
        if !matches!(config.output_bits, 32 | 36 | 40 | 42 | 44 | 48) {
            return Err(ConfigError::OutputBits(config.output_bits));
        }
        let page_shift = config.granule.shift();
        let index_bits = page_shift - 3;
        let resolved = config.input_bits as u32 - page_shift;
        let mut levels = resolved.div_ceil(index_bits);
        let mut root_bits = resolved - (levels - 1) * index_bits;
        if matches!(config.stage, Stage::Two) && levels > 1 && 1 << root_bits <= CONCATENATED_MAX {
            // One level less to walk: the tables that the root's entries would point to are the
            // root.
            levels -= 1;
            root_bits += index_bits;
        }
        let start = LAST + 1 - levels;
        let root_shift = page_shift + (levels - 1) * index_bits;
        Ok(Self {
            config,
            page_bytes: 1 << page_shift,
            page_shift,
            index_bits,
            start,
            root_bits,
            root_shift,
            input_end: 1 << config.input_bits,
            output_end: 1 << config.output_bits,
            four_of_4k: page_shift == 12 && start == 0,
            contiguous: false,
        })
    }

    /// The configuration it was made from.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The level of the root: 0 to 2, or 3 at stage 2 with little more than 32 bits and 64 KiB
    /// granules.
    pub const fn start_level(&self) -> u32 {
        self.start
    }

    /// The number of entries of the table at `level`. A concatenated root counts as one table.
    pub const fn entries(&self, level: u32) -> usize {
        1 << if level == self.start { self.root_bits } else { self.index_bits }
    }

    /// The size of the root in bytes. The root is aligned to its size, or to 64 bytes if it is
    /// smaller.
    pub const fn root_bytes(&self) -> usize {
        8 << self.root_bits
    }

    /// The size in bytes of every other table, and of a page.
    pub const fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// The number of entries of the root.
    pub(crate) const fn root_entries(&self) -> usize {
        1 << self.root_bits
    }

    /// log2 of the bytes that one entry of the root covers.
    pub(crate) const fn root_shift(&self) -> u32 {
        self.root_shift
    }

    /// log2 of the number of entries of every table but the root.
    pub const fn index_bits(&self) -> u32 {
        self.index_bits
    }

    /// log2 of the granule.
    pub const fn page_shift(&self) -> u32 {
        self.page_shift
    }

    /// log2 of the bytes that one entry at `level` covers.
    pub const fn shift(&self, level: u32) -> u32 {
        self.page_shift + (LAST - level) * self.index_bits
    }

    /// The bytes that one entry at `level` covers.
    pub const fn span(&self, level: u32) -> u64 {
        1 << self.shift(level)
    }

    /// The index of `iova` in its table at `level`.
    pub const fn index(&self, iova: u64, level: u32) -> usize {
        (iova >> self.shift(level)) as usize & (self.entries(level) - 1)
    }

    /// Whether `level` may have leaves: pages at 3, blocks at 2, and with 4 KiB granules blocks at
    /// 1.
    pub const fn leaf_at(&self, level: u32) -> bool {
        level == LAST || level == 2 || (level == 1 && self.page_shift == 12)
    }

    /// The level whose leaves have `1 << shift` bytes, if there is one.
    pub const fn leaf_level(&self, shift: u32) -> Option<u32> {
        let mut level = self.start;
        while level <= LAST {
            if self.shift(level) == shift && self.leaf_at(level) {
                return Some(level);
            }
            level += 1;
        }
        None
    }

    /// The first IOVA that is too large.
    pub const fn input_end(&self) -> u64 {
        self.input_end
    }

    /// The first physical address that is too large.
    pub const fn output_end(&self) -> u64 {
        self.output_end
    }

    /// The same shape, in which pages may have the Contiguous hint, if the granule is 4 KiB.
    pub(crate) const fn with_contiguous(mut self) -> Self {
        self.contiguous = self.page_shift == 12;
        self.four_of_4k &= !self.contiguous;
        self
    }

    /// Whether pages may have the Contiguous hint.
    #[inline]
    pub const fn is_contiguous(&self) -> bool {
        self.contiguous
    }

    /// Whether it has 4 KiB granules, four levels and no Contiguous hint: the usual shape, whose single
    /// pages have paths of their own.
    #[inline]
    pub(crate) const fn is_four_of_4k(&self) -> bool {
        self.four_of_4k
    }
}
