//! A loop at a fixed rate: its turns are on a fixed grid of time.

use super::Timer;

/// If the next turn is further away than this, the caller sleeps up to [`WAKE_EARLY_NS`] before it.
const SLEEP_ABOVE_NS: u64 = 500_000;
/// A sleep of an operating system ends late by some tens of microseconds.
const WAKE_EARLY_NS: u64 = 200_000;
const NS_PER_S: u64 = 1_000_000_000;

/// Turns at a rate of `per_s / every` per second.
///
/// The grid is fixed: a late turn does not delay later ones, so the rate holds over any length of
/// time. A turn that is later than a whole period is counted as missed.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Pacer {
    begun: u64,
    turn: u64,
    /// Ticks of `every` turns' worth: the period is `numerator / denominator` ticks.
    numerator: u64,
    denominator: u64,
    missed: u64,
}

impl Pacer {
    /// Starts now: the first turn is immediate, each further one `every / per_s` seconds after the
    /// previous.
    ///
    /// # Panics
    /// If `every` or `per_s` is 0.
    pub fn new(timer: &mut (impl Timer + ?Sized), every: u32, per_s: u32) -> Self {
        assert!(every > 0 && per_s > 0, "turns have a period");
        Self {
            begun: timer.now_ticks(),
            turn: 0,
            numerator: u64::from(every) * u64::from(timer.frequency_hz()),
            denominator: per_s.into(),
            missed: 0,
        }
    }

    /// The ticks from the start to turn `turn`, rounded up so that no turn is early.
    fn due(&self, turn: u64) -> u64 {
        let ticks = u128::from(turn) * u128::from(self.numerator);
        self.begun.wrapping_add(ticks.div_ceil(self.denominator.into()) as u64)
    }

    /// Waits for the next turn: sleeps while it is far, and spins at the end.
    pub fn wait(&mut self, timer: &mut (impl Timer + ?Sized)) {
        let due = self.due(self.turn);
        self.turn += 1;
        let left = |now: u64| due.wrapping_sub(now) as i64;
        let mut now = timer.now_ticks();
        let ns = u128::from(left(now).max(0) as u64) * u128::from(NS_PER_S)
            / u128::from(timer.frequency_hz());
        if ns > u128::from(SLEEP_ABOVE_NS) {
            timer.sleep_ns(u64::try_from(ns).unwrap_or(u64::MAX) - WAKE_EARLY_NS);
            now = timer.now_ticks();
        }
        if left(now) > 0 {
            // A wait begins within a tick and ends with the edge after its last whole tick.
            timer.wait_ticks(left(now) as u64 - 1);
            while left(timer.now_ticks()) > 0 {}
            return;
        }
        self.skip(now);
    }

    /// Skips the turns that are over already, however many there are: a program may have been stopped for hours.
    #[cold]
    fn skip(&mut self, now: u64) {
        // The first turn that is due now or later: the inverse of `due`.
        let before = u128::from(now.wrapping_sub(self.begun).saturating_sub(1));
        let next = before * u128::from(self.denominator) / u128::from(self.numerator) + 1;
        let missed = (next as u64).saturating_sub(self.turn);
        self.turn += missed;
        self.missed += missed;
    }

    /// The number of turns that were skipped, because an earlier one took longer than a period.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter of 1 MHz that advances by one per read, and by the length of each wait.
    struct Counter(u64);

    impl Timer for Counter {
        fn frequency_hz(&self) -> u32 {
            1_000_000
        }
        fn now_ticks(&mut self) -> u64 {
            self.0 += 1;
            self.0
        }
        fn sleep_ns(&mut self, ns: u64) {
            self.0 += ns / 1_000;
        }
    }

    #[test]
    fn turns_lie_on_the_grid_whatever_happens_between() {
        let mut timer = Counter(100);
        // 3 turns in 10 ms: 3,333.3 ticks each.
        let mut pacer = Pacer::new(&mut timer, 1, 300);
        let begun = timer.0;
        for (turn, busy) in [(0, 0), (1, 10), (2, 3_000), (3, 0), (30, 0)] {
            while pacer.turn < turn {
                pacer.wait(&mut timer);
            }
            pacer.wait(&mut timer);
            let due = begun + (turn * 1_000_000).div_ceil(300);
            assert!((due..due + 4).contains(&timer.0), "turn {turn}: {} for {due}", timer.0);
            timer.0 += busy;
        }
        assert_eq!(pacer.missed(), 0);
    }

    #[test]
    fn a_long_stop_is_skipped_at_once() {
        for (every, per_s) in [(1, 1_000_000), (3, 1_000_000), (1, 300), (7, 48_000)] {
            let mut timer = Counter(100);
            let mut pacer = Pacer::new(&mut timer, every, per_s);
            pacer.wait(&mut timer);
            // Turn by turn it would take a century.
            timer.0 += 1 << 56;
            pacer.wait(&mut timer);
            let now = timer.0;
            let [over, next] = [pacer.due(pacer.turn - 1), pacer.due(pacer.turn)];
            assert!(over < now && now <= next, "{over} {now} {next}: {every} in {per_s}");
            assert_eq!(pacer.missed() + 2, pacer.turn, "two turns were had");
        }
    }

    #[test]
    fn turns_that_are_over_are_missed_and_the_grid_stays() {
        let mut timer = Counter(0);
        let mut pacer = Pacer::new(&mut timer, 5, 5_000);
        let begun = timer.0;
        pacer.wait(&mut timer);
        timer.0 = begun + 4_500;
        pacer.wait(&mut timer);
        assert!(timer.0 < begun + 4_510, "the turn that is late comes at once");
        assert_eq!(pacer.missed(), 3);
        pacer.wait(&mut timer);
        assert!((begun + 5_000..begun + 5_004).contains(&timer.0), "{}", timer.0);
    }

    proptest::proptest! {
        #[test]
        fn no_turn_comes_early(every in 1..1_000_u32, per_s in 1..1_000_000_u32, turns in 1..50_u64) {
            let mut timer = Counter(7);
            let mut pacer = Pacer::new(&mut timer, every, per_s);
            let begun = timer.0;
            for _ in 0..turns {
                pacer.wait(&mut timer);
                let turn = u128::from(pacer.turn - 1);
                let elapsed = u128::from(timer.0 - begun) * u128::from(per_s);
                proptest::prop_assert!(elapsed >= turn * u128::from(every) * 1_000_000);
            }
        }
    }
}
