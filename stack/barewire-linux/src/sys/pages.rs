//! The first pages of a file as atomic words, shared by every process that maps them.
//!
//! # Safety
//! 1. Each mapping is removed by one `munmap`, in its destructor; references into it borrow from it.
//! 2. Other processes write there at any time, so safe code gets only atomics, for which every
//!    value is valid.
//! 3. If the file is truncated, its pages are lost: accessing them raises SIGBUS, which ends the
//!    process. That is a crash, not undefined behaviour.
#![allow(unsafe_code, reason = "calls mmap, and makes words of its memory")]

use core::ffi::c_void;
use std::fmt;
use std::fs::File;
use std::ptr;
use std::slice;
use std::sync::atomic::AtomicU32;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// Words of memory shared by every process that maps the file.
///
/// A user who may write the file may also truncate it. That ends every process that accesses the
/// words afterwards (SIGBUS).
pub struct SharedWords {
    base: *mut c_void,
    count: usize,
    /// What is mapped, in bytes.
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread, and holds atomics only (Safety 2).
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

/// The size of a page, in bytes. Asks libc: under valgrind 3.19, rustix's own reading of the
/// auxiliary vector ended the program.
pub(crate) fn page_size() -> usize {
    // SAFETY: asks for a number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).expect("pages have a size")
}

impl SharedWords {
    /// Maps the first `count` words of `file`.
    ///
    /// # Errors
    /// `EINVAL` if `count` is 0 or the file is shorter; otherwise mmap(2)'s error.
    pub fn map(file: &File, count: usize) -> Result<Self, Errno> {
        let len = count.checked_mul(size_of::<AtomicU32>()).ok_or(Errno::INVAL)?;
        let there =
            file.metadata().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        if count == 0 || there.len() < len as u64 {
            return Err(Errno::INVAL);
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a null hint lets the kernel choose a range that nothing uses.
        let base = unsafe { mmap(ptr::null_mut(), len, access, MapFlags::SHARED, file, 0) }?;
        Ok(Self { base, count, len })
    }

    /// Maps the first page of `file`, and behind it a page that belongs to this process.
    ///
    /// # Errors
    /// Those of [`SharedWords::map`].
    pub(super) fn map_page_with_room(file: &File) -> Result<Self, Errno> {
        let page = page_size();
        let there = file.metadata().map_or(0, |metadata| metadata.len());
        if there < page as u64 {
            return Err(Errno::INVAL);
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let (count, len) = (page / size_of::<AtomicU32>(), 2 * page);
        // SAFETY: as in `map`.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), len, access, MapFlags::PRIVATE) }?;
        // Dropped if the file cannot be mapped.
        let this = Self { base, count, len };
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: it replaces the first of the two pages, which no other code knows yet.
        unsafe { mmap(base, page, access, flags, file, 0) }?;
        Ok(this)
    }

    /// The words.
    #[must_use]
    pub fn words(&self) -> &[AtomicU32] {
        // SAFETY: the mapping is page-aligned, holds `count` words, and lives as long as the
        // borrow (Safety 1); every value is an atomic's (Safety 2).
        unsafe { slice::from_raw_parts(self.base.cast(), self.count) }
    }

    /// The address of the word at `index`, with provenance over the whole mapping.
    #[inline]
    pub(super) fn address(&self, index: usize) -> *mut c_void {
        self.base.wrapping_byte_add(index * size_of::<AtomicU32>())
    }
}

impl fmt::Debug for SharedWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedWords").field("count", &self.count).finish_non_exhaustive()
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: mmap's result, from which nothing borrows any more (Safety 1).
        let unmapped = unsafe { munmap(self.base, self.len) };
        debug_assert_eq!(unmapped, Ok(()), "a mapping of ours can be unmapped");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn two_mappings_of_one_file_are_one_memory() {
        let file = tempfile::tempfile().expect("a scratch file");
        file.set_len(12).expect("grown");
        let (one, other) = (SharedWords::map(&file, 3), SharedWords::map(&file, 2));
        let (one, other) = (one.expect("maps"), other.expect("maps"));
        assert_eq!((one.words().len(), other.words().len()), (3, 2));
        one.words()[1].store(7, Ordering::Relaxed);
        drop(one);
        assert_eq!(other.words()[1].load(Ordering::Relaxed), 7);
    }

    #[test]
    fn words_beyond_the_file_are_refused() {
        let file = tempfile::tempfile().expect("a scratch file");
        file.set_len(12).expect("grown");
        for count in [0, 4, usize::MAX] {
            assert_eq!(SharedWords::map(&file, count).err(), Some(Errno::INVAL), "{count}");
        }
    }
}
