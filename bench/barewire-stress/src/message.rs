//! A message of random form: its transfers, their directions, and where CS becomes inactive.

use barewire::spi::Transfer;
use barewire_sim::random::SplitMix64;

use super::account::Does;
use super::frame::{HEADER, Header, LEN_MIN, checksum, payload};

/// The longest transfer that ECSPI's own line takes, in bytes.
const PULSES_LEN_MAX: usize = 256;

/// Any generator with a fixed seed will do.
#[derive(Clone, Debug)]
pub(super) struct Random(SplitMix64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from 0 to `below` − 1.
    pub(super) fn below(&mut self, below: usize) -> usize {
        (self.next() % below as u64) as usize
    }

    pub(super) fn one_in(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
}

/// The plan of one transfer.
#[derive(Clone, Copy, Debug)]
struct Piece {
    len: usize,
    does: Does,
    cs_change: bool,
    speed_hz: u32,
    delay_ns: u32,
}

/// A message before it is submitted, and the data it received. It is used again and again.
#[derive(Default)]
pub(super) struct Message {
    pieces: Vec<Piece>,
    parts: usize,
    tx: Vec<u8>,
    rx: Vec<u8>,
}

impl Message {
    pub(super) fn len(&self) -> usize {
        self.tx.len()
    }

    /// Makes up a message. `pulses`: CS drops after every transfer of the device, as that of a
    /// controller's own line does.
    pub(super) fn make_up(&mut self, random: &mut Random, pulses: bool) {
        let room = if random.one_in(16) { 280 } else { 24 };
        let len = 2 * LEN_MIN + random.below(room);
        let len = if pulses { len.min(PULSES_LEN_MAX) } else { len };
        self.parts = if random.one_in(3) { 1 + random.below(3) } else { 1 };
        // The first part holds the header.
        while len / self.parts < HEADER + 1 {
            self.parts -= 1;
        }
        self.tx.clear();
        self.tx.resize(len, 0);
        self.rx.resize(len, 0);
        self.pieces.clear();
        let header = Header { context: 0, number: 0, len, parts: self.parts };
        for part in 0..self.parts {
            let (begin, end) = (header.part_at(part), header.part_at(part + 1));
            let mut at = begin;
            while at < end {
                // What the judge must read is sent: heads, and the checksum.
                let head = if part == 0 { HEADER } else { 1 };
                let left = end - at;
                let least = if at == begin { head } else { 1 };
                let whole = pulses || left <= least || random.one_in(2);
                let len = if whole { left } else { least + random.below(left - least) };
                let sends = at == begin || at + len == header.len || random.one_in(2);
                let does = match random.below(3) {
                    _ if !sends => Does::Reads,
                    0 => Does::Writes,
                    1 => Does::Exchanges,
                    _ => Does::InPlace,
                };
                let special = random.one_in(12);
                let speed_hz = if special { 8_000_000 } else { 0 };
                let delay_ns = if special && !pulses { 300 } else { 0 };
                at += len;
                let cs_change = at == end && part + 1 < self.parts;
                self.pieces.push(Piece { len, does, cs_change, speed_hz, delay_ns });
            }
        }
        let mut at = 0;
        for piece in &self.pieces {
            if piece.does != Does::Reads {
                self.tx[at..at + piece.len].iter_mut().for_each(|b| *b = payload(random.next()));
            }
            at += piece.len;
        }
    }

    /// Writes the header that says whose message it is.
    pub(super) fn sign(&mut self, context: usize, number: u32) {
        let header = Header { context, number, len: self.tx.len(), parts: self.parts };
        header.write(&mut self.tx);
        seal(&mut self.tx);
        self.rx.copy_from_slice(&self.tx);
    }

    /// The message over its buffers.
    pub(super) fn transfers(&mut self) -> Vec<Transfer<'_>> {
        let (mut tx, mut rx) = (&self.tx[..], &mut self.rx[..]);
        let mut transfers = Vec::with_capacity(self.pieces.len());
        for piece in &self.pieces {
            let (out, rest) = tx.split_at(piece.len);
            tx = rest;
            let (into, rest) = rx.split_at_mut(piece.len);
            rx = rest;
            let mut transfer = match piece.does {
                Does::Writes => Transfer::write(out),
                Does::Reads => Transfer::read(into),
                Does::Exchanges => Transfer::exchange(out, into),
                Does::InPlace => Transfer::in_place(into),
            };
            transfer.cs_change = piece.cs_change;
            transfer.speed_hz = piece.speed_hz;
            transfer.delay_ns = piece.delay_ns;
            transfers.push(transfer);
        }
        transfers
    }

    /// Length and direction of each transfer.
    pub(super) fn does(&self) -> impl Iterator<Item = (usize, Does)> {
        self.pieces.iter().map(|piece| (piece.len, piece.does))
    }

    /// Whether the received bytes are the sent bytes, one byte later in each selection.
    pub(super) fn received_well(&self) -> bool {
        let (mut at, mut selected) = (0, true);
        self.pieces.iter().all(|piece| {
            let begin = at;
            at += piece.len;
            let was_selected = selected;
            selected = piece.cs_change;
            if piece.does == Does::Writes {
                return true;
            }
            let first = if was_selected { 0 } else { self.tx[begin - 1] };
            self.rx[begin] == first && self.rx[begin + 1..at] == self.tx[begin..at - 1]
        })
    }
}

/// Signs and seals bytes that are a message of one selection.
pub(super) fn sign(bytes: &mut [u8], context: usize, number: u32) {
    Header { context, number, len: bytes.len(), parts: 1 }.write(bytes);
    seal(bytes);
}

fn seal(bytes: &mut [u8]) {
    if let Some((last, before)) = bytes.split_last_mut() {
        *last = checksum(0, before);
    }
}
