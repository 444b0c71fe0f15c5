//! The shift register of a controller block: a word's way from a FIFO onto the wire and back, in virtual time.
//!
//! # How it works
//! A block is in one [`Phase`], and at most one event is due. [`Shift::step`] processes the event and
//! calls what the block does in that phase: its rules are in its own `shift`. What every block does is
//! here: word length, bit order, mode, the wire's edges, clocks at rest, when a word is sampled.
//!
//! # Ordering
//! 1. `Select`: the select line becomes active.
//! 2. `Lead`: the first cell begins ([`Shifter::begin`]).
//! 3. `Sample`: at the last sampling edge, half a period before the end of the last cell, the block
//!    receives the word.
//! 4. `Boundary`: the last cell and the clocks at rest are over. The next word begins, or step 5 is due.
//! 5. `Release`: the select line becomes inactive.
//!
//! A block may leave steps out. `Gap` is a pause of its own: after step 4 or after step 5.

use crate::chip::{Clocking, Ps};
use crate::wire::{Run, Wire};

/// The event at [`Shifter::due`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// None, until there is a word.
    Idle,
    /// The select line becomes active.
    Select,
    /// The first cell begins. At [`Ps::MAX`]: the block is selected and waits for a word.
    Lead,
    /// The last bit of the word is sampled.
    Sample,
    /// The last cell of the word ends, with the clocks at rest after it.
    Boundary,
    /// A pause has passed.
    Gap,
    /// The select line becomes inactive.
    Release,
}

/// A word, and how it is clocked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    /// As the FIFO holds it. The bits above the word are not sent.
    pub value: u32,
    /// 1 to 32.
    pub bits: u32,
    pub lsb_first: bool,
    pub mode: u8,
    pub period: Ps,
    /// Clocks for which SCK rests after the last cell.
    pub rest_clocks: u64,
    /// The block receives what it sends.
    pub loopback: bool,
}

impl Word {
    /// Most significant bit first, without clocks at rest or loopback.
    pub(super) const fn new(value: u32, bits: u32, mode: u8, period: Ps) -> Self {
        Self { value, bits, lsb_first: false, mode, period, rest_clocks: 0, loopback: false }
    }

    /// The low bits of `value`, as many as the word has, turned from the FIFO's order to the wire's or back.
    fn ordered(&self, value: u32) -> u32 {
        let unused = u32::BITS - self.bits;
        if self.lsb_first { value.reverse_bits() >> unused } else { value << unused >> unused }
    }
}

/// The shift register and its clock. A word's settings are taken when it begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shifter {
    pub phase: Phase,
    /// The time of the next event without an access; [`Ps::MAX`] for never.
    pub due: Ps,
    /// The word that is clocked, or was last.
    pub word: Word,
    /// When its last bit is sampled.
    pub sampled_at: Ps,
    /// When the next may begin.
    pub word_end: Ps,
    /// No line is selected before this time.
    pub ready_at: Ps,
}

impl Default for Shifter {
    fn default() -> Self {
        let word = Word::new(0, 1, 0, 0);
        Self { phase: Phase::Idle, due: Ps::MAX, word, sampled_at: 0, word_end: 0, ready_at: 0 }
    }
}

impl Shifter {
    pub(super) fn enter(&mut self, phase: Phase, due: Ps) {
        (self.phase, self.due) = (phase, due);
    }

    pub(super) fn rest(&mut self) {
        self.enter(Phase::Idle, Ps::MAX);
    }

    /// A line is selected as soon as it may be.
    pub(super) fn select(&mut self, now: Ps) {
        self.enter(Phase::Select, now.max(self.ready_at));
    }

    pub(super) fn is_idle(&self) -> bool {
        self.phase == Phase::Idle
    }

    /// The first cell of `word` begins.
    pub(super) fn begin(&mut self, word: Word, at: Ps, wire: &mut Wire) {
        let Word { bits, mode, period, loopback, .. } = word;
        let mosi = word.ordered(word.value);
        let run = Run { clocking: Clocking { at, period }, mode, bits, mosi, loopback };
        self.word = word;
        self.sampled_at = run.sampled();
        self.word_end = run.end() + word.rest_clocks * period;
        self.enter(Phase::Sample, self.sampled_at);
        wire.begin_run(run);
    }

    /// The last bit is sampled. Returns the word as the FIFO is to hold it.
    fn sample(&mut self, wire: &mut Wire) -> u32 {
        let miso = wire.end_run();
        let word = &self.word;
        let received = if word.loopback { word.ordered(word.value) } else { miso };
        let received = word.ordered(received);
        self.enter(Phase::Boundary, self.word_end);
        received
    }
}

/// What a block does in each phase. A block implements the phases that it enters.
pub(super) trait Shift {
    fn shifter(&self) -> &Shifter;

    fn shifter_mut(&mut self) -> &mut Shifter;

    /// The select line becomes active.
    fn select(&mut self, at: Ps, wire: &mut Wire) {
        unreachable!("no line is selected at {at} on {wire:?}")
    }

    /// The first cell begins, if there is a word.
    fn load(&mut self, at: Ps, wire: &mut Wire) {
        unreachable!("no word has a lead at {at} on {wire:?}")
    }

    /// A word was received at `at`. The boundary is due.
    fn receive(&mut self, word: u32, at: Ps, wire: &mut Wire);

    /// The last cell of the word has ended.
    fn boundary(&mut self, at: Ps, wire: &mut Wire);

    /// The pause has passed.
    fn gap(&mut self, at: Ps, wire: &mut Wire) {
        unreachable!("no pause ends at {at} on {wire:?}")
    }

    /// The select line becomes inactive.
    fn release(&mut self, at: Ps, wire: &mut Wire) {
        unreachable!("no line is released at {at} on {wire:?}")
    }

    /// A time that a block at rest had set is over.
    fn settle(&mut self, _at: Ps, _wire: &mut Wire) {}

    /// Processes the next event, if it is due by `now`.
    #[inline]
    fn step(&mut self, now: Ps, wire: &mut Wire) -> bool {
        let Shifter { phase, due: at, .. } = *self.shifter();
        if at > now {
            return false;
        }
        match phase {
            Phase::Sample => {
                let word = self.shifter_mut().sample(wire);
                self.receive(word, at, wire);
            }
            Phase::Boundary => self.boundary(at, wire),
            Phase::Lead => self.load(at, wire),
            Phase::Select => self.select(at, wire),
            Phase::Gap => self.gap(at, wire),
            Phase::Release => self.release(at, wire),
            Phase::Idle => {
                self.shifter_mut().rest();
                self.settle(at, wire);
            }
        }
        true
    }

    /// The time of the next event without an access; [`Ps::MAX`] for never.
    fn next_event(&self) -> Ps {
        self.shifter().due
    }

    /// Processes everything that is due by `now`.
    #[inline]
    fn run_to(&mut self, now: Ps, wire: &mut Wire) {
        while self.step(now, wire) {}
    }
}
