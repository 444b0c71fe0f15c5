//! SCK and data lines, by how they move.

use super::beside::{Beside, bits, changes};
use super::mode::PAUSE_HALF_CLOCKS;
use super::selects::{self, Selects};
use super::{Channel, Edge, SCK, Select, means};

/// A line that moves once in so many edges of SCK carries no data: it moved by chance.
const STRAY_EDGES: u64 = 5_000;

/// SCK, its chip selects, and what speaks for them.
#[derive(Debug)]
pub(super) struct Clocked {
    pub(super) sck: u8,
    pub(super) selects: Vec<Select>,
    /// Seven of ten edges of SCK follow the one before within so many ticks: half a clock, or its longer half.
    pub(super) usual_gap: u64,
    pub(super) why: Vec<String>,
}

/// How often each channel changes.
fn edge_counts(edges: &[Edge]) -> [u64; 64] {
    let mut counts = [0; 64];
    changes(edges).for_each(|(_, changed)| bits(changed).for_each(|bit| counts[bit] += 1));
    counts
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
        let is_certain = clk.is_some() || by_name;
        let Selects { selects, mut why } = match cs {
            Some(cs) => selects::given(&beside, cs, active_high),
            None => selects::find(
                channels,
                edges,
                &beside,
                candidate.bit,
                active_high,
                taken,
                is_certain,
            ),
        };
        let name = &candidate.name;
        let told = match (clk, by_name) {
            (Some(_), _) => None,
            (None, true) => Some(format!("{name} is SCK, by its name")),
            (None, false) if !selects.is_empty() => Some(format!(
                "{name} is SCK: of the lines that move within chip selects it has most edges, {}",
                beside.edges
            )),
            (None, false) => Some(format!("{name} is SCK: it has most edges, {}", beside.edges)),
        };
        why.splice(0..0, told);
        let found = Clocked { sck: candidate.bit, selects, usual_gap: beside.usual_gap, why };
        if !found.selects.is_empty() || bursts_are_of_bytes(edges, candidate.bit, found.usual_gap) {
            return Ok(found);
        }
        first.get_or_insert(found);
    }
    first.ok_or_else(|| "no channel clocks".into())
}

/// Whether a clock without chip selects runs by whole bytes between pauses: a line of data does not, nor does a clock that never pauses.
fn bursts_are_of_bytes(edges: &[Edge], sck: u8, usual_gap: u64) -> bool {
    let (mut last, mut count, mut bursts, mut of_bytes) = (None, 0_u64, 0_u64, 0_u64);
    for (edge, _) in changes(edges).filter(|(_, changed)| changed >> sck & 1 == 1) {
        if last.is_some_and(|last| edge.at - last > usual_gap.saturating_mul(PAUSE_HALF_CLOCKS)) {
            bursts += 1;
            of_bytes += u64::from(count.is_multiple_of(16));
            count = 0;
        }
        (last, count) = (Some(edge.at), count + 1);
    }
    bursts > 0 && of_bytes * 5 >= bursts * 4
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
        is_free(*bit) && within > 0 && 3 * within >= moved && within * STRAY_EDGES >= beside.edges
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
