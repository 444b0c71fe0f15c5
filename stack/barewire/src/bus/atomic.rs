//! Atomics and cells: those of `core`, of `portable-atomic` with that feature, or of a model
//! checker under `--cfg loom` or `--cfg shuttle`.
//!
//! Loom's cell checks that accesses are ordered. So the bus accesses its shared fields through
//! [`Cell::with`] and [`Cell::with_mut`], which cost nothing otherwise.

#[cfg(not(feature = "portable-atomic"))]
use core::sync::atomic as machine;
#[cfg(feature = "portable-atomic")]
use portable_atomic as machine;

/// The word a thread may sleep on, see [`Platform::wait`](super::Platform::wait).
#[cfg(not(any(loom, shuttle)))]
pub use machine::AtomicU32;
#[cfg(not(any(loom, shuttle)))]
pub(crate) use machine::{AtomicPtr, fence};
// Never the checker's: nothing depends on the order of these.
pub(crate) use machine::{AtomicBool, AtomicUsize};

#[cfg(loom)]
pub use loom::sync::atomic::AtomicU32;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicPtr, fence};

#[cfg(shuttle)]
pub use shuttle::sync::atomic::AtomicU32;
#[cfg(shuttle)]
pub(crate) use shuttle::sync::atomic::{AtomicPtr, fence};

pub(crate) use core::sync::atomic::Ordering;

#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell as Cell;

#[cfg(not(loom))]
pub(crate) use plain::Cell;

#[cfg(not(loom))]
mod plain {
    use core::cell::UnsafeCell;

    /// [`UnsafeCell`] with the interface of the checker's cell.
    #[derive(Debug)]
    pub(crate) struct Cell<T: ?Sized>(UnsafeCell<T>);

    impl<T> Cell<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(UnsafeCell::new(value))
        }
    }

    impl<T: ?Sized> Cell<T> {
        /// Calls `f` with the pointer, to read.
        #[inline(always)]
        pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        /// Calls `f` with the pointer, to write.
        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}
