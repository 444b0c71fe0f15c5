//! Statistics: what was on the wire, by the names of Linux's spi_statistics.
//!
//! # How it works
//! Off by default: then a message costs one look at a flag. On, the holder of the bus counts with
//! plain stores, since there is only one. Every counter is kept twice. The holder counts in one copy
//! while readers are pointed to the other, and then the other way round; so a reader always finds a
//! whole copy, also one that interrupted the holder and cannot wait for it. A reader that another
//! processor's holder overtakes reads again.
//!
//! Few counters are kept and the rest derived when read: a message of one transfer changes three.
//!
//! The bus counts, not a layer around the controller: only the bus knows by which path a message came.
//!
//! # Ordering
//! 1. The number becomes odd, which points readers to the second copy, before the first changes
//!    (release store for what was done to the second, release fence after it).
//! 2. It becomes even, which points them to the first, before the second changes (the same).
//! 3. A reader reads it with acquire, then the copy it points to, then (acquire fence) the number
//!    again.
//!
//! # Not supported
//! Statistics of one device (the kernel has them too): the bus's are those of the controller.

use super::atomic::{AtomicU32, AtomicUsize, Ordering, fence};
use crate::controller::{Program, Unfinished};
use crate::spi::{Direction, Error, Transfer};

/// Buckets of the transfer length histogram.
pub const HISTO_BUCKETS: usize = 17;

/// The way a message came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// Its caller had no place in the queue.
    Immediate,
    /// Its caller waited for its turn.
    Waited,
    /// It was submitted.
    Async,
}

const PATHS: usize = 3;
const ERRORS: usize = PATHS;
const TIMEDOUT: usize = ERRORS + 1;
/// By what the transfers do: send, receive, both.
const BYTES: usize = TIMEDOUT + 1;
const SPLIT: usize = BYTES + 3;
const HISTO: usize = SPLIT + 1;
const COUNTERS: usize = HISTO + HISTO_BUCKETS;

/// What was counted, at one moment. The names are the kernel's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Statistics {
    /// Messages that were run, failed ones too.
    pub messages: u64,
    /// Transfers that were clocked; of a failed message those before the one that failed.
    pub transfers: u64,
    /// Messages that failed.
    pub errors: u64,
    /// Messages that failed because the controller did not finish in time.
    pub timedout: u64,
    /// Messages whose caller waited for them, prepared ones too.
    pub spi_sync: u64,
    /// Those of them that never had a place in the queue: the bus was idle, or so within a few looks.
    pub spi_sync_immediate: u64,
    /// Messages that were submitted.
    pub spi_async: u64,
    /// Bytes of those transfers.
    pub bytes: u64,
    /// Bytes received into a buffer.
    pub bytes_rx: u64,
    /// Bytes sent from a buffer.
    pub bytes_tx: u64,
    /// Transfers by length: up to 1 byte, 2 to 3, 4 to 7, and so on to 65,536 and more.
    pub transfer_bytes_histo: [u64; HISTO_BUCKETS],
    /// Transfers longer than the controller takes at once (the ECSPI's bursts are of 512 bytes).
    pub transfers_split_maxsize: u64,
}

impl Statistics {
    /// The length in bytes at which bucket `index` of the histogram begins (the first at 0).
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

/// A counter that one thread at a time writes and any may read under the sequence number.
///
/// Two words, since not every processor has 64-bit atomics.
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
        program: &Program,
        message: &[Transfer<'_>],
        ran: Result<usize, Unfinished>,
    ) {
        match message {
            [transfer] if ran.is_ok() && transfer.data().len() <= program.max_transfer_bytes => {
                let data = transfer.data();
                self.count_one(path, data.direction(), data.len());
            }
            _ => self.count_any(path, program, message, ran),
        }
    }

    /// Counts a good message of one transfer of `len` bytes.
    #[inline]
    fn count_one(&self, path: Path, direction: Direction, len: usize) {
        let (histo, bytes) = (HISTO + bucket(len), BYTES + direction as usize);
        self.in_both(|counters| {
            counters[path as usize].add(1);
            counters[histo].add(1);
            counters[bytes].add(len);
        });
    }

    /// Counts a message of one exchange of `tx` and `rx` that was run at once, out of the way of a caller
    /// that seldom counts.
    #[cold]
    #[inline(never)]
    pub(super) fn count_exchange_apart(
        &self,
        program: &Program,
        tx: &[u8],
        rx: &mut [u8],
        ran: Result<usize, Unfinished>,
    ) {
        match ran {
            Ok(len) if len <= program.max_transfer_bytes => {
                self.count_one(Path::Immediate, Direction::Both, len);
            }
            _ => {
                let message = [Transfer::of_plan(tx, rx, program.plan)];
                self.count_any(Path::Immediate, program, &message, ran);
            }
        }
    }

    #[inline(never)]
    fn count_any(
        &self,
        path: Path,
        program: &Program,
        message: &[Transfer<'_>],
        ran: Result<usize, Unfinished>,
    ) {
        self.in_both(|counters| count_in(counters, path, program, message, ran));
    }

    /// Has `count` change one copy, then the other.
    #[inline]
    pub(super) fn in_both(&self, count: impl Fn(&[Counter; COUNTERS])) {
        let [first, second] = &self.copies;
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(sequence.wrapping_add(1), Ordering::Release);
        fence(Ordering::Release);
        count(first);
        self.sequence.store(sequence.wrapping_add(2), Ordering::Release);
        fence(Ordering::Release);
        count(second);
    }

    /// The same, out of the way of a caller that seldom counts.
    #[cold]
    #[inline(never)]
    pub(super) fn count_apart(
        &self,
        path: Path,
        program: &Program,
        message: &[Transfer<'_>],
        ran: Result<usize, Unfinished>,
    ) {
        self.count(path, program, message, ran);
    }

    /// What was counted, at one moment. Lock-free: a round fails only because a message was counted
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
    program: &Program,
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
        counters[HISTO + bucket(data.len())].add(1);
        counters[BYTES + data.direction() as usize].add(data.len());
        if data.len() > program.max_transfer_bytes {
            counters[SPLIT].add(1);
        }
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
