//! Published, simulated and barewire's figures side by side: bars with whiskers.

use super::{Scale, exact, number};
use crate::band::Kind;
use crate::outcome::Row;
use crate::report::svg::{Anchor, HEAD, Svg, fitted, width_of};

const WIDTH: f64 = 340.0;
/// One bar, with the gap below it.
const BAR: f64 = 9.0;
const PITCH: f64 = 14.0;

/// A chart of rows that share what was measured and a unit.
pub(in crate::report) fn draw(id: &str, rows: &[&Row]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let unit = if first.unit == "1/s" { "a second" } else { &first.unit };
    let label = format!("{}: {}, published, simulated and barewire", first.thread, first.metric);
    let mut svg = Svg::new(id, &label, WIDTH);
    let room = WIDTH - 10.0 - width_of(unit, 11.0);
    svg.text(0.0, 12.0, Anchor::Start, "head", &fitted(&first.metric, room, HEAD));
    svg.text(WIDTH - 1.0, 12.0, Anchor::End, "dim", unit);
    let tops = rows
        .iter()
        .flat_map(|row| [Some(row.published), row.high, row.barewire.map(|band| band.high)]);
    let top = tops.flatten().fold(0.0, f64::max);
    let numbers = rows.iter().flat_map(|row| {
        let simulated = [row.replayed, row.barewire.map(|band| band.used)];
        let simulated = simulated.into_iter().flatten().map(number);
        simulated.chain([exact(row.published)]).map(|told| width_of(&told, 11.0))
    });
    let scale = Scale::linear([0.0, top], [0.0, WIDTH - 8.0 - numbers.fold(40.0, f64::max)]);
    let mut y = 22.0;
    for row in rows {
        let kind = match row.kind {
            Kind::Input => " (input)",
            Kind::Arithmetic => " (counted)",
            Kind::Fitted => " (fitted)",
            Kind::Predicted => "",
        };
        let mark = if row.unexplained.is_some() { " †" } else { "" };
        let about = format!("{kind}{mark}");
        let variant = fitted(&row.variant, WIDTH - width_of(&about, 11.0), 11.0);
        svg.text(0.0, y + 10.0, Anchor::Start, "dim", &format!("{variant}{about}"));
        y += 16.0;
        let simulated = row.replayed.map(|used| (used, row.low.zip(row.high)));
        let ours = row.barewire.map(|band| (band.used, Some((band.low, band.high))));
        for (class, bar) in [
            ("published", Some((row.published, None))),
            ("replayed", simulated),
            ("barewire", ours),
        ] {
            let Some((used, range)) = bar else { continue };
            let name = if class == "replayed" { "simulated" } else { class };
            let told = if class == "published" { exact(used) } else { number(used) };
            let title = format!("{}: {name} {told} {unit}", row.id);
            svg.rect([0.0, y, scale.at(used).max(0.8), BAR], class, &title);
            let mut end = scale.at(used);
            if let Some((low, high)) = range {
                svg.whisker(scale.at(low), scale.at(high), y + BAR / 2.0);
                end = end.max(scale.at(high));
            }
            svg.text(end + 5.0, y + BAR - 0.5, Anchor::Start, "", &told);
            y += PITCH;
        }
        y += 5.0;
    }
    svg.inline(y)
}
