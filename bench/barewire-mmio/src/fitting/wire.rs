//! No chip: a wire from MOSI to MISO, for loopback tests.

use std::cell::RefCell;
use std::rc::Rc;

use barewire_sim::Board;
use barewire_sim::model::jumper::Jumper;

use super::Fitted;

fn put(board: &Board, cs: u8) {
    board.attach(cs, Rc::new(RefCell::new(Jumper)));
}

/// For the kernel's spi-loopback-test.
pub(super) fn jumper(board: &Board, cs: u8) -> Fitted {
    put(board, cs);
    Fitted::new(cs, "loopback", "linux,spi-loopback-test", 10_000_000)
}

/// For spidev, which binds to this part's name.
pub(super) fn spidev(board: &Board, cs: u8) -> Fitted {
    put(board, cs);
    Fitted::new(cs, "spidev", "rohm,dh2228fv", 20_000_000)
}
