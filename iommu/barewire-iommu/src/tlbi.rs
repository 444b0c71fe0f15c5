//! What a TLB can be told, and who tells it.

use core::fmt;

use crate::address::Iova;

/// Whose entries: the tag a TLB keeps with each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Context {
    /// A stage 1 table's.
    Asid(u16),
    /// A stage 2 table's.
    Vmid(u16),
}

/// An invalidation, as the architecture has them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tlbi {
    /// Everything of the context (TLBI ASID, TLBI S12_VMALL).
    Context,
    /// One command for each of `count` addresses, `1 << stride` bytes apart (TLBI VA, TLBI IPA).
    Pages {
        /// The first.
        iova: Iova,
        /// log2 of the distance in bytes.
        stride: u32,
        /// How many.
        count: u64,
        /// Only leaves were removed: cached walks stay.
        leaf: bool,
        /// The level all removed leaves stood at, if one (TTL); only with `leaf`.
        level: Option<u8>,
    },
    /// As few commands as cover `pages` granules (SMMUv3.2's range invalidation).
    Range {
        /// The first address.
        iova: Iova,
        /// log2 of the granule.
        page_shift: u32,
        /// Granules.
        pages: u64,
        /// Only leaves were removed.
        leaf: bool,
        /// As for `Pages`.
        level: Option<u8>,
    },
}

/// An invalidation that did not complete: nothing it covers may be freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FlushError {
    /// The hardware has not said in time that it is done.
    Timeout,
    /// The hardware refused a command (SMMU_CMDQ_CONS.ERR).
    Command(u8),
}

impl fmt::Display for FlushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("the TLB invalidation has not completed in time"),
            Self::Command(code) => write!(f, "the SMMU refused a command: error {code:#x}"),
        }
    }
}

impl core::error::Error for FlushError {}

/// Hardware, or a model of it, that invalidates.
pub trait Invalidate {
    /// Issues `operations` and waits until all have completed: after it, no access by the device
    /// goes through anything they cover.
    ///
    /// Stores to tables before the call are seen by every walk after it.
    ///
    /// # Errors
    /// If completion is not known; the caller may try again and must free nothing before.
    fn flush(&self, context: Context, operations: &[Tlbi]) -> Result<(), FlushError>;

    /// Whether it takes [`Tlbi::Range`].
    fn has_ranges(&self) -> bool {
        false
    }

    /// Individual commands that `operations` are for it, without the one that waits.
    fn commands(&self, operations: &[Tlbi]) -> u64 {
        operations.iter().map(Tlbi::commands).sum()
    }
}

/// Whoever has one by reference can flush with it: a domain need not own its SMMU.
impl<I: Invalidate + ?Sized> Invalidate for &I {
    fn flush(&self, context: Context, operations: &[Tlbi]) -> Result<(), FlushError> {
        (**self).flush(context, operations)
    }

    fn has_ranges(&self) -> bool {
        (**self).has_ranges()
    }

    fn commands(&self, operations: &[Tlbi]) -> u64 {
        (**self).commands(operations)
    }
}

impl Tlbi {
    /// Commands this is on an SMMUv3.
    pub fn commands(&self) -> u64 {
        match *self {
            Self::Context => 1,
            Self::Pages { count, .. } => count,
            Self::Range { pages, .. } => range_commands(pages),
        }
    }
}

/// Bits of a range command's NUM field, whose range is `(NUM + 1) << SCALE` granules.
const RANGE_NUM_BITS: u32 = 5;

/// One range command: `count << scale` granules, `count` 1 to 32 and `scale` 0 to 31.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RangeStep {
    /// NUM + 1.
    pub count: u64,
    /// SCALE.
    pub scale: u32,
}

/// The fewest range commands that together are exactly `pages` granules, smallest first.
///
/// NUM has five bits, so a number of pages is cut into pieces of five bits from its lowest set bit
/// up. A power of two is one command, and no number of a 48-bit space more than eight.
///
/// ```
/// use barewire_iommu::range_steps;
///
/// // 33 pages are one too many for one command.
/// let steps: Vec<_> = range_steps(33).map(|step| (step.count, step.scale)).collect();
/// assert_eq!(steps, [(1, 0), (1, 5)]);
/// ```
pub fn range_steps(pages: u64) -> impl Iterator<Item = RangeStep> {
    let mut rest = pages;
    core::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let mut scale = rest.trailing_zeros();
        let mut count = (rest >> scale) & ((1 << RANGE_NUM_BITS) - 1);
        if scale > 31 {
            // SCALE has five bits as well.
            count = (count << (scale - 31)).min(1 << RANGE_NUM_BITS);
            scale = 31;
        }
        rest -= count << scale;
        Some(RangeStep { count, scale })
    })
}

/// How many commands [`range_steps`] has.
pub fn range_commands(pages: u64) -> u64 {
    range_steps(pages).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn range_steps_make_up_the_pages_and_fit_their_fields() {
        let limit = if cfg!(miri) { 100 } else { 2000 };
        let numbers = (1..limit).chain([8191, 8192, 8193, (1 << 36) - 1, 1 << 36, 1 << 38]);
        for pages in numbers {
            let steps: Vec<_> = range_steps(pages).collect();
            assert_eq!(steps.iter().map(|s| s.count << s.scale).sum::<u64>(), pages);
            assert!(
                steps.iter().all(|s| (1..=32).contains(&s.count) && s.scale <= 31),
                "{steps:?}"
            );
            assert_eq!(range_commands(pages), steps.len() as u64);
        }
        assert_eq!(range_commands(0), 0);
    }

    /// The fewest, against a search of everything: which sizes one command has is all it knows.
    #[test]
    fn there_are_no_fewer_commands() {
        let limit = if cfg!(miri) { 40 } else { 3000 };
        let sizes: Vec<usize> =
            (0..12).flat_map(|scale| (1..=32).map(move |count: usize| count << scale)).collect();
        let mut fewest = vec![0u64; limit];
        for pages in 1..limit {
            let fits = sizes.iter().filter(|&&size| size <= pages);
            fewest[pages] = 1 + fits.map(|size| fewest[pages - size]).min().unwrap();
            assert_eq!(range_commands(pages as u64), fewest[pages], "{pages} pages");
        }
    }

    #[test]
    fn commands_are_counted_by_kind() {
        let pages =
            Tlbi::Pages { iova: Iova(0), stride: 12, count: 512, leaf: true, level: Some(3) };
        let range =
            Tlbi::Range { iova: Iova(0), page_shift: 12, pages: 33, leaf: true, level: None };
        assert_eq!([Tlbi::Context, pages, range].map(|t| t.commands()), [1, 512, 2]);
    }
}
