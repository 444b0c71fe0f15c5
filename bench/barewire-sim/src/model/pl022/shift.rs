//! The PL022's exchange: words, SSPFSSOUT and their times.
//!
//! *Read first*: the module page of [`super`], whose *Ordering* this file implements.

use super::Pl022;
use super::regs::{FIFO_WORDS, int};
use crate::check::Rule;
use crate::chip::{Clocking, Ps};
use crate::model::block::sck_period;
use crate::wire::{Driver, Run, Wire};

/// The receive timeout in periods of SSPCLKOUT.
const TIMEOUT_PERIODS: u64 = 32;

/// The event at [`Shifter::due`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// None, until there is a word.
    #[default]
    Idle,
    /// SSPFSSOUT falls.
    Select,
    /// The first cell begins.
    Lead,
    /// The last bit of the word is captured.
    Capture,
    /// The last cell of the word ends.
    Boundary,
    /// SSPFSSOUT rises.
    Release,
}

/// The shift register and its clock. A word's settings are taken when it begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shifter {
    phase: Phase,
    due: Ps,
    period: Ps,
    word: u32,
    mask: u32,
    captured_at: Ps,
    word_end: Ps,
    /// SSPFSSOUT stays high until this time.
    ready_at: Ps,
}

impl Default for Shifter {
    fn default() -> Self {
        Self {
            phase: Phase::Idle,
            due: Ps::MAX,
            period: 0,
            word: 0,
            mask: 0,
            captured_at: 0,
            word_end: 0,
            ready_at: 0,
        }
    }
}

impl Shifter {
    /// The time of the next event without an access; [`Ps::MAX`] for never.
    pub(super) fn due(&self) -> Ps {
        self.due
    }

    /// A frame is under way, or about to begin.
    pub(super) fn busy(&self) -> bool {
        self.phase != Phase::Idle
    }
}

impl Pl022 {
    /// Processes everything that is due by `now`.
    #[inline]
    pub(super) fn run_to(&mut self, now: Ps, wire: &mut Wire) {
        loop {
            let at = self.shifter.due;
            if self.timeout_at <= now && self.timeout_at <= at {
                self.sticky |= int::RT;
                self.timeout_at = Ps::MAX;
                continue;
            }
            if at > now {
                return;
            }
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
        let divisor = u64::from(self.sspcpsr) * (1 + self.sspcr0.scr());
        sck_period(divisor, self.sspclk_hz)
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
        if self.shifter.phase == Phase::Idle && self.tx.count() > 0 && self.clocks() {
            self.shifter.phase = Phase::Select;
            self.shifter.due = now.max(self.shifter.ready_at);
            self.timeout_at = Ps::MAX;
        }
    }

    /// Between frames: RT is due 32 periods from `now`, if there are words to read.
    pub(super) fn arm_timeout(&mut self, now: Ps) {
        let counts = self.clocks() && !self.shifter.busy() && self.rx.count() > 0;
        let timeout = TIMEOUT_PERIODS * self.period();
        self.timeout_at = if counts { now.saturating_add(timeout) } else { Ps::MAX };
    }

    /// Ordering 1: select.
    fn select(&mut self, at: Ps, wire: &mut Wire) {
        if !self.clocks() {
            // The settings changed while SSPFSSOUT stayed high.
            self.shifter.phase = Phase::Idle;
            self.shifter.due = Ps::MAX;
            return;
        }
        wire.drive(Driver::Native(0), false, at);
        self.shifter.phase = Phase::Lead;
        self.shifter.due = at + self.period() / 2;
    }

    fn load(&mut self, at: Ps, wire: &mut Wire) {
        let (Some(bits), Some(word)) = (self.sspcr0.word_bits(), self.tx.pop()) else {
            // DSS was made a reserved value in the half period since SSPFSSOUT fell.
            self.shifter.captured_at = at;
            self.shifter.phase = Phase::Release;
            return;
        };
        let period = self.period();
        let shifter = &mut self.shifter;
        shifter.period = period;
        shifter.mask = (1 << bits) - 1;
        // The bits above the word are ignored.
        shifter.word = u32::from(word) & shifter.mask;
        shifter.word_end = at + u64::from(bits) * period;
        shifter.captured_at = shifter.word_end - (period - period / 2);
        shifter.phase = Phase::Capture;
        shifter.due = shifter.captured_at;
        wire.begin_run(Run {
            clocking: Clocking { at, period },
            mode: self.sspcr0.mode(),
            bits,
            mosi: shifter.word,
            loopback: self.sspcr1.lbm(),
        });
    }

    /// Ordering 2: capture.
    fn capture(&mut self, at: Ps, wire: &mut Wire) {
        let miso = wire.end_run();
        let shifter = &mut self.shifter;
        let word = if self.sspcr1.lbm() { shifter.word } else { miso & shifter.mask };
        shifter.phase = Phase::Boundary;
        shifter.due = shifter.word_end;
        self.sticky &= !int::RT;
        if !self.rx.push(word as u16) {
            self.sticky |= int::ROR;
            let detail = format!(
                "the receive FIFO already holds {FIFO_WORDS} words: {word:#x} is lost, ROR is set"
            );
            wire.log().report(at, Rule::RxOverrun, None, detail);
        }
    }

    /// Ordering 3: boundary.
    fn boundary(&mut self, at: Ps, wire: &mut Wire) {
        if self.sspcr0.sph() && self.tx.count() > 0 && self.clocks() {
            self.load(at, wire);
        } else {
            self.shifter.phase = Phase::Release;
            self.shifter.due = self.shifter.captured_at + self.shifter.period;
        }
    }

    /// Ordering 4: release.
    fn release(&mut self, at: Ps, wire: &mut Wire) {
        wire.drive(Driver::Native(0), true, at);
        self.shifter.phase = Phase::Idle;
        self.shifter.due = Ps::MAX;
        self.shifter.ready_at = at + self.shifter.period;
        self.start(at);
        if !self.shifter.busy() {
            wire.set_mosi(false, at);
        }
        self.arm_timeout(at);
    }
}
