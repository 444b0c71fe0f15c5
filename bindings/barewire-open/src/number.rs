//! Numbers as people write them: decimal, 0x hex, `_` between digits, and a suffix.
//!
//! Bytes count by 1,024 (`64K`, `1M`), all else by 1,000 (`20M` hertz, `10k` samples), as the field does.

use std::ops::RangeInclusive;

/// A number of bytes or an address: suffixes K, M and G are 1024-based.
pub fn bytes(text: &str) -> Result<u64, String> {
    number(text, 1024)
}

/// A clock in hertz: suffixes k, M and G are 1000-based.
pub fn hertz(text: &str) -> Result<u32, String> {
    let hertz = number(text, 1000)?;
    if hertz == 0 {
        return Err("0 Hz is no clock".into());
    }
    u32::try_from(hertz).map_err(|_| format!("{hertz} Hz is beyond any SPI clock"))
}

/// A count, a time or another number without a unit of its own: suffixes k, M and G are 1000-based.
pub fn count<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    let value = number(text, 1000).map_err(|error| error.replace("4K or 1M", "10k or 1M"))?;
    N::try_from(value).map_err(|_| match value {
        0 => "at least 1".into(),
        _ => format!("{value} is too large"),
    })
}

/// A [`count`] in a range.
pub fn within(text: &str, range: RangeInclusive<u32>) -> Result<u32, String> {
    let value = count(text)?;
    match range.contains(&value) {
        true => Ok(value),
        false => Err(format!("from {} to {}", range.start(), range.end())),
    }
}

/// One byte, as two hex digits with or without 0x.
pub fn hex_byte(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let plain = (1..=2).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    plain.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
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
            ("4k", 4096),
            ("1M", 1 << 20),
            ("0x10K", 16 << 10),
            ("1_000_000", 1_000_000),
            ("2G", 2 << 30),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        assert_eq!(hertz("20M"), Ok(20_000_000));
        assert_eq!(hertz("500k"), Ok(500_000));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in
            ["", "K", "0x", "-1", "+1", "1.5M", "12Q", "_", "0x_", "é", "1é", "99999999999G"]
        {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert!(hertz("5G").is_err());
        assert_eq!(
            [hex_byte("0x3c"), hex_byte("3C"), hex_byte("7")],
            [Some(60), Some(60), Some(7)]
        );
        assert_eq!([hex_byte(""), hex_byte("0x"), hex_byte("123"), hex_byte("+1")], [None; 4]);
    }
}
