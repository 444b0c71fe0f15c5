//! Errors as Python's exceptions: subclasses of `barewire.Error`, which is an `OSError`.
//!
//! The classes are Python's own (`python/barewire/_errors.py`), so that they can have two bases each.

use barewire::chip::mcp251xfd::CanError;
use barewire::chip::mcp3008::AdcError;
use barewire::chip::spi_nor::NorError;
use barewire::regmap::RegmapError;
use barewire::spi::{Error, MessageError};
use barewire_open::{AnyBus, OpenError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// Which class.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Class {
    Name,
    Open,
    NotFound,
    NoAccess,
    Settings,
    Message,
    Timeout,
    Closed,
    Deadlock,
    Forked,
    Chip,
    ChipArgument,
    ChipTimeout,
    Verify,
    Argument,
    ArgumentType,
    RegisterName,
    State,
    Capture,
}

impl Class {
    fn name(self) -> &'static str {
        match self {
            Self::Name => "BusNameError",
            Self::Open => "OpenError",
            Self::NotFound => "BusNotFoundError",
            Self::NoAccess => "BusAccessError",
            Self::Settings => "SettingsError",
            Self::Message => "MessageError",
            Self::Timeout => "MessageTimeout",
            Self::Closed => "ClosedError",
            Self::Deadlock => "DeadlockError",
            Self::Forked => "ForkedError",
            Self::Chip => "ChipError",
            Self::ChipArgument => "ChipArgumentError",
            Self::ChipTimeout => "ChipTimeout",
            Self::Verify => "VerifyError",
            Self::Argument => "ArgumentError",
            Self::ArgumentType => "ArgumentTypeError",
            Self::RegisterName => "RegisterNameError",
            Self::State => "StateError",
            Self::Capture => "CaptureError",
        }
    }
}

static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// An exception with an error number and a sentence.
pub(crate) fn exception(py: Python<'_>, class: Class, errno: i32, text: String) -> PyErr {
    let import = || Ok::<_, PyErr>(py.import("barewire._errors")?.unbind());
    let made = MODULE.get_or_try_init(py, import).and_then(|module| {
        let class = module.bind(py).getattr(class.name())?.cast_into::<PyType>()?;
        Ok(PyErr::from_type(class, (errno, text)))
    });
    made.unwrap_or_else(|error| error)
}

/// An argument's value that a call does not take.
#[cold]
pub(crate) fn argument(text: impl Into<String>) -> PyErr {
    Python::attach(|py| exception(py, Class::Argument, libc::EINVAL, text.into()))
}

/// An argument of a type that a call does not take.
#[cold]
pub(crate) fn argument_type(text: impl Into<String>) -> PyErr {
    Python::attach(|py| exception(py, Class::ArgumentType, libc::EINVAL, text.into()))
}

/// A register or field that a chip does not have.
#[cold]
pub(crate) fn register_name(text: impl Into<String>) -> PyErr {
    Python::attach(|py| exception(py, Class::RegisterName, libc::EINVAL, text.into()))
}

/// A call that the object's state does not allow.
#[cold]
pub(crate) fn state(errno: i32, text: impl Into<String>) -> PyErr {
    Python::attach(|py| exception(py, Class::State, errno, text.into()))
}

/// The error number and the class of a bus's error.
fn kind(error: Error) -> (Class, i32) {
    match error {
        Error::Timeout { .. } => (Class::Timeout, libc::ETIMEDOUT),
        Error::Os { errno } if errno == libc::ESHUTDOWN => (Class::Closed, errno),
        Error::Os { errno } => (Class::Message, errno),
        Error::WouldDeadlock => (Class::Deadlock, libc::EDEADLK),
        Error::Busy => (Class::Message, libc::EBUSY),
        Error::MessageTooLong { .. } | Error::TooManyTransfers { .. } => {
            (Class::Message, libc::EMSGSIZE)
        }
        Error::Overrun | Error::Aborted | Error::Foreign { .. } => (Class::Message, libc::EIO),
        _ => (Class::Settings, libc::EINVAL),
    }
}

/// A bus's error, with its cause if the bus knows it.
pub(crate) fn of_bus(py: Python<'_>, bus: &AnyBus, error: Error) -> PyErr {
    let (class, errno) = kind(error);
    let text = match (class, bus.cause()) {
        (_, Some(cause)) => cause,
        (Class::Closed, None) => format!("{} is closed: open it again", bus.name()),
        _ if matches!(error, Error::NoSuchChipSelect { .. }) => {
            format!("{error} ({})", bus.chip_selects_text())
        }
        _ => error.to_string(),
    };
    exception(py, class, errno, text)
}

/// A message's error.
pub(crate) fn of_message(py: Python<'_>, bus: &AnyBus, error: MessageError) -> PyErr {
    of_bus(py, bus, error.error)
}

/// Why a bus was not opened or not closed in order.
pub(crate) fn of_open(py: Python<'_>, error: &OpenError) -> PyErr {
    match error {
        OpenError::Name(text) => exception(py, Class::Name, libc::EINVAL, text.clone()),
        OpenError::Os { text, errno } => {
            let class = match *errno {
                libc::ENOENT => Class::NotFound,
                libc::EACCES | libc::EPERM => Class::NoAccess,
                _ => Class::Open,
            };
            exception(py, class, *errno, text.clone())
        }
        OpenError::Failed(text) | OpenError::Stopped(text) => {
            exception(py, Class::Open, libc::EIO, text.clone())
        }
    }
}

/// An error of a chip's driver.
fn of_chip(py: Python<'_>, errno: i32, text: String) -> PyErr {
    exception(py, Class::Chip, errno, text)
}

/// An argument that a chip cannot take.
pub(crate) fn of_argument(py: Python<'_>, text: String) -> PyErr {
    exception(py, Class::ChipArgument, libc::EINVAL, text)
}

/// A flash chip's error.
pub(crate) fn of_flash(py: Python<'_>, bus: &AnyBus, error: NorError) -> PyErr {
    match error {
        NorError::Bus(error) => of_message(py, bus, error),
        NorError::Verify { .. } => exception(py, Class::Verify, libc::EIO, error.to_string()),
        NorError::NoChip | NorError::StuckLow => of_chip(py, libc::ENODEV, error.to_string()),
        NorError::OutOfRange { .. }
        | NorError::OutOfReach { .. }
        | NorError::Misaligned { .. }
        | NorError::NoErase { .. } => of_argument(py, error.to_string()),
        _ => of_chip(py, libc::EIO, error.to_string()),
    }
}

/// A converter's error.
pub(crate) fn of_adc(py: Python<'_>, bus: &AnyBus, error: AdcError) -> PyErr {
    match error {
        AdcError::Message(error) => of_message(py, bus, error),
        AdcError::NoChip { .. } => of_chip(py, libc::ENODEV, error.to_string()),
        _ => of_argument(py, error.to_string()),
    }
}

/// A CAN controller's error.
pub(crate) fn of_can(py: Python<'_>, bus: &AnyBus, error: CanError) -> PyErr {
    match error {
        CanError::Message(error) => of_message(py, bus, error),
        CanError::NoChip { .. } => of_chip(py, libc::ENODEV, error.to_string()),
        CanError::TxFull => exception(py, Class::ChipTimeout, libc::ETIMEDOUT, error.to_string()),
        CanError::SpiTooFast { .. }
        | CanError::BitTiming(_)
        | CanError::Ram { .. }
        | CanError::Depth { .. }
        | CanError::NoSuchFilter { .. }
        | CanError::FrameTooLong { .. }
        | CanError::NoDataBitRate => of_argument(py, error.to_string()),
        _ => of_chip(py, libc::EIO, error.to_string()),
    }
}

/// An error of a chip's registers.
pub(crate) fn of_regmap(py: Python<'_>, bus: &AnyBus, error: RegmapError) -> PyErr {
    match error {
        RegmapError::Message(error) => of_message(py, bus, error),
        _ => of_argument(py, error.to_string()),
    }
}
