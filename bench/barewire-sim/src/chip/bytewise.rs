//! Chips that work in whole bytes, whatever the word length on the wire.
//!
//! A controller may clock 8, 16 or 32 bits in one run, and CS may rise between two bits of a byte.
//! A chip that implements [`Bytewise`] is called once at the beginning and once at the end of each
//! byte, and its [`Chip::exchange`] is one call of [`Bytewise::exchange_bits`].
//!
//! ```
//! use barewire_sim::chip::bytewise::{Bytewise, Partial, selection};
//! use barewire_sim::chip::{Chip, Clocking, NO_LIMITS, Ps, WireLimits};
//!
//! /// Answers each byte with the byte before it.
//! struct Delayed {
//!     partial: Partial,
//!     before: u8,
//! }
//!
//! impl Bytewise for Delayed {
//!     fn partial(&mut self) -> &mut Partial {
//!         &mut self.partial
//!     }
//!
//!     fn begin_byte(&mut self, _at: Ps) -> u8 {
//!         self.before
//!     }
//!
//!     fn end_byte(&mut self, byte: u8, _at: Ps) {
//!         self.before = byte;
//!     }
//! }
//!
//! impl Chip for Delayed {
//!     fn name(&self) -> &'static str {
//!         "delayed"
//!     }
//!
//!     fn limits(&self) -> WireLimits {
//!         NO_LIMITS
//!     }
//!
//!     fn select(&mut self, _at: Ps) {
//!         self.partial = Partial::NONE;
//!     }
//!
//!     fn deselect(&mut self, _at: Ps) {}
//!
//!     fn exchange(&mut self, clocking: Clocking, mosi: u32, bits: u32) -> u32 {
//!         self.exchange_bits(clocking, mosi, bits)
//!     }
//! }
//!
//! let mut chip = Delayed { partial: Partial::NONE, before: 0 };
//! let mut at = 0;
//! assert_eq!(selection(&mut chip, &mut at, &[1, 2, 3], 100_000, 50_000), [0, 1, 2]);
//! ```

use crate::chip::{Chip, Clocking, Ps};

/// A byte in progress: the bits received so far, and the byte being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partial {
    bits: u32,
    taken: u8,
    given: u8,
}

impl Partial {
    /// Between two bytes: the chip does not drive MISO.
    pub const NONE: Self = Self { bits: 0, taken: 0, given: 0xff };

    /// The number of its bits that were clocked, 0 to 7. Other than 0 when CS rises means that the
    /// byte was cut off.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.bits
    }
}

/// A chip that works in bytes.
pub trait Bytewise {
    /// The byte in progress.
    fn partial(&mut self) -> &mut Partial;

    /// A byte begins at `at`. Returns the byte the chip sends.
    fn begin_byte(&mut self, at: Ps) -> u8;

    /// A whole byte was received at `at`.
    fn end_byte(&mut self, byte: u8, at: Ps);

    /// Clocks `bits` (1 to 32) of `mosi`, most significant first. Returns the bits the chip sent.
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

/// Selects a chip once, without a wire: for a model's own tests.
///
/// The selection begins at `at`, which is advanced to its end. It sends `bytes` at an SCK period of
/// `period` picoseconds and returns as many bytes. CS falls `pause_ps` before the first bit, rises
/// `pause_ps` after the last one, and stays high for `pause_ps`.
pub fn selection(
    chip: &mut impl Chip,
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
