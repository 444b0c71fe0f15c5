//! Errors: small values that say what was asked, what there is, and what to do.

use core::fmt;

use embedded_hal::spi::ErrorKind;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Error {
    /// A `try_` call found the bus taken.
    Busy,
    /// The caller's own context has the bus, in a [lock](crate::bus::Locked) or because this is a
    /// [callback](crate::bus::queued::Callback): it would wait for itself.
    WouldDeadlock,
    /// The controller did not finish in twice the wire time and a margin.
    Timeout {
        /// How long was waited, in microseconds.
        timeout_us: u32,
    },
    /// A received word was lost: it came before the one before it had been read.
    Overrun,
    /// The operating system failed the message.
    Os {
        /// Its error number, as in errno(3).
        errno: i32,
    },
    /// Running the message panicked, or waiting for its turn did; what of it was clocked is not
    /// known.
    Aborted,
    /// The message is longer than the path below takes at once.
    MessageTooLong {
        /// Its length in bytes, or what its transfers count for.
        bytes: usize,
        /// The most there can be.
        max_bytes: usize,
    },
    /// The message has more transfers than the path below takes at once.
    TooManyTransfers {
        /// Its transfers.
        transfers: usize,
        /// The most there can be.
        max: usize,
    },
    /// A message without transfers.
    Empty,
    /// A transfer's length is no multiple of its word.
    Length {
        /// The transfer's length in bytes.
        len: usize,
        /// The word's length in bytes.
        word_bytes: u8,
    },
    /// The controller has no words of `bits`.
    BitsPerWord {
        /// Bits asked.
        bits: u8,
    },
    /// A speed of zero.
    SpeedZero,
    /// The controller's slowest clock is faster than what was asked.
    SpeedTooLow {
        /// Hertz asked.
        asked_hz: u32,
        /// The slowest there is.
        min_hz: u32,
    },
    /// The controller cannot send the least significant bit first.
    LsbFirst,
    /// The controller cannot receive what it sends ([`Mode::LOOP`](super::Mode::LOOP)).
    NoLoopback,
    /// No such line in the controller's table of chip selects.
    NoSuchChipSelect {
        /// The line asked.
        chip_select: u8,
    },
    /// The line's active level is fixed by the board, and the mode's `CS_HIGH` contradicts it.
    CsPolarity {
        /// Whether the board's line is active high.
        active_high: bool,
    },
    /// Driving this line may sleep (an expander behind I2C, say): not on these paths.
    CsCanSleep,
    /// The line is the controller's own, which rises at the end of each burst: a transfer beyond
    /// `max_bytes`, or a second transfer without `cs_change`, would pulse it.
    NativeCsWouldPulse {
        /// The longest transfer the line stays active for, in bytes.
        max_bytes: usize,
    },
    /// The controller's own line cannot wait this long.
    NativeCsDelay {
        /// Nanoseconds asked.
        asked_ns: u32,
        /// The longest there is.
        max_ns: u32,
    },
    /// The line is the controller's own, which rises while the clock is set: a transfer with a speed
    /// of its own would pulse it.
    NativeCsSpeed {
        /// Hertz asked for the transfer.
        asked_hz: u32,
    },
    /// The controller selects one of its own lines in every transfer, and each reaches a chip: none
    /// is left for a chip that something else selects.
    NoIdleChipSelect,
    /// `cs_change` on a message's last transfer would leave the chip selected.
    CsChangeOnLast,
    /// A delay longer than the controller's timer counts.
    DelayTooLong {
        /// Nanoseconds asked.
        asked_ns: u32,
    },
    /// The path below has nothing that would give one transfer a `field` of its own.
    NotPerTransfer {
        /// The transfer's field.
        field: &'static str,
        /// What it was.
        asked: u32,
    },
    /// A bus that is not ours failed the message; its own error is kept beside it
    /// ([`OnSpiDevice::take_error`](crate::hal::OnSpiDevice::take_error)).
    Foreign {
        /// What kind of error it was.
        kind: ErrorKind,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Error::Busy => f.write_str("the bus is busy"),
            Error::WouldDeadlock => f.write_str(
                "this context has the bus already and would wait for itself: use its lock, or do this outside the callback",
            ),
            Error::Timeout { timeout_us } => write!(
                f,
                "the controller did not finish in {timeout_us} us: its clock may be gated, or the block is wedged"
            ),
            Error::Overrun => f.write_str(
                "a received word was lost, because the one before it was read too late: lower the clock, or poll",
            ),
            Error::Os { errno } => write!(f, "the operating system failed the message (errno {errno})"),
            Error::Aborted => f.write_str("running the message panicked: what of it was clocked is not known"),
            Error::MessageTooLong { bytes, max_bytes } => write!(
                f,
                "the message counts for {bytes} bytes, and {max_bytes} go at once: raise spidev's bufsiz (`spidev.bufsiz=65536` on the kernel's command line), drop CS inside the message (cs_change, which embedded-hal has not), or split it"
            ),
            Error::TooManyTransfers { transfers, max } => write!(
                f,
                "the message has {transfers} transfers, and {max} go at once: drop CS inside it (cs_change), or split it; through embedded-hal give its device room, `with_room::<{transfers}>()`"
            ),
            Error::Empty => f.write_str("a message needs at least one transfer"),
            Error::Length { len, word_bytes } => write!(
                f,
                "{len} bytes are no whole number of {}-bit words: use a multiple of {word_bytes}",
                u32::from(word_bytes) * 8
            ),
            Error::BitsPerWord { bits } => {
                write!(
                    f,
                    "the controller has no words of {bits} bits: use 8, or what else its limits name"
                )
            }
            Error::SpeedZero => f.write_str("speed_hz is 0: name the fastest clock the chip takes"),
            Error::SpeedTooLow { asked_hz, min_hz } => write!(
                f,
                "{asked_hz} Hz is below the controller's slowest clock of {min_hz} Hz"
            ),
            Error::LsbFirst => f.write_str(
                "the controller cannot send the least significant bit first: reverse the bits in the buffer",
            ),
            Error::NoLoopback => {
                f.write_str("the controller has no loopback: connect MISO to MOSI by a wire")
            }
            Error::NoSuchChipSelect { chip_select } => {
                write!(f, "the controller has no chip select {chip_select}")
            }
            Error::CsPolarity { active_high } => write!(
                f,
                "the board's chip select is active {}: set the mode's CS_HIGH accordingly",
                if active_high { "high" } else { "low" }
            ),
            Error::CsCanSleep => f.write_str(
                "driving this chip select may sleep (an I/O expander?): it cannot serve the polled paths; use a GPIO of the SoC",
            ),
            Error::NativeCsWouldPulse { max_bytes } => write!(
                f,
                "the controller's own chip select would pulse inside the message: keep to one transfer of at most {max_bytes} bytes, or use a GPIO as chip select"
            ),
            Error::NativeCsDelay { asked_ns, max_ns } => write!(
                f,
                "the controller's own chip select cannot wait {asked_ns} ns (at most {max_ns}): use a GPIO as chip select"
            ),
            Error::NativeCsSpeed { asked_hz } => write!(
                f,
                "the controller's own chip select would pulse to set a clock of {asked_hz} Hz inside the message: keep to the device's speed, or use a GPIO as chip select"
            ),
            Error::NoIdleChipSelect => f.write_str(
                "one of the controller's own chip selects is active in every transfer, and each of them reaches a chip: leave one unwired, or give that chip a GPIO as chip select",
            ),
            Error::CsChangeOnLast => f.write_str(
                "cs_change on the last transfer would leave the chip selected after the message",
            ),
            Error::DelayTooLong { asked_ns } => {
                write!(f, "a delay of {asked_ns} ns is longer than the timer counts")
            }
            Error::NotPerTransfer { field, asked } => write!(
                f,
                "the bus below cannot give one transfer a {field} of {asked}: leave it at 0, the device's"
            ),
            Error::Foreign { kind } => write!(f, "the bus below failed the message: {kind}"),
        }
    }
}

impl core::error::Error for Error {}

/// What went wrong in a message, where, and how much was done before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MessageError {
    /// What went wrong.
    pub error: Error,
    /// Which transfer of the message, from 0.
    pub transfer_index: usize,
    /// Bytes of whole transfers clocked before it. 0 when the message was refused.
    pub actual_length: usize,
}

impl MessageError {
    /// A message refused at `transfer_index` before anything was clocked.
    #[must_use]
    pub const fn refused(error: Error, transfer_index: usize) -> Self {
        Self { error, transfer_index, actual_length: 0 }
    }
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (transfer {}", self.error, self.transfer_index)?;
        if self.actual_length > 0 {
            write!(f, ", after {} bytes", self.actual_length)?;
        }
        f.write_str(")")
    }
}

impl core::error::Error for MessageError {}

impl From<MessageError> for Error {
    fn from(error: MessageError) -> Self {
        error.error
    }
}
