//! Maps the whole tables that a list of single pages begins with: what large scattered buffers are.
//!
//! Each is filled, published and done with. The rest of the list, and any error, is for the general
//! code ([`Mapper`](super::map::Mapper)), which also takes back what was mapped here if it fails.

use core::ops::Range;

use super::PageTable;
use super::fill::{self, Batch};
use super::mark::descend;
use super::node::{AHEAD, Fresh};
use super::quick;
use crate::address::Segment;
use crate::format::LAST;
use crate::pool::{Chain, Pool};

/// Maps segments from the beginning of `segments` at `iova`, as long as they fill empty entries for
/// whole tables in the table above. Returns their number.
///
/// The caller has checked `iova`, which is in `part`.
#[inline(never)]
pub(super) fn map<P: Pool>(
    table: &PageTable<P>,
    part: &Range<u64>,
    iova: u64,
    segments: &[Segment],
    batch: &Batch,
) -> usize {
    let bits = table.geometry.index_bits();
    let shift = table.geometry.page_shift() + bits;
    let offset = (1 << shift) - 1;
    if iova & offset != 0 {
        return 0;
    }
    let node = quick::above_last(table, iova).unwrap_or_else(|| descend(table, iova));
    if node.level() + 1 != LAST {
        return 0;
    }
    let first = node.index(iova);
    let room = ((part.end - iova) >> shift) as usize;
    let most = (segments.len() >> bits).min(room).min(node.entries() - first);
    let mut spare = Chain::new();
    let mut done = 0;
    while done < most {
        let index = first + done;
        let list = &segments[done << bits..][..1 << bits];
        // A list that begins like a block may be one.
        if list[0].phys.0 & offset == 0 || node.load(index).is_valid() {
            break;
        }
        let Some(mut fresh) = Fresh::take(table, &mut spare, || (most - done).min(AHEAD)) else {
            break;
        };
        if !fresh.fill(table, |entries| fill::fill(entries, list, batch)) {
            fresh.give_back(table, &mut spare);
            break;
        }
        fresh.clean(table, 0..1 << bits);
        // The part covers the entry's whole span, so no other thread writes it.
        node.store(index, fresh.into_descriptor::<P>());
        node.clean(index..index + 1);
        done += 1;
    }
    Fresh::free(table, spare);
    done << bits
}
