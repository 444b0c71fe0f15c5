//! Turns operations into transfers, in an array of fixed size.
//!
//! # How it works
//! 1. An operation is a transfer. A `Transfer` of two lengths is two: the common part, and the rest
//!    as [`Transfer::write`] (received bytes are discarded) or [`Transfer::read`] (zeros are sent).
//! 2. Delays are summed until another operation follows; then they belong to the transfer before
//!    them. At the beginning, and beyond [`Shape::delay_max_ns`], an empty transfer is added to
//!    carry them.
//! 3. A transaction without operations is one empty transfer: CS becomes active and inactive.
//!
//! Transfers beyond the array's size are counted but not stored, so that an error can tell the
//! number. An array of size 0 therefore just counts.

use core::array;

use embedded_hal::spi::Operation;

use crate::spi::Transfer;

/// The fields that are the same for all transfers of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// The longest delay of one transfer, in nanoseconds, above zero.
    pub(super) delay_max_ns: u32,
    /// 8 if the device's own words have another length, else 0.
    pub(super) bits_per_word: u8,
}

impl Shape {
    /// One second: as ticks it fits 32 bits at any frequency, because the frequency fits 32 bits.
    pub(super) const DELAY_MAX_NS: u32 = 1_000_000_000;

    /// The shape for a device with words of `bits_per_word`.
    pub(super) fn new(bits_per_word: u8) -> Self {
        let bits_per_word = if bits_per_word == 8 { 0 } else { 8 };
        Self { delay_max_ns: Self::DELAY_MAX_NS, bits_per_word }
    }

    /// The shape for a device whose words are what its settings say.
    #[cfg(feature = "words16")]
    pub(super) fn of_device() -> Self {
        Self { delay_max_ns: Self::DELAY_MAX_NS, bits_per_word: 0 }
    }

    /// Makes delays in pieces of at most `delay_max_ns`, if that is shorter than a second.
    pub(super) fn with_delay_max_ns(self, delay_max_ns: u32) -> Self {
        Self { delay_max_ns: delay_max_ns.clamp(1, Self::DELAY_MAX_NS), ..self }
    }
}

/// Room for `N` transfers.
#[derive(Debug)]
pub(super) struct Room<'o, const N: usize> {
    transfers: [Transfer<'o>; N],
    /// Transfers needed; those above `N` are not stored.
    len: usize,
    shape: Shape,
    /// Delays summed so far, in nanoseconds.
    owed_ns: u64,
    /// Whether the last transfer has its delay already.
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

    /// The transfers of `operations`.
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
        // An empty transfer is added only for an empty operation.
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

    /// Step 2: attaches the summed delays to transfers.
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

/// How many transfers the transaction of `operations` needs.
pub(super) fn transfers(operations: &mut [Operation<'_, u8>], shape: Shape) -> usize {
    Room::<0>::of(operations, shape).len
}

/// The operation from which transfer `index` comes; the last one if there is no such transfer.
pub(super) fn operation_index(
    operations: &mut [Operation<'_, u8>],
    shape: Shape,
    index: usize,
) -> usize {
    let last = operations.len().saturating_sub(1);
    let reaches = |&end: &usize| Room::<0>::with(&mut operations[..=end], shape).len > index;
    (0..last).find(reaches).unwrap_or(last)
}
