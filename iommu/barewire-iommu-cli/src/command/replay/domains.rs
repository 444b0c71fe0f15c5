//! A domain for each device: decides to which domain an event belongs, or that it belongs to none.
//!
//! The kernel's dma events name their device. Its iommu events do not, so they share one domain, called
//! [`UNNAMED`].

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::pattern::Pattern;
use super::replayer::{Events, Refusal, Replayer};
use super::trace::{Event, TraceLine};

/// The name of the domain of events without a device.
pub(super) const UNNAMED: &str = "unnamed";

/// Devices replayed at most. Each has page tables and a TLB for every strategy.
pub(super) const DEVICES_MAX: usize = 256;

/// Names kept at most, of devices that were attached or left out.
const NAMES_MAX: usize = 64;

/// Counts of the trace as a whole, besides those of its devices. The names are an interface.
#[derive(Clone, Default, Debug, Serialize)]
pub(super) struct Input {
    pub(super) lines: u64,
    /// Of all devices that were replayed.
    #[serde(flatten)]
    pub(super) events: Events,
    /// Lines that are neither ours nor comments.
    pub(super) other_lines: u64,
    /// Lines of ours that cannot be read or replayed, and were skipped.
    pub(super) malformed_lines: u64,
    /// Lines older than the line before; they count as equally old.
    pub(super) lost_events: u64,
    /// The last line had no end, and was left out.
    pub(super) cut_line: bool,
    /// Lines older than the one before, taken for as old.
    pub(super) backward_times: u64,
    /// Events without a time in seconds.
    pub(super) untimed: u64,
    /// Events of ours that change no mapping, by name.
    pub(super) not_replayed: BTreeMap<&'static str, u64>,
    /// Events of devices that were not asked for.
    pub(super) unselected_events: u64,
    /// Events of devices for which there was no place.
    pub(super) left_out_events: u64,
    pub(super) duration_ns: Option<u64>,
}

/// A device's domain.
pub(super) struct Domain<'m> {
    pub(super) name: String,
    pub(super) replayer: Replayer<'m>,
}

/// All of a replay.
pub(super) struct Domains<'m, F> {
    create: F,
    selected: Vec<Pattern>,
    pub(super) all: Vec<Domain<'m>>,
    places: HashMap<String, usize>,
    first_ns: Option<u64>,
    now_ns: u64,
    pub(super) input: Input,
    /// Devices that the trace names, but of which it has no maps.
    pub(super) attached: BTreeSet<String>,
    /// Devices that were not asked for.
    pub(super) unselected: BTreeSet<String>,
}

impl<'m, F: Fn() -> Result<Replayer<'m>, String>> Domains<'m, F> {
    /// Domains are made by `create` when a device is first met: all devices, or those that a pattern
    /// matches if there are any.
    pub(super) fn new(create: F, selected: Vec<Pattern>) -> Self {
        Self {
            create,
            selected,
            all: Vec::new(),
            places: HashMap::new(),
            first_ns: None,
            now_ns: 0,
            input: Input::default(),
            attached: BTreeSet::new(),
            unselected: BTreeSet::new(),
        }
    }

    /// A line that was read well.
    ///
    /// # Errors
    /// What is wrong with the line. The caller adds its number.
    pub(super) fn line(&mut self, line: &TraceLine<'_>) -> Result<(), Refusal> {
        let device = match line.event {
            Event::Blank => return Ok(()),
            Event::Other => {
                self.input.other_lines += 1;
                return Ok(());
            }
            Event::Lost(count) => {
                self.input.lost_events = self.input.lost_events.saturating_add(count);
                return Ok(());
            }
            Event::Passed(name) => {
                *self.input.not_replayed.entry(name).or_default() += 1;
                return Ok(());
            }
            Event::Named { event, device } => {
                *self.input.not_replayed.entry(event).or_default() += 1;
                remember(&mut self.attached, device);
                return Ok(());
            }
            Event::Map { .. } | Event::Unmap { .. } => UNNAMED,
            Event::Dma { device, .. } => device,
        };
        let Some(place) = self.place(device)? else { return Ok(()) };
        let time_ns = self.clock(line.time_ns);
        self.all[place].replayer.event(time_ns, &line.event)
    }

    /// There are no more.
    pub(super) fn finish(&mut self) {
        for domain in &mut self.all {
            domain.replayer.finish();
        }
        self.input.events = self.all.iter().map(|domain| domain.replayer.input).sum();
        self.input.duration_ns = self.first_ns.map(|first_ns| self.now_ns - first_ns);
    }

    fn place(&mut self, device: &str) -> Result<Option<usize>, Refusal> {
        if let Some(&place) = self.places.get(device) {
            return Ok(Some(place));
        }
        if !self.selected.is_empty() && !self.selected.iter().any(|one| one.matches(device)) {
            self.input.unselected_events += 1;
            remember(&mut self.unselected, device);
            return Ok(None);
        }
        if self.all.len() == DEVICES_MAX {
            self.input.left_out_events += 1;
            return Ok(None);
        }
        let replayer = (self.create)().map_err(Refusal::Replay)?;
        let place = self.all.len();
        self.all.push(Domain { name: device.into(), replayer });
        self.places.insert(device.into(), place);
        Ok(Some(place))
    }

    /// The time, which never goes back.
    fn clock(&mut self, time_ns: Option<u64>) -> Option<u64> {
        let Some(time_ns) = time_ns else {
            self.input.untimed += 1;
            return None;
        };
        self.first_ns.get_or_insert(time_ns);
        self.input.backward_times += u64::from(time_ns < self.now_ns);
        self.now_ns = self.now_ns.max(time_ns);
        Some(self.now_ns)
    }
}

fn remember(names: &mut BTreeSet<String>, name: &str) {
    if names.len() < NAMES_MAX {
        names.insert(name.into());
    }
}
