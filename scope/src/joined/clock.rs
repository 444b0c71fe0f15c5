//! A trace's clock against a capture's: what no message contradicts.
//!
//! # How it works
//! A transfer's first clock on the wire is not earlier than the trace's begin of the transfer, its last not later than the
//! end. Each message so bounds the line that turns the trace's time into the capture's, from above and from below. The
//! line in the middle of what all of them leave is taken; half the width of that is how far it can be wrong.

/// How far clocks may run apart: 5,000 ppm, far more than quartzes do.
pub(super) const DRIFT_MAX: f64 = 5e-3;

/// Drifts that are tried for how far a time can be wrong.
const DRIFTS: u32 = 32;

/// The bounds of a message, in nanoseconds: `x` on the trace's clock, `y` the capture's time less the trace's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The line is not below `.1` at `.0`.
    pub(super) low: (f64, f64),
    /// It is not above `.1` at `.0`.
    pub(super) high: (f64, f64),
}

/// A line that turns times of the trace into times of the capture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// The time of the trace to which `offset_ns` belongs: its first message.
    pub at_ns: f64,
    /// The capture's time less the trace's there.
    pub offset_ns: f64,
    /// How much faster the capture's clock counts: 1e-6 is 1 ppm.
    pub drift: f64,
    /// The least and the most drift that no message contradicts; [`None`] if more than 5,000 ppm is possible.
    pub drift_range: Option<(f64, f64)>,
    /// A time can be wrong by so much, in nanoseconds, within the joined messages.
    pub residual_ns: f64,
}

impl Clock {
    /// The line that all `bounds` allow; else by how much they contradict each other, in nanoseconds.
    pub(super) fn fit(at_ns: f64, bounds: &[Bounds]) -> Result<Self, f64> {
        // Half of what is left between the bounds at a drift, and its middle. The first is concave.
        let left = |drift: f64| {
            let line = |(x, y): (f64, f64)| y - drift * (x - at_ns);
            let high = bounds.iter().map(|each| line(each.high)).fold(f64::INFINITY, f64::min);
            let low = bounds.iter().map(|each| line(each.low)).fold(f64::NEG_INFINITY, f64::max);
            ((high - low) / 2.0, (high + low) / 2.0)
        };
        let (mut from, mut to) = (-DRIFT_MAX, DRIFT_MAX);
        for _ in 0..60 {
            let (a, b) = (from + (to - from) / 3.0, to - (to - from) / 3.0);
            if left(a).0 < left(b).0 { from = a } else { to = b }
        }
        let best = f64::midpoint(from, to);
        if left(best).0 < 0.0 {
            return Err(-2.0 * left(best).0);
        }
        // The least and the most drift, and whether it is one of the messages' own.
        let edge = |side: f64| {
            let (mut good, mut bad) = (best, side * DRIFT_MAX);
            if left(bad).0 >= 0.0 {
                return (bad, false);
            }
            for _ in 0..60 {
                let middle = f64::midpoint(good, bad);
                if left(middle).0 >= 0.0 { good = middle } else { bad = middle }
            }
            (good, true)
        };
        let ((least, is_least), (most, is_most)) = (edge(-1.0), edge(1.0));
        let drift_range = (is_least && is_most).then_some((least, most));
        // Where messages are too short to tell, quartzes are as good as the same.
        let drift = if drift_range.is_none() && least <= 0.0 && 0.0 <= most { 0.0 } else { best };
        let (half_ns, offset_ns) = left(drift);
        // What each drift that is possible leaves, at the first message and the last.
        let last = bounds.iter().map(|each| each.low.0).fold(at_ns, f64::max) - at_ns;
        let off = |step: u32| {
            let possible = least + (most - least) * f64::from(step) / f64::from(DRIFTS);
            let (half, middle) = left(possible);
            let apart =
                |x: f64| (middle + possible * x - offset_ns - drift * x).abs() + half.max(0.0);
            apart(0.0).max(apart(last))
        };
        let residual_ns = (0..=DRIFTS).map(off).fold(half_ns, f64::max);
        Ok(Self { at_ns, offset_ns, drift, drift_range, residual_ns })
    }

    /// A time of the trace on the capture's clock, in nanoseconds.
    #[must_use]
    pub fn capture_ns(&self, trace_ns: u64) -> f64 {
        let ns = trace_ns as f64;
        ns + self.offset_ns + self.drift * (ns - self.at_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages every millisecond, whose clocks begin `early` after their transfers do and end `late` before.
    fn bounds(drift: f64, offset: f64, count: u32) -> Vec<Bounds> {
        let of = |nth: u32| {
            let x = f64::from(nth) * 1e6;
            let wire = |x: f64| x + offset + drift * x;
            let (early, late) =
                (3_000.0 + f64::from(nth * 7 % 5) * 400.0, 9_000.0 - f64::from(nth % 4) * 500.0);
            let (first, last) = (wire(x) + early, wire(x + 50_000.0) - late);
            Bounds { high: (x, first - x), low: (x + 50_000.0, last - x - 50_000.0) }
        };
        (0..count).map(of).collect()
    }

    #[test]
    fn offset_and_drift_are_within_what_is_told() {
        for (drift, offset) in [(0.0, 5e6), (80e-6, -3e9), (-300e-6, 17.0)] {
            let clock = Clock::fit(0.0, &bounds(drift, offset, 400)).expect("they agree");
            let (low, high) = clock.drift_range.expect("400 ms tell the drift");
            assert!(low <= drift && drift <= high && high - low < 60e-6, "{clock:?}");
            for x in [0.0, 2e8, 4e8] {
                let wrong = clock.capture_ns(x as u64) - (x + offset + drift * x);
                assert!(
                    wrong.abs() <= clock.residual_ns && clock.residual_ns < 13_000.0,
                    "{wrong} {clock:?}"
                );
            }
        }
        let one = Clock::fit(0.0, &bounds(80e-6, 1e3, 1)).expect("one agrees with itself");
        assert_eq!((one.drift, one.drift_range), (0.0, None));
        let mut wrong = bounds(0.0, 0.0, 9);
        wrong[4].high.1 -= 50_000.0;
        assert!(Clock::fit(0.0, &wrong).expect_err("one contradicts") > 5_000.0);
    }
}
