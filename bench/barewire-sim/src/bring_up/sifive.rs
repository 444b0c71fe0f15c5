//! SiFive SPI on the boards that have one.

use barewire::controller::gpio::{Ownership, SiFiveGpio};
use barewire::controller::sifive::{SiFive, SiFiveConfig};
use barewire::controller::{ALWAYS_POLL, Controller, Interrupt, NoInterrupt};

use super::{SimInterrupt, chip_selects, gpio, reference_hz};
use crate::board::{Board, SimRegisters, SimTimer};

/// Its own line refuses a setup time, and a transfer with a speed of its own.
pub(super) const NATIVE_TAKES_ANY: bool = false;

pub(super) fn start<I: Interrupt + 'static>(
    board: &Board,
    poll_limit_ns: u32,
    interrupt: I,
) -> Box<dyn Controller> {
    Box::new(on_board(board, poll_limit_ns).with_interrupt(interrupt))
}

/// The shipped driver's body on a simulated board.
pub type SimSiFive<I = NoInterrupt> = SiFive<SimRegisters, SiFiveGpio<SimRegisters>, SimTimer, I>;

/// The board's SiFive SPI, polled.
///
/// # Panics
/// As [`any`](super::any).
#[must_use]
pub fn sifive(board: &Board) -> SimSiFive {
    on_board(board, ALWAYS_POLL)
}

/// [`sifive`], with transfers that take longer than `poll_limit_ns` on the wire waiting by
/// interrupt.
///
/// # Panics
/// As [`sifive`].
#[must_use]
pub fn sifive_interrupt(board: &Board, poll_limit_ns: u32) -> SimSiFive<SimInterrupt> {
    on_board(board, poll_limit_ns).with_interrupt(SimInterrupt::new(board))
}

fn on_board(board: &Board, poll_limit_ns: u32) -> SimSiFive {
    let (reference_hz, chip_selects) = (reference_hz(board), chip_selects(board));
    let config = SiFiveConfig { reference_hz, chip_selects, poll_limit_ns };
    let gpio = SiFiveGpio::new(gpio(board), Ownership::Shared);
    SiFive::new(board.controller(), gpio, board.timer(), config)
}
