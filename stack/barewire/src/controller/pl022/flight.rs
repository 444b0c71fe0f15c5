//! Transfers left in flight: filled, left, and continued when the block interrupts.
//!
//! *Read first*: the module page of [`super`]; `fifo.rs`, whose steps this uses; ARM DDI 0194,
//! sections "Interrupts" and SSPIMSC.
//!
//! # How it works
//! Every word sent brings one in, so the receive FIFO alone says when to send more and when
//! everything was received. It interrupts at four words (RXIM). That leaves four frames of time to
//! serve it; only if it is served later does the clock stop.
//!
//! **The tail.** RXIM does not come for fewer than four words. The timeout interrupt does (RTIM),
//! but it waits for 32 bits after the last word, longer than a word takes. So words are read only
//! in numbers that leave four still to come, or none: then RXIM comes with the very last word.
//! Transfers of less than four frames, and frames with a delay between them, can only use RTIM.
//!
//! # Ordering
//! 1. The block does not interrupt before [`Controller::arm`](super::Controller::arm).
//! 2. A lost word (RORIM) always interrupts.
//! 3. Received words are read before more are sent.
//! 4. The last word is received up to a clock before the frame's end; BSY is polled for that long.

use super::Pl022;
use super::regs::{HALF_WORDS, ROR, RT, RX};
use crate::controller::Interrupt;
use crate::controller::gpio::GpioBank;
use crate::reg::Registers;
use crate::time::Timer;

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Pl022<R, G, T, I> {
    /// SSPIMSC for the words that are awaited.
    pub(super) fn awaited(&self) -> u32 {
        // Ordering 2: a lost word always interrupts.
        let words = if self.flight.flow.in_flight() < HALF_WORDS { RT } else { RX };
        words | ROR
    }

    /// How many of `in_flight` words to read now: as many as leave four still to come, or none.
    #[inline]
    pub(super) fn ready_left(&mut self, in_flight: usize) -> usize {
        // Fewer cannot interrupt before more are sent.
        if in_flight < HALF_WORDS || !self.half_full() {
            return 0;
        }
        match in_flight + self.flight.flow.unsent() {
            HALF_WORDS => HALF_WORDS,
            to_come => (to_come - HALF_WORDS).min(HALF_WORDS),
        }
    }
}
