//! The charts: bars with whiskers, stacked steps, lines over a parameter, the score.
//!
//! What they share is here: scales, ticks, numbers, the colours of steps.

pub(super) mod bars;
pub(super) mod lines;
pub(super) mod score;
pub(super) mod stack;

use std::collections::BTreeSet;

use super::svg::{Anchor, Svg, width_of};
use crate::outcome::Explanation;

/// Colours of steps; the one behind them is for all that have none of their own.
pub(super) const FILLS: usize = 24;

/// A number with its significant digits, and no more.
#[must_use]
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 9999.5 {
        let digits = format!("{:.0}", value.abs());
        let mut grouped = String::new();
        for (nth, digit) in digits.chars().enumerate() {
            if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        return if value < 0.0 { format!("-{grouped}") } else { grouped };
    }
    if (1e-12..0.0005).contains(&magnitude) {
        // Three places would make it 0.
        let places = (1.0 - magnitude.log10().floor()) as usize;
        return format!("{value:.places$}").trim_end_matches('0').into();
    }
    let places = match magnitude {
        999.5.. => 0,
        99.95.. => 1,
        9.995.. => 2,
        _ => 3,
    };
    let text = format!("{value:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').into(),
        false => text,
    }
}

/// A published figure, with every digit that was printed.
#[must_use]
pub fn exact(value: f64) -> String {
    if value.abs() < 1e4 { value.to_string() } else { number(value) }
}

/// The unit that values up to `max` of `unit` are shown in, and how many of `unit` it is.
#[must_use]
pub fn shown_in(unit: &str, max: f64) -> (String, f64) {
    let (name, size) = match (unit, max) {
        ("ns", 1e6..) => ("ms", 1e6),
        ("ns", 1e3..) => ("us", 1e3),
        ("Hz", 1e6..) => ("MHz", 1e6),
        ("Hz", 1e3..) => ("kHz", 1e3),
        _ => (unit, 1.0),
    };
    (name.into(), size)
}

/// A scale from values to pixels.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    from: f64,
    to: f64,
    begin: f64,
    end: f64,
    logarithmic: bool,
}

impl Scale {
    /// Values `from` to `to` on pixels `begin` to `end`. An empty range is widened to 1.
    #[must_use]
    pub fn linear([from, to]: [f64; 2], [begin, end]: [f64; 2]) -> Self {
        let to = if to > from { to } else { from + 1.0 };
        Self { from, to, begin, end, logarithmic: false }
    }

    /// The same, for values above 0 that lie decades apart.
    #[must_use]
    pub fn logarithmic([from, to]: [f64; 2], pixels: [f64; 2]) -> Self {
        Self { logarithmic: from > 0.0 && to > from, ..Self::linear([from, to], pixels) }
    }

    /// Where a value is.
    #[must_use]
    pub fn at(self, value: f64) -> f64 {
        let share = match self.logarithmic {
            true => (value / self.from).ln() / (self.to / self.from).ln(),
            false => (value - self.from) / (self.to - self.from),
        };
        self.begin + share * (self.end - self.begin)
    }

    /// Round values, about `count` of them, from the first to the last that fit.
    #[must_use]
    pub fn ticks(self, count: f64) -> Vec<f64> {
        if self.logarithmic {
            let decades = self.from.log10().floor() as i32..=self.to.log10().ceil() as i32;
            let all =
                decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(decade)));
            return all.filter(|tick| (self.from..=self.to).contains(tick)).collect();
        }
        let raw = (self.to - self.from) / count;
        let decade = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * decade);
        let step = step.into_iter().find(|step| *step >= raw * 0.999).unwrap_or(raw);
        let first = (self.from / step).ceil() as i64;
        let last = (self.to / step + 1e-9).floor() as i64;
        (first..=last).map(|nth| nth as f64 * step).collect()
    }
}

/// Writes the names of ticks below a chart, centred where there is room: none overlaps the one before it or the edges.
pub fn names_of_ticks(
    svg: &mut Svg,
    x: Scale,
    ticks: &[f64],
    [y, width]: [f64; 2],
    name: impl Fn(f64) -> String,
) {
    let mut free = 0.0;
    for &tick in ticks {
        let name = name(tick);
        let half = width_of(&name, 11.0) / 2.0;
        let middle = x.at(tick).min(width - half);
        if middle - half >= free {
            svg.text(middle, y, Anchor::Middle, "dim", &name);
            free = middle + half + 4.0;
        }
    }
}

/// The colour of each step, the same in all charts of a page. The steps with the most time have one of their own.
#[derive(Debug)]
pub(super) struct Colours {
    /// The names, the largest first.
    steps: Vec<String>,
}

impl Colours {
    /// For the steps of explanations.
    pub(super) fn of<'a>(explanations: impl Iterator<Item = &'a Explanation>) -> Self {
        Self::new(explanations.flat_map(|explanation| {
            // Shares, so that a figure of seconds does not take all colours from one of microseconds.
            let sum = explanation.sum_us.max(f64::MIN_POSITIVE);
            let steps = explanation.steps.iter();
            let steps = steps.map(move |step| (step.step.as_str(), step.us / sum));
            steps.chain(explanation.timeline.iter().map(|stretch| (stretch.step.as_str(), 0.0)))
        }))
    }

    /// For steps with their times, in which a name may occur more than once.
    fn new<'a>(times: impl Iterator<Item = (&'a str, f64)>) -> Self {
        let mut sums: Vec<(&str, f64)> = Vec::new();
        for (name, time) in times {
            match sums.iter_mut().find(|sum| sum.0 == name) {
                Some(sum) => sum.1 += time,
                None => sums.push((name, time)),
            }
        }
        sums.sort_by(|one, other| other.1.total_cmp(&one.1));
        Self { steps: sums.into_iter().map(|(name, _)| name.into()).collect() }
    }

    /// The class of a step.
    pub(super) fn class(&self, step: &str) -> String {
        format!("step f{}", self.nth(step).min(FILLS))
    }

    /// The place of a step among all, the longest first.
    pub(super) fn nth(&self, step: &str) -> usize {
        self.steps.iter().position(|name| name == step).unwrap_or(self.steps.len())
    }

    /// Draws the key of a chart that has the steps `drawn`, from `y` down, within `width`; returns where it ends.
    pub(super) fn key<'a>(
        &self,
        svg: &mut Svg,
        drawn: impl Iterator<Item = &'a str>,
        [width, y]: [f64; 2],
    ) -> f64 {
        let drawn: BTreeSet<usize> = drawn.map(|step| self.nth(step)).collect();
        let own = drawn.iter().filter(|&&nth| nth < FILLS).map(|&nth| self.steps[nth].as_str());
        let rest = drawn.last().is_some_and(|&nth| nth >= FILLS).then_some("other steps");
        let (mut x, mut y) = (0.0, y);
        for name in own.chain(rest) {
            let wide = 18.0 + width_of(name, 11.0) + 10.0;
            if x > 0.0 && x + wide > width {
                (x, y) = (0.0, y + 18.0);
            }
            svg.rect([x, y, 11.0, 11.0], &self.class(name), name);
            svg.text(x + 16.0, y + 9.5, Anchor::Start, "dim", name);
            x += wide;
        }
        y + 18.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_count() {
        for (value, text) in [
            (0.0, "0"),
            (2.0, "2"),
            (3.685_375, "3.685"),
            (0.000_123_4, "0.00012"),
            (-0.000_001, "-0.000001"),
            (9.8, "9.8"),
            (12.345, "12.35"),
            (-98.76, "-98.76"),
            (130.718, "130.7"),
            (1033.364, "1033"),
            (69_800.0, "69,800"),
            (-1_234_567.0, "-1,234,567"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!((exact(3.685_375), exact(105_200.0)), ("3.685375".into(), "105,200".into()));
    }

    #[test]
    fn ticks_are_round_and_inside() {
        let scale = Scale::linear([0.0, 12.0], [0.0, 600.0]);
        assert_eq!(scale.ticks(6.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
        assert_eq!(scale.at(6.0), 300.0);
        let scale = Scale::logarithmic([1.0, 500.0], [0.0, 100.0]);
        assert_eq!(scale.ticks(6.0), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0]);
        assert_eq!((scale.at(1.0), scale.at(500.0)), (0.0, 100.0));
        assert!(Scale::linear([3.0, 3.0], [0.0, 9.0]).at(3.0).is_finite());
    }

    #[test]
    fn the_longest_steps_have_colours_of_their_own() {
        let names: Vec<String> = (0..28).map(|nth| format!("step{nth}")).collect();
        let colours = Colours::new(
            names.iter().zip(0..).map(|(name, time)| (name.as_str(), f64::from(time))),
        );
        assert_eq!(
            (colours.class("step27"), colours.class("step0")),
            ("step f0".into(), "step f24".into())
        );
        assert_eq!(
            (colours.class("step4"), colours.class("step3")),
            ("step f23".into(), "step f24".into())
        );
    }
}
