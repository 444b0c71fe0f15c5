//! A bus's lock, held by a Python thread between two of its calls.
//!
//! # How it works
//! `with bus.lock():` acquires the bus and keeps the right to it here. If the locking thread sends a message, the
//! bus reports that it would wait for itself, and the message runs on the lock kept here. Other threads wait, and
//! check for signals meanwhile.
//!
//! # Safety
//! 1. The lock borrows the bus, which the clone beside it keeps: fields are dropped in their order.
//! 2. One thread owns the lock. `owner` names it; no other thread touches the lock.
#![allow(unsafe_code, reason = "keeps a lock beside the bus that it borrows")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use barewire::bus::{Bus, Locked};
use barewire::spi::{MessageError, Transfer};
use barewire_open::{AnyBus, AnyDevice, DynController};
use pyo3::prelude::*;

use super::SharedBus;
use crate::error::{self, Class};

/// How often a waiting thread looks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// A lock that a thread left here between two calls.
struct KeptLock(Locked<'static, DynController>);

// SAFETY: only the owner touches it (module, Safety 2).
unsafe impl Send for KeptLock {}

struct State {
    kept: Option<KeptLock>,
    owner: Option<ThreadId>,
    /// Dropped after `kept` (module, Safety 1).
    any: AnyBus,
}

/// The holder of the bus's lock.
pub(crate) struct Turnstile {
    state: Mutex<State>,
    left: Condvar,
    /// Whether a thread has it: changed with the interpreter held.
    held: AtomicBool,
}

impl Turnstile {
    pub(super) fn new(any: &AnyBus) -> Self {
        let state = State { kept: None, owner: None, any: any.clone() };
        Self { state: Mutex::new(state), left: Condvar::new(), held: AtomicBool::new(false) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a thread has it.
    #[inline]
    pub(super) fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    /// Whether the calling thread has it.
    pub(crate) fn is_mine(&self) -> bool {
        self.is_held() && self.state().owner == Some(thread::current().id())
    }

    /// Waits until no other thread has it. A signal ends the waiting.
    pub(super) fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let me = thread::current().id();
        let of_another = |owner: &Option<ThreadId>| owner.is_some_and(|owner| owner != me);
        while self.is_held() && of_another(&self.state().owner) {
            py.detach(|| {
                let wait = |state| self.left.wait_timeout(state, LOOK);
                let state = self.state();
                if of_another(&state.owner) {
                    drop(wait(state));
                }
            });
            py.check_signals()?;
        }
        Ok(())
    }

    /// Acquires the bus for the calling thread.
    pub(crate) fn acquire(&self, py: Python<'_>, shared: &SharedBus) -> PyResult<()> {
        shared.check_process(py)?;
        let me = thread::current().id();
        loop {
            self.wait(py)?;
            let mut state = self.state();
            match state.owner {
                None => {
                    state.owner = Some(me);
                    self.held.store(true, Ordering::Relaxed);
                    break;
                }
                Some(owner) if owner == me => {
                    let text = "this thread has the bus's lock already".to_owned();
                    return Err(error::exception(py, Class::Deadlock, libc::EDEADLK, text));
                }
                // Another came first.
                Some(_) => {}
            }
        }
        let _busy = shared.busy(py);
        py.detach(|| {
            let bus: *const Bus<DynController> = Arc::as_ptr(shared.any.bus());
            // SAFETY: `State::any` keeps the bus for longer than the lock (module, Safety 1).
            let bus: &'static Bus<DynController> = unsafe { &*bus };
            let kept = KeptLock(bus.lock());
            self.state().kept = Some(kept);
        });
        Ok(())
    }

    /// Releases the bus; false if the calling thread does not have it.
    pub(crate) fn release(&self, py: Python<'_>) -> bool {
        let kept = {
            let mut state = self.state();
            if state.owner != Some(thread::current().id()) {
                return false;
            }
            state.kept.take()
        };
        py.detach(|| drop(kept));
        self.state().owner = None;
        self.held.store(false, Ordering::Relaxed);
        self.left.notify_all();
        true
    }

    /// Runs a message on the calling thread's lock; `None` if it has none.
    pub(super) fn sync(
        &self,
        device: &AnyDevice,
        message: &mut [Transfer<'_>],
    ) -> Option<Result<usize, MessageError>> {
        // Taken out of the state, so that its mutex is not held while the message runs.
        let mut kept = {
            let mut state = self.state();
            if state.owner != Some(thread::current().id()) {
                return None;
            }
            state.kept.take()?
        };
        let ran = kept.0.sync(&device.device(), message);
        self.state().kept = Some(kept);
        Some(ran)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(kept) = self.kept.take() {
            // The owning thread never released the bus. This may be another thread, which must not release
            // it. So the bus stays acquired; no user of it is left.
            std::mem::forget(kept);
        }
        let _ = &self.any;
    }
}
