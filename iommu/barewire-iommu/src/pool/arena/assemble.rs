//! Runs of adjacent tables: allocated as a whole, split into single tables, and assembled from
//! single tables.
//!
//! # How it works
//! A run that is freed stays whole in the list of its length, so a root that comes and goes costs as
//! little as a table. [`Arena::assemble`] is for the rest: it finds `count` adjacent tables, aligned
//! to their number, among all free ones.
//!
//! 1. Break up all free runs.
//! 2. Move each free table to the list `aside`, and note in its link that it was seen.
//! 3. Choose a place whose tables were all seen.
//! 4. Move each table back, except the tables of the chosen place.
//! 5. If another thread took one of them meanwhile, give the others back and begin again, up to
//!    [`TRIES`] times.
//!
//! All tables but the one being moved and those that are kept stay in a list, where other threads can
//! allocate them. So a search blocks no other thread, and costs time in proportion to the free
//! tables.

use super::{Arena, Ordering, RUNS};

/// The number of searches, if other threads take the tables that were found.
const TRIES: usize = 8;

impl Arena<'_> {
    /// Allocates `count` adjacent tables, aligned to their number: a power of two, at least 2.
    pub(super) fn alloc_run(&self, count: usize) -> Option<usize> {
        let whole = self.runs.get(class(count)).and_then(|list| self.pop(list, 1));
        if let Some((first, _)) = whole {
            return Some(first);
        }
        self.fresh(count, true).map(|(first, _)| first).or_else(|| self.assemble(count))
    }

    /// Frees `count` adjacent tables from `first` on.
    pub(super) fn free_run(&self, first: usize, count: usize) {
        if let Some(list) = self.runs.get(class(count)) {
            self.push(list, first, first);
        } else {
            self.connect(first, count);
            self.push(&self.free, first, first + count - 1);
        }
    }

    /// Takes up to `count` tables of a free run, and frees the others one by one.
    pub(super) fn break_run(&self, count: usize) -> Option<(usize, usize)> {
        (0..RUNS).find_map(|class| {
            let (first, _) = self.pop(&self.runs[class], 1)?;
            let all = 2 << class;
            let taken = count.min(all);
            self.connect(first, taken);
            if taken < all {
                self.connect(first + taken, all - taken);
                self.push(&self.free, first + taken, first + all - 1);
            }
            Some((first, first + taken - 1))
        })
    }

    /// Searches all free tables for `count` adjacent ones.
    #[cold]
    fn assemble(&self, count: usize) -> Option<usize> {
        self.search.with(|search| {
            for _ in 0..TRIES {
                // 0 is in the links that no search has seen.
                *search = search.wrapping_add(1).max(1);
                self.move_aside(*search);
                let place = self.place(count, *search);
                let kept = self.move_back(place, count, *search);
                let first = place?;
                if kept == count {
                    return Some(first);
                }
            }
            None
        })
    }

    /// Steps 1 and 2. Tables that others free meanwhile may stay where they are.
    fn move_aside(&self, search: u32) {
        self.moves.fetch_add(1, Ordering::AcqRel);
        // A chain as long as the longest run, so none is left in pieces.
        while let Some((first, last)) = self.break_run(1 << RUNS) {
            self.push(&self.free, first, last);
        }
        for _ in 0..self.links.len() {
            let Some((table, _)) = self.pop(&self.free, 1) else { break };
            self.links[table].seen.store(search, Ordering::Relaxed);
            self.push(&self.aside, table, table);
        }
    }

    /// Step 3: the last place, since single tables come from the first ones.
    fn place(&self, count: usize, search: u32) -> Option<usize> {
        let frame = self.phys >> self.shift;
        let before = (frame.wrapping_neg() & (count as u64 - 1)) as usize;
        let places = self.links.len().saturating_sub(before) / count;
        (0..places).rev().map(|place| before + place * count).find(|&first| {
            let tables = &self.links[first..first + count];
            tables.iter().all(|link| link.seen.load(Ordering::Relaxed) == search)
        })
    }

    /// Step 4, and step 5 if fewer than `count` could be kept. Returns how many could.
    fn move_back(&self, place: Option<usize>, count: usize, search: u32) -> usize {
        self.moves.fetch_add(1, Ordering::AcqRel);
        let range = place.map_or(0..0, |first| first..first + count);
        // A kept table is marked by another number than this search's.
        let kept_mark = search.wrapping_sub(1);
        let mut kept = 0;
        while let Some((table, _)) = self.pop(&self.aside, 1) {
            if range.contains(&table) {
                self.links[table].seen.store(kept_mark, Ordering::Relaxed);
                kept += 1;
            } else {
                self.push(&self.free, table, table);
            }
        }
        if kept < count {
            for table in range {
                if self.links[table].seen.load(Ordering::Relaxed) == kept_mark {
                    self.push(&self.free, table, table);
                }
            }
        }
        self.moves.fetch_add(1, Ordering::AcqRel);
        kept
    }
}

/// The place in `runs` of runs of `count` tables, if they have one.
fn class(count: usize) -> usize {
    count.trailing_zeros() as usize - 1
}
