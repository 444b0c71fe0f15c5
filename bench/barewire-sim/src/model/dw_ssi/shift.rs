//! The DW_apb_ssi's exchange: frames, the select lines and their times.
//!
//! *Read first*: the module page of [`super`], whose *Ordering* this file carries out.

use super::DwSsi;
use super::regs::int;
use crate::check::Rule;
use crate::chip::{Clocking, Ps};
use crate::model::block::sck_period;
use crate::wire::{Driver, Run, Wire};

/// What happens at [`Shifter::due`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Nothing, until there is a word.
    #[default]
    Idle,
    /// The block notices the word: the select lines fall.
    Select,
    /// The first cell begins.
    Lead,
    /// The last bit of the frame is captured.
    Capture,
    /// The last cell of the frame ends.
    Boundary,
    /// The select lines rise.
    Release,
}

/// The shift register and its clock. What a frame is made of is taken when it begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shifter {
    phase: Phase,
    due: Ps,
    period: Ps,
    word: u32,
    mask: u32,
    frame_end: Ps,
}

impl Default for Shifter {
    fn default() -> Self {
        Self { phase: Phase::Idle, due: Ps::MAX, period: 0, word: 0, mask: 0, frame_end: 0 }
    }
}

impl Shifter {
    /// When something happens next without an access; [`Ps::MAX`] for never.
    pub(super) fn due(&self) -> Ps {
        self.due
    }

    /// BUSY: the select lines are active. Not yet while the block has to notice its first word.
    pub(super) fn busy(&self) -> bool {
        !matches!(self.phase, Phase::Idle | Phase::Select)
    }
}

impl DwSsi {
    /// Lets everything happen that is due by `now`.
    #[inline]
    pub(super) fn run_to(&mut self, now: Ps, wire: &mut Wire) {
        while self.shifter.due <= now {
            let at = self.shifter.due;
            match self.shifter.phase {
                Phase::Capture => self.capture(at, wire),
                Phase::Boundary => self.boundary(at, wire),
                Phase::Select => self.select(at, wire),
                Phase::Lead => self.load(at, wire),
                Phase::Release => self.release(at, wire),
                Phase::Idle => self.shifter.due = Ps::MAX,
            }
        }
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
        if self.shifter.phase == Phase::Idle && !self.tx.is_empty() && self.clocks() {
            self.shifter.phase = Phase::Select;
            self.shifter.due = now + self.period();
        }
    }

    /// All enabled select lines take `level`.
    fn drive_lines(&self, level: bool, at: Ps, wire: &mut Wire) {
        for line in (0..16).filter(|line| self.ser >> line & 1 != 0) {
            wire.drive(Driver::Native(line), level, at);
        }
    }

    /// Ordering 2.
    fn select(&mut self, at: Ps, wire: &mut Wire) {
        if self.tx.is_empty() || !self.clocks() {
            // SER was cleared before the block had noticed the word.
            self.shifter = Shifter::default();
            return;
        }
        self.drive_lines(false, at, wire);
        self.shifter.phase = Phase::Lead;
        self.shifter.due = at + self.period() / 2;
    }

    fn load(&mut self, at: Ps, wire: &mut Wire) {
        let (Some(bits), Some(word)) =
            (self.ctrlr0.frame_bits(self.build.wide), self.tx.pop_front())
        else {
            unreachable!("a frame begins with a size and a word")
        };
        let period = self.period();
        let shifter = &mut self.shifter;
        shifter.period = period;
        shifter.mask = u32::MAX >> (32 - bits);
        // What stands above the frame is ignored.
        shifter.word = word & shifter.mask;
        shifter.frame_end = at + u64::from(bits) * period;
        shifter.phase = Phase::Capture;
        shifter.due = shifter.frame_end - (period - period / 2);
        wire.begin_run(Run {
            clocking: Clocking { at, period },
            mode: self.ctrlr0.mode(),
            bits,
            mosi: shifter.word,
            loopback: self.ctrlr0.srl(),
        });
    }

    /// Ordering 3.
    fn capture(&mut self, at: Ps, wire: &mut Wire) {
        let miso = wire.end_run();
        let shifter = &mut self.shifter;
        let word = if self.ctrlr0.srl() { shifter.word } else { miso & shifter.mask };
        shifter.phase = Phase::Boundary;
        shifter.due = shifter.frame_end;
        if self.rx.len() < self.build.rx_words {
            self.rx.push_back(word);
            return;
        }
        self.sticky |= int::RXO;
        let detail = format!(
            "the receive FIFO already holds {} words: {word:#x} is lost, RXO is set",
            self.build.rx_words
        );
        wire.log().report(at, Rule::RxOverrun, None, detail);
    }

    /// Ordering 4 and 5.
    fn boundary(&mut self, at: Ps, wire: &mut Wire) {
        if !self.tx.is_empty() && !self.ctrlr0.toggles() {
            self.load(at, wire);
        } else {
            self.shifter.phase = Phase::Release;
            self.shifter.due = at + self.shifter.period / 2;
        }
    }

    /// Ordering 5.
    fn release(&mut self, at: Ps, wire: &mut Wire) {
        self.drive_lines(true, at, wire);
        self.shifter = Shifter::default();
        self.start(at);
    }

    /// SSIENR is cleared: the exchange ends here, in the middle of a frame too.
    pub(super) fn stop(&mut self, now: Ps, wire: &mut Wire) {
        if self.shifter.phase == Phase::Capture {
            wire.abort_run(now);
        }
        self.drive_lines(true, now, wire);
        self.shifter = Shifter::default();
        self.tx.clear();
        self.rx.clear();
    }
}
