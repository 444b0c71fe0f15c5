//! Events onto every engine, and what the device does in between.

use std::ops::Range;

use barewire_iommu::Geometry;
use serde::Serialize;

use super::engine::{Engine, Leaf};
use super::tlb::Tlb;
use super::trace::{Event, Line};

/// Pages of the working set lie where no IOVA of a table can be.
const WORKING_SET: u64 = 1 << 63;

/// What the trace had, and what was made of it. These names are an interface.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub(super) struct Input {
    pub(super) lines: u64,
    pub(super) maps: u64,
    pub(super) unmaps: u64,
    /// Lines that are neither ours nor comments.
    pub(super) other_lines: u64,
    /// Events that the tracer says it lost.
    pub(super) lost_events: u64,
    /// The last line had no end, and was left out.
    pub(super) cut_line: bool,
    pub(super) mapped_bytes: u64,
    pub(super) unmapped_bytes: u64,
    /// Unmaps that removed less than they were asked to.
    pub(super) short_unmaps: u64,
    /// Bytes unmapped that no line had mapped: taken for mapped, by pages, before the trace began.
    pub(super) assumed_mapped_bytes: u64,
    /// Bytes mapped that were mapped already: taken for unmapped in between, at no cost.
    pub(super) assumed_unmapped_bytes: u64,
    /// Lines older than the one before, taken for as old.
    pub(super) backward_times: u64,
    /// Events without a time in seconds.
    pub(super) untimed: u64,
    pub(super) duration_ns: Option<u64>,
}

/// What the device did.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub(super) struct Device {
    pub(super) accesses: u64,
    /// First accesses.
    pub(super) misses_compulsory: u64,
    /// What the TLB had no room for.
    pub(super) misses_capacity: u64,
}

/// All of a replay.
pub(super) struct Replayer<'m> {
    pub(super) engines: Vec<Engine<'m>>,
    geometry: Geometry,
    /// Loses nothing but what was unmapped.
    ideal: Tlb,
    ideal_misses: u64,
    working_set: u64,
    touched: u64,
    /// Leaves that are mapped.
    live: u64,
    first_ns: Option<u64>,
    now_ns: u64,
    pub(super) input: Input,
    pub(super) device: Device,
}

impl<'m> Replayer<'m> {
    pub(super) fn new(
        engines: Vec<Engine<'m>>,
        geometry: Geometry,
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
            first_ns: None,
            now_ns: 0,
            input: Input::default(),
            device,
        };
        replayer.touch_all();
        replayer
    }

    /// A line that was read well.
    ///
    /// # Errors
    /// What is wrong with the line. The caller adds its number.
    pub(super) fn line(&mut self, line: &Line) -> Result<(), String> {
        match line.event {
            Event::Blank => return Ok(()),
            Event::Other => self.input.other_lines += 1,
            Event::Lost(count) => {
                self.input.lost_events = self.input.lost_events.saturating_add(count);
            }
            Event::Map { iova, phys, size } => {
                self.clock(line.time_ns);
                self.check(iova, size, Some(phys))?;
                self.map(iova..iova + size, phys)?;
            }
            Event::Unmap { iova, size, unmapped } => {
                self.clock(line.time_ns);
                self.check(iova, size, None)?;
                self.check_unmapped(unmapped)?;
                self.input.short_unmaps += u64::from(unmapped < size);
                self.unmap(iova..iova + unmapped)?;
            }
        }
        Ok(())
    }

    /// There are no more.
    pub(super) fn finish(&mut self) {
        for engine in &mut self.engines {
            engine.finish(self.now_ns);
        }
        self.device.misses_capacity = self.ideal_misses - self.device.misses_compulsory;
        self.input.duration_ns = self.first_ns.map(|first_ns| self.now_ns - first_ns);
    }

    fn clock(&mut self, time_ns: Option<u64>) {
        let Some(time_ns) = time_ns else {
            self.input.untimed += 1;
            return;
        };
        self.first_ns.get_or_insert(time_ns);
        self.input.backward_times += u64::from(time_ns < self.now_ns);
        self.now_ns = self.now_ns.max(time_ns);
        for engine in &mut self.engines {
            engine.poll(self.now_ns);
        }
    }

    fn check(&self, iova: u64, size: u64, phys: Option<u64>) -> Result<(), String> {
        let page = self.geometry.page_bytes();
        for (what, value) in [("iova", Some(iova)), ("paddr", phys), ("size", Some(size))] {
            if let Some(value) = value.filter(|value| !value.is_multiple_of(page)) {
                return Err(format!(
                    "{what} {value:#x} is no multiple of the {page} byte granule (--granule)"
                ));
            }
        }
        // No overflow: the parser has looked.
        let (last, bits) = (iova + (size - 1), self.geometry.config().input_bits);
        if last >= self.geometry.input_end() {
            return Err(format!("iova {last:#x} has more than {bits} bits (--input-bits)"));
        }
        let (last, bits) =
            (phys.unwrap_or_default() + (size - 1), self.geometry.config().output_bits);
        if phys.is_some() && last >= self.geometry.output_end() {
            return Err(format!("paddr {last:#x} has more than {bits} bits (--output-bits)"));
        }
        Ok(())
    }

    fn check_unmapped(&self, unmapped: u64) -> Result<(), String> {
        let page = self.geometry.page_bytes();
        if unmapped.is_multiple_of(page) {
            return Ok(());
        }
        Err(format!(
            "unmapped_size {unmapped:#x} is no multiple of the {page} byte granule (--granule)"
        ))
    }

    fn map(&mut self, range: Range<u64>, phys: u64) -> Result<(), String> {
        self.input.maps += 1;
        self.input.mapped_bytes += range.end - range.start;
        for there in self.engines[0].mapped(&range) {
            self.input.assumed_unmapped_bytes += there.end - there.start;
            self.changing(&there, |replayer| {
                for engine in &mut replayer.engines {
                    engine.forget(&there).map_err(|error| error.to_string())?;
                }
                replayer.ideal.forget(there.start, there.end - there.start);
                Ok(())
            })?;
        }
        self.map_all(&range, phys, false)?;
        let leaves = self.engines[0].leaves(&range);
        self.device.misses_compulsory += leaves.len() as u64;
        for leaf in leaves {
            self.access(leaf);
            self.touch();
        }
        Ok(())
    }

    fn map_all(&mut self, range: &Range<u64>, phys: u64, pages: bool) -> Result<(), String> {
        for engine in &mut self.engines {
            engine
                .map(range, phys, pages, self.now_ns)
                .map_err(|error| format!("{error} (--tables-mib, if it is for want of memory)"))?;
        }
        self.live += self.engines[0].leaves(range).len() as u64;
        Ok(())
    }

    fn unmap(&mut self, range: Range<u64>) -> Result<(), String> {
        self.input.unmaps += 1;
        self.input.unmapped_bytes += range.end - range.start;
        for hole in self.holes(&range) {
            self.input.assumed_mapped_bytes += hole.end - hole.start;
            let mask = self.geometry.output_end() - 1;
            // The trace does not say where the hole was mapped to; no result depends on it.
            let phys = hole.start & mask & !((hole.end - hole.start).next_power_of_two() - 1);
            self.map_all(&hole, phys, true)?;
        }
        self.changing(&range, |replayer| {
            let gone = replayer.engines[0].leaves(&range).len() as u64;
            let live = (replayer.live - gone.min(replayer.live)) + replayer.working_set;
            for engine in &mut replayer.engines {
                engine.unmap(&range, live, replayer.now_ns).map_err(|error| error.to_string())?;
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
        change: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
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

#[cfg(test)]
mod tests;
