//! The ECSPI's exchange: bursts, words and their times.
//!
//! *Read first*: the module page of [`super`], whose *Ordering* this file implements.

use super::regs::{FIFO_WORDS, stat};
use super::{Dry, Ecspi, Over};
use crate::check::Rule;
use crate::chip::{PS_PER_S, Ps};
use crate::model::block::sck_period;
use crate::model::shifter::{Phase, Shift, Shifter, Word};
use crate::wire::{Driver, Wire};

const SLOW_CLOCK_HZ: u64 = 32_768;

/// A burst. Its settings are taken when it begins.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burst {
    /// XCH started the exchange; with SMC = 1 the bit is not used and reads 0.
    by_xch: bool,
    channel: u32,
    mode: u8,
    period: Ps,
    /// While the block is at rest: of a burst that stopped, and is continued by XCH.
    remaining_bits: u32,
    /// The word that left TXFIFO before its clocks begin.
    loaded: Option<u32>,
    /// XCH was written while it read 0 and the previous exchange was not over.
    asked_again: bool,
}

impl Ecspi {
    /// Whether words in TXFIFO belong to the requested exchange.
    fn has_more(&self) -> bool {
        self.shifter.phase == Phase::Select || self.burst.remaining_bits > 0
    }

    /// Whether SCLK has yet to follow CONFIGREG.
    pub(super) fn settling(&self) -> bool {
        self.shifter.is_idle() && self.shifter.due != Ps::MAX
    }

    /// The channel whose SS is asserted.
    pub(super) fn asserted(&self) -> Option<u32> {
        let asserted = !matches!(self.shifter.phase, Phase::Idle | Phase::Select);
        asserted.then_some(self.burst.channel)
    }

    fn period(&self) -> Ps {
        sck_period(self.conreg.divisor(), self.reference_hz)
    }

    /// XCH: set from the request of an exchange to its end as defined by [`Over`].
    pub(super) fn xch(&self) -> bool {
        let early = self.readings.xch == Over::FifoEmpty;
        !self.shifter.is_idle()
            && self.burst.by_xch
            && (!early || !self.tx.is_empty() && self.has_more() || self.burst.asked_again)
    }

    /// CONFIGREG was written. Between bursts SCLK follows one period later.
    pub(super) fn follow(&mut self, now: Ps) {
        if self.shifter.is_idle() {
            self.shifter.due = now.saturating_add(self.period());
        }
    }

    /// An exchange is requested: by XCH, or by data with SMC = 1.
    pub(super) fn start(&mut self, by_xch: bool, now: Ps) {
        let supported = self.conreg.clocks() && !self.conreg.ht() && self.conreg.drctl() == 0;
        if !supported {
            return;
        }
        if self.shifter.is_idle() {
            // XCH without a word clears at once. Linux's spi-imx sets it so: its interrupt handler finds no
            // room in a burst whose last word leaves the shift register meanwhile.
            if self.tx.is_empty() {
                return;
            }
            self.shifter.select(now);
            self.burst.by_xch = by_xch;
            if self.readings.xch == Over::FifoEmpty || self.readings.tc == Over::FifoEmpty {
                self.burst.loaded = self.take();
            }
        } else if by_xch && !self.xch() && !self.has_more() {
            // If XCH reads 1, it is set already and the write is lost. If it reads 0, the write
            // counts.
            self.burst.asked_again = true;
        }
    }

    /// A word leaves TXFIFO.
    fn take(&mut self) -> Option<u32> {
        let word = self.tx.pop();
        if word.is_some() && self.tx.is_empty() && self.readings.tc == Over::FifoEmpty {
            self.sticky |= stat::TC;
        }
        word
    }

    /// TXFIFO has a word again.
    pub(super) fn resume(&mut self, now: Ps) {
        if self.shifter.phase == Phase::Lead && self.shifter.due == Ps::MAX {
            self.shifter.due = now.max(self.shifter.word_end);
        }
    }

    #[cold]
    fn run_dry(&mut self, at: Ps, wire: &mut Wire) {
        let bits = self.burst.remaining_bits;
        let stops = self.burst.by_xch
            && (self.readings.dry == Dry::NeedsXch || self.configreg.ss_ctl(self.burst.channel));
        let does = if stops {
            self.shifter.enter(Phase::Release, at + self.burst.period / 2);
            "the exchange stops"
        } else {
            self.shifter.enter(Phase::Lead, Ps::MAX);
            "SCLK stalls"
        };
        let detail = format!("TXFIFO is empty with {bits} bits of the burst to go: {does}");
        wire.log().report(at, Rule::TxUnderrun, None, detail);
    }

    /// A burst that has run out of words stops until XCH.
    #[cold]
    fn stop(&mut self, at: Ps, wire: &mut Wire) {
        self.shifter.rest();
        self.shifter.ready_at = at + self.burst.period / 2;
        self.sticky |= stat::TC;
        self.rest(at, wire);
    }
}

impl Shift for Ecspi {
    fn shifter(&self) -> &Shifter {
        &self.shifter
    }

    fn shifter_mut(&mut self) -> &mut Shifter {
        &mut self.shifter
    }

    /// Ordering 1 and 2: assert, and lead.
    fn select(&mut self, at: Ps, wire: &mut Wire) {
        let channel = self.conreg.channel_select();
        let period = self.period();
        let burst = &mut self.burst;
        (burst.channel, burst.period) = (channel, period);
        burst.mode = self.configreg.mode(channel);
        if burst.remaining_bits == 0 {
            burst.remaining_bits = self.conreg.burst_bits();
        }
        wire.set_sck(burst.mode & 2 != 0, at);
        wire.drive(Driver::Native(channel as u8), self.configreg.ss_pol(channel), at);
        // With CPHA = 0 the first edge is half a period into the cell.
        let to_edge = if burst.mode & 1 != 0 { period / 2 } else { 0 };
        let csd = self.periodreg.csd_ctl() * period;
        let begin = at + csd + to_edge + self.readings.start_delay_ps;
        self.shifter.enter(Phase::Lead, begin);
        self.shifter.word_end = begin;
    }

    /// Ordering 3, words: the shift register takes one.
    fn load(&mut self, at: Ps, wire: &mut Wire) {
        let Some(word) = self.burst.loaded.take().or_else(|| self.take()) else {
            self.run_dry(at, wire);
            return;
        };
        let burst = &mut self.burst;
        // Only a burst's first word can be short: from then on whole words remain.
        let bits = match burst.remaining_bits % 32 {
            0 => 32,
            remainder => remainder,
        };
        burst.remaining_bits -= bits;
        let word = Word::new(word, bits, burst.mode, burst.period);
        self.shifter.begin(Word { loopback: self.loopback, ..word }, at, wire);
    }

    fn receive(&mut self, bits_in: u32, at: Ps, wire: &mut Wire) {
        let Word { value, bits, .. } = self.shifter.word;
        // The bits above the received ones are what the shift register held.
        let word = (u64::from(value) << bits) as u32 | bits_in;
        if !self.rx.push(word) {
            self.sticky |= stat::RO;
            let detail =
                format!("RXFIFO already holds {FIFO_WORDS} words: {bits_in:#x} is lost, RO is set");
            wire.log().report(at, Rule::RxOverrun, None, detail);
        }
    }

    fn boundary(&mut self, at: Ps, wire: &mut Wire) {
        if self.burst.remaining_bits > 0 {
            self.load(at, wire);
        } else {
            self.shifter.enter(Phase::Release, at + self.burst.period / 2);
        }
    }

    /// Ordering 4 and 5: lag, and end.
    fn release(&mut self, at: Ps, wire: &mut Wire) {
        if self.burst.remaining_bits > 0 {
            self.stop(at, wire);
            return;
        }
        let Burst { channel, period, asked_again, .. } = self.burst;
        let many = self.conreg.smc() || self.configreg.ss_ctl(channel);
        let again = many && !self.tx.is_empty() || asked_again;
        self.burst.asked_again = false;
        let states = self.periodreg.sample_period();
        let wait = if self.periodreg.slow_clock() {
            // A state is some 30.5 µs: 32,767 of them are a second, far from overflow.
            (states * PS_PER_S).div_ceil(SLOW_CLOCK_HZ)
        } else {
            states * period
        };
        self.shifter.rest();
        self.shifter.ready_at = at + period / 2 + wait;
        if again {
            self.shifter.select(at);
        }
        self.rest(at, wire);
        if !again && self.readings.tc == Over::WordEnd {
            self.sticky |= stat::TC;
        }
    }

    /// SCLK follows CONFIGREG.
    fn settle(&mut self, at: Ps, wire: &mut Wire) {
        self.rest(at, wire);
    }
}
