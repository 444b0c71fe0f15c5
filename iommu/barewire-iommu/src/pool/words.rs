//! Descriptors as two 32-bit words, for processors without 64-bit atomics.
//!
//! A walker reads an entry in one access and must see its old value, its new value, or a fault. The
//! valid bit is in the low word. Hence:
//! 1. The high word never changes while the low word is valid.
//! 2. To make an entry valid, store the high word first and the low word last. To remove it, clear
//!    the low word first. To replace a valid entry (when a block is split), remove it in between.
//! 3. Two threads may publish the same entry. If the high word is right already, as for tables
//!    below 4 GiB, one exchange of the low word decides. Otherwise the low word is claimed by a
//!    value without the valid bit, and the other thread waits for the few stores until the entry is
//!    valid.

/// One word of an entry: a processor's atomic, or one that tests observe.
pub(crate) trait Half {
    /// Loads with acquire ordering.
    fn load(&self) -> u32;
    /// Stores with release ordering.
    fn store(&self, value: u32);
    /// Stores `new` if the value is `current`, with acquire and release ordering.
    fn compare_exchange(&self, current: u32, new: u32) -> Result<u32, u32>;
    /// Called while another thread is between its two stores.
    fn wait();
}

const VALID: u32 = 1;

/// A value that is no descriptor of any writer: the address is all ones and the valid bit is 0.
const CLAIMED: u32 = !VALID;

const fn join(low: u32, high: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

const fn halves(value: u64) -> (u32, u32) {
    (value as u32, (value >> 32) as u32)
}

pub(crate) fn load<H: Half>(low: &H, high: &H) -> u64 {
    loop {
        let first = low.load();
        if first != CLAIMED {
            return join(first, high.load());
        }
        H::wait();
    }
}

pub(crate) fn store<H: Half>(low: &H, high: &H, value: u64) {
    let (new_low, new_high) = halves(value);
    if high.load() == new_high {
        low.store(new_low);
        return;
    }
    if low.load() & VALID != 0 {
        low.store(0);
    }
    high.store(new_high);
    low.store(new_low);
}

/// Publishes `new`. `current` is invalid.
pub(crate) fn publish<H: Half>(low: &H, high: &H, current: u64, new: u64) -> Result<(), u64> {
    let (current_low, _) = halves(current);
    let (new_low, new_high) = halves(new);
    let in_place = high.load() == new_high;
    let claim = if in_place { new_low } else { CLAIMED };
    if low.compare_exchange(current_low, claim).is_err() {
        return Err(load(low, high));
    }
    if !in_place {
        high.store(new_high);
        low.store(new_low);
    }
    Ok(())
}

#[cfg(not(target_has_atomic = "64"))]
pub(crate) mod entry {
    //! The same operations by pointer.
    #![allow(
        unsafe_code,
        reason = "table memory is reached by pointer, one atomic access at a time"
    )]

    use core::ptr::NonNull;
    use core::sync::atomic::{AtomicU32, Ordering};

    use super::Half;

    impl Half for AtomicU32 {
        fn load(&self) -> u32 {
            self.load(Ordering::Acquire)
        }

        fn store(&self, value: u32) {
            self.store(value, Ordering::Release);
        }

        fn compare_exchange(&self, current: u32, new: u32) -> Result<u32, u32> {
            self.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)
        }

        fn wait() {
            core::hint::spin_loop();
        }
    }

    /// # Safety
    /// `index` is within the table at `base`.
    unsafe fn at<'a>(base: NonNull<u64>, index: usize) -> (&'a AtomicU32, &'a AtomicU32) {
        // SAFETY: the caller promises that the entry is within the table.
        let entry = unsafe { base.add(index) }.cast::<u32>();
        // SAFETY: the second word of the same entry.
        let second = unsafe { entry.add(1) };
        // SAFETY: an aligned u32 that is only accessed atomically while published.
        let first = unsafe { AtomicU32::from_ptr(entry.as_ptr()) };
        // SAFETY: as for the first.
        let second = unsafe { AtomicU32::from_ptr(second.as_ptr()) };
        if cfg!(target_endian = "little") { (first, second) } else { (second, first) }
    }

    /// # Safety
    /// `index` lies within the table at `base`.
    pub(crate) unsafe fn load(base: NonNull<u64>, index: usize) -> u64 {
        // SAFETY: the caller's promise is the same.
        let (low, high) = unsafe { at(base, index) };
        super::load(low, high)
    }

    /// # Safety
    /// As for `load`.
    pub(crate) unsafe fn store(base: NonNull<u64>, index: usize, value: u64) {
        // SAFETY: the caller's promise is the same.
        let (low, high) = unsafe { at(base, index) };
        super::store(low, high, value);
    }

    /// The halves of a leaf are ordered too.
    ///
    /// # Safety
    /// As for `load`.
    pub(crate) unsafe fn store_leaf(base: NonNull<u64>, index: usize, value: u64) {
        // SAFETY: the caller's promise is the same.
        unsafe { store(base, index, value) };
    }

    /// # Safety
    /// As for `load`.
    pub(crate) unsafe fn publish(
        base: NonNull<u64>,
        index: usize,
        current: u64,
        new: u64,
    ) -> Result<(), u64> {
        // SAFETY: the caller's promise is the same.
        let (low, high) = unsafe { at(base, index) };
        super::publish(low, high, current, new)
    }
}

#[cfg(test)]
mod tests {
    use core::cell::{Cell, RefCell};
    use std::vec::Vec;

    use super::*;

    /// Returns both words, and the values that a walker would have read after each store.
    #[derive(Default)]
    struct Entry {
        low: Cell<u32>,
        high: Cell<u32>,
        seen: RefCell<Vec<u64>>,
    }

    enum Word<'e> {
        Low(&'e Entry),
        High(&'e Entry),
    }

    impl Entry {
        fn of(value: u64) -> Self {
            let (low, high) = halves(value);
            Self { low: Cell::new(low), high: Cell::new(high), ..Self::default() }
        }

        fn words(&self) -> (Word<'_>, Word<'_>) {
            (Word::Low(self), Word::High(self))
        }

        fn value(&self) -> u64 {
            join(self.low.get(), self.high.get())
        }
    }

    impl Word<'_> {
        fn parts(&self) -> (&Cell<u32>, &Entry) {
            match self {
                Word::Low(entry) => (&entry.low, entry),
                Word::High(entry) => (&entry.high, entry),
            }
        }
    }

    impl Half for Word<'_> {
        fn load(&self) -> u32 {
            self.parts().0.get()
        }

        fn store(&self, value: u32) {
            let (word, entry) = self.parts();
            word.set(value);
            entry.seen.borrow_mut().push(entry.value());
        }

        fn compare_exchange(&self, current: u32, new: u32) -> Result<u32, u32> {
            let found = self.load();
            if found == current {
                self.store(new);
                Ok(found)
            } else {
                Err(found)
            }
        }

        fn wait() {
            unreachable!("nobody else is here");
        }
    }

    /// Descriptors that differ in the low word, in the high one, and in both.
    const VALUES: [u64; 8] = [
        0,
        0x1000,
        0x8000_1003,
        0x9000_1003,
        0x0060_0000_8000_1f47,
        0x0060_0001_8000_1f47,
        0x0060_8765_0000_0f45,
        0x0000_8765_0000_1003,
    ];

    /// Whether each value a walker could read was the old one, the new one, or a fault.
    fn whole(entry: &Entry, old: u64, new: u64) {
        for seen in entry.seen.borrow().iter() {
            assert!(*seen == old || *seen == new || seen & 1 == 0, "{old:#x}, {new:#x}: {seen:#x}");
        }
    }

    #[test]
    fn a_walker_sees_old_new_or_a_fault() {
        for old in VALUES {
            for new in VALUES {
                let entry = Entry::of(old);
                let (low, high) = entry.words();
                assert_eq!(load(&low, &high), old);
                store(&low, &high, new);
                assert_eq!(load(&low, &high), new);
                whole(&entry, old, new);
            }
        }
    }

    #[test]
    fn publishing_is_for_who_finds_it_unchanged() {
        for old in VALUES.into_iter().filter(|old| old & 1 == 0) {
            for new in VALUES.into_iter().filter(|new| new & 1 == 1) {
                let entry = Entry::of(old);
                let (low, high) = entry.words();
                assert_eq!(publish(&low, &high, old, new), Ok(()));
                assert_eq!(entry.value(), new);
                whole(&entry, old, new);
                // A publisher that comes late gets the present value and changes nothing.
                let late = new ^ 0x10_0000;
                assert_eq!(publish(&low, &high, old, late), Err(new));
                assert_eq!(entry.value(), new);
            }
        }
    }
}
