//! DW_apb_ssi on the boards that have one.

use barewire::controller::dw_ssi::{DwSsi, DwSsiConfig};
use barewire::controller::gpio::Rp1Gpio;
use barewire::controller::{ALWAYS_POLL, Controller, Interrupt, NoInterrupt};

use super::{SimInterrupt, chip_selects, gpio, reference_hz};
use crate::board::{Board, SimRegisters, SimTimer};

/// Its own line refuses a transfer that its FIFO cannot hold.
pub(super) const NATIVE_TAKES_ANY: bool = false;

pub(super) fn start<I: Interrupt + 'static>(
    board: &Board,
    poll_limit_ns: u32,
    interrupt: I,
) -> Box<dyn Controller> {
    Box::new(on_board(board, poll_limit_ns).with_interrupt(interrupt))
}

/// The shipped driver's body on a simulated board.
pub type SimDwSsi<I = NoInterrupt> = DwSsi<SimRegisters, Rp1Gpio<SimRegisters>, SimTimer, I>;

/// The board's SSI, polled.
///
/// # Panics
/// As [`any`](super::any).
#[must_use]
pub fn dw_ssi(board: &Board) -> SimDwSsi {
    on_board(board, ALWAYS_POLL)
}

/// [`dw_ssi`], with transfers that take longer than `poll_limit_ns` on the wire waiting by
/// interrupt.
///
/// # Panics
/// As [`dw_ssi`].
#[must_use]
pub fn dw_ssi_interrupt(board: &Board, poll_limit_ns: u32) -> SimDwSsi<SimInterrupt> {
    on_board(board, poll_limit_ns).with_interrupt(SimInterrupt::new(board))
}

fn on_board(board: &Board, poll_limit_ns: u32) -> SimDwSsi {
    let config = DwSsiConfig {
        reference_hz: reference_hz(board),
        chip_selects: chip_selects(board),
        // `num-cs` of RP1's SPI0 in Raspberry Pi's device tree.
        native_lines: 2,
        poll_limit_ns,
    };
    DwSsi::new(board.controller(), Rp1Gpio::new(gpio(board)), board.timer(), config)
}
