//! SPI0's exchange: bytes, the clock after each byte, and their times.
//!
//! *Read first*: the module page of [`super`], whose *Ordering* this file implements.

use super::Bcm2835Spi;
use super::regs::divisor;
use crate::chip::Ps;
use crate::model::block::sck_period;
use crate::model::shifter::{Phase, Shift, Shifter, Word};
use crate::wire::Wire;

const BITS: u32 = 8;

impl Bcm2835Spi {
    /// Whether a byte is on the wire whose last bit has not been sampled.
    pub(super) fn busy(&self) -> bool {
        self.shifter.phase == Phase::Sample
    }

    /// Ordering 2: a byte begins, if its conditions are met.
    pub(super) fn start(&mut self, at: Ps, wire: &mut Wire) {
        let free = self.shifter.is_idle() && !self.rx.is_full();
        if !(free && self.cs.ta() && self.cs.supported()) {
            return;
        }
        let Some(byte) = self.tx.pop() else { return };
        let period = sck_period(divisor(self.clk), self.core_hz);
        let word = Word::new(byte, BITS, self.cs.mode(), period);
        // The ninth clock.
        self.shifter.begin(Word { rest_clocks: 1, ..word }, at, wire);
    }

    /// TA = 0: a byte on the wire ends here.
    pub(super) fn stop(&mut self, now: Ps, wire: &mut Wire) {
        // A byte whose last bit was sampled still has an edge to come, before the CE line may move.
        if self.busy() {
            wire.abort_run(now);
            self.shifter.rest();
        }
    }
}

impl Shift for Bcm2835Spi {
    fn shifter(&self) -> &Shifter {
        &self.shifter
    }

    fn shifter_mut(&mut self) -> &mut Shifter {
        &mut self.shifter
    }

    /// Ordering 3: sample.
    fn receive(&mut self, byte: u32, _at: Ps, _wire: &mut Wire) {
        assert!(self.rx.push(byte), "a byte begins only if RX FIFO has room");
    }

    /// Ordering 4: end.
    fn boundary(&mut self, at: Ps, wire: &mut Wire) {
        self.shifter.rest();
        // CS may have changed during the byte.
        wire.set_sck(self.cs.cpol(), at);
        self.start(at, wire);
    }
}
