//! Faults of a bus, as data.

use crate::chip::Ps;

/// A fault. Frames are counted from 0, including every attempt and error frame: a retransmission is
/// a frame of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Frame `frame` arrives with a wrong CRC at all its receivers, so no node acknowledges it.
    Crc {
        /// The frame.
        frame: u64,
    },
    /// A node sends an error flag over frame `frame`, beginning with bit `bit`; SOF is bit 0.
    ErrorFlag {
        /// The frame.
        frame: u64,
        /// The bit, at most the last bit of EOF.
        bit: u32,
    },
    /// An error flag at `bit` destroys frame `first` and every `every`th frame after it.
    ErrorFlags {
        /// The first.
        first: u64,
        /// The distance in frames; at least 1.
        every: u64,
        /// The bit.
        bit: u32,
    },
    /// The bus is held dominant for a time.
    Dominant {
        /// The start.
        from: Ps,
        /// The end.
        until: Ps,
    },
}
