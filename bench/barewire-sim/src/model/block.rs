//! What a board asks of a controller block.
//!
//! A block stands still between accesses: each access first lets everything happen that is due by
//! then.

use std::fmt::Debug;

use crate::chip::Ps;
use crate::wire::Wire;

/// A controller block: registers before it, a wire behind it.
pub trait ControllerBlock: Debug {
    /// Reads the register at `offset` at time `now`.
    fn read(&mut self, offset: u32, now: Ps, wire: &mut Wire) -> u32;

    /// Writes the register at `offset` at time `now`.
    fn write(&mut self, offset: u32, value: u32, now: Ps, wire: &mut Wire);

    /// Lets everything happen that is due by `now`.
    fn catch_up(&mut self, now: Ps, wire: &mut Wire);

    /// When something happens next without an access; [`Ps::MAX`] for never.
    fn due(&self) -> Ps;

    /// Whether the block asks for an interrupt, as of the last access.
    fn interrupt(&self) -> bool;
}
