//! A transfer: bytes that are sent, received, or both, and what happens after them.
//!
//! A *message* is a slice of transfers. It runs under one chip select and is never interleaved with
//! another message. CS becomes inactive within it only at a transfer's `cs_change`.

use super::plan::Plan;

/// The buffers of one transfer: one to send, one to receive into, or one for both.
#[derive(Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Data<'a> {
    // A separate field, so that the hot path need not look for the buffer that exists.
    len: usize,
    tx: Option<&'a [u8]>,
    rx: Option<&'a mut [u8]>,
    place: Place,
}

/// Where the bytes to send are. As wide as a pointer, so that `Data` has no padding to be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(usize)]
enum Place {
    /// In a buffer of their own, if any are sent.
    Apart,
    /// In the receive buffer.
    Same,
}

/// The directions in which a transfer moves bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Only sends.
    Tx,
    /// Only receives.
    Rx,
    /// Sends and receives.
    Both,
}

/// The buffers of a transfer, for code that passes them on.
#[derive(Debug)]
pub(crate) enum Buffers<'a> {
    /// Only sends.
    Write(&'a [u8]),
    /// Only receives.
    Read(&'a mut [u8]),
    /// Sends and receives, in two buffers of equal length.
    Exchange(&'a [u8], &'a mut [u8]),
    /// Sends and receives, in one buffer.
    InPlace(&'a mut [u8]),
}

/// The bytes to send and the receive buffer, which do not overlap.
pub(crate) type Apart<'a> = (Option<&'a [u8]>, Option<&'a mut [u8]>);

impl<'a> Data<'a> {
    /// The buffers of an exchange, which are equally long.
    #[inline(always)]
    pub(crate) const fn exchange(tx: &'a [u8], rx: &'a mut [u8]) -> Self {
        Self { len: rx.len(), tx: Some(tx), rx: Some(rx), place: Place::Apart }
    }

    /// The buffers that there are, which are equally long.
    pub(crate) fn of(tx: Option<&'a [u8]>, rx: Option<&'a mut [u8]>) -> Self {
        let len = rx.as_deref().or(tx).map_or(0, <[u8]>::len);
        Self { len, tx, rx, place: Place::Apart }
    }
}

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

    /// Both buffers, unless they are one.
    #[inline(always)]
    pub(crate) fn apart(&mut self) -> Option<Apart<'_>> {
        match self.place {
            Place::Apart => Some((self.tx, self.rx.as_deref_mut())),
            Place::Same => None,
        }
    }

    /// Whether the bytes to send have a buffer of their own, if there are any.
    #[inline(always)]
    pub(crate) fn is_apart(&self) -> bool {
        self.place == Place::Apart
    }

    /// The directions in which it moves bytes.
    #[inline]
    pub(crate) fn direction(&self) -> Direction {
        match (self.tx.is_some() || self.place == Place::Same, self.rx.is_some()) {
            (true, true) => Direction::Both,
            (true, false) => Direction::Tx,
            (false, _) => Direction::Rx,
        }
    }

    /// Its length on the wire, in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it clocks nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes to send; `None` means zeros.
    #[inline]
    #[must_use]
    pub fn tx(&self) -> Option<&[u8]> {
        if self.place == Place::Same { self.rx.as_deref() } else { self.tx }
    }

    /// The receive buffer; `None` if received bytes are discarded.
    #[inline]
    #[must_use]
    pub fn rx_mut(&mut self) -> Option<&mut [u8]> {
        self.rx.as_deref_mut()
    }

    /// The received bytes, after the message ran; `None` if it only sends.
    #[inline]
    #[must_use]
    pub fn rx(&self) -> Option<&[u8]> {
        self.rx.as_deref()
    }
}

/// One transfer of a message. A field of zero takes the device's value.
#[derive(Debug)]
pub struct Transfer<'a> {
    pub(crate) data: Data<'a>,
    pub(crate) plan: Plan,
    /// Ticks to wait after the transfer, if the plan says so.
    pub(crate) delay_ticks: u32,
    /// Ticks for which CS stays inactive beyond the device's own, if the plan says so.
    pub(crate) inactive_ticks: u32,
    /// The clock of this transfer, in hertz; 0 for the device's.
    pub speed_hz: u32,
    /// The delay between words of this transfer, in nanoseconds. The longer of this and the
    /// device's counts.
    pub word_delay_ns: u32,
    /// The delay after this transfer, before the next or before CS becomes inactive, in
    /// nanoseconds.
    pub delay_ns: u32,
    /// With `cs_change`: how long CS stays inactive at least, in nanoseconds. The longer of this
    /// and the device's `cs_inactive_ns` counts. Zero by default; Linux's default is 10 µs.
    pub cs_change_delay_ns: u32,
    /// Bits of a word of this transfer; 0 for the device's.
    pub bits_per_word: u8,
    /// Deasserts and asserts CS between this transfer and the next.
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

    /// Fills `rx` and sends zeros.
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
        Self::of(Data::exchange(tx, rx), Plan::NONE)
    }

    /// Sends `both` and overwrites it with the received bytes.
    #[must_use]
    pub const fn in_place(both: &'a mut [u8]) -> Self {
        let data = Data { len: both.len(), tx: None, rx: Some(both), place: Place::Same };
        Self::of(data, Plan::NONE)
    }

    /// An exchange with a known plan, for prepared messages.
    #[inline(always)]
    pub(crate) fn planned<const N: usize>(
        tx: &'a [u8; N],
        rx: &'a mut [u8; N],
        plan: Plan,
    ) -> Self {
        Self::of_plan(tx, rx, plan)
    }

    /// An exchange of buffers of equal length.
    #[inline(always)]
    pub(crate) fn of_plan(tx: &'a [u8], rx: &'a mut [u8], plan: Plan) -> Self {
        Self::of(Data::exchange(tx, rx), plan)
    }

    /// The buffers.
    #[must_use]
    pub fn data(&self) -> &Data<'a> {
        &self.data
    }

    /// The receive buffer, if there is one. A [`Port`](crate::chip::Port) with its own access to
    /// the wire writes there.
    #[inline]
    pub fn rx_mut(&mut self) -> Option<&mut [u8]> {
        self.data.rx_mut()
    }

    /// Replaces the buffers by others of the same lengths. The plan stays valid: it depends on the
    /// lengths, not on the addresses.
    ///
    /// # Panics
    /// If a buffer appears, disappears, or differs in length.
    #[inline]
    pub fn rebind(&mut self, tx: Option<&'a [u8]>, rx: Option<&'a mut [u8]>) {
        let data = &mut self.data;
        let fits = |len: Option<usize>, was: bool| len.map_or(!was, |len| was && len == data.len);
        let same = fits(tx.map(<[u8]>::len), data.tx.is_some())
            && fits(rx.as_deref().map(<[u8]>::len), data.rx.is_some());
        assert!(same, "a transfer keeps its directions and its length");
        data.tx = tx;
        data.rx = rx;
    }

    /// Whether it has the device's settings in everything but `cs_change`.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        // In pairs that one instruction loads, and one after the other: branches that are never
        // taken cost less than gathering all fields first.
        self.speed_hz | self.word_delay_ns == 0
            && self.delay_ns | self.cs_change_delay_ns == 0
            && self.bits_per_word == 0
    }

    /// Deasserts and asserts CS after it.
    #[must_use]
    pub const fn with_cs_change(mut self) -> Self {
        self.cs_change = true;
        self
    }

    /// Deasserts CS after it for at least `delay_ns` nanoseconds.
    #[must_use]
    pub const fn with_cs_change_delay_ns(mut self, delay_ns: u32) -> Self {
        self.cs_change = true;
        self.cs_change_delay_ns = delay_ns;
        self
    }

    /// Sets its clock, in hertz.
    #[must_use]
    pub const fn with_speed_hz(mut self, speed_hz: u32) -> Self {
        self.speed_hz = speed_hz;
        self
    }

    /// Sets its word length, in bits.
    #[must_use]
    pub const fn with_bits_per_word(mut self, bits: u8) -> Self {
        self.bits_per_word = bits;
        self
    }

    /// Sets the least delay between its words, in nanoseconds.
    #[must_use]
    pub const fn with_word_delay_ns(mut self, delay_ns: u32) -> Self {
        self.word_delay_ns = delay_ns;
        self
    }

    /// Sets the least delay after it, in nanoseconds.
    #[must_use]
    pub const fn with_delay_ns(mut self, delay_ns: u32) -> Self {
        self.delay_ns = delay_ns;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_buffers_keep_the_plan() {
        let (mut first, mut second) = ([0; 3], [0; 3]);
        let mut transfer = Transfer::of_plan(&[1, 2, 3], &mut first, Plan::new(7, 0, 1));
        transfer.rebind(Some(&[4, 5, 6]), Some(&mut second));
        assert_eq!((transfer.data().tx(), transfer.plan.control), (Some(&[4, 5, 6][..]), 7));
        let mut both = [1, 2];
        let mut in_place = Transfer::in_place(&mut both);
        let mut other = [3, 4];
        in_place.rebind(None, Some(&mut other));
        assert_eq!(in_place.data().tx(), Some(&[3, 4][..]), "still in place");
    }

    #[test]
    #[should_panic(expected = "keeps its directions and its length")]
    fn a_buffer_of_another_length_is_refused() {
        Transfer::write(&[1, 2, 3]).rebind(Some(&[1, 2]), None);
    }

    #[test]
    #[should_panic(expected = "keeps its directions and its length")]
    fn a_buffer_that_was_not_there_is_refused() {
        let mut rx = [0; 3];
        Transfer::write(&[1, 2, 3]).rebind(Some(&[1, 2, 3]), Some(&mut rx));
    }
}
