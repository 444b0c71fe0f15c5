//! Statistics: what was on the wire, under the names of Linux's `spi_statistics`.
//!
//! # How it works
//! Counting is off by default and then costs one load of a flag per message. When it is on, the
//! holder of the bus counts with plain stores, since there is only one holder. Every counter exists
//! in two copies. While the holder changes one copy, readers are pointed to the other; then the
//! roles change. So a reader always finds a consistent copy, even one that interrupted the holder
//! and cannot wait for it. A reader that a holder on another processor overtakes reads again.
//!
//! Few counters are kept; the rest are derived when read. A message of one transfer changes three.
//!
//! The bus counts, not a layer around the controller: only the bus knows the path of a message.
//!
//! # Ordering
//! 1. Before the first copy changes, the sequence number becomes odd, which points readers to the
//!    second copy. A release store publishes the earlier changes of the second copy; a release
//!    fence follows it.
//! 2. Before the second copy changes, the number becomes even, which points readers to the first,
//!    in the same way.
//! 3. A reader loads the number with acquire, then the copy it points to, then, after an acquire
//!    fence, the number again.
//!
//! # Not supported
//! Statistics per device, which the kernel has too: these are per controller.

use super::atomic::{AtomicU32, AtomicUsize, Ordering, fence};
use crate::controller::{Preset, Unfinished};
use crate::spi::{Direction, Error, Transfer};

/// Buckets of the transfer length histogram.
pub const HISTO_BUCKETS: usize = 17;

/// The path by which a message came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// Ran without a place in the queue.
    Immediate,
    /// Its caller waited in the queue.
    Waited,
    /// It was submitted.
    Async,
}

const PATHS: usize = 3;
const ERRORS: usize = PATHS;
const TIMEDOUT: usize = ERRORS + 1;
/// Bytes, by direction: send, receive, both.
const BYTES: usize = TIMEDOUT + 1;
const SPLIT: usize = BYTES + 3;
const HISTO: usize = SPLIT + 1;
const COUNTERS: usize = HISTO + HISTO_BUCKETS;

/// The counters, as of one moment, under the kernel's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Statistics {
    /// Messages that ran, including failed ones.
    pub messages: u64,
    /// Transfers that were clocked; of a failed message only those before the one that failed.
    pub transfers: u64,
    /// Messages that failed.
    pub errors: u64,
    /// Messages that failed because the controller did not finish in time.
    pub timedout: u64,
    /// Messages whose caller waited for them, including prepared ones.
    pub spi_sync: u64,
    /// The messages of `spi_sync` that never joined the queue: the bus was idle, or became idle
    /// while they spun.
    pub spi_sync_immediate: u64,
    /// Messages that were submitted.
    pub spi_async: u64,
    /// Bytes of the transfers that were clocked.
    pub bytes: u64,
    /// Bytes received into a buffer.
    pub bytes_rx: u64,
    /// Bytes sent from a buffer.
    pub bytes_tx: u64,
    /// Transfers by length: up to 1 byte, 2 to 3, 4 to 7, and so on to 65,536 and more.
    pub transfer_bytes_histo: [u64; HISTO_BUCKETS],
    /// Transfers longer than the controller's maximum burst (512 bytes for the ECSPI).
    pub transfers_split_maxsize: u64,
}

impl Statistics {
    /// The smallest length in bytes of bucket `index` of the histogram (0 for the first).
    #[must_use]
    pub const fn bucket_begin(index: usize) -> usize {
        if index == 0 { 0 } else { 1 << index }
    }

    /// The kernel's name for bucket `index`: `0-1`, `2-3`, …, `65536+`.
    pub fn bucket_name(index: usize) -> impl core::fmt::Display {
        struct Name(usize);
        impl core::fmt::Display for Name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let begin = Statistics::bucket_begin(self.0);
                if self.0 + 1 < HISTO_BUCKETS {
                    write!(f, "{begin}-{}", (2 << self.0) - 1)
                } else {
                    write!(f, "{begin}+")
                }
            }
        }
        Name(index)
    }
}

/// The bucket of a transfer of `len` bytes.
#[inline]
pub(super) fn bucket(len: usize) -> usize {
    ((len | 1).ilog2() as usize).min(HISTO_BUCKETS - 1)
}

/// A counter that one thread at a time writes, and that any thread may read under the sequence
/// number.
///
/// Two words on processors without 64-bit atomics.
pub(super) struct Counter {
    low: AtomicUsize,
    #[cfg(not(target_pointer_width = "64"))]
    high: AtomicUsize,
}

impl Counter {
    const fn new() -> Self {
        Self {
            low: AtomicUsize::new(0),
            #[cfg(not(target_pointer_width = "64"))]
            high: AtomicUsize::new(0),
        }
    }

    #[inline]
    pub(super) fn add(&self, more: usize) {
        let low = self.low.load(Ordering::Relaxed);
        #[cfg(not(target_pointer_width = "64"))]
        if low.checked_add(more).is_none() {
            self.high.store(self.high.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
        self.low.store(low.wrapping_add(more), Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        let low = self.low.load(Ordering::Relaxed) as u64;
        #[cfg(not(target_pointer_width = "64"))]
        let low = (self.high.load(Ordering::Relaxed) as u64) << 32 | low;
        low
    }
}

/// The counters of a bus.
pub(super) struct Counters {
    sequence: AtomicU32,
    copies: [[Counter; COUNTERS]; 2],
}

impl Counters {
    pub(super) const fn with(sequence: AtomicU32) -> Self {
        Self { sequence, copies: [const { [const { Counter::new() }; COUNTERS] }; 2] }
    }

    /// Counts a message that was run. The caller holds the bus.
    #[inline]
    pub(super) fn count(
        &self,
        path: Path,
        preset: &Preset,
        message: &[Transfer<'_>],
        ran: Result<usize, Unfinished>,
    ) {
        match message {
            [transfer] if ran.is_ok() && transfer.data().len() <= preset.max_transfer_bytes => {
                let data = transfer.data();
                self.count_one(path, data.direction(), data.len());
            }
            _ => self.count_any(path, preset, message, ran),
        }
    }

    /// Counts a message of one transfer of `len` bytes that succeeded.
    #[inline]
    fn count_one(&self, path: Path, direction: Direction, len: usize) {
        let (histo, bytes) = (HISTO + bucket(len), BYTES + direction as usize);
        self.in_both(|counters| {
            counters[path as usize].add(1);
            counters[histo].add(1);
            counters[bytes].add(len);
        });
    }

    /// Counts a message of one exchange that took no place in the queue; a cold function of its
    /// own, for callers that seldom count. The arguments of the call stay in registers.
    #[cold]
    #[inline(never)]
    pub(super) fn count_exchange_apart(&self, preset: &Preset, ran: Result<usize, Unfinished>) {
        let (path, direction) = (Path::Immediate, Direction::Both);
        match ran {
            Ok(len) if len <= preset.max_transfer_bytes => self.count_one(path, direction, len),
            // Its one transfer is the one that failed, so it is not counted.
            Err(_) => self.count_any(path, preset, &[], ran),
            Ok(len) => self.in_both(|counters| {
                counters[path as usize].add(1);
                count_transfer(counters, preset, direction, len);
            }),
        }
    }

    #[inline(never)]
    fn count_any(
        &self,
        path: Path,
        preset: &Preset,
        message: &[Transfer<'_>],
        ran: Result<usize, Unfinished>,
    ) {
        self.in_both(|counters| count_in(counters, path, preset, message, ran));
    }

    /// Applies `count` to one copy, then to the other.
    #[inline]
    pub(super) fn in_both(&self, count: impl Fn(&[Counter; COUNTERS])) {
        let [first, second] = &self.copies;
        self.turn_over();
        count(first);
        self.turn_over();
        count(second);
    }

    /// Sends readers to the other copy.
    #[inline]
    fn turn_over(&self) {
        // Only the holder writes it. Read again each time: then it is one instruction on memory.
        let next = self.sequence.load(Ordering::Relaxed).wrapping_add(1);
        self.sequence.store(next, Ordering::Release);
        fence(Ordering::Release);
    }

    /// [`Counters::count`] as a cold function of its own, for callers that seldom count.
    #[cold]
    #[inline(never)]
    pub(super) fn count_apart(
        &self,
        path: Path,
        preset: &Preset,
        message: &[Transfer<'_>],
        ran: Result<usize, Unfinished>,
    ) {
        self.count(path, preset, message, ran);
    }

    /// The counters, as of one moment. Lock-free: another round only after a message was counted
    /// meanwhile.
    pub(super) fn read(&self) -> Statistics {
        // Ordering 3.
        loop {
            let before = self.sequence.load(Ordering::Acquire);
            let copy = &self.copies[before as usize % 2];
            let counters: [u64; COUNTERS] = core::array::from_fn(|index| copy[index].read());
            fence(Ordering::Acquire);
            if self.sequence.load(Ordering::Relaxed) == before {
                return derive(&counters);
            }
        }
    }
}

pub(super) fn count_in(
    counters: &[Counter; COUNTERS],
    path: Path,
    preset: &Preset,
    message: &[Transfer<'_>],
    ran: Result<usize, Unfinished>,
) {
    counters[path as usize].add(1);
    let mut clocked = message;
    if let Err(unfinished) = ran {
        clocked = clocked.get(..unfinished.transfer_index()).unwrap_or_default();
        counters[ERRORS].add(1);
        if let Error::Timeout { .. } = unfinished.error() {
            counters[TIMEDOUT].add(1);
        }
    }
    for transfer in clocked {
        let data = transfer.data();
        count_transfer(counters, preset, data.direction(), data.len());
    }
}

fn count_transfer(
    counters: &[Counter; COUNTERS],
    preset: &Preset,
    direction: Direction,
    len: usize,
) {
    counters[HISTO + bucket(len)].add(1);
    counters[BYTES + direction as usize].add(len);
    if len > preset.max_transfer_bytes {
        counters[SPLIT].add(1);
    }
}

fn derive(counters: &[u64; COUNTERS]) -> Statistics {
    let [immediate, waited, spi_async] =
        [Path::Immediate, Path::Waited, Path::Async].map(|path| counters[path as usize]);
    let [tx, rx, both] = [0, 1, 2].map(|direction| counters[BYTES + direction]);
    let transfer_bytes_histo = core::array::from_fn(|index| counters[HISTO + index]);
    Statistics {
        messages: immediate + waited + spi_async,
        transfers: transfer_bytes_histo.iter().sum(),
        errors: counters[ERRORS],
        timedout: counters[TIMEDOUT],
        spi_sync: immediate + waited,
        spi_sync_immediate: immediate,
        spi_async,
        bytes: tx + rx + both,
        bytes_rx: rx + both,
        bytes_tx: tx + both,
        transfer_bytes_histo,
        transfers_split_maxsize: counters[SPLIT],
    }
}
