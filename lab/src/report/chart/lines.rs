//! A figure over a parameter: a line for each column, and where they cross.

use super::{Scale, names_of_ticks, number, shown_in};
use crate::outcome::Sweep;
use crate::report::svg::{Anchor, Svg, fitted, width_of};

const WIDTH: f64 = 760.0;
/// From the highest to the lowest value.
const PLOT: f64 = 302.0;
/// Names of lines and break-evens: from one to the next.
const PITCH: f64 = 14.0;
const LEFT: f64 = 62.0;
/// The most room for the names of lines.
const NAMES: f64 = 240.0;
/// Colours of lines.
const LINES: usize = 6;

/// The chart, to stand in a page.
pub(in crate::report) fn draw(id: &str, sweep: &Sweep) -> String {
    let (svg, height) = drawing(id, sweep);
    svg.inline(height)
}

/// The chart as a file of its own.
pub(in crate::report) fn file(id: &str, sweep: &Sweep) -> String {
    let (svg, height) = drawing(id, sweep);
    svg.file(height)
}

fn drawing(id: &str, sweep: &Sweep) -> (Svg, f64) {
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
        - sweep.columns.iter().map(|name| width_of(name, 11.0)).fold(40.0, f64::max).min(NAMES);
    let (unit, size) = shown_in(&sweep.unit, last);
    let range = [first / size, last / size];
    let x = match is_logarithmic(sweep) {
        true => Scale::logarithmic(range, [LEFT, right]),
        false => Scale::linear(range, [LEFT, right]),
    };
    let marks = break_evens(sweep, |at| x.at(at / size), &unit, size);
    let begin = 44.0 + PITCH * marks.iter().map(|mark| mark.row + 1).max().unwrap_or(1) as f64;
    let bottom = begin + PLOT;
    let top =
        sweep.rows.iter().flat_map(|(_, figures)| figures.iter().copied()).fold(0.0, f64::max);
    let y = Scale::linear([0.0, top * 1.05], [bottom, begin]);

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
    let ticks = x.ticks(8.0);
    for &tick in &ticks {
        svg.line([x.at(tick), bottom, x.at(tick), bottom + 4.0], "axis");
    }
    names_of_ticks(&mut svg, x, &ticks, [bottom + 18.0, WIDTH], number);
    let axis = format!("{}, {unit}", request.parameter);
    svg.text((LEFT + right) / 2.0, bottom + 34.0, Anchor::Middle, "dim", &axis);

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
    // Names stand at the ends of their lines. Where those meet, they push each other up from the axis, then down.
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut room = bottom;
    for end in ends.iter_mut().rev() {
        end.0 = end.0.min(room);
        room = end.0 - PITCH;
    }
    let mut free = begin + PITCH;
    for (at, nth) in ends {
        let at = at.max(free);
        let name = fitted(&sweep.columns[nth], NAMES, 11.0);
        svg.text(right + 8.0, at + 4.0, Anchor::Start, &format!("t{}", nth % LINES), &name);
        free = at + PITCH;
    }
    for Mark { at, begin, row, told } in marks {
        let y = 48.0 + PITCH * row as f64;
        svg.line([at, y - 10.0, at, bottom], "cross");
        svg.text(begin, y, Anchor::Start, "", &told);
    }
    (svg, bottom + 40.0)
}

/// A break-even as it is drawn.
struct Mark {
    /// The pixel where the columns cross.
    at: f64,
    /// The pixel where its text begins.
    begin: f64,
    /// The row of its text, from the top.
    row: usize,
    told: String,
}

/// The break-evens from left to right. Each is in a row below all texts that it or its line, which goes down, would meet.
fn break_evens(sweep: &Sweep, x: impl Fn(f64) -> f64, unit: &str, size: f64) -> Vec<Mark> {
    let mut points: Vec<_> = sweep.break_even.iter().collect();
    points.sort_by(|one, other| one.at.total_cmp(&other.at));
    let mut rows: Vec<f64> = Vec::new();
    let mut marks = Vec::new();
    for point in points {
        let (at, told) =
            (x(point.at), format!("{} {unit}: {}", number(point.at / size), point.what));
        let told = fitted(&told, WIDTH, 11.0);
        let wide = width_of(&told, 11.0);
        let begin = (at + 5.0).min(WIDTH - wide);
        let row = rows.iter().rposition(|end| *end > begin - 8.0).map_or(0, |row| row + 1);
        rows.truncate(row);
        rows.push(begin + wide);
        marks.push(Mark { at, begin, row, told });
    }
    marks
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
