//! Failures: a code, and words for people. The last failure of each thread is kept.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

use barewire::spi::{Error, MessageError};
use barewire_open::{AnyBus, OpenError};

use crate::error::{bw_error, code_of};

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: bw_error,
    text: String,
    pub(crate) os_errno: i32,
    pub(crate) transfer_index: usize,
    pub(crate) actual_length: usize,
}

impl Failure {
    pub(crate) fn new(code: bw_error, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), os_errno: 0, transfer_index: 0, actual_length: 0 }
    }

    pub(crate) fn null(what: &str) -> Self {
        Self::new(bw_error::BW_ERROR_NULL, format!("{what} is NULL"))
    }

    /// A failure on `bus`, with its cause.
    #[cold]
    pub(crate) fn of_message(bus: &AnyBus, error: &MessageError) -> Self {
        let mut failure = Self::of_error(bus, error.error);
        failure.transfer_index = error.transfer_index;
        failure.actual_length = error.actual_length;
        if failure.code != bw_error::BW_ERROR_CLOSED {
            failure.text = format!("{error}");
            failure.add_cause(bus);
        }
        failure
    }

    /// The failure of something on `bus` that is no message.
    #[cold]
    pub(crate) fn of_error(bus: &AnyBus, error: Error) -> Self {
        let os_errno = match error {
            Error::Os { errno } => errno,
            _ => 0,
        };
        if os_errno == libc::ESHUTDOWN && bus.is_closed() {
            return Self::closed(bus);
        }
        let mut failure = Self::new(code_of(error), error.to_string());
        failure.os_errno = os_errno;
        if let Error::NoSuchChipSelect { .. } = error {
            failure.text = format!("{error} ({})", bus.chip_selects_text());
        }
        failure.add_cause(bus);
        failure
    }

    pub(crate) fn closed(bus: &AnyBus) -> Self {
        let text = format!("the bus {} was closed", bus.name());
        Self { os_errno: libc::ESHUTDOWN, ..Self::new(bw_error::BW_ERROR_CLOSED, text) }
    }

    fn add_cause(&mut self, bus: &AnyBus) {
        if self.os_errno != 0
            && let Some(cause) = bus.cause()
        {
            self.text += ": ";
            self.text += &cause;
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let code = match error {
            OpenError::Name(_) => bw_error::BW_ERROR_NAME,
            OpenError::Failed(_) | OpenError::Os { .. } | OpenError::Stopped(_) => {
                bw_error::BW_ERROR_OPEN
            }
        };
        let os_errno = if let OpenError::Os { errno, .. } = error { errno } else { 0 };
        Self { os_errno, ..Self::new(code, error.to_string()) }
    }
}

/// The failure of a thread's last failed call.
struct Last {
    failure: Failure,
    text: CString,
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

/// Keeps it for the thread, and returns its code.
#[cold]
#[inline(never)]
pub(crate) fn keep(failure: Failure) -> bw_error {
    let code = failure.code;
    let bytes = failure.text.bytes().filter(|&byte| byte != 0).collect::<Vec<_>>();
    let text = CString::new(bytes).unwrap_or_default();
    // A thread that ends has no place for it any more.
    let _ = LAST.try_with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            *last = Some(Last { failure, text });
        }
    });
    code
}

/// The text of the thread's last failed call. Valid until its next one.
pub(crate) fn last_text() -> *const c_char {
    const NONE: &CStr = c"";
    let text = LAST.try_with(|last| {
        let last = last.try_borrow().ok()?;
        last.as_ref().map(|last| last.text.as_ptr())
    });
    text.ok().flatten().unwrap_or(NONE.as_ptr())
}

/// Reads the thread's last failure.
pub(crate) fn with_last<R>(read: impl FnOnce(&Failure) -> R) -> Option<R> {
    let read = LAST.try_with(|last| {
        let last = last.try_borrow().ok()?;
        last.as_ref().map(|last| read(&last.failure))
    });
    read.ok().flatten()
}
