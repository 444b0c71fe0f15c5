//! SiFive SPI's exchange: frames, the select line and their times.
//!
//! *Read first*: the module page of [`super`], whose *Ordering* this file implements.

use super::SiFive;
use super::regs::{AUTO, Clock, FIFO_BYTES, Fmt, OFF};
use crate::check::Rule;
use crate::chip::{Clocking, PS_PER_S, Ps};
use crate::model::block::sck_period;
use crate::wire::{Driver, Run, Wire};

/// The event at [`Shifter::due`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not selected, no event until there is a byte.
    Idle,
    /// The line becomes active.
    Assert,
    /// Selected; a frame begins if there is a byte, or the release if one is wanted.
    Selected,
    /// The last bit of the frame is captured.
    Capture,
    /// The last cell of the frame ends.
    Boundary,
    /// The line becomes inactive.
    Release,
    /// The line has been inactive for `intercs` periods.
    Gap,
}

/// The select line that was taken, and the level that makes it active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Taken {
    line: u32,
    active: bool,
}

/// The shift register, its clock and the select line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shifter {
    phase: Phase,
    due: Ps,
    clock: Clock,
    fmt: Fmt,
    byte: u8,
    frame_end: Ps,
    taken: Option<Taken>,
    /// The block is to be released after the frame.
    release: bool,
}

impl Shifter {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            phase: Phase::Idle,
            due: Ps::MAX,
            clock,
            fmt: Fmt::default(),
            byte: 0,
            frame_end: 0,
            taken: None,
            release: false,
        }
    }

    /// The time of the next event without an access; [`Ps::MAX`] for never.
    pub(super) fn due(&self) -> Ps {
        self.due
    }

    fn is_selected(&self) -> bool {
        matches!(self.phase, Phase::Selected | Phase::Capture | Phase::Boundary | Phase::Release)
    }

    /// CSMODE changed: a block that is selected is released after the frame.
    pub(super) fn release_wanted(&mut self) {
        self.release |= self.is_selected();
    }

    fn to(&mut self, phase: Phase, due: Ps) {
        (self.phase, self.due) = (phase, due);
    }
}

impl SiFive {
    /// Processes everything that is due by `now`.
    #[inline]
    pub(super) fn run_to(&mut self, now: Ps, wire: &mut Wire) {
        while self.shifter.due <= now {
            let at = self.shifter.due;
            match self.shifter.phase {
                Phase::Idle => self.shifter.due = Ps::MAX,
                Phase::Assert => self.assert(at, wire),
                Phase::Selected => self.next(at, wire),
                Phase::Capture => self.capture(at, wire),
                Phase::Boundary => {
                    let gap = self.periods(self.delay1 >> 16);
                    self.shifter.to(Phase::Selected, at + gap);
                }
                Phase::Release => self.release(at, wire),
                Phase::Gap => self.end_gap(at),
            }
        }
    }

    fn period(&self) -> Ps {
        sck_period(self.shifter.clock.divisor(), self.clk_hz)
    }

    /// So many periods, of the 8 bits of a delay.
    fn periods(&self, delay: u32) -> Ps {
        u64::from(delay & 0xff) * self.period()
    }

    /// The line that CSID and CSDEF name now.
    fn named(&self) -> Taken {
        Taken { line: self.csid, active: self.csdef >> self.csid & 1 == 0 }
    }

    fn has_work(&self) -> bool {
        !self.tx.is_empty() && self.fctrl == 0
    }

    /// A byte, CSMODE or FCTRL was written: an event follows where none was due.
    pub(super) fn wake(&mut self, now: Ps) {
        if self.shifter.due != Ps::MAX {
            return;
        }
        let cycle = PS_PER_S.div_ceil(self.clk_hz);
        match self.shifter.phase {
            Phase::Idle if self.has_work() => self.shifter.to(Phase::Assert, now + cycle),
            Phase::Selected => self.shifter.to(Phase::Selected, now + cycle),
            _ => {}
        }
    }

    /// What the block takes over without a frame: SCKDIV and SCKMODE while it is not selected. A block
    /// that is selected is released if its line is not the one that is named now.
    pub(super) fn follow(&mut self, now: Ps, wire: &mut Wire) {
        match self.shifter.phase {
            Phase::Idle => self.take_clock(now, wire),
            Phase::Assert | Phase::Gap => {}
            _ => {
                if self.shifter.taken.is_some_and(|taken| taken != self.named()) {
                    self.shifter.release = true;
                    self.wake(now);
                }
            }
        }
    }

    fn take_clock(&mut self, at: Ps, wire: &mut Wire) {
        let clock = Clock { sckdiv: self.sckdiv, sckmode: self.sckmode };
        if clock != self.shifter.clock {
            self.shifter.clock = clock;
            wire.set_sck(clock.pol(), at);
        }
    }

    /// Ordering 1.
    fn assert(&mut self, at: Ps, wire: &mut Wire) {
        self.shifter.taken = (self.csmode != OFF).then(|| self.named());
        self.drive(true, at, wire);
        self.shifter.to(Phase::Selected, at + self.periods(self.delay0));
    }

    fn drive(&self, selected: bool, at: Ps, wire: &mut Wire) {
        if let Some(Taken { line, active }) = self.shifter.taken {
            wire.drive(Driver::Native(line as u8), active == selected, at);
        }
    }

    /// Ordering 2, 4 and 5.
    fn next(&mut self, at: Ps, wire: &mut Wire) {
        if self.shifter.release {
            let hold = self.periods(self.delay0 >> 16);
            self.shifter.to(Phase::Release, at + hold);
            return;
        }
        self.shifter.to(Phase::Selected, Ps::MAX);
        if !self.has_work() {
            return;
        }
        let fmt = Fmt(self.fmt);
        let Some(byte) = self.tx.pop_front() else { return };
        if self.csmode == AUTO {
            self.shifter.release = true;
        }
        if !fmt.is_bytes() {
            let detail = format!("FMT {:#x}: frames that are not of 8 bits on single lines", fmt.0);
            wire.log().report(at, Rule::BadAccess, None, detail);
            self.shifter.due = at;
            return;
        }
        let (period, bits) = (self.period(), 8);
        let shifter = &mut self.shifter;
        (shifter.fmt, shifter.byte) = (fmt, byte);
        shifter.frame_end = at + u64::from(bits) * period;
        shifter.to(Phase::Capture, shifter.frame_end - (period - period / 2));
        wire.begin_run(Run {
            clocking: Clocking { at, period },
            mode: shifter.clock.mode(),
            bits,
            mosi: fmt.ordered(byte).into(),
            loopback: false,
        });
    }

    /// Ordering 3.
    fn capture(&mut self, at: Ps, wire: &mut Wire) {
        let miso = wire.end_run() as u8;
        let fmt = self.shifter.fmt;
        self.shifter.to(Phase::Boundary, self.shifter.frame_end);
        if !fmt.receives() {
            return;
        }
        if self.rx.len() < FIFO_BYTES {
            self.rx.push_back(fmt.ordered(miso));
            return;
        }
        let detail =
            format!("the receive FIFO already holds {FIFO_BYTES} bytes: {miso:#x} is lost");
        wire.log().report(at, Rule::RxOverrun, None, detail);
    }

    /// Ordering 5.
    fn release(&mut self, at: Ps, wire: &mut Wire) {
        self.drive(false, at, wire);
        (self.shifter.taken, self.shifter.release) = (None, false);
        self.take_clock(at, wire);
        self.shifter.to(Phase::Gap, at + self.periods(self.delay1));
    }

    fn end_gap(&mut self, at: Ps) {
        let next = if self.has_work() { (Phase::Assert, at) } else { (Phase::Idle, Ps::MAX) };
        self.shifter.to(next.0, next.1);
    }
}
