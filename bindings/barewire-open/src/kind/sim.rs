//! A simulated board, powered up with its chips.

use barewire::controller::Controller;
use barewire::spi::Mode;
use barewire::time::Timer;
use barewire_sim::Board;
use barewire_sim::bring_up::{Charged, any};

use super::Backing;
use crate::name::SimOptions;
use crate::{Fitting, Layers, OpenError, SimBoard};

const PS_PER_NS: u64 = 1_000;

/// The board that was asked for.
pub(crate) fn open(
    options: &SimOptions,
    fitted: Fitting,
    linux_process: bool,
    layers: Layers,
    tell: &mut dyn FnMut(&str),
) -> Result<(Box<dyn Controller>, SimBoard), OpenError> {
    let parts = SimBoard::new(options, fitted, tell)?;
    let board = parts.board.clone();
    let charged = Charged::new(any(&board), board.clone());
    let charged = if linux_process { charged.for_linux_process() } else { charged };
    Ok((layers.around_local(charged, Watch(board)), parts))
}

impl Backing for SimBoard {
    fn mode(&self, chip_select: u8) -> Mode {
        match self.board.spec().cs.get(usize::from(chip_select)) {
            Some(_) if !self.board.has_line(chip_select) => Mode::NO_CS,
            Some(cs) if cs.active_high => Mode::CS_HIGH,
            _ => Mode::default(),
        }
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(self.board.timer())
    }

    fn board(&self) -> Option<&SimBoard> {
        Some(self)
    }

    fn close(&mut self) -> Result<(), OpenError> {
        SimBoard::close(self)
    }
}

/// Virtual time, read in no time: a traced message is as it would be without a tracer.
struct Watch(Board);

impl Timer for Watch {
    fn frequency_hz(&self) -> u32 {
        1_000_000_000
    }

    fn now_ticks(&mut self) -> u64 {
        self.0.engine().now_ps() / PS_PER_NS
    }
}
