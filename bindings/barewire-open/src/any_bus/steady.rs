//! A simulated board whose time passes by messages and waits alone: for a driver that keeps a rate.
//!
//! How it works: a program that is preempted for a millisecond pauses the board too, as any pause does. A driver
//! that samples at a rate would then miss turns which the board had time for, differently in each run.

use std::fmt;

use super::sim::SteadySim;
use super::{AnyBus, Part};

/// While it exists, a pause of the program is no pause of the board. Nothing on another bus.
pub struct Steady(Option<SteadySim>);

impl fmt::Debug for Steady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steady").field("simulated", &self.0.is_some()).finish()
    }
}

impl AnyBus {
    /// Lets a simulated board's time pass by messages and by waits on [`AnyBus::timer`] alone, until what this
    /// returns is dropped.
    #[must_use]
    pub fn steady(&self) -> Steady {
        Steady(match &self.0.part {
            Part::Sim(part) => Some(part.steady()),
            _ => None,
        })
    }
}
