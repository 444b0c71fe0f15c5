//! Any `SpiDevice` of `embedded-hal` or `embedded-hal-async` as a port for this crate's chip
//! drivers.
//!
//! # How it works
//! 1. Check: the whole message is validated before anything is clocked. Refused are a speed, a word
//!    length or a word delay of a single transfer, a `cs_change` delay without a source of delays,
//!    more operations than there is room for, and what every controller refuses.
//! 2. Transact: each stretch up to a `cs_change` is one transaction. A transfer is an operation;
//!    its delay is a further operation after it.
//! 3. Pause: between two transactions the `cs_change` delay is made.
//!
//! # Not supported
//! Keeping the bus between the transactions of one message: if the foreign bus is shared, a
//! transaction of another device may come between them.

use core::array;

use embedded_hal::delay::DelayNs;
use embedded_hal::spi::{Error as _, ErrorType, Operation, SpiDevice};
use embedded_hal_async::delay::DelayNs as AsyncDelayNs;
use embedded_hal_async::spi::SpiDevice as AsyncSpiDevice;

use crate::chip::{AsyncPort, Port};
use crate::spi::{Buffers, Error, MessageError, Transfer};

/// No source of delays.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum NoDelay {}

impl DelayNs for NoDelay {
    fn delay_ns(&mut self, _ns: u32) {
        match *self {}
    }
}

impl AsyncDelayNs for NoDelay {
    async fn delay_ns(&mut self, _ns: u32) {
        match *self {}
    }
}

/// A foreign device on which this crate's chip drivers run, blocking or async. See the
/// [module](super).
///
/// `OPERATIONS` is the longest transaction. After an error CS is inactive if the foreign device
/// keeps the contract of `embedded-hal`.
///
/// The foreign bus determines what is sent while a transfer only reads, typically zeros or ones;
/// [`OnSpiDevice::with_zeros`] makes it zeros.
///
/// A failed transaction returns [`Error::Foreign`], whose `transfer_index` is the transaction's
/// first transfer. The foreign error itself is kept for [`OnSpiDevice::take_error`]; to reach it,
/// give the chip driver a `&mut` of this value.
#[derive(Debug)]
pub struct OnSpiDevice<S: ErrorType, D = NoDelay, const OPERATIONS: usize = 16> {
    spi: S,
    delay: Option<D>,
    speed_hz: u32,
    delay_quantum_ns: u32,
    delay_max_ns: u32,
    zeros: bool,
    error: Option<S::Error>,
}

impl<S: ErrorType> OnSpiDevice<S> {
    /// Wraps `spi`, whose clock is `speed_hz` hertz: `embedded-hal` has no method to ask for it.
    pub fn new(spi: S, speed_hz: u32) -> Self {
        Self {
            spi,
            delay: None,
            speed_hz,
            delay_quantum_ns: 1,
            delay_max_ns: u32::MAX,
            zeros: false,
            error: None,
        }
    }
}

impl<S: ErrorType, D, const OPERATIONS: usize> OnSpiDevice<S, D, OPERATIONS> {
    /// Makes room for `N` operations.
    #[must_use]
    pub fn with_room<const N: usize>(self) -> OnSpiDevice<S, D, N> {
        let Self { spi, delay, speed_hz, delay_quantum_ns, delay_max_ns, zeros, error } = self;
        OnSpiDevice { spi, delay, speed_hz, delay_quantum_ns, delay_max_ns, zeros, error }
    }

    /// Makes the `cs_change` delays with `delay`.
    #[must_use]
    pub fn with_delay<E>(self, delay: E) -> OnSpiDevice<S, E, OPERATIONS> {
        let Self { spi, speed_hz, delay_quantum_ns, delay_max_ns, zeros, error, .. } = self;
        let delay = Some(delay);
        OnSpiDevice { spi, delay, speed_hz, delay_quantum_ns, delay_max_ns, zeros, error }
    }

    /// Rounds delays inside a transaction up to a multiple of `ns` nanoseconds: for a device that
    /// discards fractions of its quantum.
    ///
    /// `SpidevDevice` of linux-embedded-hal 0.5 discards fractions of a microsecond and what
    /// exceeds 65,535 of them: use `with_delay_quantum_ns(1_000).with_delay_max_ns(65_535_000)`.
    #[must_use]
    pub fn with_delay_quantum_ns(mut self, ns: u32) -> Self {
        self.delay_quantum_ns = ns.max(1);
        self
    }

    /// Splits delays above `ns` nanoseconds into several operations of whole quanta: for a device
    /// that discards what exceeds its longest delay.
    #[must_use]
    pub fn with_delay_max_ns(mut self, ns: u32) -> Self {
        self.delay_max_ns = ns.max(1);
        self
    }

    /// Sends zeros while a transfer only reads, from its zeroed buffer. If the device limits how
    /// much it sends at once, reads now count too.
    #[must_use]
    pub fn with_zeros(mut self) -> Self {
        self.zeros = true;
        self
    }

    /// Takes the foreign error of the message that failed last, once.
    pub fn take_error(&mut self) -> Option<S::Error> {
        self.error.take()
    }

    /// Returns the foreign device.
    pub fn release(self) -> S {
        self.spi
    }

    /// The delay in pieces of whole quanta, none above the longest.
    fn pieces(&self, delay_ns: u32) -> impl Iterator<Item = u32> + use<S, D, OPERATIONS> {
        let quantum_ns = self.delay_quantum_ns;
        let max_ns = (self.delay_max_ns / quantum_ns).max(1) * quantum_ns;
        let mut left_ns = u64::from(delay_ns).div_ceil(quantum_ns.into()) * u64::from(quantum_ns);
        core::iter::from_fn(move || {
            let piece_ns = left_ns.min(max_ns.into()) as u32;
            left_ns -= u64::from(piece_ns);
            (piece_ns > 0).then_some(piece_ns)
        })
    }

    /// Step 1: checks the message.
    fn check(&self, message: &[Transfer<'_>]) -> Result<(), MessageError> {
        let refused = |error, index| Err(MessageError::refused(error, index));
        match message.last() {
            None => return refused(Error::Empty, 0),
            Some(last) if last.cs_change => {
                return refused(Error::CsChangeOnLast, message.len() - 1);
            }
            Some(_) => {}
        }
        for (index, transfer) in message.iter().enumerate() {
            if let Some((field, asked)) = self.beyond(transfer) {
                return refused(Error::NotPerTransfer { field, asked }, index);
            }
        }
        let mut first = 0;
        for stretch in message.split_inclusive(|transfer| transfer.cs_change) {
            let delays = stretch.iter().map(|transfer| self.pieces(transfer.delay_ns).count());
            let operations = stretch.len() + delays.sum::<usize>();
            if operations > OPERATIONS {
                let error = Error::TooManyTransfers { transfers: operations, max: OPERATIONS };
                return refused(error, first);
            }
            first += stretch.len();
        }
        Ok(())
    }

    /// The first field that a foreign device cannot set per transfer, and its value.
    fn beyond(&self, transfer: &Transfer<'_>) -> Option<(&'static str, u32)> {
        let Transfer { speed_hz, bits_per_word, word_delay_ns, cs_change_delay_ns, .. } = *transfer;
        if speed_hz != 0 && speed_hz != self.speed_hz {
            return Some(("speed_hz", speed_hz));
        }
        if bits_per_word != 0 && bits_per_word != 8 {
            return Some(("bits_per_word", bits_per_word.into()));
        }
        if word_delay_ns != 0 {
            return Some(("word_delay_ns", word_delay_ns));
        }
        let unmade = transfer.cs_change && cs_change_delay_ns != 0 && self.delay.is_none();
        unmade.then_some(("cs_change_delay_ns", cs_change_delay_ns))
    }

    /// Step 2: the operations of a stretch, and their number.
    fn operations<'t>(
        &self,
        stretch: &'t mut [Transfer<'_>],
    ) -> ([Operation<'t, u8>; OPERATIONS], usize) {
        let mut operations = array::from_fn(|_| Operation::DelayNs(0));
        let mut len = 0;
        for transfer in stretch {
            let delay_ns = transfer.delay_ns;
            operations[len] = match transfer.data.buffers() {
                Buffers::Write(tx) => Operation::Write(tx),
                Buffers::Exchange(tx, rx) => Operation::Transfer(rx, tx),
                Buffers::InPlace(both) => Operation::TransferInPlace(both),
                Buffers::Read(rx) if self.zeros => {
                    rx.fill(0);
                    Operation::TransferInPlace(rx)
                }
                Buffers::Read(rx) => Operation::Read(rx),
            };
            len += 1;
            for piece_ns in self.pieces(delay_ns) {
                operations[len] = Operation::DelayNs(piece_ns);
                len += 1;
            }
        }
        (operations, len)
    }

    /// The error of a failed transaction that began at `at`.
    fn failed(&mut self, foreign: S::Error, at: At) -> MessageError {
        let error = Error::Foreign { kind: foreign.kind() };
        self.error = Some(foreign);
        let At { transfer_index, actual_length } = at;
        MessageError { error, transfer_index, actual_length }
    }
}

/// The position in a message.
#[derive(Clone, Copy, Default)]
struct At {
    transfer_index: usize,
    actual_length: usize,
}

impl At {
    /// Moves past `stretch`.
    fn go_on(&mut self, stretch: &[Transfer<'_>]) {
        self.transfer_index += stretch.len();
        self.actual_length += stretch.iter().map(|transfer| transfer.data.len()).sum::<usize>();
    }
}

/// The delay between a stretch and the next, if any. The last transfer has no `cs_change` and so no
/// such delay.
fn gap_ns(stretch: &[Transfer<'_>]) -> Option<u32> {
    let last = stretch.last()?;
    (last.cs_change && last.cs_change_delay_ns > 0).then_some(last.cs_change_delay_ns)
}

impl<S: SpiDevice, D: DelayNs, const OPERATIONS: usize> Port for OnSpiDevice<S, D, OPERATIONS> {
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.check(message)?;
        self.error = None;
        let mut at = At::default();
        for stretch in message.split_inclusive_mut(|transfer| transfer.cs_change) {
            let (mut operations, len) = self.operations(stretch);
            if let Err(foreign) = self.spi.transaction(&mut operations[..len]) {
                return Err(self.failed(foreign, at));
            }
            at.go_on(stretch);
            // Step 3: the pause.
            if let (Some(ns), Some(delay)) = (gap_ns(stretch), &mut self.delay) {
                delay.delay_ns(ns);
            }
        }
        Ok(())
    }

    fn speed_hz(&self) -> u32 {
        self.speed_hz
    }
}

impl<S: AsyncSpiDevice, D: AsyncDelayNs, const OPERATIONS: usize> AsyncPort
    for OnSpiDevice<S, D, OPERATIONS>
{
    async fn run_async(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.check(message)?;
        self.error = None;
        let mut at = At::default();
        for stretch in message.split_inclusive_mut(|transfer| transfer.cs_change) {
            let (mut operations, len) = self.operations(stretch);
            if let Err(foreign) = self.spi.transaction(&mut operations[..len]).await {
                return Err(self.failed(foreign, at));
            }
            at.go_on(stretch);
            // Step 3: the pause.
            if let (Some(ns), Some(delay)) = (gap_ns(stretch), &mut self.delay) {
                delay.delay_ns(ns).await;
            }
        }
        Ok(())
    }
}
