//! Lines between a chip's pins and a board's pads: D/C, RESET, INT, BUSY.
//!
//! *Read first*: [`crate::chip::pin`] for a chip's side.
//!
//! # How it works
//! An input pin follows its pad: whatever the program drives there by the GPIO block's registers, the
//! chip is told, at the time at which the write arrives. An output pin gives its pad a level, which
//! the program reads by the registers, and an [`IntLine`], which the program waits for. So an edge and
//! a look cost what the board's profile says of the registers and of an interrupt.
//!
//! # Ordering
//! 1. An access to a GPIO block first lets the wire and the connected chips come to the access's time.
//! 2. Then the pads take the chips' levels, and only then does the access act.
//!
//! # Not supported
//! - A pad driven by two chips, or by a chip and the program: the chip's pin is ignored while the
//!   block drives the pad.
//! - Interrupts of the GPIO block itself: an edge that comes and goes between two accesses of the
//!   block is not seen by its registers. An [`IntLine`] sees it.
//! - A chip's output at another chip's input.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use super::Board;
use super::body::{Output, Pad};
use crate::chip::{Chip, Pin, Ps, Source};
use crate::line::IntLine;
use crate::wire::Driver;

/// Why lines could not be connected. Nothing was attached then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineError {
    /// The board has no such chip select.
    NoChipSelect(u8),
    /// The chip has no pin of this name at this place of the list.
    NoPin(usize),
    /// The pin at this place of the list is connected already.
    Twice(usize),
    /// The board has no such pad.
    NoPad(Pad),
    /// The pad is a chip select.
    ChipSelect(Pad),
    /// Another chip or a wire from another pad drives the pad, or the pad is to be both an input and an output.
    Driven(Pad),
    /// The wire has 32 connected input pins, or would have more.
    TooMany,
    /// The chip select is a line of the controller alone: no GPIO block of the board has its pad.
    NoPadOf(u8),
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoChipSelect(cs) => write!(f, "the board has no chip select {cs}"),
            Self::NoPin(at) => write!(f, "line {at}: the chip has no pin of this name"),
            Self::Twice(at) => write!(f, "line {at}: the pin is connected already"),
            Self::NoPad(pad) => write!(f, "the board has no {pad}"),
            Self::ChipSelect(pad) => write!(f, "{pad} is a chip select"),
            Self::Driven(pad) => write!(f, "{pad} is wired to something else"),
            Self::TooMany => f.write_str("more than 32 input pins"),
            Self::NoPadOf(cs) => {
                write!(f, "chip select {cs} is a line of the controller alone: no GPIO pin has it")
            }
        }
    }
}

impl std::error::Error for LineError {}

/// The interrupt lines of a chip's output pins.
#[derive(Clone, Debug, Default)]
pub struct ChipLines(Vec<(&'static str, IntLine)>);

impl ChipLines {
    /// The line at output pin `pin`, high while the pin is asserted; `None` if the pin is not
    /// connected. Case does not matter.
    #[must_use]
    pub fn interrupt(&self, pin: &str) -> Option<&IntLine> {
        let found = self.0.iter().find(|(name, _)| name.eq_ignore_ascii_case(pin));
        found.map(|(_, line)| line)
    }
}

impl Board {
    /// Puts `chip` behind chip select `cs`, as [`Board::attach`], and connects pins of the chip to pads
    /// of the board: each line is the pin's name (case does not matter) and the pad.
    ///
    /// An input pin is told the pad's level at once, and then each of its edges; several pins may share
    /// a pad. A pin that is in no line stays unconnected: it keeps the level that the model assumes.
    /// Returns an interrupt line for each connected output pin.
    ///
    /// # Errors
    /// [`LineError`]; nothing is attached then.
    pub fn attach_with_lines<C: Chip + 'static>(
        &self,
        cs: u8,
        chip: Rc<RefCell<C>>,
        lines: &[(&str, Pad)],
    ) -> Result<ChipLines, LineError> {
        let pins = chip.borrow().pins();
        let mut connected: Vec<(&Pin, Pad)> = Vec::new();
        for (at, &(name, pad)) in lines.iter().enumerate() {
            let pin = pins.iter().find(|pin| pin.name().eq_ignore_ascii_case(name));
            let pin = pin.ok_or(LineError::NoPin(at))?;
            if connected.iter().any(|(other, _)| other.name() == pin.name()) {
                return Err(LineError::Twice(at));
            }
            self.check_pad(pad)?;
            let input = matches!(pin, Pin::Input(_));
            let shared = connected.iter().filter(|(_, other)| *other == pad);
            if shared.into_iter().any(|(other, _)| !input || !matches!(other, Pin::Input(_))) {
                return Err(LineError::Driven(pad));
            }
            if !input && self.shared.world.borrow().wire.is_input(driver(pad)) {
                return Err(LineError::Driven(pad));
            }
            connected.push((pin, pad));
        }
        let now = self.engine().now_ps();
        {
            let world = self.shared.world.borrow();
            let inputs = connected.iter().filter(|(pin, _)| matches!(pin, Pin::Input(_))).count();
            if usize::from(cs) >= world.wire.lines() {
                return Err(LineError::NoChipSelect(cs));
            }
            if !world.wire.has_room(inputs) {
                return Err(LineError::TooMany);
            }
        }
        self.attach(cs, chip);
        let mut interrupts = Vec::new();
        for (pin, pad) in connected {
            match pin {
                Pin::Input(name) => {
                    let mut world = self.shared.world.borrow_mut();
                    let level = world.gpio[usize::from(pad.block)].pads() >> pad.bit & 1 != 0;
                    world.wire.connect(cs, name, driver(pad), level, now);
                }
                Pin::ActiveLow(name, source) => {
                    interrupts.push((*name, self.connect(pad, source.clone(), false)));
                }
                Pin::ActiveHigh(name, source) => {
                    interrupts.push((*name, self.connect(pad, source.clone(), true)));
                }
            }
        }
        self.shared.follow_outputs(now);
        Ok(ChipLines(interrupts))
    }

    fn connect(&self, pad: Pad, source: Rc<dyn Source>, active_high: bool) -> IntLine {
        let engine = self.engine().clone();
        source.on_change(Rc::new(move || engine.look_again()));
        self.shared.outputs.borrow_mut().push(Output { pad, active_high, source: source.clone() });
        self.line_of(source)
    }

    /// Connects an output pin of a chip that is on the board already to `pad`: low while the pin is
    /// asserted, or high.
    ///
    /// # Errors
    /// [`LineError`]; nothing is connected then.
    pub fn connect_output(
        &self,
        pad: Pad,
        source: Rc<dyn Source>,
        active_high: bool,
    ) -> Result<(), LineError> {
        self.check_pad(pad)?;
        if self.shared.world.borrow().wire.is_input(driver(pad)) {
            return Err(LineError::Driven(pad));
        }
        self.connect(pad, source, active_high);
        self.shared.follow_outputs(self.engine().now_ps());
        Ok(())
    }

    /// How many pads the GPIO block at `index` has; `None` beyond the board's blocks.
    #[must_use]
    pub fn pads_of(&self, index: u8) -> Option<u8> {
        self.shared.world.borrow().gpio.get(usize::from(index)).map(|gpio| gpio.pins())
    }

    /// A pad's level now, and since when the chip's pin that drives it is asserted, if one is. Reads
    /// the level as an interrupt controller does: without a register access.
    ///
    /// # Panics
    /// If the board has no such GPIO block.
    #[must_use]
    pub fn look_at(&self, pad: Pad) -> (bool, Option<Ps>) {
        self.shared.follow_outputs(self.engine().now_ps());
        let outputs = self.shared.outputs.borrow();
        let output = outputs.iter().find(|output| output.pad == pad);
        let since = output.and_then(|output| output.source.asserted_since());
        let world = self.shared.world.borrow();
        (world.gpio[usize::from(pad.block)].pads() >> pad.bit & 1 != 0, since)
    }

    /// Pulls a pad up or down: the level that it has while nothing drives it. A chip's pin, a wire from another
    /// pad and the resistor that keeps a chip deselected are stronger.
    ///
    /// # Panics
    /// If the board has no such GPIO block.
    pub fn pull(&self, pad: Pad, up: bool) {
        if self.shared.outputs.borrow().iter().any(|output| output.pad == pad)
            || self.is_outside_held(pad)
        {
            return;
        }
        self.settled(|world, now| world.set_outside(pad, up, now));
    }

    /// Records a pad that the program drives, from here on or from the recording's start, under that name.
    /// The wire takes as many pads as it takes chips' input pins; more are not recorded.
    ///
    /// # Panics
    /// If the board has no such GPIO block.
    pub fn record(&self, pad: Pad, name: &str) {
        self.settled(|world, now| {
            let level = world.gpio[usize::from(pad.block)].pads() >> pad.bit & 1 != 0;
            world.wire.probe(driver(pad), name, level, now);
        });
    }

    /// Whether a line may be connected to `pad`.
    pub(super) fn check_pad(&self, pad: Pad) -> Result<(), LineError> {
        let pins =
            self.shared.world.borrow().gpio.get(usize::from(pad.block)).map(|gpio| gpio.pins());
        if pins.is_none_or(|pins| pad.bit >= pins) {
            return Err(LineError::NoPad(pad));
        }
        if self.select_at(pad).is_some() {
            return Err(LineError::ChipSelect(pad));
        }
        if self.is_wired(pad) || self.shared.outputs.borrow().iter().any(|output| output.pad == pad)
        {
            return Err(LineError::Driven(pad));
        }
        Ok(())
    }
}

pub(super) fn driver(Pad { block, bit }: Pad) -> Driver {
    Driver::Gpio { block, bit }
}
