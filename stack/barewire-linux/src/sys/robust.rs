//! A lock in shared memory that outlives its holder: a robust futex with priority inheritance, by the kernel's
//! interface alone.
//!
//! Read first: futex(2), *Priority-inheritance futexes*; get_robust_list(2); the kernel's
//! `Documentation/locking/robust-futex-ABI.rst`.
//!
//! # Why not libc's mutex
//! The command is a static program of musl's, and the programs that `barewire run` starts are glibc's. Their mutexes
//! have one word in common, the kernel's, and differ in the rest. This lock has that word alone, so the programs of
//! all C libraries share it; and it costs fewer instructions (docs/instructions.md).
//!
//! # How it works
//! A thread has one list of the robust futexes that it holds. libc made it and told the kernel where it is, and how far
//! an entry is from its word. So the entry of a lock lies where the holder's libc would have it for that word
//! ([`ENTRY_BEHIND`]). When the thread ends, in whatever way, the kernel marks each word in the list. The next one to
//! acquire the lock is told [`MutexState::OwnerDied`], and clears the mark; if that one ends before it released the lock, the kernel marks it
//! again. The list has libc's own entries too.
//!
//! The word is at the end of a file's first page ([`FROM_END`]), so the entry lies in the next page, which is not the
//! file's but the process's own. Another program may write anything to the file; it cannot change a list.
//!
//! # Ordering
//! The kernel reads the list when the thread ends, at whatever instruction:
//! 1. Name the lock as the one that is being acquired or released (`pending`).
//! 2. Change the word; enter the lock in the list, or take it out before the word is changed.
//! 3. Restore the previous value of `pending`. It names another lock if this code runs in a signal
//!    handler.
//!
//! Nothing else reads the list, so fences for the compiler are enough.
//!
//! # Not supported
//! A child that shares its parent's memory and thread-local storage (vfork) has the parent's thread id here. It is refused where
//! it costs nothing to know ([`super::is_memory_borrowed`]), and must not acquire a lock elsewhere.
//!
//! # Safety
//! 1. The list belongs to the calling thread. [`OwnList`] is read from thread-local storage, and never leaves its thread. A signal
//!    handler that uses robust mutexes or tries a lock in the middle finds a list that is whole, and leaves it as it was.
//! 2. A lock's entry is in the page behind the file's, which lives as long as the lock and which no other process has.
//! 3. An entry may lie at a multiple of 4 and not of 8: it is read and written unaligned. The kernel reads it so too, which the
//!    architectures here allow.
//! 4. A held lock is in its thread's list, so that thread must release it before it is unmapped: [`HeldMutex`] borrows the
//!    lock and cannot leave its thread.
#![allow(unsafe_code, reason = "the list of robust futexes, which libc and the kernel share")]

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::ops::ControlFlow;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering, compiler_fence};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use libc::{c_long, c_void};
use rustix::io::Errno;

use super::pages::SharedWords;
use super::{is_memory_borrowed, process_number};

/// The place of a lock's word, counted in words from the end of its page: the last but one, so that glibc's entries are
/// aligned. musl reads the last one when a thread ends with the lock; it stays 0.
pub(crate) const FROM_END: usize = 2;
/// How often a waiter is asked whether to continue.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// futex(2): the bits of the word that are the owner's thread id.
const FUTEX_TID_MASK: u32 = 0x3fff_ffff;
/// futex(2): the owner ended while it held the lock.
const FUTEX_OWNER_DIED: u32 = 0x4000_0000;

const POINTER: usize = size_of::<*mut c_void>();
/// How far behind a word this C library has the pointer to the next entry, in bytes: the kernel knows it as an offset
/// from entry to word.
const ENTRY_BEHIND: usize = match (cfg!(target_env = "musl"), POINTER) {
    (true, 8) => 28,
    (true, _) => 12,
    (false, 8) => 32,
    (false, _) => 20,
};
/// Whether an entry has a pointer to the previous entry before the one to the next. On 32-bit glibc it does
/// not.
const HAS_PREVIOUS: bool = cfg!(target_env = "musl") || POINTER == 8;
/// The mark of an entry whose lock has priority inheritance. musl sets none, and would take it for a part of the address; the
/// kernel needs none to mark the word, and wakes the waiters of such a lock by itself.
const INHERITS: usize = if cfg!(target_env = "musl") { 0 } else { 1 };

/// Whether an entry's pointers are aligned, as its page is: all but those of musl's 64 bits.
const ENTRIES_ALIGNED: bool = (ENTRY_BEHIND - FROM_END * 4) % POINTER == 0;

const _: () = assert!(ENTRY_BEHIND >= FROM_END * 4 + POINTER, "an entry is not in the file");

/// The state in which a lock was found when it was acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MutexState {
    /// Its last owner released it.
    Free,
    /// Its last owner ended while it held the lock.
    OwnerDied,
}

/// The list's head, as the kernel defines it.
#[repr(C)]
struct Head {
    /// The first entry, or the head itself.
    next: *mut c_void,
    /// From an entry to its lock's word.
    futex_offset: c_long,
    pending: *mut c_void,
}

/// The calling thread's id, and the place of its list. It stays in that thread.
#[derive(Clone, Copy, Debug)]
struct OwnList {
    head: NonNull<Head>,
    thread: u32,
    process: u32,
}

thread_local! {
    static OWN: Cell<Option<OwnList>> = const { Cell::new(None) };
}

impl OwnList {
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
        if is_memory_borrowed() {
            // The list would be the parent's.
            return Err(Errno::CHILD);
        }
        #[cfg(target_env = "musl")]
        {
            // musl tells the kernel of a thread's list when the thread first uses a robust mutex between processes.
            let mutex = super::of_libc::OfLibc::new(false)?;
            mutex.lock()?;
            mutex.unlock()?;
        }
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
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let own = Self { head, thread, process: process_number() };
        OWN.set(Some(own));
        Ok(own)
    }

    /// Steps 1 and 3: names the entry that is being changed. Returns the previous value; null if no lock
    /// was named.
    #[inline]
    fn name(self, entry: *mut c_void) -> *mut c_void {
        let pending = self.end().wrapping_byte_add(offset_of!(Head, pending));
        let before = get(pending);
        compiler_fence(Ordering::SeqCst);
        set(pending, entry);
        compiler_fence(Ordering::SeqCst);
        before
    }

    /// The head, as an entry's neighbour.
    #[inline]
    fn end(self) -> *mut c_void {
        self.head.as_ptr().cast()
    }

    #[inline]
    fn enter(self, entry: *mut c_void) {
        let next = get(self.end());
        set(entry, next);
        if HAS_PREVIOUS {
            set(before(entry), self.end());
        }
        compiler_fence(Ordering::SeqCst);
        set(self.end(), tagged(entry));
        compiler_fence(Ordering::SeqCst);
        // Stored last, because a signal handler that entered and removed another lock has stored the head here.
        // musl's head has no such pointer.
        if HAS_PREVIOUS && untagged(next) != self.end() {
            set(before(untagged(next)), entry);
        }
    }

    #[inline]
    fn leave(self, entry: *mut c_void) {
        let next = get(entry);
        let previous = if HAS_PREVIOUS { get(before(entry)) } else { self.find_previous(entry) };
        set(previous, next);
        compiler_fence(Ordering::SeqCst);
        if HAS_PREVIOUS && untagged(next) != self.end() {
            set(before(untagged(next)), previous);
        }
    }

    /// How many entries are in the list.
    #[cfg(test)]
    fn count(self) -> usize {
        let next = |place: &*mut c_void| Some(untagged(get(*place)));
        std::iter::successors(next(&self.end()), next).take_while(|at| *at != self.end()).count()
    }

    fn find_previous(self, entry: *mut c_void) -> *mut c_void {
        let mut previous = self.end();
        while untagged(get(previous)) != entry {
            previous = untagged(get(previous));
        }
        previous
    }
}

#[inline]
fn tagged(entry: *mut c_void) -> *mut c_void {
    entry.map_addr(|address| address | INHERITS)
}

/// The place of an entry. glibc tags others' entries in the list, whatever this lock does.
#[inline]
fn untagged(entry: *mut c_void) -> *mut c_void {
    entry.map_addr(|address| address & !INHERITS)
}

/// The place of the pointer to the previous entry.
#[inline]
fn before(entry: *mut c_void) -> *mut c_void {
    entry.wrapping_byte_sub(POINTER)
}

/// Writes a pointer, in one piece if it is aligned: the kernel may read the head's after any instruction.
#[inline]
fn set(place: *mut c_void, value: *mut c_void) {
    let place = place.cast::<*mut c_void>();
    if ENTRIES_ALIGNED || place.is_aligned() {
        // SAFETY: a pointer of an entry or the head (Safety 1 to 3).
        unsafe { place.write(value) };
    } else {
        // SAFETY: as above.
        unsafe { place.write_unaligned(value) };
    }
}

#[inline]
fn get(place: *mut c_void) -> *mut c_void {
    // SAFETY: as in `set`.
    unsafe { place.cast::<*mut c_void>().read_unaligned() }
}

/// How many robust futexes the calling thread holds, by its list: locks and mutexes of libc's.
#[cfg(test)]
pub(crate) fn held_here() -> Result<usize, Errno> {
    OwnList::get().map(OwnList::count)
}

/// A lock at the end of a file's first page. A lock of zeros is free.
#[derive(Debug)]
pub(crate) struct SharedMutex {
    words: SharedWords,
}

impl SharedMutex {
    /// Maps the first page of `file`.
    ///
    /// # Errors
    /// `EINVAL` if the file is shorter; otherwise mmap(2)'s error.
    pub(crate) fn map(file: &File) -> Result<Self, Errno> {
        SharedWords::map_page_with_room(file).map(|words| Self { words })
    }

    /// The page.
    #[inline]
    pub(crate) fn words(&self) -> &SharedWords {
        &self.words
    }

    /// The index of the word that the kernel knows.
    #[inline]
    pub(crate) fn word_index(&self) -> usize {
        self.words.words().len() - FROM_END
    }

    #[inline]
    fn word(&self) -> &AtomicU32 {
        // SAFETY: a word of the mapping, which lives as long as this; `map` made it a page. By its address, whose
        // provenance covers the entry behind it.
        unsafe { &*self.words.address(self.word_index()).cast::<AtomicU32>() }
    }

    /// Whether a thread holds it that has not ended.
    #[inline]
    pub(crate) fn is_held(word: &AtomicU32) -> bool {
        let word = word.load(Ordering::Relaxed);
        word & FUTEX_OWNER_DIED == 0 && word & FUTEX_TID_MASK != 0
    }

    /// Frees the lock, in any state that its last users left. No process may use it meanwhile. If it is held, its
    /// holder's boot or PID namespace has ended. The next thread to acquire it is told so.
    pub(crate) fn reset(&self) {
        let is_held =
            self.word().load(Ordering::Relaxed) & (FUTEX_TID_MASK | FUTEX_OWNER_DIED) != 0;
        self.word().store(if is_held { FUTEX_OWNER_DIED } else { 0 }, Ordering::Relaxed);
    }

    /// Acquires the lock. While another thread holds it, waits.
    ///
    /// # Errors
    /// `EDEADLK` if the calling thread holds it; `ENOSYS` if the thread has no list of robust futexes; `ECHILD` in a child that
    /// borrows its parent's memory, unless it costs a system call to know; otherwise futex(2)'s.
    #[inline]
    pub(crate) fn acquire(&self) -> Result<(HeldMutex<'_>, MutexState), Errno> {
        self.acquire_by(|word| wait(word, None))
    }

    /// Acquires the lock. While another thread holds it, calls `go_on` every 100 ms with that thread's id.
    ///
    /// # Errors
    /// `EINTR` if `go_on` stopped the waiting; otherwise as [`SharedMutex::acquire`].
    #[inline]
    pub(crate) fn acquire_while(
        &self,
        go_on: &mut dyn FnMut(u32) -> ControlFlow<()>,
    ) -> Result<(HeldMutex<'_>, MutexState), Errno> {
        self.acquire_by(|word| wait(word, Some(go_on)))
    }

    /// Acquires the lock if no other thread holds it.
    ///
    /// # Errors
    /// `EAGAIN` if one does, or the calling thread; otherwise as [`SharedMutex::acquire`].
    #[inline]
    pub(crate) fn try_acquire(&self) -> Result<(HeldMutex<'_>, MutexState), Errno> {
        self.acquire_by(take_from_dead)
    }

    #[inline(always)]
    fn acquire_by(
        &self,
        wait: impl FnOnce(&AtomicU32) -> Result<MutexState, Errno>,
    ) -> Result<(HeldMutex<'_>, MutexState), Errno> {
        let (own, word) = (OwnList::get()?, self.word());
        let held = HeldMutex { word, own };
        let before = own.name(tagged(held.entry()));
        let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
        let found = match word.compare_exchange(0, own.thread, acquire, relaxed) {
            Ok(_) => Ok(MutexState::Free),
            Err(_) => wait(word),
        };
        if found.is_ok() {
            own.enter(held.entry());
        }
        own.name(before);
        match found {
            Ok(found) => Ok((held, found)),
            Err(errno) => {
                std::mem::forget(held);
                Err(errno)
            }
        }
    }
}

/// Takes a word whose owner ended.
#[cold]
#[inline(never)]
fn take_from_dead(word: &AtomicU32) -> Result<MutexState, Errno> {
    if SharedMutex::is_held(word) {
        return Err(Errno::AGAIN);
    }
    // SAFETY: the word outlives the call.
    let got = unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_TRYLOCK_PI, 0, 0) };
    if got == 0 { Ok(taken(word)) } else { Err(Errno::AGAIN) }
}

/// The state in which the kernel gave the word to the caller, and takes its mark away.
fn taken(word: &AtomicU32) -> MutexState {
    match word.fetch_and(!FUTEX_OWNER_DIED, Ordering::Acquire) & FUTEX_OWNER_DIED {
        0 => MutexState::Free,
        _ => MutexState::OwnerDied,
    }
}

#[cold]
#[inline(never)]
fn wait(
    word: &AtomicU32,
    mut go_on: Option<&mut dyn FnMut(u32) -> ControlFlow<()>>,
) -> Result<MutexState, Errno> {
    if is_memory_borrowed() {
        // The kernel would write the id of a thread that has no list.
        return Err(Errno::CHILD);
    }
    loop {
        let until = go_on.is_some().then(ask_again_at);
        let until = until.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the word outlives the call, and the time is valid or null.
        let got = unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_LOCK_PI, 0, until) };
        if got == 0 {
            return Ok(taken(word));
        }
        match Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO) {
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

/// When to ask again, on the clock of `FUTEX_LOCK_PI`: seconds and nanoseconds, as the system call takes them.
fn ask_again_at() -> [c_long; 2] {
    let until = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + ASK_EVERY;
    // Less than 10⁹, which every target's field holds.
    [until.as_secs().try_into().unwrap_or(c_long::MAX), until.subsec_nanos() as c_long]
}

/// The lock, held by this thread; released when dropped.
#[derive(Debug)]
pub(crate) struct HeldMutex<'m> {
    word: &'m AtomicU32,
    /// Its pointer keeps this in its thread (Safety 4).
    own: OwnList,
}

impl HeldMutex<'_> {
    #[inline]
    fn entry(&self) -> *mut c_void {
        // In the page behind the word's (Safety 2).
        ptr::from_ref(self.word).cast_mut().cast::<c_void>().wrapping_byte_add(ENTRY_BEHIND)
    }
}

impl Drop for HeldMutex<'_> {
    #[inline]
    fn drop(&mut self) {
        let (own, entry) = (self.own, self.entry());
        if own.process != process_number() {
            // A child's copy: its parent's thread has the lock, and libc has begun another list here.
            return;
        }
        let before = own.name(tagged(entry));
        own.leave(entry);
        let (release, relaxed) = (Ordering::Release, Ordering::Relaxed);
        if self.word.compare_exchange(own.thread, 0, release, relaxed).is_err() {
            hand_over(self.word);
        }
        own.name(before);
    }
}

#[cold]
#[inline(never)]
fn hand_over(word: &AtomicU32) {
    // Fails if the file was overwritten meanwhile: then there is nothing to give back.
    // SAFETY: a word that lives.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_UNLOCK_PI) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> (File, SharedMutex) {
        let file = tempfile::tempfile().expect("a scratch file");
        file.set_len(65_536).expect("grown");
        let lock = SharedMutex::map(&file).expect("maps");
        (file, lock)
    }

    #[test]
    fn a_file_without_a_whole_page_has_no_lock() {
        let (file, _lock) = lock();
        for len in [0, crate::sys::page_size() as u64 - 1] {
            file.set_len(len).expect("cut");
            assert_eq!(SharedMutex::map(&file).err(), Some(Errno::INVAL), "{len}");
        }
    }

    #[test]
    fn a_lock_that_is_overwritten_while_it_is_held_breaks_no_memory() {
        use std::os::unix::fs::FileExt;
        let [(file, lock), (_, other)] = [lock(), lock()];
        for byte in [0, 0x41, 0xff] {
            let (held, _) = lock.acquire().expect("free");
            let (nested, _) = other.acquire().expect("free");
            file.write_all_at(&[byte; 65_536], 0).expect("written");
            // Not the last that was acquired: its neighbours in the list are changed.
            drop(held);
            drop(nested);
            lock.word().store(0, Ordering::Relaxed);
        }
        assert_eq!(OwnList::get().expect("a list").count(), 0);
    }

    #[test]
    fn a_holder_that_is_left_in_it_counts_as_dead() {
        let (_file, lock) = lock();
        for (left, expected) in [
            (0, MutexState::Free),
            (0x8000_0000, MutexState::Free),
            (1, MutexState::OwnerDied),
            (0x8000_0001, MutexState::OwnerDied),
            (FUTEX_OWNER_DIED, MutexState::OwnerDied),
            (u32::MAX, MutexState::OwnerDied),
        ] {
            lock.word().store(left, Ordering::Relaxed);
            lock.reset();
            assert_eq!(lock.acquire().expect("nobody has it").1, expected, "{left:#x}");
            assert_eq!(lock.word().load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn a_child_does_not_release_what_its_parent_holds() {
        let (_file, lock) = lock();
        let (held, _) = lock.acquire().expect("free");
        let thread = lock.word().load(Ordering::Relaxed);
        // SAFETY: the child makes system calls alone.
        let child = unsafe { libc::fork() };
        if child == 0 {
            drop(held);
            let kept = lock.word().load(Ordering::Relaxed) == thread;
            let found = lock.acquire_while(&mut |_| ControlFlow::Break(())).map(drop);
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(kept && found == Err(Errno::INTR))) };
        }
        let mut status = 0;
        // SAFETY: waits for the child.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(libc::WEXITSTATUS(status), 1, "{status:#x}");
        drop(held);
        assert_eq!(lock.word().load(Ordering::Relaxed), 0);
    }

    /// Does what a signal handler does that interrupts its thread between two steps.
    #[test]
    fn a_handler_s_lock_leaves_the_list_as_it_was() {
        let [(_, oldest), (_, outer), (_, inner)] = [lock(), lock(), lock()];
        let (oldest, _) = oldest.acquire().expect("free");
        let own = OwnList::get().expect("a list");
        let entry = HeldMutex { word: outer.word(), own };
        let entry = std::mem::ManuallyDrop::new(entry).entry();
        assert_eq!(own.name(entry), ptr::null_mut());
        drop(inner.try_acquire().expect("free"));
        assert_eq!(own.name(ptr::null_mut()), entry, "it stays named");
        assert_eq!(own.count(), 1);
        drop(oldest);
        assert_eq!(own.count(), 0);
    }

    /// A list in memory, so that Miri can follow its pointers.
    #[test]
    fn entries_are_linked_and_taken_out_in_any_order() {
        const ENTRIES: usize = 4;
        let nowhere = ptr::null_mut();
        let mut head = [nowhere; 3];
        let place: NonNull<Head> = NonNull::from(&mut head).cast();
        let own = OwnList { head: place, thread: 1, process: 1 };
        let first = own.end();
        set(first, first);
        // Two pointers each, of which the second is the next; nothing else may be written.
        let mut room = [[nowhere; 2]; ENTRIES];
        let base: *mut *mut c_void = room.as_mut_ptr().cast();
        let entries: [*mut c_void; ENTRIES] =
            std::array::from_fn(|at| base.wrapping_add(2 * at + 1).cast());
        let listed = || {
            let next = |place: &*mut c_void| Some(untagged(get(*place)));
            let all = std::iter::successors(next(&first), next);
            all.take_while(|place| *place != first).collect::<Vec<_>>()
        };
        for order in 0..24 {
            for entry in entries {
                assert_eq!(own.name(entry), nowhere);
                own.enter(entry);
                assert_eq!(own.name(nowhere), entry);
            }
            let mut left: Vec<_> = entries.into_iter().rev().collect();
            let mut number = order;
            while !left.is_empty() {
                assert_eq!(listed(), left);
                let are_linked =
                    left.windows(2).all(|pair| !HAS_PREVIOUS || get(before(pair[1])) == pair[0]);
                assert!(are_linked, "each entry but the first has the one before it");
                let index = number % left.len();
                number /= left.len();
                own.leave(left.remove(index));
            }
            assert_eq!(listed(), []);
        }
    }
}
