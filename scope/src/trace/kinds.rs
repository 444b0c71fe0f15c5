//! Messages of a kind: how many, and the distribution of their times.

use std::collections::BTreeMap;

use super::messages::{Mark, Message, Trace};
use crate::counts::Counts;

/// The most kinds that are kept apart.
const KINDS_MAX: usize = 1_024;

/// Messages of one device with transfers of the same lengths. Times are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct TraceKind {
    /// The device; empty for all kinds that came after 1,024 others.
    pub device: String,
    /// The lengths of the transfers in bytes.
    pub transfers: Vec<u64>,
    /// How many there are.
    pub count: u64,
    /// Of these, how many another task than the submitter began.
    pub pumped: u64,
    /// All of their transfers.
    pub transferring_ns: u64,
    /// The times, by [`FIGURES`](Self::FIGURES).
    pub figures: [Counts; 8],
}

impl TraceKind {
    /// The names of the figures, and what a table calls them, in the order of a message.
    pub const FIGURES: [(&str, &str); 8] = [
        ("submit_to_start_ns", "submit to start"),
        ("start_to_transfer_ns", "start to first transfer"),
        ("transfers_ns", "transfers"),
        ("between_transfers_ns", "between transfers"),
        ("transfer_to_done_ns", "last transfer to done"),
        ("submit_to_done_ns", "submit to done"),
        ("done_to_waiter_ns", "done to waiter runs"),
        ("done_to_submit_ns", "done to next submit"),
    ];

    /// What messages of the kind have in common beside the device: `1+4+512 bytes`.
    #[must_use]
    pub fn name(&self) -> String {
        match (&self.device[..], &self.transfers[..]) {
            ("", _) => "all others".into(),
            (_, []) => "no transfers in the trace".into(),
            (_, [1]) => "1 byte".into(),
            (_, lengths) => {
                lengths.iter().map(u64::to_string).collect::<Vec<_>>().join("+") + " bytes"
            }
        }
    }

    fn add(&mut self, message: &Message) {
        self.count += 1;
        self.pumped += u64::from(message.runner != message.submitter);
        let (submit, done) = (message.submit_ns(), message.done_ns());
        let start = message.first_ns(|mark| mark == Mark::Start).unwrap_or(submit);
        let mut put = |figure: usize, ns: u64| self.figures[figure].add(ns);
        put(0, start - submit);
        if let (Some(first), Some(last)) = (message.transfers.first(), message.transfers.last()) {
            let within =
                message.transfers.iter().map(|transfer| transfer.stop_ns - transfer.start_ns);
            let within = within.sum();
            self.transferring_ns += within;
            put(1, first.start_ns - start);
            put(2, within);
            let pairs = message.transfers.windows(2);
            pairs.for_each(|pair| put(3, pair[1].start_ns - pair[0].stop_ns));
            put(4, done - last.stop_ns);
        }
        put(5, done - submit);
        message.waiter_ns.into_iter().for_each(|ran| put(6, ran - done));
        message.next_submit_ns.into_iter().for_each(|next| put(7, next - done));
    }
}

/// The kinds of a trace's messages, those of the longest time in transfers first.
#[must_use]
pub fn kinds(trace: &Trace) -> Vec<TraceKind> {
    let mut kinds: BTreeMap<(&str, Vec<u64>), TraceKind> = BTreeMap::new();
    for message in &trace.messages {
        let mut key = (message.device.as_str(), message.lengths().collect());
        if !kinds.contains_key(&key) && kinds.len() >= KINDS_MAX {
            key = ("", Vec::new());
        }
        kinds.entry(key).or_default().add(message);
    }
    let named = |((device, transfers), kind): ((&str, Vec<u64>), TraceKind)| TraceKind {
        device: device.into(),
        transfers,
        ..kind
    };
    let mut kinds: Vec<_> = kinds.into_iter().map(named).collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.transferring_ns));
    kinds
}
