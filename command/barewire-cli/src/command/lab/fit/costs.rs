//! Fitted costs as text.

use std::fmt::Write as _;

use barewire_lab::fit::{Fit, Residual};
use barewire_lab::report::number;

/// Costs before and after the fit, the remaining ranges, and the score on held-out threads.
pub(super) fn text(fit: &Fit) -> String {
    let range = |low: f64, high: f64| format!("{}-{}", number(low), number(high));
    let name = fit.costs.iter().map(|cost| cost.name.chars().count()).max().unwrap_or(0).max(4) + 2;
    let mut text = format!(
        "{:<name$}{:<14}{:>10}{:>18}{:>12}{:>18}\n",
        "cost", "unit", "before", "low-high", "fitted", "low-high"
    );
    // A cost that no figure depends on keeps its value.
    let (moved, still): (Vec<_>, Vec<_>) =
        fit.costs.iter().partition(|cost| cost.value != cost.prior);
    for cost in moved {
        let _ = writeln!(
            text,
            "{:<name$}{:<14}{:>10}{:>18}{:>12}{:>18}",
            cost.name,
            cost.unit,
            number(cost.prior),
            range(cost.prior_low, cost.prior_high),
            number(cost.value),
            range(cost.low, cost.high)
        );
    }
    if !still.is_empty() {
        let _ = writeln!(text, "and {} that no such figure depends on", still.len());
    }
    residuals(&mut text, "residuals: id", &fit.residuals);
    if !fit.leave_one_out.is_empty() {
        text.push_str("\nscore of a thread when its own figures are not fitted to\n");
    }
    for (thread, score) in &fit.leave_one_out {
        let _ = writeln!(text, "  {thread:<28}{score:>12.3}");
    }
    if !fit.across_boards.is_empty() {
        text.push_str("\nother boards, by clock alone, when only jander-rfc's board is fitted to");
        residuals(&mut text, "id", &fit.across_boards);
    }
    if !fit.shuffled.is_empty() {
        let scores: Vec<String> = fit.shuffled.iter().map(|score| format!("{score:.3}")).collect();
        let _ = writeln!(
            text,
            "\nscores of fits to shuffled figures, which must not be good: {}",
            scores.join(", ")
        );
    }
    text
}

/// The costs as a file for `--costs`.
pub(super) fn file(fit: &Fit) -> String {
    let mut text = String::from(
        "# Costs of `barewire lab fit`, for --costs of run, explain, sweep, gain and report. value is used; low and high are what is left of a\n\
         # cost's range. What is left out is the lab's own.\n",
    );
    for cost in &fit.costs {
        let (name, unit, value) = (&cost.name, &cost.unit, cost.value);
        let (low, high) = (cost.low.min(value), cost.high.max(value));
        let _ = write!(
            text,
            "\n[[cost]] # {unit}\nname = {name:?}\nvalue = {value:?}\nlow = {low:?}\nhigh = {high:?}\n"
        );
    }
    text
}

fn residuals(text: &mut String, head: &str, residuals: &[Residual]) {
    let _ = writeln!(text, "\n{head:<30}{:>12}{:>12}{:>10}", "given", "simulated", "error");
    for residual in residuals {
        let _ = writeln!(
            text,
            "{:<30}{:>12}{:>12}{:>10}",
            residual.id,
            number(residual.published),
            number(residual.replayed),
            format!("{:+.1} %", 100.0 * residual.error)
        );
    }
}
