//! Bytes as hex, in and out.

use std::fmt::Write as _;

/// The bytes `argument` spells: pairs of hex digits, spaces, colons and `0x` between them as one
/// likes.
pub(crate) fn parse(argument: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(argument.len() / 2);
    // The digit that waits for its other half, and where it stands.
    let mut half: Option<(u8, usize)> = None;
    let mut chars = argument.chars().zip(1..).peekable();
    let mut group_begins = true;
    while let Some((char, position)) = chars.next() {
        if char.is_ascii_whitespace() || char == ':' {
            lone(argument, half)?;
            group_begins = true;
            continue;
        }
        let prefix = group_begins && char == '0';
        group_begins = false;
        if prefix && chars.next_if(|(next, _)| matches!(next, 'x' | 'X')).is_some() {
            continue;
        }
        let Some(digit) = char.to_digit(16) else {
            return Err(format!("{argument:?}: {char:?} at position {position} is no hex digit"));
        };
        half = match half {
            None => Some((digit as u8, position)),
            Some((high, _)) => {
                bytes.push(high << 4 | digit as u8);
                None
            }
        };
    }
    lone(argument, half)?;
    if bytes.is_empty() {
        return Err(format!(
            "{argument:?} holds no bytes: write pairs of hex digits, like 9f000000"
        ));
    }
    Ok(bytes)
}

fn lone(argument: &str, half: Option<(u8, usize)>) -> Result<(), String> {
    match half {
        None => Ok(()),
        Some((_, position)) => Err(format!(
            "{argument:?}: an odd number of hex digits, the one at position {position} stands alone: two make a byte"
        )),
    }
}

/// `bytes` as pairs of hex digits with `between` between them.
pub(crate) fn format(bytes: &[u8], between: &str) -> String {
    let mut text = String::with_capacity(bytes.len() * (2 + between.len()));
    for (index, byte) in bytes.iter().enumerate() {
        let between = if index == 0 { "" } else { between };
        let _ = write!(text, "{between}{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_in_any_usual_dress_is_read() {
        for text in ["9f00Ff", "9f 00 ff", "9f:00:ff", "0x9f00ff", "0x9f 0x00 0Xff", " 9f00 ff "] {
            assert_eq!(parse(text).as_deref(), Ok(&[0x9f, 0, 0xff][..]), "{text}");
        }
        assert_eq!(parse("00").as_deref(), Ok(&[0][..]));
        assert_eq!(format(&[0x9f, 0, 0xff], " "), "9f 00 ff");
        assert_eq!(format(&[], " "), "");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_position() {
        for (text, part) in [
            ("9f0", "position 3"),
            ("9 f0", "position 1"),
            ("9g", "'g' at position 2"),
            ("9f0x00", "'x' at position 4"),
            ("é9", "'é' at position 1"),
            ("", "no bytes"),
            ("0x", "no bytes"),
            (" : ", "no bytes"),
            ("-", "'-' at position 1"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
