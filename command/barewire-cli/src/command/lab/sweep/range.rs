//! A range of values as typed: `0..12us`, `1M..20M`, `1..500:10`.

use crate::shared::text::number;

/// Values of a range that does not say how many.
const POINTS: usize = 25;

/// The most values of a range: each is a simulation.
const POINTS_MAX: usize = 1000;

/// A range of counts that spans more than this is divided by factors, not by steps.
const FACTORS_FROM: f64 = 20.0;

/// The kind of the values, which decides the units they may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dimension {
    /// Nanoseconds.
    Time,
    /// Hertz.
    Clock,
    /// Whole numbers.
    Count,
    /// Whole numbers with 1,024-based suffixes.
    Bytes,
}

/// The range, in nanoseconds, hertz, or as counted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Range {
    from: f64,
    to: f64,
    divided: Division,
    is_whole: bool,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Division {
    Points(usize),
    Step(f64),
}

impl Range {
    /// Reads one.
    pub(super) fn parse(text: &str, dimension: Dimension) -> Result<Self, String> {
        let (ends, divided) = match text.split_once(':') {
            Some((ends, divided)) => (ends, Some(divided)),
            None => (text, None),
        };
        let (from, to) = ends
            .split_once("..")
            .ok_or_else(|| format!("a range is A..B, as {}", dimension.example()))?;
        let from = dimension.value(from, dimension.inherited(from, to))?;
        let to = dimension.value(to, "")?;
        if from >= to {
            return Err("a range goes from a smaller value to a larger".into());
        }
        if from == 0.0 && dimension != Dimension::Time {
            return Err("it begins at 1 or above".into());
        }
        let divided = match divided {
            None => Division::Points(POINTS),
            Some(text) => dimension.divided(text, to - from)?,
        };
        let is_whole = matches!(dimension, Dimension::Count | Dimension::Bytes);
        Ok(Self { from, to, divided, is_whole })
    }

    /// Its values, in rising order. Counts are rounded to whole numbers, without duplicates.
    pub(super) fn values(&self) -> Vec<f64> {
        let Self { from, to, .. } = *self;
        let mut values: Vec<f64> = match self.divided {
            Division::Step(step) => {
                let count = ((to - from) / step + 1e-9).floor() as usize;
                (0..=count).map(|nth| from + nth as f64 * step).collect()
            }
            Division::Points(points) => {
                let share = |nth: usize| nth as f64 / (points - 1) as f64;
                let by_factors = self.is_whole && to / from > FACTORS_FROM;
                let value = |nth| match by_factors {
                    true => from * (to / from).powf(share(nth)),
                    false => from + (to - from) * share(nth),
                };
                (0..points).map(value).collect()
            }
        };
        if self.is_whole {
            values.iter_mut().for_each(|value| *value = value.round());
            values.dedup();
        }
        values
    }
}

impl Dimension {
    fn example(self) -> &'static str {
        match self {
            Self::Time => "0..12us",
            Self::Clock => "1500k..3600k",
            Self::Count => "1..500",
            Self::Bytes => "1..4K",
        }
    }

    /// A value without a unit has the unit of the other end.
    fn inherited(self, from: &str, to: &str) -> &'static str {
        let has_unit = from.ends_with(|last: char| last.is_ascii_alphabetic());
        if has_unit || !matches!(self, Self::Time | Self::Clock) {
            return "";
        }
        self.units().iter().find(|(unit, _)| to.ends_with(unit)).map_or("", |(unit, _)| unit)
    }

    /// The units; a unit comes before those with which its name ends.
    fn units(self) -> &'static [(&'static str, f64)] {
        match self {
            Self::Time => &[("ns", 1.0), ("us", 1e3), ("ms", 1e6)],
            Self::Clock => {
                &[("MHz", 1e6), ("kHz", 1e3), ("Hz", 1.0), ("M", 1e6), ("k", 1e3), ("K", 1e3)]
            }
            Self::Count | Self::Bytes => &[],
        }
    }

    /// A value; if it has no unit, its unit is `inherited`.
    fn value(self, text: &str, inherited: &str) -> Result<f64, String> {
        let text = text.trim();
        match self {
            Self::Count => return number::count::<u32>(text).map(f64::from),
            Self::Bytes => return number::bytes(text).map(|bytes| bytes as f64),
            Self::Time | Self::Clock => {}
        }
        let unit_of =
            |text: &str| self.units().iter().find(|(unit, _)| text.ends_with(unit)).copied();
        let (digits, size) = match unit_of(text) {
            Some((unit, size)) => (&text[..text.len() - unit.len()], Some(size)),
            None => (text, unit_of(inherited).map(|(_, size)| size)),
        };
        let number = digits.trim();
        let value = number
            .parse()
            .ok()
            .filter(|_| number.starts_with(|first: char| first.is_ascii_digit()))
            .filter(|value: &f64| value.is_finite() && *value <= 1e12)
            .ok_or_else(|| format!("{text:?} is no value: write {}", self.example()))?;
        match (size, self) {
            (Some(size), _) => Ok(value * size),
            (None, _) if value == 0.0 => Ok(0.0),
            (None, Self::Clock) => Ok(value),
            (None, _) => Err(format!("{text:?} has no unit: ns, us or ms")),
        }
    }

    /// How a range of this width is divided: a plain number of values, or a step.
    fn divided(self, text: &str, width: f64) -> Result<Division, String> {
        if let Ok(points) = text.parse::<usize>() {
            let ok = (2..=POINTS_MAX).contains(&points) && !text.starts_with('+');
            if ok {
                return Ok(Division::Points(points));
            }
            if !text.starts_with('+') {
                return Err(format!("from 2 to {POINTS_MAX} values"));
            }
        }
        let step = self.value(text.strip_prefix('+').unwrap_or(text), "")?;
        if step <= 0.0 || width / step >= POINTS_MAX as f64 {
            return Err(format!("such a step makes more than {POINTS_MAX} values"));
        }
        Ok(Division::Step(step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str, dimension: Dimension) -> Vec<f64> {
        Range::parse(text, dimension).unwrap_or_else(|error| panic!("{text}: {error}")).values()
    }

    #[test]
    fn values_are_in_the_parameters_unit() {
        use Dimension::{Bytes, Clock, Count, Time};
        let of = |text, dimension| {
            let all = values(text, dimension);
            (all.len(), all[0], all[1], all[all.len() - 1])
        };
        assert_eq!(of("0..12us", Time), (25, 0.0, 500.0, 12_000.0));
        assert_eq!(of("1..3us:3", Time), (3, 1000.0, 2000.0, 3000.0));
        assert_eq!(of("500ns..1.5us:3", Time), (3, 500.0, 1000.0, 1500.0));
        assert_eq!(of("0..1ms:250us", Time), (5, 0.0, 250_000.0, 1e6));
        assert_eq!(of("1M..20M:20", Clock), (20, 1e6, 2e6, 20e6));
        assert_eq!(of("1..20MHz:1M", Clock), (20, 1e6, 2e6, 20e6));
        assert_eq!(of("500k..1M:2", Clock), (2, 5e5, 1e6, 1e6));
        assert_eq!(of("1..500:+100", Count), (5, 1.0, 101.0, 401.0));
        assert_eq!(of("2..12:3", Count), (3, 2.0, 7.0, 12.0));
        assert_eq!(of("1K..4K:2", Bytes), (2, 1024.0, 4096.0, 4096.0));
    }

    #[test]
    fn counts_that_span_much_grow_by_factors() {
        let all = values("1..500", Dimension::Count);
        assert!(all.len() > 15 && all.len() <= 25, "{all:?}");
        assert_eq!((all[0], all[1], all[all.len() - 1]), (1.0, 2.0, 500.0));
        assert!(all.windows(2).all(|two| two[0] < two[1]), "{all:?}");
        assert!(all.iter().all(|value| value.fract() == 0.0), "{all:?}");
        // Even steps up to a factor of 20.
        assert_eq!(values("1..20:20", Dimension::Count).len(), 20);
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for (text, part) in [
            ("", "A..B"),
            ("5us", "A..B"),
            ("0..12", "no unit"),
            ("12us..0", "smaller"),
            ("3us..3us", "smaller"),
            ("0..x", "no value"),
            ("-1..3us", "no value"),
            ("0..infus", "no value"),
            ("0..NaNus", "no value"),
            ("0..1us:1", "from 2"),
            ("0..1us:9999", "from 2"),
            ("0..1ms:1ns", "more than"),
            ("0..1ms:0us", "more than"),
            ("0..é", "no value"),
        ] {
            let error = Range::parse(text, Dimension::Time).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(Range::parse("0..500", Dimension::Count).is_err());
        assert!(Range::parse("1.5..500", Dimension::Count).is_err());
        assert!(Range::parse("0..20M", Dimension::Clock).is_err());
    }
}
