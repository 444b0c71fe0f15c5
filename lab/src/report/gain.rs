//! What measures save, as a page: for each message a bar of today's time and one after each measure that is taken.

use std::fmt::Write as _;

use super::chart::{self, Colours, number};
use super::svg::escaped;
use super::{style, tables};
use crate::band::Band;
use crate::gain::{GainOutcome, GroupTime, MeasureGain, MessageGain, Verdict};
use crate::outcome::{Explanation, StepCost};

/// A bar of the chart. Bars whose ids have the same part before the last `-` share a scale.
fn bar(id: String, groups: &[GroupTime]) -> Explanation {
    let step = |group: &GroupTime| StepCost {
        step: group.group.into(),
        us: group.us,
        times: 1.0,
        instructions: 0.0,
        reads: 0.0,
        writes: 0.0,
        wakes: 0.0,
        removable: false,
    };
    let sum_us = groups.iter().map(|group| group.us).sum();
    Explanation {
        id,
        unit: "us".into(),
        published: None,
        replayed: sum_us,
        without: Vec::new(),
        steps: groups.iter().map(step).collect(),
        sum_us,
        relation: "sum".into(),
        timeline: Vec::new(),
        moves: Vec::new(),
        unexplained: None,
    }
}

/// Today's bar, and one for each measure that is taken.
fn bars(message: &MessageGain) -> Vec<Explanation> {
    let name = &message.name;
    // The measure's own hyphens would make families.
    let after = |one: &MeasureGain| {
        bar(format!("{name}-and {}", one.measure.replace('-', " ")), &one.groups)
    };
    let taken = message.measures.iter().filter(|one| one.together_us.is_some()).map(after);
    [bar(format!("{name}-today"), &message.groups)].into_iter().chain(taken).collect()
}

fn range(band: Band) -> String {
    format!("{} ({} – {})", number(band.used), number(band.low), number(band.high))
}

/// A measure's effect alone, in words.
fn alone(one: &MeasureGain) -> String {
    let word = match one.verdict {
        Verdict::Saves => "saves",
        Verdict::AtMost => "at most",
        Verdict::Little => "little",
        Verdict::Costs => "costs",
        Verdict::NotHere => return format!("not here: {}", one.why.as_deref().unwrap_or_default()),
    };
    format!("{word}, {:.0} %", one.saves_percent.unwrap_or_default())
}

fn table(message: &MessageGain) -> String {
    let row = |one: &MeasureGain| {
        let source = one.source.as_ref().map_or(String::new(), |source| format!(" ({source})"));
        vec![
            one.measure.into(),
            format!("{}{source}", one.what),
            alone(one),
            one.saves_us.map_or("-".into(), range),
            match (one.together_us, &one.not_taken) {
                (Some(us), _) => range(us),
                (None, why) => format!("not taken: {}", why.as_deref().unwrap_or_default()),
            },
        ]
    };
    let rows: Vec<_> = message.measures.iter().map(row).collect();
    let heads = ["measure", "what", "alone", "saves alone, us", "the time with those above, us"];
    tables::table(&format!("{}: measures", message.name), &heads, 3, &rows)
}

/// The page: one file that needs no other.
#[must_use]
pub fn gain_html(outcome: &GainOutcome) -> String {
    let GainOutcome { title, board, kernel, client, driver, little_percent, messages, .. } =
        outcome;
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>barewire: what measures save</title>\
         <link rel=\"icon\" href=\"data:,\"><style>{}{}{}</style></head><body>\n\
         <header><h1>{}</h1>\n<p>{}, {}, {client}, {driver}. <strong>Simulated</strong>: nothing was measured for this page. A saving \
         below {little_percent} % is called little. In parentheses: over the sets of costs that the lab has.</p></header>\n",
        style::COLOURS,
        style::CHARTS,
        style::PAGE,
        escaped(title),
        escaped(board),
        escaped(kernel),
    );
    let all: Vec<Vec<Explanation>> = messages.iter().map(bars).collect();
    let colours = Colours::of(all.iter().flatten());
    for (nth, (message, bars)) in messages.iter().zip(&all).enumerate() {
        let published = message
            .published_us
            .map_or(String::new(), |us| format!("; published {} us", number(us)));
        let _ = writeln!(
            html,
            "<h2>{}</h2>\n<p>{}, {}: {} us today{published}.</p>",
            escaped(&message.name),
            message.waiting,
            message.regime,
            range(message.today_us)
        );
        let refs: Vec<&Explanation> = bars.iter().collect();
        let label = format!("{}: today, and with each measure added", message.name);
        let drawn = chart::stack::draw([&format!("gain-{nth}"), &label], &refs, &colours);
        let _ = writeln!(html, "<figure>{drawn}</figure>{}", table(message));
    }
    html + "</body></html>\n"
}
