//! A frame on its way, and the error that it meets.

use super::TOLERANCE_PPM;
use super::frame::CanFrame;
use super::node::{ErrorKind, Span};
use crate::chip::Ps;

/// A frame on its way.
pub(super) struct Flight {
    pub(super) frame: CanFrame,
    pub(super) span: Span,
    pub(super) sender: usize,
    /// Further senders of the very same bits, or of other data under the same identifier.
    pub(super) others: Vec<usize>,
    /// The nodes that receive it.
    pub(super) receivers: Vec<usize>,
    pub(super) taken: bool,
    /// When, how the sender and the receivers see it, and bits of flag.
    pub(super) error: Option<Fate>,
}

/// The error that a frame meets.
#[derive(Clone, Copy)]
pub(super) struct Fate {
    pub(super) at: Ps,
    pub(super) sender: ErrorKind,
    pub(super) receiver: ErrorKind,
    pub(super) data_phase: bool,
    pub(super) flag_bits: u64,
}

/// Whether two bit times are near enough to each other.
pub(super) fn near(one: Ps, other: Ps) -> bool {
    one.abs_diff(other).saturating_mul(1_000_000) <= other.saturating_mul(TOLERANCE_PPM)
}

/// The first bit in which two frames differ on the wire.
pub(super) fn first_difference(one: &CanFrame, other: &CanFrame) -> u32 {
    let (one, other) = (one.wire_bits(true), other.wire_bits(true));
    let same = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
    same as u32
}
