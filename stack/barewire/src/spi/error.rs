//! Errors: small values that say what was asked, what is possible, and what to do.

use core::fmt;

use embedded_hal::spi::ErrorKind;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Error {
    /// A `try_` call found the bus taken.
    Busy,
    /// The caller's own context has the bus, through a [lock](crate::bus::Locked) or because this
    /// is a [callback](crate::bus::queued::Callback): the call would wait for itself.
    WouldDeadlock,
    /// The controller did not finish within twice the wire time plus a margin.
    Timeout {
        /// How long the driver waited, in microseconds.
        timeout_us: u32,
    },
    /// A received word was lost: the one before it had not been read yet.
    Overrun,
    /// The operating system failed the message.
    Os {
        /// Its error number, as in errno(3).
        errno: i32,
    },
    /// Running the message, or waiting for its turn, panicked. How much of it was clocked is
    /// unknown.
    Aborted,
    /// The message is longer than the path below takes at once.
    MessageTooLong {
        /// Its length in bytes as that path counts it.
        bytes: usize,
        /// The longest possible, in bytes.
        max_bytes: usize,
    },
    /// The message has more transfers than the path below takes at once.
    TooManyTransfers {
        /// The number of its transfers.
        transfers: usize,
        /// The most possible.
        max: usize,
    },
    /// The message has no transfers.
    Empty,
    /// A transfer's length is not a multiple of its word length.
    Length {
        /// The transfer's length in bytes.
        len: usize,
        /// The word's length in bytes.
        word_bytes: u8,
    },
    /// The controller does not support words of `bits`.
    BitsPerWord {
        /// The word length asked for, in bits.
        bits: u8,
    },
    /// The speed is zero.
    SpeedZero,
    /// The speed is below the controller's slowest clock.
    SpeedTooLow {
        /// The speed asked for, in hertz.
        asked_hz: u32,
        /// The slowest clock, in hertz.
        min_hz: u32,
    },
    /// The controller cannot send the least significant bit first.
    LsbFirst,
    /// The controller has no loopback ([`Mode::LOOP`](super::Mode::LOOP)).
    NoLoopback,
    /// The controller's table of chip selects has no such line.
    NoSuchChipSelect {
        /// The line asked for.
        chip_select: u8,
    },
    /// The board fixes the line's active level, and the mode's `CS_HIGH` contradicts it.
    CsPolarity {
        /// Whether the board's line is active high.
        active_high: bool,
    },
    /// Driving this line may sleep, for example behind an I2C expander. The bus does not support
    /// that.
    CsCanSleep,
    /// The line is native and rises at the end of each burst: a transfer beyond `max_bytes`, or a
    /// second transfer without `cs_change`, would pulse it.
    NativeCsWouldPulse {
        /// The longest transfer during which the line stays active, in bytes.
        max_bytes: usize,
    },
    /// The native line cannot make a delay this long.
    NativeCsDelay {
        /// The delay asked for, in nanoseconds.
        asked_ns: u32,
        /// The longest delay, in nanoseconds.
        max_ns: u32,
    },
    /// The line is native and rises while the clock is changed: a transfer with a speed of its own
    /// would pulse it.
    NativeCsSpeed {
        /// The transfer's speed, in hertz.
        asked_hz: u32,
    },
    /// The controller selects one of its native lines in every transfer, and all of them are wired
    /// to chips: none is left for a chip that a GPIO selects, or that has no select line.
    NoIdleChipSelect,
    /// `cs_change` on a message's last transfer would leave the chip selected.
    CsChangeOnLast,
    /// The delay is longer than the controller's timer can count.
    DelayTooLong {
        /// The delay asked for, in nanoseconds.
        asked_ns: u32,
    },
    /// The path below cannot set `field` for a single transfer.
    NotPerTransfer {
        /// The transfer's field.
        field: &'static str,
        /// Its value.
        asked: u32,
    },
    /// A foreign bus failed the message. Its own error is kept for
    /// [`OnSpiDevice::take_error`](crate::hal::OnSpiDevice::take_error).
    Foreign {
        /// The kind of the foreign error.
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
            Error::Aborted => f.write_str("running the message panicked: how much of it was clocked is unknown"),
            Error::MessageTooLong { bytes, max_bytes } => write!(
                f,
                "the message counts as {bytes} bytes, more than the {max_bytes} that fit: raise spidev's bufsiz (`spidev.bufsiz=65536` on the kernel's command line), set cs_change on a transfer (embedded-hal cannot), or split the message"
            ),
            Error::TooManyTransfers { transfers, max } => write!(
                f,
                "the message has {transfers} transfers, more than the {max} that fit: set cs_change on a transfer, or split the message; through embedded-hal give its device room, `with_room::<{transfers}>()`"
            ),
            Error::Empty => f.write_str("a message needs at least one transfer"),
            Error::Length { len, word_bytes } => write!(
                f,
                "{len} bytes are not a whole number of {}-bit words: use a multiple of {word_bytes}",
                u32::from(word_bytes) * 8
            ),
            Error::BitsPerWord { bits } => {
                write!(
                    f,
                    "the controller does not support words of {bits} bits: use 8, or another length that its limits name"
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
                "driving this chip select may sleep (an I/O expander?): the bus does not support that; use a GPIO of the SoC",
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
                "the controller's own chip select would pulse while the clock is set to {asked_hz} Hz inside the message: keep to the device's speed, or use a GPIO as chip select"
            ),
            Error::NoIdleChipSelect => f.write_str(
                "every transfer activates one of the controller's own chip selects, and all of them are wired to chips: leave one unwired, or use a GPIO as its chip's select",
            ),
            Error::CsChangeOnLast => f.write_str(
                "cs_change on the last transfer would leave the chip selected after the message",
            ),
            Error::DelayTooLong { asked_ns } => {
                write!(f, "a delay of {asked_ns} ns is longer than the timer counts")
            }
            Error::NotPerTransfer { field, asked } => write!(
                f,
                "the bus below cannot set {field} to {asked} for a single transfer: leave it at 0 for the device's value"
            ),
            Error::Foreign { kind } => write!(f, "the bus below failed the message: {kind}"),
        }
    }
}

impl core::error::Error for Error {}

/// What went wrong in a message, where, and how much was clocked before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MessageError {
    /// What went wrong.
    pub error: Error,
    /// The index of the transfer.
    pub transfer_index: usize,
    /// Bytes of whole transfers clocked before it; 0 if the message was refused.
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
