//! Figures for people: sizes, times, rates and counts with units that fit.

/// Bytes in the largest binary unit that gives a whole number, else in bytes.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0 => "0 bytes".into(),
        1 => "1 byte".into(),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{} bytes", grouped(bytes)),
    }
}

/// Nanoseconds with three or four digits that count.
pub(crate) fn time(ns: f64) -> String {
    let unit = Unit::of_time(ns);
    format!("{} {}", unit.number(ns), unit.name)
}

/// Two times that differ, each with as many digits as tell them apart.
pub(crate) fn times_apart(ns: [f64; 2]) -> [String; 2] {
    let texts = ns.map(time);
    if texts[0] != texts[1] {
        return texts;
    }
    let unit = Unit::of_time(ns[0].max(ns[1]));
    let with_digits = |digits| ns.map(|ns| format!("{:.digits$} {}", ns / unit.size, unit.name));
    let apart = (1..=9).map(with_digits).find(|texts| texts[0] != texts[1]);
    apart.unwrap_or(texts)
}

/// A unit that figures of a kind are shown in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    /// Its name.
    pub(crate) name: &'static str,
    /// How many of the smallest unit it is.
    size: f64,
}

impl Unit {
    /// The one that fits `ns`, a time in nanoseconds.
    pub(crate) fn of_time(ns: f64) -> Self {
        let (name, size) = match ns {
            ..1e3 => ("ns", 1.0),
            ..1e6 => ("us", 1e3),
            ..1e9 => ("ms", 1e6),
            _ => ("s", 1e9),
        };
        Self { name, size }
    }

    /// The one that fits a rate.
    pub(crate) fn of_rate(bytes_per_second: f64) -> Self {
        let (name, size) = match bytes_per_second {
            ..1e3 => ("bytes/s", 1.0),
            ..1e6 => ("kB/s", 1e3),
            _ => ("MB/s", 1e6),
        };
        Self { name, size }
    }

    /// `value`, given in the smallest unit, converted to this one: the number alone, with its
    /// significant digits.
    pub(crate) fn number(self, value: f64) -> String {
        if self.size == 1.0 { format!("{value:.0}") } else { three(value / self.size) }
    }
}

/// Hertz.
pub(crate) fn clock(hz: u64) -> String {
    match hz {
        1_000_000.. if hz.is_multiple_of(1_000) => format!("{} MHz", trimmed(hz as f64 / 1e6)),
        1_000.. if hz.is_multiple_of(10) => format!("{} kHz", trimmed(hz as f64 / 1e3)),
        _ => format!("{} Hz", grouped(hz)),
    }
}

/// Bytes a second, by 1,000 as the clock counts.
pub(crate) fn rate(bytes_per_second: f64) -> String {
    let unit = Unit::of_rate(bytes_per_second);
    format!("{} {}", unit.number(bytes_per_second), unit.name)
}

/// A share in percent. A share below 1 is never shown as 100 %.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", percent_number(share))
}

/// A share as a percentage, rounded down to a tenth, without the unit.
pub(crate) fn percent_number(share: f64) -> String {
    let floored = (share * 1000.0).floor() / 10.0;
    format!("{floored:.1}")
}

/// A count, its thousands set apart.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time below a microsecond, with its picoseconds.
pub(crate) fn tick(ns: f64) -> String {
    if ns < 1_000.0 && ns.fract() != 0.0 { format!("{ns:.3} ns") } else { time(ns) }
}

/// A measured frequency: three digits count.
pub(crate) fn measured_clock(hz: f64) -> String {
    let (value, unit) = match hz {
        ..1e3 => (hz, "Hz"),
        ..1e6 => (hz / 1e3, "kHz"),
        _ => (hz / 1e6, "MHz"),
    };
    format!("{value:.3} {unit}")
}

/// `1 word`, `2,000 words`.
pub(crate) fn counted(count: u64, of: &str) -> String {
    format!("{} {of}{}", grouped(count), if count == 1 { "" } else { "s" })
}

fn three(value: f64) -> String {
    match value {
        ..10.0 => format!("{value:.2}"),
        ..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_differ_look_so() {
        assert_eq!(times_apart([8_280.0, 8_520.0]), ["8.28 us", "8.52 us"]);
        assert_eq!(times_apart([100_200.0, 100_430.0]), ["100.2 us", "100.4 us"]);
        assert_eq!(times_apart([100_400.0, 100_430.0]), ["100.40 us", "100.43 us"]);
        assert_eq!(times_apart([999_999.0, 1_000_003.0])[0], "1000 us");
        assert_eq!(times_apart([7.0, 7.0]), ["7 ns", "7 ns"]);
    }

    #[test]
    fn figures_have_units_that_fit() {
        assert_eq!([size(32 << 20), size(4096), size(257)], ["32 MiB", "4 KiB", "257 bytes"]);
        assert_eq!([size(0), size(1), size(1_000_001)], ["0 bytes", "1 byte", "1,000,001 bytes"]);
        assert_eq!([time(0.0), time(375.4), time(2345.0)], ["0 ns", "375 ns", "2.35 us"]);
        assert_eq!([time(45.25e6), time(100.4e9)], ["45.2 ms", "100 s"]);
        assert_eq!([clock(20_000_000), clock(13_333_000)], ["20 MHz", "13.333 MHz"]);
        assert_eq!([clock(13_333_333), clock(153)], ["13,333,333 Hz", "153 Hz"]);
        assert_eq!([rate(2.5e6), rate(285_000.0)], ["2.50 MB/s", "285 kB/s"]);
        assert_eq!([percent(0.9999), percent(1.0), percent(0.0)], ["99.9 %", "100.0 %", "0.0 %"]);
        assert_eq!([grouped(0), grouped(999), grouped(1_234_567)], ["0", "999", "1,234,567"]);
    }
}
