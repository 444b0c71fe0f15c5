//! The figures not seen before, in a block of their own.

use std::fmt::Write as _;

use barewire_lab::held_out::{HeldOut, HeldOutScore};
use barewire_lab::report::{exact, number};

use super::table::wrapped;

/// The block.
pub(super) fn text(figures: &[HeldOut]) -> String {
    let score = HeldOutScore::of(figures);
    let mut text = format!(
        "\nFigures not seen before: of users, answered by lab/held-out/*.toml; no cost was fitted to them.\n\
         {} of {} are in the band; the median error is {:.1} %, the largest {:.1} %; the median width of a band {:.0} %.\n\
         {:<18}{:<4}{:>10}{:>10}{:>9}{:>16}{:>9}  {}\n",
        score.within,
        score.expressed,
        100.0 * score.median_error,
        100.0 * score.largest_error,
        100.0 * score.median_width,
        "id",
        "unit",
        "published",
        "simulated",
        "error",
        "low-high",
        "in band",
        "source"
    );
    for one in figures.iter().filter(|one| one.simulated.is_some()) {
        let band = one.simulated.unwrap_or_else(|| unreachable!("filtered"));
        let published = match one.published_range {
            Some([from, to]) => format!("{}-{}", exact(from), exact(to)),
            None => exact(one.published),
        };
        let _ = writeln!(
            text,
            "{:<18}{:<4}{published:>10}{:>10}{:>9}{:>16}{:>9}  {}",
            one.id,
            one.unit,
            number(band.used),
            one.error.map_or(String::new(), |error| format!("{:+.1} %", 100.0 * error)),
            format!("{}-{}", number(band.low), number(band.high)),
            if one.within == Some(true) { "yes" } else { "no" },
            one.source
        );
    }
    text.push_str("Not expressed:\n");
    for one in figures {
        let Some(why) = &one.not_expressed else { continue };
        let _ = writeln!(text, "{}", wrapped(&format!("{}: {why}", one.id), "    "));
    }
    text
}
