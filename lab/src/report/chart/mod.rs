//! The charts: bars with whiskers, stacked steps, lines over a parameter, the score.
//!
//! What they share is here: scales, ticks, numbers, the colours of steps.

pub(super) mod bars;
pub(super) mod lines;
pub(super) mod score;
pub(super) mod stack;

/// Colours of steps; the last is for all that have none of their own.
pub(super) const FILLS: usize = 12;

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
pub(super) struct Scale {
    from: f64,
    to: f64,
    begin: f64,
    end: f64,
    logarithmic: bool,
}

impl Scale {
    /// Values `from` to `to` on pixels `begin` to `end`. An empty range is widened to 1.
    pub(super) fn linear([from, to]: [f64; 2], [begin, end]: [f64; 2]) -> Self {
        let to = if to > from { to } else { from + 1.0 };
        Self { from, to, begin, end, logarithmic: false }
    }

    /// The same, for values above 0 that lie decades apart.
    pub(super) fn logarithmic([from, to]: [f64; 2], pixels: [f64; 2]) -> Self {
        Self { logarithmic: from > 0.0 && to > from, ..Self::linear([from, to], pixels) }
    }

    /// Where a value is.
    pub(super) fn at(self, value: f64) -> f64 {
        let share = match self.logarithmic {
            true => (value / self.from).ln() / (self.to / self.from).ln(),
            false => (value - self.from) / (self.to - self.from),
        };
        self.begin + share * (self.end - self.begin)
    }

    /// Round values, about `count` of them, from the first to the last that fit.
    pub(super) fn ticks(self, count: f64) -> Vec<f64> {
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

/// The colour of each step: the steps with the most time have one of their own.
#[derive(Debug)]
pub(super) struct Colours {
    /// The names, the largest first.
    pub(super) steps: Vec<String>,
}

impl Colours {
    /// For steps with their times, in which a name may occur more than once.
    pub(super) fn new<'a>(times: impl Iterator<Item = (&'a str, f64)>) -> Self {
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

    fn nth(&self, step: &str) -> usize {
        self.steps.iter().position(|name| name == step).unwrap_or(FILLS)
    }

    /// Draws the key from `y` down, within `width`; returns where it ends.
    pub(super) fn key(&self, svg: &mut super::svg::Svg, [left, width]: [f64; 2], y: f64) -> f64 {
        let own = self.steps.iter().take(FILLS).map(String::as_str);
        let rest = (self.steps.len() > FILLS).then_some("other steps");
        let (mut x, mut y) = (left, y);
        for name in own.chain(rest) {
            let wide = 18.0 + super::svg::width_of(name, 11.0) + 10.0;
            if x > left && x + wide > left + width {
                (x, y) = (left, y + 18.0);
            }
            svg.rect([x, y, 11.0, 11.0], &self.class(name), name);
            svg.text(x + 16.0, y + 9.5, super::svg::Anchor::Start, "dim", name);
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
        let names: Vec<String> = (0..16).map(|nth| format!("step{nth}")).collect();
        let colours = Colours::new(
            names.iter().zip(0..).map(|(name, time)| (name.as_str(), f64::from(time))),
        );
        assert_eq!(
            (colours.class("step15"), colours.class("step0")),
            ("step f0".into(), "step f12".into())
        );
        assert_eq!(
            (colours.class("step4"), colours.class("step3")),
            ("step f11".into(), "step f12".into())
        );
    }
}
