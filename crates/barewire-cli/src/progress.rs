//! A progress bar on stderr, where somebody sits in front of it.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// At most so many drawings a second: more is flicker, and costs the simulator time.
const DRAWINGS_PER_S: u8 = 10;

const TEMPLATE: &str =
    "{prefix:9} {wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec}, {eta} left";

/// The bar; removed when dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar of `bytes` for `doing`; none if `silent` or if stderr is no terminal.
    pub(crate) fn new(doing: &'static str, bytes: u64, silent: bool) -> Self {
        let target = if silent {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(DRAWINGS_PER_S)
        };
        let bar = ProgressBar::with_draw_target(Some(bytes), target).with_prefix(doing);
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        // An erase of the whole chip is one command: without ticks the bar would look dead.
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(500));
        }
        Self { bar }
    }

    /// So many bytes are done.
    pub(crate) fn set(&self, done: u64) {
        self.bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
