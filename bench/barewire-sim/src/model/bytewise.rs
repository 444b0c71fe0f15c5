//! Chips that work in whole bytes, whatever the word length on the wire.

use crate::chip::{Clocking, Ps};

/// A byte in progress: the bits received so far, and the byte being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Partial {
    bits: u32,
    taken: u8,
    given: u8,
}

impl Partial {
    /// Between two bytes: the chip does not drive MISO.
    pub(super) const NONE: Self = Self { bits: 0, taken: 0, given: 0xff };

    /// The number of its bits that were clocked, 0 to 7.
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }
}

/// A chip that works in bytes.
pub(super) trait Bytewise {
    /// The byte in progress.
    fn partial(&mut self) -> &mut Partial;

    /// A byte begins at `at`. Returns the byte the chip sends.
    fn begin_byte(&mut self, at: Ps) -> u8;

    /// A whole byte was received at `at`.
    fn end_byte(&mut self, byte: u8, at: Ps);

    /// Clocks `bits` of `mosi`, most significant first. Returns the bits the chip sent.
    fn exchange_bits(&mut self, clocking: Clocking, mosi: u32, bits: u32) -> u32 {
        let Clocking { mut at, period } = clocking;
        let mut miso = 0;
        let mut left = bits;
        while left > 0 {
            if self.partial().bits == 0 {
                let given = self.begin_byte(at);
                *self.partial() = Partial { bits: 0, taken: 0, given };
            }
            let Partial { bits, taken, given } = *self.partial();
            let now = left.min(8 - bits);
            left -= now;
            let mask = (1_u32 << now) - 1;
            let out = u32::from(given) >> (8 - bits - now) & mask;
            miso = (u64::from(miso) << now) as u32 | out;
            let taken = (u32::from(taken) << now | mosi >> left & mask) as u8;
            at += u64::from(now) * period;
            if bits + now == 8 {
                *self.partial() = Partial::NONE;
                self.end_byte(taken, at);
            } else {
                *self.partial() = Partial { bits: bits + now, taken, given };
            }
        }
        miso
    }
}

/// One selection of a chip by a test. It begins at `at`, which is advanced to its end. Sends
/// `bytes` and returns as many, with `pause_ps` before, between and after them.
#[cfg(test)]
pub(super) fn selection(
    chip: &mut impl crate::chip::Chip,
    at: &mut Ps,
    bytes: &[u8],
    period: Ps,
    pause_ps: Ps,
) -> Vec<u8> {
    chip.select(*at);
    *at += pause_ps;
    let exchanged = bytes.iter().map(|&byte| {
        let clocking = Clocking { at: *at, period };
        *at += 8 * period;
        chip.exchange(clocking, byte.into(), 8) as u8
    });
    let back = exchanged.collect();
    *at += pause_ps;
    chip.deselect(*at);
    *at += pause_ps;
    back
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends the index of its byte, and keeps the bytes it receives.
    struct Keeper {
        partial: Partial,
        taken: Vec<(u8, Ps)>,
    }

    impl Bytewise for Keeper {
        fn partial(&mut self) -> &mut Partial {
            &mut self.partial
        }

        fn begin_byte(&mut self, _at: Ps) -> u8 {
            self.taken.len() as u8 + 0x80
        }

        fn end_byte(&mut self, byte: u8, at: Ps) {
            self.taken.push((byte, at));
        }
    }

    #[test]
    fn bytes_are_the_same_in_words_of_any_length() {
        for lengths in [&[32][..], &[8, 8, 8, 8], &[3, 13, 1, 15], &[16, 16]] {
            let mut keeper = Keeper { partial: Partial::NONE, taken: Vec::new() };
            let (mut given, mut at, mut left) = (0_u64, 1_000, 32);
            for &bits in lengths {
                left -= bits;
                let mosi = (0x1234_5678_u64 >> left & ((1 << bits) - 1)) as u32;
                let out = keeper.exchange_bits(Clocking { at, period: 10 }, mosi, bits);
                given = given << bits | u64::from(out);
                at += u64::from(bits) * 10;
            }
            assert_eq!(given, 0x8081_8283, "{lengths:?}");
            let expected = [(0x12, 1_080), (0x34, 1_160), (0x56, 1_240), (0x78, 1_320)];
            assert_eq!(keeper.taken, expected, "{lengths:?}");
            assert_eq!(keeper.partial.bits(), 0);
        }
    }
}
