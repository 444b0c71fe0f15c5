//! Where a message that is too much for one `SPI_IOC_MESSAGE` may be cut.
//!
//! spidev copies each message through two buffers of `bufsiz` bytes, one for what goes out, one
//! for what comes in. Each transfer takes its length from either that it uses, rounded up to the
//! alignment of the CPU's DMA (kernels before 6.0 do not round). And an ioctl's number has room
//! for 511 transfers.
//!
//! 1. Everything that fits goes into one part.
//! 2. If not all fits, the part ends after the last transfer in it after which CS drops. That
//!    transfer then comes last *without* `cs_change`, since CS drops by itself at the end.
//! 3. If there is none, the message is refused. The kernel has a flag to hold CS between two messages
//!    (`cs_change` on the last transfer), but only as a hint: PL022's driver drops CS all the same, and
//!    another process's message may come between.
//! 4. A part ends anyway where CS must stay inactive for longer than the kernel keeps it at
//!    `cs_change`, which is 10 µs: the rest is waited for outside.
//!
//! Parts are separate messages: another process's may come between them.

use std::ops::Add;

use super::abi::MESSAGE_TRANSFERS_MAX;
use super::message::Segment;

/// What a transfer's length is rounded up to. 128 is the largest `ARCH_DMA_MINALIGN` of the
/// architectures that have spidev users (arm64); the smaller ones of others only mean that a
/// message could have been a little longer.
pub(super) const DMA_MINALIGN: usize = 128;

/// How long the kernel keeps CS inactive at `cs_change`, spidev having no field for it.
pub(super) const CS_CHANGE_US: u32 = 10;

/// What a message takes of spidev's room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    tx: usize,
    rx: usize,
    transfers: usize,
}

impl Load {
    /// What one transfer takes.
    pub(super) fn of(len: usize, has_tx: bool, has_rx: bool) -> Self {
        let aligned = len.checked_next_multiple_of(DMA_MINALIGN).unwrap_or(usize::MAX);
        let of = |there| if there { aligned } else { 0 };
        Self { tx: of(has_tx), rx: of(has_rx), transfers: 1 }
    }

    /// What a segment takes.
    pub(super) fn of_segment(segment: &Segment) -> Self {
        Self::of(segment.len(), segment.has_tx(), segment.has_rx())
    }

    /// Bytes in the fuller buffer.
    pub(super) fn bytes(self) -> usize {
        self.tx.max(self.rx)
    }

    /// Transfers.
    pub(super) fn transfers(self) -> usize {
        self.transfers
    }
}

impl Add for Load {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            tx: self.tx.saturating_add(other.tx),
            rx: self.rx.saturating_add(other.rx),
            transfers: self.transfers + other.transfers,
        }
    }
}

/// What one ioctl takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) bufsiz: usize,
}

impl Room {
    pub(super) fn fits(&self, load: Load) -> bool {
        load.bytes() <= self.bufsiz && load.transfers <= MESSAGE_TRANSFERS_MAX
    }

    /// The longest transfer that fits into one ioctl.
    pub(super) fn longest(&self) -> usize {
        self.bufsiz - self.bufsiz % DMA_MINALIGN
    }

    /// How many of `segments`, of which there is at least one, make the first part; `None` if CS
    /// would have to be held after it.
    pub(super) fn first_part(&self, segments: &[Segment]) -> Option<usize> {
        let mut load = Load::default();
        let mut dropped_at = None;
        for (index, segment) in segments.iter().enumerate() {
            load = load + Load::of_segment(segment);
            if !self.fits(load) {
                return dropped_at;
            }
            if segment.cs_change {
                dropped_at = Some(index + 1);
                if segment.inactive_us > CS_CHANGE_US {
                    return dropped_at;
                }
            }
        }
        Some(segments.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_rounded_up_for_each_direction_apart() {
        let load = Load::of(1, true, false) + Load::of(129, false, true);
        assert_eq!((load.tx, load.rx, load.transfers), (128, 256, 2));
        assert_eq!(load.bytes(), 256);
        assert_eq!(Load::of(0, true, true), Load { tx: 0, rx: 0, transfers: 1 });
        assert_eq!(Load::of(usize::MAX, true, false).tx, usize::MAX);
    }

    #[test]
    fn a_buffer_is_full_at_its_last_byte() {
        let room = Room { bufsiz: 4096 };
        for (len, fits) in [(0, true), (1, true), (4095, true), (4096, true), (4097, false)] {
            assert_eq!(room.fits(Load::of(len, true, true)), fits, "{len}");
        }
        assert_eq!(room.longest(), 4096);
        assert_eq!(Room { bufsiz: 4100 }.longest(), 4096);
        assert_eq!(Room { bufsiz: 127 }.longest(), 0);
    }
}
