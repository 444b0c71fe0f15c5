//! The PL022's exchange: words, SSPFSSOUT and their times.
//!
//! *Read first*: the module page of [`super`], whose *Ordering* this file implements.

use super::Pl022;
use super::regs::{FIFO_WORDS, int};
use crate::check::Rule;
use crate::chip::Ps;
use crate::model::block::sck_period;
use crate::model::shifter::{Phase, Shift, Shifter, Word};
use crate::wire::{Driver, Wire};

/// The receive timeout in periods of SSPCLKOUT.
const TIMEOUT_PERIODS: u64 = 32;

impl Pl022 {
    fn period(&self) -> Ps {
        let divisor = u64::from(self.sspcpsr) * (1 + self.sspcr0.scr());
        sck_period(divisor, self.sspclk_hz)
    }

    /// A frame is under way, or about to begin.
    pub(super) fn busy(&self) -> bool {
        !self.shifter.is_idle()
    }

    /// Whether the settings make this block clock Motorola's frames.
    fn clocks(&self) -> bool {
        self.sspcr1.sse()
            && !self.sspcr1.ms()
            && self.sspcr0.frf() == 0
            && self.sspcr0.word_bits().is_some()
            && self.sspcpsr >= 2
    }

    /// Begins a frame, if there is a word for one.
    pub(super) fn start(&mut self, now: Ps) {
        if !self.busy() && !self.tx.is_empty() && self.clocks() {
            self.shifter.select(now);
            self.timeout_at = Ps::MAX;
        }
    }

    /// Between frames: RT is due 32 periods from `now`, if there are words to read.
    pub(super) fn arm_timeout(&mut self, now: Ps) {
        let counts = self.clocks() && !self.busy() && !self.rx.is_empty();
        let timeout = TIMEOUT_PERIODS * self.period();
        self.timeout_at = if counts { now.saturating_add(timeout) } else { Ps::MAX };
    }
}

impl Shift for Pl022 {
    fn shifter(&self) -> &Shifter {
        &self.shifter
    }

    fn shifter_mut(&mut self) -> &mut Shifter {
        &mut self.shifter
    }

    fn next_event(&self) -> Ps {
        self.shifter.due.min(self.timeout_at)
    }

    /// Ordering 5 is beside the exchange.
    fn run_to(&mut self, now: Ps, wire: &mut Wire) {
        loop {
            if self.timeout_at <= now.min(self.shifter.due) {
                self.sticky |= int::RT;
                self.timeout_at = Ps::MAX;
            } else if !self.step(now, wire) {
                return;
            }
        }
    }

    /// Ordering 1: select.
    fn select(&mut self, at: Ps, wire: &mut Wire) {
        if !self.clocks() {
            // The settings changed while SSPFSSOUT stayed high.
            self.shifter.rest();
            return;
        }
        wire.drive(Driver::Native(0), false, at);
        self.shifter.enter(Phase::Lead, at + self.period() / 2);
    }

    fn load(&mut self, at: Ps, wire: &mut Wire) {
        let (Some(bits), Some(word)) = (self.sspcr0.word_bits(), self.tx.pop()) else {
            // DSS was made a reserved value in the half period since SSPFSSOUT fell.
            self.shifter.enter(Phase::Release, at);
            return;
        };
        let word = Word::new(word, bits, self.sspcr0.mode(), self.period());
        self.shifter.begin(Word { loopback: self.sspcr1.lbm(), ..word }, at, wire);
    }

    /// Ordering 2: capture.
    fn receive(&mut self, word: u32, at: Ps, wire: &mut Wire) {
        self.sticky &= !int::RT;
        if !self.rx.push(word) {
            self.sticky |= int::ROR;
            let detail = format!(
                "the receive FIFO already holds {FIFO_WORDS} words: {word:#x} is lost, ROR is set"
            );
            wire.log().report(at, Rule::RxOverrun, None, detail);
        }
    }

    /// Ordering 3: boundary.
    fn boundary(&mut self, at: Ps, wire: &mut Wire) {
        if self.sspcr0.sph() && !self.tx.is_empty() && self.clocks() {
            self.load(at, wire);
        } else {
            let Shifter { sampled_at, word, .. } = self.shifter;
            self.shifter.enter(Phase::Release, sampled_at + word.period);
        }
    }

    /// Ordering 4: release.
    fn release(&mut self, at: Ps, wire: &mut Wire) {
        wire.drive(Driver::Native(0), true, at);
        self.shifter.rest();
        self.shifter.ready_at = at + self.shifter.word.period;
        self.start(at);
        if !self.busy() {
            wire.set_mosi(false, at);
        }
        self.arm_timeout(at);
    }
}
