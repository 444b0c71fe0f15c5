//! libc's mutex in a file: process-shared, robust, with priority inheritance.
//!
//! Read first: pthread_mutexattr_setrobust(3), pthread_mutex_consistent(3); robust_list(2) in the
//! kernel's documentation (`locking/robust-futexes`).
//!
//! # How it works
//! libc keeps for each thread a list of the robust mutexes it holds, which the kernel knows. When
//! the thread ends, in whatever way, the kernel marks each of them. The next thread to acquire one
//! gets `EOWNERDEAD`, with the mutex held.
//!
//! A mutex that a program of musl's made is acquired by a program of glibc's too: see `foreign`.
//!
//! # Safety
//! 1. The mutex is in our pages at an aligned place, and is accessed by its address only, because
//!    other processes change it.
//! 2. [`SharedMutex::init`] of a program with the same layout initialised it before any process
//!    could open the file under its name; `shared::lock` checks the layout.
//! 3. A user who may write the file can write anything there. libc may then fail, wait for ever or
//!    abort. As for a device's registers, the owner of the machine answers for the file's content.
//! 4. A held mutex is on its thread's list, so that thread must release it before it is unmapped:
//!    [`Held`] borrows the mutex and cannot leave its thread.
#![allow(unsafe_code, reason = "libc's robust mutexes, which rustix does not have")]

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
#[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use libc::{pthread_mutex_t, pthread_mutexattr_t};
use rustix::io::Errno;

#[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
use super::foreign;
use super::owner::{ASK_EVERY, FUTEX_TID_MASK, MutexState};
use super::pages::SharedWords;

/// The size of a mutex in bytes.
pub(crate) const MUTEX_BYTES: usize = size_of::<pthread_mutex_t>();

const _: () = assert!(align_of::<pthread_mutex_t>() <= 64, "what the file's layout aligns it to");

/// A mutex in shared pages.
#[derive(Debug)]
pub(crate) struct SharedMutex {
    words: SharedWords,
    /// The index of its first word.
    at: usize,
    /// Whether a program of another C library made it.
    #[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
    foreign: bool,
}

/// Whether this program acquires mutexes that musl's programs made, and the size that those have in bytes.
pub(crate) const MUSL_MUTEX_BYTES: Option<usize> =
    if cfg!(all(target_env = "gnu", target_pointer_width = "64")) { Some(40) } else { None };
/// The index of the word that the kernel knows, in musl's mutex and in glibc's.
const MUSL_WORD: usize = 1;
const GNU_WORD: usize = 0;

#[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
const _: () = assert!(MUSL_WORD * 4 + foreign::ROOM_BYTES <= 48, "what the file has for a mutex");

fn check(errno: i32) -> Result<(), Errno> {
    if errno == 0 { Ok(()) } else { Err(Errno::from_raw_os_error(errno)) }
}

/// Attributes, destroyed when dropped.
struct Attributes(pthread_mutexattr_t);

impl Attributes {
    /// The attributes of our mutexes.
    fn ours() -> Result<Self, Errno> {
        let mut room = MaybeUninit::uninit();
        // SAFETY: space for attributes, which this call initialises.
        check(unsafe { libc::pthread_mutexattr_init(room.as_mut_ptr()) })?;
        // SAFETY: just initialised.
        let mut this = Self(unsafe { room.assume_init() });
        let raw = &raw mut this.0;
        // SAFETY: `raw` are initialised attributes.
        check(unsafe { libc::pthread_mutexattr_setpshared(raw, libc::PTHREAD_PROCESS_SHARED) })?;
        // SAFETY: as above.
        check(unsafe { libc::pthread_mutexattr_setrobust(raw, libc::PTHREAD_MUTEX_ROBUST) })?;
        // SAFETY: as above.
        check(unsafe { libc::pthread_mutexattr_setprotocol(raw, libc::PTHREAD_PRIO_INHERIT) })?;
        // A thread that acquires it twice gets an error instead of waiting for itself for ever.
        // SAFETY: as above.
        check(unsafe { libc::pthread_mutexattr_settype(raw, libc::PTHREAD_MUTEX_ERRORCHECK) })?;
        Ok(this)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised, and not used again.
        let destroyed = unsafe { libc::pthread_mutexattr_destroy(&raw mut self.0) };
        debug_assert_eq!(destroyed, 0, "attributes of ours can be destroyed");
    }
}

impl SharedMutex {
    /// The mutex at word `at` of `words`. Its offset must be a multiple of 64 bytes.
    ///
    /// # Panics
    /// If it is not, or the mutex does not fit.
    pub(crate) fn at(words: SharedWords, at: usize) -> Self {
        let bytes = at * 4;
        assert!(bytes.is_multiple_of(64) && bytes + MUTEX_BYTES <= words.words().len() * 4);
        Self {
            words,
            at,
            #[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
            foreign: false,
        }
    }

    /// The same, made by a program of musl's, with 48 bytes of room; only where [`MUSL_MUTEX_BYTES`] has
    /// its size.
    ///
    /// # Panics
    /// As [`SharedMutex::at`].
    pub(crate) fn of_musl(self) -> Self {
        assert!(self.at * 4 + 48 <= self.words.words().len() * 4);
        Self {
            #[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
            foreign: true,
            ..self
        }
    }

    /// Whether libc does not know it.
    #[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
    fn is_foreign(&self) -> bool {
        self.foreign
    }

    #[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
    fn word(&self) -> &AtomicU32 {
        // SAFETY: a word of the mapping, which lives as long as this; `words` asserts the same. By its
        // address, whose provenance covers the entry behind it.
        unsafe { &*self.words.address(self.at + MUSL_WORD).cast::<AtomicU32>() }
    }

    /// The index of the word that the kernel knows.
    pub(crate) fn word_index(&self) -> usize {
        #[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
        if self.foreign {
            return self.at + MUSL_WORD;
        }
        self.at + if cfg!(target_env = "musl") { MUSL_WORD } else { GNU_WORD }
    }

    /// The words that contain it.
    #[inline]
    pub(crate) fn words(&self) -> &SharedWords {
        &self.words
    }

    #[inline]
    fn raw(&self) -> *mut pthread_mutex_t {
        self.words.address(self.at).cast()
    }

    /// Initialises the mutex, once, while no other process has the file.
    pub(crate) fn init(&self) -> Result<(), Errno> {
        let attributes = Attributes::ours()?;
        // SAFETY: space for a mutex that is not in use yet (Safety 1 and 2), and valid attributes.
        check(unsafe { libc::pthread_mutex_init(self.raw(), &raw const attributes.0) })
    }

    /// Resets the mutex, whatever its last users left in it. No process may use it meanwhile.
    pub(crate) fn reset(&self) -> Result<(), Errno> {
        #[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
        if self.foreign {
            // The kernel's word, the waiters and the count; the type stays.
            for word in [MUSL_WORD, 2, 5] {
                self.words.words()[self.at + word].store(0, Ordering::Relaxed);
            }
            return Ok(());
        }
        self.init()
    }

    /// The mutex, which the calling thread has acquired.
    #[inline]
    fn held(&self) -> Held<'_> {
        Held {
            mutex: self,
            thread: PhantomData,
            #[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
            foreign: None,
        }
    }

    /// Acquires the mutex; waits for it.
    #[inline(always)]
    pub(crate) fn acquire(&self) -> Result<(Held<'_>, MutexState), Errno> {
        #[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
        if self.is_foreign() {
            let (found, own) = foreign::acquire(self.word(), None)?;
            return Ok((Held { mutex: self, thread: PhantomData, foreign: Some(own) }, found));
        }
        // SAFETY: an initialised mutex (Safety 1 and 2).
        let found = match unsafe { libc::pthread_mutex_lock(self.raw()) } {
            0 => MutexState::Free,
            libc::EOWNERDEAD => MutexState::OwnerDied,
            errno => return Err(Errno::from_raw_os_error(errno)),
        };
        Ok((self.held(), found))
    }

    /// Acquires the mutex. While another thread holds it, calls `go_on` every [`ASK_EVERY`] with
    /// that thread's id.
    ///
    /// # Errors
    /// `EINTR` if `go_on` stopped the waiting; otherwise libc's error.
    #[inline]
    pub(crate) fn acquire_while(
        &self,
        go_on: &mut dyn FnMut(u32) -> ControlFlow<()>,
    ) -> Result<(Held<'_>, MutexState), Errno> {
        #[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
        if self.is_foreign() {
            let (found, own) = foreign::acquire(self.word(), Some(go_on))?;
            return Ok((Held { mutex: self, thread: PhantomData, foreign: Some(own) }, found));
        }
        // SAFETY: an initialised mutex (Safety 1 and 2).
        match unsafe { libc::pthread_mutex_trylock(self.raw()) } {
            0 => Ok((self.held(), MutexState::Free)),
            libc::EBUSY => self.wait_while(go_on),
            libc::EOWNERDEAD => Ok((self.held(), MutexState::OwnerDied)),
            errno => Err(Errno::from_raw_os_error(errno)),
        }
    }

    #[cold]
    fn wait_while(
        &self,
        go_on: &mut dyn FnMut(u32) -> ControlFlow<()>,
    ) -> Result<(Held<'_>, MutexState), Errno> {
        loop {
            let until = realtime_in(ASK_EVERY);
            // SAFETY: an initialised mutex (Safety 1 and 2), and a time.
            let found = match unsafe { libc::pthread_mutex_timedlock(self.raw(), &raw const until) }
            {
                0 => MutexState::Free,
                libc::EOWNERDEAD => MutexState::OwnerDied,
                libc::ETIMEDOUT if go_on(self.holder()).is_continue() => continue,
                libc::ETIMEDOUT => return Err(Errno::INTR),
                errno => return Err(Errno::from_raw_os_error(errno)),
            };
            return Ok((self.held(), found));
        }
    }

    /// The id of the thread that holds it, in this process's PID namespace; 0 if it is free.
    ///
    /// The kernel defines the word, because the mutex inherits priorities (futex(2),
    /// *Priority-inheritance futexes*): the id with two flags above it. libc determines where in
    /// the mutex the word is.
    fn holder(&self) -> u32 {
        self.words.words()[self.word_index()].load(Ordering::Relaxed) & FUTEX_TID_MASK
    }
}

/// The time `span` from now, on the clock of `pthread_mutex_timedlock`.
fn realtime_in(span: Duration) -> libc::timespec {
    let until = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + span;
    // SAFETY: a struct of integers, with padding on some targets; zeros are valid.
    let mut spec: libc::timespec = unsafe { std::mem::zeroed() };
    spec.tv_sec = until.as_secs().try_into().unwrap_or(libc::time_t::MAX);
    // Less than 10⁹, which every target's field holds.
    spec.tv_nsec = until.subsec_nanos() as _;
    spec
}

/// The mutex, held by this thread; released when dropped.
#[derive(Debug)]
pub(crate) struct Held<'m> {
    mutex: &'m SharedMutex,
    /// Keeps it in its thread (Safety 4).
    thread: PhantomData<*const ()>,
    /// By what a mutex that libc does not know is released.
    #[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
    foreign: Option<foreign::Own>,
}

impl Held<'_> {
    /// Declares that the data guarded by the mutex is consistent again.
    pub(crate) fn make_consistent(&self) -> Result<(), Errno> {
        #[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
        if self.mutex.is_foreign() {
            foreign::make_consistent(self.mutex.word());
            return Ok(());
        }
        // SAFETY: one of our mutexes, held by this thread.
        check(unsafe { libc::pthread_mutex_consistent(self.mutex.raw()) })
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        #[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
        if let Some(own) = self.foreign {
            foreign::release(self.mutex.word(), own);
            return;
        }
        // SAFETY: one of our mutexes, held by this thread (Safety 4).
        let given_back = unsafe { libc::pthread_mutex_unlock(self.mutex.raw()) };
        debug_assert_eq!(given_back, 0, "the holder can give it back");
    }
}
