//! BCM2835 SPI0 on the boards that have one.

use barewire::controller::bcm2835::{Bcm2835, Bcm2835Config};
use barewire::controller::gpio::Bcm2835Gpio;
use barewire::controller::{ALWAYS_POLL, Controller, Interrupt, NoInterrupt};

use super::{SimInterrupt, chip_selects, gpio, reference_hz};
use crate::board::{Board, SimRegisters, SimTimer};

/// Its own line refuses a transfer's own speed.
pub(super) const NATIVE_TAKES_ANY: bool = false;

pub(super) fn start<I: Interrupt + 'static>(
    board: &Board,
    poll_limit_ns: u32,
    interrupt: I,
) -> Box<dyn Controller> {
    Box::new(on_board(board, poll_limit_ns).with_interrupt(interrupt))
}

/// The shipped driver's body on a simulated board.
pub type SimBcm2835<I = NoInterrupt> =
    Bcm2835<SimRegisters, Bcm2835Gpio<SimRegisters>, SimTimer, I>;

/// The board's SPI0, polled.
///
/// # Panics
/// As [`any`](super::any).
#[must_use]
pub fn bcm2835(board: &Board) -> SimBcm2835 {
    on_board(board, ALWAYS_POLL)
}

/// [`bcm2835`], with transfers that take longer than `poll_limit_ns` on the wire waiting by
/// interrupt.
///
/// # Panics
/// As [`bcm2835`].
#[must_use]
pub fn bcm2835_interrupt(board: &Board, poll_limit_ns: u32) -> SimBcm2835<SimInterrupt> {
    on_board(board, poll_limit_ns).with_interrupt(SimInterrupt::new(board))
}

fn on_board(board: &Board, poll_limit_ns: u32) -> SimBcm2835 {
    let config = Bcm2835Config {
        core_hz: reference_hz(board),
        chip_selects: chip_selects(board),
        poll_limit_ns,
    };
    let gpio = Bcm2835Gpio::new(gpio(board));
    Bcm2835::new(board.controller(), gpio, board.timer(), config)
}
