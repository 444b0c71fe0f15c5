//! SPI0's exchange: bytes, the clock after each byte, and their times.
//!
//! *Read first*: the module page of [`super`], whose *Ordering* this file implements.

use super::Bcm2835Spi;
use super::regs::{FIFO_BYTES, divisor};
use crate::chip::{Clocking, Ps};
use crate::model::block::sck_period;
use crate::wire::{Run, Wire};

const BITS: u32 = 8;
/// The clocks per byte: its bits, and one at rest.
const CLOCKS: u64 = 9;

/// The event at [`Shifter::due`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// None, until there is a byte and room for the received byte.
    Idle,
    /// The last bit of the byte is sampled.
    Sample,
    /// The ninth clock ends.
    Pause,
}

/// The shift register and its clock. A byte's settings are taken when it begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shifter {
    phase: Phase,
    due: Ps,
    byte_end: Ps,
}

impl Shifter {
    pub(super) const IDLE: Self = Self { phase: Phase::Idle, due: Ps::MAX, byte_end: 0 };

    /// The time of the next event without an access; [`Ps::MAX`] for never.
    pub(super) fn due(&self) -> Ps {
        self.due
    }

    /// Whether the last byte and its ninth clock are over.
    pub(super) fn idle(&self) -> bool {
        self.phase == Phase::Idle
    }

    /// Whether a byte is on the wire whose last bit has not been sampled.
    pub(super) fn busy(&self) -> bool {
        self.phase == Phase::Sample
    }
}

impl Bcm2835Spi {
    /// Processes everything that is due by `now`.
    #[inline]
    pub(super) fn run_to(&mut self, now: Ps, wire: &mut Wire) {
        while self.shifter.due <= now {
            let at = self.shifter.due;
            match self.shifter.phase {
                Phase::Sample => self.sample(wire),
                Phase::Pause => self.end_byte(at, wire),
                Phase::Idle => self.shifter.due = Ps::MAX,
            }
        }
    }

    fn period(&self) -> Ps {
        sck_period(divisor(self.clk), self.core_hz)
    }

    /// Ordering 2: a byte begins, if its conditions are met.
    pub(super) fn start(&mut self, at: Ps, wire: &mut Wire) {
        let free = self.shifter.idle() && self.rx.len() < FIFO_BYTES;
        if !(free && self.cs.ta() && self.cs.supported()) {
            return;
        }
        let Some(byte) = self.tx.pop_front() else { return };
        let period = self.period();
        let run = Run {
            clocking: Clocking { at, period },
            mode: self.cs.mode(),
            bits: BITS,
            mosi: byte.into(),
            loopback: false,
        };
        self.shifter =
            Shifter { phase: Phase::Sample, due: run.sampled(), byte_end: at + CLOCKS * period };
        wire.begin_run(run);
    }

    /// Ordering 3: sample.
    fn sample(&mut self, wire: &mut Wire) {
        self.rx.push_back(wire.end_run() as u8);
        self.shifter.phase = Phase::Pause;
        self.shifter.due = self.shifter.byte_end;
    }

    /// Ordering 4: end.
    fn end_byte(&mut self, at: Ps, wire: &mut Wire) {
        self.shifter = Shifter::IDLE;
        // CS may have changed during the byte.
        wire.set_sck(self.cs.cpol(), at);
        self.start(at, wire);
    }

    /// TA = 0: a byte on the wire ends here.
    pub(super) fn stop(&mut self, now: Ps, wire: &mut Wire) {
        // A byte whose last bit was sampled still has an edge to come, before the CE line may move.
        if self.shifter.busy() {
            wire.abort_run(now);
            self.shifter = Shifter::IDLE;
        }
    }
}
