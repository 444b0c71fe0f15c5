//! Generated frames, as `cangen` makes them.
//!
//! # How it works
//! Frame `n` is to be sent from `start + n * gap` on. A frame that the bus could not carry yet
//! waits, and none is lost. So a gap of 0 is full load. Random values come from SplitMix64 and a
//! seed.

use std::num::NonZeroU64;

use super::frame::{CanFrame, DATA_MAX, FD_LENGTHS, STANDARD_MAX};
use crate::chip::Ps;
use crate::random::SplitMix64;

/// How a value changes from frame to frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern<T> {
    /// It does not change.
    Fixed(T),
    /// Random.
    Random,
    /// Incremented by one from zero; wraps after the largest value.
    Increment,
}

/// The settings of generated traffic.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// The time between the starts of two frames' wishes to be sent.
    pub gap_ps: Ps,
    /// The number of frames; `None` for no end.
    pub count: Option<NonZeroU64>,
    /// The time of the first frame.
    pub start_ps: Ps,
    /// The identifier.
    pub id: Pattern<u32>,
    /// The lowest bit of random identifiers; `None` if it is random too.
    pub id_bit: Option<bool>,
    /// Identifiers have 29 bits even if 11 were enough.
    pub extended: bool,
    /// The number of bytes, limited to the maximum for the kind of frame. A value that is not fixed
    /// goes through the DLCs, so that each length is equally frequent.
    pub length: Pattern<u8>,
    /// The data. Of a fixed value the first bytes are used.
    pub data: Pattern<[u8; DATA_MAX]>,
    /// Frames of CAN FD, and whether they switch the bit rate.
    pub fd: Option<bool>,
    /// Remote frames, with the DLC of the length.
    pub remote: bool,
    /// Instead a mix of all kinds of frames, and whether it includes CAN FD.
    pub mix: Option<bool>,
    /// The seed of random values.
    pub seed: u64,
}

impl Default for Traffic {
    /// 8 random bytes with identifier 0x077 at full load, without end.
    fn default() -> Self {
        Self {
            gap_ps: 0,
            count: None,
            start_ps: 0,
            id: Pattern::Fixed(0x077),
            id_bit: None,
            extended: false,
            length: Pattern::Fixed(8),
            data: Pattern::Random,
            fd: None,
            remote: false,
            mix: None,
            seed: 1,
        }
    }
}

impl Traffic {
    /// The frames, each with the time from which it is to be sent.
    pub fn frames(self) -> impl Iterator<Item = (Ps, CanFrame)> + 'static {
        let (start_ps, gap_ps, random) = (self.start_ps, self.gap_ps, SplitMix64::new(self.seed));
        let count = self.count.map_or(u64::MAX, NonZeroU64::get);
        let mut maker = Maker { traffic: self, made: 0, random };
        (0..count).map(move |n| (start_ps.saturating_add(gap_ps.saturating_mul(n)), maker.make()))
    }
}

/// What kind of frame it is.
#[derive(Clone, Copy)]
enum Kind {
    Data,
    Remote,
    Fd { brs: bool },
}

/// Generates one frame after the other.
struct Maker {
    traffic: Traffic,
    made: u64,
    random: SplitMix64,
}

impl Maker {
    /// Whether the next frame's identifier has 29 bits, and what kind it is.
    fn kind(&mut self) -> (bool, Kind) {
        let Traffic { extended, fd, remote, mix, .. } = self.traffic;
        let Some(fd_too) = mix else {
            let kind = match (fd, remote) {
                (Some(brs), _) => Kind::Fd { brs },
                (None, true) => Kind::Remote,
                (None, false) => Kind::Data,
            };
            return (extended, kind);
        };
        let random = self.random.next_u64();
        let kind = match random >> 1 & 7 {
            0..=3 if fd_too => Kind::Fd { brs: random & 2 != 0 },
            4 | 0 => Kind::Remote,
            _ => Kind::Data,
        };
        (random & 1 != 0, kind)
    }

    fn make(&mut self) -> CanFrame {
        let (extended, kind) = self.kind();
        let ids = if extended { 1 << 29 } else { u64::from(STANDARD_MAX) + 1 };
        let id = match (self.traffic.id, self.traffic.id_bit) {
            (Pattern::Fixed(id), _) => id,
            (Pattern::Random, None) => (self.random.next_u64() % ids) as u32,
            (Pattern::Random, Some(bit)) => {
                (self.random.next_u64() % ids) as u32 & !1 | u32::from(bit)
            }
            (Pattern::Increment, _) => (self.made % ids) as u32,
        };
        // Classic and remote frames have the first nine lengths.
        let lengths =
            if matches!(kind, Kind::Fd { .. }) { &FD_LENGTHS[..] } else { &FD_LENGTHS[..9] };
        let length = match self.traffic.length {
            Pattern::Fixed(length) => usize::from(length).min(lengths[lengths.len() - 1]),
            Pattern::Random => lengths[(self.random.next_u64() % lengths.len() as u64) as usize],
            Pattern::Increment => lengths[(self.made % lengths.len() as u64) as usize],
        };
        let mut data = [0; DATA_MAX];
        match self.traffic.data {
            Pattern::Fixed(bytes) => data = bytes,
            Pattern::Random => {
                for word in data[..length].chunks_mut(8) {
                    let random = self.random.next_u64().to_le_bytes();
                    word.copy_from_slice(&random[..word.len()]);
                }
            }
            Pattern::Increment => data[..8].copy_from_slice(&self.made.to_le_bytes()),
        }
        let mut frame = match kind {
            Kind::Data => CanFrame::new(id, &data[..length]),
            Kind::Remote => CanFrame::remote(id, length as u8),
            Kind::Fd { brs } => CanFrame::fd(id, &data[..length], brs),
        };
        // A fixed identifier keeps its width even if the mix chose a shorter one.
        frame.extended |= extended;
        self.made += 1;
        frame
    }
}
