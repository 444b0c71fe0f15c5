//! The kernel's monotonic clock as barewire's timer.

use std::time::{Duration, Instant};

use barewire::time::Timer;

/// CLOCK_MONOTONIC in nanoseconds, read without entering the kernel where the vDSO allows.
///
/// [`Timer::wait_ticks`] spins; [`Timer::sleep_ns`] sleeps, and so may last longer.
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
        std::thread::sleep(Duration::from_nanos(ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
