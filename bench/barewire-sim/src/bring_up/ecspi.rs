//! ECSPI on the boards that have one.

use barewire::controller::ecspi::{Ecspi, EcspiConfig};
use barewire::controller::gpio::{ImxGpio, Ownership};
use barewire::controller::{ALWAYS_POLL, Controller, Interrupt, NoInterrupt};

use super::{SimInterrupt, chip_selects, gpio, reference_hz};
use crate::board::{Board, SimRegisters, SimTimer};

pub(super) const NATIVE_TAKES_ANY: bool = true;

pub(super) fn start<I: Interrupt + 'static>(
    board: &Board,
    poll_limit_ns: u32,
    interrupt: I,
) -> Box<dyn Controller> {
    Box::new(on_board(board, Ownership::Shared, poll_limit_ns).with_interrupt(interrupt))
}

/// The shipped driver's body on a simulated board.
pub type SimEcspi<I = NoInterrupt> = Ecspi<SimRegisters, ImxGpio<SimRegisters>, SimTimer, I>;

/// The board's ECSPI, polled, its GPIO bank shared.
///
/// # Panics
/// As [`any`](super::any).
#[must_use]
pub fn ecspi(board: &Board) -> SimEcspi {
    ecspi_with(board, Ownership::Shared)
}

/// [`ecspi`], with what may be assumed of its GPIO bank decided by the caller.
///
/// # Panics
/// As [`ecspi`].
#[must_use]
pub fn ecspi_with(board: &Board, ownership: Ownership) -> SimEcspi {
    on_board(board, ownership, ALWAYS_POLL)
}

/// [`ecspi`], with transfers that take longer than `poll_limit_ns` on the wire waiting by
/// interrupt.
///
/// # Panics
/// As [`ecspi`].
#[must_use]
pub fn ecspi_interrupt(board: &Board, poll_limit_ns: u32) -> SimEcspi<SimInterrupt> {
    on_board(board, Ownership::Shared, poll_limit_ns).with_interrupt(SimInterrupt::new(board))
}

fn on_board(board: &Board, ownership: Ownership, poll_limit_ns: u32) -> SimEcspi {
    let config = EcspiConfig {
        reference_hz: reference_hz(board),
        chip_selects: chip_selects(board),
        poll_limit_ns,
    };
    let gpio = ImxGpio::new(gpio(board), ownership);
    Ecspi::new(board.controller(), gpio, board.timer(), config)
}
