//! A mark in shared memory that a thread lives: no process can leave it behind.
//!
//! # How it works
//! The thread holds a robust lock for as long as it lives. However it ends, also by SIGKILL, the kernel marks
//! the lock's word. So every process that shares the memory sees the end by one load, without a system call.

use std::fs::File;
use std::sync::atomic::AtomicU32;

use rustix::io::Errno;

use crate::sys::SharedWords;
use crate::sys::robust::SharedMutex;

/// A lifeline of the thread that made it.
#[derive(Debug)]
pub struct Lifeline {
    mutex: &'static SharedMutex,
}

impl Lifeline {
    /// Makes a lifeline of the calling thread at the end of the file's first page, which stays mapped for as long as the
    /// process lives. The page must be zeros.
    ///
    /// # Errors
    /// `EINVAL` if the file is shorter than a page; the kernel's, if it has no such locks.
    pub fn hold(file: &File) -> Result<Self, Errno> {
        // A held lock must stay where it is: the kernel looks at it when the thread ends.
        let mutex: &'static SharedMutex = Box::leak(Box::new(SharedMutex::map(file)?));
        let (held, _) = mutex.acquire()?;
        std::mem::forget(held);
        Ok(Self { mutex })
    }

    /// The index of the word to look at.
    #[must_use]
    pub fn word(&self) -> usize {
        self.mutex.word_index()
    }

    /// The page.
    #[must_use]
    pub fn words(&self) -> &'static SharedWords {
        self.mutex.words()
    }

    /// Whether a lifeline's thread lives, by its word.
    #[inline]
    #[must_use]
    pub fn is_alive(word: &AtomicU32) -> bool {
        SharedMutex::is_held(word)
    }
}
