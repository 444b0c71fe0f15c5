//! Messages of lengths that are known at run time, for the paths that outlive a call: submitted and prepared ones.
//!
//! # How it works
//! An [`OwnedMessage`] has its buffers on the heap, or points at buffers whose owner promises that they stay. So
//! it may be moved, kept in a struct, and submitted: [`queued`](OwnedMessage::queued).
//!
//! ```
//! use barewire::spi::Settings;
//! use barewire_open::{AnyBus, OwnedMessage, Shape};
//!
//! let bus = AnyBus::open("sim:imx8mp")?;
//! bus.start_worker()?;
//! let device = bus.device(&Settings::new(0, 20_000_000))?;
//! let message = OwnedMessage::new().with_exchange(&[0x9f, 0, 0, 0], Shape::default());
//! let mut message = Box::pin(message.queued(&device.device())?);
//! message.as_mut().submit()?;
//! assert_eq!(message.as_mut().wait(), Some(Ok(4)));
//! let id = message.as_mut().with_payload(|message| message.rx(0).map(<[u8]>::to_vec))?;
//! assert_eq!(id, Some(vec![0xff, 0xef, 0x40, 0x19]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Safety
//! A part's pointers are to a box that the message leaked and frees when it is dropped, or to memory whose owner
//! promised that it stays and that nothing else uses it while the message does. The transfers borrow this memory
//! only from a call of `bound` until the next call of a method: each method that gives access to bytes takes the
//! message exclusively, and the next `bound` makes the transfers' references anew.
#![allow(unsafe_code, reason = "transfers over buffers that their message owns")]

use std::fmt;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::ptr;
use std::slice;

use barewire::bus::queued::{Payload, Queued};
use barewire::bus::{Device, PreparedMessage};
use barewire::controller::Controller;
use barewire::spi::{MessageError, Transfer};

/// A transfer's fields besides its buffers, under Linux's names. A field of zero takes the device's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The clock, in hertz.
    pub speed_hz: u32,
    /// Bits of a word.
    pub bits_per_word: u8,
    /// The delay after it, in nanoseconds.
    pub delay_ns: u32,
    /// The delay between its words, in nanoseconds.
    pub word_delay_ns: u32,
    /// Whether CS becomes inactive and active again after it.
    pub cs_change: bool,
    /// With `cs_change`: how long CS stays inactive at least, in nanoseconds.
    pub cs_change_delay_ns: u32,
}

impl Shape {
    /// Gives `transfer` this shape.
    #[must_use]
    #[inline]
    pub fn of<'t>(&self, mut transfer: Transfer<'t>) -> Transfer<'t> {
        transfer.speed_hz = self.speed_hz;
        transfer.bits_per_word = self.bits_per_word;
        transfer.delay_ns = self.delay_ns;
        transfer.word_delay_ns = self.word_delay_ns;
        transfer.cs_change = self.cs_change;
        transfer.cs_change_delay_ns = self.cs_change_delay_ns;
        transfer
    }
}

/// Where the bytes of a transfer are. Null for a direction that it does not have; equal if it is in place.
struct Part {
    tx: *const u8,
    rx: *mut u8,
    len: usize,
    /// Whether the message frees them.
    owned: bool,
}

impl Part {
    fn is_in_place(&self) -> bool {
        ptr::eq(self.tx, self.rx)
    }

    /// The bytes that are sent and are not received into.
    fn tx(&self) -> Option<&'static [u8]> {
        if self.tx.is_null() || self.is_in_place() {
            return None;
        }
        // SAFETY: the module's.
        Some(unsafe { slice::from_raw_parts(self.tx, self.len) })
    }

    /// The bytes that are received into.
    fn rx(&self) -> Option<&'static mut [u8]> {
        if self.rx.is_null() {
            return None;
        }
        // SAFETY: the module's.
        Some(unsafe { slice::from_raw_parts_mut(self.rx, self.len) })
    }

    fn transfer(&self) -> Transfer<'static> {
        match (self.tx(), self.rx()) {
            (Some(tx), Some(rx)) => Transfer::exchange(tx, rx),
            (Some(tx), None) => Transfer::write(tx),
            (None, Some(both)) if self.is_in_place() => Transfer::in_place(both),
            (None, Some(rx)) => Transfer::read(rx),
            (None, None) => Transfer::write(&[]),
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        for buffer in [self.tx.cast_mut(), self.rx] {
            if !buffer.is_null() {
                let slice = ptr::slice_from_raw_parts_mut(buffer, self.len);
                // SAFETY: made by `leaked`, and freed once, because owned buffers of one transfer
                // are never the same buffer.
                drop(unsafe { Box::from_raw(slice) });
            }
        }
    }
}

fn leaked(bytes: impl Into<Box<[u8]>>) -> *mut u8 {
    Box::into_raw(bytes.into()).cast()
}

/// A message that has its buffers, or keeps those of another.
#[derive(Default)]
pub struct OwnedMessage {
    transfers: Vec<Transfer<'static>>,
    parts: Vec<Part>,
}

// SAFETY: its pointers are its own, by the module's Safety.
unsafe impl Send for OwnedMessage {}

// SAFETY: a shared message gives access to nothing but lengths.
unsafe impl Sync for OwnedMessage {}

impl fmt::Debug for OwnedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedMessage").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

impl OwnedMessage {
    /// A message without transfers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn with(mut self, part: Part, shape: Shape) -> Self {
        self.transfers.push(shape.of(part.transfer()));
        self.parts.push(part);
        self
    }

    /// Adds a transfer that sends a copy of `tx` and receives as many bytes.
    #[must_use]
    pub fn with_exchange(self, tx: &[u8], shape: Shape) -> Self {
        let rx = leaked(vec![0; tx.len()]);
        self.with(Part { tx: leaked(tx), rx, len: tx.len(), owned: true }, shape)
    }

    /// Adds a transfer that sends a copy of `tx`.
    #[must_use]
    pub fn with_write(self, tx: &[u8], shape: Shape) -> Self {
        let part = Part { tx: leaked(tx), rx: ptr::null_mut(), len: tx.len(), owned: true };
        self.with(part, shape)
    }

    /// Adds a transfer that receives `len` bytes and sends zeros.
    #[must_use]
    pub fn with_read(self, len: usize, shape: Shape) -> Self {
        let part = Part { tx: ptr::null(), rx: leaked(vec![0; len]), len, owned: true };
        self.with(part, shape)
    }

    /// Adds a transfer over the caller's buffers. Either may be null. If both are the same buffer, its bytes
    /// are sent and then overwritten by the received ones.
    ///
    /// # Safety
    /// Until the message is dropped, `tx` and `rx` are null or valid for `len` bytes. They overlap only if they are
    /// equal. While the message is submitted, runs, or lends these bytes, nothing else writes to `tx` or uses `rx`.
    #[must_use]
    pub unsafe fn with_borrowed(
        self,
        tx: *const u8,
        rx: *mut u8,
        len: usize,
        shape: Shape,
    ) -> Self {
        // Nothing is sent, and the pointers of an empty buffer may be anything.
        let (tx, rx) = if len == 0 { (ptr::null(), ptr::null_mut()) } else { (tx, rx) };
        self.with(Part { tx, rx, len, owned: false }, shape)
    }

    /// How many transfers it has.
    #[must_use]
    pub fn transfers(&self) -> usize {
        self.parts.len()
    }

    /// How many bytes it clocks.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.len).sum()
    }

    /// The bytes that transfer `index` sends, to change them; `None` if there is no such transfer, or if it only
    /// receives.
    pub fn tx_mut(&mut self, index: usize) -> Option<&mut [u8]> {
        let part = self.parts.get(index).filter(|part| part.owned && !part.tx.is_null())?;
        // SAFETY: the module's; the transfers are bound anew before they are used.
        Some(unsafe { slice::from_raw_parts_mut(part.tx.cast_mut(), part.len) })
    }

    /// The bytes that transfer `index` received; `None` if there is no such transfer, or if it only sends.
    #[must_use]
    pub fn rx(self: Pin<&mut Self>, index: usize) -> Option<&[u8]> {
        let part = self.get_mut().parts.get(index)?;
        part.rx().map(|rx| &*rx)
    }

    /// The transfers, over the bytes as they are now.
    fn bound(&mut self) -> &mut [Transfer<'static>] {
        for (transfer, part) in self.transfers.iter_mut().zip(&self.parts) {
            if part.len > 0 {
                transfer.rebind(part.tx(), part.rx());
            }
        }
        &mut self.transfers
    }

    /// Makes it a message to submit on `device`. It is planned here, once.
    ///
    /// # Errors
    /// A message that [`Controller::plan`] refuses.
    pub fn queued<'b, C: Controller + ?Sized>(
        self,
        device: &Device<'b, C>,
    ) -> Result<Queued<'b, C, Self>, MessageError> {
        device.queued_payload(self)
    }

    /// Prepares it on `device`.
    ///
    /// # Errors
    /// A message that [`Controller::plan`] refuses.
    pub fn prepared<'b, C: Controller + ?Sized>(
        mut self,
        device: &Device<'b, C>,
    ) -> Result<OwnedPrepared<'b, C>, MessageError> {
        self.bound();
        let transfers: *mut [Transfer<'static>] =
            Box::into_raw(std::mem::take(&mut self.transfers).into_boxed_slice());
        // SAFETY: leaked just now; the only reference, until `OwnedPrepared` frees it.
        match device.prepare_message(unsafe { &mut *transfers }) {
            Ok(prepared) => {
                let prepared = MaybeUninit::new(prepared);
                Ok(OwnedPrepared { prepared, transfers, of: self })
            }
            Err(error) => {
                // SAFETY: leaked above, and not borrowed any more.
                drop(unsafe { Box::from_raw(transfers) });
                Err(error)
            }
        }
    }
}

// SAFETY: the module's: the transfers are on the heap, and point at the message's own buffers, or at those whose
// owner promised that they stay and that nothing else uses them.
unsafe impl Payload for OwnedMessage {
    fn message(self: Pin<&mut Self>) -> *mut [Transfer<'static>] {
        self.get_mut().bound()
    }
}

/// A prepared message that has its buffers.
pub struct OwnedPrepared<'b, C: ?Sized> {
    /// Always initialised. `MaybeUninit`, because the buffers that it borrows are freed while this struct is
    /// dropped, when a plain field must still be valid. It needs no destructor.
    prepared: MaybeUninit<PreparedMessage<'b, 'static, 'static, C>>,
    transfers: *mut [Transfer<'static>],
    /// The buffers; its own list of transfers is empty.
    of: OwnedMessage,
}

// SAFETY: its pointers are its own; a prepared message is `Send` where a shared bus is.
unsafe impl<C: ?Sized + Send> Send for OwnedPrepared<'_, C> {}

impl<C: ?Sized> fmt::Debug for OwnedPrepared<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPrepared").field("of", &self.of).finish_non_exhaustive()
    }
}

impl<'b, C: Controller + ?Sized> OwnedPrepared<'b, C> {
    /// The prepared message, bound to the buffers: run it, or run it under a lock.
    #[inline]
    pub fn bound(&mut self) -> &mut PreparedMessage<'b, 'static, 'static, C> {
        // SAFETY: the prepared message was made when this value was.
        let prepared = unsafe { self.prepared.assume_init_mut() };
        for (index, part) in self.of.parts.iter().enumerate() {
            if part.len > 0 {
                prepared.rebind(index, part.tx(), part.rx());
            }
        }
        prepared
    }

    /// The bytes that transfer `index` sends, as [`OwnedMessage::tx_mut`].
    pub fn tx_mut(&mut self, index: usize) -> Option<&mut [u8]> {
        self.of.tx_mut(index)
    }

    /// The bytes that transfer `index` received, as [`OwnedMessage::rx`].
    #[must_use]
    pub fn rx(&mut self, index: usize) -> Option<&[u8]> {
        Pin::new(&mut self.of).rx(index)
    }

    /// Runs it, and returns its length in bytes.
    ///
    /// # Errors
    /// As [`PreparedMessage::run`].
    #[inline]
    pub fn run(&mut self) -> Result<usize, MessageError> {
        self.bound().run()
    }
}

impl<C: ?Sized> Drop for OwnedPrepared<'_, C> {
    fn drop(&mut self) {
        // SAFETY: leaked by `prepared`, and not borrowed any more.
        drop(unsafe { Box::from_raw(self.transfers) });
    }
}
