//! A progress bar on stderr, if that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The most drawings a second: more is flicker.
const DRAWINGS_PER_S: u8 = 10;

const BYTES: &str =
    "{prefix:9} {wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec}, {eta} left";

const COUNT: &str = "{prefix:9} {wide_bar} {human_pos}/{human_len}, {eta} left";

/// The bar; removed when dropped.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar of `bytes` for `doing`; none if `silent` or if stderr is no terminal.
    pub(crate) fn bytes(doing: &'static str, bytes: u64, silent: bool) -> Self {
        Self::new(doing, bytes, silent, BYTES)
    }

    /// Shows progress in `count` items instead of bytes.
    pub(crate) fn count(doing: &'static str, count: u64, silent: bool) -> Self {
        Self::new(doing, count, silent, COUNT)
    }

    fn new(doing: &'static str, len: u64, silent: bool, template: &str) -> Self {
        let target = if silent {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(DRAWINGS_PER_S)
        };
        let bar = ProgressBar::with_draw_target(Some(len), target).with_prefix(doing);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Sets the number of units done.
    pub(crate) fn set(&self, done: u64) {
        self.0.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
