//! The page's charts: the timeline of the whole capture, the use of the bus, and a histogram of each figure.

use barewire_lab::report::svg::{Anchor, Svg};
use barewire_lab::report::{Scale, names_of_ticks, shown_in};
use barewire_scope::capture::Tick;
use barewire_scope::picture::time;
use barewire_scope::{Counts, Kind};

use super::Content;
use crate::shared::text::figure;

const WIDTH: f64 = 1080.0;
const LEFT: f64 = 62.0;
/// Colours of kinds; the others share one.
pub(super) const COLOURS: usize = 12;
const OTHERS: usize = 24;
const BARS: usize = 40;

/// The colour of the kind at `place`.
pub(super) fn colour(place: Option<usize>) -> usize {
    place.filter(|place| *place < COLOURS).unwrap_or(OTHERS)
}

/// Messages as points: when they began, and how long they lasted.
pub(super) fn timeline(content: &Content<'_>) -> String {
    let (points, _) = content.gathered.points();
    let (tick, summary) = (content.subject.tick, content.summary);
    let mut svg =
        Svg::new("timeline", "how long each message lasted, over the capture's time", WIDTH);
    svg.text(0.0, 13.0, Anchor::Start, "head", "how long messages lasted");
    let lasted = |ticks: u64| tick.ns(ticks.max(1));
    let (least, most) = points
        .iter()
        .map(|point| lasted(point.ticks()))
        .fold((f64::MAX, 0.0), |(least, most), ns| (ns.min(least), ns.max(most)));
    let range = [least.min(most) * 0.8, most * 1.25];
    // Within a decade the logarithm has too few ticks.
    let y = match most > 10.0 * least {
        true => Scale::logarithmic(range, [220.0, 28.0]),
        false => Scale::linear(range, [220.0, 28.0]),
    };
    let x = Scale::linear([0.0, tick.ns(summary.duration)], [LEFT, WIDTH - 12.0]);
    axes(&mut svg, x, y, [28.0, 220.0]);
    for point in points {
        let kind = point.kind(&summary.kinds, summary.wires.word_bits);
        let name = kind.map_or("", |kind| summary.kinds[kind].name.as_str());
        let (at, ns) = (tick.ns(point.start), lasted(point.ticks()));
        let title = format!("message {}: {name}, {} at {}", point.nth, figure::time(ns), time(at));
        svg.rect([x.at(at) - 1.5, y.at(ns) - 1.5, 3.0, 3.0], &format!("f{}", colour(kind)), &title);
    }
    svg.inline(240.0)
}

/// The share of the time in which a message lasts, over the capture's time.
pub(super) fn use_of_bus(content: &Content<'_>) -> String {
    let (tick, duration) = (content.subject.tick, content.summary.duration);
    let (busy, part) = content.gathered.use_of_bus();
    let mut svg = Svg::new("use", "the share of the time in which a message lasts", WIDTH);
    svg.text(0.0, 13.0, Anchor::Start, "head", "use of the bus, in percent of the time");
    let x = Scale::linear([0.0, tick.ns(duration)], [LEFT, WIDTH - 12.0]);
    let y = Scale::linear([0.0, 100.0], [100.0, 26.0]);
    for level in [0.0, 50.0, 100.0] {
        svg.line([LEFT, y.at(level), WIDTH - 12.0, y.at(level)], "grid");
        svg.text(LEFT - 6.0, y.at(level) + 4.0, Anchor::End, "dim", &format!("{level}"));
    }
    let points = (0..).zip(busy).flat_map(|(nth, &busy)| {
        let (from, to) = (nth * part, ((nth + 1) * part).min(duration.max(1)));
        let share = y.at(100.0 * busy as f64 / (to - from).max(1) as f64);
        [(x.at(tick.ns(from)), share), (x.at(tick.ns(to)), share)]
    });
    svg.polyline(&points.collect::<Vec<_>>(), "series l0", "use of the bus");
    let ticks = x.ticks(8.0);
    names_of_ticks(&mut svg, x, &ticks, [114.0, WIDTH], time);
    svg.inline(120.0)
}

fn axes(svg: &mut Svg, x: Scale, y: Scale, [top, bottom]: [f64; 2]) {
    let ticks = x.ticks(8.0);
    for &tick in &ticks {
        svg.line([x.at(tick), top, x.at(tick), bottom], "grid");
    }
    names_of_ticks(svg, x, &ticks, [bottom + 14.0, WIDTH], time);
    let mut free = f64::MAX;
    for tick in y.ticks(6.0) {
        let at = y.at(tick);
        svg.line([LEFT, at, WIDTH - 12.0, at], "grid");
        if at < free {
            svg.text(LEFT - 6.0, at + 4.0, Anchor::End, "dim", &time(tick));
            free = at - 14.0;
        }
    }
}

/// The histograms of a kind, with their ids `hist-PLACE-FIGURE`.
pub(super) fn histograms(kind: &Kind, place: usize, tick: Tick) -> String {
    let times: [(&str, &str, &Counts); 5] = [
        ("cs-inactive", "CS inactive", &kind.inactive),
        ("lead", "lead", &kind.lead),
        ("clocked", "clocked", &kind.clocked),
        ("gap", "gap", &kind.gap),
        ("lag", "lag", &kind.lag),
    ];
    let times = times.into_iter().map(|(id, name, counts)| {
        histogram(&format!("hist-{place}-{id}"), name, counts, "ns", colour(Some(place)), |ticks| {
            tick.ns(ticks)
        })
    });
    let sck = histogram(
        &format!("hist-{place}-sck"),
        "SCK",
        &kind.sck_hz,
        "Hz",
        colour(Some(place)),
        |hz| hz as f64,
    );
    times
        .chain([sck])
        .map(|svg| if svg.is_empty() { svg } else { format!("<div>{svg}</div>") })
        .collect()
}

fn histogram(
    id: &str,
    name: &str,
    counts: &Counts,
    unit: &str,
    colour: usize,
    value: impl Fn(u64) -> f64,
) -> String {
    const WIDE: f64 = 330.0;
    let [Some(p50), Some(p99), Some(most)] =
        [counts.percentile(50), counts.percentile(99), counts.max()].map(|found| found.map(&value))
    else {
        return String::new();
    };
    let least = counts.iter().next().map_or(0.0, |(least, _)| value(least));
    let (unit, size) = shown_in(unit, most);
    let shown = |value: f64| barewire_lab::report::number(value / size);
    let mut svg = Svg::new(id, &format!("{name}: how often each value was seen"), WIDE);
    svg.text(0.0, 12.0, Anchor::Start, "head", &format!("{name}, {unit}"));
    let told = format!("p50 {}  p99 {}  max {}", shown(p50), shown(p99), shown(most));
    svg.text(WIDE, 12.0, Anchor::End, "dim", &told);
    // A single value stands in the middle.
    let beside = if least < most { 0.0 } else { most.max(1.0) / 10.0 };
    let range = [(least - beside) / size, (most + beside) / size];
    let x = match least > 0.0 && most > 20.0 * least {
        true => Scale::logarithmic(range, [2.0, WIDE - 6.0]),
        false => Scale::linear(range, [2.0, WIDE - 6.0]),
    };
    let wide = (WIDE - 8.0) / BARS as f64;
    let mut bars = [0_u64; BARS];
    for (own, times) in counts.iter() {
        bars[(((x.at(value(own) / size) - 2.0) / wide) as usize).min(BARS - 1)] += times;
    }
    let top = bars.iter().copied().max().unwrap_or(1) as f64;
    for (nth, &times) in bars.iter().enumerate().filter(|(_, times)| **times > 0) {
        // A single one is seen too.
        let high = (70.0 * times as f64 / top).max(1.5);
        let title = format!("{} of {}", figure::grouped(times), figure::grouped(counts.len()));
        svg.rect(
            [2.0 + wide * nth as f64, 92.0 - high, wide - 0.6, high],
            &format!("f{colour}"),
            &title,
        );
    }
    for value in [p50, p99] {
        svg.line([x.at(value / size), 18.0, x.at(value / size), 92.0], "cross");
    }
    svg.line([0.0, 92.5, WIDE, 92.5], "axis");
    // With all digits: ticks of a narrow range differ in the last.
    let name =
        |tick: f64| format!("{tick:.6}").trim_end_matches('0').trim_end_matches('.').to_owned();
    names_of_ticks(&mut svg, x, &x.ticks(5.0), [106.0, WIDE], name);
    svg.inline(112.0)
}
