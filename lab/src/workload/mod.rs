//! What the threads did with their kernels: CAN frames echoed, a flash read by dd, three messages in a row.
//!
//! *Read first*: [`crate::kernel`].

pub mod dd;
pub mod echo;
pub mod nor;

use std::collections::BTreeSet;
use std::rc::Rc;

use barewire_sim::chip::Ps;
use barewire_sim::profile::CostLevel;
use barewire_sim::{Board, BoardOptions, BoardSpec};

use crate::cost::Costs;
use crate::machine::{Machine, Record};

/// The intervals that a figure is the mean of, in one record.
#[derive(Clone, Debug, Default)]
pub struct Intervals {
    /// From and to.
    pub all: Vec<(Ps, Ps)>,
}

impl Intervals {
    /// Their mean, in microseconds.
    #[must_use]
    pub fn mean_us(&self) -> f64 {
        let sum: Ps = self.all.iter().map(|(from, to)| to - from).sum();
        sum as f64 / self.all.len().max(1) as f64 / 1e6
    }
}

/// A machine of the board `name` with `costs`.
///
/// # Panics
/// If there is no such board.
#[must_use]
pub fn machine(name: &str, costs: &Rc<Costs>, off: &Rc<BTreeSet<String>>) -> Machine {
    let spec =
        BoardSpec::find(name).unwrap_or_else(|_| panic!("there is no simulated board {name:?}"));
    let profile = Some(costs.profile(&spec.profile));
    let board = Board::new(spec, BoardOptions { profile, ..BoardOptions::default() });
    Machine::new(board, costs.clone(), off.clone())
}

/// A run's record and the intervals of its figures.
pub(crate) type Measured<K> = (Record, Vec<(K, Intervals)>);

/// The costs of `costs` at `level`.
#[must_use]
pub fn at(costs: &Costs, level: CostLevel) -> Rc<Costs> {
    Rc::new(costs.at(level))
}
