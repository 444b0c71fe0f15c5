//! Transfers in 8-bit words without delays, to a chip that a GPIO selects: steps 2 and 3 of the driver's module.
//!
//! There is no FIFO whose load would set a limit: words are sent for as long as each look finds one received.

use super::regs::{OVRES, RDR, RDRF, SR, TDR, TDRE, TXEMPTY};
use super::{Atmel, P_CHANNEL, Pipe, frame_bytes};
use crate::controller::fifo;
use crate::controller::gpio::GpioBank;
use crate::controller::pace::{Singly, pace};
use crate::controller::words::word_of;
use crate::controller::{Interrupt, Preset, Stopped};
use crate::reg::Registers;
use crate::reg::chunks::{chunks, chunks_mut};
use crate::time::Timer;

/// The registers while every look succeeds, with SR as last read. Kept apart from the driver: the compiler must assume that
/// a store to a register changes the driver's fields.
struct Fast<'r, R> {
    regs: &'r mut R,
    status: u32,
    pcs: u32,
}

impl<R: Registers> Fast<'_, R> {
    #[inline(always)]
    fn look(&mut self) -> u32 {
        self.status = self.regs.read(SR);
        self.status
    }
}

impl<R: Registers> Singly for Fast<'_, R> {
    #[inline(always)]
    fn take_one(&mut self) -> Option<u32> {
        (self.look() & (RDRF | OVRES) == RDRF).then(|| self.regs.read(RDR))
    }

    #[inline(always)]
    fn put_one(&mut self, word: u32) {
        self.regs.write(TDR, word | self.pcs);
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Atmel<R, G, T, I> {
    /// The line whose CSR the preset's transfers use.
    #[inline(always)]
    pub(super) fn channel_of(&self, preset: &Preset) -> usize {
        preset.regs[P_CHANNEL] as usize % self.state.csr.len()
    }

    /// Exchanges words of `N` bytes for as long as TDR is free and RDR full at the first look.
    #[inline(always)]
    pub(super) fn exchange_words<const N: usize>(
        &mut self,
        csr: u32,
        len: usize,
        tx: Option<&[u8]>,
        rx: Option<&mut [u8]>,
    ) -> bool {
        self.state.overrun = false;
        self.set_csr(self.state.channel, csr);
        let words = len / N;
        let mut tx = tx.map(chunks::<N>);
        let rx = rx.map(chunks_mut::<N>);
        let mut next = || match tx.and_then(<[_]>::split_first) {
            Some((first, rest)) => {
                tx = Some(rest);
                word_of(first)
            }
            None => 0,
        };
        self.regs.write(TDR, next() | self.state.pcs);
        let mut sent = 1;
        if words > 1 && self.config.pipe != Pipe::OneWord {
            // The first may not be in the shift register yet.
            self.state.status = self.regs.read(SR);
            if self.state.status & (TDRE | OVRES) != TDRE {
                self.state.overrun |= self.state.status & OVRES != 0;
                return fifo::leave(self, N as u8, sent, 0, words);
            }
            self.regs.write(TDR, next() | self.state.pcs);
            sent = 2;
        }
        let received = self.pace_fast(words - sent, words, tx, rx);
        (received == words && self.state.status & TXEMPTY != 0)
            || fifo::leave(self, N as u8, words.min(sent + received), received, words)
    }

    /// [`pace()`] at a clock at which TDR is free whenever RDR was read.
    #[inline(always)]
    pub(super) fn pace_fast<const N: usize>(
        &mut self,
        paced: usize,
        words: usize,
        tx: Option<&[[u8; N]]>,
        rx: Option<&mut [[u8; N]]>,
    ) -> usize {
        let mut fast = Fast { regs: &mut self.regs, status: 0, pcs: self.state.pcs };
        let received = pace(&mut fast, paced, words, tx, rx);
        // A word that was sent after the last look makes that look stale: only `at_rest` uses it, after the last word.
        self.state.status = fast.status;
        self.state.overrun |= self.state.status & OVRES != 0;
        received
    }

    /// Finishes what [`Atmel::exchange_words`] has begun.
    pub(super) fn finish_words(
        &mut self,
        control: u32,
        len: usize,
        tx: Option<&[u8]>,
        rx: Option<&mut [u8]>,
    ) -> Result<(), Stopped> {
        let frame = frame_bytes(len);
        self.frames_of(control, frame, len);
        let flow = self.flight.flow;
        if !flow.all_sent() && flow.in_flight() < self.state.depth {
            // TDR was not free for the second word.
            self.await_free()?;
        }
        match frame {
            2 => fifo::exchange_rest::<_, 2>(self, tx, rx),
            _ => fifo::exchange_rest::<_, 1>(self, tx, rx),
        }
    }
}
