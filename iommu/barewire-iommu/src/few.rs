//! A list with room for a few items, made and read without touching the room that is not used.
//!
//! # Safety
//! The first items are initialised: their number changes only in this file, after an item was written.
#![allow(unsafe_code, reason = "the list has room that was not written")]

use core::fmt;
use core::mem::MaybeUninit;

/// Up to `N` items, or the fact that there were more.
#[derive(Clone, Copy)]
pub(crate) struct Few<T: Copy, const N: usize> {
    /// The number of items, which are initialised. `N + 1` if there were more.
    len: usize,
    room: [MaybeUninit<T>; N],
}

impl<T: Copy, const N: usize> Few<T, N> {
    /// A list of no item.
    #[inline]
    pub(crate) const fn new() -> Self {
        Self { len: 0, room: [const { MaybeUninit::uninit() }; N] }
    }

    /// A list of one item.
    #[inline]
    pub(crate) const fn one(item: T) -> Self {
        let mut one = Self::new();
        one.room[0].write(item);
        one.len = 1;
        one
    }

    /// Whether there is no item.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The items; `None` if there were too many.
    #[inline]
    pub(crate) fn get(&self) -> Option<&[T]> {
        let items = self.room.get(..self.len)?;
        // SAFETY: as many are initialised, and both have the same layout.
        Some(unsafe { &*(core::ptr::from_ref(items) as *const [T]) })
    }

    /// The items, to be changed; `None` if there were too many.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> Option<&mut [T]> {
        let items = self.room.get_mut(..self.len)?;
        // SAFETY: as many are initialised, and both have the same layout.
        Some(unsafe { &mut *(core::ptr::from_mut(items) as *mut [T]) })
    }

    /// Adds an item, or notes that there were too many.
    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        if let Some(place) = self.room.get_mut(self.len) {
            place.write(item);
        }
        self.len = (self.len + 1).min(N + 1);
    }

    /// Notes that there were too many.
    #[inline]
    pub(crate) fn overflow(&mut self) {
        self.len = N + 1;
    }

    /// Discards all items.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }
}

impl<T: Copy + fmt::Debug, const N: usize> fmt::Debug for Few<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_kept_until_there_are_too_many() {
        let mut few = Few::<u64, 3>::new();
        let items = [7, 8, 9];
        for count in 0..=3 {
            assert_eq!((few.get(), few.is_empty()), (Some(&items[..count]), count == 0));
            few.push(7 + count as u64);
        }
        for _ in 0..3 {
            assert!(few.get().is_none() && few.get_mut().is_none() && !few.is_empty());
            few.push(0);
        }
        few.clear();
        few.push(1);
        few.get_mut().expect("one")[0] += 1;
        assert_eq!(few.get(), Some(&[2][..]));
        few.overflow();
        assert_eq!(few.get(), None);
        assert_eq!(Few::<u64, 3>::one(5).get(), Some(&[5][..]));
    }
}
