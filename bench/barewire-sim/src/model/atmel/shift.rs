//! The Atmel SPI's exchange: words, NPCS lines and their times.
//!
//! *Read first*: the module page of [`super`], whose *Ordering* this file implements.

use super::AtmelSpi;
use super::regs::{self, Tdr};
use crate::check::Rule;
use crate::chip::{Clocking, PS_PER_S, Ps};
use crate::wire::{Driver, Run, Wire};

/// The minimum time between two edges of NPCS lines, in periods of MCK.
const LEAST_DLYBCS: u64 = 6;

/// The event at [`Shifter::due`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// None, until there is a word that may start.
    #[default]
    Idle,
    /// NPCS falls.
    Select,
    /// The first cell begins.
    Lead,
    /// The last bit of the word is sampled.
    Sample,
    /// The last cell of the word ends.
    Boundary,
    /// DLYBCT has passed.
    Gap,
    /// NPCS rises.
    Release,
}

/// The shift register and its clock. A word's settings are taken when it begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shifter {
    phase: Phase,
    due: Ps,
    /// The NPCS that is active.
    active: Option<u8>,
    /// The NPCS of the current or last word.
    line: u8,
    word: Tdr,
    mask: u32,
    word_end: Ps,
    /// No NPCS falls before this time.
    ready_at: Ps,
}

impl Default for Shifter {
    fn default() -> Self {
        Self {
            phase: Phase::Idle,
            due: Ps::MAX,
            active: None,
            line: 0,
            word: Tdr::default(),
            mask: 0,
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

    /// The shift register is empty, and DLYBCT has passed.
    pub(super) fn done(&self) -> bool {
        matches!(self.phase, Phase::Idle | Phase::Release)
    }

    fn enter(&mut self, phase: Phase, due: Ps) {
        self.phase = phase;
        self.due = due;
    }

    fn idle(&mut self) {
        self.enter(Phase::Idle, Ps::MAX);
    }
}

impl AtmelSpi {
    /// Processes everything that is due by `now`.
    #[inline]
    pub(super) fn run_to(&mut self, now: Ps, wire: &mut Wire) {
        while self.shifter.due <= now {
            let at = self.shifter.due;
            match self.shifter.phase {
                Phase::Sample => self.sample(at, wire),
                Phase::Boundary => self.boundary(at),
                Phase::Gap => self.gap(at, wire),
                Phase::Lead => self.load(at, wire),
                Phase::Select => self.select(at, wire),
                Phase::Release => self.release(at, wire),
                Phase::Idle => self.shifter.idle(),
            }
        }
    }

    /// `periods` of MCK, rounded up so that it is never shorter than the registers say.
    fn mck(&self, periods: u64) -> Ps {
        (periods * PS_PER_S).div_ceil(self.mck_hz)
    }

    fn dlybcs(&self) -> Ps {
        self.mck(self.mr.dlybcs().max(LEAST_DLYBCS))
    }

    /// The NPCS of the word in SPI_TDR; `None` if there is no word that may start.
    fn next_line(&self) -> Option<u8> {
        let tdr = self.tdr?;
        let line = regs::line(if self.mr.ps() { tdr.pcs() } else { self.mr.pcs() })?;
        let csr = self.csr[usize::from(line)];
        let clocks = self.mr.mstr() && !self.mr.pcsdec() && csr.scbr() > 0;
        (clocks && csr.word_bits().is_some()).then_some(line)
    }

    /// WDRBT: no transfer starts until SPI_RDR is read.
    fn waits_for_rdr(&self) -> bool {
        self.mr.wdrbt() && self.rdrf
    }

    /// Begins a transfer, if there is a word that may start.
    pub(super) fn start(&mut self, now: Ps, wire: &mut Wire) {
        if self.shifter.phase != Phase::Idle || self.waits_for_rdr() {
            return;
        }
        let Some(line) = self.next_line() else { return };
        if self.shifter.active == Some(line) {
            self.take(line);
            self.shifter.enter(Phase::Lead, now);
        } else {
            self.deselect(now, wire);
            self.shifter.enter(Phase::Select, now.max(self.shifter.ready_at));
        }
        self.run_to(now, wire);
    }

    /// Moves SPI_TDR to the shift register.
    fn take(&mut self, line: u8) {
        self.shifter.line = line;
        self.shifter.word = self.tdr.take().unwrap_or_default();
    }

    /// Ordering 1 and 2: select, and lead.
    fn select(&mut self, at: Ps, wire: &mut Wire) {
        let Some(line) = self.next_line() else {
            // The settings changed in DLYBCS.
            self.shifter.idle();
            return;
        };
        self.take(line);
        let csr = self.csr[usize::from(line)];
        wire.set_sck(csr.cpol(), at);
        wire.drive(Driver::Native(line), false, at);
        self.shifter.active = Some(line);
        let half = self.mck(csr.scbr()) / 2;
        let to_edge = if csr.dlybs() == 0 { half } else { self.mck(csr.dlybs()) };
        // With CPHA = 0 the first edge is half a period into the cell.
        let into_cell = if csr.cpha() { 0 } else { half };
        let begin = (at + to_edge).saturating_sub(into_cell).max(self.shifter.word_end);
        if begin <= at {
            self.load(begin, wire);
        } else {
            self.shifter.enter(Phase::Lead, begin);
        }
    }

    /// The first cell begins at `begin`: perhaps before NPCS falls, but its first edge comes after.
    fn load(&mut self, begin: Ps, wire: &mut Wire) {
        let csr = self.csr[usize::from(self.shifter.line)];
        // SPI_CSR may have become one that does not clock since the word was taken.
        let period = self.mck(csr.scbr().max(1)).max(2);
        let bits = csr.word_bits().unwrap_or(8);
        let shifter = &mut self.shifter;
        shifter.mask = (1 << bits) - 1;
        shifter.word_end = begin + u64::from(bits) * period;
        shifter.enter(Phase::Sample, shifter.word_end - (period - period / 2));
        wire.begin_run(Run {
            clocking: Clocking { at: begin, period },
            mode: csr.mode(),
            bits,
            mosi: shifter.word.td() & shifter.mask,
            loopback: self.mr.llb(),
        });
    }

    /// Ordering 3: sample.
    fn sample(&mut self, at: Ps, wire: &mut Wire) {
        let miso = wire.end_run();
        let shifter = &mut self.shifter;
        let word = if self.mr.llb() { shifter.word.td() } else { miso } & shifter.mask;
        let levels = 0xf & !(1 << shifter.line);
        shifter.enter(Phase::Boundary, shifter.word_end);
        if self.rdrf {
            self.ovres = true;
            let lost = self.rdr & 0xffff;
            let detail = format!("SPI_RDR was not read: {lost:#x} is lost, OVRES is set");
            wire.log().report(at, Rule::RxOverrun, None, detail);
        }
        self.rdr = levels << 16 | word;
        self.rdrf = true;
    }

    fn boundary(&mut self, at: Ps) {
        let dlybct = self.csr[usize::from(self.shifter.line)].dlybct();
        let gap = self.mck(32 * dlybct);
        self.shifter.enter(Phase::Gap, at + gap);
    }

    /// Ordering 4: gap.
    fn gap(&mut self, at: Ps, wire: &mut Wire) {
        let line = self.shifter.line;
        let csr = self.csr[usize::from(line)];
        let by_cr = self.lastxfer && self.tdr.is_none();
        self.lastxfer &= !by_cr;
        let last = by_cr || self.disabling || self.mr.ps() && self.shifter.word.lastxfer();
        let next = self.next_line();
        let same = next == Some(line);
        let keeps = if csr.csaat() { next.is_none() || same } else { same && !csr.csnaat() };
        if last || !keeps {
            let hold = if csr.dlybct() == 0 { self.mck(1) } else { 0 };
            self.shifter.enter(Phase::Release, at + hold);
            return;
        }
        self.shifter.idle();
        if same {
            self.start(at, wire);
        } else {
            self.rest(at, wire);
        }
    }

    /// Ordering 5: release.
    fn release(&mut self, at: Ps, wire: &mut Wire) {
        self.deselect(at, wire);
        self.shifter.idle();
        if self.disabling {
            self.finish_disable();
            return;
        }
        self.rest(at, wire);
        self.start(at, wire);
    }

    /// The active NPCS rises, if there is one.
    pub(super) fn deselect(&mut self, at: Ps, wire: &mut Wire) {
        if let Some(line) = self.shifter.active.take() {
            wire.drive(Driver::Native(line), true, at);
            self.shifter.ready_at = at + self.dlybcs();
        }
    }

    /// LASTXFER of SPI_CR.
    pub(super) fn last_transfer(&mut self, now: Ps, wire: &mut Wire) {
        if self.shifter.phase == Phase::Idle && self.tdr.is_none() {
            self.deselect(now, wire);
        } else {
            self.lastxfer = true;
        }
    }

    /// SPIDIS.
    pub(super) fn disable(&mut self, now: Ps, wire: &mut Wire) {
        if let Some(lost) = self.tdr.take() {
            let detail = format!("SPIDIS with {:#x} in SPI_TDR: it is lost", lost.td());
            wire.log().report(now, Rule::Disabled, None, detail);
        }
        if matches!(self.shifter.phase, Phase::Idle | Phase::Select) {
            self.shifter.idle();
            self.deselect(now, wire);
            self.finish_disable();
        } else {
            self.disabling = true;
        }
    }

    fn finish_disable(&mut self) {
        self.enabled = false;
        self.disabling = false;
        self.lastxfer = false;
    }

    /// Between transfers SPCK has the level that the registers give it.
    pub(super) fn rest(&mut self, now: Ps, wire: &mut Wire) {
        if !self.enabled || self.shifter.phase != Phase::Idle {
            return;
        }
        let fixed = if self.mr.ps() { None } else { regs::line(self.mr.pcs()) };
        let line = fixed.unwrap_or(self.shifter.line);
        wire.set_sck(self.csr[usize::from(line)].cpol(), now);
    }
}
