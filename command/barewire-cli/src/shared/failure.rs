//! Why a command ended, and the exit code that says so.

use std::fmt;
use std::io;

use barewire::chip::mcp251xfd::CanError;
use barewire::chip::mcp3008::AdcError;
use barewire::chip::spi_nor::NorError;
use barewire::regmap::RegmapError;
use barewire::spi::{Error, MessageError};
use barewire_open::OpenError;
use barewire_qemu::{BoardError, QemuError};
use barewire_sim::scenario::can_echo::EchoError;

/// Exit codes, as `barewire --help` lists them.
const FAILED: u8 = 1;
const USAGE: u8 = 2;
const INTERRUPTED: u8 = 130;

/// Why a command ended before it was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It could not be done.
    Failed(String),
    /// Wrong usage that the argument parser cannot detect.
    Usage(String),
    /// Ctrl-C.
    Interrupted(String),
    /// The reader of stdout closed the pipe (`| head`), so no message is printed.
    BrokenPipe,
    /// A program that was started ended with that code, and has said why itself.
    Program(u8),
}

impl Failure {
    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Failed(_) => FAILED,
            Failure::Usage(_) => USAGE,
            Failure::Interrupted(_) => INTERRUPTED,
            Failure::BrokenPipe => 0,
            Failure::Program(code) => *code,
        }
    }

    /// Whether it needs no message.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self, Failure::BrokenPipe | Failure::Program(_))
    }

    /// An input or output error while `doing` something.
    pub(crate) fn io(doing: impl fmt::Display, error: &io::Error) -> Self {
        Failure::Failed(format!("cannot {doing}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Failed(text) | Failure::Usage(text) | Failure::Interrupted(text) => {
                f.write_str(text)
            }
            Failure::BrokenPipe => f.write_str("the reader of the output has gone"),
            Failure::Program(code) => write!(f, "the program ended with code {code}"),
        }
    }
}

/// Whether a wait ended because it was asked to.
fn stopped(error: Error) -> bool {
    matches!(error, Error::Os { errno } if io::Error::from_raw_os_error(errno).kind() == io::ErrorKind::Interrupted)
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Name(text) => Failure::Usage(text),
            OpenError::Failed(text) | OpenError::Os { text, .. } => Failure::Failed(text),
            OpenError::Stopped(text) => Failure::Interrupted(text),
        }
    }
}

impl From<NorError> for Failure {
    fn from(error: NorError) -> Self {
        match error {
            NorError::Bus(bus) if stopped(bus.error) => {
                Failure::Interrupted("stopped as asked, while another process had the chip".into())
            }
            NorError::Interrupted { .. } => Failure::Interrupted("stopped as asked".into()),
            NorError::Protected { .. } => Failure::Failed(format!("{error} (--unprotect)")),
            NorError::TooFast { .. } => Failure::Failed(format!("{error} (--speed-hz)")),
            NorError::NoErase { .. } => Failure::Failed(format!("{error} (--erase-size)")),
            NorError::OutOfReach { .. } => Failure::Failed(format!("{error} (--four-byte-mode)")),
            NorError::ProtectionUnknown { .. } => {
                Failure::Failed(format!("{error} (--protection)"))
            }
            NorError::Shifted { .. } => Failure::Failed(format!("{error} (--speed-hz, --mode)")),
            _ => Failure::Failed(error.to_string()),
        }
    }
}

impl From<AdcError> for Failure {
    fn from(error: AdcError) -> Self {
        let option = match error {
            AdcError::TooFast { .. } => " (--speed-hz)",
            AdcError::Supply { .. } => " (--vdd)",
            AdcError::NoSuchChannel { .. } => " (--channel)",
            AdcError::NoPair { .. } => " (--differential)",
            AdcError::TooOften { .. } | AdcError::RateZero => " (--rate)",
            _ => "",
        };
        Failure::Failed(format!("{error}{option}"))
    }
}

impl From<CanError> for Failure {
    fn from(error: CanError) -> Self {
        let option = match error {
            CanError::SpiTooFast { .. } => " (--speed-hz)",
            CanError::Oscillator { .. } => " (--oscillator-hz)",
            CanError::BitTiming(_) => " (--bitrate, --dbitrate)",
            CanError::FrameTooLong { .. } => " (--fd)",
            _ => "",
        };
        Failure::Failed(format!("{error}{option}"))
    }
}

impl From<EchoError> for Failure {
    fn from(error: EchoError) -> Self {
        match error {
            EchoError::Spi(error) => error.into(),
            EchoError::Can(error) => error.into(),
        }
    }
}

impl From<RegmapError> for Failure {
    fn from(error: RegmapError) -> Self {
        Failure::Failed(error.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Failed(error.to_string())
    }
}

impl From<BoardError> for Failure {
    fn from(error: BoardError) -> Self {
        Failure::Failed(error.to_string())
    }
}

impl From<QemuError> for Failure {
    fn from(error: QemuError) -> Self {
        Failure::Failed(error.to_string())
    }
}

impl From<MessageError> for Failure {
    fn from(error: MessageError) -> Self {
        Failure::Failed(error.to_string())
    }
}
