//! A register block as a controller: the state that every block needs, and the code that all blocks share.
//!
//! # How it works
//! A driver's type is an alias of [`Block`]: its registers, the GPIO bank of its select lines, the timer, the interrupt,
//! and what the driver itself keeps ([`State`]). `Block` implements [`Controller`](super::Controller), [`Wire`] and
//! [`Stepped`] once: select lines, waits, sleeping, recovery. A driver has
//! 1. the board's properties, which plan ([`BlockConfig`]): settings and transfers become register values;
//! 2. what it does with the registers ([`BlockDriver`]), most of it by the common exchange of a FIFO
//!    ([`Fifo`](super::fifo::Fifo)).
//!
//! docs/drivers.md shows where each piece of a new driver goes.

mod controller;
mod driver;
mod run;
mod short;

pub(super) use driver::{BlockConfig, BlockDriver, InFlight, State};

use core::task::Poll;

use super::deadline::HasTimer;
use super::gpio::GpioBank;
use super::lines::{self, Rest};
use super::stepped::{Progress, Stepped};
use super::{Interrupt, NoInterrupt, Plan, PollOnly, Preset, Stopped, Wire};
use crate::reg::Registers;
use crate::spi::Data;
use crate::time::Timer;

/// A register block, its select lines and the timer that makes its delays. The drivers' types are aliases of it.
#[derive(Debug)]
pub struct Block<B: State, R, G, T, I = NoInterrupt> {
    pub(super) regs: R,
    pub(super) gpio: G,
    pub(super) timer: T,
    /// How long all lines have been at rest.
    pub(super) rest: Rest,
    pub(super) config: B::Board,
    interrupt: I,
    /// The position in the message between two steps.
    progress: Progress,
    /// The transfer that was left in flight.
    pub(super) flight: B::Flight,
    /// The driver's state.
    pub(super) state: B,
}

impl<B: State, R: Registers, G: GpioBank, T: Timer> Block<B, R, G, T>
where
    Self: BlockDriver,
{
    /// Drives every GPIO select line inactive, then resets the block.
    ///
    /// # Panics
    /// If a clock of `config` is 0 Hz, or its table names a native line that the block does not
    /// have.
    pub fn new(regs: R, gpio: G, timer: T, config: B::Config) -> Self {
        Self::bring(regs, gpio, timer, config, NoInterrupt)
    }
}

impl<B: State, R: Registers, G: GpioBank, T: Timer> Block<B, R, G, T, PollOnly>
where
    Self: BlockDriver,
{
    /// [`Block::new`] for a program that polls every transfer: `poll_limit_ns` of the board and of its devices says nothing, and
    /// the code for interrupts is not in the program.
    ///
    /// # Panics
    /// As [`Block::new`].
    pub fn polled(regs: R, gpio: G, timer: T, config: B::Config) -> Self {
        Self::bring(regs, gpio, timer, config, PollOnly)
    }
}

impl<B: State, R: Registers, G: GpioBank, T: Timer, I: Interrupt> Block<B, R, G, T, I>
where
    Self: BlockDriver,
{
    fn bring(regs: R, gpio: G, timer: T, config: B::Config, interrupt: I) -> Self {
        let config = B::Board::from(config);
        config.check();
        let mut this = Self {
            regs,
            gpio,
            timer,
            rest: Rest::default(),
            config,
            interrupt,
            progress: Progress::default(),
            flight: B::Flight::default(),
            state: B::default(),
        };
        this.deselect_all();
        this.bring_up();
        this.rest = Rest::begin(&mut this.timer);
        this
    }
}

impl<B: State, R: Registers, G: GpioBank, T: Timer, I: Interrupt> Block<B, R, G, T, I> {
    /// Adds `interrupt`, on which the caller sleeps while a transfer takes longer than the board's `poll_limit_ns`.
    pub fn with_interrupt<J: Interrupt>(self, interrupt: J) -> Block<B, R, G, T, J> {
        let Self { regs, gpio, timer, rest, config, progress, flight, state, .. } = self;
        Block { regs, gpio, timer, rest, config, interrupt, progress, flight, state }
    }

    /// Makes the block silent, and returns its parts.
    pub fn release(mut self) -> (R, G, T)
    where
        Self: BlockDriver,
    {
        self.leave();
        (self.regs, self.gpio, self.timer)
    }

    fn deselect_all(&mut self) {
        lines::deselect_all(self.config.chip_selects(), &mut self.gpio);
    }
}

impl<B: State, R: Registers, G: GpioBank, T: Timer, I: Interrupt> HasTimer
    for Block<B, R, G, T, I>
{
    type Timer = T;

    fn timer(&mut self) -> &mut T {
        &mut self.timer
    }
}

impl<B: State, R: Registers, G: GpioBank, T: Timer, I: Interrupt> Wire for Block<B, R, G, T, I>
where
    Self: BlockDriver,
{
    #[inline(always)]
    fn makes_delays(&self) -> bool {
        self.timer.makes_delays()
    }

    #[inline(always)]
    fn select(&mut self, preset: &Preset) {
        if self.enter(preset) && preset.cs_mask != 0 {
            self.gpio.drive(preset.cs_mask, preset.cs_active_high);
        }
    }

    #[inline(always)]
    fn keeps_cs(&self, preset: &Preset) -> bool {
        preset.selection.keeps_cs()
    }

    #[inline(always)]
    fn deselect(&mut self, preset: &Preset) {
        if preset.cs_mask != 0 {
            self.gpio.drive(preset.cs_mask, !preset.cs_active_high);
        }
        self.exit(preset);
    }

    #[inline(always)]
    fn exchange(
        &mut self,
        preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Result<(), Stopped> {
        if data.is_empty() {
            return Ok(());
        }
        self.transfer(preset, plan, data)
    }

    #[cold]
    fn recover(&mut self) {
        self.reset();
    }

    #[inline]
    fn wait_ticks(&mut self, ticks: u32) {
        if ticks > 0 {
            self.settle();
        }
        self.timer.wait_ticks(ticks.into());
    }

    #[inline]
    fn rest_ticks(&mut self, ticks: u32) {
        self.rest.at_least(ticks, &mut self.timer);
    }
}

impl<B: State, R: Registers, G: GpioBank, T: Timer, I: Interrupt> Stepped for Block<B, R, G, T, I>
where
    Self: BlockDriver,
{
    fn progress(&mut self) -> &mut Progress {
        &mut self.progress
    }

    #[inline(always)]
    fn begin(&mut self, preset: &Preset, plan: &Plan, data: &mut Data<'_>) {
        BlockDriver::begin(self, preset, plan, data);
    }

    #[inline(always)]
    fn advance(
        &mut self,
        preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Poll<Result<(), Stopped>> {
        BlockDriver::advance(self, preset, plan, data)
    }
}
