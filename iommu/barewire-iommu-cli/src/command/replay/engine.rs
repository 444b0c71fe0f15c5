//! The table code under one strategy: the mappings its calls remove, their invalidations and their
//! cost.
//!
//! # Safety
//! An engine owns its table and its TLB, so its invalidations are complete at once.
#![allow(
    unsafe_code,
    reason = "an engine is its own hardware: it says when an invalidation is complete"
)]

use std::ops::Range;

use barewire_iommu::{
    Arena, Attributes, Config, ConfigError, Facts, Gather, Geometry, Iova, MapError, PageTable,
    PhysAddr, Strategy, Tlbi, UnmapError,
};

use super::costs::Prices;
use super::tlb::Tlb;
use super::window::Window;

/// How the engine's calls become invalidations.
#[derive(Clone, Copy, Debug)]
pub(super) enum Plan {
    /// As Linux did when the thread was written: a call is cut into the largest blocks' spans, and
    /// each table it finds there is invalidated before it is freed, by `walk`. Single leaves are
    /// always invalidated by address; `walk` is about tables.
    EachWalk { walk: Strategy },
    /// A call unhooks all its tables, then invalidates once.
    Gathered(Strategy),
    /// Mappings that calls removed wait until one flush of the context invalidates them all.
    Deferred(Bounds),
}

/// How much may wait, and how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) calls: usize,
    pub(super) age_ns: u64,
}

/// Counts of the work done.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Counts {
    pub(super) calls: u64,
    /// Leaves emptied one by one, as opposed to those in tables that were unhooked.
    pub(super) leaf_stores: u64,
    pub(super) flushes: u64,
    pub(super) by_address: u64,
    pub(super) by_range: u64,
    pub(super) by_context: u64,
    /// Misses that would have been hits if only the unmapped ranges had been invalidated.
    pub(super) refill_misses: u64,
    pub(super) misses: u64,
    pub(super) unmap_ps: u64,
    /// Deferred: flushes made because a waiting IOVA was mapped again.
    pub(super) forced: u64,
    /// Deferred: the most bytes that waited.
    pub(super) held_bytes_max: u64,
}

impl Counts {
    pub(super) fn invalidations(&self) -> u64 {
        self.by_address + self.by_range + self.by_context
    }
}

/// The removed ranges and tables that wait for a deferred flush.
struct Pending {
    gather: Gather,
    ranges: Vec<Range<u64>>,
    bytes: u64,
    since_ns: u64,
}

/// A table, its TLB and its account.
pub(super) struct Engine<'m> {
    pub(super) name: &'static str,
    plan: Plan,
    prices: Prices,
    table: PageTable<&'m Arena<'m>>,
    attributes: Attributes,
    pub(super) tlb: Tlb,
    pending: Pending,
    pub(super) counts: Counts,
    pub(super) window: Window,
}

/// A leaf: its first IOVA and log2 of its bytes.
pub(super) type Leaf = (u64, u32);

impl<'m> Engine<'m> {
    pub(super) fn new(
        (name, plan): (&'static str, Plan),
        config: Config,
        attributes: Attributes,
        arena: &'m Arena<'m>,
        prices: Prices,
        window: Window,
    ) -> Result<Self, ConfigError> {
        let (gather, ranges) = (Gather::new(), Vec::new());
        Ok(Self {
            name,
            plan,
            prices,
            table: PageTable::new(config, arena)?,
            attributes,
            tlb: Tlb::new(prices.strategy.tlb_entries as usize),
            pending: Pending { gather, ranges, bytes: 0, since_ns: 0 },
            counts: Counts::default(),
            window,
        })
    }

    fn geometry(&self) -> Geometry {
        *self.table.geometry()
    }

    /// The parts of a range that are mapped.
    pub(super) fn mapped(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut mapped: Vec<Range<u64>> = Vec::new();
        for found in self.table.ranges(Iova(range.start)..Iova(range.end)) {
            let (start, end) = (found.iova.0, found.iova.0 + found.len);
            match mapped.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => mapped.push(start..end),
            }
        }
        mapped
    }

    /// The leaves a range has to do with.
    pub(super) fn leaves(&self, range: &Range<u64>) -> Vec<Leaf> {
        let mut leaves = Vec::new();
        for mapped in self.mapped(range) {
            let mut at = mapped.start;
            while at < mapped.end {
                let Some(found) = self.table.iova_to_phys(Iova(at)) else { break };
                let base = at >> found.shift << found.shift;
                leaves.push((base, found.shift));
                at = base + (1 << found.shift);
            }
        }
        leaves
    }

    /// Maps the parts that are not mapped yet: by pages only if `pages` is set, else by blocks too.
    pub(super) fn map(
        &mut self,
        range: &Range<u64>,
        phys: u64,
        pages: bool,
        time_ns: u64,
    ) -> Result<(), MapError> {
        let waits = |held: &Range<u64>| held.start < range.end && range.start < held.end;
        if self.pending.ranges.iter().any(waits) {
            self.counts.forced += 1;
            let ps = self.flush_pending();
            self.spend(time_ns, ps);
        }
        let geometry = self.geometry();
        let (iova, phys, size) = (Iova(range.start), PhysAddr(phys), range.end - range.start);
        // Filled by a call that fails half way, which a replay ends with.
        let mut failed = Gather::new();
        let mut part = self.table.whole();
        if pages {
            let (shift, count) = (geometry.page_shift(), size >> geometry.page_shift());
            part.map_pages(iova, phys, shift, count, self.attributes, &mut failed)
        } else {
            part.map(iova, phys, size, self.attributes, &mut failed)
        }
    }

    /// Removes a mapping that the trace shows to be gone though it does not say when: at no cost,
    /// and its TLB entries with it.
    pub(super) fn forget(&mut self, range: &Range<u64>) -> Result<(), UnmapError> {
        let size = range.end - range.start;
        let mut gather = Gather::new();
        self.table.whole().unmap(Iova(range.start), size, &mut gather)?;
        self.tlb.forget(range.start, size);
        self.complete(&mut gather);
        Ok(())
    }

    /// Unmaps, invalidates as planned, and counts the cost. `live` entries stay mapped.
    pub(super) fn unmap(
        &mut self,
        range: &Range<u64>,
        live: u64,
        time_ns: u64,
    ) -> Result<(), UnmapError> {
        self.counts.calls += 1;
        let mut ps = self.prices.call_ps;
        match self.plan {
            Plan::EachWalk { walk } => {
                for piece in pieces(&self.geometry(), range) {
                    let mut gather = Gather::new();
                    ps += self.remove(&piece, &mut gather)?;
                    let strategy = if gather.tables() > 0 { walk } else { Strategy::ByPage };
                    ps += self.flush(&strategy, &mut gather, live);
                }
            }
            Plan::Gathered(strategy) => {
                let mut gather = Gather::new();
                ps += self.remove(range, &mut gather)?;
                ps += self.flush(&strategy, &mut gather, live);
            }
            Plan::Deferred(bounds) => {
                let mut gather = Gather::new();
                ps += self.remove(range, &mut gather)?;
                ps += self.defer(range, gather, bounds, time_ns);
            }
        }
        self.spend(time_ns, ps);
        Ok(())
    }

    /// Removes a range from the table. Returns the time that takes.
    fn remove(&mut self, range: &Range<u64>, gather: &mut Gather) -> Result<u64, UnmapError> {
        if range.is_empty() {
            return Ok(0);
        }
        let stores = self.leaf_stores(range);
        self.table.whole().unmap(Iova(range.start), range.end - range.start, gather)?;
        self.counts.leaf_stores += stores;
        Ok(stores * self.prices.page_ps)
    }

    /// Leaves in the range whose table stays in use. They are cleared one by one.
    fn leaf_stores(&self, range: &Range<u64>) -> u64 {
        let geometry = self.geometry();
        let stays = |&(base, shift): &Leaf| {
            let level = (0..=3).find(|&level| geometry.shift(level) == shift).unwrap_or(3);
            let Some(above) = level.checked_sub(1).filter(|&l| l >= geometry.start_level()) else {
                return true;
            };
            let table = base & !(geometry.span(above) - 1);
            table < range.start || range.end - table < geometry.span(above)
        };
        self.leaves(range).iter().filter(|leaf| stays(leaf)).count() as u64
    }

    /// Invalidates everything gathered in one flush. Returns the time that takes.
    fn flush(&mut self, strategy: &Strategy, gather: &mut Gather, live: u64) -> u64 {
        if gather.is_empty() {
            return 0;
        }
        let facts = Facts {
            page_shift: self.geometry().page_shift(),
            has_ranges: matches!(strategy, Strategy::ByRange) || self.prices.has_ranges,
            live_entries: live,
        };
        let operations = strategy.operations(gather.runs(), &facts);
        let ps = self.tell(operations.as_slice());
        self.complete(gather);
        ps
    }

    /// Makes one flush of these operations. Returns the time that takes.
    fn tell(&mut self, operations: &[Tlbi]) -> u64 {
        let costs = &self.prices.strategy;
        let mut ps = u64::from(costs.wait_ps);
        self.counts.flushes += 1;
        for operation in operations {
            let commands = operation.commands();
            let (count, each_ps) = match operation {
                Tlbi::Context => (&mut self.counts.by_context, costs.context_ps),
                Tlbi::Pages { .. } => (&mut self.counts.by_address, costs.address_ps),
                Tlbi::Range { .. } => (&mut self.counts.by_range, costs.range_ps),
            };
            *count += commands;
            ps += commands * u64::from(each_ps);
            self.tlb.invalidate(operation);
        }
        ps
    }

    fn complete(&mut self, gather: &mut Gather) {
        // SAFETY: it is this table's gather, and our own TLB has dropped its entries: nothing is
        // cached.
        unsafe { self.table.release(gather) };
    }

    /// Lets the range wait. If that makes a flush necessary, returns the flush's time.
    fn defer(&mut self, range: &Range<u64>, gather: Gather, bounds: Bounds, time_ns: u64) -> u64 {
        if gather.is_empty() {
            return 0;
        }
        if self.pending.ranges.is_empty() {
            self.pending.since_ns = time_ns;
        }
        // SAFETY: both are of this table.
        unsafe { self.pending.gather.append(self.table.pool(), gather) };
        self.pending.ranges.push(range.clone());
        self.pending.bytes += range.end - range.start;
        self.counts.held_bytes_max = self.counts.held_bytes_max.max(self.pending.bytes);
        if self.pending.ranges.len() >= bounds.calls { self.flush_pending() } else { 0 }
    }

    /// Sets the time to `time_ns`, and flushes ranges that have waited too long.
    pub(super) fn poll(&mut self, time_ns: u64) {
        if let Plan::Deferred(bounds) = self.plan
            && !self.pending.ranges.is_empty()
            && time_ns - self.pending.since_ns >= bounds.age_ns
        {
            let due_ns = self.pending.since_ns + bounds.age_ns;
            let ps = self.flush_pending();
            self.spend(due_ns, ps);
        }
    }

    /// The trace has ended: flushes the waiting invalidations.
    pub(super) fn finish(&mut self, time_ns: u64) {
        if !self.pending.ranges.is_empty() {
            let ps = self.flush_pending();
            self.spend(time_ns, ps);
        }
    }

    fn flush_pending(&mut self) -> u64 {
        let mut gather = self.pending.gather.take();
        self.pending.ranges.clear();
        self.pending.bytes = 0;
        let ps = self.tell(&[Tlbi::Context]);
        self.complete(&mut gather);
        ps
    }

    fn spend(&mut self, time_ns: u64, ps: u64) {
        self.counts.unmap_ps += ps;
        self.window.spend(time_ns, ps);
    }

    /// The device accesses a leaf; `ideal` is whether it is in a TLB that only ever loses what was
    /// unmapped.
    pub(super) fn access(&mut self, leaf: Leaf, ideal: bool) {
        let hit = self.tlb.access(leaf.0, leaf.1);
        self.counts.misses += u64::from(!hit);
        self.counts.refill_misses += u64::from(!hit && ideal);
    }
}

/// A call as Linux cuts it: the largest blocks that fit, and single pages between them in one piece.
fn pieces(geometry: &Geometry, range: &Range<u64>) -> Vec<Range<u64>> {
    let blocks: Vec<u64> =
        (0..3).filter(|&level| geometry.leaf_at(level)).map(|level| geometry.span(level)).collect();
    let mut pieces: Vec<Range<u64>> = Vec::new();
    let mut pages = false;
    let mut at = range.start;
    while at < range.end {
        let fits = |span: &&u64| at.is_multiple_of(**span) && range.end - at >= **span;
        let block = blocks.iter().find(fits);
        let end = at + block.unwrap_or(&geometry.page_bytes());
        match pieces.last_mut() {
            Some(last) if pages && block.is_none() => last.end = end,
            _ => pieces.push(at..end),
        }
        pages = block.is_none();
        at = end;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_cut_where_linux_cuts_it() {
        let geometry = Geometry::new(Config::default()).expect("a shape");
        const M2: u64 = 2 << 20;
        let cut = |start, end| pieces(&geometry, &(start..end));
        assert_eq!(cut(0x1000, 0x5000), vec![Range { start: 0x1000, end: 0x5000 }]);
        assert_eq!(cut(M2, 3 * M2), [M2..2 * M2, 2 * M2..3 * M2]);
        assert_eq!(
            cut(M2 - 0x1000, 2 * M2 + 0x2000),
            [M2 - 0x1000..M2, M2..2 * M2, 2 * M2..2 * M2 + 0x2000]
        );
        let gigabyte = 1 << 30;
        assert_eq!(
            cut(gigabyte - M2, 2 * gigabyte),
            [gigabyte - M2..gigabyte, gigabyte..2 * gigabyte]
        );
        // The thread's 32 MiB.
        assert_eq!(cut(0, 32 << 20).len(), 16);
    }
}
