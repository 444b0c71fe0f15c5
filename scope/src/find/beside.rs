//! How all lines move beside one that may be the clock.

use super::Edge;

/// How the lines move beside a clock.
pub(super) struct Beside {
    /// The clock's edges.
    pub(super) edges: u64,
    /// Seven of ten of its edges follow the one before within so many ticks: half a clock, or its longer half.
    pub(super) usual_gap: u64,
    /// By channel: edges in all, and those between two edges of the clock in the middle of a word.
    pub(super) moved: [u64; 64],
    pub(super) within: [u64; 64],
    /// By channel: the clock's edges while the line is low, and while it is high; those with which it moves count twice.
    at: [[u64; 2]; 64],
}

pub(super) fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then_some(mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
        bit
    })
}

/// Each change with the levels before it.
pub(super) fn changes(edges: &[Edge]) -> impl Iterator<Item = (Edge, u64)> {
    edges.windows(2).map(|pair| (pair[1], pair[0].levels ^ pair[1].levels))
}

impl Beside {
    pub(super) fn new(edges: &[Edge], sck: u8) -> Self {
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
        // Channels that moved since the clock's last edge; those that moved with it, within a word until then.
        let (mut last, mut between, mut with) = (None, Vec::new(), Vec::new());
        for (edge, changed) in changes(edges) {
            bits(changed).for_each(|bit| beside.moved[bit] += 1);
            if changed >> sck & 1 == 0 {
                between.extend(bits(changed));
                continue;
            }
            // A chip select that moves with the clock is the border of a word: it counts on both sides.
            let levels = [edge.levels, edge.levels ^ changed & !(1 << sck)];
            for (bit, at) in beside.at.iter_mut().enumerate() {
                at[0] += u64::from(levels.iter().any(|levels| levels >> bit & 1 == 0));
                at[1] += u64::from(levels.iter().any(|levels| levels >> bit & 1 == 1));
            }
            // A pause of half a clock more is the border of a word.
            let is_within = last.is_some_and(|last| 2 * (edge.at - last) <= 3 * usual_gap);
            for bit in between.drain(..).chain(with.drain(..)) {
                beside.within[bit] += u64::from(is_within);
            }
            let with_it = bits(changed & !(1 << sck));
            if is_within {
                with.extend(with_it);
            }
            last = Some(edge.at);
        }
        beside
    }

    /// Whether the channel may be a chip select: it moves, seldom, and hardly ever in the middle of a word.
    pub(super) fn may_select(&self, bit: u8) -> bool {
        let (moved, within) = (self.moved[usize::from(bit)], self.within[usize::from(bit)]);
        moved > 0 && 4 * within <= moved && 2 * moved <= self.edges
    }

    /// The share of the clock's edges at a level, in percent.
    pub(super) fn percent_at(&self, bit: u8, high: bool) -> u64 {
        self.at[usize::from(bit)][usize::from(high)] * 100 / self.edges.max(1)
    }
}
