//! Rounds of an operation, timed, and what was collected of them.

use barewire_lab::measured::Missing;

use crate::shared::failure::Failure;
use crate::shared::interrupt;

/// A clock, in picoseconds from any start: the machine's, or a simulated board's virtual time.
pub(super) type Now<'n> = &'n dyn Fn() -> u64;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// Rounds of each figure.
    pub(super) rounds: usize,
    /// Register accesses of a round.
    pub(super) accesses: usize,
    /// Messages of a round, and calls of a kernel.
    pub(super) calls: usize,
    /// Rounds of a figure that waits: a wake-up, a slow message.
    pub(super) waits: usize,
    /// The longest transfer of the loopback suite.
    pub(super) max_len: usize,
}

impl Effort {
    /// Of some minutes.
    pub(super) const WHOLE: Self =
        Self { rounds: 200, accesses: 100, calls: 50, waits: 400, max_len: 4_099 };
    /// Below a minute.
    pub(super) const QUICK: Self =
        Self { rounds: 30, accesses: 50, calls: 10, waits: 40, max_len: 64 };
    /// Where time is virtual every round is as the other.
    pub(super) const SIMULATED: Self =
        Self { rounds: 1, accesses: 20, calls: 4, waits: 5, max_len: 64 };

    /// The same beside busy threads, where a wait may last for a scheduler's slice.
    pub(super) fn under_load(self) -> Self {
        Self { waits: self.waits / 4, ..self }
    }
}

/// What was measured: the rounds of each figure, in nanoseconds an operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Collected {
    /// By id.
    pub(super) figures: Vec<(&'static str, Vec<f64>)>,
    /// What was not.
    pub(super) missing: Vec<Missing>,
    /// SPI's clock as the controller makes it, in Hz.
    pub(super) effective_speed_hz: Option<u32>,
    /// The shortest time of a slow message beside its clocks', as a share; below 1 nothing was on a wire.
    pub(super) of_clocks: Option<f64>,
}

impl Collected {
    /// Adds a figure.
    pub(super) fn add(&mut self, id: &'static str, rounds: Vec<f64>) {
        self.figures.push((id, rounds));
    }

    /// Adds another part's.
    pub(super) fn absorb(&mut self, other: Self) {
        self.figures.extend(other.figures);
        self.missing.extend(other.missing);
        self.effective_speed_hz = other.effective_speed_hz.or(self.effective_speed_hz);
        self.of_clocks = other.of_clocks.or(self.of_clocks);
    }

    /// Notes what is not measured.
    pub(super) fn miss(&mut self, part: &str, why: impl Into<String>) {
        self.missing.push(Missing { part: part.into(), why: why.into() });
    }

    /// Times rounds of `op`, and adds them.
    pub(super) fn time(
        &mut self,
        id: &'static str,
        now: Now<'_>,
        (rounds, calls): (usize, usize),
        op: impl FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.add(id, timed(now, rounds, calls, op)?);
        Ok(())
    }
}

/// A figure has fewer rounds if they would take longer, as under load in an emulator: two seconds.
const LONGEST_PS: u64 = 2_000_000_000_000;
/// But never fewer than these.
const FEWEST: usize = 5;

/// Times `rounds` of `calls` calls of `op`, in nanoseconds a call, after a round that does not count: it warms caches. No more
/// than [`FEWEST`] begin after [`LONGEST_PS`].
pub(super) fn timed(
    now: Now<'_>,
    rounds: usize,
    calls: usize,
    mut op: impl FnMut() -> Result<(), Failure>,
) -> Result<Vec<f64>, Failure> {
    let mut all = Vec::with_capacity(rounds);
    let until = now() + LONGEST_PS;
    for round in 0..=rounds {
        interrupt::check()?;
        let begun = now();
        if begun > until && all.len() >= FEWEST {
            break;
        }
        for _ in 0..calls {
            op()?;
        }
        if round > 0 {
            all.push((now() - begun) as f64 / 1e3 / calls as f64);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_figure_that_takes_long_has_fewer_rounds_and_never_too_few() {
        let clock = Cell::new(0);
        let rounds_of = |round_ps: u64| {
            let op = || {
                clock.set(clock.get() + round_ps / 2);
                Ok(())
            };
            timed(&|| clock.get(), 30, 2, op).expect("no round fails").len()
        };
        assert_eq!(rounds_of(1_000), 30);
        // The first of ten rounds within the time warms up, and one more is under way when it is over.
        assert_eq!(rounds_of(LONGEST_PS / 10), 10);
        assert_eq!(rounds_of(2 * LONGEST_PS), FEWEST);
    }
}
