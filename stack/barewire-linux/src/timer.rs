//! The kernel's monotonic clock as barewire's timer.

use std::time::{Duration, Instant};

use barewire::time::Timer;

/// Waits up to this long take less time to spin than to sleep.
const SPUN_NS: u64 = 20_000;

/// CLOCK_MONOTONIC in nanoseconds, read without entering the kernel where the vDSO allows.
///
/// [`Timer::wait_ticks`] spins. [`Timer::sleep_ns`] sleeps, and so may last longer. Up to 20 µs it
/// spins too, because a sleeping thread wakes 50 µs late or more: its timer slack ("prctl(2)",
/// Linux man-pages, `PR_SET_TIMERSLACK`).
#[derive(Clone, Copy, Debug)]
pub struct Monotonic {
    origin: Instant,
}

impl Monotonic {
    /// A timer whose ticks count from now.
    #[must_use]
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Default for Monotonic {
    fn default() -> Self {
        Self::new()
    }
}

impl Timer for Monotonic {
    #[inline]
    fn frequency_hz(&self) -> u32 {
        1_000_000_000
    }

    #[inline]
    fn now_ticks(&mut self) -> u64 {
        // 64 bits of nanoseconds last 584 years.
        self.origin.elapsed().as_nanos() as u64
    }

    fn sleep_ns(&mut self, ns: u64) {
        if ns <= SPUN_NS {
            self.wait_ticks(ns);
        } else {
            std::thread::sleep(Duration::from_nanos(ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asleep, a thousand of these would take 50 ms and more.
    #[test]
    fn short_sleeps_do_not_cost_a_wake_up() {
        let switches = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let line = status.lines().find(|line| line.starts_with("voluntary_ctxt")).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
        };
        let mut timer = Monotonic::new();
        let before = switches();
        for _ in 0..1_000 {
            timer.sleep_ns(SPUN_NS);
        }
        // Reading the file may sleep now and then, but not a thousand times.
        assert!(switches() - before < 100, "{} sleeps", switches() - before);
    }

    #[test]
    fn waits_are_never_shorter_than_asked() {
        let mut timer = Monotonic::new();
        for wait in [Timer::wait_ticks, Timer::sleep_ns] as [fn(&mut Monotonic, u64); 2] {
            let begun = timer.now_ticks();
            wait(&mut timer, 50_000);
            assert!(timer.now_ticks() - begun >= 50_000);
        }
    }
}
