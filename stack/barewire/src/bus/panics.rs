//! Panics of user code: caught while the bus has work to finish, raised afterwards.
//!
//! # How it works
//! The bus calls code of its users: controllers, callbacks, wakers, the platform. Where panics
//! unwind, a panic in that code is [caught](contain), the bus finishes serving the other callers,
//! and the first panic is [raised](Panics::raise) in the caller that ran the code. Later panics of
//! the same call reach the panic hook only.
//!
//! Only this file uses `std`, and only on targets where panics unwind; all of these have it. Where
//! panics abort there is nothing to catch, and this module compiles to nothing.

#[cfg(panic = "unwind")]
mod unwinding {
    use core::any::Any;
    use std::boxed::Box;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    /// The payload of a panic.
    pub(in crate::bus) type Payload = Box<dyn Any + Send>;

    /// Calls user code; `Err` if it panics. The caller must finish or undo what `f` began.
    #[inline]
    pub(in crate::bus) fn contain<R>(f: impl FnOnce() -> R) -> Result<R, Payload> {
        catch_unwind(AssertUnwindSafe(f))
    }

    /// Drops a payload. If dropping it panics too, that second payload is leaked.
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
    /// The payload of a panic: none exists where panics abort.
    pub(in crate::bus) type Payload = core::convert::Infallible;

    /// Calls user code, whose panic would abort the program.
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

/// The first panic caught during a call, to be raised at its end.
#[must_use = "a panic is raised, or dropped on purpose"]
pub(super) struct Panics {
    first: Option<Payload>,
}

impl Panics {
    pub(super) const fn none() -> Self {
        Self { first: None }
    }

    /// Whether no panic was caught.
    pub(super) fn are_none(&self) -> bool {
        self.first.is_none()
    }

    /// Keeps the first panic; discards later ones.
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

    /// Calls user code that others depend on; once more if it panics.
    pub(super) fn insist(&mut self, mut f: impl FnMut()) {
        if self.contain(&mut f).is_none() {
            self.contain(f);
        }
    }

    /// Raises the panic, if there was one and the thread is not already unwinding. Call it last:
    /// nothing after it runs.
    #[inline]
    pub(super) fn raise(self) {
        if let Some(payload) = self.first {
            unwinding::raise(payload);
        }
    }

    /// Discards the panic: another one is already unwinding to the caller.
    pub(super) fn discard(self) {
        if let Some(payload) = self.first {
            unwinding::discard(payload);
        }
    }
}
