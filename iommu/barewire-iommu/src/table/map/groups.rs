//! Groups of pages with the Contiguous hint, where a map finds 16 neighbours ([`group`]).

use super::{Mapper, Replace, Sink};
use crate::format::Descriptor;
use crate::pool::Pool;
use crate::table::error::MapError;
use crate::table::group;

impl<P: Pool, R: Replace> Mapper<'_, '_, P, R> {
    /// Writes a group at `index` if the next bytes allow it. Returns whether it did.
    #[inline(never)]
    pub(super) fn group<S: Sink>(&mut self, sink: &mut S, index: usize) -> Result<bool, MapError> {
        let (phys, len) = self.pieces.peek();
        let fits = (self.iova | phys) & (group::BYTES - 1) == 0
            && self.limits.iova_end - self.iova >= group::BYTES
            && sink.occupied(index..index + group::PAGES).is_none();
        if !fits {
            return Ok(false);
        }
        let rest = if len >= group::BYTES {
            self.pieces.next(self.limits, self.iova)?;
            let mut rest = self.pieces;
            rest.advance(group::BYTES);
            rest
        } else {
            match self.pieces.merged(group::BYTES, self.limits, self.iova) {
                Some(rest) => rest,
                None => return Ok(false),
            }
        };
        let leaf = Descriptor(phys | self.batch().leaf).with_hint().0;
        sink.run(index, group::PAGES, leaf, 1 << self.table.geometry.page_shift());
        self.pieces = rest;
        self.iova += group::BYTES;
        Ok(true)
    }
}
