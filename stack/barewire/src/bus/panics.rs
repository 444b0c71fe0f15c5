//! Panics of user code: caught where the bus has something to finish, raised when it has not.
//!
//! # How it works
//! The bus calls code that is not its own: controllers, callbacks, wakers, the platform. Where
//! panics unwind, a panic there is [caught](contain), the bus finishes what it owes to everybody
//! else, and the first panic is [raised](Panics::raise) in the caller that ran the code. Later
//! ones of the same call are told by the panic hook and go no further.
//!
//! `std` is used here alone, and only on targets where panics unwind, which all have it. Where
//! they abort there is nothing to catch, and this compiles to nothing.

#[cfg(panic = "unwind")]
mod unwinding {
    use core::any::Any;
    use std::boxed::Box;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    /// What a panic carries.
    pub(in crate::bus) type Payload = Box<dyn Any + Send>;

    /// Calls user code; `Err` if it panics. The caller sees to it that whatever `f` was about is
    /// finished or undone.
    #[inline]
    pub(in crate::bus) fn contain<R>(f: impl FnOnce() -> R) -> Result<R, Payload> {
        catch_unwind(AssertUnwindSafe(f))
    }

    /// Drops a panic that goes no further. If dropping what it carries panics too, that is leaked.
    pub(super) fn discard(payload: Payload) {
        if let Err(again) = contain(|| drop(payload)) {
            core::mem::forget(again);
        }
    }

    pub(super) fn raise(payload: Payload) {
        // A second panic while the thread unwinds from another would abort the process.
        if std::thread::panicking() {
            discard(payload);
        } else {
            resume_unwind(payload);
        }
    }
}

#[cfg(not(panic = "unwind"))]
mod unwinding {
    /// What a panic carries: there is none to be had here.
    pub(in crate::bus) type Payload = core::convert::Infallible;

    /// Calls user code, whose panics end the program.
    #[inline(always)]
    pub(in crate::bus) fn contain<R>(f: impl FnOnce() -> R) -> Result<R, Payload> {
        Ok(f())
    }

    pub(super) fn discard(payload: Payload) {
        match payload {}
    }

    pub(super) fn raise(payload: Payload) {
        match payload {}
    }
}

pub(super) use unwinding::{Payload, contain};

/// The first panic that was caught on the way, to be raised at the end of it.
#[must_use = "a panic is raised, or dropped on purpose"]
pub(super) struct Panics {
    first: Option<Payload>,
}

impl Panics {
    pub(super) const fn none() -> Self {
        Self { first: None }
    }

    /// Whether nothing panicked.
    pub(super) fn are_none(&self) -> bool {
        self.first.is_none()
    }

    /// Keeps a panic if it is the first.
    pub(super) fn add(&mut self, payload: Payload) {
        match &self.first {
            None => self.first = Some(payload),
            Some(_) => unwinding::discard(payload),
        }
    }

    /// Calls user code; `None` if it panics.
    #[inline]
    pub(super) fn contain<R>(&mut self, f: impl FnOnce() -> R) -> Option<R> {
        match contain(f) {
            Ok(value) => Some(value),
            Err(payload) => {
                self.add(payload);
                None
            }
        }
    }

    /// Calls user code whose effect others depend on, once again if it panics.
    pub(super) fn insist(&mut self, mut f: impl FnMut()) {
        if self.contain(&mut f).is_none() {
            self.contain(f);
        }
    }

    /// Raises the panic, if there was one and the thread is not unwinding already. Nothing may be
    /// left to be finished.
    #[inline]
    pub(super) fn raise(self) {
        if let Some(payload) = self.first {
            unwinding::raise(payload);
        }
    }

    /// Drops the panic, if there was one: another is on its way to the caller.
    pub(super) fn discard(self) {
        if let Some(payload) = self.first {
            unwinding::discard(payload);
        }
    }
}
