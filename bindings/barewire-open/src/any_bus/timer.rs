//! The time of a bus: the process's, or that of a simulated or emulated board.

use std::fmt;

use barewire::time::Timer;
use barewire_linux::Monotonic;

use super::qemu::QemuClock;
use super::sim::SimClock;

/// A timer for chip drivers, of any bus. On a simulated board and on one of QEMU's a wait takes no time of the
/// process's.
pub struct AnyTimer(pub(super) Kind);

pub(super) enum Kind {
    Process(Monotonic),
    Sim(SimClock),
    Qemu(QemuClock),
}

impl AnyTimer {
    fn timer(&mut self) -> &mut dyn Timer {
        match &mut self.0 {
            Kind::Process(timer) => timer,
            Kind::Sim(timer) => timer,
            Kind::Qemu(timer) => timer,
        }
    }
}

impl Timer for AnyTimer {
    fn frequency_hz(&self) -> u32 {
        match &self.0 {
            Kind::Process(timer) => timer.frequency_hz(),
            Kind::Sim(timer) => timer.frequency_hz(),
            Kind::Qemu(timer) => timer.frequency_hz(),
        }
    }

    fn now_ticks(&mut self) -> u64 {
        self.timer().now_ticks()
    }

    fn wait_ticks(&mut self, ticks: u64) {
        self.timer().wait_ticks(ticks);
    }

    fn sleep_ns(&mut self, ns: u64) {
        self.timer().sleep_ns(ns);
    }
}

impl fmt::Debug for AnyTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyTimer").finish_non_exhaustive()
    }
}
