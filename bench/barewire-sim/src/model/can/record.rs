//! What was on the bus, with its times.

use super::frame::CanFrame;
use super::node::{ErrorKind, NodeId};
use crate::chip::Ps;

/// How a frame went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Acknowledged and taken.
    Taken,
    /// Destroyed by an error, as its sender saw it.
    Error(ErrorKind),
}

/// A frame that was on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// What.
    pub frame: CanFrame,
    /// Who sent it.
    pub sender: NodeId,
    /// Where SOF began.
    pub sof: Ps,
    /// Where EOF's last bit ended, or the error delimiter's.
    pub eof: Ps,
    /// How it went.
    pub outcome: Outcome,
}

impl Record {
    /// Whether it was acknowledged and taken.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.outcome == Outcome::Taken
    }
}
