//! The worst time from call to return of each task that shares a bus: an upper bound, and an adversary that
//! looks for a case above it.
//!
//! *Read first*: docs/realtime.md, which explains the analysis; the promises of [`barewire::bus`].
//!
//! # How it works
//! - A [`Traffic`] describes who uses the bus: tasks with their devices, messages, periods and priorities, and
//!   what interrupts them.
//! - [`cost`] runs each task's job alone on the simulated board and measures it, so nothing here depends on
//!   the kind of controller.
//! - [`analysis`] sums what may come between a call and its return, from the promises of the bus.
//! - [`adversary`] runs the tasks on simulated threads, released at moments chosen against them.
//!
//! Each task has a processor of its own, which interrupts may take from it. All times are virtual, with the costs
//! of the board's profile.
//!
//! # Not supported
//! Tasks that share a processor (the time for which others keep it is part of the wake-up, an input); a bus that its
//! interrupt handler pumps; worker threads; futures.

pub mod adversary;
pub mod analysis;
pub mod change;
pub mod cost;

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Platform;

use crate::chip::Ps;
use crate::model::echo::Echo;
use crate::profile::CostLevel;
use crate::{Board, BoardOptions, BoardSpec, SimPlatform};

/// The path by which a task runs its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Each message by `Device::sync`, one after the other.
    Sync,
    /// Each message planned once and run by `PreparedMessage::run`, one after the other.
    Prepared,
    /// All messages under one lock of the bus.
    Lock,
}

/// A task: a thread that does the same job once a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// The chip select of its device.
    pub chip_select: u8,
    /// The device's clock, in hertz.
    pub speed_hz: u32,
    /// The priority of its messages, and of its thread if the bus has priority inheritance. The higher goes first.
    pub priority: u8,
    /// The shortest time between the beginnings of two jobs, in microseconds.
    pub period_us: u64,
    /// How it runs its messages.
    pub path: Path,
    /// Its job: messages, each by the lengths of its transfers in bytes.
    pub messages: Vec<Vec<usize>>,
}

/// The interruptions that take a task's processor from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// Its name.
    pub name: String,
    /// The task whose processor it takes: an index into [`Traffic::tasks`].
    pub task: usize,
    /// The shortest time between two, in microseconds.
    pub period_us: u64,
    /// How long it keeps the processor, in microseconds, without its entry and exit.
    pub keeps_us: u64,
}

/// Who uses a bus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Whether the bus has priority inheritance.
    pub inheritance: bool,
    /// The longest from a wake-up call until the sleeper runs, in nanoseconds; the profile's if `None`.
    pub wake_up_ns: Option<u64>,
    /// The tasks.
    pub tasks: Vec<Task>,
    /// What interrupts them.
    pub interruptions: Vec<Interruption>,
}

impl Traffic {
    /// The platform of its bus.
    fn platform(&self) -> &'static dyn Platform {
        if self.inheritance { &SimPlatform::WITH_INHERITANCE } else { &SimPlatform }
    }

    /// A board with these costs for the traffic: an echo at each chip select, and wake-ups as long
    /// as the traffic says.
    ///
    /// # Panics
    /// If the board has no such chip select.
    #[must_use]
    pub fn board(&self, spec: &'static BoardSpec, level: CostLevel) -> Board {
        let options =
            BoardOptions { profile: Some(spec.profile.at(level)), ..BoardOptions::default() };
        let board = Board::new(spec, options);
        for task in &self.tasks {
            if !board.has_chip(task.chip_select) {
                let attached =
                    board.attach(task.chip_select, Rc::new(RefCell::new(Echo::default())));
                assert!(attached, "the board has no chip select {}", task.chip_select);
            }
        }
        if let Some(ns) = self.wake_up_ns {
            let mut costs = board.engine().costs();
            costs.wake_ps =
                (ns * crate::chip::PS_PER_NS).saturating_sub(costs.context_switch_ps).max(1);
            board.engine().set_costs(costs);
        }
        board
    }
}

/// The longest wait for a processor after a wake-up call, on a board of the traffic.
fn wake_up_ps(board: &Board) -> Ps {
    let costs = board.engine().costs();
    costs.wake_ps + costs.context_switch_ps
}
