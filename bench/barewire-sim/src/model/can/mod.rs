//! A CAN bus at its bit rate: frames to the bit, arbitration, errors, and the nodes on it.
//!
//! *Read first*: ISO 11898-1:2015, clauses 10 (frames, bit stuffing, arbitration, error handling) and
//! 12 (fault confinement); or Bosch's CAN specification 2.0 and CAN FD specification 1.0 with the ISO
//! changes: stuff bit count and start values of the CRC.
//!
//! # How it works
//! A [`CanFrame`] knows its [`Shape`]: the number of its bits on the wire at each rate, counted
//! from the bits themselves. The [`CanBus`] is idle, carries a frame, or carries an error frame. A
//! frame takes three events, whatever its length: its start, the bit in which receivers accept it,
//! and its end. The bus asks each attached [`CanNode`] what it wants to send when the bus is free,
//! and tells it what happens.
//!
//! | time | is |
//! |---|---|
//! | `sof` | SOF's bit begins |
//! | `eof` | the last of EOF's seven bits ends; receivers accept the frame a bit earlier |
//! | next SOF | at the earliest `eof` and three bits of intermission; an error passive one 8 later |
//!
//! Time does not advance between calls: [`CanBus::catch_up`] processes what is due, in order.
//!
//! ```
//! use barewire_sim::model::can::{BitTimes, CanBus, CanFrame, Script};
//!
//! let bus = CanBus::new(BitTimes::from_rates(250_000, 1_000_000));
//! let sender = bus.add(Script::new("sender", [(0, CanFrame::new(0x077, &[0x55; 8]))]));
//! bus.add(Script::new("listener", []));
//! bus.catch_up(1_000_000_000);
//! let record = bus.records()[0];
//! assert_eq!(record.sender, sender);
//! assert_eq!(record.eof - record.sof, 4_000_000 * 110, "108 bits and two stuff bits");
//! ```
//!
//! # Not supported
//! - Bit times that differ by less than [`TOLERANCE_PPM`], propagation delay,
//!   resynchronization and sample points: all nodes see a bit at once.
//! - Overload frames.
//! - A sender that joins another's SOF in the third bit of intermission.
//! - 12-bit identifiers (SID11).
//! - Transceivers.

mod bits;
mod bus;
mod carry;
mod confine;
mod fate;
mod fault;
mod feed;
mod flight;
mod frame;
mod node;
mod record;
mod traffic;

#[cfg(test)]
mod tests;

pub use bits::Shape;
pub use bus::CanBus;
pub use confine::{Counters, ErrorState};
pub use fault::Fault;
pub use feed::Feed;
pub use frame::CanFrame;
pub use node::{BusError, CanNode, ErrorKind, FdSupport, Link, NodeId, Role, Script, Span};
pub use record::{Outcome, Record};
pub use traffic::{Pattern, Traffic};

use crate::chip::Ps;

/// By how many parts in a million a node's bit times may differ from the bus's.
pub const TOLERANCE_PPM: u64 = 5_000;

/// How long a bit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitTimes {
    /// In arbitration, and in all of a frame without bit rate switch.
    pub nominal_ps: Ps,
    /// In the data phase of a frame with bit rate switch.
    pub data_ps: Ps,
}

impl BitTimes {
    /// The bit times for two bit rates.
    ///
    /// # Panics
    /// If one of them is 0.
    #[must_use]
    pub fn from_rates(nominal_bps: u32, data_bps: u32) -> Self {
        let bit_ps = |bps: u32| 1_000_000_000_000 / u64::from(bps);
        Self { nominal_ps: bit_ps(nominal_bps), data_ps: bit_ps(data_bps) }
    }
}
