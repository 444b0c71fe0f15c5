//! Cadence SPI's exchange: bytes, the automatic select line and their times.
//!
//! *Read first*: the module page of [`super`].
//!
//! # Ordering
//! 1. Select: a cycle of the reference clock after there is a byte, the line becomes active, if the block does that
//!    itself.
//! 2. Lead: the first cell begins a cycle and `d_init` cycles later.
//! 3. Capture: at the last sampling edge the byte goes to the receive FIFO, and leaves the transmit FIFO.
//! 4. Boundary: the next byte follows `d_after` cycles later.
//! 5. Release: without a next byte the block's own line becomes inactive, for `d_btwn` cycles at least.

use super::Cadence;
use super::regs::RX_LOST;
use crate::check::Rule;
use crate::chip::{PS_PER_S, Ps};
use crate::model::block::sck_period;
use crate::model::shifter::{Phase, Shift, Shifter, Word};
use crate::wire::Wire;

impl Cadence {
    fn cycles(&self, cycles: u32) -> Ps {
        (u64::from(cycles) * PS_PER_S).div_ceil(self.clk_hz)
    }

    /// A delay: a byte of the delay register, from this bit on.
    fn delay(&self, shift: u32) -> Ps {
        self.cycles(self.delays >> shift & 0xff)
    }

    fn has_work(&self) -> bool {
        self.enabled
            && self.config.is_controller()
            && !self.tx.is_empty()
            && (self.started || !self.config.manual_start())
    }

    /// A register was written: an exchange may begin.
    pub(super) fn wake(&mut self, now: Ps) {
        if self.shifter.is_idle() && self.has_work() {
            self.shifter.select(now + self.cycles(1));
        }
    }
}

impl Shift for Cadence {
    fn shifter(&self) -> &Shifter {
        &self.shifter
    }

    fn shifter_mut(&mut self) -> &mut Shifter {
        &mut self.shifter
    }

    /// Ordering 1 and 2.
    fn select(&mut self, at: Ps, wire: &mut Wire) {
        let mut lead = self.cycles(1);
        if !self.config.manual_cs() {
            self.select_line(self.config.line(), at, wire);
            lead += self.delay(0);
        }
        self.shifter.enter(Phase::Lead, at + lead);
    }

    fn load(&mut self, at: Ps, wire: &mut Wire) {
        let byte = if self.has_work() { self.tx.pop() } else { None };
        let Some(byte) = byte else {
            self.shifter.enter(Phase::Release, at);
            return;
        };
        self.sending = true;
        if self.config.baud() == 0 {
            let detail = "a byte is sent with BAUD_RATE_DIV 0, which is not supported";
            wire.log().report(at, Rule::BadAccess, None, detail);
        }
        let period = sck_period(2 << self.config.baud(), self.clk_hz);
        self.shifter.begin(Word::new(byte, 8, self.taken.mode(), period), at, wire);
    }

    /// Ordering 3.
    fn receive(&mut self, byte: u32, at: Ps, wire: &mut Wire) {
        self.sending = false;
        self.started &= !self.tx.is_empty();
        if !self.rx.push(byte) {
            self.latched |= RX_LOST;
            let detail = format!("the receive FIFO is full: {byte:#x} is lost");
            wire.log().report(at, Rule::RxOverrun, None, detail);
        }
    }

    /// Ordering 4 and 5.
    fn boundary(&mut self, at: Ps, _wire: &mut Wire) {
        if self.has_work() {
            self.shifter.enter(Phase::Lead, at + self.delay(8));
        } else {
            self.shifter.enter(Phase::Release, at);
        }
    }

    /// Ordering 5.
    fn release(&mut self, at: Ps, wire: &mut Wire) {
        if !self.config.manual_cs() {
            self.select_line(None, at, wire);
            self.shifter.ready_at = at + self.delay(16);
        }
        self.shifter.rest();
        self.wake(at);
    }
}
