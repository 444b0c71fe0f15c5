//! The page's tables and lists: the content of each chart for readers who cannot see it, and facts that no chart
//! shows.

use std::fmt::Write as _;

use super::chart::{exact, number, shown_in};
use super::svg::escaped;
use crate::outcome::{Explanation, Outcome, Row, Sweep};
use crate::rules::Rules;
use crate::score::{Score, ThreadScore};

/// A table of a caption, heads and rows; the first cell of a row is its head. Columns from `numbers` on hold numbers.
#[must_use]
pub fn table(caption: &str, heads: &[&str], numbers: usize, rows: &[Vec<String>]) -> String {
    let class = |nth: usize| if nth >= numbers { " class=\"n\"" } else { "" };
    let mut html =
        format!("<div class=\"scroll\"><table><caption>{}</caption><thead><tr>", escaped(caption));
    for (nth, head) in heads.iter().enumerate() {
        let _ = write!(html, "<th scope=\"col\"{}>{}</th>", class(nth), escaped(head));
    }
    html += "</tr></thead><tbody>\n";
    for row in rows {
        html += "<tr>";
        for (nth, cell) in row.iter().enumerate() {
            let cell = escaped(cell);
            let _ = match nth {
                0 => write!(html, "<th scope=\"row\">{cell}</th>"),
                _ => write!(html, "<td{}>{cell}</td>", class(nth)),
            };
        }
        html += "</tr>\n";
    }
    html + "</tbody></table></div>\n"
}

/// All figures of a thread.
pub(super) fn figures(rows: &[&Row]) -> String {
    let one = |value: Option<f64>| value.map_or("-".into(), number);
    let range = |ends: Option<(f64, f64)>| {
        ends.map_or("-".into(), |(low, high)| format!("{} – {}", number(low), number(high)))
    };
    let row = |row: &&Row| {
        vec![
            format!("{}{}", row.id, if row.unexplained.is_some() { " †" } else { "" }),
            row.kind.name().into(),
            row.unit.clone(),
            exact(row.published),
            one(row.replayed),
            row.error.map_or("-".into(), |error| format!("{:+.1} %", 100.0 * error)),
            range(row.low.zip(row.high)),
            one(row.barewire.map(|band| band.used)),
            range(row.barewire.map(|band| (band.low, band.high))),
        ]
    };
    let heads = [
        "id",
        "kind",
        "unit",
        "published",
        "simulated",
        "error",
        "low – high",
        "barewire",
        "low – high",
    ];
    table(
        "Published, simulated, and barewire simulated on the same work",
        &heads,
        3,
        &rows.iter().map(row).collect::<Vec<_>>(),
    )
}

/// The score of every thread beside each simple predictor's.
pub(super) fn score(score: &Score) -> String {
    let share = |value: f64| if value.is_finite() { format!("{value:.3}") } else { "-".into() };
    let row = |name: &str, row: &ThreadScore, covered: Option<&crate::score::Coverage>| {
        vec![
            name.to_owned(),
            row.kind.name().into(),
            if row.beats { "yes".into() } else { format!("no: {}", row.strongest.name) },
            row.effects.to_string(),
            share(row.lab),
            share(row.ratio),
            share(row.constant),
            row.formula.map_or("-".into(), share),
            covered.map_or("-".into(), |covered| format!("{} of {}", covered.covered, covered.of)),
            covered
                .and_then(|covered| covered.median_width)
                .map_or("-".into(), |width| format!("{:.0} %", 100.0 * width)),
        ]
    };
    let mut rows: Vec<_> = score
        .threads
        .iter()
        .map(|thread| row(&thread.thread, thread, score.coverage_by_thread.get(&thread.thread)))
        .collect();
    rows.push(row("all predicted", &score.all, Some(&score.coverage)));
    rows.push(row("with fitted", &score.with_fitted, None));
    let heads = [
        "thread",
        "kind",
        "lab beats the strongest",
        "effects",
        "lab",
        "ratio",
        "constant",
        "formula",
        "covered",
        "width",
    ];
    table(
        "Σ |predicted − published difference| / Σ |published difference|: 0 is perfect, 1 is “nothing changes”",
        &heads,
        3,
        &rows,
    )
}

/// Figures of other boards by costs that were fitted to one board's.
pub(super) fn across_boards(outcome: &Outcome) -> String {
    let row = |(row, value, error): (&Row, f64, f64)| {
        let error = format!("{:+.1} %", 100.0 * error);
        vec![row.id.clone(), row.unit.clone(), number(row.published), number(value), error]
    };
    let rows: Vec<_> = outcome.across_boards().map(row).collect();
    table(
        "Other boards, by clock alone, when only jander-rfc’s board is fitted to",
        &["figure", "unit", "published", "simulated", "error"],
        2,
        &rows,
    )
}

/// The changes that should do nothing.
pub(super) fn nulls(score: &Score) -> String {
    let row = |null: &crate::score::NullCheck| {
        vec![
            null.after.clone(),
            if null.within { "within".into() } else { "too far".into() },
            null.predicted.map_or("not replayed".into(), number),
            number(null.bound),
        ]
    };
    let rows: Vec<_> = score.nulls.iter().map(row).collect();
    table(
        "Changes that should do nothing",
        &["figure after the change", "", "predicted change", "at most"],
        2,
        &rows,
    )
}

/// A figure's steps.
pub(super) fn steps(explanation: &Explanation) -> String {
    let sum = explanation.sum_us.max(f64::MIN_POSITIVE);
    let row = |step: &crate::outcome::StepCost| {
        vec![
            step.step.clone(),
            if step.removable { "yes".into() } else { String::new() },
            format!("{:.3}", step.us),
            format!("{:.1} %", 100.0 * step.us / sum),
            number(step.times),
            number(step.instructions),
            number(step.reads),
            number(step.writes),
            number(step.wakes),
        ]
    };
    let mut rows: Vec<_> = explanation.steps.iter().map(row).collect();
    rows.push(vec![
        "sum".into(),
        String::new(),
        format!("{:.3}", explanation.sum_us),
        "100 %".into(),
    ]);
    let heads = [
        "step",
        "can be switched off",
        "us",
        "share",
        "times",
        "instructions",
        "reads",
        "writes",
        "wakes",
    ];
    let caption = format!("{}: the figure is {}", explanation.id, explanation.relation);
    table(&caption, &heads, 2, &rows)
}

/// A sweep.
pub(super) fn sweep(sweep: &Sweep) -> String {
    let last = sweep.rows.last().map_or(0.0, |row| row.0);
    let (unit, size) = shown_in(&sweep.unit, last);
    let first = format!("{}, {unit}", sweep.request.parameter);
    let heads: Vec<&str> =
        [first.as_str()].into_iter().chain(sweep.columns.iter().map(String::as_str)).collect();
    let row = |(value, figures): &(f64, Vec<f64>)| {
        [value / size].iter().chain(figures).map(|value| number(*value)).collect::<Vec<_>>()
    };
    let rows: Vec<_> = sweep.rows.iter().map(row).collect();
    table(&format!("{}, simulated", sweep.value_unit), &heads, 1, &rows)
}

/// The assumptions about facts that a thread does not state.
pub(super) fn assumed(rules: &Rules) -> String {
    let row = |assumed: &crate::rules::Assumption| {
        vec![
            assumed.thread.clone(),
            assumed.what.clone(),
            assumed.value.clone(),
            assumed.why.clone(),
        ]
    };
    let rows: Vec<_> = rules.assumed.iter().map(row).collect();
    table("What the threads do not say", &["thread", "what", "assumed", "why"], usize::MAX, &rows)
}

/// The figures that costs may be fitted to.
pub(super) fn fit_set(rules: &Rules) -> String {
    let row = |(thread, ids): (&String, &Vec<String>)| vec![thread.clone(), ids.join(", ")];
    let rows: Vec<_> = rules.fit_set.iter().map(row).collect();
    table(
        "The only published figures that a cost may be fitted to",
        &["thread", "figures"],
        usize::MAX,
        &rows,
    )
}
