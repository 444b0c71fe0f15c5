//! A simulated board whose time passes by messages and waits alone: for a driver that keeps a rate.
//!
//! How it works: a program that is preempted for a millisecond pauses the board too, as any pause does. A driver
//! that samples at a rate would then miss turns which the board had time for, differently in each run.

use std::fmt;
use std::sync::Arc;

use super::AnyBus;
use super::world::BoardInUse;
use crate::confined::ConfinedGraph;

/// While this exists, a pause of the program does not pause the board. It has no effect on a bus without a
/// board.
pub struct Steady(Option<Arc<ConfinedGraph<BoardInUse>>>);

impl fmt::Debug for Steady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steady").field("board", &self.0.is_some()).finish()
    }
}

impl AnyBus {
    /// Lets a simulated board's time pass by messages and by waits on [`AnyBus::timer`] alone, until what this
    /// returns is dropped.
    #[must_use]
    pub fn steady(&self) -> Steady {
        let world = self.world().cloned();
        if let Some(world) = &world {
            world.with(|world| world.steady(true));
        }
        Steady(world)
    }
}

impl Drop for Steady {
    fn drop(&mut self) {
        if let Some(world) = &self.0 {
            world.with(|world| world.steady(false));
        }
    }
}
