//! The chips on the board, as the user names them: `KIND@CS` or `KIND@CS=OPTION`.
//!
//! # How it works
//! Each kind has a file with one function, which builds the model, puts it behind the chip select and
//! returns [`FittedChip`]: what a device tree says of the chip, its interrupt line, and what it can tell
//! afterwards. The surroundings that act on a chip (a CAN node, a pen, voltages) are built with it.

mod can;
mod converter;
mod flash;
mod touch;
mod wire;

use std::fmt;
use std::str::FromStr;

use barewire_sim::{Board, IntLine, Pad};

/// The kinds of chips, and what their option is.
pub const KINDS: [(&str, &str); 6] = [
    ("flash", "the part, as sim: names it; the board's own without"),
    (
        "can",
        "the CAN bus's rates in bit/s, NOMINAL/DATA, and what goes wrong: flags, crc, errata, ecc, off, flood; 500000/2000000 without",
    ),
    ("adc", "the part, mcp3002 to mcp3208; mcp3008 without"),
    ("touch", "none"),
    ("jumper", "its highest clock in Hz: MISO is connected to MOSI; 10000000 without"),
    ("spidev", "none: as jumper, for spidev; in mode N each half of a byte comes back XOR N"),
];

/// A chip to be fitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChipName {
    /// Its place in [`KINDS`].
    kind: usize,
    /// The chip select, by the simulator's number.
    pub cs: u8,
    option: Option<String>,
}

impl FromStr for ChipName {
    type Err = FitError;

    fn from_str(text: &str) -> Result<Self, FitError> {
        let form = || FitError(format!("{text:?} is not KIND@CS or KIND@CS=OPTION, like flash@0"));
        let (place, option) = match text.split_once('=') {
            Some((place, option)) => (place, Some(option.to_owned())),
            None => (text, None),
        };
        let (kind, cs) = place.split_once('@').ok_or_else(form)?;
        let cs = cs.parse().map_err(|_| form())?;
        let kind = KINDS.iter().position(|(name, _)| *name == kind).ok_or_else(|| {
            let names: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
            FitError(format!("no kind of chip is called {kind:?}; there are {}", names.join(", ")))
        })?;
        Ok(Self { kind, cs, option })
    }
}

impl fmt::Display for ChipName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", KINDS[self.kind].0, self.cs)?;
        self.option.iter().try_for_each(|option| write!(f, "={option}"))
    }
}

/// Why a chip cannot be fitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FitError(pub(crate) String);

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FitError {}

/// A chip on the board.
pub struct FittedChip {
    /// Its chip select, by the simulator's number.
    pub cs: u8,
    /// The device tree's name of the node.
    pub(crate) node: &'static str,
    pub(crate) compatible: &'static str,
    pub(crate) max_hz: u32,
    /// Further properties of the node, a line each.
    pub(crate) properties: Vec<String>,
    /// Nodes beside the buses that the properties name.
    pub(crate) beside: Vec<String>,
    /// The line at its interrupt pin.
    pub(crate) line: Option<IntLine>,
    /// The pad at which its pin can be read, and the property that names it.
    pub(crate) pad: Option<(Pad, &'static str)>,
    /// Reports its counts, one line each.
    tell: Box<dyn Fn() -> Vec<String>>,
}

impl FittedChip {
    /// A chip without anything but a name.
    fn new(cs: u8, node: &'static str, compatible: &'static str, max_hz: u32) -> Self {
        Self {
            cs,
            node,
            compatible,
            max_hz,
            properties: Vec::new(),
            beside: Vec::new(),
            line: None,
            pad: None,
            tell: Box::new(Vec::new),
        }
    }

    /// Counts of the chip and of its surroundings (a CAN node, a pen), one line each.
    #[must_use]
    pub fn told(&self) -> Vec<String> {
        (self.tell)()
    }
}

impl fmt::Debug for FittedChip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FittedChip")
            .field("cs", &self.cs)
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}

/// Puts the chip on the board.
///
/// # Errors
/// [`FitError`]: no such chip select, a chip there already, or an option that the kind does not have.
pub fn fit(board: &Board, chip: &ChipName) -> Result<FittedChip, FitError> {
    let lines = board.spec().cs.len();
    if usize::from(chip.cs) >= lines {
        let name = board.spec().name;
        return Err(FitError(format!("{chip}: sim:{name} has {lines} chip selects, from 0")));
    }
    if board.has_chip(chip.cs) {
        return Err(FitError(format!("{chip}: a chip is there already")));
    }
    let (kind, option) = (KINDS[chip.kind].0, chip.option.as_deref());
    let fitted = match (kind, option) {
        ("flash", part) => flash::fit(board, chip.cs, part),
        ("can", rates) => can::fit(board, chip.cs, rates),
        ("adc", part) => converter::fit(board, chip.cs, part),
        ("touch", None) => touch::fit(board, chip.cs),
        ("jumper", hz) => wire::jumper(board, chip.cs, hz),
        ("spidev", None) => Ok(wire::spidev(board, chip.cs)),
        _ => Err(FitError("it takes no option".into())),
    };
    fitted.map_err(|FitError(why)| FitError(format!("{chip}: {why}")))
}

/// The board's pads. Pads that are chip selects, or that a chip drives already, cannot be a chip's
/// output.
fn pads(board: &Board) -> impl Iterator<Item = Pad> + '_ {
    let banks = (0..).map_while(|block| Some((block, board.pads_of(block)?)));
    banks.flat_map(|(block, pads)| (0..pads).map(move |bit| Pad { block, bit }))
}

#[cfg(test)]
mod tests {
    use barewire_sim::{BoardOptions, BoardSpec};

    use super::*;

    fn fitted(board: &Board, chip: &str) -> Result<FittedChip, FitError> {
        fit(board, &chip.parse()?)
    }

    #[test]
    fn chips_are_named_by_kind_and_chip_select() {
        for text in ["flash@0", "can@2=125000/125000", "adc@1=mcp3208", "touch@3", "jumper@0"] {
            let chip: ChipName = text.parse().expect("a chip");
            assert_eq!(chip.to_string(), text);
        }
        for (text, why) in [
            ("flash", "is not KIND@CS"),
            ("flash@", "is not KIND@CS"),
            ("flash@300", "is not KIND@CS"),
            ("eeprom@0", "there are flash, can, adc, touch"),
        ] {
            let error = text.parse::<ChipName>().expect_err(text).to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_fitted_is_said() {
        let board =
            Board::new(BoardSpec::find("imx8mp").expect("a board"), BoardOptions::default());
        fitted(&board, "flash@0").expect("it fits");
        for (chip, why) in [
            ("can@0", "can@0: a chip is there already"),
            ("can@9", "can@9: sim:imx8mp has 4 chip selects, from 0"),
            ("touch@3=big", "touch@3=big: it takes no option"),
            ("can@2=fast", "like 500000/2000000"),
            ("can@2=500000/500000,bad", "there are flags, crc, errata, ecc, off, flood"),
            ("adc@2=mcp1", "mcp3008"),
            ("flash@2=eeprom", "no part is called"),
        ] {
            let error = fitted(&board, chip).expect_err(chip).to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn every_kind_fits_every_board() {
        for spec in barewire_sim::board::boards() {
            for (kind, _) in KINDS {
                let board = Board::new(spec, BoardOptions::default());
                fitted(&board, &format!("{kind}@0")).expect("it fits");
                assert!(board.has_chip(0));
            }
        }
    }
}
