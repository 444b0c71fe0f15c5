//! Any `SpiDevice` of `embedded-hal` or `embedded-hal-async` as a port for our chip drivers.
//!
//! # How it works
//! 1. The whole message is looked at first: what cannot be done on a foreign device is refused
//!    before anything is clocked. That is a speed, a word length or a delay between words of one
//!    transfer's own, a `cs_change` delay without a source of delays, more operations than there is
//!    room for, and what every controller refuses.
//! 2. Each stretch up to a `cs_change` is one transaction: a transfer is an operation, its delay
//!    another behind it.
//! 3. Between two transactions the `cs_change` delay is made.
//!
//! # Not supported
//! Keeping the bus between the transactions of one message: another device's may come between them
//! wherever the foreign bus is shared.

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

/// A foreign device that our chip drivers run on, blocking or as a future. See the
/// [module](super).
///
/// `OPERATIONS` is the longest transaction. CS is inactive after an error as far as the foreign
/// device keeps to the contract of `embedded-hal`.
///
/// What goes out while a transfer only reads is the foreign bus's to say, typically zeros or
/// ones, unless [`OnSpiDevice::with_zeros`] asks for zeros.
///
/// A failed transaction is [`Error::Foreign`]: its `transfer_index` is the transaction's first
/// transfer, and the foreign error itself stays here, for [`OnSpiDevice::take_error`]. A chip driver
/// is given a `&mut` of this, where that is wanted.
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
    /// `spi`, whose clock is `speed_hz` hertz: `embedded-hal` has no way to ask.
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
    /// The same with room for `N` operations.
    #[must_use]
    pub fn with_room<const N: usize>(self) -> OnSpiDevice<S, D, N> {
        let Self { spi, delay, speed_hz, delay_quantum_ns, delay_max_ns, zeros, error } = self;
        OnSpiDevice { spi, delay, speed_hz, delay_quantum_ns, delay_max_ns, zeros, error }
    }

    /// The same with `delay` making the `cs_change` delays.
    #[must_use]
    pub fn with_delay<E>(self, delay: E) -> OnSpiDevice<S, E, OPERATIONS> {
        let Self { spi, speed_hz, delay_quantum_ns, delay_max_ns, zeros, error, .. } = self;
        let delay = Some(delay);
        OnSpiDevice { spi, delay, speed_hz, delay_quantum_ns, delay_max_ns, zeros, error }
    }

    /// The same, with delays inside a transaction rounded up to a multiple of `ns` nanoseconds
    /// before the device gets them: for one that cuts off what is below its quantum.
    ///
    /// linux-embedded-hal's `SpidevDevice` (0.5) cuts off what is below a microsecond and above 65,535 of them:
    /// `with_delay_quantum_ns(1_000).with_delay_max_ns(65_535_000)`.
    #[must_use]
    pub fn with_delay_quantum_ns(mut self, ns: u32) -> Self {
        self.delay_quantum_ns = ns.max(1);
        self
    }

    /// The same, with delays above `ns` nanoseconds given as several operations, each of whole
    /// quanta: for a device that cuts off what is above.
    #[must_use]
    pub fn with_delay_max_ns(mut self, ns: u32) -> Self {
        self.delay_max_ns = ns.max(1);
        self
    }

    /// The same, with zeros sent while a transfer only reads: its buffer is zeroed and sent. A device
    /// that has a limit for what it sends at once now counts reads too.
    #[must_use]
    pub fn with_zeros(mut self) -> Self {
        self.zeros = true;
        self
    }

    /// The foreign error of the message that failed last, once.
    pub fn take_error(&mut self) -> Option<S::Error> {
        self.error.take()
    }

    /// The foreign device back.
    pub fn release(self) -> S {
        self.spi
    }

    /// A delay as the device keeps it: pieces of whole quanta, none above the longest.
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

    /// Step 1.
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

    /// The field that a foreign device has no place for, with what was asked.
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

    /// Step 2: the operations of a stretch, and how many there are.
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

    /// A transaction failed, which began with `at`.
    fn failed(&mut self, foreign: S::Error, at: At) -> MessageError {
        let error = Error::Foreign { kind: foreign.kind() };
        self.error = Some(foreign);
        let At { transfer_index, actual_length } = at;
        MessageError { error, transfer_index, actual_length }
    }
}

/// How far a message has come.
#[derive(Clone, Copy, Default)]
struct At {
    transfer_index: usize,
    actual_length: usize,
}

impl At {
    /// Behind `stretch`.
    fn go_on(&mut self, stretch: &[Transfer<'_>]) {
        self.transfer_index += stretch.len();
        self.actual_length += stretch.iter().map(|transfer| transfer.data.len()).sum::<usize>();
    }
}

/// What is waited for between a stretch and the next. The last transfer has no `cs_change`, and so
/// no delay for it.
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
            // Step 3.
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
            // Step 3.
            if let (Some(ns), Some(delay)) = (gap_ns(stretch), &mut self.delay) {
                delay.delay_ns(ns).await;
            }
        }
        Ok(())
    }
}
