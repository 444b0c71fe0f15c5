//! Notices a fork: a bus that the parent opened is the parent's.
//!
//! How it works: `barewire/__init__.py` registers [`forked`] with `os.register_at_fork`, for the child. A bus
//! remembers how often its process had forked from others when it was opened.

use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;

static FORKS: AtomicU32 = AtomicU32::new(0);

/// Counts a fork, in the child.
#[pyfunction]
#[pyo3(name = "_forked")]
pub(crate) fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// How many forks there were between the first process and this one.
#[inline]
pub(crate) fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}
