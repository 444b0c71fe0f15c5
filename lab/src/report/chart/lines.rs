//! A figure over a parameter: a line for each column, and where they cross.

use super::{Scale, number, shown_in};
use crate::outcome::Sweep;
use crate::report::svg::{Anchor, Svg, width_of};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const TOP: f64 = 58.0;
const BOTTOM: f64 = HEIGHT - 40.0;
const LEFT: f64 = 62.0;
/// Colours of lines.
const LINES: usize = 6;

/// The chart, to stand in a page.
pub(in crate::report) fn draw(id: &str, sweep: &Sweep) -> String {
    drawing(id, sweep).inline(HEIGHT)
}

/// The chart as a file of its own.
pub(in crate::report) fn file(id: &str, sweep: &Sweep) -> String {
    drawing(id, sweep).file(HEIGHT)
}

fn drawing(id: &str, sweep: &Sweep) -> Svg {
    let request = &sweep.request;
    let label = format!(
        "{} over {} on {}, simulated: {}",
        sweep.value_unit,
        request.parameter,
        request.board,
        sweep.columns.join(", ")
    );
    let mut svg = Svg::new(id, &label, WIDTH);
    let values = || sweep.rows.iter().map(|(value, _)| *value);
    let (first, last) = (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max));
    let right = WIDTH
        - 20.0
        - sweep.columns.iter().map(|name| width_of(name, 11.0)).fold(40.0, f64::max).min(240.0);
    let (unit, size) = shown_in(&sweep.unit, last);
    let range = [first / size, last / size];
    let x = match is_logarithmic(sweep) {
        true => Scale::logarithmic(range, [LEFT, right]),
        false => Scale::linear(range, [LEFT, right]),
    };
    let top =
        sweep.rows.iter().flat_map(|(_, figures)| figures.iter().copied()).fold(0.0, f64::max);
    let y = Scale::linear([0.0, top * 1.05], [BOTTOM, TOP]);

    svg.text(
        0.0,
        14.0,
        Anchor::Start,
        "head",
        &format!("{} on {}, simulated", request.path, request.board),
    );
    svg.text(0.0, 32.0, Anchor::Start, "dim", &sweep.value_unit);
    for tick in y.ticks(5.0) {
        svg.line([LEFT, y.at(tick), right, y.at(tick)], if tick == 0.0 { "axis" } else { "grid" });
        svg.text(LEFT - 8.0, y.at(tick) + 4.0, Anchor::End, "dim", &number(tick));
    }
    for tick in x.ticks(8.0) {
        svg.line([x.at(tick), BOTTOM, x.at(tick), BOTTOM + 4.0], "axis");
        svg.text(x.at(tick), BOTTOM + 17.0, Anchor::Middle, "dim", &number(tick));
    }
    let axis = format!("{}, {unit}", request.parameter);
    svg.text((LEFT + right) / 2.0, BOTTOM + 34.0, Anchor::Middle, "dim", &axis);

    let mut ends = Vec::new();
    for (nth, name) in sweep.columns.iter().enumerate() {
        let point = |(value, figures): &(f64, Vec<f64>)| {
            figures
                .get(nth)
                .filter(|figure| figure.is_finite())
                .map(|figure| (x.at(value / size), y.at(*figure)))
        };
        let points: Vec<(f64, f64)> = sweep.rows.iter().filter_map(point).collect();
        svg.polyline(&points, &format!("series l{}", nth % LINES), name);
        ends.extend(points.last().map(|end| (end.1, nth)));
    }
    // Names stand at the ends of their lines, and push each other down where those meet.
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut free = f64::MIN;
    for (at, nth) in ends {
        free = at.max(free);
        svg.text(
            right + 8.0,
            free + 4.0,
            Anchor::Start,
            &format!("t{}", nth % LINES),
            &sweep.columns[nth],
        );
        free += 14.0;
    }
    for (nth, point) in sweep.break_even.iter().enumerate() {
        let at = x.at(point.at / size);
        svg.line([at, TOP - 12.0 + 14.0 * (nth % 2) as f64, at, BOTTOM], "cross");
        let told = format!("{} {unit}: {}", number(point.at / size), point.what);
        let (anchor, aside) = match at + width_of(&told, 11.0) > WIDTH {
            true => (Anchor::End, -5.0),
            false => (Anchor::Start, 5.0),
        };
        svg.text(at + aside, TOP - 6.0 + 14.0 * (nth % 2) as f64, anchor, "", &told);
    }
    svg
}

/// Whether the values grow by a factor, not by a sum.
fn is_logarithmic(sweep: &Sweep) -> bool {
    let at = |nth: usize| sweep.rows.get(nth).map_or(0.0, |row| row.0);
    let count = sweep.rows.len();
    if count < 3 || at(0) <= 0.0 {
        return false;
    }
    let (first, last) = (at(1) - at(0), at(count - 1) - at(count - 2));
    last > 4.0 * first
}
