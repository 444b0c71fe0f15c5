//! Lists a whole table as merged spans.

use super::{Fault, Next, Permits, Walker, entry_address};
use crate::address::{Iova, PhysAddr};
use crate::format::Descriptor;

/// The largest number of levels.
const LEVELS: usize = 4;

/// Adjacent IOVAs with the same outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The first IOVA.
    pub iova: Iova,
    /// The size in bytes.
    pub size: u64,
    /// The number of entries that were merged.
    pub entries: u64,
    /// The outcome.
    pub what: What,
}

/// The outcome of a span. IOVAs with no valid entry belong to no span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// Mapped to contiguous physical addresses.
    Mapped {
        /// The first physical address.
        phys: PhysAddr,
        /// The bits of the leaf without address, type and Contiguous.
        attributes: u64,
        /// The accesses that the leaf and the tables above it permit.
        permits: Permits,
    },
    /// A fault although the entry is not empty.
    Fault {
        /// The cause; `Translation` if the descriptor is reserved.
        fault: Fault,
        /// The level of the fault.
        level: u32,
        /// The first descriptor.
        descriptor: Descriptor,
    },
    /// The closure cannot read the entries.
    Unreadable {
        /// The address of the first entry.
        entry: PhysAddr,
    },
    /// The table is one of its own parents. Hardware would read it as a table of the next level;
    /// the list does not follow it.
    Loop {
        /// The address of the table.
        table: PhysAddr,
        /// The level of the entry that points back.
        level: u32,
    },
    /// The limit of entries was reached: the list ends before this IOVA.
    Stopped,
}

#[derive(Clone, Copy)]
struct Place {
    table: PhysAddr,
    index: usize,
    iova: u64,
    /// The union of the bits of all tables above.
    above: u64,
}

/// The iterator of [`Walker::spans`].
pub struct Spans<R> {
    walker: Walker,
    read: R,
    entries_left: u64,
    /// The tables from the root to the current one.
    places: [Place; LEVELS],
    depth: usize,
    /// The current span, which the next entry may extend.
    open: Option<Span>,
    /// The root is too large, so the whole table is one fault. It was not returned yet.
    root_too_large: bool,
}

impl<R: FnMut(PhysAddr) -> Option<u64>> Spans<R> {
    pub(super) fn new(walker: Walker, read: R, entries_max: u64) -> Self {
        let root = Place { table: walker.root, index: 0, iova: 0, above: 0 };
        let root_too_large = walker.too_large(walker.root);
        Self {
            walker,
            read,
            entries_left: entries_max,
            places: [root; LEVELS],
            depth: usize::from(!root_too_large),
            open: None,
            root_too_large,
        }
    }

    /// The next valid entry, or the next table to descend into.
    fn step(&mut self) -> Option<Span> {
        loop {
            let above = self.depth.checked_sub(1)?;
            let geometry = self.walker.geometry;
            let level = geometry.start_level() + above as u32;
            let place = self.places.get_mut(above)?;
            if place.index == geometry.entries(level) {
                self.depth = above;
                continue;
            }
            let Place { table, iova, above: passed, .. } = *place;
            let entry = entry_address(table, place.index);
            if self.entries_left == 0 {
                self.depth = 0;
                let size = geometry.input_end() - iova;
                return Some(Span { iova: Iova(iova), size, entries: 0, what: What::Stopped });
            }
            self.entries_left -= 1;
            place.index += 1;
            place.iova += geometry.span(level);
            let what = match (self.read)(entry).map(Descriptor) {
                None => What::Unreadable { entry },
                Some(descriptor) if !descriptor.is_valid() => continue,
                Some(descriptor) => match self.walker.next(descriptor, level) {
                    Next::Fault(fault) => What::Fault { fault, level, descriptor },
                    Next::Leaf(phys) => {
                        let address = !(geometry.span(level) - 1) & ((1 << 48) - 1);
                        let attributes = descriptor.0 & !(address | CONTIGUOUS | 0b11);
                        let permits = self.walker.permits(descriptor, passed);
                        What::Mapped { phys, attributes, permits }
                    }
                    Next::Table(table) => {
                        let known = self.places.iter().take(self.depth);
                        if known.clone().any(|place| place.table == table) {
                            What::Loop { table, level }
                        } else {
                            if let Some(place) = self.places.get_mut(self.depth) {
                                let above = passed | descriptor.0;
                                *place = Place { table, index: 0, iova, above };
                                self.depth += 1;
                            }
                            continue;
                        }
                    }
                },
            };
            let size = geometry.span(level);
            return Some(Span { iova: Iova(iova), size, entries: 1, what });
        }
    }
}

/// Contiguous is a hint about neighbours. Merging compares the neighbours themselves.
const CONTIGUOUS: u64 = 1 << 52;

impl Span {
    /// Both spans as one, if `next` continues this one.
    pub(super) fn merged(self, next: Span) -> Option<Span> {
        let beside = self.iova.0.checked_add(self.size) == Some(next.iova.0);
        let goes_on = match (self.what, next.what) {
            (
                What::Mapped { phys, attributes, permits },
                What::Mapped { phys: phys_next, attributes: alike, permits: also },
            ) => {
                let side_by_side = phys.0.checked_add(self.size) == Some(phys_next.0);
                side_by_side && attributes == alike && permits == also
            }
            (
                What::Fault { fault, level, .. },
                What::Fault { fault: fault_next, level: level_next, .. },
            ) => fault == fault_next && level == level_next,
            (What::Unreadable { entry }, What::Unreadable { entry: next }) => {
                entry.0 + 8 * self.entries == next.0
            }
            (What::Loop { .. }, What::Loop { .. }) => self.what == next.what,
            _ => false,
        };
        let (size, entries) = (self.size + next.size, self.entries + next.entries);
        (beside && goes_on).then_some(Span { size, entries, ..self })
    }
}

impl<R: FnMut(PhysAddr) -> Option<u64>> Iterator for Spans<R> {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        if core::mem::take(&mut self.root_too_large) {
            let fault = Fault::AddressSize;
            let what = What::Fault { fault, level: 0, descriptor: Descriptor::EMPTY };
            let size = self.walker.geometry.input_end();
            return Some(Span { iova: Iova(0), size, entries: 0, what });
        }
        loop {
            let Some(next) = self.step() else { return self.open.take() };
            match self.open {
                None => self.open = Some(next),
                Some(open) => match open.merged(next) {
                    Some(merged) => self.open = Some(merged),
                    None => return self.open.replace(next),
                },
            }
        }
    }
}

impl<R> core::fmt::Debug for Spans<R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Spans").field("walker", &self.walker).finish_non_exhaustive()
    }
}
