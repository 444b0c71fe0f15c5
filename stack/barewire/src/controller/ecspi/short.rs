//! Transfers of one FIFO load at 10 MHz or more: step 2 of the driver's module for one word, step 3 for more.
//!
//! One word is inlined in the caller. More are one call: a burst that XCH starts, whose words all fit both FIFOs.

use core::ops::Range;

use super::regs::{
    BURST_LENGTH, FIFO_WORDS, RDR, RF, RR, RXDATA, SMC, STATREG, TXDATA, XCH, burst_length,
};
use super::{BATCH_WORDS, CONREG, Ecspi, Flight, PREFILL_WORDS, Span, pack};
use crate::controller::gpio::GpioBank;
use crate::controller::{Interrupt, Plan, Stopped};
use crate::reg::Registers;
use crate::reg::chunks::rchunks;
use crate::spi::Transfer;
use crate::time::Timer;

/// The longest transfer whose words fit a FIFO.
pub(super) const LOAD_BYTES: usize = 4 * FIFO_WORDS;
/// The longest on a native line, whose words are all written before the burst starts.
pub(super) const NATIVE_LOAD_BYTES: usize = 4 * PREFILL_WORDS;

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Ecspi<R, G, T, I> {
    /// Sends a transfer of 5 to 8 bytes, and reads for as long as words have come. Returns whether the burst is over;
    /// otherwise [`Ecspi::exchange_rest_of_load`] finds it in flight.
    ///
    /// Only the burst's first word may be short. It is sent and received as four bytes, and the
    /// surplus ones are shifted out, which saves a loop; the last word's bytes then overwrite them.
    #[inline(always)]
    fn exchange_two_words(
        &mut self,
        len: usize,
        tx: Option<&[u8]>,
        mut rx: Option<&mut [u8]>,
    ) -> bool {
        let behind = 8 * (8 - len as u32);
        let ends = |tx: &[u8]| Some((*tx.first_chunk::<4>()?, *tx.last_chunk::<4>()?));
        let (first, last) = tx.and_then(ends).unwrap_or_default();
        self.regs.write(TXDATA, u32::from_be_bytes(first) >> behind);
        self.regs.write(TXDATA, u32::from_be_bytes(last));
        self.start_burst();
        if self.regs.read(STATREG) & RR == 0 {
            return self.leave(len, 0..2);
        }
        let word = self.regs.read(RXDATA) << behind;
        if let Some(first) = rx.as_deref_mut().and_then(<[u8]>::first_chunk_mut::<4>) {
            *first = word.to_be_bytes();
        }
        if self.regs.read(STATREG) & RR == 0 {
            return self.leave(len, 1..2);
        }
        let word = self.regs.read(RXDATA);
        if let Some(last) = rx.and_then(<[u8]>::last_chunk_mut::<4>) {
            *last = word.to_be_bytes();
        }
        self.regs.read(CONREG) & XCH == 0 || self.leave(len, 2..2)
    }

    /// Leaves a burst of `len` bytes in flight.
    #[cold]
    fn leave(&mut self, len: usize, in_flight: Range<usize>) -> bool {
        self.flight = Flight::of(Span::whole(len), in_flight);
        false
    }

    /// Sends a transfer of 5 to [`LOAD_BYTES`] bytes, and reads for as long as words have come. Returns whether the
    /// burst is over; otherwise [`Ecspi::exchange_rest_of_load`] finds it in flight.
    #[inline(never)]
    fn exchange_load(
        &mut self,
        control: u32,
        len: usize,
        tx: Option<&[u8]>,
        rx: Option<&mut [u8]>,
    ) -> bool {
        self.set_conreg(control & !(BURST_LENGTH | SMC) | burst_length(len));
        // Needed for more than two words. Written here, so that the first such message does not pay for it.
        self.set_threshold(BATCH_WORDS);
        if len <= 8 {
            return self.exchange_two_words(len, tx, rx);
        }
        let words = len.div_ceil(4);
        self.send_load(len, tx);
        let status = self.regs.read(STATREG);
        let to_come = match rx {
            _ if status & (RR | RDR | RF) == 0 => words,
            Some(rx) => self.drain_bytes(rx, status),
            None => self.discard_load(words, status),
        };
        if to_come == 0 && self.regs.read(CONREG) & XCH == 0 {
            return true;
        }
        self.leave(len, words - to_come..words)
    }

    /// Writes a few words, starts the burst and writes the others.
    #[inline(always)]
    fn send_load(&mut self, len: usize, tx: Option<&[u8]>) {
        let Some(tx) = tx else {
            let words = len.div_ceil(4);
            let early = words.min(PREFILL_WORDS);
            self.regs.write_each(TXDATA, (0..early).map(|_| 0));
            self.start_burst();
            return self.regs.write_each(TXDATA, (early..words).map(|_| 0));
        };
        // Only the burst's first word may be short.
        let (short, words) = rchunks::<4>(tx);
        let mut early = PREFILL_WORDS;
        if !short.is_empty() {
            self.regs.write(TXDATA, pack(short, 1));
            early -= 1;
        }
        let (early, late) = words.split_at(words.len().min(early));
        self.regs.write_each(TXDATA, early.iter().map(|&word| u32::from_be_bytes(word)));
        self.start_burst();
        self.regs.write_each(TXDATA, late.iter().map(|&word| u32::from_be_bytes(word)));
    }

    /// Discards received words until there are no more. Returns how many of `words` are still to come.
    #[inline(always)]
    fn discard_load(&mut self, mut words: usize, mut look: u32) -> usize {
        while words > 0 {
            let come = self.come(look, words);
            if come == 0 {
                break;
            }
            self.regs.discard_n(RXDATA, come);
            words -= come;
            if words > 0 {
                look = self.regs.read(STATREG);
            }
        }
        words
    }

    #[inline(never)]
    fn finish_load(&mut self, rx: Option<&mut [u8]>) -> Result<(), Stopped> {
        let (span, in_flight) = (self.flight.span(), self.flight.in_flight());
        // Everything was sent; without a buffer, received words are discarded.
        let mut rest = rx.map_or(Transfer::write(&[]), Transfer::read);
        self.finish_burst(&Plan::NONE, &mut rest.data, span, in_flight)?;
        self.poll::<CONREG>(XCH, 0, 4)
    }

    /// Sends a transfer that one load of the FIFO holds, and reads for as long as words have come.
    #[inline(always)]
    pub(super) fn exchange_one_load(
        &mut self,
        control: u32,
        len: usize,
        tx: Option<&[u8]>,
        rx: Option<&mut [u8]>,
    ) -> bool {
        if len > 4 {
            return self.exchange_load(control, len, tx, rx);
        }
        self.set_conreg(control & !BURST_LENGTH | burst_length(len));
        let word = tx.map_or(0, |tx| pack(tx, 1));
        self.regs.write(TXDATA, word);
        if self.regs.read(STATREG) & RR == 0 {
            return false;
        }
        self.receive_word(rx);
        true
    }

    /// Finishes what [`Ecspi::exchange_one_load`] has begun.
    pub(super) fn exchange_rest_of_load(
        &mut self,
        len: usize,
        rx: Option<&mut [u8]>,
    ) -> Result<(), Stopped> {
        if len > 4 {
            return self.finish_load(rx);
        }
        self.poll::<STATREG>(RR, RR, len)?;
        self.receive_word(rx);
        Ok(())
    }
}
