//! Applies a device's events to every engine, and what the device does in between.

use std::ops::Range;

use barewire_iommu::Geometry;
use serde::Serialize;

use super::engine::{Engine, Leaf};
use super::lists::Lists;
use super::tlb::Tlb;
use super::trace::{Call, Event};

/// Pages of the working set have addresses that no IOVA of a table can have.
const WORKING_SET: u64 = 1 << 63;

/// Bytes of a driver's buffer at most. A line with a digit too many would otherwise be replayed page by
/// page for minutes.
const BUFFER_MAX: u64 = 4 << 30;

/// Counts of a device's events, and of their treatment. Scripts rely on the names.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub(super) struct Events {
    pub(super) maps: u64,
    pub(super) unmaps: u64,
    pub(super) mapped_bytes: u64,
    pub(super) unmapped_bytes: u64,
    /// Unmaps that removed less than they were asked to.
    pub(super) short_unmaps: u64,
    /// Unmaps of a range, or part of one, that no line had mapped.
    pub(super) unmatched_unmaps: u64,
    /// Bytes unmapped that no line had mapped: taken for mapped, by pages, before the trace began.
    pub(super) assumed_mapped_bytes: u64,
    /// Bytes mapped that were mapped already: taken for unmapped in between, at no cost.
    pub(super) assumed_unmapped_bytes: u64,
    /// Maps that the kernel refused.
    pub(super) failed_maps: u64,
    /// Scatter lists that the trace has only in part: their beginning.
    pub(super) truncated_lists: u64,
    /// Maps whose physical address the trace has.
    pub(super) located_maps: u64,
    /// Those of `located_maps` whose physical address is also the DMA address.
    pub(super) identity_maps: u64,
}

impl std::iter::Sum for Events {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            maps: sum.maps + one.maps,
            unmaps: sum.unmaps + one.unmaps,
            mapped_bytes: sum.mapped_bytes.saturating_add(one.mapped_bytes),
            unmapped_bytes: sum.unmapped_bytes.saturating_add(one.unmapped_bytes),
            short_unmaps: sum.short_unmaps + one.short_unmaps,
            unmatched_unmaps: sum.unmatched_unmaps + one.unmatched_unmaps,
            assumed_mapped_bytes: sum.assumed_mapped_bytes.saturating_add(one.assumed_mapped_bytes),
            assumed_unmapped_bytes: sum
                .assumed_unmapped_bytes
                .saturating_add(one.assumed_unmapped_bytes),
            failed_maps: sum.failed_maps + one.failed_maps,
            truncated_lists: sum.truncated_lists + one.truncated_lists,
            located_maps: sum.located_maps + one.located_maps,
            identity_maps: sum.identity_maps + one.identity_maps,
        })
    }
}

/// Counts of the device's accesses.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub(super) struct Device {
    pub(super) accesses: u64,
    /// First accesses.
    pub(super) misses_compulsory: u64,
    /// Accesses that missed because the TLB had no room for the entry.
    pub(super) misses_capacity: u64,
}

impl std::iter::Sum for Device {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            accesses: sum.accesses + one.accesses,
            misses_compulsory: sum.misses_compulsory + one.misses_compulsory,
            misses_capacity: sum.misses_capacity + one.misses_capacity,
        })
    }
}

/// The state of a device's replay.
pub(super) struct Replayer<'m> {
    pub(super) engines: Vec<Engine<'m>>,
    geometry: Geometry,
    /// A TLB that loses only unmapped ranges.
    ideal: Tlb,
    ideal_misses: u64,
    working_set: u64,
    touched: u64,
    /// Leaves that are mapped.
    live: u64,
    /// Tables that an engine has room for.
    tables: u64,
    lists: Lists,
    first_ns: Option<u64>,
    now_ns: u64,
    pub(super) input: Events,
    pub(super) device: Device,
}

/// Why an event was not replayed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// The line cannot belong to this device's table; later lines may.
    Line(String),
    /// There is no room for it, or the tables are wrong: no later line can be replayed correctly.
    Replay(String),
}

impl<'m> Replayer<'m> {
    pub(super) fn new(
        engines: Vec<Engine<'m>>,
        geometry: Geometry,
        tables: usize,
        tlb_entries: u32,
        working_set: u32,
    ) -> Self {
        let device = Device { misses_compulsory: working_set.into(), ..Device::default() };
        let mut replayer = Self {
            engines,
            geometry,
            ideal: Tlb::new(tlb_entries as usize),
            ideal_misses: 0,
            working_set: working_set.into(),
            touched: 0,
            live: 0,
            tables: tables as u64,
            lists: Lists::default(),
            first_ns: None,
            now_ns: 0,
            input: Events::default(),
            device,
        };
        replayer.touch_all();
        replayer
    }

    /// An event of the device.
    ///
    /// # Errors
    /// What is wrong with the line. The caller adds its number.
    pub(super) fn event(&mut self, time_ns: Option<u64>, event: &Event<'_>) -> Result<(), Refusal> {
        match *event {
            Event::Map { iova, phys, size } => {
                self.check_granule(&[("iova", iova), ("paddr", phys), ("size", size)])?;
                let range = self.pages(iova, size)?;
                self.check_phys("paddr", phys, size)?;
                self.clock(time_ns);
                self.map(range, Some(phys))
            }
            Event::Unmap { iova, size, unmapped } => {
                self.check_granule(&[("iova", iova), ("size", size), ("unmapped_size", unmapped)])?;
                self.pages(iova, size)?;
                self.clock(time_ns);
                self.input.short_unmaps += u64::from(unmapped < size);
                self.unmap(iova..iova + unmapped)
            }
            Event::Dma { ref call, .. } => self.call(time_ns, call),
            _ => Ok(()),
        }
    }

    /// The pages of a driver's buffer.
    fn buffer(&self, addr: u64, size: u64) -> Result<Range<u64>, Refusal> {
        if size > BUFFER_MAX {
            return Err(Refusal::Line(format!("a buffer of {size} bytes, more than 4 GiB")));
        }
        self.pages(addr, size)
    }

    /// A call of the device's driver.
    fn call(&mut self, time_ns: Option<u64>, call: &Call) -> Result<(), Refusal> {
        match *call {
            Call::Map { addr, size, phys } => {
                let range = self.buffer(addr, size)?;
                if let Some(phys) = phys {
                    self.check_phys("phys_addr", phys, size)?;
                }
                self.clock(time_ns);
                self.locate(phys.map(|phys| phys == addr));
                let page = self.geometry.page_bytes();
                self.map(range, phys.map(|phys| phys & !(page - 1)))
            }
            Call::MapList { ref segments, ref phys, truncated } => {
                let list = self.list(segments, phys, truncated)?;
                self.clock(time_ns);
                self.input.truncated_lists += u64::from(truncated);
                self.locate(Some(segments.iter().map(|segment| &segment.0).eq(phys)));
                for pieces in &list {
                    self.map_pieces(pieces)?;
                }
                self.lists.mapped(phys, list.iter().map(|pieces| span(pieces)).collect());
                Ok(())
            }
            Call::Unmap { addr, size } => {
                let range = self.buffer(addr, size)?;
                self.clock(time_ns);
                self.unmap(range)
            }
            Call::UnmapList { ref phys } => {
                self.clock(time_ns);
                let Some(ranges) = self.lists.unmapped(phys) else {
                    self.input.unmaps += 1;
                    self.input.unmatched_unmaps += 1;
                    return Ok(());
                };
                ranges.into_iter().try_for_each(|range| self.unmap(range))
            }
            Call::Failed => {
                self.clock(time_ns);
                self.input.failed_maps += 1;
                Ok(())
            }
        }
    }

    /// Whether the device's addresses are translated, as far as the maps can tell.
    pub(super) fn is_translated(&self) -> Option<bool> {
        let is_known = self.input.located_maps > 0;
        is_known.then_some(self.input.identity_maps < self.input.located_maps)
    }

    /// From the first event to the last.
    pub(super) fn duration_ns(&self) -> Option<u64> {
        self.first_ns.map(|first_ns| self.now_ns - first_ns)
    }

    /// There are no more.
    pub(super) fn finish(&mut self) {
        for engine in &mut self.engines {
            engine.finish(self.now_ns);
        }
        self.device.misses_capacity = self.ideal_misses - self.device.misses_compulsory;
    }

    fn clock(&mut self, time_ns: Option<u64>) {
        let Some(time_ns) = time_ns else { return };
        self.first_ns.get_or_insert(time_ns);
        self.now_ns = self.now_ns.max(time_ns);
        for engine in &mut self.engines {
            engine.poll(self.now_ns);
        }
    }

    /// Whether the kernel maps in multiples of the granule, as the line says.
    fn check_granule(&self, values: &[(&str, u64)]) -> Result<(), Refusal> {
        let page = self.geometry.page_bytes();
        match values.iter().find(|(_, value)| !value.is_multiple_of(page)) {
            Some((what, value)) => Err(Refusal::Line(format!(
                "{what} {value:#x} is no multiple of the {page} byte granule (--granule)"
            ))),
            None => Ok(()),
        }
    }

    /// The whole pages of a range, as the kernel maps a buffer.
    fn pages(&self, iova: u64, size: u64) -> Result<Range<u64>, Refusal> {
        let page = self.geometry.page_bytes();
        // No overflow: the parser has looked.
        let (last, bits) = (iova + (size - 1), self.geometry.config().input_bits);
        if last >= self.geometry.input_end() {
            let text = format!("iova {last:#x} has more than {bits} bits (--input-bits)");
            return Err(Refusal::Line(text));
        }
        Ok(iova & !(page - 1)..(last | (page - 1)) + 1)
    }

    /// Whether there are tables for that many bytes of pages. Otherwise one line of garbage could use up
    /// all tables, and end the replay.
    fn check_room(&self, bytes: u64) -> Result<(), Refusal> {
        let tables = bytes / self.table_span();
        if tables <= self.tables {
            return Ok(());
        }
        Err(Refusal::Line(format!(
            "{bytes:#x} bytes of pages need {tables} tables, and there are {} (--tables-mib)",
            self.tables
        )))
    }

    /// The bytes that a table of pages maps.
    fn table_span(&self) -> u64 {
        let page = self.geometry.page_bytes();
        page / 8 * page
    }

    /// Whether blocks can map these: both ends of the translation are aligned alike.
    fn is_blocks(&self, iova: u64, phys: Option<u64>) -> bool {
        phys.is_some_and(|phys| (iova ^ phys) & (self.table_span() - 1) == 0)
    }

    fn check_phys(&self, what: &str, phys: u64, size: u64) -> Result<(), Refusal> {
        let (last, bits) = (phys.checked_add(size - 1), self.geometry.config().output_bits);
        match last {
            Some(last) if last < self.geometry.output_end() => Ok(()),
            _ => Err(Refusal::Line(format!(
                "{what} {phys:#x} has more than {bits} bits (--output-bits)"
            ))),
        }
    }

    fn locate(&mut self, is_identity: Option<bool>) {
        self.input.located_maps += u64::from(is_identity.is_some());
        self.input.identity_maps += u64::from(is_identity == Some(true));
    }

    /// A scatter list as runs of adjacent pages, each in pieces whose memory is known or not.
    fn list(
        &self,
        segments: &[(u64, u64)],
        phys: &[u64],
        truncated: bool,
    ) -> Result<Vec<Vec<Piece>>, Refusal> {
        let page = self.geometry.page_bytes();
        let alike = !truncated && segments.len() == phys.len();
        let mut runs: Vec<Vec<Piece>> = Vec::new();
        for (n, &(addr, size)) in segments.iter().enumerate() {
            let range = self.buffer(addr, size)?;
            let at = phys.get(n).copied().filter(|_| alike);
            if let Some(at) = at {
                self.check_phys("phys_addr", at, size)?;
            }
            let piece = (range, at.map(|at| at & !(page - 1)));
            match runs.last_mut() {
                Some(run) if run.last().is_some_and(|last| last.0.end == piece.0.start) => {
                    run.push(piece);
                }
                _ => runs.push(vec![piece]),
            }
        }
        // The kernel has merged the memory's pieces into one of the device's, and says no more of their
        // sizes. Equal ones are assumed where that is possible: a list of pages.
        if let ([run], false, false) = (&mut runs[..], alike, truncated)
            && let Some(equal) = self.equal_pieces(&span(run), phys)
        {
            *run = equal;
        }
        Ok(runs)
    }

    /// A range cut into as many equal pieces as there are addresses.
    fn equal_pieces(&self, range: &Range<u64>, phys: &[u64]) -> Option<Vec<Piece>> {
        let page = self.geometry.page_bytes();
        let count = phys.len() as u64;
        let all = range.end - range.start;
        let size = all.checked_div(count).filter(|size| size * count == all)?;
        let whole = |&at: &u64| at.is_multiple_of(page) && self.check_phys("", at, size).is_ok();
        if size == 0 || !size.is_multiple_of(page) || !phys.iter().all(whole) {
            return None;
        }
        let starts = (range.start..).step_by(size as usize);
        Some(starts.zip(phys).map(|(start, &at)| (start..start + size, Some(at))).collect())
    }

    fn map(&mut self, range: Range<u64>, phys: Option<u64>) -> Result<(), Refusal> {
        self.map_pieces(&[(range, phys)])
    }

    /// Maps adjacent pieces by one call.
    fn map_pieces(&mut self, pieces: &[Piece]) -> Result<(), Refusal> {
        let range = span(pieces);
        let by_pages = pieces.iter().filter(|(piece, phys)| !self.is_blocks(piece.start, *phys));
        self.check_room(by_pages.map(|(piece, _)| piece.end - piece.start).sum())?;
        self.input.maps += 1;
        add(&mut self.input.mapped_bytes, range.end - range.start);
        for there in self.engines[0].mapped(&range) {
            add(&mut self.input.assumed_unmapped_bytes, there.end - there.start);
            self.changing(&there, |replayer| {
                for engine in &mut replayer.engines {
                    engine.forget(&there).map_err(wrong)?;
                }
                replayer.ideal.forget(there.start, there.end - there.start);
                Ok(())
            })?;
        }
        for (piece, phys) in pieces {
            match *phys {
                Some(phys) => self.map_all(piece, phys, false)?,
                None => self.map_anywhere(piece)?,
            }
        }
        let leaves = self.engines[0].leaves(&range);
        self.device.misses_compulsory += leaves.len() as u64;
        for leaf in leaves {
            self.access(leaf);
            self.touch();
        }
        Ok(())
    }

    /// Maps a range by pages at an address of its own choice, if the trace does not give one. No result
    /// depends on the address.
    fn map_anywhere(&mut self, range: &Range<u64>) -> Result<(), Refusal> {
        let mask = self.geometry.output_end() - 1;
        let phys = range.start & mask & !((range.end - range.start).next_power_of_two() - 1);
        self.map_all(range, phys, true)
    }

    fn map_all(&mut self, range: &Range<u64>, phys: u64, pages: bool) -> Result<(), Refusal> {
        for engine in &mut self.engines {
            engine.map(range, phys, pages, self.now_ns).map_err(|error| {
                wrong(format!("{error} (--tables-mib, if it is for want of memory)"))
            })?;
        }
        self.live += self.engines[0].leaves(range).len() as u64;
        Ok(())
    }

    fn unmap(&mut self, range: Range<u64>) -> Result<(), Refusal> {
        let holes = self.holes(&range);
        self.check_room(holes.iter().map(|hole| hole.end - hole.start).sum())?;
        self.input.unmaps += 1;
        add(&mut self.input.unmapped_bytes, range.end - range.start);
        self.input.unmatched_unmaps += u64::from(!holes.is_empty());
        for hole in holes {
            add(&mut self.input.assumed_mapped_bytes, hole.end - hole.start);
            self.map_anywhere(&hole)?;
        }
        self.changing(&range, |replayer| {
            let gone = replayer.engines[0].leaves(&range).len() as u64;
            let live = (replayer.live - gone.min(replayer.live)) + replayer.working_set;
            for engine in &mut replayer.engines {
                engine.unmap(&range, live, replayer.now_ns).map_err(wrong)?;
            }
            replayer.ideal.forget(range.start, range.end - range.start);
            Ok(())
        })?;
        self.touch_all();
        Ok(())
    }

    /// The parts of a range that are not mapped.
    fn holes(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut holes = Vec::new();
        let mut at = range.start;
        for there in self.engines[0].mapped(range) {
            holes.push(at..there.start);
            at = there.end;
        }
        holes.push(at..range.end);
        holes.retain(|hole| !hole.is_empty());
        holes
    }

    /// Keeps count of the leaves while something happens to those of a range: blocks that reach out
    /// of it may become pages.
    fn changing(
        &mut self,
        range: &Range<u64>,
        change: impl FnOnce(&mut Self) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let leaves = self.engines[0].leaves(range);
        let whole = match (leaves.first(), leaves.last()) {
            (Some(first), Some(last)) => {
                first.0.min(range.start)..(last.0 + (1 << last.1)).max(range.end)
            }
            _ => range.clone(),
        };
        let before = self.engines[0].leaves(&whole).len() as u64;
        change(self)?;
        let after = self.engines[0].leaves(&whole).len() as u64;
        self.live = self.live - before + after;
        Ok(())
    }

    fn access(&mut self, leaf: Leaf) {
        let ideal = self.ideal.access(leaf.0, leaf.1);
        self.device.accesses += 1;
        self.ideal_misses += u64::from(!ideal);
        for engine in &mut self.engines {
            engine.access(leaf, ideal);
        }
    }

    /// The next page of the working set.
    fn touch(&mut self) {
        if let Some(page) = self.touched.checked_rem(self.working_set) {
            self.touched += 1;
            let shift = self.geometry.page_shift();
            self.access((WORKING_SET + (page << shift), shift));
        }
    }

    fn touch_all(&mut self) {
        for _ in 0..self.working_set {
            self.touch();
        }
    }
}

/// Pages, and where they lie if the trace says so.
type Piece = (Range<u64>, Option<u64>);

/// From the first piece to the last.
fn span(pieces: &[Piece]) -> Range<u64> {
    match pieces {
        [first, ..] => first.0.start..pieces[pieces.len() - 1].0.end,
        [] => 0..0,
    }
}

/// Bytes in a trace may be more than memory ever had.
fn add(sum: &mut u64, bytes: u64) {
    *sum = sum.saturating_add(bytes);
}

fn wrong(error: impl ToString) -> Refusal {
    Refusal::Replay(error.to_string())
}

#[cfg(test)]
mod tests;
