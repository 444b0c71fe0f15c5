//! Groups of 16 pages that a TLB may keep as one entry: the Contiguous hint (D8.7.1), 64 KiB with 4 KiB
//! granules.
//!
//! # How it works
//! All 16 descriptors of a group have the hint, one output range and one set of attributes, and the TLB may
//! read any of them for all. So a group is treated as a block is:
//!
//! - A map writes a group where 16 empty entries, aligned to a group, lead to an aligned, contiguous piece
//!   of memory. It lies in one part then, as a block does.
//! - An unmap that covers a group clears it. A range that cuts one is refused, unless the hardware lets the
//!   hint change under a walker (FEAT_BBM level 2), or by break-before-make
//!   ([`unmap_quiesced`](super::Part::unmap_quiesced)):
//!   1. Clear the hint: with FEAT_BBM by a store to each entry; otherwise all 16 are cleared, invalidated
//!      and written again.
//!   2. Clear the entries in the range.
//! - [`protect`](super::Part::protect) changes whole groups only, by break-before-make.
//! - Tables that empty pages left behind are replaced as usual: they have no group.
//!
//! # Not supported
//! The hint with other granules, and for blocks. Pages that were mapped one by one never become a group.

use core::ops::Range;

use super::node::Node;
use crate::format::{Descriptor, LAST};
use crate::pool::Pool;

/// The pages of a group.
pub(super) const PAGES: usize = 16;
/// log2 of its bytes.
const SHIFT: u32 = 16;
/// Its bytes.
pub(super) const BYTES: u64 = 1 << SHIFT;

/// The number of entries up to the next group.
pub(super) fn room(index: usize) -> usize {
    PAGES - index % PAGES
}

/// The group that `at`, an address in `node`, cuts: the index of its first entry, and its first IOVA.
pub(super) fn cut_at<P: Pool>(node: Node<'_, P>, at: u64) -> Option<(usize, u64)> {
    let index = node.index(at);
    let is_cut = node.level() == LAST
        && node.geometry().is_contiguous()
        && at & (BYTES - 1) != 0
        && node.load(index).is_valid()
        && node.load(index).is_contiguous();
    is_cut.then(|| (index - index % PAGES, at & !(BYTES - 1)))
}

/// Replaces the group at entry `first` of `node`, whose first leaf is or was `leaf`, by single pages, without
/// those in `range`. `base` is its first IOVA. Unless `is_at_once`, the group was cleared and invalidated
/// before.
pub(super) fn dissolve<P: Pool>(
    node: Node<'_, P>,
    first: usize,
    base: u64,
    leaf: Descriptor,
    range: &Range<u64>,
    is_at_once: bool,
) {
    let page = |n: usize| leaf.without_hint().0 + ((n as u64) << node.shift());
    // Step 1: no entry has the hint.
    if is_at_once {
        node.put(first, PAGES, page);
        node.clean(first..first + PAGES);
        node.pool().barrier();
    }
    // Step 2: the entries in the range are empty.
    let kept = |n: usize| !range.contains(&(base + ((n as u64) << node.shift())));
    node.put(first, PAGES, |n| if kept(n) { page(n) } else { Descriptor::EMPTY.0 });
    node.clean(first..first + PAGES);
}
