//! A progress bar on stderr, if that is a terminal.

use std::time::Duration;

use barewire_sim::Board;
use barewire_sim::chip::Ps;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::shared::session::Session;
use crate::shared::text::figure;

/// At most so many drawings a second: more is flicker, and costs the simulator time.
const DRAWINGS_PER_S: u8 = 10;

const TEMPLATE: &str =
    "{prefix:9} {wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec}, {eta} left";

/// On a simulated board the pace is that of the board's time, as in the summary.
const SIMULATED: &str = "{prefix:9} {wide_bar} {bytes}/{total_bytes} {msg}, {eta} left here";

const COUNTING: &str = "{prefix:9} {wide_bar} {human_pos}/{human_len}, {eta} left";

/// The bar; removed when dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar of `count` items for `doing`; none if `silent` or if stderr is no terminal.
    pub(crate) fn counting(doing: &'static str, count: u64, silent: bool) -> Self {
        Self::with_template(doing, count, silent, COUNTING)
    }

    fn with_template(doing: &'static str, len: u64, silent: bool, template: &str) -> Self {
        let target = if silent {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(DRAWINGS_PER_S)
        };
        let bar = ProgressBar::with_draw_target(Some(len), target).with_prefix(doing);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        // An erase of the whole chip is one command: without ticks the bar would look dead.
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(500));
        }
        Self { bar }
    }

    /// So many are done.
    pub(crate) fn set(&self, done: u64) {
        self.bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

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
        let template = if board.is_some() { SIMULATED } else { TEMPLATE };
        Self {
            progress: Progress::with_template(doing, bytes, session.silent, template),
            simulated: board.map(|board| (board, board.engine().now_ps())),
        }
    }

    /// So many are done.
    pub(crate) fn set(&self, done: u64) {
        if let Some((board, begun)) = self.simulated {
            let seconds = (board.engine().now_ps() - begun) as f64 / 1e12;
            let pace = figure::rate(done as f64 / seconds.max(f64::MIN_POSITIVE));
            self.progress.bar.set_message(format!("{pace} of virtual time"));
        }
        self.progress.set(done);
    }
}
