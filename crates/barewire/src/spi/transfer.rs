//! A transfer: bytes that go out, come in, or both, and what happens after them.
//!
//! A *message* is a slice of transfers. It runs under one chip select and is never interleaved
//! with another message; chip select drops inside it only where a transfer asks by `cs_change`.

use crate::controller::Plan;

/// The buffers of one transfer.
#[derive(Debug)]
pub enum Data<'a> {
    /// Send these; what comes in is dropped.
    Write(&'a [u8]),
    /// Fill this; zeros go out.
    Read(&'a mut [u8]),
    /// Send the first, fill the second; of equal length (see [`Transfer::exchange`]).
    Exchange(&'a [u8], &'a mut [u8]),
    /// Send these and replace each by what came in for it.
    InPlace(&'a mut [u8]),
}

impl Data<'_> {
    /// Length on the wire, in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Data::Write(tx) => tx.len(),
            Data::Read(rx) | Data::InPlace(rx) | Data::Exchange(_, rx) => rx.len(),
        }
    }

    /// Whether nothing is clocked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What goes out; `None` means zeros.
    #[inline]
    #[must_use]
    pub fn tx(&self) -> Option<&[u8]> {
        match self {
            Data::Write(tx) | Data::Exchange(tx, _) => Some(tx),
            Data::InPlace(both) => Some(both),
            Data::Read(_) => None,
        }
    }

    /// Where what comes in goes; `None` means nowhere.
    #[inline]
    #[must_use]
    pub fn rx_mut(&mut self) -> Option<&mut [u8]> {
        match self {
            Data::Read(rx) | Data::InPlace(rx) | Data::Exchange(_, rx) => Some(rx),
            Data::Write(_) => None,
        }
    }

    /// What came in, after the message has run.
    #[must_use]
    pub fn rx(&self) -> Option<&[u8]> {
        match self {
            Data::Read(rx) | Data::InPlace(rx) | Data::Exchange(_, rx) => Some(rx),
            Data::Write(_) => None,
        }
    }
}

/// One transfer of a message. The zero of every field after `data` means "as the device".
#[derive(Debug)]
pub struct Transfer<'a> {
    /// The buffers.
    pub data: Data<'a>,
    /// The clock for this transfer alone, in hertz; 0: the device's.
    pub speed_hz: u32,
    /// Between two words of this transfer, in nanoseconds; the longer of this and the device's.
    pub word_delay_ns: u32,
    /// After this transfer, before the next or before CS drops, in nanoseconds.
    pub delay_ns: u32,
    /// With `cs_change`: CS stays inactive at least this long, in nanoseconds (the longer of
    /// this and the device's `cs_inactive_ns`). Zero by default; Linux puts 10 µs here.
    pub cs_change_delay_ns: u32,
    /// Bits of a word for this transfer alone; 0: the device's.
    pub bits_per_word: u8,
    /// Drop and raise CS between this transfer and the next.
    pub cs_change: bool,
    pub(crate) plan: Plan,
}

impl<'a> Transfer<'a> {
    const fn of(data: Data<'a>) -> Self {
        Self {
            data,
            speed_hz: 0,
            word_delay_ns: 0,
            delay_ns: 0,
            cs_change_delay_ns: 0,
            bits_per_word: 0,
            cs_change: false,
            plan: Plan::NONE,
        }
    }

    /// Sends `tx`.
    #[must_use]
    pub const fn write(tx: &'a [u8]) -> Self {
        Self::of(Data::Write(tx))
    }

    /// Fills `rx`, sending zeros.
    #[must_use]
    pub const fn read(rx: &'a mut [u8]) -> Self {
        Self::of(Data::Read(rx))
    }

    /// Sends `tx` and fills `rx`.
    ///
    /// # Panics
    /// If the two differ in length.
    #[must_use]
    pub const fn exchange(tx: &'a [u8], rx: &'a mut [u8]) -> Self {
        assert!(
            tx.len() == rx.len(),
            "an exchange sends as many bytes as it receives"
        );
        Self::of(Data::Exchange(tx, rx))
    }

    /// Sends `both` and replaces its bytes by what came in.
    #[must_use]
    pub const fn in_place(both: &'a mut [u8]) -> Self {
        Self::of(Data::InPlace(both))
    }

    /// An exchange whose plan is known: the prepared path's.
    #[inline]
    pub(crate) fn planned(tx: &'a [u8], rx: &'a mut [u8], plan: Plan) -> Self {
        Self {
            plan,
            ..Self::of(Data::Exchange(tx, rx))
        }
    }

    /// The same, with CS dropped and raised after it.
    #[must_use]
    pub const fn with_cs_change(mut self) -> Self {
        self.cs_change = true;
        self
    }

    /// The same, with at least `delay_ns` nanoseconds after it.
    #[must_use]
    pub const fn with_delay_ns(mut self, delay_ns: u32) -> Self {
        self.delay_ns = delay_ns;
        self
    }
}
