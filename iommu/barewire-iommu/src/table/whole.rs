//! Maps the whole tables that a list of single pages begins with: what large scattered buffers are.
//!
//! Each is filled, published and done with. The rest of the list, and any error, is for the general
//! code ([`Mapper`](super::map::Mapper)), which also takes back what was mapped here if it fails. So are other
//! granules than 4 KiB: with it, shifts and lengths are constants, which is 5 % of a table's instructions.

use core::ops::Range;

use super::PageTable;
use super::fill;
use super::node::{AHEAD, Fresh};
use super::quick::{self, INDEX_BITS, PAGE_SHIFT, SPAN_SHIFT};
use super::sg::Limits;
use crate::address::{Iova, Segment};
use crate::format::Attributes;
use crate::pool::{Chain, Pool};

/// The entries of a table.
const PAGES: usize = 1 << INDEX_BITS;

/// Whether this is for a list of this length.
#[inline]
pub(super) fn may_begin<P: Pool>(table: &PageTable<P>, segments: &[Segment]) -> bool {
    let geometry = &table.geometry;
    segments.len() >= PAGES && geometry.page_shift() == PAGE_SHIFT && !geometry.is_contiguous()
}

/// Maps segments from the beginning of `segments` at `iova`, as long as they fill empty entries for
/// whole tables in the table above. Returns their number.
///
/// [`may_begin`] is true.
#[inline(never)]
pub(super) fn map<P: Pool>(
    table: &PageTable<P>,
    part: &Range<u64>,
    iova: Iova,
    segments: &[Segment],
    attributes: Attributes,
) -> usize {
    let offset = (1 << SPAN_SHIFT) - 1;
    let is_right = iova.0 & offset == 0
        && part.contains(&iova.0)
        && attributes.stage() == table.geometry.config().stage;
    if !is_right {
        return 0;
    }
    let Some(node) = quick::above_last(table, iova.0) else { return 0 };
    let batch = Limits::new(&table.geometry, part.end).batch(attributes.bits());
    let first = node.index(iova.0);
    let room = (part.end - iova.0) >> SPAN_SHIFT;
    let (lists, _) = segments.as_chunks::<PAGES>();
    let most = lists.len().min(room as usize).min(node.entries() - first);
    let (mut done, mut spare) = (0, Chain::new());
    for list in &lists[..most] {
        let index = first + done;
        // A list that begins like a block may be one.
        if list[0].phys.0 & offset == 0 || node.load(index).is_valid() {
            break;
        }
        let ahead = || (most - done).min(AHEAD);
        let Some(mut fresh) = Fresh::take(table, &mut spare, ahead) else { break };
        if !fresh.fill(table, |entries| fill::table(entries, list, &batch)) {
            fresh.give_back(table, &mut spare);
            break;
        }
        fresh.clean(table, 0..PAGES);
        // The part covers the entry's whole span, so no other thread writes it.
        node.store(index, fresh.into_descriptor::<P>());
        node.clean(index..index + 1);
        done += 1;
    }
    Fresh::free(table, spare);
    done * PAGES
}
