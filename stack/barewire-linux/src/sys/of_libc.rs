//! libc's own robust mutex: musl tells the kernel of a thread's list when the thread uses one, and the tests hold some beside
//! [locks](super::robust).
//!
//! # Safety
//! A mutex is initialised when it is made, and does not move.
#![allow(unsafe_code, reason = "libc's mutexes, which rustix does not have")]

use std::mem::MaybeUninit;

use rustix::io::Errno;

/// A robust mutex of this process.
#[derive(Debug)]
pub(crate) struct OfLibc(Box<libc::pthread_mutex_t>);

// SAFETY: a mutex is for several threads.
unsafe impl Sync for OfLibc {}

fn check(errno: i32) -> Result<(), Errno> {
    if errno == 0 { Ok(()) } else { Err(Errno::from_raw_os_error(errno)) }
}

impl OfLibc {
    /// A free mutex, with priority inheritance or without.
    pub(crate) fn new(inherits: bool) -> Result<Self, Errno> {
        let mut attributes = MaybeUninit::uninit();
        let attributes = attributes.as_mut_ptr();
        let mut mutex = Box::new(MaybeUninit::uninit());
        let protocol = if inherits { libc::PTHREAD_PRIO_INHERIT } else { libc::PTHREAD_PRIO_NONE };
        // SAFETY: the pointer leads to room for attributes, which this initialises.
        check(unsafe { libc::pthread_mutexattr_init(attributes) })?;
        // SAFETY: initialised attributes, as in the next ones.
        check(unsafe {
            libc::pthread_mutexattr_setrobust(attributes, libc::PTHREAD_MUTEX_ROBUST)
        })?;
        let between = libc::PTHREAD_PROCESS_SHARED;
        // musl lists no others.
        // SAFETY: as above.
        check(unsafe { libc::pthread_mutexattr_setpshared(attributes, between) })?;
        // SAFETY: as above.
        check(unsafe { libc::pthread_mutexattr_setprotocol(attributes, protocol) })?;
        // SAFETY: the pointers lead to room for a mutex, and to attributes.
        check(unsafe { libc::pthread_mutex_init(mutex.as_mut_ptr(), attributes) })?;
        // SAFETY: as above, and not used again.
        check(unsafe { libc::pthread_mutexattr_destroy(attributes) })?;
        // SAFETY: initialised above.
        Ok(Self(unsafe { mutex.assume_init() }))
    }

    fn raw(&self) -> *mut libc::pthread_mutex_t {
        std::ptr::from_ref(&*self.0).cast_mut()
    }

    /// Acquires it. `EOWNERDEAD` if its owner died holding it. The caller then holds it, and it is
    /// consistent again.
    pub(crate) fn lock(&self) -> Result<(), Errno> {
        // SAFETY: module, Safety.
        let locked = check(unsafe { libc::pthread_mutex_lock(self.raw()) });
        if locked == Err(Errno::from_raw_os_error(libc::EOWNERDEAD)) {
            // SAFETY: as above, and held.
            check(unsafe { libc::pthread_mutex_consistent(self.raw()) })?;
        }
        locked
    }

    /// Releases it.
    pub(crate) fn unlock(&self) -> Result<(), Errno> {
        // SAFETY: module, Safety; libc refuses it in a thread that does not hold it.
        check(unsafe { libc::pthread_mutex_unlock(self.raw()) })
    }
}
