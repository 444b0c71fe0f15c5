//! The checks of the fit. `barewire lab fit` computes them in a minute; the lab keeps their
//! results.

use std::fmt::Write as _;

use barewire_lab::Outcome;
use barewire_lab::report::number;

/// Scores of other fits, and other boards by one board's costs.
pub(super) fn text(outcome: &Outcome) -> String {
    let checks = &outcome.checks;
    let (lowest, highest) = checks.shuffled_range();
    let mut text = format!(
        "\nWithout any fit the score of all is {:.3}; fitted to figures dealt out anew, {lowest:.3} to {highest:.3}.\n\
         Scores of threads whose own figures are not fitted to:\n{}.\n\n\
         Other boards, by clock alone, when only jander-rfc's board is fitted to:\n",
        checks.unfitted,
        checks.without_each()
    );
    for (row, value, error) in outcome.across_boards() {
        let _ = writeln!(
            text,
            "{:<27}{:<5}{:>10}{:>10}{:>9}",
            row.id,
            row.unit,
            number(row.published),
            number(value),
            format!("{:+.1} %", 100.0 * error)
        );
    }
    text
}
