//! Chip selects: lines within whose active times SCK runs.

use super::beside::{Beside, changes};
use super::{Channel, Edge, Select, means_select};
use crate::capture::name_of;

/// The most channels that may be chip selects of one bus.
const SELECTS_MAX: usize = 8;
/// Edges of SCK in a byte.
const BYTE_EDGES: u64 = 16;

/// The chip selects, and what speaks for them. Without any, there is none.
pub(super) struct Selects {
    pub(super) selects: Vec<Select>,
    pub(super) why: Vec<String>,
}

/// Chip selects that the user names, and their polarity.
pub(super) fn given(beside: &Beside, cs: &[&Channel], active_high: Option<bool>) -> Selects {
    let polarity = |channel: &&Channel| {
        let is_high = || cs.len() == 1 && beside.percent_at(channel.bit, true) > 50;
        Select { bit: channel.bit, active_high: active_high.unwrap_or_else(is_high) }
    };
    let selects: Vec<Select> = cs.iter().map(polarity).collect();
    let high = selects.iter().any(|select| select.active_high) && active_high.is_none();
    let why = high.then(|| format!("{} is active high: SCK runs while it is high", cs[0].name));
    Selects { selects, why: why.into_iter().collect() }
}

/// A line that may be a chip select, by one polarity.
#[derive(Clone, Copy)]
struct Candidate {
    select: Select,
    is_named: bool,
    percent: u64,
    /// How often it becomes active, and for how long in all.
    activations: u64,
    active_ticks: u64,
}

/// Times in which some of the lines are active, and those between.
#[derive(Default)]
struct Periods {
    /// Whole active ones with an edge of SCK, those after which SCK is back at its level, and those of whole bytes.
    active: u64,
    even: u64,
    of_bytes: u64,
    /// Inactive ones, those with an edge of SCK, and of them those of whole bytes.
    inactive: u64,
    clocked: u64,
    inactive_of_bytes: u64,
    /// SCK's edges within active ones.
    enclosed: u64,
}

impl Periods {
    fn new(edges: &[Edge], sck: u8, selects: &[Select]) -> Self {
        let is_active = |levels: u64| {
            selects.iter().any(|select| (levels >> select.bit & 1 == 1) == select.active_high)
        };
        let mut periods = Self::default();
        let (mut was_active, mut clocks, mut is_whole) = (false, 0_u64, false);
        if let Some(first) = edges.first() {
            was_active = is_active(first.levels);
        }
        for (edge, changed) in changes(edges) {
            let active = is_active(edge.levels);
            // An edge of SCK with that of a chip select belongs to the active side.
            let mut clocked = changed >> sck & 1;
            periods.enclosed += if active || was_active { clocked } else { 0 };
            if active != was_active {
                periods.end(was_active, clocks + if was_active { clocked } else { 0 }, is_whole);
                clocked = if was_active { 0 } else { clocked };
                (was_active, clocks, is_whole) = (active, 0, true);
            }
            clocks += clocked;
        }
        periods.end(was_active, clocks, false);
        periods
    }

    fn end(&mut self, is_active: bool, clocks: u64, is_whole: bool) {
        let of_bytes = u64::from(clocks > 0 && clocks.is_multiple_of(BYTE_EDGES));
        if !is_active {
            self.inactive += 1;
            self.clocked += u64::from(clocks > 0);
            self.inactive_of_bytes += of_bytes;
        } else if is_whole && clocks > 0 {
            self.active += 1;
            self.even += u64::from(clocks.is_multiple_of(2));
            self.of_bytes += of_bytes;
        }
    }

    /// The line is back at its level after most active times, as a clock is, and data are not.
    fn is_even(&self) -> bool {
        self.even * 5 >= self.active * 4
    }

    /// SCK hardly ever runs between active times.
    fn is_quiet(&self) -> bool {
        self.clocked * 10 <= self.inactive || self.clocked == 1 && self.inactive > 1
    }

    /// SCK runs between active times, but within them by whole bytes, and not between: it belongs to a chip whose chip
    /// select the capture does not have. A line that chooses between commands and data has whole bytes in both.
    fn is_partial(&self) -> bool {
        self.active > 1
            && self.of_bytes * 10 >= self.active * 9
            && self.inactive_of_bytes * 2 <= self.clocked
    }
}

/// Finds the chip selects of a clock. One that is not certain may be a line of data.
pub(super) fn find(
    channels: &[Channel],
    edges: &[Edge],
    beside: &Beside,
    sck: u8,
    active_high: Option<bool>,
    taken: &[u8],
    is_certain: bool,
) -> Selects {
    let name = |select: &Select| name_of(channels, select.bit).unwrap_or("?");
    let is_free = |channel: &&Channel| channel.bit != sck && !taken.contains(&channel.bit);
    let lines: Vec<&Channel> = channels.iter().filter(is_free).collect();
    // Active low unless that does not explain the clock.
    let levels =
        [false, true].into_iter().filter(|high| active_high.is_none_or(|asked| asked == *high));
    let candidates = |high: bool| {
        let of = |channel: &&Channel| Candidate {
            select: Select { bit: channel.bit, active_high: high },
            is_named: means_select(&channel.name),
            percent: beside.percent_at(channel.bit, high),
            activations: beside.moved[usize::from(channel.bit)].div_ceil(2),
            active_ticks: active_ticks(edges, channel.bit, high),
        };
        let may = lines.iter().filter(|channel| beside.may_select(channel.bit)).map(of);
        let mut may: Vec<Candidate> = may.filter(|candidate| candidate.percent > 0).collect();
        may.sort_by_key(|c| {
            (!c.is_named, 100 - c.percent, u64::MAX - c.activations, c.active_ticks)
        });
        may
    };
    let share =
        |periods: &Periods| (periods.enclosed * 100 + beside.edges / 2) / beside.edges.max(1);
    let told = |selects: Vec<Select>, percent: u64| {
        let names: Vec<&str> = selects.iter().map(name).collect();
        let level = if selects[0].active_high { "high" } else { "low" };
        let [noun, verb] = match names.len() {
            1 => ["is the chip select", "encloses"],
            _ => ["are the chip selects", "enclose"],
        };
        let names = names.join(", ");
        let why = format!("{names} {noun}, active {level}: {verb} {percent} % of SCK's edges");
        Selects { selects, why: vec![why] }
    };
    for high in levels.clone() {
        let selects = disjoint(edges, &candidates(high), sck);
        let periods = Periods::new(edges, sck, &selects);
        if !selects.is_empty()
            && periods.is_quiet()
            && (is_certain || periods.is_even())
            && share(&periods) >= 50
        {
            return told(selects, share(&periods));
        }
    }
    // A chip select may stay active through a whole capture.
    let is_still = |channel: &&&Channel| {
        means_select(&channel.name) && beside.moved[usize::from(channel.bit)] == 0
    };
    let select =
        |channel: &&Channel| Select { bit: channel.bit, active_high: active_high.unwrap_or(false) };
    let mut still = lines.iter().filter(is_still).map(select);
    if let Some(select) =
        still.find(|select| beside.percent_at(select.bit, select.active_high) == 100)
    {
        let why = format!("{} is the chip select, by its name: it stays active", name(&select));
        return Selects { selects: vec![select], why: vec![why] };
    }
    for high in levels {
        let of = |select| Periods::new(edges, sck, &[select]);
        let mut candidates = candidates(high);
        candidates.retain(|candidate| candidate.is_named || of(candidate.select).is_partial());
        let selects = disjoint(edges, &candidates, sck);
        if !selects.is_empty() {
            let percent = share(&Periods::new(edges, sck, &selects));
            return told(selects, percent);
        }
    }
    let why = "no line encloses SCK's edges: pauses are the borders of messages".into();
    Selects { selects: Vec::new(), why: vec![why] }
}

/// Takes candidates in their order, if SCK's edges within them lie within no other. Returns them in the order of their bits.
fn disjoint(edges: &[Edge], candidates: &[Candidate], sck: u8) -> Vec<Select> {
    let active =
        |select: &Select, levels: u64| (levels >> select.bit & 1 == 1) == select.active_high;
    let mut taken: Vec<Select> = Vec::new();
    for candidate in candidates {
        let (mut own, mut both, mut outside) = (0_u64, 0_u64, 0_u64);
        for (edge, changed) in changes(edges).filter(|(_, changed)| changed >> sck & 1 == 1) {
            let is_active = |select: &Select| {
                active(select, edge.levels) || active(select, edge.levels ^ changed)
            };
            let is_own = is_active(&candidate.select);
            let is_others = taken.iter().any(is_active);
            own += u64::from(is_own);
            both += u64::from(is_own && is_others);
            outside += u64::from(!is_others);
        }
        // All edges have a chip select: nothing is left to explain.
        if taken.len() == SELECTS_MAX || outside == 0 {
            break;
        }
        if own > 0 && 50 * both <= own {
            taken.push(candidate.select);
        }
    }
    taken.sort_by_key(|select| select.bit);
    taken
}

fn active_ticks(edges: &[Edge], bit: u8, high: bool) -> u64 {
    let is_active = |edge: &Edge| (edge.levels >> bit & 1 == 1) == high;
    let active = edges.windows(2).filter(|pair| is_active(&pair[0]));
    active.map(|pair| pair[1].at - pair[0].at).sum()
}
