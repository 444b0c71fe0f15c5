//! What the fit is worth: what `barewire lab fit` finds in a minute, as the lab keeps it.

use std::fmt::Write as _;

use barewire_lab::Outcome;
use barewire_lab::report::number;

/// Scores of other fits, and other boards by one board's costs.
pub(super) fn text(outcome: &Outcome) -> String {
    let checks = &outcome.checks;
    let mut text = format!("\nWithout any fit the score of all is {:.3}", checks.unfitted);
    let sorted = {
        let mut scores = checks.shuffled.clone();
        scores.sort_by(f64::total_cmp);
        scores
    };
    if let [lowest, .., highest] = sorted[..] {
        let _ = write!(text, "; fitted to figures dealt out anew, {lowest:.3} to {highest:.3}");
    }
    text += ".\nScores of threads whose own figures are not fitted to:\n";
    let left_out: Vec<String> =
        checks.leave_one_out.iter().map(|(thread, score)| format!("{thread} {score:.3}")).collect();
    text += &left_out.join(", ");
    text += ".\n\nOther boards, by clock alone, when only jander-rfc's board is fitted to:\n";
    for row in &outcome.figures {
        let Some(&value) = checks.across_boards.get(&row.id) else { continue };
        let error = 100.0 * (value - row.published) / row.published;
        let _ = writeln!(
            text,
            "{:<27}{:<5}{:>10}{:>10}{:>9}",
            row.id,
            row.unit,
            number(row.published),
            number(value),
            format!("{error:+.1} %")
        );
    }
    text
}
