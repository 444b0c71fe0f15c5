//! Experiments of users, and figures not seen before, on the page.

use std::fmt::Write as _;

use super::chart::Colours;
use super::svg::escaped;
use super::{exact, number, tables, timeline};
use crate::band::Band;
use crate::held_out::{HeldOut, HeldOutScore};
use crate::messages::{MessageOutcome, OwnOutcome};
use crate::outcome::Explanation;

/// A user's experiment on the page.
#[derive(Clone, Debug)]
pub struct OwnOnPage {
    /// Its figures.
    pub outcome: OwnOutcome,
    /// A call of each message, taken apart.
    pub calls: Vec<Explanation>,
}

fn range(band: Band) -> String {
    format!("{} – {}", number(band.low), number(band.high))
}

fn percent(error: Option<f64>) -> String {
    error.map_or(String::new(), |error| format!("{:+.1} %", 100.0 * error))
}

fn yes(within: Option<bool>) -> String {
    within.map_or("", |within| if within { "yes" } else { "no" }).into()
}

/// The figures not seen before.
pub(super) fn held_out(html: &mut String, figures: &[HeldOut]) {
    if figures.is_empty() {
        return;
    }
    let score = HeldOutScore::of(figures);
    let _ = writeln!(
        html,
        "<h2 id=\"held-out\">Figures not seen before</h2>\n<p>Published for set-ups of users; no cost was fitted to them. {} of {} \
         are in the band, the median error is {:.1} %, the largest {:.1} %.</p>",
        score.within,
        score.expressed,
        100.0 * score.median_error,
        100.0 * score.largest_error
    );
    let row = |one: &HeldOut| {
        vec![
            one.id.clone(),
            one.unit.clone(),
            exact(one.published),
            one.simulated.map_or("-".into(), |band| number(band.used)),
            percent(one.error),
            one.simulated.map_or(String::new(), range),
            yes(one.within),
            one.not_expressed.clone().unwrap_or_else(|| one.source.clone()),
        ]
    };
    let heads = [
        "id",
        "unit",
        "published",
        "simulated",
        "error",
        "low – high",
        "in band",
        "source, or why not",
    ];
    let rows: Vec<_> = figures.iter().map(row).collect();
    html.push_str(&tables::table("Figures not seen before", &heads, 2, &rows));
}

/// Experiments of users.
pub(super) fn experiments(html: &mut String, all: &[OwnOnPage], colours: &Colours) {
    for (nth, OwnOnPage { outcome, calls }) in all.iter().enumerate() {
        let name = escaped(&outcome.name);
        let _ = writeln!(
            html,
            "<h2 id=\"own-{name}\">{}</h2>\n<p>{name}: {}, {}, {}, {}; simulated.</p>",
            escaped(&outcome.title),
            escaped(&outcome.board),
            escaped(&outcome.kernel),
            outcome.client,
            outcome.driver
        );
        for (place, message) in outcome.messages.iter().enumerate() {
            let _ = writeln!(html, "<h3>{}</h3>\n{}", escaped(&message.name), table(message));
            if let Some(call) = calls.get(place).filter(|call| !call.timeline.is_empty()) {
                let drawn = timeline::draw(&format!("own-{nth}-{place}"), call, colours);
                let _ = writeln!(
                    html,
                    "<details><summary>a call: timeline and steps</summary><figure>{drawn}</figure>{}</details>",
                    tables::steps(call)
                );
            }
        }
    }
}

fn table(message: &MessageOutcome) -> String {
    let rows: Vec<_> = message
        .figures
        .iter()
        .map(|one| {
            vec![
                one.figure.into(),
                one.unit.into(),
                number(one.simulated.used),
                range(one.simulated),
                one.published.map_or(String::new(), exact),
                percent(one.error),
                yes(one.within),
                one.barewire.map_or("-".into(), |band| number(band.used)),
                one.barewire.map_or(String::new(), range),
            ]
        })
        .collect();
    let heads = [
        "figure",
        "unit",
        "simulated",
        "low – high",
        "published",
        "error",
        "in band",
        "barewire",
        "low – high",
    ];
    let caption = format!("{}, {}, {}", message.name, message.waiting, message.regime);
    tables::table(&caption, &heads, 2, &rows)
}
