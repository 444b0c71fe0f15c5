//! Numbers and words in captures.

use std::io::BufRead;

use crate::error::io;

/// `12 MHz`, `500 kHz`, `12.5MHz` or `1000000` in hertz.
pub(super) fn hertz(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim().to_ascii_lowercase().trim_end_matches("hz") {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    Some((number * factor).round()).filter(|hz| *hz < 1e18).map(|hz| hz as u64)
}

/// `-12.5` seconds, in picoseconds. Digits beyond are cut.
pub(super) fn picoseconds(text: &str) -> Option<i64> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text),
    };
    if text.contains(['e', 'E']) {
        let seconds: f64 = text.parse().ok()?;
        let ps = (seconds * 1e12).round();
        return (ps < 9e18).then_some(if negative { -ps as i64 } else { ps as i64 });
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = &fraction[..fraction.len().min(12)];
    let fraction: i64 = format!("{digits:0<12}").parse().ok()?;
    let whole: i64 = whole.parse::<u32>().ok()?.into();
    let ps = whole.checked_mul(1_000_000_000_000)?.checked_add(fraction)?;
    Some(if negative { -ps } else { ps })
}

/// The bytes of `reader` up to `until`, without it, into `line`. Returns how many were read, with it.
///
/// # Errors
/// There are more than `max`: this is no text of that kind.
pub(super) fn read_until(
    reader: &mut impl BufRead,
    until: u8,
    max: usize,
    line: &mut Vec<u8>,
) -> Result<usize, String> {
    line.clear();
    let len = std::io::Read::take(&mut *reader, max as u64).read_until(until, line).map_err(io)?;
    if line.last() == Some(&until) {
        line.pop();
    } else if len == max {
        return Err(format!("a line of more than {max} bytes"));
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read() {
        let given = ["12 MHz", "500 kHz", "12.5MHz", "1000000", "0", "1 GHz", "2 Hz"];
        let expected = [12_000_000, 500_000, 12_500_000, 1_000_000, 0, 1_000_000_000, 2];
        assert_eq!(given.map(hertz), expected.map(Some));
        assert_eq!(["", "fast", "1 THz", "1..2 MHz"].map(hertz), [None; 4]);
        let given = ["0.000000001", "-1.5", "3", "2.0000000000019", "1e-9", "-2.5E-6"];
        let expected =
            [1_000, -1_500_000_000_000, 3_000_000_000_000, 2_000_000_000_001, 1_000, -2_500_000];
        assert_eq!(given.map(picoseconds), expected.map(Some));
        assert_eq!(["", "x", "1.x", "--1", ".5", "99999999999"].map(picoseconds), [None; 6]);
    }
}
