//! Panics of user code: caught while the bus has work to finish, raised afterwards.
//!
//! # How it works
//! The bus calls code of its users: controllers, callbacks, wakers, the platform. Where panics
//! unwind, a panic in that code is [caught](contain), the bus finishes serving the other callers,
//! and the first panic is [raised](Panics::raise) in the caller that ran the code. Later panics of
//! the same call reach the panic hook only. Their payloads are kept too: dropping one is user code, and
//! waits until the bus is released.
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

    /// The caught panics, the earliest first.
    pub(in crate::bus) type Payloads = std::vec::Vec<Payload>;

    pub(super) const NONE: Payloads = Payloads::new();

    /// Drops payloads. If dropping one panics too, that second payload is leaked.
    pub(super) fn discard(payloads: Payloads) {
        for payload in payloads {
            if let Err(again) = contain(|| drop(payload)) {
                core::mem::forget(again);
            }
        }
    }

    pub(super) fn raise(mut payloads: Payloads) {
        // A second panic while the thread unwinds from another would abort the process.
        if payloads.is_empty() || std::thread::panicking() {
            return discard(payloads);
        }
        let first = payloads.remove(0);
        discard(payloads);
        resume_unwind(first);
    }
}

#[cfg(not(panic = "unwind"))]
mod unwinding {
    /// The payload of a panic: none exists where panics abort.
    pub(in crate::bus) type Payload = core::convert::Infallible;

    /// What was caught: nothing.
    pub(in crate::bus) type Payloads = Nothing;

    /// A list that stays empty.
    pub(in crate::bus) struct Nothing;

    impl Nothing {
        pub(super) fn is_empty(&self) -> bool {
            true
        }

        pub(super) fn push(&mut self, payload: Payload) {
            match payload {}
        }
    }

    pub(super) const NONE: Payloads = Nothing;

    /// Calls user code, whose panic would abort the program.
    #[inline(always)]
    pub(in crate::bus) fn contain<R>(f: impl FnOnce() -> R) -> Result<R, Payload> {
        Ok(f())
    }

    pub(super) fn discard(_: Payloads) {}

    pub(super) fn raise(_: Payloads) {}
}

pub(super) use unwinding::{Payload, contain};

/// Ends the program: the caller can neither go on nor return.
#[cold]
pub(super) fn abort(why: &str) -> ! {
    struct Abort;

    impl Drop for Abort {
        fn drop(&mut self) {
            // The second panic of the thread.
            panic!("the program ends here");
        }
    }

    let _abort = Abort;
    panic!("{why}");
}

/// The panics caught during a call. The first is raised at its end, when the call has no right of the bus.
#[must_use = "a panic is raised, or dropped on purpose"]
pub(super) struct Panics {
    caught: unwinding::Payloads,
}

impl Panics {
    pub(super) const fn none() -> Self {
        Self { caught: unwinding::NONE }
    }

    /// Whether no panic was caught.
    pub(super) fn are_none(&self) -> bool {
        self.caught.is_empty()
    }

    /// Keeps a panic.
    pub(super) fn add(&mut self, payload: Payload) {
        self.caught.push(payload);
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

    /// Raises the first panic, if there was one and the thread is not already unwinding. Call it last, without
    /// a right of the bus: nothing after it runs, and the other payloads are dropped.
    #[inline]
    pub(super) fn raise(self) {
        if !self.are_none() {
            unwinding::raise(self.caught);
        }
    }

    /// Discards the panics: another one is already unwinding to the caller.
    pub(super) fn discard(self) {
        unwinding::discard(self.caught);
    }
}
