//! What an exchange costs, and where its clocks lie under its chip select.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::spi::{Settings, Transfer};
use barewire_sim::Board;
use barewire_sim::bring_up::Charged;
use barewire_sim::model::echo::Echo;

use crate::second_message::{self, Cost};

/// A device's second exchange. Nanoseconds from CS to the first cell, to the last one's end, to CS.
pub(crate) struct Selected {
    pub speed_hz: u32,
    pub cost: Cost,
    pub lead_ns: u64,
    pub clocks_ns: u64,
    pub lag_ns: u64,
}

/// Exchanges `bytes` with a chip on `board`, by the driver that `polled` makes once it is there.
pub(crate) fn exchange<C: Controller>(
    board: &Board,
    polled: impl FnOnce(&Board) -> C,
    settings: &Settings,
    bytes: usize,
) -> Selected {
    assert!(board.attach(settings.chip_select, Rc::new(RefCell::new(Echo::default()))));
    let bus = Bus::new(Charged::new(polled(board), board.clone()));
    let device = bus.device(settings).expect("opens");
    let tx = vec![0x5a; bytes];
    let mut rx = vec![0; bytes];
    let mut message = [Transfer::exchange(&tx, &mut rx)];
    let cost = second_message::cost(board, &device, &mut message, || board.start_selections());
    let [it] = board.take_selections()[..] else { panic!("one selection") };
    Selected {
        speed_hz: device.effective().speed_hz,
        cost,
        lead_ns: (it.first_clock_at - it.selected_at) / 1_000,
        clocks_ns: (it.last_clock_at - it.first_clock_at) / 1_000,
        lag_ns: (it.deselected_at - it.last_clock_at) / 1_000,
    }
}
