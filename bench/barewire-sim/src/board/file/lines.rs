//! The pins of the GPIO block and the chip selects.

use toml::Spanned;

use super::form::{CsForm, Pin, WireForm};
use super::{Kind, Wrong, text};
use crate::board::Pad;
use crate::board::spec::{CsSpec, GpioSpec};
use crate::model::BlockOptions;
use crate::near;
use crate::wire::Driver;

/// How many chip selects a controller's driver moves.
const OF_DRIVER: usize = 4;
/// The most chip selects of a board.
const CS_MAX: usize = 16;
/// Chip selects and pins of programs are among the first 32: a register of them, or a GPIO chip's lines.
const PINS: u8 = 32;

/// What a pin is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Select(usize),
    /// A chip's input pin, of the chip at that place.
    Input(usize),
    /// A chip's output pin.
    Output,
    WireFrom,
    WireTo,
}

/// The pins of the board's GPIO block, and what they are at.
pub(super) struct Pins {
    block: GpioSpec,
    count: u8,
    uses: Vec<(u8, Use)>,
}

impl Pins {
    pub(super) fn new(block: GpioSpec) -> Self {
        let count = (block.kind.model)(&BlockOptions::default()).pins();
        Self { block, count, uses: Vec::new() }
    }

    /// The chip selects of a shipped board.
    pub(super) fn inherit(&mut self, chip_selects: &[CsSpec]) -> Vec<CsSpec> {
        for (number, cs) in chip_selects.iter().enumerate() {
            self.uses.extend(cs.pad.map(|pad| (pad.bit, Use::Select(number))));
        }
        chip_selects.into()
    }

    pub(super) fn chip_selects(
        &mut self,
        kind: &Kind,
        controller: &str,
        forms: Vec<Spanned<CsForm>>,
    ) -> Result<Vec<CsSpec>, Wrong> {
        let mut all: Vec<CsSpec> = Vec::new();
        for form in forms {
            let number = all.len();
            if number == CS_MAX {
                return Err(Wrong::at(&form, format!("a board has at most {CS_MAX} chip selects")));
            }
            let place = form.span();
            let CsForm { gpio, native, program, pad, name, active_high } = form.into_inner();
            let mut cs = match (gpio, native, program) {
                (Some(pin), None, None) => CsSpec::gpio("", 0, self.select(number, &pin)?),
                (None, Some(line), None) => {
                    self.native(kind, &all, &line)?;
                    let pad = pad.as_ref().map(|pin| self.select(number, pin)).transpose()?;
                    let pad = pad.map(|bit| Pad { block: 0, bit });
                    CsSpec { pad, ..CsSpec::native("", line.into_inner()) }
                }
                (None, None, Some(pin)) => {
                    CsSpec { by_program: true, ..CsSpec::gpio("", 0, self.select(number, &pin)?) }
                }
                _ => {
                    let what = "a chip select has one of gpio = PIN (the controller's driver moves it), native = LINE (the \
                                controller does) and program = PIN (the program does)";
                    return Err(Wrong { at: place, what: what.into() });
                }
            };
            if number >= OF_DRIVER && !cs.by_program {
                let what = format!(
                    "the driver knows the chip selects 0 to {}; this one is {number}: put the program's behind them",
                    OF_DRIVER - 1
                );
                return Err(Wrong { at: place, what });
            }
            cs.active_high = active_high;
            cs.name = match (name, cs.pad, cs.driver) {
                (Some(name), ..) => text(name)?,
                (None, _, Driver::Native(line)) => format!("{controller}_CS{line}").leak(),
                (None, Some(pad), _) => self.block.pad_name(pad.bit).leak(),
                (None, None, Driver::Gpio { .. }) => unreachable!("its pin is its pad"),
            };
            all.push(cs);
        }
        Ok(all)
    }

    fn native(&self, kind: &Kind, before: &[CsSpec], line: &Spanned<u8>) -> Result<(), Wrong> {
        let number = *line.get_ref();
        if number >= kind.native_lines {
            let last = kind.native_lines - 1;
            let of = kind.controller.name;
            return Err(Wrong::at(
                line,
                match last {
                    0 => format!("{of} has one select line of its own here: 0"),
                    _ => format!("{of} has the select lines 0 to {last} here"),
                },
            ));
        }
        if before.iter().any(|cs| cs.driver == Driver::Native(number)) {
            return Err(Wrong::at(line, format!("line {number} is another chip select already")));
        }
        Ok(())
    }

    pub(super) fn wires(
        &mut self,
        forms: Vec<Spanned<WireForm>>,
    ) -> Result<Vec<(Pad, Pad)>, Wrong> {
        let mut wires = Vec::new();
        for form in forms {
            let WireForm { from, to } = form.into_inner();
            let ends = [(&from, Use::WireFrom), (&to, Use::WireTo)];
            let [from, to] =
                ends.map(|(pin, at)| self.program(pin).and_then(|bit| self.put(bit, pin, at)));
            wires.push((from?, to?));
        }
        Ok(wires)
    }

    /// A chip's input pin, of the chip at `index` of the file, is at that pin. Chips may share a pin.
    pub(super) fn input(&mut self, index: usize, pin: &Spanned<Pin>) -> Result<Pad, Wrong> {
        let bit = self.program(pin)?;
        self.put(bit, pin, Use::Input(index))
    }

    /// A chip's output pin is at that pin.
    pub(super) fn output(&mut self, pin: &Spanned<Pin>) -> Result<Pad, Wrong> {
        let bit = self.program(pin)?;
        self.put(bit, pin, Use::Output)
    }

    fn select(&mut self, number: usize, pin: &Spanned<Pin>) -> Result<u8, Wrong> {
        let bit = self.program(pin)?;
        self.put(bit, pin, Use::Select(number)).map(|pad| pad.bit)
    }

    /// Takes the pin for that use, unless it has one that does not go with it.
    fn put(&mut self, bit: u8, pin: &Spanned<Pin>, at: Use) -> Result<Pad, Wrong> {
        for &(_, before) in self.uses.iter().filter(|(other, _)| *other == bit) {
            let name = self.block.pad_name(bit);
            let why = match (before, at) {
                (Use::Input(one), Use::Input(other)) if one != other => continue,
                (Use::WireFrom, Use::WireFrom) => continue,
                (Use::Select(number), _) => format!("{name} is chip select {number} already"),
                (Use::Input(_) | Use::Output, _) => format!("{name} is at a chip's pin already"),
                (Use::WireFrom | Use::WireTo, _) => format!("{name} is the end of a wire already"),
            };
            return Err(Wrong::at(pin, format!("{why}: use a free pin")));
        }
        self.uses.push((bit, at));
        Ok(Pad { block: 0, bit })
    }

    /// A pin that a register of 32 bits has.
    fn program(&self, pin: &Spanned<Pin>) -> Result<u8, Wrong> {
        match self.bit(pin)? {
            bit if bit < PINS => Ok(bit),
            bit => {
                let what =
                    format!("pin {bit} is out of a program's reach: use one of 0 to {}", PINS - 1);
                Err(Wrong::at(pin, what))
            }
        }
    }

    fn bit(&self, pin: &Spanned<Pin>) -> Result<u8, Wrong> {
        let names = || (0..self.count).map(|bit| self.block.pad_name(bit));
        match pin.get_ref() {
            Pin::Number(bit) => match u8::try_from(*bit).ok().filter(|bit| *bit < self.count) {
                Some(bit) => Ok(bit),
                None => {
                    let (name, last) = (self.block.name, self.count - 1);
                    Err(Wrong::at(pin, format!("there is no pin {bit}: {name} has 0 to {last}")))
                }
            },
            Pin::Name(name) => match (0..).zip(names()).find(|(_, known)| known == name) {
                Some((bit, _)) => Ok(bit),
                None => {
                    let known: Vec<String> = names().collect();
                    let known: Vec<&str> = known.iter().map(String::as_str).collect();
                    let meant = match near::nearest(name, &known) {
                        Some(near) => format!("did you mean {near:?}? "),
                        None => String::new(),
                    };
                    let (first, last) = (known[0], known[known.len() - 1]);
                    Err(Wrong::at(
                        pin,
                        format!(
                            "there is no pin {name:?}: {meant}(known: {first} to {last}, or their numbers)"
                        ),
                    ))
                }
            },
        }
    }
}
