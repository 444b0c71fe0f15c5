//! Who decides which IOVA a mapping gets.
//!
//! A [`Domain`](crate::Domain) asks an [`IovaAllocator`]; [`IovaWindow`] is one: a bitmap over a
//! window, aligned so that blocks can be used, and a short list of claims outside it.
//!
//! # Safety
//! That two ranges never overlap is what lets a domain work on both at the same time.
#![allow(unsafe_code, reason = "a trait whose promises tables are changed by")]

mod bits;
mod window;

pub use window::IovaWindow;

use core::fmt;
use core::ops::Range;

use crate::address::Iova;

/// Hands out ranges of IOVAs.
///
/// # Safety
/// Ranges that were handed out, by `alloc` or `claim`, and not released do not overlap. They begin
/// and end at multiples of the granule.
pub unsafe trait IovaAllocator {
    /// `size` bytes, a multiple of the granule, anywhere; `None` if there is no such gap.
    ///
    /// Best so aligned that `size` can be mapped by the largest blocks.
    fn alloc(&self, size: u64) -> Option<Iova>;

    /// These addresses and no others: for identity maps, and for what no mapping may ever use, as
    /// the doorbells of message-signalled interrupts.
    ///
    /// # Errors
    /// [`ClaimError`].
    fn claim(&self, range: Range<Iova>) -> Result<(), ClaimError>;

    /// Takes a range back.
    ///
    /// # Safety
    /// It is exactly one that was handed out, and nobody uses it any more: nothing is mapped
    /// there, and no TLB remembers that something was.
    unsafe fn release(&self, range: Range<Iova>);
}

// SAFETY: the very same allocator.
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

/// Why a range was not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ClaimError {
    /// Somebody has a part of it.
    Taken,
    /// It is empty, or its ends are no multiples of the granule.
    Unaligned {
        /// The granule in bytes.
        to: u64,
    },
    /// No more can be remembered outside the window: this many are.
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
