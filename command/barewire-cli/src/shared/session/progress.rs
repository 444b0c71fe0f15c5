//! Progress of bytes over a bus, in the clock of the summary.

use barewire_sim::Board;
use barewire_sim::chip::Ps;

use super::Session;
use crate::shared::progress::{BYTES, Progress};
use crate::shared::text::figure;

/// On a simulated board the pace is that of the board's time.
const SIMULATED: &str = "{prefix:9} {wide_bar} {bytes}/{total_bytes} {msg}, {eta} left here";

/// A bar of bytes that go over a session's bus.
#[derive(Debug)]
pub(crate) struct BusProgress<'s> {
    progress: Progress,
    /// A simulated board, and its time at the begin.
    simulated: Option<(&'s Board, Ps)>,
}

impl<'s> BusProgress<'s> {
    /// A bar of `bytes` for `doing`.
    pub(crate) fn new(session: &'s Session, doing: &'static str, bytes: u64) -> Self {
        let board = session.open.board().map(|simulated| &simulated.board);
        let template = if board.is_some() { SIMULATED } else { BYTES };
        Self {
            progress: Progress::with_template(doing, bytes, session.silent, template),
            simulated: board.map(|board| (board, board.engine().now_ps())),
        }
    }

    /// Sets how many units are done.
    pub(crate) fn set(&self, done: u64) {
        if let Some((board, begun)) = self.simulated {
            let seconds = (board.engine().now_ps() - begun) as f64 / 1e12;
            let pace = figure::rate(done as f64 / seconds.max(f64::MIN_POSITIVE));
            self.progress.say(format!("{pace} of virtual time"));
        }
        self.progress.set(done);
    }
}
