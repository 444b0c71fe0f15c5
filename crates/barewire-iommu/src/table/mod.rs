//! Tables: map, unmap, look up.
//!
//! A [`PageTable`] owns its tables. Whoever works on it does so through a [`Part`], the sole claim
//! to a range of IOVAs: parts never overlap, so calls on different parts may run at the same time
//! on several CPUs, and only the tables above both are met by both.

mod error;

pub use error::{MapError, UnmapError};

use core::ops::Range;

use crate::address::{Iova, PhysAddr, Segment};
use crate::format::{Attributes, Config, ConfigError, Geometry};
use crate::gather::Gather;
use crate::pool::Pool;

/// A translation table and all tables below it.
#[derive(Debug)]
pub struct PageTable<P: Pool> {
    geometry: Geometry,
    root: PhysAddr,
    pool: P,
}

/// The sole claim to a range of a table's IOVAs.
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
        let _ = (config, pool);
        todo!()
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
}

impl<'t, P: Pool> Part<'t, P> {
    /// Splits the claim in two, as `split_at_mut` does a slice.
    ///
    /// # Panics
    /// If `at` is outside the part or no multiple of the granule.
    pub fn split_at(self, at: Iova) -> (Self, Self) {
        let _ = at;
        todo!()
    }

    /// Maps `size` bytes at `iova` to `phys`, by blocks wherever address, size and alignment permit.
    ///
    /// # Errors
    /// See [`MapError`]; nothing is left mapped then, and `gather` has what had been.
    pub fn map(
        &mut self,
        iova: Iova,
        phys: PhysAddr,
        size: u64,
        attributes: Attributes,
        gather: &mut Gather,
    ) -> Result<(), MapError> {
        let _ = (iova, phys, size, attributes, gather);
        todo!()
    }

    /// Maps `count` leaves of `1 << shift` bytes each, as Linux's map_pages.
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
        let _ = (iova, phys, shift, count, attributes, gather);
        todo!()
    }

    /// Maps the pieces of a scatter list one after the other, and returns their bytes.
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
        let _ = (iova, segments, attributes, gather);
        todo!()
    }

    /// Removes what is mapped in the range; does not look for holes. Tables whose whole span lies
    /// in the range are unhooked unread. Returns the bytes removed, such a table counting as full.
    ///
    /// # Errors
    /// See [`UnmapError`]; nothing is removed then.
    pub fn unmap(&mut self, iova: Iova, size: u64, gather: &mut Gather) -> Result<u64, UnmapError> {
        let _ = (iova, size, gather);
        todo!()
    }
}
