//! SCK, chip selects and data lines, by how they move.

use super::{Channel, Edge, SCK, Select, means, means_select};

/// The most channels that may be chip selects of one bus.
const SELECTS_MAX: usize = 8;
/// Chip selects enclose at least this share of SCK's edges, in percent, to be believed.
const ENCLOSED_PERCENT: u64 = 90;

/// SCK, its chip selects, and what speaks for them.
#[derive(Debug)]
pub(super) struct Clocked {
    pub(super) sck: u8,
    pub(super) selects: Vec<Select>,
    /// Seven of ten edges of SCK follow the one before within so many ticks: half a clock, or its longer half.
    pub(super) usual_gap: u64,
    pub(super) why: Vec<String>,
}

/// How the lines move beside a clock.
struct Beside {
    edges: u64,
    usual_gap: u64,
    /// By channel: edges in all, and those between two edges of the clock in the middle of a word.
    moved: [u64; 64],
    within: [u64; 64],
    /// By channel: the clock's edges while the line is low, and while it is high.
    at: [[u64; 2]; 64],
}

fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then_some(mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
        bit
    })
}

/// Each change with the levels before it.
fn changes(edges: &[Edge]) -> impl Iterator<Item = (Edge, u64)> {
    edges.windows(2).map(|pair| (pair[1], pair[0].levels ^ pair[1].levels))
}

/// How often each channel changes.
fn edge_counts(edges: &[Edge]) -> [u64; 64] {
    let mut counts = [0; 64];
    changes(edges).for_each(|(_, changed)| bits(changed).for_each(|bit| counts[bit] += 1));
    counts
}

impl Beside {
    fn new(edges: &[Edge], sck: u8) -> Self {
        let ticks =
            changes(edges).filter(|(_, changed)| changed >> sck & 1 == 1).map(|(edge, _)| edge.at);
        let ticks: Vec<u64> = ticks.collect();
        let mut gaps: Vec<u64> = ticks.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_unstable();
        let usual_gap = gaps.get(gaps.len() * 7 / 10).copied().unwrap_or(1);
        let mut beside = Self {
            edges: ticks.len() as u64,
            usual_gap,
            moved: [0; 64],
            within: [0; 64],
            at: [[0; 2]; 64],
        };
        let (mut last, mut pending) = (None, Vec::new());
        for (edge, changed) in changes(edges) {
            bits(changed).for_each(|bit| beside.moved[bit] += 1);
            pending.extend(bits(changed));
            if changed >> sck & 1 == 0 {
                continue;
            }
            for (bit, at) in beside.at.iter_mut().enumerate() {
                at[(edge.levels >> bit & 1) as usize] += 1;
            }
            // A pause of half a clock more is the border of a word.
            let is_within = last.is_some_and(|last| 2 * (edge.at - last) <= 3 * usual_gap);
            for bit in pending.drain(..) {
                beside.within[bit] += u64::from(is_within);
            }
            last = Some(edge.at);
        }
        beside
    }

    /// Whether the channel may be a chip select: it moves, seldom, and hardly ever in the middle of a word.
    fn may_select(&self, bit: u8) -> bool {
        let (moved, within) = (self.moved[usize::from(bit)], self.within[usize::from(bit)]);
        moved > 0 && 4 * within <= moved && 2 * moved <= self.edges
    }

    /// The share of the clock's edges at a level, in percent.
    fn percent_at(&self, bit: u8, high: bool) -> u64 {
        self.at[usize::from(bit)][usize::from(high)] * 100 / self.edges.max(1)
    }
}

/// Finds SCK and the chip selects, of which some may be given. `taken` are data lines.
pub(super) fn clock(
    channels: &[Channel],
    edges: &[Edge],
    clk: Option<&Channel>,
    cs: Option<&[&Channel]>,
    active_high: Option<bool>,
    taken: &[u8],
) -> Result<Clocked, String> {
    let counts = edge_counts(edges);
    let count = |channel: &Channel| counts[usize::from(channel.bit)];
    let is_given_cs = |channel: &Channel| cs.is_some_and(|cs| cs.contains(&channel));
    let mut candidates: Vec<&Channel> = match clk {
        Some(clk) => vec![clk],
        None => channels
            .iter()
            .filter(|channel| !taken.contains(&channel.bit) && !is_given_cs(channel))
            .collect(),
    };
    let named =
        candidates.iter().copied().find(|channel| means(&channel.name, SCK) && count(channel) > 1);
    if let (None, Some(named)) = (clk, named) {
        candidates = vec![named];
    }
    candidates.retain(|channel| count(channel) > 1);
    candidates.sort_by_key(|channel| std::cmp::Reverse(count(channel)));
    if candidates.is_empty() {
        let lines =
            channels.iter().map(|channel| format!("{} has {} edges", channel.name, count(channel)));
        let lines: Vec<_> = lines.take(16).collect();
        return Err(match clk {
            Some(clk) => {
                format!("channel {} (--clk) does not clock: it has {} edges", clk.name, count(clk))
            }
            None => format!("no channel clocks: {}", lines.join(", ")),
        });
    }
    let by_name = named.is_some() && clk.is_none();
    let mut first = None;
    for &candidate in &candidates {
        let beside = Beside::new(edges, candidate.bit);
        let (selects, enclosed, mut why) = match cs {
            Some(cs) => given(&beside, cs, active_high),
            None => selects(channels, edges, &beside, candidate.bit, active_high, taken),
        };
        let is_believed = enclosed >= ENCLOSED_PERCENT;
        let name = &candidate.name;
        let told = match (clk, by_name) {
            (Some(_), _) => None,
            (None, true) => Some(format!("{name} is SCK, by its name")),
            (None, false) if is_believed && !selects.is_empty() => Some(format!(
                "{name} is SCK: of the lines that move within chip selects it has most edges, {}",
                beside.edges
            )),
            (None, false) => Some(format!("{name} is SCK: it has most edges, {}", beside.edges)),
        };
        why.splice(0..0, told);
        let found = Clocked { sck: candidate.bit, selects, usual_gap: beside.usual_gap, why };
        if is_believed && !found.selects.is_empty() {
            return Ok(found);
        }
        first.get_or_insert(found);
    }
    first.ok_or_else(|| "no channel clocks".into())
}

/// Chip selects that the user names: their polarity, and how much of SCK they enclose.
fn given(
    beside: &Beside,
    cs: &[&Channel],
    active_high: Option<bool>,
) -> (Vec<Select>, u64, Vec<String>) {
    let polarity = |channel: &&Channel| {
        let is_high = || cs.len() == 1 && beside.percent_at(channel.bit, true) > 50;
        Select { bit: channel.bit, active_high: active_high.unwrap_or_else(is_high) }
    };
    let selects: Vec<Select> = cs.iter().map(polarity).collect();
    let high = selects.iter().any(|select| select.active_high) && active_high.is_none();
    let why = high.then(|| format!("{} is active high: SCK runs while it is high", cs[0].name));
    (selects, 100, why.into_iter().collect())
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

/// Finds the chip selects of a clock, and the share of its edges that they enclose.
fn selects(
    channels: &[Channel],
    edges: &[Edge],
    beside: &Beside,
    sck: u8,
    active_high: Option<bool>,
    taken: &[u8],
) -> (Vec<Select>, u64, Vec<String>) {
    let name = |select: &Select| {
        channels
            .iter()
            .find(|channel| channel.bit == select.bit)
            .map_or("?", |channel| &channel.name)
    };
    let is_free = |channel: &&Channel| channel.bit != sck && !taken.contains(&channel.bit);
    let lines: Vec<&Channel> = channels.iter().filter(is_free).collect();
    let best = |high: bool| {
        let of = |channel: &&Channel| Candidate {
            select: Select { bit: channel.bit, active_high: high },
            is_named: means_select(&channel.name),
            percent: beside.percent_at(channel.bit, high),
            activations: (beside.moved[usize::from(channel.bit)] + 1) / 2,
            active_ticks: active_ticks(edges, channel.bit, high),
        };
        let candidates = lines.iter().filter(|channel| beside.may_select(channel.bit)).map(of);
        let mut candidates: Vec<Candidate> =
            candidates.filter(|candidate| candidate.percent > 0).collect();
        candidates.sort_by_key(|c| {
            (!c.is_named, 100 - c.percent, u64::MAX - c.activations, c.active_ticks)
        });
        disjoint(edges, &candidates, sck)
    };
    let all = [false, true]
        .into_iter()
        .filter(|high| active_high.is_none_or(|asked| asked == *high))
        .map(best);
    // Active low unless that does not explain the clock.
    let (mut selects, mut enclosed) = (Vec::new(), 0);
    for (found, percent) in all {
        if percent > enclosed && !(enclosed >= ENCLOSED_PERCENT) {
            (selects, enclosed) = (found, percent);
        }
    }
    if enclosed < ENCLOSED_PERCENT {
        // A chip select may stay active through a whole capture.
        let still = lines.iter().filter(|channel| {
            means_select(&channel.name) && beside.moved[usize::from(channel.bit)] == 0
        });
        let still = still
            .map(|channel| Select { bit: channel.bit, active_high: active_high.unwrap_or(false) });
        let active: Vec<Select> = still
            .filter(|select| beside.percent_at(select.bit, select.active_high) == 100)
            .collect();
        let named = selects.iter().any(|select| means_select(name(select)));
        if let Some(select) = active.first().filter(|_| !named) {
            let why = format!("{} is the chip select, by its name: it stays active", name(select));
            return (vec![*select], 100, vec![why]);
        }
        if !named {
            let why = "no line encloses SCK's edges: pauses are the borders of messages".into();
            return (Vec::new(), enclosed, vec![why]);
        }
    }
    let names: Vec<&str> = selects.iter().map(name).collect();
    let (names, one) = (names.join(", "), selects.len() == 1);
    let level = if selects.iter().any(|select| select.active_high) { "high" } else { "low" };
    let (verb, noun) =
        if one { ("encloses", "is the chip select") } else { ("enclose", "are the chip selects") };
    let why = format!("{names} {noun}, active {level}: {verb} {enclosed} % of SCK's edges");
    (selects, enclosed, vec![why])
}

/// Takes candidates in their order, if SCK's edges within them lie within no other. Returns them in the order of their bits, and the share of
/// SCK's edges within them, in percent.
fn disjoint(edges: &[Edge], candidates: &[Candidate], sck: u8) -> (Vec<Select>, u64) {
    let active =
        |select: &Select, levels: u64| (levels >> select.bit & 1 == 1) == select.active_high;
    let mut taken: Vec<Select> = Vec::new();
    let mut enclosed = 0;
    for candidate in candidates {
        if taken.len() == SELECTS_MAX || enclosed >= 100 {
            break;
        }
        let (mut own, mut both, mut any, mut all) = (0_u64, 0_u64, 0_u64, 0_u64);
        for (edge, _) in changes(edges).filter(|(_, changed)| changed >> sck & 1 == 1) {
            let is_own = active(&candidate.select, edge.levels);
            let is_others = taken.iter().any(|select| active(select, edge.levels));
            own += u64::from(is_own);
            both += u64::from(is_own && is_others);
            any += u64::from(is_own || is_others);
            all += 1;
        }
        if own > 0 && 50 * both <= own {
            taken.push(candidate.select);
            // All but a few: the capture may begin or end within a message.
            enclosed = (any * 100 + all / 2) / all.max(1);
        }
    }
    taken.sort_by_key(|select| select.bit);
    (taken, enclosed)
}

fn active_ticks(edges: &[Edge], bit: u8, high: bool) -> u64 {
    let is_active = |edge: &Edge| (edge.levels >> bit & 1 == 1) == high;
    edges.windows(2).filter(|pair| is_active(&pair[0])).map(|pair| pair[1].at - pair[0].at).sum()
}

/// A line that moves in the middle of words.
#[derive(Debug)]
pub(super) struct Moving {
    pub(super) bit: u8,
    within: u64,
    /// Changes in the first eight clocks of a message.
    in_first_word: u64,
    /// From the edge of SCK before it to each change within a word, summed up.
    behind: u64,
}

/// The data lines of a clock, the busiest first.
pub(super) fn data(edges: &[Edge], clocked: &Clocked, is_free: impl Fn(u8) -> bool) -> Vec<Moving> {
    let beside = Beside::new(edges, clocked.sck);
    let is_data = |bit: &u8| {
        let (moved, within) = (beside.moved[usize::from(*bit)], beside.within[usize::from(*bit)]);
        is_free(*bit) && within > 0 && 3 * within >= moved
    };
    let new =
        |bit| Moving { bit, within: beside.within[usize::from(bit)], in_first_word: 0, behind: 0 };
    let mut lines: Vec<Moving> = (0..64).filter(is_data).map(new).collect();
    let active = |levels: u64| {
        clocked.selects.is_empty()
            || clocked
                .selects
                .iter()
                .any(|select| (levels >> select.bit & 1 == 1) == select.active_high)
    };
    let (mut clocks, mut last, mut was_active) = (0_u64, 0, false);
    for (edge, changed) in changes(edges) {
        let is_active = active(edge.levels);
        let pause = edge.at - last > 16 * clocked.usual_gap;
        if is_active
            && (!was_active
                || clocked.selects.is_empty() && pause && changed >> clocked.sck & 1 == 1)
        {
            clocks = 0;
        }
        was_active = is_active;
        if changed >> clocked.sck & 1 == 1 {
            (clocks, last) = (clocks + 1, edge.at);
        }
        for line in lines.iter_mut().filter(|line| changed >> line.bit & 1 == 1 && is_active) {
            line.in_first_word += u64::from(clocks > 1 && clocks < 16);
            line.behind += (edge.at - last).min(clocked.usual_gap);
        }
    }
    lines.sort_by_key(|line| std::cmp::Reverse(line.within));
    lines
}

/// Whether of two data lines the first is MISO, and why.
pub(super) fn is_miso(one: &Moving, other: &Moving) -> (bool, String) {
    let mean = |line: &Moving| line.behind as f64 / line.within.max(1) as f64;
    let (a, b) = (mean(one), mean(other));
    if (a - b).abs() >= 0.5 {
        return (a > b, "it follows SCK later".into());
    }
    let (a, b) = (one.in_first_word, other.in_first_word);
    let because = match a == b {
        true => "nothing speaks against it".into(),
        false => format!("it moves {} times in first words, the other {}", a.min(b), a.max(b)),
    };
    (a < b || a == b && one.bit > other.bit, because)
}
