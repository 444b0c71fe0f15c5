//! A mark in shared memory that a thread lives: no process can leave it behind.
//!
//! # How it works
//! The thread holds a robust mutex for as long as it lives. However it ends, also by SIGKILL, the kernel marks
//! the mutex's word. So every process that shares the memory sees the end by one load, without a system call.

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;

use crate::sys::SharedWords;
use crate::sys::mutex::SharedMutex;
use crate::sys::owner::{FUTEX_OWNER_DIED, FUTEX_TID_MASK};

/// The words of a lifeline: room for a mutex of any C library.
pub const LIFELINE_WORDS: usize = 12;

/// A lifeline of the thread that made it.
#[derive(Debug)]
pub struct Lifeline {
    mutex: &'static SharedMutex,
}

impl Lifeline {
    /// Makes a lifeline of the calling thread in [`LIFELINE_WORDS`] words from `at` on, a multiple of 16.
    /// The words stay mapped for as long as the process lives.
    ///
    /// # Errors
    /// libc's, if it has no such mutexes.
    ///
    /// # Panics
    /// If `words` are fewer, or `at` is another number.
    pub fn hold(words: SharedWords, at: usize) -> Result<Self, Errno> {
        // A held mutex must stay where it is: the kernel looks at it when the thread ends.
        let mutex: &'static SharedMutex = Box::leak(Box::new(SharedMutex::at(words, at)));
        mutex.init()?;
        let (held, _) = mutex.acquire()?;
        std::mem::forget(held);
        Ok(Self { mutex })
    }

    /// The index of the word to look at.
    #[must_use]
    pub fn word(&self) -> usize {
        self.mutex.word_index()
    }

    /// The words in which it is.
    #[must_use]
    pub fn words(&self) -> &'static SharedWords {
        self.mutex.words()
    }

    /// Whether a lifeline's thread lives, by its word.
    #[inline]
    #[must_use]
    pub fn is_alive(word: &AtomicU32) -> bool {
        let word = word.load(Ordering::Relaxed);
        word & FUTEX_OWNER_DIED == 0 && word & FUTEX_TID_MASK != 0
    }
}
