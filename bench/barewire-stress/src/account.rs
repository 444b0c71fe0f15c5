//! The contexts' own count of their messages, which the bus's statistics must match.

use barewire::bus::{HISTO_BUCKETS, Statistics};
use barewire::spi::Error;

use super::judge::{Outcome, WireCounts};

/// The way a message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// Its caller waited, and the bus was idle, or its own already.
    Immediate,
    /// Its caller waited, also for other messages.
    Waited,
    /// It was submitted.
    Async,
}

/// What a transfer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// It only sends.
    Writes,
    /// It only receives.
    Reads,
    /// Both, in two buffers.
    Exchanges,
    /// Both, in one.
    InPlace,
}

/// The contexts' own count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Account {
    pub(super) expected: Statistics,
    pub(super) cancelled: u64,
    pub(super) busy: u64,
    /// Messages whose received bytes or length differ from the wire's.
    pub(super) wrong_results: u64,
}

impl Account {
    /// Counts a settled message of `transfers`, each with its length and direction.
    pub(super) fn settle(
        &mut self,
        path: Path,
        transfers: impl Iterator<Item = (usize, Does)>,
        outcome: Outcome,
    ) {
        let counted = &mut self.expected;
        let whole = match outcome {
            Outcome::NotRun => return,
            Outcome::Done(_) => usize::MAX,
            Outcome::Failed(error) => {
                counted.errors += 1;
                counted.timedout += u64::from(matches!(error.error, Error::Timeout { .. }));
                error.transfer_index
            }
        };
        counted.messages += 1;
        match path {
            Path::Immediate | Path::Waited => counted.spi_sync += 1,
            Path::Async => counted.spi_async += 1,
        }
        counted.spi_sync_immediate += u64::from(path == Path::Immediate);
        for (len, does) in transfers.take(whole) {
            counted.transfers += 1;
            counted.bytes += len as u64;
            counted.bytes_tx += if does == Does::Reads { 0 } else { len as u64 };
            counted.bytes_rx += if does == Does::Writes { 0 } else { len as u64 };
            let mut bucket = HISTO_BUCKETS - 1;
            while len < Statistics::bucket_begin(bucket) {
                bucket -= 1;
            }
            counted.transfer_bytes_histo[bucket] += 1;
        }
    }

    /// The fields of `counted` that differ from what the contexts or the wire counted.
    pub(super) fn mismatches(&self, counted: &Statistics, seen: &WireCounts) -> Vec<String> {
        let expected = &self.expected;
        let mut wrong = Vec::new();
        let mut field = |name: &str, counted: u64, known: &[u64]| {
            if let Some(known) = known.iter().find(|&&known| known != counted) {
                wrong.push(format!("{name} is {counted}, not {known}"));
            }
        };
        // A failed message does not count on the wire, which sees only its first transfers.
        field("messages", counted.messages, &[expected.messages, seen.messages + expected.errors]);
        field("transfers", counted.transfers, &[expected.transfers]);
        field("errors", counted.errors, &[expected.errors]);
        field("timedout", counted.timedout, &[expected.timedout]);
        field("spi_sync", counted.spi_sync, &[expected.spi_sync]);
        let immediate = expected.spi_sync_immediate;
        field("spi_sync_immediate", counted.spi_sync_immediate, &[immediate]);
        field("spi_async", counted.spi_async, &[expected.spi_async]);
        field("bytes", counted.bytes, &[expected.bytes, seen.bytes]);
        field("bytes_rx", counted.bytes_rx, &[expected.bytes_rx]);
        field("bytes_tx", counted.bytes_tx, &[expected.bytes_tx]);
        for index in 0..HISTO_BUCKETS {
            let name = format!("transfer_bytes_histo_{}", Statistics::bucket_name(index));
            let known = expected.transfer_bytes_histo[index];
            field(&name, counted.transfer_bytes_histo[index], &[known]);
        }
        field("transfers_split_maxsize", counted.transfers_split_maxsize, &[0]);
        wrong
    }
}
