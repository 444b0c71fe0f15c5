//! The workloads of the threads: CAN frames echoed, a flash read by dd and beside a touch screen, three messages in a
//! row.
//!
//! *Read first*: [`crate::kernel`].

pub mod beside;
pub mod dd;
pub mod echo;
pub mod messages;
pub mod nor;
pub mod spidev;

use std::collections::BTreeSet;
use std::rc::Rc;

use barewire_sim::board::board_names;
use barewire_sim::chip::Ps;
use barewire_sim::{Board, BoardOptions, BoardSpec};

use crate::cost::Costs;
use crate::error::LabError;
use crate::machine::Machine;

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

/// A flash's content: `filled` bytes of a pattern that shows a block read from elsewhere, the rest erased.
fn content(size: usize, filled: usize) -> Vec<u8> {
    let mut content = vec![0xff; size];
    for (index, byte) in content[..filled].iter_mut().enumerate() {
        *byte = (index * 7 + index / 251) as u8;
    }
    content
}

/// The board `name`.
///
/// # Errors
/// If there is none.
pub(crate) fn board(name: &str) -> Result<&'static BoardSpec, LabError> {
    BoardSpec::find(name).map_err(|_| LabError::Unknown {
        what: "board",
        name: name.into(),
        known: board_names().map(str::to_owned).into(),
    })
}

/// A machine of the board `name` with `costs`.
///
/// # Errors
/// If there is no such board.
pub fn machine(
    name: &str,
    costs: &Rc<Costs>,
    off: &Rc<BTreeSet<String>>,
) -> Result<Machine, LabError> {
    let spec = board(name)?;
    let profile = Some(costs.profile(&spec.profile));
    let board = Board::new(spec, BoardOptions { profile, ..BoardOptions::default() });
    Ok(Machine::new(board, costs.clone(), off.clone()))
}
