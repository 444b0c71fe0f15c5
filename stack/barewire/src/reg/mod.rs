//! Registers: a driver's access to a block of 32-bit registers, memory-mapped or other.
//!
//! A driver is generic over [`Registers`] and so runs unchanged on memory-mapped silicon
//! ([`Mmio`]), on a script that asserts the order of accesses ([`Fake`]), on a simulated board,
//! or on an emulator's registers at the other end of a socket.
//!
//! # Ordering
//! 1. Program order: accesses through one `Registers` value reach the block in program order, each
//!    once.
//! 2. FIFO windows: [`Registers::read_n`] and [`Registers::write_n`] access *one* address `n`
//!    times. An implementation may pipeline the accesses but not reorder, merge or drop them.
//! 3. Two blocks: only [`Registers::barrier`] orders accesses through two values, since two
//!    peripherals may be behind two bridges.
//! 4. Memory: there is no promise about ordinary memory. A driver that shares memory with a DMA
//!    engine needs an explicit barrier.

mod barrier;
pub(crate) mod chunks;
#[cfg(target_arch = "aarch64")]
mod cntvct;
mod counter;
mod fake;
mod mmio;

pub use barrier::barrier;
#[cfg(target_arch = "aarch64")]
pub use cntvct::Cntvct;
pub use counter::{CycleCounter, Mtime};
pub use fake::{Access, Fake};
pub use mmio::{Mmio, MmioBlock};

/// The number of words gathered on the stack.
const CHUNK_WORDS: usize = 16;

/// A block of 32-bit registers, addressed by byte offset from its base.
///
/// Reads may have side effects (a FIFO pops), hence `&mut self` everywhere.
pub trait Registers {
    /// Reads the register at `offset` bytes from the block's base (a multiple of 4).
    fn read(&mut self, offset: u32) -> u32;

    /// Writes the register at `offset` bytes from the block's base (a multiple of 4).
    fn write(&mut self, offset: u32, value: u32);

    /// Reads the register at `offset` once per element of `into`, in order: drains a FIFO window.
    #[inline]
    fn read_n(&mut self, offset: u32, into: &mut [u32]) {
        for word in into {
            *word = self.read(offset);
        }
    }

    /// Reads the register at `offset` `n` times and discards the values: drains unwanted words from
    /// a FIFO window. An implementation over a slow link need not wait for the values.
    #[inline]
    fn discard_n(&mut self, offset: u32, n: usize) {
        for _ in 0..n {
            self.read(offset);
        }
    }

    /// Writes every element of `from` to the register at `offset`, in order: fills a FIFO window.
    #[inline]
    fn write_n(&mut self, offset: u32, from: &[u32]) {
        for &word in from {
            self.write(offset, word);
        }
    }

    /// Writes the items of `words` to the register at `offset`, in order: [`Registers::write_n`]
    /// without a slice. The iterator must not access registers.
    ///
    /// The provided method gathers words on the stack for [`Registers::write_n`].
    #[inline]
    fn write_each<I>(&mut self, offset: u32, words: I)
    where
        Self: Sized,
        I: IntoIterator<Item = u32>,
    {
        let mut chunk = [0; CHUNK_WORDS];
        let mut count = 0;
        for word in words {
            chunk[count] = word;
            count += 1;
            if count == CHUNK_WORDS {
                self.write_n(offset, &chunk);
                count = 0;
            }
        }
        if count > 0 {
            self.write_n(offset, &chunk[..count]);
        }
    }

    /// Reads the register at `offset` once for each of `places`, in order, and calls `put` with the
    /// place and the word: [`Registers::read_n`] without a slice. Neither may access registers.
    ///
    /// The provided method gathers words on the stack from [`Registers::read_n`].
    #[inline]
    fn read_each<I, F>(&mut self, offset: u32, places: I, mut put: F)
    where
        Self: Sized,
        I: ExactSizeIterator,
        F: FnMut(I::Item, u32),
    {
        let mut chunk = [0; CHUNK_WORDS];
        let mut places = places;
        while places.len() > 0 {
            let words = &mut chunk[..places.len().min(CHUNK_WORDS)];
            self.read_n(offset, words);
            // `words` comes first in the zip: otherwise the zip would take a place after the last
            // word, and that place would be lost.
            for (&mut word, place) in words.iter_mut().zip(places.by_ref()) {
                put(place, word);
            }
        }
    }

    /// Completes every access before it, to this and any other block, before any access after it:
    /// for example between a chip select on a GPIO and the controller. On Arm it is a DSB; its
    /// reach depends on the mapping, see [`Mmio::new`].
    ///
    /// The provided method is for memory-mapped registers. Other implementations may override it.
    #[inline]
    fn barrier(&mut self) {
        barrier();
    }
}

impl<R: Registers + ?Sized> Registers for &mut R {
    #[inline]
    fn read(&mut self, offset: u32) -> u32 {
        (**self).read(offset)
    }

    #[inline]
    fn write(&mut self, offset: u32, value: u32) {
        (**self).write(offset, value);
    }

    #[inline]
    fn read_n(&mut self, offset: u32, into: &mut [u32]) {
        (**self).read_n(offset, into);
    }

    #[inline]
    fn discard_n(&mut self, offset: u32, n: usize) {
        (**self).discard_n(offset, n);
    }

    #[inline]
    fn write_n(&mut self, offset: u32, from: &[u32]) {
        (**self).write_n(offset, from);
    }

    #[inline]
    fn barrier(&mut self) {
        (**self).barrier();
    }
}

#[cfg(test)]
mod tests {
    use super::Access::{Read, Write};
    use super::*;

    #[test]
    fn words_are_gathered_in_order_whatever_their_number() {
        for count in [0_u32, 1, 15, 16, 17, 40] {
            let writes: [Access; 40] = core::array::from_fn(|word| Write(4, word as u32));
            let reads: [Access; 40] = core::array::from_fn(|word| Read(8, word as u32));
            let n = count as usize;
            let mut regs = Fake::new(&writes[..n]);
            regs.write_each(4, 0..count);
            assert_eq!(regs.remaining(), 0);
            let mut regs = Fake::new(&reads[..n]);
            let mut next = 0;
            regs.read_each(8, 0..n, |place, word| {
                assert_eq!((place, word), (next as usize, next));
                next += 1;
            });
            assert_eq!((regs.remaining(), next), (0, count));
        }
    }
}
