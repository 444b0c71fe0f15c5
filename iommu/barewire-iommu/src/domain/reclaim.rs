//! Frees tables in which nothing is mapped.
//!
//! # How it works
//! Small unmaps leave empty tables, since a neighbour may be about to map into them (see
//! `table/unmap.rs`). No count is kept of what is in a table. Instead the IOVA allocator decides: it
//! grants a claim of a table's whole span only if no mapping is in it. A sweep goes through the spans
//! of the root's tables. For each span:
//!
//! 1. Claim it. If part of it is taken, sweep the spans of the next level inside it instead.
//! 2. Unhook the table at that entry, if there is one, with all tables below it.
//! 3. Invalidate the walks through them, and wait.
//! 4. Free the tables and release the claim.
//!
//! Under a claim it is safe to descend to its entry. A table above the entry can only be unhooked by
//! a call whose claim covers that table's span, and such a claim would overlap this one. For the same
//! reason no other call is in the tables that step 2 unhooks. While it holds the claim, the sweep
//! looks for the next table in the same table above, and passes over what is empty.
//!
//! Mappings made meanwhile may find their addresses claimed. So if a call finds no addresses during
//! a sweep, it waits for the sweep's end and tries once more, before the next sweep may begin.
//!
//! # Not supported
//! A table stays if a reserved range lies in its span, or the allocator grants no claim there.
#![allow(unsafe_code, reason = "claims parts of the table on the allocator's promise")]

use core::ops::Range;

use super::error::DomainMapError;
use super::mapped::{Held, Mapped};
use super::{Domain, Inner};
use crate::address::{Iova, Segment};
use crate::format::{Attributes, LAST};
use crate::gather::Gather;
use crate::iova::{ClaimError, IovaAllocator};
use crate::pool::Pool;
use crate::table::MapError;
use crate::tlbi::Invalidate;

impl<P: Pool, I: Invalidate, A: IovaAllocator> Inner<P, I, A> {
    /// Frees the tables in which nothing is mapped. Returns their number.
    fn sweep_all(&self, freed: &mut usize) -> Result<(), Held> {
        let geometry = self.geometry();
        let (level, end) = (geometry.start_level(), geometry.input_end());
        let mut at = 0;
        // The root is never freed, so it is read without a claim.
        while level < LAST
            && let Some(base) = self.table.next_table(Iova(at))
        {
            at = self.sweep(level, base.0, freed)?;
            if at >= end {
                break;
            }
        }
        Ok(())
    }

    /// Frees the tables below the entry of `level` that begins at `base`. Returns where to look
    /// next, at or after the entry's end.
    fn sweep(&self, level: u32, base: u64, freed: &mut usize) -> Result<u64, Held> {
        let end = base + self.geometry().span(level);
        let range = Iova(base)..Iova(end);
        // Step 1: claim.
        match self.iovas.claim(range.clone()) {
            Ok(()) => Ok(self.vacate(range, freed)?.max(end)),
            // Outside the window a claim needs a place, which smaller spans inside it do not.
            Err(ClaimError::Taken | ClaimError::TooMany(_)) if level + 1 < LAST => {
                let mut at = base;
                while at < end {
                    at = self.sweep(level + 1, at, freed)?;
                }
                Ok(at)
            }
            // The table of the last level is used, or the claim is not possible.
            Err(_) => Ok(end),
        }
    }

    /// Steps 2 to 4, for a span that was claimed.
    fn vacate(&self, range: Range<Iova>, freed: &mut usize) -> Result<u64, Held> {
        let mut gather = Gather::new();
        // SAFETY: the allocator granted the range to this call only.
        let mut part = unsafe { self.table.part(range.clone()) };
        // Step 2: unhook.
        let next = part.vacate(&mut gather);
        let count = gather.tables();
        // Steps 3 and 4. Without unhooked tables nothing is flushed.
        let strategy = self.policy.strategy();
        self.retire(range, &mut gather, &strategy)?;
        *freed += count;
        Ok(next.0)
    }
}

impl<P: Pool, I: Invalidate, A: IovaAllocator, const N: usize> Domain<P, I, A, N> {
    /// Frees the tables in which nothing is mapped any more, and returns their number. A map that
    /// runs out of tables does this by itself.
    ///
    /// Each table, or tree of tables, costs an invalidation. Tables of ranges that wait in the flush
    /// queue are not freed: [`flush`](Self::flush) first. A table stays if a
    /// [reserved](Self::reserve) range lies in its span. If another thread reclaims, this call waits
    /// for its end.
    ///
    /// # Errors
    /// The remainder after a failed flush: tables, and the addresses that they translate.
    /// Tables that were freed before stay freed.
    pub fn reclaim(&self) -> Result<usize, Held> {
        let mut freed = 0;
        let _sweep = self.inner.sweeps.begin();
        self.inner.sweep_all(&mut freed).map(|()| freed)
    }

    /// Goes on with a map that ran out of tables. `gather` is the gather of the failed attempt.
    #[cold]
    pub(super) fn map_without_memory(
        &self,
        range: Range<Iova>,
        segments: &[Segment],
        attributes: Attributes,
        mut error: MapError,
        mut gather: Gather,
    ) -> Result<Mapped, DomainMapError> {
        // First the entries in the flush queue, then empty tables.
        for wait in [true, false] {
            // Walkers may have seen the part that was mapped before the failure.
            let strategy = self.inner.policy.strategy();
            if let Err(held) = self.inner.settle(&range, &mut gather, &strategy) {
                return Err(DomainMapError::Held { error, held });
            }
            let more = if wait {
                self.queue.waiting().0 != 0 && self.flush().is_ok()
            } else {
                match self.reclaim() {
                    // Perhaps another thread freed tables, so the map is tried in any case.
                    Ok(_) => true,
                    Err(held) => {
                        self.inner.release_iovas(range);
                        return Err(DomainMapError::Held { error, held });
                    }
                }
            };
            if more {
                match self.inner.map(&range, segments, attributes, &mut gather) {
                    Ok(leaves) => return Ok(self.mapped(range, leaves)),
                    Err(again) => error = again,
                }
            }
            if !matches!(error, MapError::OutOfMemory(_)) {
                break;
            }
        }
        self.give_up(range, gather, error)
    }
}
