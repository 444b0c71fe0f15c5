//! A board as a TOML file: `sim:FILE.toml`.
//!
//! *Read first*: docs/simulation.md, *A board of your own*, for the format.
//!
//! # How it works
//! 1. `form` has the keys; TOML's reader refuses what is no key or has another type, and says where.
//! 2. `lines` makes the chip selects and pins of it, `chips` the chips. Whatever the board could not be is refused
//!    there, at the place in the file that says it.
//! 3. A [`BoardSpec`] lives as long as the program. [`BoardSpec::from_toml`] keeps one for each text, so a program
//!    that opens a board again and again needs no more memory.
//!
//! The shipped boards are such files too: `boards/` of this crate.

mod chips;
mod form;
mod lines;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;

use self::form::{BoardForm, ControllerForm, GpioForm};
use self::lines::Pins;
use super::spec::{BoardSpec, ControllerKind, GpioKind, GpioSpec};
use crate::model::gpio;
use crate::model::{atmel, bcm2835, cadence, dw_ssi, ecspi, mcspi, pl022, sifive};
use crate::near;
use crate::profile::{Profile, figure};

/// A controller that a file can name.
struct Kind {
    /// The name, which `--bus mem:` has too.
    name: &'static str,
    controller: &'static ControllerKind,
    /// The GPIO block that its driver moves chip selects by.
    gpio: &'static GpioKind,
    /// How many select lines of its own it has, from 0.
    native_lines: u8,
}

/// The controllers. RP1 gives two lines of the DW_apb_ssi to pins, FU540 one of its SPI0.
static KINDS: [Kind; 8] = [
    kind("atmel", &atmel::KIND, &gpio::atmel_pio::KIND, 4),
    kind("bcm2835", &bcm2835::KIND, &gpio::bcm2835::KIND, 2),
    kind("cadence", &cadence::KIND, &gpio::zynq::KIND, 3),
    kind("dw-ssi", &dw_ssi::KIND, &gpio::rp1::KIND, 2),
    kind("ecspi", &ecspi::KIND, &gpio::imx::KIND, 4),
    kind("mcspi", &mcspi::KIND, &gpio::omap::KIND, 4),
    kind("pl022", &pl022::KIND, &gpio::pl061::KIND, 1),
    kind("sifive", &sifive::KIND, &gpio::sifive::KIND, 1),
];

const fn kind(
    name: &'static str,
    controller: &'static ControllerKind,
    gpio: &'static GpioKind,
    native_lines: u8,
) -> Kind {
    Kind { name, controller, gpio, native_lines }
}

/// Reference clocks that a file may give, in hertz.
const REFERENCE_HZ: Range<u32> = 1_000_000..1_000_000_001;

/// The longest title and name.
const NAME_MAX: usize = 120;

/// What is wrong in a board's file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardFileError {
    /// The line, from 1.
    pub line: usize,
    /// The character in that line, from 1.
    pub column: usize,
    /// What is wrong, with the remedy.
    pub what: String,
}

impl fmt::Display for BoardFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.what)
    }
}

impl std::error::Error for BoardFileError {}

/// What is wrong, and the bytes of the text that say it.
pub(super) struct Wrong {
    at: Range<usize>,
    what: String,
}

impl Wrong {
    fn at<T>(place: &Spanned<T>, what: impl Into<String>) -> Self {
        Self { at: place.span(), what: what.into() }
    }

    fn in_text(self, text: &str) -> BoardFileError {
        let before = text.get(..self.at.start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        BoardFileError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            what: self.what,
        }
    }
}

/// The boards that a file's `like` can name.
#[derive(Clone, Copy)]
pub(super) struct KnownBoards {
    pub(super) names: fn() -> Vec<&'static str>,
    pub(super) find: fn(&str) -> Option<&'static BoardSpec>,
}

/// The board that `text` describes.
pub(super) fn parse(
    name: &'static str,
    text: &str,
    folder: &Path,
    known: KnownBoards,
) -> Result<BoardSpec, BoardFileError> {
    let form = toml::from_str::<BoardForm>(text).map_err(|error| {
        let at = error.span().unwrap_or(0..0);
        Wrong { at, what: error.message().into() }
    });
    form.and_then(|form| board(name, form, folder, known)).map_err(|wrong| wrong.in_text(text))
}

fn board(
    name: &'static str,
    form: BoardForm,
    folder: &Path,
    known: KnownBoards,
) -> Result<BoardSpec, Wrong> {
    let BoardForm { title, like, costs, controller, gpio, cs, chip, wire } = form;
    let like = like.as_ref().map(|name| find_board(name, known)).transpose()?;
    let mut profile = match (&costs, like) {
        (Some(costs), _) => find_profile(costs)?.clone(),
        (None, Some(like)) => like.profile.clone(),
        (None, None) => return Err(missing(None, "costs = \"rpi3\"")),
    };
    let tables = [controller.as_ref().map(Spanned::span), gpio.as_ref().map(Spanned::span)];
    let ControllerForm { kind, name: own_name, base, reference_hz, no_cs } =
        controller.map(Spanned::into_inner).unwrap_or_default();
    let kind = match (&kind, like) {
        (Some(kind), _) => find_kind(kind)?,
        (None, Some(like)) => kind_of(like.kind),
        (None, None) => {
            return Err(missing(tables[0].clone(), "[controller] with kind = \"bcm2835\""));
        }
    };
    // With another controller, only the costs are the shipped board's.
    let like_it = like.filter(|like| like.kind == kind.controller);
    if let Some(hz) = reference_hz {
        if !REFERENCE_HZ.contains(hz.get_ref()) {
            return Err(Wrong::at(&hz, "a reference clock is from 1 MHz to 1 GHz"));
        }
        profile.reference_hz = figure((*hz.get_ref()).into(), "the board's file");
    }
    let controller = match (own_name, like_it) {
        (Some(name), _) => text(name)?,
        (None, Some(like)) => like.controller,
        (None, None) => kind.controller.name,
    };
    let controller_base = match (base, like_it) {
        (Some(base), _) => address(&base, kind.controller.bytes)?,
        (None, Some(like)) => like.controller_base,
        (None, None) => {
            return Err(missing(tables[0].clone(), "[controller] with base = 0x3f20_4000"));
        }
    };
    let GpioForm { name: gpio_name, base } = gpio.map(Spanned::into_inner).unwrap_or_default();
    let of_like = like_it.map(|like| like.gpio[0]);
    let block = GpioSpec {
        kind: kind.gpio,
        name: match (gpio_name, of_like) {
            (Some(name), _) => text(name)?,
            (None, Some(block)) => block.name,
            (None, None) => "GPIO",
        },
        base: match (base, of_like) {
            (Some(base), _) => address(&base, kind.gpio.bytes)?,
            (None, Some(block)) => block.base,
            (None, None) => {
                return Err(missing(tables[1].clone(), "[gpio] with base = 0x3f20_0000"));
            }
        },
    };
    let mut pins = Pins::new(block);
    let cs = match like_it {
        Some(like) if cs.is_empty() => pins.inherit(like.cs),
        None if cs.is_empty() => return Err(missing(None, "[[cs]] with gpio = 8")),
        _ => pins.chip_selects(kind, controller, cs)?,
    };
    let chips = chips::read(&mut pins, &cs, no_cs, chip, &mut chips::Files::new(name, folder))?;
    let wires = pins.wires(wire)?;
    let title = match (title, like) {
        (Some(title), _) => text(title)?,
        (None, Some(like)) => format!("a board of your own, like {}", like.name).leak(),
        (None, None) => "a board of your own",
    };
    Ok(BoardSpec {
        name,
        like: like_it.map(|like| like.name),
        title,
        profile,
        kind: kind.controller,
        controller,
        controller_base,
        gpio: vec![block].leak(),
        cs: cs.leak(),
        no_cs,
        chips: chips.leak(),
        wires: wires.leak(),
    })
}

fn missing(table: Option<Range<usize>>, example: &str) -> Wrong {
    let what = format!("{example} is missing; or take a shipped board's, as with like = \"rpi3\"");
    Wrong { at: table.unwrap_or(0..0), what }
}

fn find_board(name: &Spanned<String>, known: KnownBoards) -> Result<&'static BoardSpec, Wrong> {
    let found = (known.find)(name.get_ref());
    found.ok_or_else(|| unknown("shipped board", name, &(known.names)()))
}

fn find_profile(name: &Spanned<String>) -> Result<&'static Profile, Wrong> {
    Profile::named(name.get_ref())
        .ok_or_else(|| unknown("profile of costs", name, &Profile::names()))
}

fn find_kind(name: &Spanned<String>) -> Result<&'static Kind, Wrong> {
    KINDS.iter().find(|kind| kind.name == name.get_ref()).ok_or_else(|| {
        let known = KINDS.each_ref().map(|kind| kind.name);
        unknown("controller", name, &known)
    })
}

fn kind_of(controller: &ControllerKind) -> &'static Kind {
    let found = KINDS.iter().find(|kind| kind.controller == controller);
    found.expect("each kind that a shipped board has is listed")
}

/// The error for a `what` of a name that there is not.
fn unknown(what: &str, name: &Spanned<String>, known: &[&str]) -> Wrong {
    Wrong::at(name, near::unknown(what, name.get_ref(), known))
}

/// A name or a title, which lives as long as the board.
fn text(text: Spanned<String>) -> Result<&'static str, Wrong> {
    let is_line = |text: &str| !text.trim().is_empty() && !text.chars().any(char::is_control);
    match text.get_ref() {
        own if !is_line(own) => Err(Wrong::at(&text, "a name is a line of text")),
        own if own.chars().count() > NAME_MAX => {
            Err(Wrong::at(&text, format!("a name has at most {NAME_MAX} characters")))
        }
        _ => Ok(text.into_inner().leak()),
    }
}

/// The address of a block of `bytes`.
fn address(base: &Spanned<u64>, bytes: u32) -> Result<u64, Wrong> {
    match base.get_ref() {
        at if at % 4 != 0 => Err(Wrong::at(base, "registers are at a multiple of 4")),
        at if at.checked_add(bytes.into()).is_none() => {
            Err(Wrong::at(base, "the block would end beyond the last address"))
        }
        &at => Ok(at),
    }
}
