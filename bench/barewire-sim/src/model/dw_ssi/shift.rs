//! The DW_apb_ssi's exchange: frames, the select lines and their times.
//!
//! *Read first*: the module page of [`super`], whose *Ordering* this file implements.

use super::DwSsi;
use super::regs::int;
use crate::check::Rule;
use crate::chip::Ps;
use crate::model::block::sck_period;
use crate::model::shifter::{Phase, Shift, Shifter, Word};
use crate::wire::{Driver, Wire};

impl DwSsi {
    /// BUSY: the select lines are active. Not yet while the block has to notice its first word.
    pub(super) fn busy(&self) -> bool {
        !matches!(self.shifter.phase, Phase::Idle | Phase::Select)
    }

    fn period(&self) -> Ps {
        sck_period(self.baudr.into(), self.ssi_clk_hz)
    }

    /// The settings are such that this block clocks Motorola's frames both ways.
    fn clocks(&self) -> bool {
        self.enabled
            && self.ser != 0
            && self.baudr >= 2
            && self.ctrlr0.is_motorola_both_ways()
            && self.ctrlr0.frame_bits(self.build.wide).is_some()
    }

    /// Begins a frame, if there is a word for one: Ordering 1.
    pub(super) fn start(&mut self, now: Ps) {
        if self.shifter.is_idle() && !self.tx.is_empty() && self.clocks() {
            self.shifter.select(now + self.period());
        }
    }

    /// All enabled select lines take `level`.
    fn drive_lines(&self, level: bool, at: Ps, wire: &mut Wire) {
        for line in (0..16).filter(|line| self.ser >> line & 1 != 0) {
            wire.drive(Driver::Native(line), level, at);
        }
    }

    /// SSIENR is cleared: the exchange ends here, in the middle of a frame too.
    pub(super) fn stop(&mut self, now: Ps, wire: &mut Wire) {
        if self.shifter.phase == Phase::Sample {
            wire.abort_run(now);
        }
        self.drive_lines(true, now, wire);
        self.shifter.rest();
        self.tx.clear();
        self.rx.clear();
    }
}

impl Shift for DwSsi {
    fn shifter(&self) -> &Shifter {
        &self.shifter
    }

    fn shifter_mut(&mut self) -> &mut Shifter {
        &mut self.shifter
    }

    /// Ordering 2.
    fn select(&mut self, at: Ps, wire: &mut Wire) {
        if self.tx.is_empty() || !self.clocks() {
            // SER was cleared before the block had noticed the word.
            self.shifter.rest();
            return;
        }
        self.drive_lines(false, at, wire);
        self.shifter.enter(Phase::Lead, at + self.period() / 2);
    }

    fn load(&mut self, at: Ps, wire: &mut Wire) {
        let (Some(bits), Some(word)) = (self.ctrlr0.frame_bits(self.build.wide), self.tx.pop())
        else {
            unreachable!("a frame begins with a size and a word")
        };
        let word = Word::new(word, bits, self.ctrlr0.mode(), self.period());
        self.shifter.begin(Word { loopback: self.ctrlr0.srl(), ..word }, at, wire);
    }

    /// Ordering 3.
    fn receive(&mut self, word: u32, at: Ps, wire: &mut Wire) {
        if !self.rx.push(word) {
            self.sticky |= int::RXO;
            let detail = format!(
                "the receive FIFO already holds {} words: {word:#x} is lost, RXO is set",
                self.build.rx_words
            );
            wire.log().report(at, Rule::RxOverrun, None, detail);
        }
    }

    /// Ordering 4 and 5.
    fn boundary(&mut self, at: Ps, wire: &mut Wire) {
        if !self.tx.is_empty() && !self.ctrlr0.toggles() {
            self.load(at, wire);
        } else {
            self.shifter.enter(Phase::Release, at + self.shifter.word.period / 2);
        }
    }

    /// Ordering 5.
    fn release(&mut self, at: Ps, wire: &mut Wire) {
        self.drive_lines(true, at, wire);
        self.shifter.rest();
        self.start(at);
    }
}
