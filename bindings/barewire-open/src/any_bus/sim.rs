//! A simulated board as a controller that any thread may use.
//!
//! # Safety
//! The simulator has no thread-local variables, and its engine runs on whatever thread calls it: that is
//! the promise that [`Confined`] asks for.
#![allow(unsafe_code, reason = "promises that the simulator works on any thread")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use barewire::time::Timer;
use barewire_sim::bring_up::{AnyController, Charged, any};

use super::elsewhere::{self, Elsewhere};
use crate::confined::Confined;
use crate::name::SimOptions;
use crate::{Fitted, OpenError, SimBoard};

const PS_PER_NS: u64 = 1_000;
/// A pause of the program from this length on is the board's too.
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// The board's timer, as a process reads it: in nanoseconds.
const TIMER_HZ: u32 = 1_000_000_000;

struct Powered {
    controller: Charged<AnyController>,
    board: SimBoard,
}

pub(super) struct World {
    /// None once it is closed.
    powered: Option<Powered>,
    /// What was counted before it was closed.
    last_figures: SimFigures,
    /// When the program last used the board.
    last: Instant,
    /// How many want the board's time to pass by its own events alone.
    steady: usize,
}

impl Powered {
    fn figures(&self) -> SimFigures {
        let board = &self.board.board;
        let counts = board.access_counts();
        let mut violations = board.violations();
        violations.retain(|violation| violation.rule.harms());
        SimFigures {
            virtual_ns: board.engine().now_ps() / PS_PER_NS,
            bits: board.wire_use().bits,
            register_reads: counts.iter().map(|count| count.reads).sum(),
            register_writes: counts.iter().map(|count| count.writes).sum(),
            violations: board.harms_total(),
            violation_texts: violations.iter().map(ToString::to_string).collect(),
        }
    }
}

/// What a simulated board counted since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimFigures {
    /// The time since power-up, in nanoseconds.
    pub virtual_ns: u64,
    /// Bits clocked.
    pub bits: u64,
    /// Register reads, controller and GPIO.
    pub register_reads: u64,
    /// Register writes, controller and GPIO.
    pub register_writes: u64,
    /// How many rules were broken on the wire that harm data or chips.
    pub violations: u64,
    /// The first of them, in words.
    pub violation_texts: Vec<String>,
}

pub(super) struct SimPart(Arc<Confined<World>>);

/// The board's clock.
pub(super) struct SimClock(Arc<Confined<World>>);

/// The board as asked, powered up, with its chips.
pub(super) fn open(
    options: &SimOptions,
    tell: &mut dyn FnMut(&str),
) -> Result<(Elsewhere<World>, SimPart), OpenError> {
    let mut notes = Vec::new();
    let make = || {
        let board =
            SimBoard::new(options, Fitted::default(), &mut |note| notes.push(note.to_owned()))?;
        let controller = Charged::new(any(&board.board), board.board.clone());
        let powered = Some(Powered { controller, board });
        let last_figures = SimFigures::default();
        Ok(World { powered, last_figures, last: Instant::now(), steady: 0 })
    };
    // SAFETY: the module's.
    let world = unsafe { Confined::new(make) };
    notes.iter().for_each(|note| tell(note));
    let world = Arc::new(world?);
    Ok((Elsewhere(Arc::clone(&world)), SimPart(world)))
}

impl SimPart {
    pub(super) fn steady(&self) -> SteadySim {
        self.0.with(|world| world.steady += 1);
        SteadySim(Arc::clone(&self.0))
    }

    pub(super) fn clock(&self) -> SimClock {
        SimClock(Arc::clone(&self.0))
    }

    pub(super) fn figures(&self) -> SimFigures {
        self.0.with(|world| match &world.powered {
            Some(powered) => powered.figures(),
            None => world.last_figures.clone(),
        })
    }

    pub(super) fn close(&self) -> Result<(), OpenError> {
        self.0.with(|world| {
            let Some(mut powered) = world.powered.take() else { return Ok(()) };
            world.last_figures = powered.figures();
            powered.board.close()
        })
    }
}

/// While it exists, the clock on the wall does not count.
pub(super) struct SteadySim(Arc<Confined<World>>);

impl Drop for SteadySim {
    fn drop(&mut self) {
        self.0.with(|world| {
            world.steady -= 1;
            world.last = Instant::now();
        });
    }
}

impl elsewhere::World for World {
    type Controller = Charged<AnyController>;

    fn controller(&mut self) -> Option<&mut Self::Controller> {
        Some(&mut self.powered.as_mut()?.controller)
    }

    /// Lets the time that the program spent elsewhere pass on the board.
    fn keep_time(&mut self, after: bool) {
        let pause = self.last.elapsed();
        if let Some(powered) = &self.powered
            && !after
            && self.steady == 0
            && pause >= PAUSE_MIN
        {
            let ns = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
            powered.board.board.engine().spend_ps(ns.saturating_mul(PS_PER_NS));
        }
        self.last = Instant::now();
    }
}

impl Timer for SimClock {
    fn frequency_hz(&self) -> u32 {
        TIMER_HZ
    }

    fn now_ticks(&mut self) -> u64 {
        self.0.with(|world| {
            let Some(powered) = &world.powered else { return world.last_figures.virtual_ns };
            let mut timer = powered.board.board.timer();
            let hz = u128::from(timer.frequency_hz());
            let ns = u128::from(timer.now_ticks()) * u128::from(TIMER_HZ) / hz;
            world.last = Instant::now();
            u64::try_from(ns).unwrap_or(u64::MAX)
        })
    }

    fn wait_ticks(&mut self, ticks: u64) {
        self.0.with(|world| {
            if let Some(powered) = &world.powered {
                powered.board.board.engine().spend_ps(ticks.saturating_mul(PS_PER_NS));
            }
            world.last = Instant::now();
        });
    }

    fn sleep_ns(&mut self, ns: u64) {
        self.wait_ticks(ns);
    }
}
