//! The parts of the time of a chip's selections: clocks, lead, lag, and the time between two.
//!
//! # How it works
//! The wire notes each selection ([`Board::start_selections`](crate::Board::start_selections)).
//! [`Parts`] cuts the time from the first selection to the one after the last as a scope would:
//! *lead* from chip select to the first clock, *clocks* to the last, those in which the controller
//! rests included, *lag* to chip select's end, and then *gap* inside a message or *software*
//! between two. So the parts add up to the time, whatever it was spent on.

use crate::chip::Ps;

const PS_PER_US: f64 = 1_000_000.0;

/// One time that a chip select was active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// When it became active.
    pub selected_at: Ps,
    /// When the first bit's cell began; its first edge is half a period later where CPHA is 0.
    pub first_clock_at: Ps,
    /// When the last bit's cell ended.
    pub last_clock_at: Ps,
    /// When it became inactive.
    pub deselected_at: Ps,
}

/// Mean times of one selection among many alike, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    /// From the first bit's cell to the last one's end.
    pub clocks_us: f64,
    /// From chip select to the first bit's cell.
    pub lead_us: f64,
    /// From the last bit's cell to chip select's end.
    pub lag_us: f64,
    /// Chip select inactive inside a message, spread over all selections.
    pub gap_us: f64,
    /// Chip select inactive between two messages, spread over all selections.
    pub software_us: f64,
}

impl Parts {
    /// The parts of `selections`, of which `batch` make a message: those of whole messages whose
    /// successor was selected too. `None` if there is none.
    ///
    /// # Panics
    /// If `batch` is 0.
    #[must_use]
    pub fn of(selections: &[Selection], batch: usize) -> Option<Self> {
        let counted = selections.len().checked_sub(1)? / batch * batch;
        if counted == 0 {
            return None;
        }
        let mut sums = [0; 5];
        for (index, pair) in selections.windows(2).take(counted).enumerate() {
            let [this, next] = pair else { continue };
            let between = if (index + 1).is_multiple_of(batch) { 4 } else { 3 };
            sums[0] += this.last_clock_at.saturating_sub(this.first_clock_at);
            sums[1] += this.first_clock_at.saturating_sub(this.selected_at);
            sums[2] += this.deselected_at.saturating_sub(this.last_clock_at);
            sums[between] += next.selected_at.saturating_sub(this.deselected_at);
        }
        let mean = |sum: Ps| sum as f64 / counted as f64 / PS_PER_US;
        let [clocks_us, lead_us, lag_us, gap_us, software_us] = sums.map(mean);
        Some(Self { clocks_us, lead_us, lag_us, gap_us, software_us })
    }

    /// The time from one selection to the next.
    #[must_use]
    pub fn sum_us(&self) -> f64 {
        self.clocks_us + self.lead_us + self.lag_us + self.gap_us + self.software_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Selections of 1 µs lead, 5 µs clocks, 2 µs lag, with these gaps after each.
    fn selections(gaps_us: &[u64]) -> Vec<Selection> {
        let mut at = 7;
        let mut selections = Vec::new();
        for gap in gaps_us.iter().chain([&0]) {
            let at_us = |us: u64| at + us * 1_000_000;
            selections.push(Selection {
                selected_at: at,
                first_clock_at: at_us(1),
                last_clock_at: at_us(6),
                deselected_at: at_us(8),
            });
            at = at_us(8 + gap);
        }
        selections
    }

    #[test]
    fn parts_add_up_to_the_time() {
        let selections = selections(&[1, 1, 10, 1, 1, 16]);
        let parts = Parts::of(&selections, 3).expect("two messages");
        let expected = Parts {
            clocks_us: 5.0,
            lead_us: 1.0,
            lag_us: 2.0,
            gap_us: 4.0 / 6.0,
            software_us: 26.0 / 6.0,
        };
        assert_eq!(parts, expected);
        let elapsed = selections[6].selected_at - selections[0].selected_at;
        assert!((parts.sum_us() * 6.0 - elapsed as f64 / PS_PER_US).abs() < 1e-9);
    }

    #[test]
    fn messages_without_a_successor_do_not_count() {
        let selections = selections(&[1, 9, 1, 99]);
        let parts = Parts::of(&selections[..4], 2).expect("one message");
        assert_eq!((parts.gap_us, parts.software_us), (0.5, 4.5));
        assert_eq!(Parts::of(&selections[..2], 2), None);
        assert_eq!(Parts::of(&[], 1), None);
    }
}
