//! The board's clock: real time, plus waits that were skipped.
//!
//! # How it works
//! QEMU's transfers, programs and erases take no time, so a real wait would only delay the user: a
//! whole chip has 512 sectors of 18 ms. Instead a wait is added to an offset and returns at once.
//! Real time is part of the sum because time limits must still expire: a QEMU that hangs does so in
//! real time.
//!
//! Clones share the offset, so that the controller's clock and the chip driver's clock agree.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use barewire::time::{Timer, ticks_at_least};

const TICKS_HZ: u32 = 1_000_000_000;

/// A clock of nanoseconds whose waits return at once.
#[derive(Clone, Debug)]
pub struct QemuTimer {
    begun: Instant,
    skipped_ticks: Rc<Cell<u64>>,
}

impl QemuTimer {
    pub(crate) fn new() -> Self {
        Self { begun: Instant::now(), skipped_ticks: Rc::new(Cell::new(0)) }
    }
}

impl Timer for QemuTimer {
    fn frequency_hz(&self) -> u32 {
        TICKS_HZ
    }

    fn now_ticks(&mut self) -> u64 {
        let real = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        real.saturating_add(self.skipped_ticks.get())
    }

    fn wait_ticks(&mut self, ticks: u64) {
        self.skipped_ticks.set(self.skipped_ticks.get().saturating_add(ticks));
    }

    fn sleep_ns(&mut self, ns: u64) {
        self.wait_ticks(ticks_at_least(ns, TICKS_HZ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_pass_at_once_and_for_every_clone() {
        let begun = Instant::now();
        let mut timer = QemuTimer::new();
        let mut clone = timer.clone();
        let before = clone.now_ticks();
        timer.sleep_ns(3_600_000_000_000);
        timer.wait_ticks(5);
        let after = clone.now_ticks();
        assert!(after - before >= 3_600_000_000_005, "{before} {after}");
        assert!(clone.now_ticks() >= after);
        assert!(begun.elapsed().as_secs() < 60);
    }

    #[test]
    fn real_time_passes_too() {
        let mut timer = QemuTimer::new();
        let before = timer.now_ticks();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(timer.now_ticks() - before >= 2_000_000);
    }
}
