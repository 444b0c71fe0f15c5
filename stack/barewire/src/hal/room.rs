//! Operations as transfers, in room for a fixed number of them.
//!
//! # How it works
//! 1. An operation is a transfer; a `Transfer` of two lengths is two, what is common and what is
//!    left: [`Transfer::write`] throws away what comes in, [`Transfer::read`] sends zeros.
//! 2. Delays are gathered until something follows them, and then belong to the transfer before
//!    them. At the beginning, and beyond [`Shape::delay_max_ns`], an empty transfer is put there to
//!    carry them.
//! 3. A transaction without anything is one empty transfer: CS goes active and inactive.
//!
//! More than there is room for is counted and not kept, so that an error can tell how many there
//! were, and room for nothing counts.

use core::array;

use embedded_hal::spi::Operation;

use crate::spi::Transfer;

/// What a device asks of all its transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// The longest delay of one transfer, in nanoseconds, above zero.
    pub(super) delay_max_ns: u32,
    /// Bits of a word, where the device's own are not 8; else 0.
    pub(super) bits_per_word: u8,
}

impl Shape {
    /// One second: in ticks it fits 32 bits whatever the timer's frequency, which does too.
    pub(super) const DELAY_MAX_NS: u32 = 1_000_000_000;

    /// The shape for a device whose words are of `bits_per_word`.
    pub(super) fn new(bits_per_word: u8) -> Self {
        let bits_per_word = if bits_per_word == 8 { 0 } else { 8 };
        Self { delay_max_ns: Self::DELAY_MAX_NS, bits_per_word }
    }

    /// The shape for a device whose words are what its settings say.
    #[cfg(feature = "words16")]
    pub(super) fn of_device() -> Self {
        Self { delay_max_ns: Self::DELAY_MAX_NS, bits_per_word: 0 }
    }

    /// The same with delays in pieces of at most `delay_max_ns`, which are not longer than they would
    /// be without.
    pub(super) fn with_delay_max_ns(self, delay_max_ns: u32) -> Self {
        Self { delay_max_ns: delay_max_ns.clamp(1, Self::DELAY_MAX_NS), ..self }
    }
}

/// Room for `N` transfers.
#[derive(Debug)]
pub(super) struct Room<'o, const N: usize> {
    transfers: [Transfer<'o>; N],
    /// Transfers there should be: above `N` the rest is not kept.
    len: usize,
    shape: Shape,
    /// Delays gathered, in nanoseconds.
    owed_ns: u64,
    /// The last transfer has its delay already.
    last_waits: bool,
}

impl<'o, const N: usize> Room<'o, N> {
    fn begin(shape: Shape) -> Self {
        let transfers = array::from_fn(|_| Transfer::write(&[]));
        Self { transfers, len: 0, shape, owed_ns: 0, last_waits: false }
    }

    fn with(operations: &'o mut [Operation<'_, u8>], shape: Shape) -> Self {
        let mut this = Self::begin(shape);
        for operation in operations {
            match operation {
                Operation::Read(read) => this.push(Transfer::read(read)),
                Operation::Write(write) => this.push(Transfer::write(write)),
                Operation::TransferInPlace(both) => this.push(Transfer::in_place(both)),
                Operation::Transfer(read, write) => this.push_both(read, write),
                Operation::DelayNs(ns) => this.owed_ns += u64::from(*ns),
            }
        }
        this.settle();
        this
    }

    /// The transaction of `operations`.
    pub(super) fn of(operations: &'o mut [Operation<'_, u8>], shape: Shape) -> Self {
        let mut this = Self::with(operations, shape);
        if this.len == 0 {
            this.place(Transfer::write(&[]));
        }
        this
    }

    /// The message.
    ///
    /// # Panics
    /// If it is longer than the room.
    pub(super) fn message(&mut self) -> &mut [Transfer<'o>] {
        &mut self.transfers[..self.len]
    }

    fn push_both(&mut self, read: &'o mut [u8], write: &'o [u8]) {
        let common = read.len().min(write.len());
        let (read, more_read) = read.split_at_mut(common);
        let (write, more_write) = write.split_at(common);
        // An empty transfer is one only if nothing else is left of the operation.
        if common > 0 || more_read.len() + more_write.len() == 0 {
            self.push(Transfer::exchange(write, read));
        }
        if !more_read.is_empty() {
            self.push(Transfer::read(more_read));
        }
        if !more_write.is_empty() {
            self.push(Transfer::write(more_write));
        }
    }

    fn push(&mut self, transfer: Transfer<'o>) {
        self.settle();
        self.place(transfer);
    }

    fn place(&mut self, transfer: Transfer<'o>) {
        if let Some(slot) = self.transfers.get_mut(self.len) {
            *slot = transfer.with_bits_per_word(self.shape.bits_per_word);
        }
        self.len += 1;
        self.last_waits = false;
    }

    /// Makes the delays gathered those of transfers (2.).
    fn settle(&mut self) {
        while self.owed_ns > 0 {
            if self.len == 0 || self.last_waits {
                self.place(Transfer::write(&[]));
            }
            let piece_ns = self.owed_ns.min(u64::from(self.shape.delay_max_ns)) as u32;
            if let Some(last) = self.transfers.get_mut(self.len - 1) {
                last.delay_ns = piece_ns;
            }
            self.last_waits = true;
            self.owed_ns -= u64::from(piece_ns);
        }
    }
}

/// How many transfers the transaction of `operations` is.
pub(super) fn transfers(operations: &mut [Operation<'_, u8>], shape: Shape) -> usize {
    Room::<0>::of(operations, shape).len
}

/// Which of `operations` transfer `index` comes from; the last if there is no such transfer.
pub(super) fn operation_index(
    operations: &mut [Operation<'_, u8>],
    shape: Shape,
    index: usize,
) -> usize {
    let last = operations.len().saturating_sub(1);
    let reaches = |&end: &usize| Room::<0>::with(&mut operations[..=end], shape).len > index;
    (0..last).find(reaches).unwrap_or(last)
}
