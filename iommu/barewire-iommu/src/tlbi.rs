//! The invalidation commands of a TLB, and the trait that issues them.

use core::fmt;

use crate::address::Iova;

/// The tag that a TLB keeps with each entry: it says whose translation the entry is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Context {
    /// The entries of a stage 1 table.
    Asid(u16),
    /// The entries of a stage 2 table.
    Vmid(u16),
}

/// A TLB invalidation, as the architecture defines it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tlbi {
    /// Every entry of the context (TLBI ASID, TLBI S12_VMALL).
    Context,
    /// One command for each of `count` addresses, `1 << stride` bytes apart (TLBI VA, TLBI IPA).
    Pages {
        /// The first address.
        iova: Iova,
        /// log2 of the distance between addresses, in bytes.
        stride: u32,
        /// The number of addresses.
        count: u64,
        /// Only leaves were removed: cached table entries may stay.
        leaf: bool,
        /// The level of all removed leaves, if they have one level (TTL). Only with `leaf`.
        level: Option<u8>,
    },
    /// The fewest commands that cover `pages` granules (range invalidation of SMMUv3.2).
    Range {
        /// The first address.
        iova: Iova,
        /// log2 of the granule.
        page_shift: u32,
        /// The length in granules.
        pages: u64,
        /// Only leaves were removed.
        leaf: bool,
        /// As for `Pages`.
        level: Option<u8>,
    },
}

/// An invalidation that did not complete. Memory it covers must not be freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FlushError {
    /// The hardware did not report completion in time.
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

/// Hardware, or a model of it, that invalidates TLB entries.
pub trait Invalidate {
    /// Issues `operations` and waits until all have completed. When it returns, no access by the
    /// device uses a translation that they cover.
    ///
    /// A walk after this call sees every store to the tables before it.
    ///
    /// # Errors
    /// Completion is not known. The caller may try again, and must not free anything before a call
    /// succeeds.
    fn flush(&self, context: Context, operations: &[Tlbi]) -> Result<(), FlushError>;

    /// Whether the back end supports [`Tlbi::Range`].
    fn has_ranges(&self) -> bool {
        false
    }

    /// The number of commands this back end issues for `operations`, without the final sync.
    fn commands(&self, operations: &[Tlbi]) -> u64 {
        operations.iter().map(Tlbi::commands).sum()
    }
}

/// A reference is enough to flush: a domain need not own its SMMU.
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
    /// The number of commands this operation takes on an SMMUv3.
    pub fn commands(&self) -> u64 {
        match *self {
            Self::Context => 1,
            Self::Pages { count, .. } => count,
            Self::Range { pages, .. } => range_commands(pages),
        }
    }
}

/// The width of a range command's NUM field. The range is `(NUM + 1) << SCALE` granules.
const RANGE_NUM_BITS: u32 = 5;

/// One range command for `count << scale` granules, with `count` 1 to 32 and `scale` 0 to 31.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RangeStep {
    /// The NUM field + 1.
    pub count: u64,
    /// The SCALE field.
    pub scale: u32,
}

/// The fewest range commands that together cover exactly `pages` granules, smallest first.
///
/// NUM has five bits, so the number of pages is cut into groups of five bits, from its lowest set
/// bit up. A power of two takes one command. No number in a 48-bit space takes more than eight.
///
/// ```
/// use barewire_iommu::range_steps;
///
/// // 33 pages do not fit one command.
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
            // SCALE has five bits too.
            count = (count << (scale - 31)).min(1 << RANGE_NUM_BITS);
            scale = 31;
        }
        rest -= count << scale;
        Some(RangeStep { count, scale })
    })
}

/// The number of commands [`range_steps`] returns.
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

    /// Compares with an exhaustive search that knows only which sizes one command can have.
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
