//! A transfer: bytes that go out, come in, or both, and what happens after them.
//!
//! A *message* is a slice of transfers. It runs under one chip select and is never interleaved
//! with another message; chip select drops inside it only where a transfer asks by `cs_change`.

use super::plan::Plan;

/// The buffers of one transfer: what goes out, where what comes in goes, or one for both.
#[derive(Debug)]
pub struct Data<'a> {
    // The length stands apart, so that the hot path need not ask which buffer there is.
    len: usize,
    tx: Option<&'a [u8]>,
    rx: Option<&'a mut [u8]>,
    place: Place,
}

/// Where what is sent lies. As wide as a pointer: a `Data` has no padding, which would be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
enum Place {
    /// In a buffer of its own, if anything is sent.
    Apart,
    /// Where what comes in goes.
    Same,
}

/// What a transfer does with its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// It only sends.
    Tx,
    /// It only receives.
    Rx,
    /// It does both.
    Both,
}

/// The buffers of a transfer, as one who hands them on takes them.
#[derive(Debug)]
pub(crate) enum Buffers<'a> {
    /// It only sends.
    Write(&'a [u8]),
    /// It only receives.
    Read(&'a mut [u8]),
    /// It does both, in two buffers of one length.
    Exchange(&'a [u8], &'a mut [u8]),
    /// It does both, in one.
    InPlace(&'a mut [u8]),
}

/// What goes out, and where what comes in goes: not the same bytes.
pub(crate) type Apart<'a> = (Option<&'a [u8]>, Option<&'a mut [u8]>);

impl Data<'_> {
    /// Both buffers at once.
    pub(crate) fn buffers(&mut self) -> Buffers<'_> {
        match (self.tx, self.rx.as_deref_mut()) {
            (Some(tx), Some(rx)) => Buffers::Exchange(tx, rx),
            (Some(tx), None) => Buffers::Write(tx),
            (None, Some(both)) if self.place == Place::Same => Buffers::InPlace(both),
            (None, Some(rx)) => Buffers::Read(rx),
            (None, None) => Buffers::Write(&[]),
        }
    }

    /// The buffers, unless they are the same.
    #[inline(always)]
    pub(crate) fn apart(&mut self) -> Option<Apart<'_>> {
        match self.place {
            Place::Apart => Some((self.tx, self.rx.as_deref_mut())),
            Place::Same => None,
        }
    }

    /// What it does with its bytes.
    #[inline]
    pub(crate) fn direction(&self) -> Direction {
        match (self.tx.is_some() || self.place == Place::Same, self.rx.is_some()) {
            (true, true) => Direction::Both,
            (true, false) => Direction::Tx,
            (false, _) => Direction::Rx,
        }
    }

    /// Length on the wire, in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is clocked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What goes out; `None` means zeros.
    #[inline]
    #[must_use]
    pub fn tx(&self) -> Option<&[u8]> {
        if self.place == Place::Same { self.rx.as_deref() } else { self.tx }
    }

    /// Where what comes in goes; `None` means nowhere.
    #[inline]
    #[must_use]
    pub fn rx_mut(&mut self) -> Option<&mut [u8]> {
        self.rx.as_deref_mut()
    }

    /// What came in, after the message has run; `None` if it only sends.
    #[inline]
    #[must_use]
    pub fn rx(&self) -> Option<&[u8]> {
        self.rx.as_deref()
    }
}

/// One transfer of a message. The zero of every field means "as the device".
#[derive(Debug)]
pub struct Transfer<'a> {
    pub(crate) data: Data<'a>,
    pub(crate) plan: Plan,
    /// Ticks after the transfer, if the plan says so.
    pub(crate) delay_ticks: u32,
    /// Ticks of CS inactive beyond the device's own, if the plan says so.
    pub(crate) inactive_ticks: u32,
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
}

impl<'a> Transfer<'a> {
    #[inline(always)]
    const fn of(data: Data<'a>, plan: Plan) -> Self {
        Self {
            data,
            plan,
            delay_ticks: 0,
            inactive_ticks: 0,
            speed_hz: 0,
            word_delay_ns: 0,
            delay_ns: 0,
            cs_change_delay_ns: 0,
            bits_per_word: 0,
            cs_change: false,
        }
    }

    /// Sends `tx`.
    #[must_use]
    pub const fn write(tx: &'a [u8]) -> Self {
        let data = Data { len: tx.len(), tx: Some(tx), rx: None, place: Place::Apart };
        Self::of(data, Plan::NONE)
    }

    /// Fills `rx`, sending zeros.
    #[must_use]
    pub const fn read(rx: &'a mut [u8]) -> Self {
        let data = Data { len: rx.len(), tx: None, rx: Some(rx), place: Place::Apart };
        Self::of(data, Plan::NONE)
    }

    /// Sends `tx` and fills `rx`.
    ///
    /// # Panics
    /// If the two differ in length.
    #[must_use]
    pub const fn exchange(tx: &'a [u8], rx: &'a mut [u8]) -> Self {
        assert!(tx.len() == rx.len(), "an exchange sends as many bytes as it receives");
        let data = Data { len: rx.len(), tx: Some(tx), rx: Some(rx), place: Place::Apart };
        Self::of(data, Plan::NONE)
    }

    /// Sends `both` and replaces its bytes by what came in.
    #[must_use]
    pub const fn in_place(both: &'a mut [u8]) -> Self {
        let data = Data { len: both.len(), tx: None, rx: Some(both), place: Place::Same };
        Self::of(data, Plan::NONE)
    }

    /// An exchange whose plan is known: the prepared path's.
    #[inline(always)]
    pub(crate) fn planned<const N: usize>(
        tx: &'a [u8; N],
        rx: &'a mut [u8; N],
        plan: Plan,
    ) -> Self {
        Self::of_plan(tx, rx, plan)
    }

    /// An exchange of buffers that are as long.
    #[inline(always)]
    pub(crate) fn of_plan(tx: &'a [u8], rx: &'a mut [u8], plan: Plan) -> Self {
        Self::of(Data { len: rx.len(), tx: Some(tx), rx: Some(rx), place: Place::Apart }, plan)
    }

    /// The buffers.
    #[must_use]
    pub fn data(&self) -> &Data<'a> {
        &self.data
    }

    /// The buffer for what comes in, if there is one: a [`Port`](crate::chip::Port) that is its own way
    /// to the wire writes there.
    #[inline]
    pub fn rx_mut(&mut self) -> Option<&mut [u8]> {
        self.data.rx_mut()
    }

    /// Whether everything but `cs_change` is as the device has it.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        // In pairs, which one instruction loads, and one by one: branches that are never taken cost less
        // than gathering all fields first.
        self.speed_hz | self.word_delay_ns == 0
            && self.delay_ns | self.cs_change_delay_ns == 0
            && self.bits_per_word == 0
    }

    /// The same, with CS dropped and raised after it.
    #[must_use]
    pub const fn with_cs_change(mut self) -> Self {
        self.cs_change = true;
        self
    }

    /// The same, with CS dropped for at least `delay_ns` nanoseconds after it.
    #[must_use]
    pub const fn with_cs_change_delay_ns(mut self, delay_ns: u32) -> Self {
        self.cs_change = true;
        self.cs_change_delay_ns = delay_ns;
        self
    }

    /// The same, at `speed_hz` hertz.
    #[must_use]
    pub const fn with_speed_hz(mut self, speed_hz: u32) -> Self {
        self.speed_hz = speed_hz;
        self
    }

    /// The same, in words of `bits`.
    #[must_use]
    pub const fn with_bits_per_word(mut self, bits: u8) -> Self {
        self.bits_per_word = bits;
        self
    }

    /// The same, with at least `delay_ns` nanoseconds between its words.
    #[must_use]
    pub const fn with_word_delay_ns(mut self, delay_ns: u32) -> Self {
        self.word_delay_ns = delay_ns;
        self
    }

    /// The same, with at least `delay_ns` nanoseconds after it.
    #[must_use]
    pub const fn with_delay_ns(mut self, delay_ns: u32) -> Self {
        self.delay_ns = delay_ns;
        self
    }
}
