//! A controller's registers, mapped into this process.
//!
//! # Safety
//! A [`MappedRegisters`] owns its mapping. One `mmap` makes it and one `munmap` in the destructor
//! removes it. It is accessed only through its one [`Mmio`], which checks every access against the
//! block's length. What registers *do* when written is outside Rust's guarantees, as it is when a
//! program writes `/dev/mem` or `/proc/*/mem` through `std::fs`.
#![allow(unsafe_code, reason = "mmap, and the device memory in what it gave")]

use core::ffi::c_void;
use std::fmt;
use std::os::fd::AsFd;
use std::ptr;

use barewire::reg::{Mmio, MmioBlock, Registers};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::window::Window;

/// Pages of a file, mapped; unmapped when dropped.
struct Mapping {
    base: *mut c_void,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread, and only `MappedRegisters` reaches
// it, through `&mut self`.
unsafe impl Send for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `base` and `len` are mmap's result. No other pointer into the mapping is used any
        // more: the `Mmio` beside it is dropped with it.
        let unmapped = unsafe { munmap(self.base, self.len) };
        debug_assert_eq!(unmapped, Ok(()), "a mapping of ours can be unmapped");
    }
}

/// A controller's registers, mapped into this process; unmapped when dropped.
///
/// `M` is the way of access: [`Mmio`], or [`MmioBlock`] if the block's length is known at compile
/// time.
pub struct MappedRegisters<M = Mmio> {
    mmio: M,
    /// The block's first register, within the mapping.
    block: *mut u32,
    len: u32,
    mapping: Mapping,
}

impl MappedRegisters {
    /// Maps the pages of `window` from `file` and uses the block in them.
    pub(crate) fn map(file: impl AsFd, window: &Window) -> Result<Self, Errno> {
        let end = window.block_offset.checked_add(window.block_len as usize);
        let inside = end.is_some_and(|end| end <= window.map_len);
        // Otherwise the last register would be partly outside.
        let whole = window.block_offset % 4 == 0 && window.block_len % 4 == 0;
        if !inside || !whole || window.block_len == 0 {
            return Err(Errno::INVAL);
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED;
        // SAFETY: a null hint lets the kernel choose a range that nothing uses.
        let base = unsafe {
            mmap(ptr::null_mut(), window.map_len, access, flags, file, window.file_offset)
        }?;
        let mapping = Mapping { base, len: window.map_len };
        let block: *mut u32 = base.wrapping_byte_add(window.block_offset).cast();
        // SAFETY: the block is within the mapping (checked above). The mapping lives as long as the
        // `Mmio`, since both are in one value, and has no other user.
        let mmio = unsafe { Mmio::new(block, window.block_len) };
        Ok(Self { mmio, block, len: window.block_len, mapping })
    }

    /// Turns it into a block of which the first `LEN` bytes are accessed.
    ///
    /// # Panics
    /// If the block is shorter.
    pub(crate) fn known<const LEN: u32>(self) -> MappedRegisters<MmioBlock<LEN>> {
        // The `Mmio` is dropped here: nothing else accesses the block from now on.
        let Self { mmio: _, block, len, mapping } = self;
        assert!(LEN <= len, "a block of {len:#x} bytes has {LEN:#x}");
        // SAFETY: as for the dropped `Mmio`, whose block was no shorter.
        let mmio = unsafe { MmioBlock::new(block) };
        MappedRegisters { mmio, block, len, mapping }
    }
}

impl<M> MappedRegisters<M> {
    /// Bytes of the block.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "no block is empty")]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// The mapped length in bytes: the pages that contain the block.
    #[must_use]
    pub fn mapped_len(&self) -> usize {
        self.mapping.len
    }
}

// SAFETY: the block belongs to the mapping and is accessed through `mmio` only.
unsafe impl<M: Send> Send for MappedRegisters<M> {}

impl<M> fmt::Debug for MappedRegisters<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedRegisters")
            .field("len", &self.len)
            .field("mapped_len", &self.mapping.len)
            .finish_non_exhaustive()
    }
}

/// # Panics
/// If an offset is not a multiple of 4 or beyond the block.
impl<M: Registers> Registers for MappedRegisters<M> {
    #[inline(always)]
    fn read(&mut self, offset: u32) -> u32 {
        self.mmio.read(offset)
    }

    #[inline(always)]
    fn write(&mut self, offset: u32, value: u32) {
        self.mmio.write(offset, value);
    }

    #[inline]
    fn read_n(&mut self, offset: u32, into: &mut [u32]) {
        self.mmio.read_n(offset, into);
    }

    #[inline]
    fn write_n(&mut self, offset: u32, from: &[u32]) {
        self.mmio.write_n(offset, from);
    }

    #[inline]
    fn discard_n(&mut self, offset: u32, n: usize) {
        self.mmio.discard_n(offset, n);
    }

    #[inline(always)]
    fn write_each<I: IntoIterator<Item = u32>>(&mut self, offset: u32, words: I) {
        self.mmio.write_each(offset, words);
    }

    #[inline(always)]
    fn read_each<I, F>(&mut self, offset: u32, places: I, put: F)
    where
        I: ExactSizeIterator,
        F: FnMut(I::Item, u32),
    {
        self.mmio.read_each(offset, places, put);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn file_of(len: u64) -> File {
        let file = tempfile::tempfile().expect("a scratch file");
        file.set_len(len).expect("grown");
        file
    }

    #[test]
    fn a_block_is_read_and_written_where_it_lies() {
        use std::os::unix::fs::FileExt;
        let page = crate::sys::page_size();
        let file = file_of(4 * page as u64);
        let window = Window::around(page as u64 + 0x40, 0x20, page).expect("it fits");
        let mut registers = MappedRegisters::map(&file, &window).expect("mapped");
        assert_eq!((registers.len(), registers.mapped_len()), (0x20, page));
        registers.write(0x1c, 0x0403_0201);
        registers.write_n(0, &[7, 8, 9]);
        assert_eq!(registers.read(0x1c), 0x0403_0201);
        let mut window = [0; 2];
        registers.read_n(0, &mut window);
        assert_eq!(window, [9, 9]);
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, page as u64 + 0x5c).expect("read");
        assert_eq!(u32::from_ne_bytes(bytes), 0x0403_0201, "shared with the file");
        drop(registers);
    }

    #[test]
    #[should_panic(expected = "register offset 0x20")]
    fn the_register_after_the_last_is_not_ours() {
        let page = crate::sys::page_size();
        let window = Window::around(0, 0x20, page).expect("it fits");
        MappedRegisters::map(file_of(page as u64), &window).expect("mapped").read(0x20);
    }

    #[test]
    fn a_block_of_known_length_lies_where_it_lay() {
        let page = crate::sys::page_size();
        let window = Window::around(0x40, 0x20, page).expect("it fits");
        let file = file_of(page as u64);
        let mut registers = MappedRegisters::map(&file, &window).expect("mapped").known::<0x20>();
        registers.write_each(0x1c, [1, 2]);
        assert_eq!((registers.read(0x1c), registers.len()), (2, 0x20));
    }

    #[test]
    #[should_panic(expected = "a block of 0x20 bytes has 0x24")]
    fn a_block_is_known_to_be_no_longer_than_it_is() {
        let page = crate::sys::page_size();
        let window = Window::around(0, 0x20, page).expect("it fits");
        MappedRegisters::map(file_of(page as u64), &window).expect("mapped").known::<0x24>();
    }

    #[test]
    fn a_block_outside_its_pages_is_refused() {
        let page = crate::sys::page_size();
        let good = Window { file_offset: 0, map_len: page, block_offset: page - 8, block_len: 8 };
        assert!(MappedRegisters::map(file_of(page as u64), &good).is_ok());
        for (block_offset, block_len) in
            [(page - 4, 8), (2, 4), (0, 6), (0, 0), (usize::MAX - 3, 8)]
        {
            let window = Window { block_offset, block_len, ..good };
            let refused = MappedRegisters::map(file_of(page as u64), &window);
            assert_eq!(refused.err(), Some(Errno::INVAL), "{window:?}");
        }
    }
}
