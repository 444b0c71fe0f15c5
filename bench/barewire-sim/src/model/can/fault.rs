//! What goes wrong on a bus, as data.

use crate::chip::Ps;

/// Something that goes wrong. Frames are counted from 0, every attempt and error frame included: a
/// retransmission is a frame of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Frame `frame` arrives with a wrong CRC at all its receivers, so that nobody acknowledges it.
    Crc {
        /// Which.
        frame: u64,
    },
    /// Somebody sends an error flag over frame `frame`, beginning with bit `bit`, SOF being bit 0.
    ErrorFlag {
        /// Which.
        frame: u64,
        /// Where; the last bit of EOF at most.
        bit: u32,
    },
    /// Every frame from `first` on whose number less `first` is a multiple of `every` is destroyed by
    /// an error flag at `bit`.
    ErrorFlags {
        /// The first.
        first: u64,
        /// One of how many; at least 1.
        every: u64,
        /// Where.
        bit: u32,
    },
    /// The bus is dominant from a time to a time.
    Dominant {
        /// From.
        from: Ps,
        /// Until.
        until: Ps,
    },
}
