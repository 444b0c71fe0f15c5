//! The time of a bus: the process's, or that of a simulated or emulated board.

use std::fmt;
use std::sync::Arc;

use barewire::time::Timer;
use barewire_linux::Monotonic;

use super::world::BoardInUse;
use crate::confined::ConfinedGraph;

/// A timer for chip drivers, of any bus. On a simulated board and on one of QEMU's a wait takes no time of the
/// process's.
pub struct AnyTimer(pub(super) Kind);

pub(super) enum Kind {
    Process(Monotonic),
    Board { world: Arc<ConfinedGraph<BoardInUse>>, hz: u32 },
}

impl AnyTimer {
    fn with<R: Send>(&mut self, with: impl FnOnce(&mut dyn Timer) -> R + Send) -> R {
        match &mut self.0 {
            Kind::Process(timer) => with(timer),
            Kind::Board { world, .. } => world.with(|world| world.timed(with)),
        }
    }
}

impl Timer for AnyTimer {
    fn frequency_hz(&self) -> u32 {
        match &self.0 {
            Kind::Process(timer) => timer.frequency_hz(),
            Kind::Board { hz, .. } => *hz,
        }
    }

    fn now_ticks(&mut self) -> u64 {
        self.with(|timer| timer.now_ticks())
    }

    fn wait_ticks(&mut self, ticks: u64) {
        self.with(|timer| timer.wait_ticks(ticks));
    }

    fn sleep_ns(&mut self, ns: u64) {
        self.with(|timer| timer.sleep_ns(ns));
    }
}

impl fmt::Debug for AnyTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyTimer").finish_non_exhaustive()
    }
}
