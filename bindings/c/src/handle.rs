//! Handles: numbers that C code takes for pointers.
//!
//! # How it works
//! A handle is an index, a kind and a generation. Each kind has a [`Table`] of slots. A slot's state is one word:
//! the generation, whether its object is open, and how many calls are using it.
//!
//! 1. Entering a call adds a use, if generation and flag say that the handle is the open object's.
//! 2. Closing removes the flag, so that later calls fail, and counts as a use.
//! 3. The last use of a closed object drops it and raises the generation, which frees the slot.
//!
//! # Ordering
//! The object is written before the flag is set with `Release`, and read after the state was read with `Acquire`.
//! Uses end with `Release`, and the last of them begins the drop with `Acquire`.
//!
//! # Safety
//! A slot's pointer is written while its state has neither flag nor uses, and freed by the last use of a closed
//! object; so it is valid while a [`Use`] exists.
#![allow(unsafe_code, reason = "a table's objects live while they are used")]

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use barewire_linux::process_number;

use crate::error::bw_error;
use crate::failure::Failure;

/// The object is open.
const LIVE: u64 = 1 << 31;
/// The slot has an object, or is about to.
const OCCUPIED: u64 = 1 << 30;
/// How many calls use it.
const USES: u64 = OCCUPIED - 1;
const GENERATION: u32 = 32;

#[cfg(target_pointer_width = "64")]
const INDEX_BITS: u32 = 24;
#[cfg(not(target_pointer_width = "64"))]
const INDEX_BITS: u32 = 14;
const KIND_BITS: u32 = 4;
const GENERATION_BITS: u32 = {
    let rest = usize::BITS - INDEX_BITS - KIND_BITS;
    if rest > 32 { 32 } else { rest }
};

const CHUNK: usize = 64;
const CHUNKS: usize = 256;
/// How many objects of a kind there may be at a time.
const MAX: usize = CHUNK * CHUNKS;
const _: () = assert!(MAX <= 1 << INDEX_BITS, "each slot has an index");

struct Slot<T> {
    state: AtomicU64,
    object: AtomicPtr<T>,
    /// The generation plus one that a fork closed in this process; 0 for none.
    forked: AtomicU32,
}

impl<T> Slot<T> {
    const fn new() -> Self {
        Self {
            state: AtomicU64::new(0),
            object: AtomicPtr::new(ptr::null_mut()),
            forked: AtomicU32::new(0),
        }
    }
}

/// No process's number.
const CLOSING: u32 = u32::MAX;

type Chunk<T> = [Slot<T>; CHUNK];

/// The objects of one kind.
pub(crate) struct Table<T> {
    kind: usize,
    /// The name of such an object in errors.
    name: &'static str,
    chunks: [AtomicPtr<Chunk<T>>; CHUNKS],
    /// The slot at which the search for a free one begins.
    next: AtomicU32,
    /// The process whose objects these are; 0 before the first, [`CLOSING`] while a child closes its parent's.
    process: AtomicU32,
    _objects: PhantomData<T>,
}

// SAFETY: threads share objects by the uses of a slot, and the last of them drops it.
unsafe impl<T: Send + Sync> Sync for Table<T> {}

/// One use of an object, for one call.
pub(crate) struct Use<T: 'static> {
    slot: &'static Slot<T>,
}

fn generation_of(state: u64) -> u32 {
    (state >> GENERATION) as u32
}

impl<T: Send + Sync + 'static> Table<T> {
    pub(crate) const fn new(kind: usize, name: &'static str) -> Self {
        assert!(kind > 0 && kind < 1 << KIND_BITS, "a kind's number has few bits and is not zero");
        Self {
            kind,
            name,
            chunks: [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS],
            next: AtomicU32::new(0),
            process: AtomicU32::new(0),
            _objects: PhantomData,
        }
    }

    #[inline]
    fn slot(&'static self, index: usize) -> Option<&'static Slot<T>> {
        let chunk = self.chunks.get(index / CHUNK)?.load(Ordering::Acquire);
        // SAFETY: null, or leaked by `chunk`.
        let chunk = unsafe { chunk.as_ref() }?;
        Some(&chunk[index % CHUNK])
    }

    /// The slots of a chunk, made if they are missing.
    fn chunk(&'static self, number: usize) -> &'static Chunk<T> {
        let place = &self.chunks[number];
        let made = place.load(Ordering::Acquire);
        // SAFETY: null, or leaked below.
        if let Some(chunk) = unsafe { made.as_ref() } {
            return chunk;
        }
        let new = Box::into_raw(Box::new([const { Slot::new() }; CHUNK]));
        match place.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: leaked just now, and never freed.
            Ok(_) => unsafe { &*new },
            Err(other) => {
                // SAFETY: made above, and not seen by any other thread yet.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: leaked by another thread, and never freed.
                unsafe { &*other }
            }
        }
    }

    /// Keeps `object`, and returns its handle.
    pub(crate) fn insert(&'static self, object: T) -> Result<*mut c_void, Failure> {
        self.notice_fork();
        let object = Box::into_raw(Box::new(object));
        let begin = self.next.load(Ordering::Relaxed) as usize;
        for index in (begin..MAX).chain(0..begin) {
            let slot = &self.chunk(index / CHUNK)[index % CHUNK];
            let free = slot.state.load(Ordering::Relaxed);
            let taken = free | OCCUPIED;
            if free & (LIVE | OCCUPIED | USES) != 0
                || slot
                    .state
                    .compare_exchange(free, taken, Ordering::Acquire, Ordering::Relaxed)
                    .is_err()
            {
                continue;
            }
            slot.object.store(object, Ordering::Relaxed);
            slot.state.store(taken | LIVE, Ordering::Release);
            self.next.store((index + 1) as u32 % MAX as u32, Ordering::Relaxed);
            let generation = generation_of(free) as usize & ((1 << GENERATION_BITS) - 1);
            let number = (generation << KIND_BITS | self.kind) << INDEX_BITS | index;
            return Ok(ptr::without_provenance_mut(number));
        }
        // SAFETY: made above, and in no slot.
        drop(unsafe { Box::from_raw(object) });
        Err(Failure::new(
            bw_error::BW_ERROR_MEMORY,
            format!("there are {MAX} of the kind {} already: close some", self.name),
        ))
    }

    /// Enters a call with the object of that handle.
    #[inline]
    pub(crate) fn get<H>(&'static self, handle: *const H) -> Result<Use<T>, Failure> {
        self.enter(handle.addr(), |state| Some(state + 1))
    }

    /// As `get`, but exclusive: it fails while another call uses the object.
    #[inline]
    pub(crate) fn get_alone<H>(&'static self, handle: *const H) -> Result<Use<T>, Failure> {
        self.enter(handle.addr(), |state| (state & USES == 0).then_some(state + 1))
    }

    /// Closes the object: later calls with its handle fail. It is dropped with its last use.
    pub(crate) fn close<H>(&'static self, handle: *const H) -> Result<Use<T>, Failure> {
        self.enter(handle.addr(), |state| Some((state & !LIVE) + 1))
    }

    #[inline]
    fn enter(
        &'static self,
        number: usize,
        next: impl Fn(u64) -> Option<u64>,
    ) -> Result<Use<T>, Failure> {
        self.notice_fork();
        let index = number & ((1 << INDEX_BITS) - 1);
        if number >> INDEX_BITS & ((1 << KIND_BITS) - 1) != self.kind {
            return Err(self.wrong(number, None));
        }
        let Some(slot) = self.slot(index) else { return Err(self.wrong(number, None)) };
        let generation = number >> (INDEX_BITS + KIND_BITS);
        let mut state = slot.state.load(Ordering::Relaxed);
        loop {
            let same = generation_of(state) as usize & ((1 << GENERATION_BITS) - 1) == generation;
            if !same || state & LIVE == 0 {
                return Err(self.wrong(number, Some(slot)));
            }
            let Some(entered) = next(state) else { return Err(self.in_use()) };
            let swapped = slot.state.compare_exchange_weak(
                state,
                entered,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match swapped {
                Ok(_) => return Ok(Use { slot }),
                Err(now) => state = now,
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn in_use(&self) -> Failure {
        let name = self.name;
        let text = format!("another thread uses this {name}: one thread at a time may");
        Failure::new(bw_error::BW_ERROR_BUSY, text)
    }

    /// Why that number is no handle of this table.
    #[cold]
    #[inline(never)]
    fn wrong(&self, number: usize, slot: Option<&Slot<T>>) -> Failure {
        let name = self.name;
        let generation = number >> (INDEX_BITS + KIND_BITS);
        let mask = (1 << GENERATION_BITS) - 1;
        if number == 0 {
            let text = format!("the {name} is NULL: pass what its open function stored");
            return Failure::new(bw_error::BW_ERROR_NULL, text);
        }
        let Some(slot) = slot else {
            let text =
                format!("{number:#x} is no handle of a {name}: pass what its open function stored");
            return Failure::new(bw_error::BW_ERROR_HANDLE, text);
        };
        let forked = slot.forked.load(Ordering::Relaxed);
        if forked > 0 && (forked - 1) as usize & mask == generation {
            let text = format!(
                "the {name} is of the process that called fork: open the bus again in the child"
            );
            return Failure::new(bw_error::BW_ERROR_FORKED, text);
        }
        Failure::new(bw_error::BW_ERROR_CLOSED, format!("this {name} was closed"))
    }

    /// Closes the parent's objects, if this is a child with a copy of its memory.
    #[inline]
    fn notice_fork(&'static self) {
        let process = process_number();
        if self.process.load(Ordering::Acquire) != process {
            self.enter_process(process);
        }
    }

    #[cold]
    #[inline(never)]
    fn enter_process(&'static self, process: u32) {
        loop {
            let seen = self.process.load(Ordering::Acquire);
            if seen == process {
                return;
            }
            let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
            if seen == CLOSING {
                std::thread::yield_now();
            } else if self.process.compare_exchange(seen, CLOSING, success, failure).is_ok() {
                self.forked();
                self.process.store(process, Ordering::Release);
            }
        }
    }

    /// Closes all objects and frees none: only the parent's other threads used them. Writes atomics and nothing else.
    fn forked(&'static self) {
        for chunk in &self.chunks {
            // SAFETY: null, or leaked by `chunk`.
            let Some(chunk) = (unsafe { chunk.load(Ordering::Relaxed).as_ref() }) else { continue };
            for slot in chunk {
                let state = slot.state.load(Ordering::Relaxed);
                if state & OCCUPIED != 0 {
                    let generation = generation_of(state);
                    slot.forked.store(generation.wrapping_add(1).max(1), Ordering::Relaxed);
                    // Occupied for ever: an object that another thread may have been using is never
                    // dropped.
                    let next = u64::from(generation.wrapping_add(1)) << GENERATION;
                    slot.state.store(next | OCCUPIED | 1, Ordering::Relaxed);
                }
            }
        }
    }
}

impl<T> Use<T> {
    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut T {
        self.slot.object.load(Ordering::Relaxed)
    }
}

impl<T> Deref for Use<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: it lives while it is used (module, Safety).
        unsafe { &*self.as_ptr() }
    }
}

impl<T> Drop for Use<T> {
    #[inline]
    fn drop(&mut self) {
        let before = self.slot.state.fetch_sub(1, Ordering::Release);
        if before & (LIVE | USES) == 1 {
            self.free();
        }
    }
}

impl<T> Use<T> {
    #[cold]
    #[inline(never)]
    fn free(&self) {
        // Pairs with the other uses' ends.
        let state = self.slot.state.load(Ordering::Acquire);
        let object = self.slot.object.swap(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: the last use of a closed object (module, Safety).
        let object = unsafe { Box::from_raw(object) };
        let next = u64::from(generation_of(state).wrapping_add(1)) << GENERATION;
        self.slot.state.store(next, Ordering::Release);
        drop(object);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    static NUMBERS: Table<Arc<u32>> = Table::new(1, "number");
    static ALONE: Table<Arc<u32>> = Table::new(2, "other");

    fn code<T>(result: Result<T, Failure>) -> bw_error {
        result.map(drop).expect_err("it fails").code
    }

    #[test]
    fn a_closed_object_lives_while_it_is_used_and_its_handle_never_again() {
        let object = Arc::new(7);
        let handle = NUMBERS.insert(Arc::clone(&object)).expect("room");
        let used = NUMBERS.get(handle).expect("open");
        drop(NUMBERS.close(handle).expect("open"));
        assert_eq!((**used, Arc::strong_count(&object)), (7, 2));
        assert_eq!(code(NUMBERS.get(handle)), bw_error::BW_ERROR_CLOSED);
        assert_eq!(code(NUMBERS.close(handle)), bw_error::BW_ERROR_CLOSED, "a second close");
        drop(used);
        assert_eq!(Arc::strong_count(&object), 1, "freed");
        // Opens further objects until one reuses the slot.
        let index = |handle: *mut c_void| handle.addr() & ((1 << INDEX_BITS) - 1);
        let mut others = Vec::new();
        while others.last().is_none_or(|&other| index(other) != index(handle)) {
            others.push(NUMBERS.insert(Arc::clone(&object)).expect("room"));
        }
        assert_eq!(others.iter().filter(|&&other| other == handle).count(), 0);
        assert_eq!(code(NUMBERS.get(handle)), bw_error::BW_ERROR_CLOSED, "its slot has another");
        assert_eq!(code(NUMBERS.close(handle)), bw_error::BW_ERROR_CLOSED, "which stays");
        others.into_iter().for_each(|other| drop(NUMBERS.close(other).expect("open")));
    }

    #[test]
    fn what_is_no_handle_is_told_apart() {
        let handle = ALONE.insert(Arc::new(1)).expect("room");
        assert_eq!(code(ALONE.get(ptr::null::<c_void>())), bw_error::BW_ERROR_NULL);
        assert_eq!(code(NUMBERS.get(handle)), bw_error::BW_ERROR_HANDLE, "of another kind");
        for rubbish in [1_usize, 0xdead_beef, usize::MAX, &raw const handle as usize] {
            let pointer = ptr::without_provenance::<c_void>(rubbish);
            let code = code(ALONE.get(pointer));
            assert!(matches!(code, bw_error::BW_ERROR_HANDLE | bw_error::BW_ERROR_CLOSED));
        }
        let alone = ALONE.get_alone(handle).expect("nobody uses it");
        assert_eq!(code(ALONE.get_alone(handle)), bw_error::BW_ERROR_BUSY);
        drop(alone);
        drop(ALONE.get_alone(handle).expect("nobody uses it any more"));
        ALONE.forked();
        assert_eq!(code(ALONE.get(handle)), bw_error::BW_ERROR_FORKED);
        assert_eq!(code(ALONE.close(handle)), bw_error::BW_ERROR_FORKED);
    }

    #[test]
    fn threads_that_close_while_others_use_it_free_it_once() {
        for _ in 0..200 {
            let object = Arc::new(3);
            let handle = NUMBERS.insert(Arc::clone(&object)).expect("room").addr();
            let handle = || ptr::without_provenance::<c_void>(handle);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        while let Ok(used) = NUMBERS.get(handle()) {
                            assert_eq!(**used, 3);
                        }
                    });
                }
                let closed = [0, 1].map(|_| scope.spawn(|| NUMBERS.close(handle()).is_ok()));
                let closed = closed.map(|thread| thread.join().expect("no panic"));
                assert!(closed[0] != closed[1], "one of them closes");
            });
            assert_eq!(Arc::strong_count(&object), 1);
        }
    }
}
