//! The structs of the header. Sizes and offsets are held by a test.
#![allow(unsafe_code, reason = "promises that structs begin with their size")]

use std::ffi::{c_char, c_int, c_void};

use barewire::bus::HISTO_BUCKETS;
use barewire_open::Shape;

use crate::border::Sized32;
use crate::error::bw_error;

/// A bus. A handle: not to be looked into.
#[derive(Debug)]
pub struct bw_bus {
    _private: (),
}
/// A chip on a bus, with its settings. A handle.
#[derive(Debug)]
pub struct bw_device {
    _private: (),
}
/// A message that was validated once. A handle. One thread at a time uses it.
#[derive(Debug)]
pub struct bw_prepared {
    _private: (),
}
/// A message to submit. A handle. One thread at a time uses it.
#[derive(Debug)]
pub struct bw_message {
    _private: (),
}

/// The version of this header and its library: `major << 16 | minor << 8 | patch`.
pub const BW_VERSION: u32 = 2 << 8;

/// Clock phase: data is sampled on the trailing edge.
pub const BW_CPHA: u32 = 0x01;
/// Clock polarity: the clock idles high.
pub const BW_CPOL: u32 = 0x02;
/// Clock idles low, data sampled on the leading edge.
pub const BW_MODE_0: u32 = 0;
/// Clock idles low, data sampled on the trailing edge.
pub const BW_MODE_1: u32 = 1;
/// Clock idles high, data sampled on the leading edge.
pub const BW_MODE_2: u32 = 2;
/// Clock idles high, data sampled on the trailing edge.
pub const BW_MODE_3: u32 = 3;
/// Chip select is active high.
pub const BW_CS_HIGH: u32 = 0x04;
/// Words are sent least significant bit first.
pub const BW_LSB_FIRST: u32 = 0x08;
/// The controller receives what it sends.
pub const BW_LOOP: u32 = 0x20;
/// No chip select line moves.
pub const BW_NO_CS: u32 = 0x40;

/// A callback's answer: the message is done.
pub const BW_DONE: c_int = 0;
/// A callback's answer: the message is queued again.
pub const BW_AGAIN: c_int = 1;

/// How many lengths of transfers statistics tell apart: up to 1 byte, 2 to 3, 4 to 7, and so on to 65,536 and more.
pub const BW_HISTO_BUCKETS: usize = 17;
const _: () = assert!(BW_HISTO_BUCKETS == HISTO_BUCKETS);

/// Called with notes for people while a bus is opened. `note` is valid during the call.
pub type bw_note_fn = Option<unsafe extern "C-unwind" fn(user: *mut c_void, note: *const c_char)>;

/// Called each time a submitted message ran, by the thread that ran it, which has the bus: the worker, or one whose own
/// message was before it. `result` is `BW_OK` or why it failed, `length` how many bytes were clocked. Returns `BW_DONE`
/// or `BW_AGAIN`.
///
/// It may submit other messages and free any. It must not wait for the bus: those calls return
/// `BW_ERROR_WOULD_DEADLOCK`. No exception, no `longjmp` and no `pthread_exit` may leave it; a C++ exception and
/// `pthread_exit` end the program.
pub type bw_callback = Option<
    unsafe extern "C-unwind" fn(
        user: *mut c_void,
        message: *mut bw_message,
        result: bw_error,
        length: usize,
    ) -> c_int,
>;

/// A device's settings, under Linux's names. Set all to zero, then `size`, and the fields that matter: zero is the
/// usual value of each but `speed_hz`. Delays are in nanoseconds and are rounded up.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct bw_settings {
    /// `sizeof(bw_settings)`.
    pub size: u32,
    /// Clock polarity, phase and flags: `BW_MODE_0` to `BW_MODE_3`, `BW_CS_HIGH`, … The bits are Linux's.
    pub mode: u32,
    /// The fastest clock that the chip supports, in hertz, above zero. The clock is never faster.
    pub speed_hz: u32,
    /// The index in the controller's table of chip selects.
    pub chip_select: u8,
    /// Bits of a word; 0 for 8. Words of 16 and 32 bits have the processor's byte order.
    pub bits_per_word: u8,
    /// Waiting messages of higher priority go first; 0 is the lowest.
    pub priority: u8,
    /// Must be zero.
    pub reserved: u8,
    /// From CS active to the first clock edge.
    pub cs_setup_ns: u32,
    /// From the last clock edge to CS inactive.
    pub cs_hold_ns: u32,
    /// The least time for which CS stays inactive.
    pub cs_inactive_ns: u32,
    /// Between two words of a transfer.
    pub word_delay_ns: u32,
    /// A transfer that takes longer on the wire, in nanoseconds, waits by interrupt, if the controller has one; a shorter one is
    /// polled. 0 for the controller's limit, 1 for always by interrupt, `UINT32_MAX` for never. Since 0.2.
    pub poll_limit_ns: u32,
}

/// One transfer of a message, under Linux's names. Set all to zero, then the fields that matter: a field of zero takes
/// the device's value.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct bw_transfer {
    /// The bytes to send, or NULL for zeros.
    pub tx: *const c_void,
    /// Where the received bytes go, or NULL. May be the same as `tx`, but must not overlap it otherwise.
    pub rx: *mut c_void,
    /// How many bytes each of them has.
    pub len: usize,
    /// The clock of this transfer, in hertz.
    pub speed_hz: u32,
    /// The delay after this transfer, in nanoseconds.
    pub delay_ns: u32,
    /// The delay between words of this transfer, in nanoseconds.
    pub word_delay_ns: u32,
    /// With `cs_change`: how long CS stays inactive at least, in nanoseconds.
    pub cs_change_delay_ns: u32,
    /// Bits of a word of this transfer.
    pub bits_per_word: u8,
    /// Not zero: CS becomes inactive and active again between this transfer and the next.
    pub cs_change: u8,
    /// Must be zero.
    pub reserved: [u8; 14],
}

impl bw_transfer {
    #[inline]
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            speed_hz: self.speed_hz,
            bits_per_word: self.bits_per_word,
            delay_ns: self.delay_ns,
            word_delay_ns: self.word_delay_ns,
            cs_change: self.cs_change != 0,
            cs_change_delay_ns: self.cs_change_delay_ns,
        }
    }
}

/// A device's settings as the hardware implements them. Set `size` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct bw_effective {
    /// `sizeof(bw_effective)`.
    pub size: u32,
    /// The clock, in hertz, rounded down.
    pub speed_hz: u32,
    /// From CS active to the first clock edge, at least, in nanoseconds.
    pub cs_setup_ns: u64,
    /// From the last clock edge to CS inactive, at least, in nanoseconds.
    pub cs_hold_ns: u64,
    /// The least time for which CS stays inactive, in nanoseconds.
    pub cs_inactive_ns: u64,
    /// The least time between two words, in nanoseconds.
    pub word_delay_ns: u64,
    /// The quantum of delays, in nanoseconds, rounded up.
    pub quantum_ns: u64,
    /// Clocks for which SCK rests after each word.
    pub word_rest_clocks: u32,
    /// Zero.
    pub reserved: u32,
}

/// What a controller can do. Set `size` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct bw_limits {
    /// `sizeof(bw_limits)`.
    pub size: u32,
    /// The fastest clock, in hertz.
    pub max_speed_hz: u32,
    /// The slowest clock, in hertz, rounded up.
    pub min_speed_hz: u32,
    /// Supported word lengths: bit `n - 1` stands for words of `n` bits.
    pub bits_per_word_mask: u32,
    /// The frequency of the timer that makes delays, in hertz.
    pub timer_hz: u32,
    /// The longest delay of one transfer, in nanoseconds.
    pub max_delay_ns: u32,
    /// The longest message, in bytes, between two points where CS is inactive; `UINT64_MAX` if unlimited.
    pub max_message_bytes: u64,
}

/// What was on the wire, under Linux's names. Set `size` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct bw_statistics {
    /// `sizeof(bw_statistics)`.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// Messages that were run, including those that failed.
    pub messages: u64,
    /// Transfers that were clocked.
    pub transfers: u64,
    /// Messages that failed.
    pub errors: u64,
    /// Messages that failed because the controller did not finish in time.
    pub timedout: u64,
    /// Messages whose caller waited for them, including prepared ones.
    pub spi_sync: u64,
    /// Those of `spi_sync` that took no place in the queue.
    pub spi_sync_immediate: u64,
    /// Messages that were submitted.
    pub spi_async: u64,
    /// Bytes of the transfers that were clocked.
    pub bytes: u64,
    /// Bytes received into a buffer.
    pub bytes_rx: u64,
    /// Bytes sent from a buffer.
    pub bytes_tx: u64,
    /// Transfers by length.
    pub transfer_bytes_histo: [u64; BW_HISTO_BUCKETS],
    /// Transfers longer than the controller's maximum burst.
    pub transfers_split_maxsize: u64,
}

/// What a simulated board counted since it was opened. Set `size` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct bw_simulated {
    /// `sizeof(bw_simulated)`.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// The board's time since power-up, in nanoseconds.
    pub virtual_ns: u64,
    /// Bits clocked.
    pub bits: u64,
    /// Register reads.
    pub register_reads: u64,
    /// Register writes.
    pub register_writes: u64,
    /// How many rules were broken on the wire that harm data or chips.
    pub violations: u64,
}

/// More about the thread's last failed call. Set `size` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct bw_failure {
    /// `sizeof(bw_failure)`.
    pub size: u32,
    /// The code that was returned.
    pub error: i32,
    /// The operating system's error number, or 0.
    pub os_errno: i32,
    /// Zero.
    pub reserved: i32,
    /// The index of the transfer that failed.
    pub transfer_index: u64,
    /// Bytes of whole transfers that were clocked before it.
    pub actual_length: u64,
}

macro_rules! sized {
    ($($type:ident: $first:literal;)*) => {$(
        // SAFETY: `repr(C)`, the size first, and nothing but numbers.
        unsafe impl Sized32 for $type {
            const NAME: &'static str = stringify!($type);
            const FIRST: usize = $first;
            fn set_size(&mut self, size: u32) {
                self.size = size;
            }
        }
        const _: () = assert!(size_of::<$type>() >= $first);
    )*};
}

sized! {
    bw_settings: 32;
    bw_effective: 56;
    bw_limits: 32;
    bw_statistics: 232;
    bw_simulated: 48;
    bw_failure: 32;
}
