//! The codes that functions return.

use std::ffi::CStr;

use barewire::spi::Error;

/// What a function returns: `BW_OK`, or why it failed. The numbers never change; a later version may add some.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum bw_error {
    /// It worked.
    BW_OK = 0,
    /// A pointer that must not be NULL is.
    BW_ERROR_NULL = 1,
    /// The handle is none of this kind.
    BW_ERROR_HANDLE = 2,
    /// The object was closed, or its bus was.
    BW_ERROR_CLOSED = 3,
    /// The object is of the process that called fork: open the bus again in the child. A child that shares the memory (vfork,
    /// `CLONE_VM`) may use no bus before it execs, and gets no text.
    BW_ERROR_FORKED = 4,
    /// A struct's `size` is none that this library knows, or a field it does not know is set.
    BW_ERROR_SIZE = 5,
    /// An argument is out of its range.
    BW_ERROR_ARGUMENT = 6,
    /// There is no room for another object.
    BW_ERROR_MEMORY = 7,
    /// The library failed inside: a mistake of barewire's, to be reported.
    BW_ERROR_PANIC = 8,
    /// The bus's name is wrong; nothing was opened.
    BW_ERROR_NAME = 9,
    /// The bus could not be opened, served, or closed in order.
    BW_ERROR_OPEN = 10,
    /// The bus is taken, or another thread uses the object, or the message is submitted.
    BW_ERROR_BUSY = 11,
    /// The thread has the bus already, by its lock or in a callback, and would wait for itself.
    BW_ERROR_WOULD_DEADLOCK = 12,
    /// The thread does not hold the bus's lock.
    BW_ERROR_NOT_LOCKED = 13,
    /// The message has not run yet.
    BW_ERROR_PENDING = 14,
    /// The message is not submitted.
    BW_ERROR_NOT_SUBMITTED = 15,
    /// The bus is no simulated board.
    BW_ERROR_NOT_SIMULATED = 16,
    /// The controller did not finish in time.
    BW_ERROR_TIMEOUT = 17,
    /// A received word was lost.
    BW_ERROR_OVERRUN = 18,
    /// The operating system failed the message: see `os_errno`.
    BW_ERROR_OS = 19,
    /// Running the message failed inside; how much of it was clocked is unknown.
    BW_ERROR_ABORTED = 20,
    /// The message is longer than the bus takes.
    BW_ERROR_MESSAGE_TOO_LONG = 21,
    /// The message has more transfers than the bus takes.
    BW_ERROR_TOO_MANY_TRANSFERS = 22,
    /// The message has no transfers.
    BW_ERROR_EMPTY = 23,
    /// A length is no multiple of the word's, or longer than memory.
    BW_ERROR_LENGTH = 24,
    /// A transfer's two buffers overlap and are not the same.
    BW_ERROR_OVERLAP = 25,
    /// The controller has no words of this length.
    BW_ERROR_BITS_PER_WORD = 26,
    /// The speed is zero, or below the controller's slowest clock.
    BW_ERROR_SPEED = 27,
    /// The controller or the board does not have this mode.
    BW_ERROR_MODE = 28,
    /// The bus has no such chip select, or cannot drive it as asked.
    BW_ERROR_CHIP_SELECT = 29,
    /// `cs_change` on the last transfer would leave the chip selected.
    BW_ERROR_CS_CHANGE = 30,
    /// A delay is longer than can be made.
    BW_ERROR_DELAY = 31,
    /// The bus cannot set this for a single transfer.
    BW_ERROR_NOT_PER_TRANSFER = 32,
    /// Another failure: see the text.
    BW_ERROR_OTHER = 33,
    /// Counting is off: there are no counts.
    BW_ERROR_NOT_COUNTING = 34,
}

use bw_error::*;

/// All of them, by number.
pub(crate) const ALL: &[(bw_error, &CStr)] = &[
    (BW_OK, c"BW_OK"),
    (BW_ERROR_NULL, c"BW_ERROR_NULL"),
    (BW_ERROR_HANDLE, c"BW_ERROR_HANDLE"),
    (BW_ERROR_CLOSED, c"BW_ERROR_CLOSED"),
    (BW_ERROR_FORKED, c"BW_ERROR_FORKED"),
    (BW_ERROR_SIZE, c"BW_ERROR_SIZE"),
    (BW_ERROR_ARGUMENT, c"BW_ERROR_ARGUMENT"),
    (BW_ERROR_MEMORY, c"BW_ERROR_MEMORY"),
    (BW_ERROR_PANIC, c"BW_ERROR_PANIC"),
    (BW_ERROR_NAME, c"BW_ERROR_NAME"),
    (BW_ERROR_OPEN, c"BW_ERROR_OPEN"),
    (BW_ERROR_BUSY, c"BW_ERROR_BUSY"),
    (BW_ERROR_WOULD_DEADLOCK, c"BW_ERROR_WOULD_DEADLOCK"),
    (BW_ERROR_NOT_LOCKED, c"BW_ERROR_NOT_LOCKED"),
    (BW_ERROR_PENDING, c"BW_ERROR_PENDING"),
    (BW_ERROR_NOT_SUBMITTED, c"BW_ERROR_NOT_SUBMITTED"),
    (BW_ERROR_NOT_SIMULATED, c"BW_ERROR_NOT_SIMULATED"),
    (BW_ERROR_TIMEOUT, c"BW_ERROR_TIMEOUT"),
    (BW_ERROR_OVERRUN, c"BW_ERROR_OVERRUN"),
    (BW_ERROR_OS, c"BW_ERROR_OS"),
    (BW_ERROR_ABORTED, c"BW_ERROR_ABORTED"),
    (BW_ERROR_MESSAGE_TOO_LONG, c"BW_ERROR_MESSAGE_TOO_LONG"),
    (BW_ERROR_TOO_MANY_TRANSFERS, c"BW_ERROR_TOO_MANY_TRANSFERS"),
    (BW_ERROR_EMPTY, c"BW_ERROR_EMPTY"),
    (BW_ERROR_LENGTH, c"BW_ERROR_LENGTH"),
    (BW_ERROR_OVERLAP, c"BW_ERROR_OVERLAP"),
    (BW_ERROR_BITS_PER_WORD, c"BW_ERROR_BITS_PER_WORD"),
    (BW_ERROR_SPEED, c"BW_ERROR_SPEED"),
    (BW_ERROR_MODE, c"BW_ERROR_MODE"),
    (BW_ERROR_CHIP_SELECT, c"BW_ERROR_CHIP_SELECT"),
    (BW_ERROR_CS_CHANGE, c"BW_ERROR_CS_CHANGE"),
    (BW_ERROR_DELAY, c"BW_ERROR_DELAY"),
    (BW_ERROR_NOT_PER_TRANSFER, c"BW_ERROR_NOT_PER_TRANSFER"),
    (BW_ERROR_OTHER, c"BW_ERROR_OTHER"),
    (BW_ERROR_NOT_COUNTING, c"BW_ERROR_NOT_COUNTING"),
];

/// The name of a code, if there is one.
pub(crate) fn name_of(number: i32) -> Option<&'static CStr> {
    let found = ALL.iter().find(|(error, _)| *error as i32 == number);
    found.map(|(_, name)| *name)
}

/// The code of an error of the core.
pub(crate) fn code_of(error: Error) -> bw_error {
    match error {
        Error::Busy => BW_ERROR_BUSY,
        Error::WouldDeadlock => BW_ERROR_WOULD_DEADLOCK,
        Error::Timeout { .. } => BW_ERROR_TIMEOUT,
        Error::Overrun => BW_ERROR_OVERRUN,
        Error::Os { .. } => BW_ERROR_OS,
        Error::Aborted => BW_ERROR_ABORTED,
        Error::MessageTooLong { .. } => BW_ERROR_MESSAGE_TOO_LONG,
        Error::TooManyTransfers { .. } => BW_ERROR_TOO_MANY_TRANSFERS,
        Error::Empty => BW_ERROR_EMPTY,
        Error::Length { .. } => BW_ERROR_LENGTH,
        Error::BitsPerWord { .. } => BW_ERROR_BITS_PER_WORD,
        Error::SpeedZero | Error::SpeedTooLow { .. } => BW_ERROR_SPEED,
        Error::LsbFirst | Error::NoLoopback => BW_ERROR_MODE,
        Error::NoSuchChipSelect { .. }
        | Error::CsPolarity { .. }
        | Error::CsCanSleep
        | Error::NativeCsWouldPulse { .. }
        | Error::NativeCsDelay { .. }
        | Error::NativeCsSpeed { .. }
        | Error::NoIdleChipSelect => BW_ERROR_CHIP_SELECT,
        Error::CsChangeOnLast => BW_ERROR_CS_CHANGE,
        Error::DelayTooLong { .. } => BW_ERROR_DELAY,
        Error::NotPerTransfer { .. } => BW_ERROR_NOT_PER_TRANSFER,
        _ => BW_ERROR_OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_order_without_gaps() {
        for (number, (error, name)) in (0..).zip(ALL) {
            assert_eq!(*error as i32, number);
            assert_eq!(name_of(number), Some(*name));
            assert_eq!(name.to_str(), Ok(format!("{error:?}").as_str()));
        }
        assert_eq!(name_of(-1), None);
        assert_eq!(name_of(i32::MAX), None);
    }
}
