//! A simulated board's time, which goes on with the clock on the wall while programs use the board.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use barewire_open::SimBoard;

use crate::shared::session::Session;

/// The time of one bus's board, if it is simulated.
pub(super) struct Clock<'s> {
    board: Option<&'s SimBoard>,
    /// When the last call ended.
    last: Cell<Instant>,
}

impl<'s> Clock<'s> {
    /// The clocks of these buses, in their order.
    pub(super) fn of_all(sessions: &[(&str, &'s Session)]) -> Vec<Rc<Self>> {
        let of_one = |(_, session): &(&str, &'s Session)| {
            let (board, last) = (session.open.board(), Cell::new(Instant::now()));
            Rc::new(Self { board, last })
        };
        sessions.iter().map(of_one).collect()
    }

    /// Runs `call`. On a simulated board, first lets as much virtual time pass as real time has passed
    /// since the last call; the call itself takes its own virtual time.
    pub(super) fn during<T>(&self, call: impl FnOnce() -> T) -> T {
        if let Some(board) = self.board {
            let idle = self.last.get().elapsed().as_nanos();
            board.idle_ns(u64::try_from(idle).unwrap_or(u64::MAX));
        }
        let result = call();
        self.last.set(Instant::now());
        result
    }
}
