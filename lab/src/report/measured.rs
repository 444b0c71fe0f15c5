//! What `barewire measure` found, as a page: predicted beside measured for each figure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::chart::{Scale, number, shown_in};
use super::svg::{Anchor, HEAD, Svg, escaped, fitted, width_of};
use super::{style, tables};
use crate::band::Band;
use crate::measured::{Condition, Measured, MeasuredFigure, Origin};

const WIDTH: f64 = 680.0;
const BAR: f64 = 9.0;
const PITCH: f64 = 13.0;

/// The group of a figure: those of one group share a scale.
fn group(id: &str) -> &'static str {
    match id.split('-').next().unwrap_or_default() {
        "register" | "gpio" | "timer" => "registers",
        "futex" | "wake" | "hand" | "irq" => "threads",
        _ => "messages",
    }
}

fn range(band: Band) -> String {
    format!("{} ({} – {})", number(band.used), number(band.low), number(band.high))
}

/// A chart of figures that share a scale: for each the predicted bar, and the measured one below it.
fn chart(id: &str, label: &str, figures: &[&MeasuredFigure]) -> String {
    let ends =
        |figure: &&MeasuredFigure| [figure.ns.high, figure.predicted.map_or(0.0, |p| p.high)];
    let top = figures.iter().flat_map(ends).fold(0.0, f64::max);
    let (unit, size) = shown_in("ns", top);
    let mut svg = Svg::new(id, label, WIDTH);
    svg.text(0.0, 12.0, Anchor::Start, "head", &fitted(label, WIDTH - 60.0, HEAD));
    svg.text(WIDTH - 1.0, 12.0, Anchor::End, "dim", &unit);
    let room = width_of("99,999", 11.0) + 12.0;
    let scale = Scale::linear([0.0, top], [0.0, WIDTH - room]);
    let mut y = 22.0;
    for figure in figures {
        let about = format!("{}, {}", figure.id, figure.condition.name());
        svg.text(0.0, y + 10.0, Anchor::Start, "dim", &fitted(&about, WIDTH, 11.0));
        y += 16.0;
        let ns = &figure.ns;
        let measured = Band { used: ns.median, low: ns.low, high: ns.high };
        let bars =
            [("replayed", "predicted", figure.predicted), ("barewire", "measured", Some(measured))];
        for (class, name, band) in bars {
            let Some(Band { used, low, high }) = band else { continue };
            let told = number(used / size);
            let title = format!("{}, {}: {name} {told} {unit}", figure.id, figure.condition.name());
            svg.rect([0.0, y, scale.at(used).max(0.8), BAR], class, &title);
            svg.whisker(scale.at(low), scale.at(high), y + BAR / 2.0);
            let end = scale.at(used).max(scale.at(high));
            svg.text(end + 5.0, y + BAR - 0.5, Anchor::Start, "", &told);
            y += PITCH;
        }
        y += 5.0;
    }
    svg.inline(y)
}

fn figures_table(measured: &Measured, name: &str) -> String {
    let row = |figure: &MeasuredFigure| {
        let ns = &figure.ns;
        let off = figure.predicted.map(|band| 100.0 * (ns.median / band.used - 1.0));
        vec![
            figure.id.clone(),
            figure.what.clone(),
            figure.condition.name().into(),
            figure.predicted.map_or("-".into(), range),
            format!("{} ({} – {})", number(ns.median), number(ns.low), number(ns.high)),
            off.map_or("-".into(), |percent| format!("{percent:+.0} %")),
            figure.with_costs.map_or("-".into(), number),
            ns.rounds.to_string(),
        ]
    };
    let rows: Vec<_> = measured.figures.iter().map(row).collect();
    let heads = [
        "figure",
        "what",
        "beside",
        "predicted, ns",
        &format!("{name}, ns (5 to 95 %)"),
        "off",
        "simulated with these costs",
        "rounds",
    ];
    tables::table("Figures", &heads, 3, &rows)
}

fn costs_table(measured: &Measured) -> String {
    let rows: Vec<_> = measured
        .costs
        .iter()
        .map(|cost| {
            vec![
                cost.name.into(),
                cost.figure.into(),
                cost.unit.into(),
                number(cost.assumed),
                format!("{} ({} – {})", number(cost.value), number(cost.low), number(cost.high)),
            ]
        })
        .collect();
    tables::table("Costs", &["cost", "from", "unit", "assumed", "here"], 3, &rows)
}

/// The page: one file that needs no other.
#[must_use]
pub fn measured_html(measured: &Measured) -> String {
    let Measured { bus, provenance, origin, evidence, profile, answers, .. } = measured;
    let name = match origin {
        Origin::Measured => "measured",
        Origin::Simulated => "simulated",
        Origin::Emulated => "emulated",
    };
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>barewire: {name}</title>\
         <link rel=\"icon\" href=\"data:,\"><style>{}{}{}</style></head><body>\n\
         <header><h1>{}</h1>\n<p class=\"worth\"><strong>{}</strong></p>\n<p>{}; who answered: {answers}. Predicted is what the \
         simulated board with the cost profile <code>{}</code> takes for the same procedure.</p>\n",
        style::COLOURS,
        style::CHARTS,
        style::PAGE,
        escaped(&format!("barewire measure: {bus}")),
        escaped(provenance),
        if measured.quick { "A quick run" } else { "A whole run" },
        escaped(profile),
    );
    for reason in evidence {
        let _ = writeln!(html, "<p><strong>Not a board's time:</strong> {}</p>", escaped(reason));
    }
    if !measured.complete {
        html += "<p class=\"worth\"><strong>Stopped in the middle.</strong> What is missing is listed below.</p>\n";
    }
    html +=
        "</header>\n<p class=\"key\"><i class=\"replayed\"></i>predicted<i class=\"barewire\"></i>";
    let _ = writeln!(
        html,
        "{name}; whiskers: all lowest to all highest costs, and 5 to 95 % of the rounds</p>"
    );
    let mut groups: BTreeMap<(Condition, &str), Vec<&MeasuredFigure>> = BTreeMap::new();
    for figure in &measured.figures {
        groups.entry((figure.condition, group(&figure.id))).or_default().push(figure);
    }
    for ((condition, group), figures) in &groups {
        let condition = condition.name();
        let label = format!("{group}, {condition}: predicted and {name}");
        let drawn = chart(&format!("measured-{condition}-{group}"), &label, figures);
        let _ = writeln!(html, "<figure>{drawn}</figure>");
    }
    html += "<h2>Figures</h2>\n";
    html += &figures_table(measured, name);
    html += "<h2>Costs</h2>\n<p>The JSON file beside this page is a file of costs: <code>barewire lab gain --costs</code> and \
             <code>sim:…,costs=</code> take it.</p>\n";
    html += &costs_table(measured);
    if let Some(test) = &measured.selftest {
        let _ = writeln!(
            html,
            "<h2>Self-test</h2>\n<p>{} messages in loopback, {} failed, lengths to {} bytes.</p>",
            test.iterations, test.failed, test.max_len
        );
    }
    list(&mut html, "Missing", measured.missing.iter().map(|it| (&it.part, &it.why)));
    list(&mut html, "The machine", measured.facts.iter().map(|it| (&it.about, &it.text)));
    html + "</body></html>\n"
}

fn list<'a>(html: &mut String, head: &str, items: impl Iterator<Item = (&'a String, &'a String)>) {
    let items: Vec<String> = items
        .map(|(name, text)| {
            format!("<li><strong>{}</strong>: {}</li>\n", escaped(name), escaped(text))
        })
        .collect();
    if !items.is_empty() {
        let _ = writeln!(html, "<h2>{head}</h2>\n<ul>{}</ul>", items.concat());
    }
}
