//! PL022 on the boards that have one.

use barewire::controller::gpio::Pl061;
use barewire::controller::pl022::{Pl022, Pl022Config};
use barewire::controller::{ALWAYS_POLL, Controller, CsLine, Interrupt, NoInterrupt};

use super::{SimInterrupt, chip_selects, gpio, reference_hz};
use crate::board::{Board, SimRegisters, SimTimer};

/// Beside a chip on its own line, no other can have a GPIO.
pub(super) const NATIVE_TAKES_ANY: bool = false;

pub(super) fn start<I: Interrupt + 'static>(
    board: &Board,
    poll_limit_ns: u32,
    interrupt: I,
) -> Box<dyn Controller> {
    Box::new(on_board(board, poll_limit_ns).with_interrupt(interrupt))
}

/// The shipped driver's body on a simulated board.
pub type SimPl022<I = NoInterrupt> = Pl022<SimRegisters, Pl061<SimRegisters>, SimTimer, I>;

/// The board's PL022, polled. Its own select line is in the driver's table only if a chip has been
/// attached to it before: it falls for every frame, so a board with a chip on it has no other.
///
/// # Panics
/// As [`any`](super::any).
#[must_use]
pub fn pl022(board: &Board) -> SimPl022 {
    on_board(board, ALWAYS_POLL)
}

/// [`pl022`], with transfers that take longer than `poll_limit_ns` on the wire waiting by
/// interrupt.
///
/// # Panics
/// As [`pl022`].
#[must_use]
pub fn pl022_interrupt(board: &Board, poll_limit_ns: u32) -> SimPl022<SimInterrupt> {
    on_board(board, poll_limit_ns).with_interrupt(SimInterrupt::new(board))
}

fn on_board(board: &Board, poll_limit_ns: u32) -> SimPl022 {
    let mut lines = chip_selects(board);
    for (line, cs) in lines.iter_mut().zip(0..) {
        if matches!(line, CsLine::Native { .. }) && !board.has_chip(cs) {
            *line = CsLine::Absent;
        }
    }
    let config =
        Pl022Config { reference_hz: reference_hz(board), chip_selects: lines, poll_limit_ns };
    Pl022::new(board.controller(), Pl061::new(gpio(board)), board.timer(), config)
}
