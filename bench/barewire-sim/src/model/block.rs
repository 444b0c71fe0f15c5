//! The interface between a board and its controller block.
//!
//! A block does nothing between accesses: each access first processes everything that is due by
//! then.

use std::fmt::Debug;

use crate::chip::Ps;
use crate::wire::Wire;

/// A controller block, with registers for the driver and pins on a wire.
pub trait ControllerBlock: Debug {
    /// Reads the register at `offset` at time `now`.
    fn read(&mut self, offset: u32, now: Ps, wire: &mut Wire) -> u32;

    /// Writes the register at `offset` at time `now`.
    fn write(&mut self, offset: u32, value: u32, now: Ps, wire: &mut Wire);

    /// Processes everything that is due by `now`.
    fn catch_up(&mut self, now: Ps, wire: &mut Wire);

    /// The time of the next event without an access; [`Ps::MAX`] for never.
    fn due(&self) -> Ps;

    /// Whether the block raised its interrupt, as of the last access.
    fn interrupt(&self) -> bool;
}
