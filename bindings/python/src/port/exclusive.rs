//! A value for one thread at a time, which waits so that other Python threads run, and honours Ctrl-C.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use pyo3::prelude::*;

use crate::error::{self, Class};

/// How long a thread that waits sleeps before it looks again.
const LOOK: Duration = Duration::from_millis(1);

/// A value with the thread that uses it.
pub(crate) struct Exclusive<T> {
    value: Mutex<T>,
    user: Mutex<Option<ThreadId>>,
}

impl<T: Send> Exclusive<T> {
    /// A value that no thread uses.
    pub(crate) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), user: Mutex::new(None) }
    }

    fn user(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.user.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses the value, once no other thread does. The interpreter is held when `work` begins.
    pub(crate) fn with<R>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut T) -> PyResult<R>,
    ) -> PyResult<R> {
        let me = thread::current().id();
        let mut value = loop {
            match self.value.try_lock() {
                Ok(value) => break value,
                Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                Err(TryLockError::WouldBlock) if *self.user() == Some(me) => {
                    let text = "this call's own callback uses the chip: it would wait for itself";
                    return Err(error::exception(py, Class::Deadlock, libc::EDEADLK, text.into()));
                }
                Err(TryLockError::WouldBlock) => {
                    py.detach(|| thread::sleep(LOOK));
                    py.check_signals()?;
                }
            }
        };
        *self.user() = Some(me);
        let done = work(&mut value);
        *self.user() = None;
        done
    }
}
