//! Transfers in 8-bit words without delays, to a chip that a GPIO selects: steps 2 and 3 of the driver's module.
//!
//! One frame is inlined in the caller. More, of one load of the FIFO, are one call. Bytes that do not fill a frame follow
//! as a shorter one.

use core::iter::repeat_n;

use super::config::frame_of_bytes;
use super::regs::{BUSY, CTRLR0, DR, RFNE, RXFLR, SR, SSIENR, frame_size};
use super::{DwSsi, mode_of, pack, unpack};
use crate::controller::fifo::{self, Fifo};
use crate::controller::gpio::GpioBank;
use crate::controller::words::{put_frame, word_of};
use crate::controller::{Interrupt, Stopped};
use crate::reg::Registers;
use crate::reg::chunks::{chunks, chunks_mut};
use crate::time::Timer;

/// The number of bytes that remain of `len` after whole frames of `frame` bytes. With frames of 3 bytes all frames are
/// equal, and none remains.
#[inline(always)]
fn tail_of(len: usize, frame: u8) -> usize {
    if frame == 3 { 0 } else { len & (usize::from(frame) - 1) }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> DwSsi<R, G, T, I> {
    /// Sends a transfer that is one frame, and looks once. Returns whether it came back.
    #[inline(always)]
    fn exchange_frame(&mut self, tx: Option<&[u8]>, rx: Option<&mut [u8]>) -> bool {
        self.send_frame(tx, 1);
        if self.regs.read(SR) & (BUSY | RFNE) != RFNE {
            return false;
        }
        self.receive_frame(rx, 1);
        true
    }

    /// Exchanges frames of `N` bytes, which the FIFO holds.
    #[inline(always)]
    fn exchange_frames<const N: usize>(
        &mut self,
        len: usize,
        tx: Option<&[u8]>,
        rx: Option<&mut [u8]>,
    ) -> bool {
        let frames = len / N;
        self.state.rested = false;
        match tx {
            Some(tx) => self.regs.write_each(DR, chunks::<N>(tx).iter().map(word_of)),
            None => self.regs.write_each(DR, repeat_n(0, frames)),
        }
        let mut rx = rx.map(chunks_mut::<N>);
        let mut in_flight = frames;
        while in_flight > 0 {
            let ready = self.ready_of(in_flight);
            if ready == 0 {
                return fifo::leave(self, N as u8, frames, frames - in_flight, frames);
            }
            match rx.take().and_then(|rx| rx.split_at_mut_checked(ready)) {
                Some((now, rest)) => {
                    rx = Some(rest);
                    self.regs.read_each(DR, now.iter_mut(), put_frame);
                }
                None => self.regs.discard_n(DR, ready),
            }
            in_flight -= ready;
        }
        self.at_rest() || fifo::leave(self, N as u8, frames, frames, frames)
    }

    /// [`DwSsi::exchange_frames`] of `frame` bytes each, in little code.
    #[inline(never)]
    fn exchange_any_frames(
        &mut self,
        frame: u8,
        len: usize,
        tx: Option<&[u8]>,
        rx: Option<&mut [u8]>,
    ) -> bool {
        let bytes = usize::from(frame.max(1));
        let frames = len / bytes;
        self.state.rested = false;
        let mut tx = tx.map(|tx| tx.chunks_exact(bytes));
        let words = (0..frames).map(|_| tx.as_mut().and_then(Iterator::next));
        self.regs.write_each(DR, words.map(|bytes| bytes.map_or(0, |bytes| pack(bytes, 1))));
        let mut rx = rx.map(|rx| rx.chunks_exact_mut(bytes));
        let mut in_flight = frames;
        while in_flight > 0 {
            let ready = self.ready_of(in_flight);
            if ready == 0 {
                return fifo::leave(self, frame, frames, frames - in_flight, frames);
            }
            self.regs.read_each(DR, 0..ready, |_, word| {
                if let Some(bytes) = rx.as_mut().and_then(Iterator::next) {
                    unpack(word, bytes, 1);
                }
            });
            in_flight -= ready;
        }
        self.at_rest() || fifo::leave(self, frame, frames, frames, frames)
    }

    /// How many of the frames in flight have been received. Never more than were sent, even if the block claims so.
    #[inline(always)]
    fn ready_of(&mut self, in_flight: usize) -> usize {
        match in_flight {
            1 => self.has_frame().into(),
            _ => (self.regs.read(RXFLR) as usize).min(in_flight),
        }
    }

    /// Exchanges frames, and the rest of the bytes after them, as long as each look finds received frames.
    #[inline(never)]
    fn exchange_load(
        &mut self,
        control: u32,
        len: usize,
        tx: Option<&[u8]>,
        mut rx: Option<&mut [u8]>,
    ) -> bool {
        let frame = frame_of_bytes(len, self.config.size);
        self.reframe(control, frame);
        let rx_of_frames = rx.as_deref_mut();
        let done = match frame {
            4 => self.exchange_frames::<4>(len, tx, rx_of_frames),
            3 => self.exchange_frames::<3>(len, tx, rx_of_frames),
            _ => self.exchange_any_frames(frame, len, tx, rx_of_frames),
        };
        let tail = tail_of(len, frame);
        if !done || tail == 0 {
            return done;
        }
        self.reframe(control, tail as u8);
        let tx = tx.and_then(|tx| tx.get(len - tail..));
        self.exchange_frame(tx, rx.and_then(|rx| rx.get_mut(len - tail..)))
    }

    /// Sets the block up for frames of `bytes`, at the clock and in the mode that it has.
    #[inline(always)]
    fn reframe(&mut self, control: u32, bytes: u8) {
        if self.state.frame_bytes != bytes {
            let ctrlr0 = mode_of(control) | frame_size(bytes, self.config.size.wide);
            self.regs.write(SSIENR, 0);
            self.regs.write(CTRLR0, ctrlr0);
            self.regs.write(SSIENR, 1);
            (self.state.ctrlr0, self.state.frame_bytes) = (ctrlr0, bytes);
        }
    }

    /// [`BlockDriver::exchange_short`](crate::controller::block::BlockDriver::exchange_short).
    #[inline(always)]
    pub(super) fn exchange_one_load(
        &mut self,
        control: u32,
        len: usize,
        tx: Option<&[u8]>,
        rx: Option<&mut [u8]>,
    ) -> bool {
        if len == usize::from(self.state.frame_bytes) {
            return self.exchange_frame(tx, rx);
        }
        self.exchange_load(control, len, tx, rx)
    }

    /// Finishes what [`DwSsi::exchange_one_load`] has begun.
    pub(super) fn exchange_rest_of_load(
        &mut self,
        control: u32,
        len: usize,
        tx: Option<&[u8]>,
        rx: Option<&mut [u8]>,
    ) -> Result<(), Stopped> {
        let frame = frame_of_bytes(len, self.config.size);
        let tail = tail_of(len, frame);
        let (tx, tail_tx) = tx.and_then(|tx| tx.split_at_checked(len - tail)).unzip();
        let (rx, tail_rx) = rx.and_then(|rx| rx.split_at_mut_checked(len - tail)).unzip();
        if self.state.frame_bytes == frame {
            if len == usize::from(frame) {
                return self.await_frame(rx, 1);
            }
            match frame {
                4 => fifo::exchange_rest::<_, 4>(self, tx, rx),
                _ => fifo::exchange_rest_of_any(self, tx, rx),
            }?;
            if tail == 0 {
                return Ok(());
            }
            self.reframe(control, tail as u8);
            self.send_frame(tail_tx, 1);
        }
        // Else the tail was sent: the block is set up for it.
        self.await_frame(tail_rx, 1)
    }
}
