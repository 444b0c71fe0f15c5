//! Records of the frames on the bus.

use super::frame::CanFrame;
use super::node::{ErrorKind, NodeId};
use crate::chip::Ps;

/// The outcome of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Acknowledged and accepted.
    Taken,
    /// Destroyed by an error, of the kind its sender saw.
    Error(ErrorKind),
}

/// A frame that was on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The frame.
    pub frame: CanFrame,
    /// The sender.
    pub sender: NodeId,
    /// The start of SOF.
    pub sof: Ps,
    /// The end of EOF's last bit, or of the error delimiter's.
    pub eof: Ps,
    /// The outcome.
    pub outcome: Outcome,
}

impl Record {
    /// Whether it was acknowledged and accepted.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.outcome == Outcome::Taken
    }
}
