//! The memory of a window's bits.
//!
//! # Safety
//! A window that saw other words at a later call would hand out a range twice. So it takes memory
//! from a type whose author promised that it does not happen: `AsMut` promises nothing.
#![allow(unsafe_code, reason = "a promise that ranges are handed out by")]

/// Words whose values only their user changes: the bits of an [`IovaWindow`](super::IovaWindow).
///
/// Arrays and mutable slices of `u64` are storage. With the feature `alloc`, so are `Vec<u64>` and
/// `Box<[u64]>`; without, lend or leak a slice of them.
///
/// # Safety
/// All calls return the same words: as many, and each with the value that was last stored to it by a
/// slice of `words_mut`. That holds when the value has been moved, too.
///
/// # Examples
/// A type that returns some slice is not enough:
///
/// ```compile_fail,E0277
/// use barewire_iommu::{Granule, Iova, IovaWindow};
///
/// /// Returns the other word at each call.
/// struct Fickle([[u64; 1]; 2], usize);
///
/// impl AsRef<[u64]> for Fickle {
///     fn as_ref(&self) -> &[u64] {
///         &self.0[self.1 % 2]
///     }
/// }
///
/// impl AsMut<[u64]> for Fickle {
///     fn as_mut(&mut self) -> &mut [u64] {
///         self.1 += 1;
///         &mut self.0[self.1 % 2]
///     }
/// }
///
/// let storage = Fickle([[0], [0]], 0);
/// IovaWindow::new(Iova(0)..Iova(64 << 12), Granule::Size4K, storage);
/// ```
///
/// These are:
///
/// ```
/// use barewire_iommu::{Granule, Iova, IovaAllocator, IovaWindow};
///
/// let range = Iova(0)..Iova(64 << 12);
/// let owned = IovaWindow::new(range.clone(), Granule::Size4K, [0; 1]);
/// let mut words = vec![0; 1];
/// let lent = IovaWindow::new(range, Granule::Size4K, &mut words[..]);
/// assert_eq!(owned.alloc(0x1000), lent.alloc(0x1000));
/// ```
pub unsafe trait IovaStorage {
    /// The words.
    fn words(&self) -> &[u64];

    /// The same words, to be changed.
    fn words_mut(&mut self) -> &mut [u64];
}

// SAFETY: a slice is its words.
unsafe impl IovaStorage for [u64] {
    #[inline]
    fn words(&self) -> &[u64] {
        self
    }

    #[inline]
    fn words_mut(&mut self) -> &mut [u64] {
        self
    }
}

// SAFETY: an array is its words, and moves with them.
unsafe impl<const N: usize> IovaStorage for [u64; N] {
    #[inline]
    fn words(&self) -> &[u64] {
        self
    }

    #[inline]
    fn words_mut(&mut self) -> &mut [u64] {
        self
    }
}

// SAFETY: it is the same storage, and the reference is exclusive.
unsafe impl<S: IovaStorage + ?Sized> IovaStorage for &mut S {
    #[inline]
    fn words(&self) -> &[u64] {
        (**self).words()
    }

    #[inline]
    fn words_mut(&mut self) -> &mut [u64] {
        (**self).words_mut()
    }
}

// SAFETY: a box is the same storage, which stays where it is when the box is moved.
#[cfg(any(test, feature = "alloc"))]
unsafe impl<S: IovaStorage + ?Sized> IovaStorage for alloc::boxed::Box<S> {
    #[inline]
    fn words(&self) -> &[u64] {
        (**self).words()
    }

    #[inline]
    fn words_mut(&mut self) -> &mut [u64] {
        (**self).words_mut()
    }
}

// SAFETY: a vector that is only reached as a slice keeps its words, and moving it does not move them.
#[cfg(any(test, feature = "alloc"))]
unsafe impl IovaStorage for alloc::vec::Vec<u64> {
    #[inline]
    fn words(&self) -> &[u64] {
        self
    }

    #[inline]
    fn words_mut(&mut self) -> &mut [u64] {
        self
    }
}
