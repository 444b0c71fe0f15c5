//! One occurrence of a figure on a timeline: a lane for each simulated thread and for the wire.

use super::chart::{Colours, Scale, exact, names_of_ticks, number};
use super::svg::{Anchor, HEAD, Svg, fitted, width_of};
use crate::outcome::Explanation;

const WIDTH: f64 = 1080.0;
const LANE: f64 = 34.0;

/// The timeline, to stand in a page.
pub(super) fn draw(id: &str, explanation: &Explanation, colours: &Colours) -> String {
    let (svg, height) = drawing(id, explanation, colours);
    svg.inline(height)
}

/// The timeline as a file of its own.
pub(super) fn file(id: &str, explanation: &Explanation) -> String {
    let (svg, height) = drawing(id, explanation, &Colours::of([explanation].into_iter()));
    svg.file(height)
}

/// The lanes, in the order of their first stretch.
#[must_use]
pub fn lanes(explanation: &Explanation) -> Vec<&str> {
    let mut lanes: Vec<&str> = Vec::new();
    for stretch in &explanation.timeline {
        if !lanes.contains(&stretch.lane.as_str()) {
            lanes.push(&stretch.lane);
        }
    }
    lanes
}

fn drawing(id: &str, explanation: &Explanation, colours: &Colours) -> (Svg, f64) {
    let timeline = &explanation.timeline;
    let label = format!("{}: one occurrence on a timeline, simulated", explanation.id);
    let mut svg = Svg::new(id, &label, WIDTH);
    let head = format!(
        "{}: simulated {} {}{}",
        explanation.id,
        number(explanation.replayed),
        explanation.unit,
        explanation
            .published
            .map_or(String::new(), |value| format!(", published {}", exact(value)))
    );
    svg.text(2.0, 13.0, Anchor::Start, "head", &fitted(&head, WIDTH - 2.0, HEAD));
    let lanes = lanes(explanation);
    let left = 12.0 + lanes.iter().map(|lane| width_of(lane, 11.0)).fold(30.0, f64::max).min(220.0);
    let from = timeline.iter().map(|stretch| stretch.from_us).fold(0.0, f64::min);
    let to = timeline.iter().map(|stretch| stretch.to_us).fold(0.0, f64::max);
    let x = Scale::linear([from, to], [left, WIDTH - 12.0]);
    let bottom = 28.0 + LANE * lanes.len() as f64;
    let ticks = x.ticks(8.0);
    for &tick in &ticks {
        svg.line([x.at(tick), 26.0, x.at(tick), bottom], "grid");
    }
    let name = |tick| format!("{} us", number(tick));
    names_of_ticks(&mut svg, x, &ticks, [bottom + 14.0, WIDTH], name);
    for (nth, lane) in lanes.iter().enumerate() {
        let y = 28.0 + LANE * nth as f64;
        svg.text(2.0, y + LANE / 2.0 + 4.0, Anchor::Start, "", &fitted(lane, left - 10.0, 11.0));
        let mut drawn = f64::MIN;
        for stretch in timeline.iter().filter(|stretch| stretch.lane == *lane) {
            let (begin, end) = (x.at(stretch.from_us), x.at(stretch.to_us));
            // Thousands of steps in a lane: one is drawn for each half of a pixel.
            if end < drawn + 0.5 {
                continue;
            }
            drawn = end;
            let title = format!(
                "{}: {} to {} us, {} us",
                stretch.step,
                number(stretch.from_us),
                number(stretch.to_us),
                number(stretch.to_us - stretch.from_us)
            );
            // A span that is too short to be seen is still drawn.
            let wide = (end - begin).max(0.8);
            svg.rect([begin, y + 5.0, wide, LANE - 10.0], &colours.class(&stretch.step), &title);
            if wide > 40.0 {
                let name = fitted(&stretch.step, wide - 8.0, 11.0);
                svg.text(begin + 4.0, y + LANE / 2.0 + 4.0, Anchor::Start, "on", &name);
            }
        }
    }
    let drawn = timeline.iter().map(|stretch| stretch.step.as_str());
    let end = colours.key(&mut svg, drawn, [WIDTH, bottom + 28.0]);
    (svg, end)
}
