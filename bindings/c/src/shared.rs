//! A bus, shared by its handles. It also has the lock that a thread holds over several calls, and the messages that
//! callbacks freed.
//!
//! # How it works
//! The core's lock is a guard on the stack. Here it lies in the bus, and `owner` names the thread that holds
//! it. A thread that ends with a lock releases it: each thread has a list of its locks, whose destructor does
//! that.
//!
//! While a callback runs, its thread has a [`Frame`] that names the bus. A message that is freed inside a callback,
//! on any bus, cannot be dropped there, because that may wait for the callback. It is kept, and a later call outside
//! drops it.
//!
//! # Safety
//! `locked` is used only by the thread that `owner` names. References to the bus are `'static` where their holder keeps
//! the [`SharedBus`] for longer than them.
#![allow(unsafe_code, reason = "a lock and devices live beside the bus that they borrow")]

use std::cell::{Cell, RefCell, UnsafeCell};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use barewire::bus::{Bus, Locked, Platform};
use barewire_linux::platform::FUTEX;
use barewire_linux::process_number;
use barewire_open::{AnyBus, AnyTimer, DynController};

use crate::error::bw_error;
use crate::failure::Failure;
use crate::handle::Table;

/// The buses that are open.
pub(crate) static BUSES: Table<Arc<SharedBus>> = Table::new(1, "bus");

/// An object that a callback freed.
pub(crate) type Freed = Box<dyn Send>;

pub(crate) struct SharedBus {
    // Dropped before the bus.
    locked: UnsafeCell<Option<Locked<'static, DynController>>>,
    freed: Mutex<Vec<Freed>>,
    /// The context of the thread that has the lock; 0 for none.
    owner: AtomicUsize,
    /// The clock that `bw_now_ns` reads.
    pub(crate) clock: Mutex<AnyTimer>,
    pub(crate) bus: AnyBus,
}

// SAFETY: the lock is used by its owner alone (module, Safety); the rest may be sent.
unsafe impl Send for SharedBus {}

// SAFETY: likewise.
unsafe impl Sync for SharedBus {}

fn context() -> usize {
    FUTEX.context()
}

fn would_deadlock(why: &str) -> Failure {
    Failure::new(bw_error::BW_ERROR_WOULD_DEADLOCK, why)
}

impl SharedBus {
    pub(crate) fn new(bus: AnyBus) -> Arc<Self> {
        Arc::new(Self {
            locked: UnsafeCell::new(None),
            freed: Mutex::default(),
            owner: AtomicUsize::new(0),
            clock: Mutex::new(bus.timer()),
            bus,
        })
    }

    /// The bus, for objects that are kept beside this.
    ///
    /// # Safety
    /// The reference is not used after `self` was dropped.
    pub(crate) unsafe fn bus(&self) -> &'static Bus<DynController> {
        // SAFETY: the bus does not move, and the caller keeps it.
        unsafe { &*ptr::from_ref(&**self.bus.bus()) }
    }

    /// Whether the calling thread has the lock.
    #[inline]
    pub(crate) fn is_locked_here(&self) -> bool {
        let owner = self.owner.load(Ordering::Relaxed);
        owner != 0 && owner == context()
    }

    /// Runs `with` under the calling thread's lock; `None` if it has none.
    #[inline]
    pub(crate) fn with_lock<R>(
        &self,
        with: impl FnOnce(&mut Locked<'static, DynController>) -> R,
    ) -> Option<R> {
        if !self.is_locked_here() {
            return None;
        }
        // SAFETY: the calling thread's, and `with` cannot reach it again: the core calls no callback under a lock.
        let locked = unsafe { &mut *self.locked.get() };
        locked.as_mut().map(with)
    }

    /// Locks the bus for the calling thread. Waits for the bus, unless `try_` is set.
    pub(crate) fn lock(self: &Arc<Self>, try_: bool) -> Result<(), Failure> {
        if self.is_locked_here() {
            return Err(would_deadlock("this thread has locked the bus already: unlock it first"));
        }
        if in_callback(self) {
            return Err(would_deadlock("a callback has the bus: lock it outside"));
        }
        // SAFETY: the lock is dropped before `self`.
        let bus = unsafe { self.bus() };
        let locked = if try_ { bus.try_lock() } else { Some(bus.lock()) };
        let busy = || Failure::new(bw_error::BW_ERROR_BUSY, "the bus is busy");
        let locked = locked.ok_or_else(busy)?;
        if self.bus.is_closed() {
            return Err(Failure::closed(&self.bus));
        }
        // SAFETY: only the thread that holds the bus's lock gets here.
        unsafe { *self.locked.get() = Some(locked) };
        self.owner.store(context(), Ordering::Relaxed);
        let held = HeldBus { shared: Arc::clone(self), process: process_number() };
        // A thread that is ending has no list any more, so nothing is released at its end.
        let _ = HELD.try_with(|list| list.borrow_mut().push(held));
        Ok(())
    }

    pub(crate) fn unlock(self: &Arc<Self>) -> Result<(), Failure> {
        if !self.is_locked_here() {
            let text =
                "this thread does not hold the bus's lock: the thread that locked it unlocks it";
            return Err(Failure::new(bw_error::BW_ERROR_NOT_LOCKED, text));
        }
        let of_others = |held: &mut HeldBus| !Arc::ptr_eq(&held.shared, self);
        let release = HELD.try_with(|list| {
            let mut list = list.borrow_mut();
            let index = list.iter_mut().position(|held| !of_others(held))?;
            Some(list.swap_remove(index))
        });
        match release {
            Ok(Some(held)) => drop(held),
            _ => self.release(),
        }
        Ok(())
    }

    fn release(&self) {
        if !self.is_locked_here() {
            return;
        }
        // SAFETY: the calling thread's.
        let locked = unsafe { (*self.locked.get()).take() };
        self.owner.store(0, Ordering::Relaxed);
        // It serves what was queued, so callbacks may run here.
        drop(locked);
    }

    /// Keeps an object that a callback freed.
    pub(crate) fn keep(&self, freed: Freed) {
        self.freed.lock().unwrap_or_else(PoisonError::into_inner).push(freed);
    }

    /// Drops what callbacks freed, outside of them.
    pub(crate) fn sweep(&self) {
        if !in_any_callback() {
            let freed = mem::take(&mut *self.freed.lock().unwrap_or_else(PoisonError::into_inner));
            drop(freed);
        }
    }
}

/// A lock of this thread.
struct HeldBus {
    shared: Arc<SharedBus>,
    process: u32,
}

impl Drop for HeldBus {
    fn drop(&mut self) {
        // In a child, the parent has the bus.
        if self.process == process_number() {
            self.shared.release();
        }
    }
}

thread_local! {
    static HELD: RefCell<Vec<HeldBus>> = const { RefCell::new(Vec::new()) };
    static FRAME: Cell<*const Frame> = const { Cell::new(ptr::null()) };
}

/// A callback that runs in this thread.
pub(crate) struct Frame {
    bus: *const SharedBus,
    outer: *const Frame,
}

/// Runs a callback of that bus.
pub(crate) fn within_callback<R>(shared: &SharedBus, run: impl FnOnce() -> R) -> R {
    struct Leave(*const Frame);
    impl Drop for Leave {
        fn drop(&mut self) {
            FRAME.set(self.0);
        }
    }
    let frame = Frame { bus: shared, outer: FRAME.get() };
    let _leave = Leave(frame.outer);
    FRAME.set(&raw const frame);
    run()
}

/// Whether a callback runs in this thread.
pub(crate) fn in_any_callback() -> bool {
    !FRAME.get().is_null()
}

/// Whether a callback of that bus runs in this thread.
pub(crate) fn in_callback(shared: &SharedBus) -> bool {
    let mut frame = FRAME.get();
    // SAFETY: frames are on this thread's stack, below the caller, and null ends the list.
    while let Some(inner) = unsafe { frame.as_ref() } {
        if ptr::eq(inner.bus, shared) {
            return true;
        }
        frame = inner.outer;
    }
    false
}

/// Refuses a call from a callback that would wait for the same callback.
pub(crate) fn outside_callback(shared: &SharedBus, doing: &str) -> Result<(), Failure> {
    if in_callback(shared) {
        return Err(would_deadlock(&format!(
            "{doing} would wait for this callback: do it outside"
        )));
    }
    Ok(())
}
