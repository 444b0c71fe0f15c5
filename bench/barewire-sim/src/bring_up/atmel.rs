//! Atmel's SPI on the boards that have one.

use barewire::controller::atmel::{Atmel, AtmelConfig, PeripheralSelect, Pipe};
use barewire::controller::gpio::AtmelPio;
use barewire::controller::{ALWAYS_POLL, Controller, Interrupt, NoInterrupt};

use super::{SimInterrupt, chip_selects, gpio, reference_hz};
use crate::board::{Board, SimRegisters, SimTimer};

pub(super) const NATIVE_TAKES_ANY: bool = true;

pub(super) fn start<I: Interrupt + 'static>(
    board: &Board,
    poll_limit_ns: u32,
    interrupt: I,
) -> Box<dyn Controller> {
    Box::new(
        on_board(board, Pipe::WaitDataRead, PeripheralSelect::Fixed, poll_limit_ns)
            .with_interrupt(interrupt),
    )
}

/// The shipped driver's body on a simulated board.
pub type SimAtmel<I = NoInterrupt> = Atmel<SimRegisters, AtmelPio<SimRegisters>, SimTimer, I>;

/// The board's SPI, polled, nothing lost however late the caller is.
///
/// # Panics
/// As [`any`](super::any).
#[must_use]
pub fn atmel(board: &Board) -> SimAtmel {
    atmel_with(board, Pipe::WaitDataRead, PeripheralSelect::Fixed)
}

/// [`atmel`] with the driver's two choices made by the caller.
///
/// # Panics
/// As [`atmel`].
#[must_use]
pub fn atmel_with(board: &Board, pipe: Pipe, peripheral_select: PeripheralSelect) -> SimAtmel {
    on_board(board, pipe, peripheral_select, ALWAYS_POLL)
}

/// [`atmel`], with transfers that take longer than `poll_limit_ns` on the wire waiting by
/// interrupt.
///
/// # Panics
/// As [`atmel`].
#[must_use]
pub fn atmel_interrupt(board: &Board, poll_limit_ns: u32) -> SimAtmel<SimInterrupt> {
    atmel_interrupt_with(board, Pipe::WaitDataRead, poll_limit_ns)
}

/// [`atmel_interrupt`] with the words on the way chosen by the caller.
///
/// # Panics
/// As [`atmel`].
#[must_use]
pub fn atmel_interrupt_with(
    board: &Board,
    pipe: Pipe,
    poll_limit_ns: u32,
) -> SimAtmel<SimInterrupt> {
    on_board(board, pipe, PeripheralSelect::Fixed, poll_limit_ns)
        .with_interrupt(SimInterrupt::new(board))
}

fn on_board(
    board: &Board,
    pipe: Pipe,
    peripheral_select: PeripheralSelect,
    poll_limit_ns: u32,
) -> SimAtmel {
    let config = AtmelConfig {
        reference_hz: reference_hz(board),
        chip_selects: chip_selects(board),
        pipe,
        peripheral_select,
        poll_limit_ns,
    };
    Atmel::new(board.controller(), AtmelPio::new(gpio(board)), board.timer(), config)
}
