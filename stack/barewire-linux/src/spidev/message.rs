//! Turns a planned message into spidev's transfers.
//!
//! The loop that drives every polled controller ([`run_message`]) runs here on a [`Wire`] that only
//! records. Selections, exchanges and waits become a list of [`Segment`]s. So a delay or a
//! `cs_change` means exactly what it means on other controllers.
//!
//! | the loop | what is recorded |
//! |---|---|
//! | wait after select (`cs_setup`) | a transfer without bytes, with `delay_usecs` |
//! | exchange | a transfer |
//! | wait while selected (delay, `cs_hold`) | `delay_usecs` of the previous transfer |
//! | deselect and select | `cs_change` of the previous transfer |
//! | wait while deselected | a field beside the transfer, for the code that sends the parts |
//!
//! # Safety
//! [`Message`] carries addresses to the kernel. Only [`Store::record`] writes them, from a message
//! that the returned [`Recording`] keeps mutably borrowed. A `Message` can be made from a borrowed
//! recording only. So, while a `Message` lives, its addresses are those of live buffers that no
//! other code reads or writes. The fields here are private for that reason: `spidev::ioctl` relies
//! on it.

use std::marker::PhantomData;
use std::ops::Range;

use barewire::controller::{Plan, Preset, Stopped, Wire, run_message};
use barewire::spi::{Data, Transfer};

use super::abi::{SpiIocTransfer, TRANSFER_SIZE};

/// One of spidev's transfers, with the fields that its struct does not contain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    transfer: SpiIocTransfer,
    /// Whether CS becomes inactive after it, and active again for the next.
    pub(super) cs_change: bool,
    /// How long CS must then stay inactive, in microseconds.
    pub(super) inactive_us: u32,
    /// The index of the caller's transfer that it belongs to.
    pub(super) transfer_index: u32,
}

impl Segment {
    /// How long its clocks take, in nanoseconds, at `speed_hz` or at its own speed.
    pub(super) fn clocks_ns(&self, speed_hz: u32) -> u64 {
        let own = self.transfer.speed_hz;
        let speed_hz = if own == 0 { speed_hz } else { own };
        u64::from(self.transfer.len) * 8 * 1_000_000_000 / u64::from(speed_hz.max(1))
    }

    /// Bytes of the transfer.
    pub(super) fn len(&self) -> usize {
        self.transfer.len as usize
    }

    /// Whether it sends.
    pub(super) fn has_tx(&self) -> bool {
        self.transfer.tx_buf != 0
    }

    /// Whether it receives.
    pub(super) fn has_rx(&self) -> bool {
        self.transfer.rx_buf != 0
    }
}

/// Buffers for segments and their bytes, reused for each message.
#[derive(Debug, Default)]
pub(super) struct Store {
    segments: Vec<Segment>,
    bytes: Vec<[u8; TRANSFER_SIZE]>,
}

impl Store {
    /// Records `message`.
    pub(super) fn record<'m>(
        &'m mut self,
        preset: &Preset,
        message: &'m mut [Transfer<'_>],
    ) -> Recording<'m> {
        // The last message's segments contain addresses of buffers that may be gone.
        self.segments.clear();
        let mut recorder = Recorder {
            segments: &mut self.segments,
            word_bytes: preset.plan.word_bytes(),
            selected: false,
            begun: false,
            transfer_index: 0,
        };
        if !message.is_empty() {
            let recorded = run_message(&mut recorder, preset, message);
            debug_assert!(recorded.is_ok(), "nothing times out on paper");
        }
        Recording { store: self, buffers: PhantomData }
    }
}

/// A recorded message, with its buffers borrowed.
#[derive(Debug)]
pub(super) struct Recording<'m> {
    store: &'m mut Store,
    buffers: PhantomData<&'m mut [u8]>,
}

impl Recording<'_> {
    pub(super) fn segments(&self) -> &[Segment] {
        &self.store.segments
    }

    /// The segments of `part` as one message; CS becomes inactive at its end.
    pub(super) fn message(&mut self, part: Range<usize>) -> Message<'_> {
        let segments = &self.store.segments[part];
        self.store.bytes.clear();
        self.store.bytes.extend(segments.iter().enumerate().map(|(index, segment)| {
            let last = index + 1 == segments.len();
            let cs_change = segment.cs_change && !last;
            SpiIocTransfer { cs_change: cs_change.into(), ..segment.transfer }.encode()
        }));
        let len = segments.iter().map(|segment| segment.transfer.len as usize).sum();
        Message { transfers: &self.store.bytes, len }
    }
}

/// One `SPI_IOC_MESSAGE`: its structs as the kernel reads them. The buffers they name stay borrowed
/// while it lives.
#[derive(Debug)]
pub struct Message<'m> {
    transfers: &'m [[u8; TRANSFER_SIZE]],
    len: usize,
}

impl Message<'_> {
    /// The structs, at most [`MESSAGE_TRANSFERS_MAX`](super::abi::MESSAGE_TRANSFERS_MAX).
    #[must_use]
    pub fn transfers(&self) -> &[[u8; TRANSFER_SIZE]] {
        self.transfers
    }

    /// Bytes on the wire: the ioctl's result on success.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a message without bytes still has an effect")]
    pub fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
impl Message<'static> {
    /// One transfer without bytes.
    pub(crate) fn of_no_bytes() -> Self {
        Self { transfers: &[[0; TRANSFER_SIZE]], len: 0 }
    }
}

/// A wire that only records.
struct Recorder<'s> {
    segments: &'s mut Vec<Segment>,
    /// The bytes of the device's words, which need not be stated.
    word_bytes: u8,
    selected: bool,
    /// Whether there is a segment since CS became active.
    begun: bool,
    transfer_index: u32,
}

impl Recorder<'_> {
    fn push(&mut self, transfer: SpiIocTransfer) {
        let transfer_index = self.transfer_index;
        let segment = Segment { transfer, cs_change: false, inactive_us: 0, transfer_index };
        self.segments.push(segment);
        self.begun = true;
    }
}

impl Wire for Recorder<'_> {
    fn select(&mut self, _preset: &Preset) {
        if let Some(before) = self.segments.last_mut() {
            before.cs_change = true;
        }
        self.selected = true;
        self.begun = false;
    }

    fn deselect(&mut self, _preset: &Preset) {
        self.selected = false;
    }

    fn exchange(
        &mut self,
        _preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Result<(), Stopped> {
        let len = data.len();
        let tx = data.tx().map_or(0, |tx| tx.as_ptr().expose_provenance());
        let rx = data.rx_mut().map_or(0, |rx| rx.as_mut_ptr().expose_provenance());
        // The block's value is the transfer's own clock, or 0.
        let speed_hz = plan.control;
        let own_words = plan.word_bytes() != self.word_bytes;
        // `plan` has refused values that do not fit.
        let word_delay_usecs = u8::try_from(plan.word_delay_ticks).unwrap_or(u8::MAX);
        // An empty buffer's address may point anywhere: the kernel gets none.
        let address = |of: usize| if len == 0 { 0 } else { of as u64 };
        self.push(SpiIocTransfer {
            tx_buf: address(tx),
            rx_buf: address(rx),
            // `plan` has refused lengths of 4 GiB, which no bufsiz holds.
            len: u32::try_from(len).unwrap_or(u32::MAX),
            speed_hz,
            bits_per_word: if own_words { plan.word_bytes() * 8 } else { 0 },
            word_delay_usecs,
            ..SpiIocTransfer::default()
        });
        self.transfer_index += 1;
        Ok(())
    }

    fn recover(&mut self) {}

    fn wait_ticks(&mut self, ticks: u32) {
        if ticks == 0 {
            return;
        }
        if self.selected && !self.begun {
            self.push(SpiIocTransfer::default());
        }
        let Some(before) = self.segments.last_mut() else {
            return;
        };
        if self.selected {
            // `plan` has refused values that do not fit.
            let delay = u32::from(before.transfer.delay_usecs).saturating_add(ticks);
            before.transfer.delay_usecs = u16::try_from(delay).unwrap_or(u16::MAX);
        } else {
            before.inactive_us = before.inactive_us.saturating_add(ticks);
        }
    }
}
