//! Tables: map, unmap, look up.
//!
//! A [`PageTable`] owns its tables. They are changed through a [`Part`], the only claim to a range
//! of IOVAs. Parts never overlap, so calls on different parts may run at the same time on several
//! CPUs. Such calls share only the tables above both parts.
//!
//! # How it works
//! - [`map`] walks down once per table. A new last-level table is filled before it is published, by
//!   [`fill`] if possible. [`sg`] reads the scatter list.
//! - [`map::replace`] and [`vacant`] deal with tables in which nothing is mapped.
//! - [`unmap`] unhooks a table that its range covers without reading it, and clears leaves one by
//!   one elsewhere. [`split`] handles ranges that cut a block.
//! - [`protect`] changes the attributes of what is mapped.
//! - [`quick`] maps and unmaps single pages of the usual shape, and [`whole`] maps whole tables of
//!   single pages, before the general code.
//! - [`group`]: 16 pages as one entry of a TLB.
//! - [`mark`]: cleaning of entries that lead to tables, for walkers that do not snoop the caches.
//! - [`walk`] and [`iter`] look up.
//! - [`node`] is the access of all but [`quick`] to table memory.
//!
//! # Ordering
//! 1. Contents before pointer: a table's contents are written before the entry that leads to it
//!    (`publish` or `store` with release; `clean` and `barrier` between for walkers that do not
//!    snoop).
//! 2. One installer wins: where a part does not cover an entry's whole span, a table is installed
//!    by compare-and-exchange. If two parts install a table at the same entry, one wins, and the
//!    other uses the winner's table.
//! 3. Unhook when alone: an entry that leads to a table is cleared only by a call whose range
//!    covers the entry's span, so no other part is below it. The table goes to the gather, and
//!    after the invalidation to the pool by [`PageTable::release`].
//! 4. Barrier at the end: every call ends in [`Pool::barrier`]. A device that is started afterwards
//!    sees all changes. Leaves are stored whole, but not in order: they lead to no contents that must
//!    be seen first.
//! 5. The entries above are visible: for walkers that do not snoop, a mapping cleans every entry
//!    above its leaves that is not clean, even if another thread stored it. An entry marked by bit
//!    55 is clean; an entry without the mark is cleaned by each mapping that descends through it.
//!    The mark is stored after the barrier that completes the clean ([`mark`]).
//! 6. Empty is not unused: a table in which nothing is mapped may still be in a TLB's walks. It is
//!    replaced or freed only when the walks through it have been invalidated, and only by a call
//!    whose part covers its whole span (rule 3).
//!
//! # Safety
//! [`PageTable::part`] and [`PageTable::release`] rely on their callers' promises.
#![allow(
    unsafe_code,
    reason = "who claims a range, and that an invalidation completed, is promised"
)]

mod error;
mod fill;
mod group;
mod iter;
mod map;
mod mark;
mod node;
mod protect;
mod quick;
mod sg;
mod split;
#[cfg(test)]
mod tests;
mod unmap;
mod vacant;
mod walk;
mod whole;

pub(crate) use fill::SegmentBits;

pub use error::{MapError, UnmapError};
pub use iter::{Mapping, Ranges};
pub use walk::Translation;

use core::mem::ManuallyDrop;
use core::ops::Range;

use crate::address::{Iova, PhysAddr, Segment};
use crate::format::{Attributes, Config, ConfigError, Geometry, LAST};
use crate::gather::{Gather, Run};
use crate::pool::Pool;
use crate::tlbi::FlushError;
use map::{Mapper, Never, Replace, WithInvalidation};
use node::{Entry, Node};
use split::{CutBlock, Exchange};
use unmap::Remover;

/// A translation table and all tables below it.
///
/// Dropping it frees them all. If hardware was given [`PageTable::root`], first detach the device
/// and invalidate the table's context, or call [`PageTable::leak`] instead.
#[derive(Debug)]
pub struct PageTable<P: Pool> {
    geometry: Geometry,
    root: PhysAddr,
    pool: P,
}

/// The only claim to a range of a table's IOVAs.
///
/// Calls that remove mappings record in a [`Gather`] what must be invalidated. Mapping records
/// something only if it fails half way, because a TLB may hold what was mapped until then.
///
/// A part does not hand out its table. A look-up there of another part's address would race with
/// that part's stores, and might read a table that was freed meanwhile:
///
/// ```compile_fail,E0599
/// # use barewire_iommu::{Iova, Part, Pool};
/// fn look_elsewhere<P: Pool>(part: &Part<'_, P>) {
///     part.table().iova_to_phys(Iova(0));
/// }
/// ```
#[derive(Debug)]
pub struct Part<'t, P: Pool> {
    table: &'t PageTable<P>,
    range: Range<u64>,
}

impl<P: Pool> PageTable<P> {
    /// Creates an empty table.
    ///
    /// # Errors
    /// As [`Geometry::new`]; [`ConfigError::NoRoot`] if the pool cannot supply the root;
    /// [`ConfigError::Pool`] if its tables are where a walker with these output addresses does not reach.
    pub fn new(config: Config, pool: P) -> Result<Self, ConfigError> {
        let geometry = Geometry::new(config)?;
        let (reached, output_bits) = (geometry.output_end(), config.output_bits);
        let check = |end: PhysAddr| {
            if end.0 <= reached { Ok(()) } else { Err(ConfigError::Pool { end, output_bits }) }
        };
        pool.end().map_or(Ok(()), check)?;
        let root = node::new_root(&pool, &geometry);
        let root = root.ok_or(ConfigError::NoRoot(geometry.root_bytes()))?;
        // Dropped, it frees the root.
        let table = Self { geometry, root, pool };
        check(PhysAddr(root.0.saturating_add(geometry.root_bytes() as u64)))?;
        Ok(table)
    }

    /// The same table, in which 16 pages of 4 KiB get the Contiguous hint wherever a map finds them aligned
    /// and contiguous in memory: a TLB may then need one entry for 64 KiB. Call it before anything is
    /// mapped. With other granules it changes nothing.
    ///
    /// Such a group is like a block: a range that cuts it is refused by [`Part::unmap`], unless the
    /// hardware has FEAT_BBM level 2 ([`Config::bbml2`]), and by [`Part::protect`]. The short paths for
    /// single pages are not used.
    #[must_use]
    pub fn with_contiguous(mut self) -> Self {
        self.set_contiguous();
        self
    }

    pub(crate) fn set_contiguous(&mut self) {
        self.geometry = self.geometry.with_contiguous();
    }

    /// The shape of the table.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The address of the root, for TTBR0 or S2TTB.
    pub fn root(&self) -> PhysAddr {
        self.root
    }

    /// The pool of its tables.
    pub fn pool(&self) -> &P {
        &self.pool
    }

    /// A part that covers the whole table.
    pub fn whole(&mut self) -> Part<'_, P> {
        let range = 0..self.geometry.input_end();
        Part { table: self, range }
    }

    /// Claims `range` without a check by the compiler.
    ///
    /// Only a part that contains all of a block can split it. So claim the same range that was
    /// claimed when the block was mapped.
    ///
    /// # Panics
    /// If the range is empty, leaves the table's input addresses or is not aligned to the granule.
    ///
    /// # Safety
    /// While the part is used, no other part overlaps it, and nothing looks up an IOVA in it but
    /// the part itself. [`PageTable::iova_to_phys`] and [`PageTable::ranges`] are safe, so the
    /// caller also answers for every other holder of a reference to this table: it must be known
    /// only to code that keeps to this.
    #[inline]
    pub unsafe fn part(&self, range: Range<Iova>) -> Part<'_, P> {
        let range = range.start.0..range.end.0;
        let offset = (range.start | range.end) & (self.geometry.page_bytes() - 1);
        assert!(
            range.start < range.end && range.end <= self.geometry.input_end() && offset == 0,
            "a part is whole pages within the table's input addresses"
        );
        Part { table: self, range }
    }

    /// [`part`](Self::part) of a range that is whole pages within the input addresses, or else at most
    /// refused: each call on a part checks its own addresses.
    ///
    /// # Safety
    /// As for [`part`](Self::part).
    #[inline]
    pub(crate) unsafe fn part_unchecked(&self, range: Range<Iova>) -> Part<'_, P> {
        Part { table: self, range: range.start.0..range.end.0 }
    }

    /// The translation of `iova`, if it is mapped. Not for an address in a part that
    /// [`PageTable::part`] made and that is in use: see there.
    pub fn iova_to_phys(&self, iova: Iova) -> Option<Translation> {
        walk::translate(self, iova)
    }

    /// The mappings in `range`, in order; see [`Ranges`]. Not for a range that overlaps a part that
    /// [`PageTable::part`] made and that is in use: see there.
    pub fn ranges(&self, range: Range<Iova>) -> Ranges<'_, P> {
        Ranges::new(self, range.start.0, range.end.0)
    }

    /// Returns a gather's tables to the pool, and discards its runs.
    ///
    /// # Safety
    /// The gather belongs to this table, and an invalidation that covers it has completed since.
    #[inline]
    pub unsafe fn release(&self, gather: &mut Gather) {
        // SAFETY: promised by the caller. Tables below the root have the size of a page.
        unsafe { gather.release(&self.pool, self.geometry.page_bytes() as usize) };
    }

    /// Keeps the tables allocated, for hardware that continues to use them. Returns the root.
    pub fn leak(self) -> PhysAddr {
        ManuallyDrop::new(self).root
    }
}

impl<P: Pool> Drop for PageTable<P> {
    fn drop(&mut self) {
        node::free_all(self);
    }
}

impl<'t, P: Pool> Part<'t, P> {
    /// The claimed IOVAs.
    pub fn range(&self) -> Range<Iova> {
        Iova(self.range.start)..Iova(self.range.end)
    }

    /// The shape of the table it is a part of.
    pub fn geometry(&self) -> &'t Geometry {
        self.table.geometry()
    }

    /// The pool of the table's tables.
    pub fn pool(&self) -> &'t P {
        self.table.pool()
    }

    /// Returns a gather's tables to the pool, and discards its runs.
    ///
    /// # Safety
    /// As for [`PageTable::release`].
    #[inline]
    pub unsafe fn release(&self, gather: &mut Gather) {
        // SAFETY: promised by the caller.
        unsafe { self.table.release(gather) };
    }

    /// Splits the claim in two, like `split_at_mut` on a slice.
    ///
    /// # Panics
    /// If `at` is outside the part or not a multiple of the granule.
    pub fn split_at(self, at: Iova) -> (Self, Self) {
        let Self { table, range } = self;
        let aligned = at.0 & (table.geometry.page_bytes() - 1) == 0;
        assert!(range.start <= at.0 && at.0 <= range.end, "a part is split inside");
        assert!(aligned, "a part is split between pages");
        (Self { table, range: range.start..at.0 }, Self { table, range: at.0..range.end })
    }

    /// Maps `size` bytes at `iova` to `phys`, with blocks where address, size and alignment permit.
    ///
    /// # Errors
    /// See [`MapError`]. Nothing stays mapped then; `gather` records what had been mapped.
    #[inline]
    pub fn map(
        &mut self,
        iova: Iova,
        phys: PhysAddr,
        size: u64,
        attributes: Attributes,
        gather: &mut Gather,
    ) -> Result<(), MapError> {
        let segments = [Segment { phys, len: size }];
        self.map_sg(iova, &segments, attributes, gather).map(drop)
    }

    /// Maps `count` leaves of `1 << shift` bytes each, like Linux's `map_pages`. An existing table
    /// is used even if it is empty, so leaves may be smaller there.
    ///
    /// # Errors
    /// As [`Part::map`]; [`MapError::PageSize`] if no leaf has that size.
    pub fn map_pages(
        &mut self,
        iova: Iova,
        phys: PhysAddr,
        shift: u32,
        count: u64,
        attributes: Attributes,
        gather: &mut Gather,
    ) -> Result<(), MapError> {
        let geometry = &self.table.geometry;
        let level = geometry.leaf_level(shift).ok_or(MapError::PageSize { shift })?;
        for value in [iova.0, phys.0] {
            if value & ((1 << shift) - 1) != 0 {
                return Err(MapError::Unaligned { iova, value, to: 1 << shift });
            }
        }
        let end = Iova(self.range.end);
        let too_large = MapError::IovaRange { iova, size: u64::MAX, end };
        let len = count.checked_mul(1 << shift).ok_or(too_large)?;
        let segments = [Segment { phys, len }];
        Mapper::new(self.table, &self.range, iova, &segments, attributes, gather, Never)?
            .only_from(level)
            .run()
            .map(drop)
    }

    /// Maps the segments of a scatter list one after the other. Returns the number of bytes.
    /// Segments that continue each other become blocks as in [`Part::map`].
    ///
    /// A table that exists is used even if nothing is mapped in it, so leaves may be smaller there;
    /// see [`Part::map_sg_replacing`].
    ///
    /// # Errors
    /// As [`Part::map`].
    #[inline]
    pub fn map_sg(
        &mut self,
        iova: Iova,
        segments: &[Segment],
        attributes: Attributes,
        gather: &mut Gather,
    ) -> Result<u64, MapError> {
        if let [Segment { phys, len }] = *segments
            && quick::is_page(self.table, len)
            && quick::map(self.table, &self.range, iova, phys, attributes)
        {
            return Ok(len);
        }
        Self::map_any(self.table, self.range.clone(), iova, segments, attributes, gather, Never)
    }

    /// [`Part::map_sg`] that replaces empty tables by blocks. Where a block would be written and a
    /// table is in its place in which nothing is mapped, the table is unhooked, `invalidate` is
    /// called, which invalidates the run's walks and waits, and then the block is written.
    ///
    /// If `invalidate` fails, the table stays, and pages are written into it.
    ///
    /// # Errors
    /// As [`Part::map`].
    #[inline(always)]
    pub fn map_sg_replacing(
        &mut self,
        iova: Iova,
        segments: &[Segment],
        attributes: Attributes,
        gather: &mut Gather,
        mut invalidate: impl FnMut(&Run) -> Result<(), FlushError>,
    ) -> Result<u64, MapError> {
        // A page is no block.
        if let [Segment { phys, len }] = *segments
            && quick::is_page(self.table, len)
            && quick::map(self.table, &self.range, iova, phys, attributes)
        {
            return Ok(len);
        }
        let replace = WithInvalidation(Some(&mut invalidate));
        Self::map_any(self.table, self.range.clone(), iova, segments, attributes, gather, replace)
    }

    /// [`Part::map_sg`] of any size and shape. The part is passed in registers, so that a caller with
    /// a single page need not have it in memory.
    #[inline(never)]
    fn map_any<R: Replace>(
        table: &'t PageTable<P>,
        range: Range<u64>,
        iova: Iova,
        segments: &[Segment],
        attributes: Attributes,
        gather: &mut Gather,
        replace: R,
    ) -> Result<u64, MapError> {
        let mut done = 0;
        if whole::may_begin(table, segments) {
            done = whole::map(table, &range, iova, segments, attributes);
            if done == segments.len() {
                table.pool.barrier();
                return Ok((done as u64) << table.geometry.page_shift());
            }
        } else if let Some(bytes) = quick::map_some(table, &range, iova.0, segments, attributes) {
            return Ok(bytes);
        }
        Self::map_large(table, range, iova, segments, attributes, gather, replace, done)
    }

    /// [`Part::map_sg`] of more than some pages of a table, or of another shape than the usual one. The
    /// first `done` segments, of a page each, were mapped.
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "those of a call, and what was done of it")]
    fn map_large<R: Replace>(
        table: &'t PageTable<P>,
        range: Range<u64>,
        iova: Iova,
        segments: &[Segment],
        attributes: Attributes,
        gather: &mut Gather,
        replace: R,
        done: usize,
    ) -> Result<u64, MapError> {
        if let [Segment { phys, len }] = *segments
            && !table.geometry.is_four_of_4k()
            && len == table.geometry.page_bytes()
            && map::page(table, &range, iova.0, phys.0, attributes)
        {
            return Ok(len);
        }
        // If some were mapped, `new` finds nothing wrong: it looks at the first one only.
        Mapper::new(table, &range, iova, segments, attributes, gather, replace)?.after(done).run()
    }

    /// Removes the mappings in the range. Holes are ignored. A table whose whole span is in the
    /// range is unhooked without reading it. Returns the number of bytes removed; such a table
    /// counts as full.
    ///
    /// A range that begins or ends inside a block is refused, unless the hardware lets a block be
    /// replaced by a table ([`Config::bbml2`]). If it does, the rest of the block stays mapped
    /// throughout. `gather` then has the whole block: until it is invalidated, what other gathers have of the
    /// block is not complete.
    ///
    /// # Errors
    /// See [`UnmapError`]. Nothing is removed then.
    #[inline(always)]
    pub fn unmap(&mut self, iova: Iova, size: u64, gather: &mut Gather) -> Result<u64, UnmapError> {
        if quick::is_page(self.table, size) && quick::unmap(self.table, &self.range, iova, gather) {
            return Ok(size);
        }
        Self::unmap_any(self.table, self.range.clone(), iova, size, gather)
    }

    /// [`Part::unmap`] of any size and shape.
    #[inline(never)]
    fn unmap_any(
        table: &'t PageTable<P>,
        range: Range<u64>,
        iova: Iova,
        size: u64,
        gather: &mut Gather,
    ) -> Result<u64, UnmapError> {
        let mut part = Self { table, range };
        let range = part.check(iova, size)?;
        match quick::unmap_some(table, &range, gather) {
            Some(removed) => Ok(removed),
            None => part.unmap_large(range, gather),
        }
    }

    /// [`Part::unmap`] of more than some pages of a table, or of another shape than the usual one.
    #[inline(never)]
    fn unmap_large(&mut self, range: Range<u64>, gather: &mut Gather) -> Result<u64, UnmapError> {
        let bbml2 = self.table.geometry.config().bbml2;
        self.remove(range, bbml2.then_some(Exchange::AtOnce), gather)
    }

    /// [`Part::unmap`] of `count` leaves of `1 << shift` bytes each, like Linux's `unmap_pages`.
    ///
    /// # Errors
    /// As [`Part::unmap`]; [`UnmapError::PageSize`] if no leaf has that size.
    pub fn unmap_pages(
        &mut self,
        iova: Iova,
        shift: u32,
        count: u64,
        gather: &mut Gather,
    ) -> Result<u64, UnmapError> {
        let geometry = &self.table.geometry;
        geometry.leaf_level(shift).ok_or(UnmapError::PageSize { shift })?;
        if iova.0 & ((1 << shift) - 1) != 0 {
            return Err(UnmapError::Unaligned { iova, value: iova.0, to: 1 << shift });
        }
        let end = Iova(self.range.end);
        let too_large = UnmapError::IovaRange { iova, size: u64::MAX, end };
        let size = count.checked_mul(1 << shift).ok_or(too_large)?;
        self.unmap(iova, size, gather)
    }

    /// [`Part::unmap`] that first checks that all of the range is mapped.
    ///
    /// # Errors
    /// As [`Part::unmap`]; [`UnmapError::Hole`] if part of the range is not mapped. Nothing is
    /// removed then.
    pub fn unmap_checked(
        &mut self,
        iova: Iova,
        size: u64,
        gather: &mut Gather,
    ) -> Result<u64, UnmapError> {
        let range = self.check(iova, size)?;
        match walk::hole(Node::root(self.table), range.start, range.end) {
            Some((iova, level)) => Err(UnmapError::Hole { iova: Iova(iova), level }),
            None => self.unmap(iova, size, gather),
        }
    }

    /// [`Part::unmap`] that splits a block at either end by break-before-make:
    ///
    /// 1. Break: the block's entry is cleared.
    /// 2. Invalidate: `invalidate` is called, which invalidates the block and waits.
    /// 3. Make: a table that maps the rest of the block takes its place.
    ///
    /// Between 1 and 3 an access to the rest of the block faults, so the device must be quiet.
    ///
    /// # Errors
    /// As [`Part::unmap`]; [`UnmapError::Flush`] if `invalidate` fails. The blocks are mapped as
    /// before then, and nothing is removed.
    pub fn unmap_quiesced(
        &mut self,
        iova: Iova,
        size: u64,
        gather: &mut Gather,
        mut invalidate: impl FnMut(&Run) -> Result<(), FlushError>,
    ) -> Result<u64, UnmapError> {
        let range = self.check(iova, size)?;
        self.remove(range, Some(Exchange::BreakBeforeMake(&mut invalidate)), gather)
    }

    /// The translation of `iova`. `None` if it is not mapped or outside the part.
    pub fn iova_to_phys(&self, iova: Iova) -> Option<Translation> {
        if self.range.contains(&iova.0) { walk::translate(self.table, iova) } else { None }
    }

    /// The mappings in `range` that lie in the part, in order; see [`Ranges`].
    pub fn ranges(&self, range: Range<Iova>) -> Ranges<'_, P> {
        let start = range.start.0.max(self.range.start);
        Ranges::new(self.table, start, range.end.0.min(self.range.end))
    }

    #[inline]
    fn check(&self, iova: Iova, size: u64) -> Result<Range<u64>, UnmapError> {
        let mask = self.table.geometry.page_bytes() - 1;
        let start = iova.0;
        let fits = size != 0
            && (start | size) & mask == 0
            && start >= self.range.start
            && start < self.range.end
            && size <= self.range.end - start;
        if fits { Ok(start..start + size) } else { Err(self.refuse(iova, size)) }
    }

    #[cold]
    fn refuse(&self, iova: Iova, size: u64) -> UnmapError {
        let to = self.table.geometry.page_bytes();
        if size == 0 {
            UnmapError::Empty(iova)
        } else if let Some(value) = [iova.0, size].into_iter().find(|value| value & (to - 1) != 0) {
            UnmapError::Unaligned { iova, value, to }
        } else {
            UnmapError::IovaRange { iova, size, end: Iova(self.range.end) }
        }
    }

    fn remove(
        &mut self,
        range: Range<u64>,
        exchange: Option<Exchange<'_>>,
        gather: &mut Gather,
    ) -> Result<u64, UnmapError> {
        let mut node = Node::root(self.table);
        // Descend to the table in which the range is a whole entry or several entries.
        let more_than_part = (range.start ^ (range.end - 1)) | (range.end - range.start);
        while more_than_part >> node.shift() == 0 {
            match node.entry(node.index(range.start)) {
                Entry::Empty(_) => return Ok(0),
                Entry::Table(child) => node = child,
                Entry::Leaf(_) => break,
            }
        }
        let mut remover = Remover::new(gather);
        if node.level() == LAST {
            if self.table.geometry.is_contiguous()
                && let Some(cuts) = group_cuts(node, &range)
            {
                return self.split(node, range, cuts, exchange, gather);
            }
            remover.pages(node, range.start, range.end);
        } else {
            if (range.start | range.end) & ((1 << node.shift()) - 1) != 0 {
                let cuts = [range.start, range.end].map(|at| CutBlock::at(node, at));
                if cuts.iter().any(Option::is_some) {
                    return self.split(node, range, cuts, exchange, gather);
                }
            }
            remover.remove(node, range.start, range.end);
        }
        let removed = remover.finish();
        self.table.pool.barrier();
        Ok(removed)
    }

    #[cold]
    fn split(
        &mut self,
        node: Node<'t, P>,
        range: Range<u64>,
        cuts: [Option<CutBlock<'t, P>>; 2],
        exchange: Option<Exchange<'_>>,
        gather: &mut Gather,
    ) -> Result<u64, UnmapError> {
        let outside = cuts.iter().flatten().find(|cut| !cut.within(&self.range));
        let first = outside.or(cuts.iter().flatten().next());
        match (exchange, first) {
            (Some(mut exchange), _) if outside.is_none() => {
                let removed = split::remove(self.table, node, range, cuts, &mut exchange, gather);
                self.table.pool.barrier();
                removed
            }
            (_, Some(cut)) => Err(cut.refused()),
            (_, None) => unreachable!("a range is split because something is cut"),
        }
    }
}

/// The groups of pages in `node` that an end of `range` cuts, if there are any.
#[cold]
fn group_cuts<'t, P: Pool>(
    node: Node<'t, P>,
    range: &Range<u64>,
) -> Option<[Option<CutBlock<'t, P>>; 2]> {
    let cuts = [range.start, range.end].map(|at| CutBlock::at(node, at));
    cuts.iter().any(Option::is_some).then_some(cuts)
}
