//! A bus's error as the number that the kernel would give.

use barewire::spi::Error;
use rustix::io::Errno;

/// The error number of a message that failed, or of settings that the controller refuses.
pub(crate) fn errno(error: Error) -> Errno {
    match error {
        Error::Timeout { .. } => Errno::TIMEDOUT,
        Error::Os { errno } => Errno::from_raw_os_error(errno),
        Error::Busy | Error::WouldDeadlock => Errno::BUSY,
        Error::MessageTooLong { .. } | Error::TooManyTransfers { .. } => Errno::MSGSIZE,
        Error::Overrun | Error::Aborted | Error::Foreign { .. } => Errno::IO,
        // The remaining errors are about settings and transfers that the controller cannot make.
        _ => Errno::INVAL,
    }
}
