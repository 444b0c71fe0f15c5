//! Numbers as people write them: decimal, 0x hex, `_` between digits, and a suffix.
//!
//! Bytes count by 1,024 (`64K`, `1M`), all else by 1,000 (`10k` rounds), as the field does.

use std::ops::RangeInclusive;

/// A number of bytes or an address: suffixes K, M and G are 1024-based.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    number(text, 1024)
}

/// A count or another number without a unit of its own: suffixes k, M and G are 1000-based.
pub(crate) fn count<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    let value = number(text, 1000).map_err(|error| error.replace("4K or 1M", "10k or 1M"))?;
    N::try_from(value).map_err(|_| format!("{value} is too large"))
}

/// A [`count`] in a range.
pub(crate) fn within(text: &str, range: RangeInclusive<u32>) -> Result<u32, String> {
    let value = count(text)?;
    match range.contains(&value) {
        true => Ok(value),
        false => Err(format!("from {} to {}", range.start(), range.end())),
    }
}

fn number(text: &str, step: u64) -> Result<u64, String> {
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], step),
        Some((at, 'm' | 'M')) => (&text[..at], step.pow(2)),
        Some((at, 'g' | 'G')) => (&text[..at], step.pow(3)),
        _ => (text, 1),
    };
    let (digits, radix) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (digits, 10),
    };
    let digits: String = digits.chars().filter(|&digit| digit != '_').collect();
    // `from_str_radix` takes a sign, which has no meaning here.
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err("not a number: write 4096, 0x1000, 4K or 1M".into());
    }
    let value = u64::from_str_radix(&digits, radix).ok();
    value.and_then(|value| value.checked_mul(factor)).ok_or_else(|| "too large a number".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (text, expected) in [
            ("0", 0),
            ("4096", 4096),
            ("0x1000", 4096),
            ("0XfF", 255),
            ("4K", 4096),
            ("0x10k", 16 << 10),
            ("1_000_000", 1_000_000),
            ("2G", 2 << 30),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        assert_eq!([within("10k", 0..=10_000), count("1M")], [Ok(10_000), Ok(1_000_000)]);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in
            ["", "K", "0x", "-1", "+1", "1.5M", "12Q", "_", "0x_", "é", "1é", "99999999999G"]
        {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert_eq!(count::<u8>("256"), Err("256 is too large".into()));
        assert_eq!(within("3", 1..=2), Err("from 1 to 2".into()));
    }
}
