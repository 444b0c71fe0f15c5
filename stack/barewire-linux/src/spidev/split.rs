//! Splits a message that is too large for one `SPI_IOC_MESSAGE`.
//!
//! spidev copies each message through two buffers of `bufsiz` bytes, one for sent and one for
//! received bytes. Each transfer takes its length from the buffers that it uses, rounded up to the
//! CPU's DMA alignment (kernels before 6.0 do not round). An ioctl's number has room for 511
//! transfers.
//!
//! 1. Fill: a part takes all segments that fit.
//! 2. Cut: if more remain, the part ends after its last transfer with `cs_change`. That transfer is
//!    sent *without* `cs_change`, because CS becomes inactive at the end of a message anyway.
//! 3. Refuse: if there is no such transfer, the message is refused. The kernel has a flag to hold
//!    CS between two messages (`cs_change` on the last transfer), but only as a hint: PL022's
//!    driver deasserts CS nevertheless, and another process's message may come between.
//! 4. Pause: a part also ends where CS must stay inactive for longer than the kernel's 10 µs at
//!    `cs_change`; barewire waits for the rest before it sends the next part.
//!
//! Parts are separate messages: another process's may come between them.

use std::ops::Add;

use super::abi::MESSAGE_TRANSFERS_MAX;
use super::message::Segment;

/// The multiple to which a transfer's length is rounded up. 128 is the largest `ARCH_DMA_MINALIGN`
/// of the architectures with spidev users (arm64). On an architecture with a smaller one, a message
/// could be a little longer.
pub(super) const DMA_MINALIGN: usize = 128;

/// How long the kernel keeps CS inactive at `cs_change`; spidev has no field for it.
pub(super) const CS_CHANGE_US: u32 = 10;

/// The part of spidev's room that a message takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    tx: usize,
    rx: usize,
    transfers: usize,
}

impl Load {
    /// The load of one transfer.
    pub(super) fn of(len: usize, has_tx: bool, has_rx: bool) -> Self {
        let aligned = len.checked_next_multiple_of(DMA_MINALIGN).unwrap_or(usize::MAX);
        let of = |there| if there { aligned } else { 0 };
        Self { tx: of(has_tx), rx: of(has_rx), transfers: 1 }
    }

    /// The load of a segment.
    pub(super) fn of_segment(segment: &Segment) -> Self {
        Self::of(segment.len(), segment.has_tx(), segment.has_rx())
    }

    /// The bytes in the fuller buffer.
    pub(super) fn bytes(self) -> usize {
        self.tx.max(self.rx)
    }

    /// The number of transfers.
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

/// The room of one ioctl.
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

    /// How many of `segments` (at least one) form the first part; `None` if CS would have to stay
    /// active after it.
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
