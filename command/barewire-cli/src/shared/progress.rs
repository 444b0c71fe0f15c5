//! A progress bar on stderr, if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The most drawings a second: more is flicker, and costs the simulator time.
const DRAWINGS_PER_S: u8 = 10;

/// How bytes are shown.
pub(crate) const BYTES: &str =
    "{prefix:9} {wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec}, {eta} left";

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

    /// A bar that looks so.
    pub(crate) fn with_template(
        doing: &'static str,
        len: u64,
        silent: bool,
        template: &str,
    ) -> Self {
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

    /// Sets the number of units done.
    pub(crate) fn set(&self, done: u64) {
        self.bar.set_position(done);
    }

    /// Shows a text in the template's `msg`.
    pub(crate) fn say(&self, text: String) {
        self.bar.set_message(text);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
