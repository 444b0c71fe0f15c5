//! One message as an SVG: its wires, the words below, the times of its parts above.

use barewire_lab::report::svg::{Anchor, HEAD, Svg, fitted, width_of};
use barewire_lab::report::{Scale, names_of_ticks};
use barewire_scope::picture::{self, Line, Wave, ns_from, time};

use super::Subject;
use crate::shared::text::figure;

const WIDTH: f64 = 1080.0;
/// From a wire's lower level to its upper one.
const HIGH: f64 = 20.0;
const PITCH: f64 = 34.0;
const WORDS: f64 = 20.0;

/// The message as a file of its own; `name` says what it is.
pub(in super::super) fn svg(subject: &Subject<'_>, wave: &Wave, name: &str) -> String {
    let (svg, height) = drawing(subject, wave, name);
    svg.file(height)
}

/// The same to stand in a page.
pub(super) fn inline(subject: &Subject<'_>, wave: &Wave, name: &str) -> String {
    let (svg, height) = drawing(subject, wave, name);
    svg.inline(height)
}

fn drawing(subject: &Subject<'_>, wave: &Wave, name: &str) -> (Svg, f64) {
    let message = &wave.message;
    let lines = picture::lines(subject.wires, subject.channels, message.select);
    let mut svg = Svg::new("message", &format!("{name}: levels of the wires over time"), WIDTH);
    svg.text(2.0, 13.0, Anchor::Start, "head", &fitted(name, WIDTH - 4.0, HEAD));
    let left =
        14.0 + lines.iter().map(|line| width_of(&line.name, 11.0)).fold(30.0, f64::max).min(160.0);
    let ns = |at: u64| ns_from(subject.tick, message.start, at);
    let x = Scale::linear([ns(wave.from), ns(wave.to)], [left, WIDTH - 12.0]);
    let height = lines.iter().map(row).sum::<f64>();
    let (top, bottom) = (48.0, 48.0 + height);
    let ticks = x.ticks(8.0);
    for &tick in &ticks {
        svg.line([x.at(tick), top - 4.0, x.at(tick), bottom], "grid");
    }
    parts(&mut svg, wave, |at| x.at(ns(at)), subject);
    let mut y = top;
    for (nth, line) in lines.iter().enumerate() {
        svg.text(
            left - 8.0,
            y + HIGH - 4.0,
            Anchor::End,
            "",
            &fitted(&line.name, left - 8.0, 11.0),
        );
        let level = |levels: u64| if levels >> line.bit & 1 == 1 { y } else { y + HIGH };
        let mut points = vec![(x.at(ns(wave.from)), level(wave.edges[0].levels))];
        for pair in
            wave.edges.windows(2).filter(|pair| level(pair[0].levels) != level(pair[1].levels))
        {
            let at = x.at(ns(pair[1].at));
            points.extend([(at, level(pair[0].levels)), (at, level(pair[1].levels))]);
        }
        points.push((x.at(ns(wave.to)), points.last().map_or(y, |last| last.1)));
        svg.polyline(&points, &format!("series l{}", nth % 6), &line.name);
        let words = if line.words.0 { &message.mosi } else { &message.miso };
        if line.words != (false, false) {
            let digits = usize::from(subject.wires.word_bits).div_ceil(4);
            for (&(begin, end), word) in wave.words.iter().zip(words) {
                let (begin, end) = (x.at(ns(begin)), x.at(ns(end)));
                let text = format!("{word:0digits$x}");
                svg.rect(
                    [begin, y + HIGH + 4.0, end - begin, 14.0],
                    &format!("step f{}", nth % 6),
                    &text,
                );
                if width_of(&text, 11.0) < end - begin {
                    svg.text((begin + end) / 2.0, y + HIGH + 14.5, Anchor::Middle, "on", &text);
                }
            }
        }
        y += row(line);
    }
    names_of_ticks(&mut svg, x, &ticks, [bottom + 12.0, WIDTH], time);
    if wave.shortened {
        svg.text(WIDTH - 12.0, 13.0, Anchor::End, "dim", "the message goes on");
    }
    (svg, bottom + 18.0)
}

fn row(line: &Line) -> f64 {
    if line.words == (false, false) { PITCH } else { PITCH + WORDS }
}

/// Lead, clocked and lag above the wires, each where it has room.
fn parts(svg: &mut Svg, wave: &Wave, x: impl Fn(u64) -> f64, subject: &Subject<'_>) {
    let message = &wave.message;
    let Some((first, last)) = message.clocked else { return };
    for (name, from, to) in
        [("lead", message.start, first), ("clocked", first, last), ("lag", last, message.end)]
    {
        let text = format!("{name} {}", figure::time(subject.tick.ns(to - from)));
        if to > wave.to || to == from {
            continue;
        }
        let (from, to) = (x(from), x(to));
        svg.whisker(from, to, 38.0);
        // Short ones stand over the clocked part, whose text leaves them room.
        let (at, anchor, room) = match name {
            "lead" => (from, Anchor::Start, 0.0),
            "lag" => (to, Anchor::End, 0.0),
            _ => ((from + to) / 2.0, Anchor::Middle, 200.0),
        };
        if room == 0.0 || width_of(&text, 11.0) + room < to - from {
            svg.text(at, 32.0, anchor, "dim", &text);
        }
    }
}
