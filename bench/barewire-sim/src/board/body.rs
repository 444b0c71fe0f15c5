//! A driver's handles to a simulated board: registers and a timer.
//!
//! *Read first*: `barewire::reg` for what an access promises, `barewire::time` for what a wait
//! does.
//!
//! # Ordering
//! 1. The access's time passes, and other simulated threads with it.
//! 2. The access acts only after that, at the new time: the block sees a write when the write
//!    arrives, and a read returns the value at the end of its round trip.
//! 3. A barrier waits until the last write to any block is acknowledged. Accesses act in the order
//!    in which they are made, so a missing barrier changes only the count of barriers.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use barewire::reg::Registers;
use barewire::time::Timer;

use super::World;
use crate::check::Log;
use crate::chip::{PS_PER_NS, PS_PER_S, Ps};
use crate::engine::{Engine, Line, Look};
use crate::line::{self, Source, World as _};
use crate::random::SplitMix64;

/// A pad of a board: one bit of one of its GPIO blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pad {
    /// The block's index in [`BoardSpec::gpio`](super::BoardSpec::gpio).
    pub block: u8,
    /// The pin's bit.
    pub bit: u8,
}

impl fmt::Display for Pad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bit {} of GPIO block {}", self.bit, self.block)
    }
}

/// A pad that a chip drives.
pub(super) struct Output {
    pub(super) pad: Pad,
    pub(super) active_high: bool,
    pub(super) source: Rc<dyn Source>,
}

/// The chip selects that the program drives.
#[derive(Debug, Default)]
pub(super) struct ProgramSelects {
    /// Each with the pad that selects its chip.
    pub(super) pads: Vec<(u8, Pad)>,
    /// One bit for each chip select that the controller has no line for.
    pub(super) freed: u32,
}

/// State shared by all handles of a board.
pub(super) struct BoardState {
    pub(super) engine: Engine,
    /// The wire's log: readable while the world is in use.
    pub(super) log: Log,
    pub(super) world: RefCell<World>,
    /// The pads that chips drive.
    pub(super) outputs: RefCell<Vec<Output>>,
    /// The chip selects that the program drives.
    pub(super) selects: RefCell<ProgramSelects>,
    pub(super) jitter_ps: Ps,
    pub(super) random: Cell<SplitMix64>,
    pub(super) stall: Cell<Option<Stall>>,
    /// When the last posted write is acknowledged.
    pub(super) acknowledged_at: Cell<Ps>,
}

/// [`Board::stall_after`](super::Board::stall_after).
#[derive(Clone, Copy)]
pub(super) struct Stall {
    /// Accesses that still come before it.
    pub(super) accesses: u64,
    pub(super) ps: Ps,
}

impl BoardState {
    /// An access's time passes.
    #[inline]
    fn access(&self, ps: Ps) {
        if self.stall.get().is_some() {
            self.stall();
        }
        self.spend(ps);
    }

    #[cold]
    fn stall(&self) {
        let Some(stall) = self.stall.take() else { return };
        match stall.accesses.checked_sub(1) {
            Some(accesses) => self.stall.set(Some(Stall { accesses, ..stall })),
            None => self.engine.spend_ps(stall.ps),
        }
    }

    fn spend(&self, ps: Ps) {
        let ps = if self.jitter_ps == 0 { ps } else { ps.saturating_add(self.jitter()) };
        self.engine.spend_ps(ps);
    }

    #[cold]
    fn jitter(&self) -> Ps {
        let mut random = self.random.get();
        let number = random.next_u64();
        self.random.set(random);
        number % self.jitter_ps.saturating_add(1)
    }
}

impl BoardState {
    /// Sets each pad that a chip drives to the chip's level at `now`.
    #[inline]
    pub(super) fn follow_outputs(&self, now: Ps) {
        if !self.outputs.borrow().is_empty() {
            self.follow(now);
        }
    }

    fn follow(&self, now: Ps) {
        // 1. Brings the wire and the chips up to `now`.
        self.settle(now);
        for output in self.outputs.borrow().iter() {
            output.source.settle(now);
            // 2. The pads take the chips' levels.
            let level = output.source.asserted_since().is_some() == output.active_high;
            let Pad { block, bit } = output.pad;
            self.world.borrow_mut().gpio[usize::from(block)].set_outside(bit, level);
        }
    }
}

/// The controller's interrupt line.
impl Line for BoardState {
    fn look(&self, now: Ps) -> Look {
        let due = self.settle(now);
        match self.world.borrow().controller.interrupt() {
            true => Look::High,
            false if due == Ps::MAX => Look::Never,
            false => Look::Due(due),
        }
    }
}

impl line::World for BoardState {
    fn settle(&self, now: Ps) -> Ps {
        let World { wire, controller, .. } = &mut *self.world.borrow_mut();
        controller.catch_up(now, wire);
        controller.due()
    }
}

/// One register block of a simulated board.
#[derive(Clone)]
pub struct SimRegisters {
    pub(super) shared: Rc<BoardState>,
    /// Its place in the board: 0 is the controller, the GPIO blocks follow.
    pub(super) block: usize,
    pub(super) read_ps: Ps,
    pub(super) write_ps: Ps,
    /// From a write's arrival to its acknowledgement.
    pub(super) write_ack_ps: Ps,
    /// A barrier with nothing to wait for.
    pub(super) barrier_ps: Ps,
}

impl Registers for SimRegisters {
    #[inline]
    fn read(&mut self, offset: u32) -> u32 {
        self.shared.access(self.read_ps);
        let now = self.shared.engine.now_ps();
        if self.block != 0 {
            self.shared.follow_outputs(now);
        }
        self.shared.world.borrow_mut().read(self.block, offset, now)
    }

    #[inline]
    fn write(&mut self, offset: u32, value: u32) {
        self.shared.access(self.write_ps);
        let now = self.shared.engine.now_ps();
        if self.block != 0 {
            self.shared.follow_outputs(now);
        }
        self.shared.world.borrow_mut().write(self.block, offset, value, now);
        self.shared.acknowledged_at.set(now.saturating_add(self.write_ack_ps));
        self.shared.engine.look_again();
    }

    #[inline]
    fn barrier(&mut self) {
        let engine = &self.shared.engine;
        let waits_ps = self.shared.acknowledged_at.get().saturating_sub(engine.now_ps());
        engine.spend_ps(waits_ps.max(self.barrier_ps));
        self.shared.world.borrow_mut().count_barrier(self.block);
    }
}

impl fmt::Debug for SimRegisters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimRegisters").field("block", &self.block).finish_non_exhaustive()
    }
}

/// A simulated board's tick counter.
#[derive(Clone)]
pub struct SimTimer {
    pub(super) shared: Rc<BoardState>,
    pub(super) read_ps: Ps,
    pub(super) frequency_hz: u32,
}

impl SimTimer {
    fn ticks(&self, now: Ps) -> u64 {
        (u128::from(now) * u128::from(self.frequency_hz) / u128::from(PS_PER_S)) as u64
    }

    /// The first instant at which the counter shows `ticks`.
    fn instant(&self, ticks: u64) -> Ps {
        let ps = (u128::from(ticks) * u128::from(PS_PER_S)).div_ceil(self.frequency_hz.into());
        Ps::try_from(ps).unwrap_or(Ps::MAX)
    }
}

impl Timer for SimTimer {
    fn frequency_hz(&self) -> u32 {
        self.frequency_hz
    }

    fn now_ticks(&mut self) -> u64 {
        self.shared.spend(self.read_ps);
        self.ticks(self.shared.engine.now_ps())
    }

    /// Charges the virtual time of a spin loop that ends exactly at the tick, without spinning.
    fn wait_ticks(&mut self, ticks: u64) {
        if ticks == 0 {
            return;
        }
        let begun = self.now_ticks();
        let until = begun.saturating_add(ticks).saturating_add(1);
        let now = self.shared.engine.now_ps();
        self.shared.engine.spend_ps(self.instant(until).saturating_sub(now));
        self.now_ticks();
    }

    /// If threads share the processor, another may run until this one wakes up, so it may wake
    /// late. A thread with a processor of its own wakes exactly on time.
    fn sleep_ns(&mut self, ns: u64) {
        let engine = &self.shared.engine;
        let ps = ns.saturating_mul(PS_PER_NS);
        if engine.shares_processor() {
            engine.sleep_until(engine.now_ps().saturating_add(ps));
        } else {
            engine.spend_ps(ps);
        }
    }
}

impl fmt::Debug for SimTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimTimer").field("frequency_hz", &self.frequency_hz).finish_non_exhaustive()
    }
}
