//! `select=CS:PIN[+CS:PIN…]`, `no-cs`, `jumper=CS` and `wire=FROM:TO[+FROM:TO…]`: wires that the board
//! does not have, for programs that drive their pins themselves.

/// The pins of a GPIO chip that a program can have.
pub(crate) const PINS: u8 = 32;

/// A simulated board's wiring where it is not the board's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WiringOptions {
    /// Chip selects whose chips are selected by a pin that the program drives.
    pub selects: Vec<(u8, u8)>,
    /// The controller has no chip select lines: their pins are the program's.
    pub no_cs: bool,
    /// The chip select with a wire from MOSI to MISO in the place of a chip.
    pub jumper: Option<u8>,
    /// Pins that are wired to others, which follow them.
    pub wires: Vec<(u8, u8)>,
}

impl WiringOptions {
    /// The first option that is given.
    #[must_use]
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("select", !self.selects.is_empty()),
            ("no-cs", self.no_cs),
            ("jumper", self.jumper.is_some()),
            ("wire", !self.wires.is_empty()),
        ];
        given.into_iter().find_map(|(name, given)| given.then_some(name))
    }
}

/// Reads what follows `select=`.
pub(super) fn selects(text: &str) -> Result<Vec<(u8, u8)>, String> {
    let mut selects: Vec<(u8, u8)> = Vec::new();
    for part in text.split('+') {
        let (cs, pin) = part.split_once(':').unwrap_or((part, ""));
        let example = "write CS:PIN, for example 1:25";
        let (cs, pin) = (number(cs, "chip select", example)?, self::pin(pin, example)?);
        if selects.iter().any(|(before, _)| *before == cs) {
            return Err(format!("chip select {cs} is given twice: a chip has one select"));
        }
        if selects.iter().any(|(_, before)| *before == pin) {
            return Err(format!("pin {pin} is given twice: two chips would answer at once"));
        }
        selects.push((cs, pin));
    }
    Ok(selects)
}

/// Reads what follows `jumper=`.
pub(super) fn jumper(text: &str) -> Result<u8, String> {
    number(text, "chip select", "write CS, for example 0")
}

/// Reads what follows `wire=`.
pub(super) fn wires(text: &str) -> Result<Vec<(u8, u8)>, String> {
    let mut wires: Vec<(u8, u8)> = Vec::new();
    for part in text.split('+') {
        let (from, to) = part.split_once(':').unwrap_or((part, ""));
        let example = "write FROM:TO, for example 20:21";
        let (from, to) = (self::pin(from, example)?, self::pin(to, example)?);
        let both_ends =
            |pin| wires.iter().any(|&(start, end)| end == pin || (pin == to && start == pin));
        if let Some(pin) = [from, to].into_iter().find(|&pin| both_ends(pin) || from == to) {
            return Err(format!(
                "pin {pin} cannot follow one pin and be another's: a wire has two ends"
            ));
        }
        wires.push((from, to));
    }
    Ok(wires)
}

fn pin(text: &str, example: &str) -> Result<u8, String> {
    match number(text, "GPIO pin", example)? {
        pin if pin < PINS => Ok(pin),
        pin => Err(format!(
            "pin {pin} is out of a program's reach: a GPIO chip has the pins 0 to {}",
            PINS - 1
        )),
    }
}

fn number(text: &str, what: &str, example: &str) -> Result<u8, String> {
    text.parse().map_err(|_| format!("{text:?} is no number of a {what}: {example}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_select_has_a_chip_select_and_a_pin() {
        assert_eq!(selects("1:25"), Ok(vec![(1, 25)]));
        assert_eq!(selects("0:24+1:25"), Ok(vec![(0, 24), (1, 25)]));
        for text in
            ["", "1", "1:", ":25", "1:32", "x:25", "1:25+", "1:25+1:24", "0:25+1:25", "1:25:26"]
        {
            assert!(selects(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_wire_has_two_ends_of_its_own() {
        assert_eq!(wires("20:21+20:22"), Ok(vec![(20, 21), (20, 22)]), "one drives two");
        for text in ["", "20", "20:20", "20:32", "20:21+21:22", "20:21+22:21", "20:21+22:20"] {
            assert!(wires(text).is_err(), "{text}");
        }
        assert_eq!((jumper("2"), jumper("").is_err(), jumper("256").is_err()), (Ok(2), true, true));
    }
}
