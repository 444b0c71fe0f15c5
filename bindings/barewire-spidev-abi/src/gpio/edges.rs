//! The changes of a watched line between two looks, and which of them become events.
//!
//! # How it works
//! A look records the level and, for a chip's asserted pin, the time of its assertion. So a pin that was
//! released and asserted again between two looks has two changes. A change has that time, but never one
//! before the previous look. A debounced line's change counts when the line has been stable for the
//! period, at that time.

/// The time, by the two clocks that events may have, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// `CLOCK_MONOTONIC`.
    pub monotonic_ns: u64,
    /// `CLOCK_REALTIME`.
    pub realtime_ns: u64,
}

impl Now {
    /// A time of the first clock by the second.
    pub(super) fn realtime_of(&self, monotonic_ns: u64) -> u64 {
        self.realtime_ns.saturating_sub(self.monotonic_ns.saturating_sub(monotonic_ns))
    }
}

/// The observed state of a pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Its level.
    pub level: bool,
    /// If a chip asserts it: a number that differs for each assertion, and how long ago the
    /// assertion began, in nanoseconds.
    pub asserted: Option<(u64, u64)>,
}

/// A change that becomes an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// The level after it.
    pub(super) level: bool,
    /// When it was, by `CLOCK_MONOTONIC`.
    pub(super) at_ns: u64,
}

/// A line that is watched.
#[derive(Debug)]
pub(super) struct WatchedLine {
    level: bool,
    asserted: Option<u64>,
    looked_ns: u64,
    debounce_ns: u64,
    /// The level that counts.
    stable: bool,
    /// The time at which a new level counts.
    counts_at_ns: Option<u64>,
}

impl WatchedLine {
    /// A line that is watched from this look on.
    pub(super) fn new(look: &Look, debounce_us: u32, now: &Now) -> Self {
        Self {
            level: look.level,
            asserted: look.asserted.map(|(mark, _)| mark),
            looked_ns: now.monotonic_ns,
            debounce_ns: u64::from(debounce_us) * 1_000,
            stable: look.level,
            counts_at_ns: None,
        }
    }

    /// The level that counts.
    pub(super) fn stable(&self) -> bool {
        self.stable
    }

    /// Looks again: the changes since the look before, oldest first.
    pub(super) fn look(&mut self, look: &Look, now: &Now) -> Vec<Change> {
        let now_ns = now.monotonic_ns.max(self.looked_ns);
        let since_ns = look.asserted.map(|(_, age_ns)| {
            now.monotonic_ns.saturating_sub(age_ns).clamp(self.looked_ns, now_ns)
        });
        let mark = look.asserted.map(|(mark, _)| mark);
        let anew = self.asserted.is_some() && mark.is_some() && mark != self.asserted;
        let mut changes = Vec::new();
        let at_ns = since_ns.unwrap_or(now_ns);
        if anew && look.level == self.level {
            changes.push(Change { level: !look.level, at_ns });
            changes.push(Change { level: look.level, at_ns });
        } else if look.level != self.level {
            changes.push(Change { level: look.level, at_ns });
        }
        (self.level, self.asserted, self.looked_ns) = (look.level, mark, now_ns);
        if self.debounce_ns == 0 {
            self.stable = self.level;
            return changes;
        }
        if let Some(last) = changes.last() {
            self.counts_at_ns = Some(last.at_ns.saturating_add(self.debounce_ns));
        }
        changes.clear();
        if let Some(at_ns) = self.counts_at_ns.filter(|at_ns| *at_ns <= now_ns) {
            self.counts_at_ns = None;
            if self.stable != self.level {
                self.stable = self.level;
                changes.push(Change { level: self.level, at_ns });
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(monotonic_ns: u64) -> Now {
        Now { monotonic_ns, realtime_ns: monotonic_ns + 1_000_000 }
    }

    /// A pin of a chip that asserts it low.
    fn asserted(mark: u64, age_ns: u64) -> Look {
        Look { level: false, asserted: Some((mark, age_ns)) }
    }

    fn plain(level: bool) -> Look {
        Look { level, asserted: None }
    }

    fn changes(found: &[Change]) -> Vec<(bool, u64)> {
        found.iter().map(|change| (change.level, change.at_ns)).collect()
    }

    #[test]
    fn changes_are_dated_by_the_chip_or_the_look() {
        let mut line = WatchedLine::new(&plain(true), 0, &at(100));
        assert_eq!(changes(&line.look(&plain(true), &at(200))), []);
        assert_eq!(changes(&line.look(&asserted(7, 30), &at(300))), [(false, 270)]);
        assert_eq!(changes(&line.look(&asserted(7, 130), &at(400))), [], "the same");
        assert_eq!(changes(&line.look(&plain(true), &at(500))), [(true, 500)]);
        // An edge is never dated before the previous look, even if the chip's clock says so.
        assert_eq!(changes(&line.look(&asserted(8, 400), &at(600))), [(false, 500)]);
        assert_eq!(at(600).realtime_of(500), 1_000_500);
    }

    #[test]
    fn a_pin_asserted_anew_has_two_changes() {
        let mut line = WatchedLine::new(&asserted(1, 0), 0, &at(100));
        let found = line.look(&asserted(2, 10), &at(200));
        assert_eq!(changes(&found), [(true, 190), (false, 190)]);
        assert!(!line.stable());
    }

    #[test]
    fn a_debounced_level_counts_when_it_was_stable() {
        let mut line = WatchedLine::new(&plain(true), 1, &at(0));
        assert_eq!(changes(&line.look(&plain(false), &at(500))), []);
        assert_eq!(changes(&line.look(&plain(true), &at(900))), []);
        assert_eq!(changes(&line.look(&plain(false), &at(1_000))), []);
        assert!(line.stable(), "not yet");
        assert_eq!(changes(&line.look(&plain(false), &at(1_999))), []);
        assert_eq!(changes(&line.look(&plain(false), &at(2_300))), [(false, 2_000)]);
        assert!(!line.stable());
        assert_eq!(changes(&line.look(&plain(true), &at(2_400))), []);
        assert_eq!(changes(&line.look(&plain(false), &at(2_500))), []);
        assert_eq!(changes(&line.look(&plain(false), &at(9_000))), [], "back before it counted");
    }
}
