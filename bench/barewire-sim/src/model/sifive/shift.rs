//! SiFive SPI's exchange: frames, the select line and their times.
//!
//! *Read first*: the module page of [`super`], whose *Ordering* this file implements.

use super::regs::{AUTO, Clock, FIFO_BYTES, Fmt, OFF};
use super::{ActiveLine, SiFive};
use crate::check::Rule;
use crate::chip::{PS_PER_S, Ps};
use crate::model::block::sck_period;
use crate::model::shifter::{Phase, Shift, Shifter, Word};
use crate::wire::{Driver, Wire};

impl SiFive {
    /// CSMODE changed: a block that is selected is released after the frame.
    pub(super) fn release_wanted(&mut self) {
        self.release |= !matches!(self.shifter.phase, Phase::Idle | Phase::Select | Phase::Gap);
    }

    fn period(&self) -> Ps {
        sck_period(self.clock.divisor(), self.clk_hz)
    }

    /// So many periods, of the 8 bits of a delay.
    fn periods(&self, delay: u32) -> Ps {
        u64::from(delay & 0xff) * self.period()
    }

    /// The line that CSID and CSDEF name now.
    fn named(&self) -> ActiveLine {
        ActiveLine { line: self.csid, active: self.csdef >> self.csid & 1 == 0 }
    }

    fn has_work(&self) -> bool {
        !self.tx.is_empty() && self.fctrl == 0
    }

    /// A byte, CSMODE or FCTRL was written. If no event was due, this schedules one.
    pub(super) fn wake(&mut self, now: Ps) {
        if self.shifter.due != Ps::MAX {
            return;
        }
        let cycle = PS_PER_S.div_ceil(self.clk_hz);
        match self.shifter.phase {
            Phase::Idle if self.has_work() => self.shifter.select(now + cycle),
            Phase::Lead => self.shifter.enter(Phase::Lead, now + cycle),
            _ => {}
        }
    }

    /// What the block takes over without a frame: SCKDIV and SCKMODE while it is not selected. A block
    /// that is selected is released if its line is not the one that is named now.
    pub(super) fn follow(&mut self, now: Ps, wire: &mut Wire) {
        match self.shifter.phase {
            Phase::Idle => self.take_clock(now, wire),
            Phase::Select | Phase::Gap => {}
            _ => {
                if self.taken.is_some_and(|taken| taken != self.named()) {
                    self.release = true;
                    self.wake(now);
                }
            }
        }
    }

    fn take_clock(&mut self, at: Ps, wire: &mut Wire) {
        let clock = Clock { sckdiv: self.sckdiv, sckmode: self.sckmode };
        if clock != self.clock {
            self.clock = clock;
            wire.set_sck(clock.pol(), at);
        }
    }

    fn drive(&self, selected: bool, at: Ps, wire: &mut Wire) {
        if let Some(ActiveLine { line, active }) = self.taken {
            wire.drive(Driver::Native(line as u8), active == selected, at);
        }
    }
}

impl Shift for SiFive {
    fn shifter(&self) -> &Shifter {
        &self.shifter
    }

    fn shifter_mut(&mut self) -> &mut Shifter {
        &mut self.shifter
    }

    /// Ordering 1.
    fn select(&mut self, at: Ps, wire: &mut Wire) {
        self.taken = (self.csmode != OFF).then(|| self.named());
        self.drive(true, at, wire);
        self.shifter.enter(Phase::Lead, at + self.periods(self.delay0));
    }

    /// Ordering 2, 4 and 5: a frame begins if there is a byte, or the release if one is wanted.
    fn load(&mut self, at: Ps, wire: &mut Wire) {
        if self.release {
            let hold = self.periods(self.delay0 >> 16);
            self.shifter.enter(Phase::Release, at + hold);
            return;
        }
        self.shifter.enter(Phase::Lead, Ps::MAX);
        if !self.has_work() {
            return;
        }
        let fmt = Fmt(self.fmt);
        let Some(byte) = self.tx.pop() else { return };
        if self.csmode == AUTO {
            self.release = true;
        }
        if !fmt.is_bytes() {
            let detail = format!("FMT {:#x}: frames that are not of 8 bits on single lines", fmt.0);
            wire.log().report(at, Rule::BadAccess, None, detail);
            self.shifter.due = at;
            return;
        }
        self.receives = fmt.receives();
        let word = Word::new(byte, 8, self.clock.mode(), self.period());
        self.shifter.begin(Word { lsb_first: fmt.lsb_first(), ..word }, at, wire);
    }

    /// Ordering 3.
    fn receive(&mut self, byte: u32, at: Ps, wire: &mut Wire) {
        if self.receives && !self.rx.push(byte) {
            let detail =
                format!("the receive FIFO already holds {FIFO_BYTES} bytes: {byte:#x} is lost");
            wire.log().report(at, Rule::RxOverrun, None, detail);
        }
    }

    fn boundary(&mut self, at: Ps, _wire: &mut Wire) {
        let gap = self.periods(self.delay1 >> 16);
        self.shifter.enter(Phase::Lead, at + gap);
    }

    /// Ordering 5.
    fn release(&mut self, at: Ps, wire: &mut Wire) {
        self.drive(false, at, wire);
        (self.taken, self.release) = (None, false);
        self.take_clock(at, wire);
        self.shifter.enter(Phase::Gap, at + self.periods(self.delay1));
    }

    /// The line has been inactive for `intercs` periods.
    fn gap(&mut self, at: Ps, _wire: &mut Wire) {
        if self.has_work() {
            self.shifter.select(at);
        } else {
            self.shifter.rest();
        }
    }
}
