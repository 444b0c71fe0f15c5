//! A driver on a simulated board, in each of the ways in which its caller may wait.

mod by_handler;

use std::task::Poll;

use barewire::bus::Bus;
use barewire::controller::{Controller, Program, Unfinished};
use barewire::middleware::Layer;
use barewire::spi::Transfer;
use barewire_sim::Board;

use crate::blocks::Start;
use by_handler::ByHandler;

/// How the end of a transfer is awaited that takes longer than a limit in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waits {
    Polling,
    Asleep(u32),
    ByHandler(u32),
}

/// All transfers awaited in each way.
pub(crate) const EACH: [Waits; 3] = [Waits::Polling, Waits::Asleep(0), Waits::ByHandler(0)];

/// A driver of any type.
pub(crate) struct Driven(pub Box<dyn Controller>);

impl Layer for Driven {
    type Inner = dyn Controller;

    fn inner(&self) -> &Self::Inner {
        &*self.0
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        &mut *self.0
    }

    fn run_layer(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        self.0.run(program, message)
    }

    fn start_layer(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        self.0.start(program, message)
    }
}

/// Starts the driver on `board` and runs `judge` with a bus over it; also returns how often the block's
/// handler was entered.
pub(crate) fn on_bus<T>(
    start: Start,
    board: &Board,
    waits: Waits,
    judge: impl FnOnce(&Bus<dyn Controller + '_>) -> T,
) -> (T, u64) {
    match waits {
        Waits::Polling => (judge(&Bus::new(Driven(start(board, None)))), 0),
        Waits::Asleep(limit_ns) => (judge(&Bus::new(Driven(start(board, Some(limit_ns))))), 0),
        Waits::ByHandler(limit_ns) => {
            let inner = Driven(start(board, Some(limit_ns)));
            let bus = Bus::new(ByHandler { inner, board: board.clone(), interrupts: 0 });
            let judged = judge(&bus);
            (judged, bus.into_inner().interrupts)
        }
    }
}
