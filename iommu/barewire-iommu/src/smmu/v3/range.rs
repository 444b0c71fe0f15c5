//! Splits ranges into what one command can encode: (NUM + 1) << SCALE granules.
//!
//! # How it works
//! 1. SCALE is the lowest set bit of the rest. A larger SCALE would cover more than the range.
//! 2. NUM + 1 takes that bit and the four above it. The rest is then a multiple of 32 << SCALE, so
//!    no other choice leaves fewer bits to the following commands.
//!
//! So the cover is exact, and no exact cover has fewer commands.

/// The width of NUM.
const NUM_BITS: u32 = 5;

/// SCALE has five bits. With NUM it reaches all of a 48-bit address.
const SCALE_MAX: u32 = 31;

/// The range of one command: `(num + 1) << scale` granules, `skip` granules after the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) skip: u64,
    pub(crate) num: u8,
    pub(crate) scale: u8,
}

/// The commands for a number of granules.
#[derive(Clone, Debug)]
pub(crate) struct Pieces {
    done: u64,
    left: u64,
}

impl Pieces {
    pub(crate) fn new(granules: u64) -> Self {
        Self { done: 0, left: granules }
    }
}

impl Iterator for Pieces {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if self.left == 0 {
            return None;
        }
        let scale = self.left.trailing_zeros().min(SCALE_MAX);
        let times = match (self.left >> scale) & ((1 << NUM_BITS) - 1) {
            0 => 1 << NUM_BITS,
            times => times,
        };
        let piece = Piece { skip: self.done, num: times as u8 - 1, scale: scale as u8 };
        self.done += times << scale;
        self.left -= times << scale;
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::{Piece, Pieces};
    use std::vec;
    use std::vec::Vec;

    fn pieces(granules: u64) -> Vec<Piece> {
        Pieces::new(granules).collect()
    }

    #[test]
    fn covers_exactly() {
        let sizes = (0..5000).chain([
            8192,
            0xffff_ffff,
            1 << 32,
            1 << 35,
            1 << 36,
            (1 << 36) - 1,
            0x9_2492_4924,
        ]);
        for granules in sizes.step_by(if cfg!(miri) { 97 } else { 1 }) {
            let mut at = 0;
            for piece in pieces(granules) {
                assert_eq!(piece.skip, at, "{granules} granules");
                assert!(piece.num < 32 && piece.scale < 32);
                at += u64::from(piece.num + 1) << piece.scale;
            }
            assert_eq!(at, granules);
        }
    }

    /// Compared with the minimum over all covers, found by trying every first command.
    #[test]
    fn no_cover_has_fewer() {
        let most = 3000_usize;
        let mut least = vec![0];
        for granules in 1..=most {
            let mut best = usize::MAX;
            for scale in 0..12 {
                for times in 1..=32usize {
                    if let Some(rest) = granules.checked_sub(times << scale) {
                        best = best.min(1 + least[rest]);
                    }
                }
            }
            least.push(best);
            assert_eq!(pieces(granules as u64).len(), best, "{granules} granules");
        }
    }

    #[test]
    fn the_thread_s_buffer_is_one_command() {
        assert_eq!(pieces(8192), [Piece { skip: 0, num: 0, scale: 13 }]);
    }
}
