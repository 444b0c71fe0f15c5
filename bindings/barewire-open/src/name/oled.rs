//! `oled=CS:DC:RES[:FILE]`: a display in the place of the chip that the board has behind a chip
//! select.

use std::path::PathBuf;

/// A display on a simulated board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OledOptions {
    /// Its chip select.
    pub chip_select: u8,
    /// The pins of the board's GPIO block that drive D/C# and RES#.
    pub dc: u8,
    /// See `dc`.
    pub reset: u8,
    /// Where the picture is written when the bus is closed.
    pub picture: Option<PathBuf>,
}

/// Reads what follows `oled=`.
pub(crate) fn parse(text: &str) -> Result<OledOptions, String> {
    let mut parts = text.splitn(4, ':');
    let mut number = |what: &str| {
        let part = parts.next().unwrap_or_default();
        let number = part.parse::<u8>();
        number.map_err(|_| {
            format!("{part:?} is no number of a {what}: write CS:DC:RES, for example 0:24:25")
        })
    };
    let chip_select = number("chip select")?;
    let [dc, reset] = [number("GPIO pin")?, number("GPIO pin")?];
    if dc == reset {
        return Err(format!("pin {dc} cannot be both D/C# and RES#"));
    }
    match parts.next() {
        Some("") => Err("name a file: CS:DC:RES:FILE".into()),
        picture => Ok(OledOptions { chip_select, dc, reset, picture: picture.map(Into::into) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_display_has_a_chip_select_and_two_pins() {
        let display = |picture: Option<&str>| OledOptions {
            chip_select: 0,
            dc: 24,
            reset: 25,
            picture: picture.map(Into::into),
        };
        assert_eq!(parse("0:24:25"), Ok(display(None)));
        assert_eq!(parse("0:24:25:a:b.pbm"), Ok(display(Some("a:b.pbm"))));
        for text in ["", "0", "0:24", "0:24:", "0:x:25", "0:24:24", "256:1:2", "0:24:25:"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
