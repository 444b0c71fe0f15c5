//! The page that server and client share: a ring of requests, each with room for its answer.
//!
//! *Read first*: docs/mmio.md, *The page*.
//!
//! # How it works
//! The page is [`PAGE_BYTES`] long and consists of 64-bit words.
//!
//! | word | who writes it | what |
//! |---|---|---|
//! | 0 | the server, once | [`MAGIC`] |
//! | 8 | the client | how many requests it has made |
//! | 16 | the server | how many it has answered |
//! | 24 | the server | 1 while it sleeps on the low half of word 8 (a futex) |
//! | 28 | the client | 1 while it sleeps on the low half of word 16 |
//! | 32 on | both | [`SLOTS`] slots of eight words: a request, then its answer |
//!
//! Each counter has a cache line of its own. Both ends spin for a moment before they sleep. Request `n` (from 0) is in slot `n % SLOTS`. The client may
//! make up to `SLOTS` requests before it looks at an answer.
//!
//! # Ordering
//! 1. The client writes a request's words, then releases the count of requests.
//! 2. The server acquires that count, reads the request, acts, writes the answer's words, and then releases
//!    the count of answers.
//! 3. The client acquires the count of answers before it reads an answer or uses a slot again.
//! 4. Before it sleeps, an end sets its flag and then reads the other's count once more. The other
//!    end changes its count and then reads the flag. All four accesses are sequentially consistent,
//!    so one of the two sees the other. So neither end sleeps through a change.
//!
//! # Safety
//! 1. A mapping is made by one `mmap` and removed by one `munmap`, in its destructor; references into it
//!    borrow from it.
//! 2. The other process writes there at any time, so safe code gets only atomics, for which every value is
//!    valid.
//! 3. The file is sealed against shrinking before it is mapped. A page that cannot be sealed is refused, so no
//!    process can take the memory away (SIGBUS).
#![allow(unsafe_code, reason = "calls mmap, and makes words of its memory")]

use std::ffi::c_void;
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::thread::futex;

use crate::message::Words;

/// The page's length.
pub const PAGE_BYTES: usize = 4096;
/// How many requests it holds.
pub const SLOTS: u64 = 32;
/// Word 0: "bwmmio" and the layout's number.
pub const MAGIC: u64 = u64::from_le_bytes(*b"bwmmio01");

const ASKED: usize = 8;
const ANSWERED: usize = 16;
const SERVER_SLEEPS: usize = 24;
const CLIENT_SLEEPS: usize = 28;
const FIRST_SLOT: usize = 32;
const SLOT_WORDS: usize = 8;

const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::SEAL);

/// A mapped page.
pub struct Page {
    base: *mut c_void,
    file: OwnedFd,
}

// SAFETY: a mapping belongs to the process, not to a thread, and holds atomics only (Safety 2).
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Page {
    /// Makes a page.
    ///
    /// # Errors
    /// If the kernel gives no memory, or cannot seal it.
    pub fn create() -> Result<Self, Errno> {
        let file = memfd_create("barewire-mmio", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, PAGE_BYTES as u64)?;
        fcntl_add_seals(&file, SEALS)?;
        let page = Self::map(file)?;
        page.words()[0].store(MAGIC, Ordering::Release);
        Ok(page)
    }

    /// Maps the page that `file` is.
    ///
    /// # Errors
    /// `EINVAL` if the file is shorter, or not sealed against shrinking; otherwise mmap(2)'s error.
    pub fn map(file: OwnedFd) -> Result<Self, Errno> {
        let long_enough = fstat(&file)?.st_size >= PAGE_BYTES as i64;
        if !long_enough || !fcntl_get_seals(&file)?.contains(SealFlags::SHRINK) {
            return Err(Errno::INVAL);
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a null hint lets the kernel choose a range that nothing uses.
        let base =
            unsafe { mmap(ptr::null_mut(), PAGE_BYTES, access, MapFlags::SHARED, &file, 0) }?;
        Ok(Self { base, file })
    }

    /// The file, to be passed to the other process.
    #[must_use]
    pub fn file(&self) -> impl AsFd + '_ {
        &self.file
    }

    /// Whether it is a page of this layout.
    #[must_use]
    pub fn has_magic(&self) -> bool {
        self.words()[0].load(Ordering::Acquire) == MAGIC
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, holds that many words, and lives as long as the borrow
        // (Safety 1); every value is an atomic's (Safety 2); it cannot be taken away (Safety 3).
        unsafe { slice::from_raw_parts(self.base.cast(), PAGE_BYTES / size_of::<AtomicU64>()) }
    }

    /// The low half of a count: the word of a futex.
    fn low_half(&self, count: usize) -> &AtomicU32 {
        let word = ptr::from_ref(&self.words()[count]).cast::<AtomicU32>();
        let word = if cfg!(target_endian = "big") { word.wrapping_add(1) } else { word };
        // SAFETY: half of a word of the mapping, aligned; it lives as long as the borrow (Safety 1).
        unsafe { &*word }
    }

    /// Sets a count, and wakes the other end if it sleeps on it. Ordering: step 4.
    fn set(&self, count: usize, value: u64, sleeps: usize) {
        self.words()[count].store(value, Ordering::SeqCst);
        if self.words()[sleeps].load(Ordering::SeqCst) != 0 {
            // An end that has gone is noticed at the socket.
            let _ = futex::wake(self.low_half(count), futex::Flags::empty(), 1);
        }
    }

    /// Sleeps until a count is no longer `seen`, or for `longest`. Ordering: step 4.
    fn sleep(&self, count: usize, seen: u64, sleeps: usize, longest: Duration) {
        self.words()[sleeps].store(1, Ordering::SeqCst);
        if self.words()[count].load(Ordering::SeqCst) == seen {
            let longest = longest.try_into().ok();
            let (word, flags) = (self.low_half(count), futex::Flags::empty());
            // Woken, too late, interrupted or changed: the caller looks again.
            let _ = futex::wait(word, flags, seen as u32, longest.as_ref());
        }
        self.words()[sleeps].store(0, Ordering::SeqCst);
    }

    fn slot(&self, number: u64, at: usize) -> &[AtomicU64] {
        let first = FIRST_SLOT + (number % SLOTS) as usize * SLOT_WORDS + at;
        &self.words()[first..first + 4]
    }

    fn load(&self, number: u64, at: usize) -> Words {
        let slot = self.slot(number, at);
        std::array::from_fn(|index| u64::from_le(slot[index].load(Ordering::Relaxed)))
    }

    fn store(&self, number: u64, at: usize, words: Words) {
        for (to, word) in self.slot(number, at).iter().zip(words) {
            to.store(word.to_le(), Ordering::Relaxed);
        }
    }

    /// How many requests the client has made.
    #[inline]
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.words()[ASKED].load(Ordering::Acquire)
    }

    /// How many requests the server has answered.
    #[inline]
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.words()[ANSWERED].load(Ordering::Acquire)
    }

    /// The client makes request `number`, the next. Ordering: step 1.
    pub fn ask(&self, number: u64, request: Words) {
        self.store(number, 0, request);
        self.set(ASKED, number.wrapping_add(1), SERVER_SLEEPS);
    }

    /// Request `number`. Ordering: step 2.
    #[must_use]
    pub fn request(&self, number: u64) -> Words {
        self.load(number, 0)
    }

    /// The server answers request `number`. Ordering: step 2.
    pub fn answer(&self, number: u64, answer: Words) {
        self.store(number, 4, answer);
        self.set(ANSWERED, number.wrapping_add(1), CLIENT_SLEEPS);
    }

    /// The answer to request `number`, which [`Page::answered`] says is there. Ordering: step 3.
    #[must_use]
    pub fn answer_to(&self, number: u64) -> Words {
        self.load(number, 4)
    }

    /// The server sleeps until the count of requests is no longer `asked`, or for `longest`.
    pub fn sleep_for_request(&self, asked: u64, longest: Duration) {
        self.sleep(ASKED, asked, SERVER_SLEEPS, longest);
    }

    /// The client sleeps until the count of answers is no longer `answered`, or for `longest`.
    pub fn sleep_for_answer(&self, answered: u64, longest: Duration) {
        self.sleep(ANSWERED, answered, CLIENT_SLEEPS, longest);
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page").field("asked", &self.asked()).finish_non_exhaustive()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: mmap's result, from which nothing borrows any more (Safety 1).
        let unmapped = unsafe { munmap(self.base, PAGE_BYTES) };
        debug_assert_eq!(unmapped, Ok(()), "a mapping of ours can be unmapped");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_and_its_answer_cross_the_page() {
        let server = Page::create().expect("a page");
        let client = Page::map(server.file.try_clone().expect("a copy")).expect("maps");
        assert!(client.has_magic());
        for number in 0..100 {
            client.ask(number, [number, 1, 2, 3]);
            assert_eq!(server.asked(), number + 1);
            assert_eq!(server.request(number), [number, 1, 2, 3]);
            server.answer(number, [4, 5, 6, number]);
            assert_eq!(
                (client.answered(), client.answer_to(number)),
                (number + 1, [4, 5, 6, number])
            );
        }
        server.sleep_for_request(99, Duration::from_secs(100));
        server.sleep_for_request(100, Duration::from_millis(1));
        client.sleep_for_answer(99, Duration::from_secs(100));
        client.sleep_for_answer(100, Duration::from_millis(1));
    }

    #[test]
    fn a_page_that_could_shrink_or_is_too_short_is_refused() {
        let file =
            memfd_create("x", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("a file");
        ftruncate(&file, PAGE_BYTES as u64).expect("grown");
        let map = || Page::map(file.try_clone().expect("a copy")).map(|_| ());
        assert_eq!(map(), Err(Errno::INVAL));
        ftruncate(&file, 8).expect("shrunk");
        fcntl_add_seals(&file, SEALS).expect("sealed");
        assert_eq!(map(), Err(Errno::INVAL));
    }
}
