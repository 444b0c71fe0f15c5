//! Part of the machine's memory: a file that QEMU and this process both map.
//!
//! # How it works
//! A physical address of the machine corresponds to an offset in the mapping. Both processes write
//! there at any time, so safe code gets only atomics, of a word or a byte. Parts do not overlap:
//! only the pool accesses the part with the tables.
//!
//! # Ordering
//! A store here before a register access is visible to everything QEMU does because of the access:
//! the access is a message to another process, which comes after the store.
//!
//! # Safety
//! 1. Lifetime: a mapping is made by one `mmap` and removed by one `munmap`, in its destructor.
//!    References into it borrow from it.
//! 2. Size: the file is in a directory that only this user can enter, and it is never truncated. If
//!    it were, an access would be a SIGBUS: a crash, not undefined behaviour.
#![allow(unsafe_code, reason = "mmap, and what it gave as atomics")]

use std::ffi::c_void;
use std::fmt;
use std::fs::File;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use barewire_iommu::PhysAddr;
use barewire_qtest::QemuError;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A part of the machine's memory, shared with it.
pub struct GuestRam {
    mapping: NonNull<u64>,
    base: u64,
    bytes: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread, and safe code only gets atomics.
unsafe impl Send for GuestRam {}
// SAFETY: the same.
unsafe impl Sync for GuestRam {}

impl GuestRam {
    /// Maps `bytes` of `file`, beginning at `offset`. The file begins at `file_base` in the
    /// machine.
    pub(crate) fn map(
        file: &File,
        path: &Path,
        file_base: u64,
        offset: u64,
        bytes: usize,
    ) -> Result<Self, QemuError> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let anywhere = ptr::null_mut();
        // SAFETY: a null hint lets the kernel choose a range that nothing uses.
        let mapped = unsafe { mmap(anywhere, bytes, access, MapFlags::SHARED, file, offset) };
        let mapped = mapped.map_err(|error| QemuError::file(path, "map")(error.into()))?;
        let mapping = NonNull::new(mapped.cast()).ok_or_else(|| {
            QemuError::file(path, "map")(std::io::Error::other("mapped at address 0"))
        })?;
        Ok(Self { mapping, base: file_base + offset, bytes })
    }

    /// The physical address of its first byte.
    #[must_use]
    pub fn base(&self) -> PhysAddr {
        PhysAddr(self.base)
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The word at an address.
    ///
    /// # Panics
    /// If the address is not in this memory or no multiple of 8.
    #[must_use]
    pub fn word(&self, at: PhysAddr) -> &AtomicU64 {
        let pointer = self.pointer(at, 8);
        // SAFETY: within the mapping and aligned, both checked. Every bit pattern is a valid atomic
        // (Safety 1).
        unsafe { AtomicU64::from_ptr(pointer.as_ptr()) }
    }

    /// Writes bytes, in any order.
    ///
    /// # Panics
    /// If they are not all in this memory.
    pub fn write(&self, at: PhysAddr, bytes: &[u8]) {
        for (cell, &byte) in self.cells(at, bytes.len()).iter().zip(bytes) {
            cell.store(byte, Ordering::Relaxed);
        }
    }

    /// Reads bytes, in any order.
    ///
    /// # Panics
    /// If they are not all in this memory.
    #[must_use]
    pub fn read(&self, at: PhysAddr, len: usize) -> Vec<u8> {
        self.cells(at, len).iter().map(|cell| cell.load(Ordering::Relaxed)).collect()
    }

    fn cells(&self, at: PhysAddr, len: usize) -> &[AtomicU8] {
        let offset = self.offset(at, len);
        // SAFETY: within the mapping, as `offset` has checked.
        let first = unsafe { self.mapping.cast::<AtomicU8>().byte_add(offset) };
        // SAFETY: `len` bytes inside the mapping, every value of which is a valid atomic (Safety
        // 1).
        unsafe { slice::from_raw_parts(first.as_ptr(), len) }
    }

    /// The address of `len` bytes in this process.
    pub(crate) fn pointer(&self, at: PhysAddr, len: usize) -> NonNull<u64> {
        let offset = self.offset(at, len);
        assert!(offset.is_multiple_of(8), "{at} is no multiple of 8");
        // SAFETY: within the mapping, as `offset` has checked.
        unsafe { self.mapping.byte_add(offset) }
    }

    fn offset(&self, at: PhysAddr, len: usize) -> usize {
        let inside = at.0.checked_sub(self.base).and_then(|offset| usize::try_from(offset).ok());
        let inside = inside.filter(|offset| self.bytes.checked_sub(len) >= Some(*offset));
        inside.unwrap_or_else(|| panic!("{len} bytes at {at} are not all in {self:?}"))
    }
}

impl fmt::Debug for GuestRam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GuestRam({:#x}..{:#x})", self.base, self.base + self.bytes as u64)
    }
}

impl Drop for GuestRam {
    fn drop(&mut self) {
        let mapping = self.mapping.as_ptr().cast::<c_void>();
        // SAFETY: this is the result of mmap, and no reference into it is left (Safety 1).
        let unmapped = unsafe { munmap(mapping, self.bytes) };
        debug_assert_eq!(unmapped, Ok(()), "a mapping of ours can be unmapped");
    }
}

#[cfg(test)]
mod tests {
    use barewire_qtest::PrivateDir;

    use super::*;

    const BASE: u64 = 0x4000_0000;

    /// The second page of a file of two.
    fn ram() -> (GuestRam, PrivateDir) {
        let dir = PrivateDir::new().expect("a directory");
        let path = dir.join("ram");
        let file = File::options().read(true).write(true).create_new(true).open(&path);
        let file = file.expect("a file");
        file.set_len(8192).expect("grows");
        (GuestRam::map(&file, &path, BASE - 4096, 4096, 4096).expect("mapped"), dir)
    }

    #[test]
    fn it_is_the_file() {
        let (ram, dir) = ram();
        ram.write(PhysAddr(BASE + 13), b"abc");
        ram.word(PhysAddr(BASE + 16)).store(0x6867_6665_6463_6261, Ordering::Relaxed);
        assert_eq!(ram.read(PhysAddr(BASE + 14), 4), b"bcab");
        ram.write(PhysAddr(BASE + 4095), b"z");
        assert_eq!(ram.read(PhysAddr(BASE + 4096), 0), b"");
        let file = std::fs::read(dir.join("ram")).expect("reads");
        assert_eq!(&file[4096 + 13..4096 + 24], b"abcabcdefgh");
        assert_eq!(file[8191], b'z');
    }

    #[test]
    #[should_panic(expected = "are not all in GuestRam(0x40000000..0x40001000)")]
    fn not_beyond_its_end() {
        let _ = ram().0.read(PhysAddr(BASE + 4095), 2);
    }

    #[test]
    #[should_panic(expected = "are not all in")]
    fn not_before_its_begin() {
        ram().0.write(PhysAddr(BASE - 1), b"x");
    }

    #[test]
    #[should_panic(expected = "no multiple of 8")]
    fn words_are_aligned() {
        let _ = ram().0.word(PhysAddr(BASE + 4));
    }
}
