//! Removes pulses that are shorter than a limit, and counts them.

use std::collections::VecDeque;

use crate::capture::Edge;

/// Holds changes back until they have lasted long enough.
#[derive(Debug)]
pub(crate) struct Filter {
    /// A level that lasts fewer ticks is a glitch.
    limit: u64,
    /// Levels as they came, and as they were passed on.
    came: Option<u64>,
    passed: u64,
    /// Changes that are held back: their time and their channels.
    held: VecDeque<(u64, u64)>,
    /// Glitches by channel.
    pub(crate) counts: [u64; 64],
}

impl Filter {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, came: None, passed: 0, held: VecDeque::new(), counts: [0; 64] }
    }

    /// Takes a change, and passes on those that have lasted.
    pub(crate) fn push(&mut self, edge: Edge, out: &mut Vec<Edge>) {
        let Some(came) = self.came.replace(edge.levels) else {
            self.passed = edge.levels;
            out.push(edge);
            return;
        };
        self.pass(edge.at.saturating_sub(self.limit), out);
        // A channel that changes while its last change is held back has had a pulse: neither happened.
        let mut changed = came ^ edge.levels;
        for (_, channels) in &mut self.held {
            let pulses = *channels & changed;
            *channels ^= pulses;
            changed ^= pulses;
            count(&mut self.counts, pulses);
        }
        if changed != 0 {
            self.held.push_back((edge.at, changed));
        }
    }

    /// Passes on what is held back: the capture has ended.
    pub(crate) fn finish(&mut self, out: &mut Vec<Edge>) {
        self.pass(u64::MAX, out);
    }

    fn pass(&mut self, until: u64, out: &mut Vec<Edge>) {
        while let Some(&(at, channels)) = self.held.front().filter(|(at, _)| *at <= until) {
            self.held.pop_front();
            if channels != 0 {
                self.passed ^= channels;
                out.push(Edge { at, levels: self.passed });
            }
        }
    }
}

fn count(counts: &mut [u64; 64], mut pulses: u64) {
    while pulses != 0 {
        counts[pulses.trailing_zeros() as usize] += 1;
        pulses &= pulses - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered(limit: u64, edges: &[(u64, u64)]) -> (Vec<(u64, u64)>, Vec<u64>) {
        let (mut filter, mut out) = (Filter::new(limit), Vec::new());
        edges.iter().for_each(|&(at, levels)| filter.push(Edge { at, levels }, &mut out));
        filter.finish(&mut out);
        (out.iter().map(|edge| (edge.at, edge.levels)).collect(), filter.counts[..2].to_vec())
    }

    #[test]
    fn short_pulses_go_and_others_keep_their_times() {
        // Bit 0 has a pulse of 2 ticks within a pulse of 9 of bit 1.
        let edges = [(0, 0), (10, 2), (12, 3), (14, 2), (19, 0), (30, 1)];
        assert_eq!(filtered(3, &edges), (vec![(0, 0), (10, 2), (19, 0), (30, 1)], vec![1, 0]));
        // As long as the limit stays.
        assert_eq!(filtered(2, &edges).1, [0, 0]);
        assert_eq!(filtered(2, &edges).0, edges);
        // A burst of three pulses: no level lasts until the last.
        let burst = [(0, 0), (5, 1), (6, 0), (7, 1), (8, 0), (9, 1)];
        assert_eq!(filtered(3, &burst), (vec![(0, 0), (9, 1)], vec![2, 0]));
    }
}
