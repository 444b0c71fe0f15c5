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
    match ns {
        ..1e3 => format!("{ns:.0} ns"),
        ..1e6 => format!("{} us", three(ns / 1e3)),
        ..1e9 => format!("{} ms", three(ns / 1e6)),
        _ => format!("{} s", three(ns / 1e9)),
    }
}

/// Bytes a second, by 1,000.
pub(crate) fn rate(bytes_per_second: f64) -> String {
    match bytes_per_second {
        ..1e3 => format!("{bytes_per_second:.0} bytes/s"),
        ..1e6 => format!("{} kB/s", three(bytes_per_second / 1e3)),
        _ => format!("{} MB/s", three(bytes_per_second / 1e6)),
    }
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

fn three(value: f64) -> String {
    match value {
        ..10.0 => format!("{value:.2}"),
        ..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_units_that_fit() {
        assert_eq!([size(32 << 20), size(4096), size(257)], ["32 MiB", "4 KiB", "257 bytes"]);
        assert_eq!([size(0), size(1), size(1_000_001)], ["0 bytes", "1 byte", "1,000,001 bytes"]);
        assert_eq!([time(0.0), time(375.4), time(2345.0)], ["0 ns", "375 ns", "2.35 us"]);
        assert_eq!([time(45.25e6), time(100.4e9)], ["45.2 ms", "100 s"]);
        assert_eq!([rate(2.5e6), rate(285_000.0)], ["2.50 MB/s", "285 kB/s"]);
        assert_eq!([grouped(0), grouped(999), grouped(1_234_567)], ["0", "999", "1,234,567"]);
    }
}
