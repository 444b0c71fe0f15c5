//! The ECSPI's exchange: bursts, words and their times.
//!
//! *Read first*: the module page of [`super`], whose *Ordering* this file implements.

use super::regs::{Conreg, FIFO_WORDS, stat};
use super::{Dry, Ecspi, Over};
use crate::check::Rule;
use crate::chip::{Clocking, PS_PER_S, Ps};
use crate::model::block::sck_period;
use crate::wire::{Driver, Run, Wire};

const SLOW_CLOCK_HZ: u64 = 32_768;

/// The event at [`Shifter::due`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// None, until a burst is requested.
    #[default]
    Idle,
    /// SS is asserted.
    Assert,
    /// The first cell begins.
    Lead,
    /// The last bit of the word is sampled.
    Sample,
    /// The last cell of the word ends.
    Boundary,
    /// None, until TXFIFO has a word.
    Stalled,
    /// SS is negated.
    Lag,
    /// SS is negated in the middle of a burst that has run out of words.
    Stopping,
    /// None, until the rest of the burst is requested.
    Stopped,
}

/// The shift register and its clock. A burst's settings are taken when it begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shifter {
    phase: Phase,
    due: Ps,
    /// XCH started the exchange; with SMC = 1 the bit is not used and reads 0.
    by_xch: bool,
    channel: u32,
    mode: u8,
    period: Ps,
    remaining_bits: u32,
    /// The word that left TXFIFO before its clocks begin.
    loaded: Option<u32>,
    /// XCH was written while it read 0 and the previous exchange was not over.
    asked_again: bool,
    /// The request is for the rest of a burst.
    resuming: bool,
    word: u32,
    word_bits: u32,
    word_end: Ps,
    /// SS stays negated until this time.
    ready_at: Ps,
}

impl Default for Shifter {
    fn default() -> Self {
        Self {
            phase: Phase::Idle,
            due: Ps::MAX,
            by_xch: false,
            channel: 0,
            mode: 0,
            period: 0,
            remaining_bits: 0,
            loaded: None,
            asked_again: false,
            resuming: false,
            word: 0,
            word_bits: 0,
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

    fn rests(&self) -> bool {
        matches!(self.phase, Phase::Idle | Phase::Stopped)
    }

    /// Whether words in TXFIFO belong to the requested exchange.
    fn has_more(&self) -> bool {
        self.phase == Phase::Assert || self.remaining_bits > 0
    }

    /// Whether SCLK has yet to follow CONFIGREG.
    pub(super) fn settling(&self) -> bool {
        self.rests() && self.due != Ps::MAX
    }

    /// The channel whose SS is asserted.
    pub(super) fn asserted(&self) -> Option<u32> {
        (!self.rests() && self.phase != Phase::Assert).then_some(self.channel)
    }

    fn half(&self) -> Ps {
        self.period / 2
    }
}

fn period(conreg: Conreg, reference_hz: u64) -> Ps {
    sck_period(conreg.divisor(), reference_hz)
}

impl Ecspi {
    /// XCH: set from the request of an exchange to its end as defined by [`Over`].
    pub(super) fn xch(&self) -> bool {
        let shifter = &self.shifter;
        let early = self.readings.xch == Over::FifoEmpty;
        !shifter.rests()
            && shifter.by_xch
            && (!early || self.tx.count() > 0 && shifter.has_more() || shifter.asked_again)
    }

    /// Processes everything that is due by `now`.
    #[inline]
    pub(super) fn run_to(&mut self, now: Ps, wire: &mut Wire) {
        while self.shifter.due <= now {
            let at = self.shifter.due;
            match self.shifter.phase {
                Phase::Sample => self.sample(at, wire),
                Phase::Boundary => self.boundary(at, wire),
                Phase::Lead => self.load(at, wire),
                Phase::Assert => self.assert(at, wire),
                Phase::Lag => self.lag(at, wire),
                Phase::Stopping => self.stop(at, wire),
                Phase::Idle | Phase::Stopped => {
                    self.shifter.due = Ps::MAX;
                    self.rest(at, wire);
                }
                Phase::Stalled => self.shifter.due = Ps::MAX,
            }
        }
    }

    /// CONFIGREG was written. Between bursts SCLK follows one period later.
    pub(super) fn settle(&mut self, now: Ps) {
        if self.shifter.rests() {
            self.shifter.due = now.saturating_add(period(self.conreg, self.reference_hz));
        }
    }

    /// An exchange is requested: by XCH, or by data with SMC = 1.
    pub(super) fn start(&mut self, by_xch: bool, now: Ps) {
        let supported = self.conreg.clocks() && !self.conreg.ht() && self.conreg.drctl() == 0;
        if !supported {
            return;
        }
        if self.shifter.rests() {
            self.shifter.resuming = self.shifter.phase == Phase::Stopped;
            self.shifter.phase = Phase::Assert;
            self.shifter.by_xch = by_xch;
            self.shifter.due = now.max(self.shifter.ready_at);
            if self.readings.xch == Over::FifoEmpty || self.readings.tc == Over::FifoEmpty {
                self.shifter.loaded = self.take();
            }
        } else if by_xch && !self.xch() && !self.shifter.has_more() {
            // XCH that reads 1 is set already, so the write is lost. One that reads 0 is not.
            self.shifter.asked_again = true;
        }
    }

    /// A word leaves TXFIFO.
    fn take(&mut self) -> Option<u32> {
        let word = self.tx.pop();
        if word.is_some() && self.tx.count() == 0 && self.readings.tc == Over::FifoEmpty {
            self.sticky |= stat::TC;
        }
        word
    }

    /// TXFIFO has a word again.
    pub(super) fn resume(&mut self, now: Ps) {
        if self.shifter.phase == Phase::Stalled {
            self.shifter.phase = Phase::Lead;
            self.shifter.due = now.max(self.shifter.word_end);
        }
    }

    /// Ordering 1 and 2: assert, and lead.
    fn assert(&mut self, at: Ps, wire: &mut Wire) {
        let channel = self.conreg.channel_select();
        let shifter = &mut self.shifter;
        shifter.channel = channel;
        shifter.mode = self.configreg.mode(channel);
        shifter.period = period(self.conreg, self.reference_hz);
        if !std::mem::take(&mut shifter.resuming) {
            shifter.remaining_bits = self.conreg.burst_bits();
        }
        wire.set_sck(shifter.mode & 2 != 0, at);
        wire.drive(Driver::Native(channel as u8), self.configreg.ss_pol(channel), at);
        // With CPHA = 0 the first edge is half a period into the cell.
        let to_edge = if shifter.mode & 1 != 0 { shifter.half() } else { 0 };
        let csd = self.periodreg.csd_ctl() * shifter.period;
        shifter.phase = Phase::Lead;
        shifter.due = at + csd + to_edge + self.readings.start_delay_ps;
        shifter.word_end = shifter.due;
    }

    /// Ordering 3, words: the shift register takes one.
    fn load(&mut self, at: Ps, wire: &mut Wire) {
        let Some(word) = self.shifter.loaded.take().or_else(|| self.take()) else {
            self.run_dry(at, wire);
            return;
        };
        let shifter = &mut self.shifter;
        // Only a burst's first word can be short: from then on whole words remain.
        let bits = match shifter.remaining_bits % 32 {
            0 => 32,
            remainder => remainder,
        };
        shifter.remaining_bits -= bits;
        shifter.word = word;
        shifter.word_bits = bits;
        shifter.word_end = at + u64::from(bits) * shifter.period;
        shifter.phase = Phase::Sample;
        shifter.due = shifter.word_end - (shifter.period - shifter.half());
        wire.begin_run(Run {
            clocking: Clocking { at, period: shifter.period },
            mode: shifter.mode,
            bits,
            mosi: ((1_u64 << bits) - 1) as u32 & word,
            loopback: self.loopback,
        });
    }

    #[cold]
    fn run_dry(&mut self, at: Ps, wire: &mut Wire) {
        let bits = self.shifter.remaining_bits;
        let stops = self.shifter.by_xch
            && (self.readings.dry == Dry::NeedsXch || self.configreg.ss_ctl(self.shifter.channel));
        let (phase, due, does) = if stops {
            (Phase::Stopping, at + self.shifter.half(), "the exchange stops")
        } else {
            (Phase::Stalled, Ps::MAX, "SCLK stalls")
        };
        (self.shifter.phase, self.shifter.due) = (phase, due);
        let detail = format!("TXFIFO is empty with {bits} bits of the burst to go: {does}");
        wire.log().report(at, Rule::TxUnderrun, None, detail);
    }

    /// A burst that has run out of words stops until XCH.
    #[cold]
    fn stop(&mut self, at: Ps, wire: &mut Wire) {
        (self.shifter.phase, self.shifter.due) = (Phase::Stopped, Ps::MAX);
        self.shifter.ready_at = at + self.shifter.half();
        self.sticky |= stat::TC;
        self.rest(at, wire);
    }

    fn sample(&mut self, at: Ps, wire: &mut Wire) {
        let miso = wire.end_run();
        let shifter = &mut self.shifter;
        let bits = shifter.word_bits;
        let mask = ((1_u64 << bits) - 1) as u32;
        let bits_in = if self.loopback { shifter.word & mask } else { miso & mask };
        // The bits above the received ones are what the shift register held.
        let word = (u64::from(shifter.word) << bits) as u32 | bits_in;
        shifter.phase = Phase::Boundary;
        shifter.due = shifter.word_end;
        if !self.rx.push(word) {
            self.sticky |= stat::RO;
            let detail =
                format!("RXFIFO already holds {FIFO_WORDS} words: {bits_in:#x} is lost, RO is set");
            wire.log().report(at, Rule::RxOverrun, None, detail);
        }
    }

    fn boundary(&mut self, at: Ps, wire: &mut Wire) {
        if self.shifter.remaining_bits > 0 {
            self.load(at, wire);
        } else {
            self.shifter.phase = Phase::Lag;
            self.shifter.due = at + self.shifter.half();
        }
    }

    /// Ordering 4 and 5: lag, and end.
    fn lag(&mut self, at: Ps, wire: &mut Wire) {
        let channel = self.shifter.channel;
        let many = self.conreg.smc() || self.configreg.ss_ctl(channel);
        let again = many && self.tx.count() > 0 || self.shifter.asked_again;
        self.shifter.asked_again = false;
        let states = self.periodreg.sample_period();
        let wait = if self.periodreg.slow_clock() {
            // A state is some 30.5 µs: 32,767 of them are a second, far from overflow.
            (states * PS_PER_S).div_ceil(SLOW_CLOCK_HZ)
        } else {
            states * self.shifter.period
        };
        self.shifter.ready_at = at + self.shifter.half() + wait;
        (self.shifter.phase, self.shifter.due) =
            if again { (Phase::Assert, self.shifter.ready_at) } else { (Phase::Idle, Ps::MAX) };
        self.rest(at, wire);
        if !again && self.readings.tc == Over::WordEnd {
            self.sticky |= stat::TC;
        }
    }
}
