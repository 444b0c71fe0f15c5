//! The lab's results as drawings and as one page of HTML, without scripts and without a network.
//!
//! *Read first*: [`outcome`](crate::outcome), which holds all that is drawn.
//!
//! | module | has |
//! |---|---|
//! | `html`, `tables` | the page |
//! | `chart` | bars with whiskers, stacked steps, lines over a parameter, the score |
//! | `own` | experiments of users |
//! | `gain` | what measures save, a page of its own |
//! | `measured` | what `barewire measure` found, a page of its own |
//! | `timeline` | one occurrence of a figure, lane by lane |
//! | [`svg`], [`style`] | rectangles, lines, text; colours for light and dark: other pages use them too |
//! | `threads` | the source threads, by name |
//!
//! Published figures are called published; what barewire's simulator says is called simulated, never measured. Only the page of
//! `measured` has measured figures.

mod chart;
mod gain;
mod html;
mod measured;
mod own;
pub mod style;
pub mod svg;
mod tables;
#[cfg(test)]
mod tests;
pub mod threads;
mod timeline;

pub use chart::{Scale, exact, names_of_ticks, number, shown_in};
pub use gain::gain_html;
pub use html::{Page, html};
pub use measured::measured_html;
pub use own::OwnOnPage;
pub use tables::table;
pub use timeline::lanes;

use crate::outcome::{Explanation, Sweep};

/// The figures that the page takes apart: the subject of each thread, before and after.
pub const TELLING: [&str; 12] = [
    "jander-rfc-cs2clk-A",
    "jander-rfc-cs2clk-C",
    "jander-rfc-irq-A",
    "jander-rfc-irq-C",
    "ellis-stock-10",
    "ellis-patched-10",
    "ranjan-32M-unmap_before",
    "ranjan-32M-unmap_after",
    "jander-v2-dd-vanilla-irq",
    "jander-v2-dd-both-irq",
    "pitchen-512-queue",
    "pitchen-512-tasklet",
];

/// A figure's timeline as an SVG file.
#[must_use]
pub fn timeline_svg(explanation: &Explanation) -> String {
    timeline::file("timeline", explanation)
}

/// A sweep as an SVG file.
#[must_use]
pub fn sweep_svg(sweep: &Sweep) -> String {
    chart::lines::file("sweep", sweep)
}
