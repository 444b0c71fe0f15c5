//! The Atmel SPI's exchange: words, NPCS lines and their times.
//!
//! *Read first*: the module page of [`super`], whose *Ordering* this file implements.

use super::AtmelSpi;
use super::regs;
use crate::check::Rule;
use crate::chip::{PS_PER_S, Ps};
use crate::model::shifter::{Phase, Shift, Shifter, Word};
use crate::wire::{Driver, Wire};

/// The minimum time between two edges of NPCS lines, in periods of MCK.
const LEAST_DLYBCS: u64 = 6;

impl AtmelSpi {
    /// The shift register is empty, and DLYBCT has passed.
    pub(super) fn done(&self) -> bool {
        matches!(self.shifter.phase, Phase::Idle | Phase::Release)
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
        if !self.shifter.is_idle() || self.waits_for_rdr() {
            return;
        }
        let Some(line) = self.next_line() else { return };
        if self.active == Some(line) {
            self.take(line);
            self.shifter.enter(Phase::Lead, now);
        } else {
            self.deselect(now, wire);
            self.shifter.select(now);
        }
    }

    /// Moves SPI_TDR to the shift register.
    fn take(&mut self, line: u8) {
        self.line = line;
        self.shifting = self.tdr.take().unwrap_or_default();
    }

    /// The active NPCS rises, if there is one.
    pub(super) fn deselect(&mut self, at: Ps, wire: &mut Wire) {
        if let Some(line) = self.active.take() {
            wire.drive(Driver::Native(line), true, at);
            self.shifter.ready_at = at + self.dlybcs();
        }
    }

    /// LASTXFER of SPI_CR.
    pub(super) fn last_transfer(&mut self, now: Ps, wire: &mut Wire) {
        if self.shifter.is_idle() && self.tdr.is_none() {
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
            self.shifter.rest();
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
        if !self.enabled || !self.shifter.is_idle() {
            return;
        }
        let fixed = if self.mr.ps() { None } else { regs::line(self.mr.pcs()) };
        let line = fixed.unwrap_or(self.line);
        wire.set_sck(self.csr[usize::from(line)].cpol(), now);
    }
}

impl Shift for AtmelSpi {
    fn shifter(&self) -> &Shifter {
        &self.shifter
    }

    fn shifter_mut(&mut self) -> &mut Shifter {
        &mut self.shifter
    }

    /// Ordering 1 and 2: select, and lead.
    fn select(&mut self, at: Ps, wire: &mut Wire) {
        let Some(line) = self.next_line() else {
            // The settings changed in DLYBCS.
            self.shifter.rest();
            return;
        };
        self.take(line);
        let csr = self.csr[usize::from(line)];
        wire.set_sck(csr.cpol(), at);
        wire.drive(Driver::Native(line), false, at);
        self.active = Some(line);
        let half = self.mck(csr.scbr()) / 2;
        let to_edge = if csr.dlybs() == 0 { half } else { self.mck(csr.dlybs()) };
        // With CPHA = 0 the first edge is half a period into the cell.
        let into_cell = if csr.cpha() { 0 } else { half };
        let begin = (at + to_edge).saturating_sub(into_cell).max(self.shifter.word_end);
        self.shifter.enter(Phase::Lead, begin);
    }

    /// The first cell begins at `begin`: perhaps before NPCS falls, but its first edge comes after.
    fn load(&mut self, begin: Ps, wire: &mut Wire) {
        let csr = self.csr[usize::from(self.line)];
        // SPI_CSR may have become one that does not clock since the word was taken.
        let period = self.mck(csr.scbr().max(1)).max(2);
        let bits = csr.word_bits().unwrap_or(8);
        let word = Word::new(self.shifting.td(), bits, csr.mode(), period);
        self.shifter.begin(Word { loopback: self.mr.llb(), ..word }, begin, wire);
    }

    /// Ordering 3: sample.
    fn receive(&mut self, word: u32, at: Ps, wire: &mut Wire) {
        let levels = 0xf & !(1 << self.line);
        if self.rdrf {
            self.ovres = true;
            let lost = self.rdr & 0xffff;
            let detail = format!("SPI_RDR was not read: {lost:#x} is lost, OVRES is set");
            wire.log().report(at, Rule::RxOverrun, None, detail);
        }
        self.rdr = levels << 16 | word;
        self.rdrf = true;
    }

    fn boundary(&mut self, at: Ps, _wire: &mut Wire) {
        let dlybct = self.csr[usize::from(self.line)].dlybct();
        let gap = self.mck(32 * dlybct);
        self.shifter.enter(Phase::Gap, at + gap);
    }

    /// Ordering 4: gap.
    fn gap(&mut self, at: Ps, wire: &mut Wire) {
        let line = self.line;
        let csr = self.csr[usize::from(line)];
        let by_cr = self.lastxfer && self.tdr.is_none();
        self.lastxfer &= !by_cr;
        let last = by_cr || self.disabling || self.mr.ps() && self.shifting.lastxfer();
        let next = self.next_line();
        let same = next == Some(line);
        let keeps = if csr.csaat() { next.is_none() || same } else { same && !csr.csnaat() };
        if last || !keeps {
            let hold = if csr.dlybct() == 0 { self.mck(1) } else { 0 };
            self.shifter.enter(Phase::Release, at + hold);
            return;
        }
        self.shifter.rest();
        if same {
            self.start(at, wire);
        } else {
            self.rest(at, wire);
        }
    }

    /// Ordering 5: release.
    fn release(&mut self, at: Ps, wire: &mut Wire) {
        self.deselect(at, wire);
        self.shifter.rest();
        if self.disabling {
            self.finish_disable();
            return;
        }
        self.rest(at, wire);
        self.start(at, wire);
    }
}
