//! The most time spent in any stretch of a given length.

use std::collections::VecDeque;

/// The time spent within the last length.
pub(super) struct Window {
    length_ns: u64,
    /// When and how much, within the last length.
    recent: VecDeque<(u64, u64)>,
    sum_ps: u64,
    worst_ps: u64,
}

impl Window {
    pub(super) fn new(length_ns: u64) -> Self {
        Self { length_ns, recent: VecDeque::new(), sum_ps: 0, worst_ps: 0 }
    }

    /// At `time_ns`, which never goes back, `ps` were spent.
    pub(super) fn spend(&mut self, time_ns: u64, ps: u64) {
        while let Some(&(begin_ns, spent_ps)) = self.recent.front()
            && time_ns - begin_ns >= self.length_ns
        {
            self.sum_ps -= spent_ps;
            self.recent.pop_front();
        }
        // One entry per time stamp; a single one if the trace has no times.
        match self.recent.back_mut() {
            Some(last) if last.0 == time_ns => last.1 += ps,
            _ => self.recent.push_back((time_ns, ps)),
        }
        self.sum_ps += ps;
        self.worst_ps = self.worst_ps.max(self.sum_ps);
    }

    /// The most.
    pub(super) fn worst_ps(&self) -> u64 {
        self.worst_ps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_stretch_is_found_wherever_it_begins() {
        let mut window = Window::new(10);
        for (time_ns, ps) in [(0, 5), (9, 5), (10, 1), (15, 7), (19, 1), (25, 2)] {
            window.spend(time_ns, ps);
        }
        // From 9 to 18: 5 + 1 + 7; from 10 to 19: 1 + 7 + 1.
        assert_eq!(window.worst_ps(), 13);
        assert_eq!(Window::new(1).worst_ps(), 0);
    }
}
