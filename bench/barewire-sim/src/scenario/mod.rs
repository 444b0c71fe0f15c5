//! Scenarios: small programs on a simulated board whose times are worth printing.
//!
//! *Read first*: [`crate::engine`] for what threads and interrupts cost; `docs/simulation.md`.
//!
//! # How it works
//! Each makes its board, runs its threads, and returns virtual nanoseconds; `barewire bench` prints
//! them, tests hold them against bounds and reviewed tables. All are on [`PROFILE`], at
//! [`SPEED_HZ`], with an echo behind chip select 0. The same program gives the same figures.
//!
//! # Not supported
//! The instructions of the queue itself: a message is charged those of the sync path on every path.
//! `barewire bench` counts what async adds; on the profile it is 0.1 µs.

pub mod can_echo;
pub mod hop;
pub mod nor_reads;
pub mod priority;
pub mod readout;
pub mod sampling;
pub mod waiting;

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::{Bus, Device, Platform};
use barewire::controller::Controller;
use barewire::spi::Settings;

use crate::bring_up::{AnyController, Charged, any};
use crate::chip::{PS_PER_NS, Ps};
use crate::model::echo::Echo;
use crate::profile::CostLevel;
use crate::{Board, BoardOptions, BoardSpec};

/// The board, by its name.
pub const PROFILE: &str = "imx8mp";
/// The clock of every message.
pub const SPEED_HZ: u32 = 20_000_000;

fn board(costs: CostLevel) -> Board {
    let spec = BoardSpec::find(PROFILE).expect("the profile has a board");
    let profile = Some(spec.profile.at(costs));
    let board = Board::new(spec, BoardOptions { profile, ..BoardOptions::default() });
    board.attach(0, Rc::new(RefCell::new(Echo::default())));
    board
}

fn bus(board: &Board, platform: &'static dyn Platform) -> Bus<Charged<AnyController>> {
    Bus::with_platform(Charged::new(any(board), board.clone()), platform)
}

fn device<C: Controller>(bus: &Bus<C>) -> Device<'_, C> {
    bus.device(&Settings::new(0, SPEED_HZ)).expect("the block can do it")
}

/// Arbitrary moments, the same on each run (xorshift64).
struct Moments(u64);

impl Moments {
    fn new() -> Self {
        Self(0x2545_f491_4f6c_dd1d)
    }

    fn below_ps(&mut self, end: Ps) -> Ps {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Times, as they came.
#[derive(Default)]
struct Times(RefCell<Vec<Ps>>);

impl Times {
    fn add(&self, ps: Ps) {
        self.0.borrow_mut().push(ps);
    }

    fn median_ns(&self) -> u64 {
        let mut times = self.0.borrow().clone();
        times.sort_unstable();
        times.get(times.len() / 2).map_or(0, |ps| ps / PS_PER_NS)
    }

    fn longest_ns(&self) -> u64 {
        self.0.borrow().iter().max().map_or(0, |ps| ps / PS_PER_NS)
    }
}
