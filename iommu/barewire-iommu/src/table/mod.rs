//! Tables: map, unmap, look up.
//!
//! A [`PageTable`] owns its tables. Whoever works on it does so through a [`Part`], the sole claim
//! to a range of IOVAs: parts never overlap, so calls on different parts may run at the same time
//! on several CPUs, and only the tables above both are met by both.
//!
//! # How it works
//! - [`map`] walks down once per table. A last-level table that does not exist yet is filled while
//!   nobody can reach it, by [`fill`] if it can be; [`sg`] reads the scatter list.
//! - [`unmap`] unhooks a table that its range covers without looking into it, and empties leaves one
//!   by one elsewhere; [`split`] is for ranges that cut a block.
//! - [`walk`] and [`iter`] look up.
//! - [`node`] is the way of all these to table memory.
//!
//! # Ordering
//! 1. A table's contents are written before the entry that leads to it (`publish` or `store` with
//!    release; `clean` between for walkers that do not snoop).
//! 2. Where a part does not cover all that an entry spans, a table is installed by compare and
//!    exchange: of two parts below the same entry one wins, and the other uses its table.
//! 3. An entry that leads to a table is emptied only by a call whose range covers its span, so its
//!    owner alone is below; the table goes to the gather, and to the pool by
//!    [`PageTable::release`] when an invalidation has completed.
//! 4. Every call ends in [`Pool::barrier`]: what a device is told afterwards, walks find done.
//!
//! # Safety
//! [`PageTable::part`] and [`PageTable::release`] believe their callers.
#![allow(
    unsafe_code,
    reason = "who claims a range, and that an invalidation completed, is promised"
)]

mod error;
mod fill;
mod iter;
mod map;
mod node;
mod sg;
mod split;
#[cfg(test)]
mod tests;
mod unmap;
mod walk;

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
use map::Mapper;
use node::{Entry, Node};
use split::{Cut, Exchange};
use unmap::Remover;

/// A translation table and all tables below it.
///
/// Dropping it frees them all. Whoever told hardware of [`PageTable::root`] takes it back before: the
/// device detached, and everything of the table's context invalidated; or calls
/// [`PageTable::leak`].
#[derive(Debug)]
pub struct PageTable<P: Pool> {
    geometry: Geometry,
    root: PhysAddr,
    pool: P,
}

/// The sole claim to a range of a table's IOVAs.
///
/// The calls that change something leave what must be invalidated in a [`Gather`]; mapping does so
/// only when it fails half way, because what it had mapped until then may be in a TLB.
#[derive(Debug)]
pub struct Part<'t, P: Pool> {
    table: &'t PageTable<P>,
    range: Range<u64>,
}

impl<P: Pool> PageTable<P> {
    /// An empty table.
    ///
    /// # Errors
    /// As [`Geometry::new`]; [`ConfigError::NoRoot`] if the pool has no room.
    pub fn new(config: Config, pool: P) -> Result<Self, ConfigError> {
        let geometry = Geometry::new(config)?;
        match node::new_root(&pool, &geometry) {
            Some(root) => Ok(Self { geometry, root, pool }),
            None => Err(ConfigError::NoRoot(geometry.root_bytes())),
        }
    }

    /// Its shape.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Where the root is: for TTBR0 or S2TTB.
    pub fn root(&self) -> PhysAddr {
        self.root
    }

    /// Where its tables come from.
    pub fn pool(&self) -> &P {
        &self.pool
    }

    /// All of it.
    pub fn whole(&mut self) -> Part<'_, P> {
        let range = 0..self.geometry.input_end();
        Part { table: self, range }
    }

    /// A claim to `range` that the compiler does not watch.
    ///
    /// A block can be split only by a part that all of it lies in: claim what was claimed when it was
    /// mapped.
    ///
    /// # Panics
    /// If the range is empty, leaves the table's input addresses or is not aligned to the granule.
    ///
    /// # Safety
    /// As long as the part is used, no other part overlaps it, and nobody looks up an IOVA of it
    /// except through it.
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

    /// Where `iova` leads, if anywhere.
    pub fn iova_to_phys(&self, iova: Iova) -> Option<Translation> {
        walk::translate(self, iova)
    }

    /// What is mapped in `range`, in order; see [`Ranges`].
    pub fn ranges(&self, range: Range<Iova>) -> Ranges<'_, P> {
        Ranges::new(self, range.start.0, range.end.0)
    }

    /// Gives a gather's tables back to the pool, and forgets its runs.
    ///
    /// # Safety
    /// All in the gather is of this table, and an invalidation that covers it has completed since.
    #[inline]
    pub unsafe fn release(&self, gather: &mut Gather) {
        // SAFETY: promised by the caller; tables below the root have a page's size.
        unsafe { gather.release(&self.pool, self.geometry.page_bytes() as usize) };
    }

    /// Leaves the tables as they are, for hardware that goes on using them; returns the root.
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
    /// The IOVAs that it claims.
    pub fn range(&self) -> Range<Iova> {
        Iova(self.range.start)..Iova(self.range.end)
    }

    /// The table that it is part of.
    pub fn table(&self) -> &'t PageTable<P> {
        self.table
    }

    /// Splits the claim in two, as `split_at_mut` does a slice.
    ///
    /// # Panics
    /// If `at` is outside the part or no multiple of the granule.
    pub fn split_at(self, at: Iova) -> (Self, Self) {
        let Self { table, range } = self;
        let aligned = at.0 & (table.geometry.page_bytes() - 1) == 0;
        assert!(range.start <= at.0 && at.0 <= range.end, "a part is split inside");
        assert!(aligned, "a part is split between pages");
        (Self { table, range: range.start..at.0 }, Self { table, range: at.0..range.end })
    }

    /// Maps `size` bytes at `iova` to `phys`, by blocks wherever address, size and alignment permit.
    ///
    /// # Errors
    /// See [`MapError`]; nothing is left mapped then, and `gather` has what had been.
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

    /// Maps `count` leaves of `1 << shift` bytes each, as Linux's map_pages. A table that is there
    /// already is used, even if it is empty, and then leaves are smaller.
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
        Mapper::new(self.table, &self.range, iova, &segments, attributes, gather)?
            .only_from(level)
            .run()
            .map(drop)
    }

    /// Maps the pieces of a scatter list one after the other, and returns their bytes. Pieces that
    /// continue each other become blocks as in [`Part::map`].
    ///
    /// # Errors
    /// As [`Part::map`].
    pub fn map_sg(
        &mut self,
        iova: Iova,
        segments: &[Segment],
        attributes: Attributes,
        gather: &mut Gather,
    ) -> Result<u64, MapError> {
        if let [Segment { phys, len }] = *segments
            && len == self.table.geometry.page_bytes()
            && map::page(self.table, &self.range, iova.0, phys.0, attributes)
        {
            return Ok(len);
        }
        Mapper::new(self.table, &self.range, iova, segments, attributes, gather)?.run()
    }

    /// Removes what is mapped in the range; does not look for holes. Tables whose whole span lies
    /// in the range are unhooked unread. Returns the bytes removed, such a table counting as full.
    ///
    /// A range that begins or ends inside a block is refused, unless the table's hardware lets a
    /// block be replaced by a table ([`Config::bbml2`]); then the rest of it stays mapped throughout.
    ///
    /// # Errors
    /// See [`UnmapError`]; nothing is removed then.
    pub fn unmap(&mut self, iova: Iova, size: u64, gather: &mut Gather) -> Result<u64, UnmapError> {
        let range = self.check(iova, size)?;
        let bbml2 = self.table.geometry.config().bbml2;
        self.remove(range, bbml2.then_some(Exchange::AtOnce), gather)
    }

    /// [`Part::unmap`] of `count` leaves of `1 << shift` bytes each, as Linux's unmap_pages.
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

    /// [`Part::unmap`] that first looks whether all of the range is mapped.
    ///
    /// # Errors
    /// As [`Part::unmap`]; [`UnmapError::Hole`] if something is missing: nothing is removed then.
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

    /// [`Part::unmap`] that splits blocks at both ends by break-before-make: a block is emptied,
    /// `invalidate` is told to invalidate it and wait, and a table with what is left takes its place.
    /// In between a device that uses the rest of the block faults: for devices that are quiet.
    ///
    /// # Errors
    /// As [`Part::unmap`]; [`UnmapError::Flush`] if `invalidate` fails: the blocks stand as before
    /// and nothing is removed then.
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

    /// Where `iova` leads, if anywhere; `None` as well outside the part.
    pub fn iova_to_phys(&self, iova: Iova) -> Option<Translation> {
        if self.range.contains(&iova.0) { walk::translate(self.table, iova) } else { None }
    }

    /// What is mapped in `range` as far as it lies in the part, in order; see [`Ranges`].
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
        // Down to the table in which the range is a whole entry, or more than one.
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
            remover.pages(node, range.start, range.end);
        } else {
            if (range.start | range.end) & ((1 << node.shift()) - 1) != 0 {
                let cuts = [range.start, range.end].map(|at| Cut::at(node, at));
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
        cuts: [Option<Cut<'t, P>>; 2],
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
