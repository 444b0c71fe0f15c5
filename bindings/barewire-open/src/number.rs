//! Numbers as people write them: decimal, 0x hex, `_` between digits, and a suffix, which may follow a fraction (`18.75M`).
//!
//! Bytes count by 1,024 (`64K`, `1M`), all else by 1,000 (`20M` hertz, `10k` samples), as the field does.

use std::ops::RangeInclusive;

/// A number of bytes or an address: suffixes K, M and G are 1024-based.
pub fn bytes(text: &str) -> Result<u64, String> {
    number(text, 1024, "write 4096, 0x1000, 4K or 1.5M")
}

/// A clock in hertz: suffixes k, M and G are 1000-based.
pub fn hertz(text: &str) -> Result<u32, String> {
    let hertz = number(text, 1000, "write 500k, 18.75M or 20000000, in hertz")?;
    if hertz == 0 {
        return Err("0 Hz is no clock".into());
    }
    u32::try_from(hertz).map_err(|_| format!("{hertz} Hz is beyond any SPI clock"))
}

/// A count, a time or another number without a unit of its own: suffixes k, M and G are 1000-based.
pub fn count<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    let value = number(text, 1000, "write 12, 10k or 1.5M")?;
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

fn number(text: &str, step: u64, hint: &str) -> Result<u64, String> {
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
    let (digits, fraction) = match digits.split_once('.').filter(|_| radix == 10) {
        Some((digits, fraction)) => (digits, Some(fraction)),
        None => (digits.as_str(), None),
    };
    // `from_str_radix` takes a sign, which has no meaning here.
    let are_digits =
        |text: &str| !text.is_empty() && text.chars().all(|digit| digit.is_digit(radix));
    if !are_digits(digits) || !fraction.is_none_or(are_digits) {
        return Err(format!("not a number: {hint}"));
    }
    let too_large = || "too large a number".to_owned();
    let whole = u64::from_str_radix(digits, radix).ok();
    let whole = whole.and_then(|whole| whole.checked_mul(factor)).ok_or_else(too_large)?;
    let Some(fraction) = fraction.map(|fraction| fraction.trim_end_matches('0')) else {
        return Ok(whole);
    };
    // A fraction of a byte or of a hertz is refused.
    let part = || -> Option<u64> {
        let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        let part = format!("0{fraction}").parse::<u64>().ok()?.checked_mul(factor)?;
        part.is_multiple_of(scale).then_some(part / scale)
    };
    let part = part().ok_or_else(|| format!("not a whole number: {hint}"))?;
    whole.checked_add(part).ok_or_else(too_large)
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
        assert_eq!([hertz("18.75M"), hertz("0.5k")], [Ok(18_750_000), Ok(500)]);
        assert_eq!(
            [bytes("1.5K"), bytes("2.0"), bytes("0.250_0M")],
            [Ok(1536), Ok(2), Ok(256 << 10)]
        );
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            "K",
            "0x",
            "-1",
            "+1",
            "1.5",
            "1.",
            ".5M",
            "1.2.3M",
            "0x1.8",
            "1.-5M",
            "12Q",
            "_",
            "0x_",
            "é",
            "1é",
            "99999999999G",
            "18446744073709551615.5K",
            "1.0009K",
            "1.00000000000000000000001M",
        ] {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert!(hertz("5G").is_err());
        // What is said fits the option.
        assert!(hertz("fast").is_err_and(|why| why.contains("in hertz")));
        assert!(count::<u8>("x").is_err_and(|why| !why.contains("0x")));
        assert_eq!(
            [hex_byte("0x3c"), hex_byte("3C"), hex_byte("7")],
            [Some(60), Some(60), Some(7)]
        );
        assert_eq!([hex_byte(""), hex_byte("0x"), hex_byte("123"), hex_byte("+1")], [None; 4]);
    }
}
