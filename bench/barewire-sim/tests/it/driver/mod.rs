//! A driver on a simulated board, in each of the ways in which its caller may wait.

mod by_handler;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire_sim::Board;

use by_handler::ByHandler;

/// How the end of a transfer is awaited that takes longer than a limit in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waits {
    Polling,
    Asleep(u32),
    ByHandler(u32),
}

/// Brings a driver up.
pub(crate) trait Driver {
    /// Polled, on a bus.
    fn polled(&self, board: &Board) -> Bus<impl Controller>;

    /// With transfers that take longer than `limit_ns` on the wire waiting by interrupt.
    fn interrupted(&self, board: &Board, limit_ns: u32) -> impl Controller;

    /// Puts the driver on `board` and runs `judge` with a bus over it; returns how often the block's
    /// handler was entered, too.
    fn on_bus<T>(
        &self,
        board: &Board,
        waits: Waits,
        judge: impl FnOnce(&Bus<dyn Controller + '_>) -> T,
    ) -> (T, u64) {
        match waits {
            Waits::Polling => (judge(&self.polled(board)), 0),
            Waits::Asleep(limit_ns) => (judge(&Bus::new(self.interrupted(board, limit_ns))), 0),
            Waits::ByHandler(limit_ns) => {
                let inner = self.interrupted(board, limit_ns);
                let bus = Bus::new(ByHandler { inner, board: board.clone(), interrupts: 0 });
                let judged = judge(&bus);
                (judged, bus.into_inner().interrupts)
            }
        }
    }
}
