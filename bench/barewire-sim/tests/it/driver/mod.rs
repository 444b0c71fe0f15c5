//! A driver on a simulated board, in each of the ways in which its caller may wait.

mod by_handler;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::middleware::Pointer;
use barewire_sim::Board;

use crate::blocks::Start;
use by_handler::ByHandler;

/// The way to wait for the end of a transfer that takes longer than a limit in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waits {
    Polling,
    Asleep(u32),
    ByHandler(u32),
}

/// All transfers awaited in each way.
pub(crate) const EACH: [Waits; 3] = [Waits::Polling, Waits::Asleep(0), Waits::ByHandler(0)];

/// Starts the driver on `board` and runs `judge` with a bus over it; also returns how often the block's
/// handler was entered.
pub(crate) fn on_bus<T>(
    start: Start,
    board: &Board,
    waits: Waits,
    judge: impl FnOnce(&Bus<dyn Controller + '_>) -> T,
) -> (T, u64) {
    match waits {
        Waits::Polling => (judge(&Bus::new(Pointer(start(board, None)))), 0),
        Waits::Asleep(limit_ns) => (judge(&Bus::new(Pointer(start(board, Some(limit_ns))))), 0),
        Waits::ByHandler(limit_ns) => {
            let inner = Pointer(start(board, Some(limit_ns)));
            let bus = Bus::new(ByHandler { inner, board: board.clone(), interrupts: 0 });
            let judged = judge(&bus);
            (judged, bus.into_inner().interrupts)
        }
    }
}
