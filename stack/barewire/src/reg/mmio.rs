//! Memory-mapped registers.
//!
//! # Safety
//! The caller of [`Mmio::new`] makes the only promise: the range is a register block, mapped as
//! device memory, and stays mapped. No reference to device memory is ever created. Every access is
//! a volatile read or write through a raw pointer.
#![allow(unsafe_code, reason = "volatile access to device memory is the purpose of this file")]

use super::Registers;

/// A register block in memory, accessed by volatile 32-bit reads and writes.
#[derive(Debug)]
pub struct Mmio {
    base: *mut u32,
    /// As wide as the pointer, so that an access loads both at once.
    len: usize,
}

impl Mmio {
    /// Takes the block of `len` bytes at `base`.
    ///
    /// On Arm, map it as Device-nGnRnE (ARMv7: Strongly-ordered), as Linux maps `/dev/mem` opened
    /// with `O_SYNC`, and UIO. If writes are acknowledged early (nGnRE; ARMv7: Device),
    /// [`Registers::barrier`] waits only for the acknowledgement, which may come before the write
    /// arrives.
    ///
    /// # Safety
    /// As long as the value lives, `base..base + len` is mapped, and safe to read and write as
    /// device memory with 32-bit accesses. No other code in this program accesses it.
    ///
    /// # Panics
    /// If `base` is null or not a multiple of 4.
    #[must_use]
    pub unsafe fn new(base: *mut u32, len: u32) -> Self {
        assert!(!base.is_null() && base.is_aligned(), "a register block begins at a multiple of 4");
        Self { base, len: len as usize }
    }

    #[inline(always)]
    fn register(&self, offset: u32) -> *mut u32 {
        // Checked in release builds too: `read` and `write` are safe functions. The check costs
        // little compared with the access.
        if offset as usize >= self.len || offset % 4 != 0 {
            no_such_register(offset);
        }
        self.base.wrapping_byte_add(offset as usize)
    }
}

/// Out of line, with the offset passed by value: otherwise every access would reserve stack space
/// for the message.
#[cold]
#[inline(never)]
fn no_such_register(offset: u32) -> ! {
    panic!("register offset {offset:#x}");
}

// SAFETY: only this value accesses the block (promised to `new`), and device memory is the same
// from every thread.
unsafe impl Send for Mmio {}

/// A register block in memory whose length is known at compile time. An access at a constant offset
/// is checked at compile time and is one load or store.
///
/// ```no_run
/// use barewire::reg::{MmioBlock, Registers};
///
/// // SAFETY: ECSPI1 of an i.MX 8M Plus, identity-mapped, and not used by other code.
/// let mut ecspi1 = unsafe { MmioBlock::<0x40>::new(0x3082_0000 as *mut u32) };
/// let _conreg = ecspi1.read(0x08);
/// ```
#[derive(Debug)]
pub struct MmioBlock<const LEN: u32> {
    base: *mut u32,
}

impl<const LEN: u32> MmioBlock<LEN> {
    /// Takes the block of `LEN` bytes at `base`, to be mapped as [`Mmio::new`] says.
    ///
    /// # Safety
    /// As [`Mmio::new`], for `base..base + LEN`.
    ///
    /// # Panics
    /// If `base` is null or not a multiple of 4.
    #[must_use]
    pub unsafe fn new(base: *mut u32) -> Self {
        assert!(!base.is_null() && base.is_aligned(), "a register block begins at a multiple of 4");
        Self { base }
    }

    #[inline(always)]
    fn register(&self, offset: u32) -> *mut u32 {
        if offset >= LEN || offset % 4 != 0 {
            no_such_register(offset);
        }
        self.base.wrapping_byte_add(offset as usize)
    }
}

// SAFETY: as for `Mmio`.
unsafe impl<const LEN: u32> Send for MmioBlock<LEN> {}

/// The accesses of a block; `register` computes the address.
macro_rules! volatile {
    () => {
        #[inline(always)]
        fn read(&mut self, offset: u32) -> u32 {
            // SAFETY: `new`'s caller promised the range is mapped device memory.
            unsafe { self.register(offset).read_volatile() }
        }

        #[inline(always)]
        fn write(&mut self, offset: u32, value: u32) {
            // SAFETY: `new`'s caller promised the range is mapped device memory.
            unsafe { self.register(offset).write_volatile(value) }
        }

        // The register's address is computed once: for the compiler every store might change it.
        #[inline(always)]
        fn read_n(&mut self, offset: u32, into: &mut [u32]) {
            self.read_each(offset, into.iter_mut(), |place, word| *place = word);
        }

        #[inline(always)]
        fn discard_n(&mut self, offset: u32, n: usize) {
            self.read_each(offset, 0..n, |_, _| ());
        }

        #[inline(always)]
        fn write_n(&mut self, offset: u32, from: &[u32]) {
            self.write_each(offset, from.iter().copied());
        }

        #[inline(always)]
        fn write_each<I: IntoIterator<Item = u32>>(&mut self, offset: u32, words: I) {
            let register = self.register(offset);
            for word in words {
                // SAFETY: `new`'s caller promised the range is mapped device memory.
                unsafe { register.write_volatile(word) }
            }
        }

        #[inline(always)]
        fn read_each<I, F>(&mut self, offset: u32, places: I, mut put: F)
        where
            I: ExactSizeIterator,
            F: FnMut(I::Item, u32),
        {
            let register = self.register(offset);
            for place in places {
                // SAFETY: `new`'s caller promised the range is mapped device memory.
                put(place, unsafe { register.read_volatile() });
            }
        }
    };
}

/// # Panics
/// If an offset is not a multiple of 4 or is outside the block.
impl Registers for Mmio {
    volatile!();
}

/// # Panics
/// If an offset is not a multiple of 4 or is outside the block.
impl<const LEN: u32> Registers for MmioBlock<LEN> {
    volatile!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_land_on_their_register() {
        let mut block = [0_u32; 4];
        // SAFETY: ordinary memory serves as the block, and outlives it.
        let mut mmio = unsafe { Mmio::new(block.as_mut_ptr(), 16) };
        mmio.write(8, 0xdead_beef);
        mmio.write_n(4, &[1, 2, 3]);
        let mut window = [0; 2];
        mmio.read_n(8, &mut window);
        assert_eq!(window, [0xdead_beef; 2]);
        assert_eq!(mmio.read(4), 3, "a FIFO window is one address");
        assert_eq!(mmio.read(0), 0);
    }

    #[test]
    fn a_block_of_known_length_is_accessed_alike() {
        let mut block = [0_u32; 4];
        // SAFETY: ordinary memory serves as the block, and outlives it.
        let mut mmio = unsafe { MmioBlock::<16>::new(block.as_mut_ptr()) };
        mmio.write_each(12, [1, 2, 3]);
        mmio.write(0, 4);
        let mut window = [0; 3];
        mmio.read_each(12, window.iter_mut(), |place, word| *place = word);
        assert_eq!((window, mmio.read(0)), ([3; 3], 4));
        mmio.discard_n(12, 2);
        assert_eq!(block, [4, 0, 0, 3]);
    }

    #[test]
    #[should_panic(expected = "register offset 0x10")]
    fn nothing_outside_a_block_of_known_length_is_touched() {
        let mut block = [0_u32; 8];
        // SAFETY: ordinary memory serves as the block, and outlives it.
        unsafe { MmioBlock::<16>::new(block.as_mut_ptr()) }.read(16);
    }

    #[test]
    #[should_panic(expected = "register offset 0x10")]
    fn nothing_outside_the_block_is_touched() {
        let mut block = [0_u32; 4];
        // SAFETY: ordinary memory serves as the block, and outlives it.
        unsafe { Mmio::new(block.as_mut_ptr(), 16) }.read(16);
    }
}
