//! A robust mutex that another C library's program made, acquired by the kernel's interface alone.
//!
//! Read first: futex(2), *Priority-inheritance futexes*; get_robust_list(2); the kernel's
//! `Documentation/locking/robust-futex-ABI.rst`.
//!
//! # Why
//! The command is a static program of musl's, and the programs that `barewire run` starts are glibc's. Their
//! mutexes differ only in the place of the word that the kernel knows. This file acquires a mutex of musl's
//! in a thread of glibc's.
//!
//! # How it works
//! A thread has one list of the robust mutexes it holds. libc made it and told the kernel where it is, and how
//! far an entry is from its mutex's word. So the entry of a mutex in this list lies where this thread's libc
//! would have it for that word; in musl's mutex that is room which only musl's owner uses.
//!
//! # Ordering
//! The kernel reads the list when the thread ends, at whatever instruction:
//! 1. Name the mutex as the one that is being acquired or released (`pending`).
//! 2. Change the word; enter the mutex in the list, or take it out before the word is changed.
//! 3. Name none.
//!
//! Nothing else reads the list, so fences for the compiler are enough.
//!
//! # Safety
//! 1. The list belongs to the calling thread; [`Own`] is read from thread-local storage, and never leaves its
//!    thread. A signal handler that uses robust mutexes of libc's in the middle finds a list that is whole:
//!    each store leaves it so.
//! 2. A mutex's word has [`ROOM_BYTES`] behind it for the entry, which [`super::mutex`] has checked.
//! 3. An entry lies at a multiple of 4, not of 8: it is read and written unaligned, as the architectures here
//!    allow for ordinary memory.
#![allow(unsafe_code, reason = "the list of robust mutexes, which libc and the kernel share")]

use std::cell::Cell;
use std::ops::ControlFlow;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering, compiler_fence};
use std::time::{SystemTime, UNIX_EPOCH};

use libc::{c_long, c_void};
use rustix::io::Errno;

use super::owner::{ASK_EVERY, FUTEX_OWNER_DIED, FUTEX_TID_MASK, MutexState};
use super::process_number;

/// The mark of an entry whose mutex has priority inheritance.
const INHERITS: usize = 1;
/// How far behind a word the entry of its mutex is, where glibc has pointers of 64 bits; the pointer to the
/// next entry is there, that to the previous one before it.
const ENTRY_BEHIND: usize = 32;
/// The room for a word and the entry after it.
pub(super) const ROOM_BYTES: usize = ENTRY_BEHIND + size_of::<usize>();

/// The list's head, as the kernel defines it.
#[repr(C)]
struct Head {
    /// The first entry, or the head itself.
    next: *mut c_void,
    /// From an entry to its mutex's word.
    futex_offset: c_long,
    pending: *mut c_void,
}

/// The calling thread's id, and the place of its list. It stays in that thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    head: NonNull<Head>,
    thread: u32,
    process: u32,
}

thread_local! {
    static OWN: Cell<Option<Own>> = const { Cell::new(None) };
}

impl Own {
    #[inline(always)]
    fn get() -> Result<Self, Errno> {
        match OWN.get() {
            Some(own) if own.process == process_number() => Ok(own),
            _ => Self::look(),
        }
    }

    /// Asks the kernel.
    #[cold]
    fn look() -> Result<Self, Errno> {
        let mut head: *mut Head = ptr::null_mut();
        let mut len = 0_usize;
        // SAFETY: the kernel fills the two, for the calling thread.
        let got =
            unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut len) };
        let head = NonNull::new(head).filter(|_| got == 0 && len == size_of::<Head>());
        let head = head.ok_or(Errno::NOSYS)?;
        // SAFETY: the list that libc made for this thread.
        let Head { futex_offset, .. } = *unsafe { head.as_ref() };
        if futex_offset != -(ENTRY_BEHIND as c_long) {
            return Err(Errno::NOSYS);
        }
        let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let own = Self { head, thread, process: process_number() };
        OWN.set(Some(own));
        Ok(own)
    }

    /// The entry of the mutex with that word.
    /// Steps 1 and 3: names the entry that is being changed; null for none.
    #[inline]
    fn name(self, entry: *mut c_void) {
        compiler_fence(Ordering::SeqCst);
        // SAFETY: this thread's list (Safety 1).
        unsafe { (*self.head.as_ptr()).pending = entry };
        compiler_fence(Ordering::SeqCst);
    }

    #[inline]
    fn enter(self, entry: *mut c_void) {
        let head: *mut c_void = self.head.as_ptr().cast();
        // SAFETY: this thread's list (Safety 1).
        let next = unsafe { (*self.head.as_ptr()).next };
        set(entry, next);
        set(before(entry), head);
        set(before(untagged(next)), entry);
        compiler_fence(Ordering::SeqCst);
        // SAFETY: as above.
        unsafe { (*self.head.as_ptr()).next = tagged(entry) };
    }

    #[inline]
    fn leave(self, entry: *mut c_void) {
        let (next, previous) = (get(entry), get(before(entry)));
        set(before(untagged(next)), previous);
        set(previous, next);
        compiler_fence(Ordering::SeqCst);
    }
}

/// The entry of the mutex with that word.
#[inline]
fn entry_of(word: *const AtomicU32) -> *mut c_void {
    // Within the mutex's room (Safety 2).
    word.cast_mut().cast::<c_void>().wrapping_byte_add(ENTRY_BEHIND)
}

#[inline]
fn tagged(entry: *mut c_void) -> *mut c_void {
    entry.map_addr(|address| address | INHERITS)
}

#[inline]
fn untagged(entry: *mut c_void) -> *mut c_void {
    entry.map_addr(|address| address & !INHERITS)
}

/// The place of the pointer to the previous entry, in an entry as well as in libc's head.
#[inline]
fn before(entry: *mut c_void) -> *mut c_void {
    entry.wrapping_byte_sub(size_of::<*mut c_void>())
}

#[inline]
fn set(place: *mut c_void, value: *mut c_void) {
    // SAFETY: a pointer of an entry or the head (Safety 1 to 3).
    unsafe { place.cast::<*mut c_void>().write_unaligned(value) };
}

#[inline]
fn get(place: *mut c_void) -> *mut c_void {
    // SAFETY: as in `set`.
    unsafe { place.cast::<*mut c_void>().read_unaligned() }
}

/// Acquires the mutex with that word. While another thread holds it, waits; with `go_on`, asks that every
/// [`ASK_EVERY`] whether to continue.
///
/// # Errors
/// `EINTR` if `go_on` stopped the waiting; `EDEADLK` if the calling thread holds it; `ENOTRECOVERABLE`;
/// `ENOSYS` if the thread has no list.
#[inline(always)]
pub(super) fn acquire(
    word: &AtomicU32,
    go_on: Option<&mut dyn FnMut(u32) -> ControlFlow<()>>,
) -> Result<(MutexState, Own), Errno> {
    let own = Own::get()?;
    let entry = entry_of(word);
    own.name(tagged(entry));
    let found = match word.compare_exchange(0, own.thread, Ordering::Acquire, Ordering::Relaxed) {
        Ok(_) => Ok(MutexState::Free),
        Err(_) => wait(word, go_on),
    };
    if found.is_ok() {
        own.enter(entry);
    }
    own.name(ptr::null_mut());
    found.map(|found| (found, own))
}

#[cold]
fn wait(
    word: &AtomicU32,
    mut go_on: Option<&mut dyn FnMut(u32) -> ControlFlow<()>>,
) -> Result<MutexState, Errno> {
    loop {
        let owner = word.load(Ordering::Relaxed) & FUTEX_TID_MASK;
        if owner == FUTEX_TID_MASK {
            return Err(Errno::NOTRECOVERABLE);
        }
        let until = go_on.is_some().then(ask_again_at);
        let until = until.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: a word that lives, and a time or none.
        let got = unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_LOCK_PI, 0, until) };
        if got == 0 {
            return match word.load(Ordering::Relaxed) & FUTEX_OWNER_DIED {
                0 => Ok(MutexState::Free),
                _ => Ok(MutexState::OwnerDied),
            };
        }
        let error = std::io::Error::last_os_error();
        match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
            Errno::INTR | Errno::AGAIN => {}
            Errno::TIMEDOUT => {
                let owner = word.load(Ordering::Relaxed) & FUTEX_TID_MASK;
                if go_on.as_mut().is_some_and(|go_on| go_on(owner).is_break()) {
                    return Err(Errno::INTR);
                }
            }
            errno => return Err(errno),
        }
    }
}

/// When to ask again, on the clock of `FUTEX_LOCK_PI`.
fn ask_again_at() -> libc::timespec {
    let until = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + ASK_EVERY;
    let tv_sec = until.as_secs().try_into().unwrap_or(libc::time_t::MAX);
    libc::timespec { tv_sec, tv_nsec: until.subsec_nanos().into() }
}

/// Marks the state that the mutex guards as whole again.
pub(super) fn make_consistent(word: &AtomicU32) {
    word.fetch_and(!FUTEX_OWNER_DIED, Ordering::Relaxed);
}

/// Releases the mutex with that word, which the calling thread holds, by what [`acquire`] returned.
#[inline(always)]
pub(super) fn release(word: &AtomicU32, own: Own) {
    let entry = entry_of(word);
    own.name(tagged(entry));
    own.leave(entry);
    if word.compare_exchange(own.thread, 0, Ordering::Release, Ordering::Relaxed).is_err() {
        hand_over(word);
    }
    own.name(ptr::null_mut());
}

#[cold]
fn hand_over(word: &AtomicU32) {
    // SAFETY: a word that lives, which this thread holds.
    let done = unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_UNLOCK_PI) };
    debug_assert_eq!(done, 0, "the holder can give it back");
}
