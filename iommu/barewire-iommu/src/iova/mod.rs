//! Allocates the IOVA of each mapping.
//!
//! A [`Domain`](crate::Domain) asks an [`IovaAllocator`]. [`IovaWindow`] is the allocator supplied
//! here: a bitmap over a window, aligned so that blocks can be used, and a short list of claims
//! outside the window.
//!
//! # Safety
//! A domain works on two ranges at once because they never overlap: the allocator promises that.
#![allow(unsafe_code, reason = "a trait whose promises tables are changed by")]

mod bits;
mod storage;
mod window;

pub use storage::IovaStorage;
pub use window::IovaWindow;

use core::fmt;
use core::ops::Range;

use crate::address::Iova;

/// Allocates ranges of IOVAs.
///
/// A domain may call it while it keeps all other calls from looking for empty tables. So it must not call that
/// domain, which would wait for itself.
///
/// # Safety
/// Ranges returned by `alloc` or claimed by `claim`, and not yet released, do not overlap. They
/// begin and end at multiples of the granule.
pub unsafe trait IovaAllocator {
    /// Allocates `size` bytes, a multiple of the granule, at any address. `None` if no gap is large
    /// enough.
    ///
    /// Addresses should be aligned so that the largest blocks can map `size` bytes.
    fn alloc(&self, size: u64) -> Option<Iova>;

    /// Allocates exactly this range, for an identity map, or to keep mappings away from addresses
    /// such as the doorbells of message-signalled interrupts.
    ///
    /// # Errors
    /// [`ClaimError`].
    fn claim(&self, range: Range<Iova>) -> Result<(), ClaimError>;

    /// Releases a range.
    ///
    /// # Safety
    /// The range is exactly one that was handed out, and it is unused: nothing is mapped there, and
    /// no TLB holds an entry for it.
    unsafe fn release(&self, range: Range<Iova>);
}

// SAFETY: it is the same allocator.
unsafe impl<A: IovaAllocator + ?Sized> IovaAllocator for &A {
    fn alloc(&self, size: u64) -> Option<Iova> {
        (**self).alloc(size)
    }

    fn claim(&self, range: Range<Iova>) -> Result<(), ClaimError> {
        (**self).claim(range)
    }

    unsafe fn release(&self, range: Range<Iova>) {
        // SAFETY: the caller's promise is the same.
        unsafe { (**self).release(range) }
    }
}

/// Why a claim was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ClaimError {
    /// Part of the range is taken.
    Taken,
    /// The range is empty, or an end is not a multiple of the granule.
    Unaligned {
        /// The granule in bytes.
        to: u64,
    },
    /// The list of claims outside the window, which has this many places, is full.
    TooMany(usize),
}

impl fmt::Display for ClaimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken => f.write_str("a part of the range is in use or reserved: unmap it first"),
            Self::Unaligned { to } => {
                write!(f, "a range is not empty and begins and ends at multiples of {to:#x}")
            }
            Self::TooMany(count) => write!(
                f,
                "{count} ranges outside the allocator's window are claimed, and no more can be \
                 remembered: give it a window that covers them"
            ),
        }
    }
}

impl core::error::Error for ClaimError {}
