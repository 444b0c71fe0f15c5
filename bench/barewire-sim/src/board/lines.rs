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
use crate::chip::{Chip, Pin};
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
    /// Another chip drives the pad, or the pad is to be both an input and an output.
    Driven(Pad),
    /// The wire has 32 connected input pins, or would have more.
    TooMany,
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoChipSelect(cs) => write!(f, "the board has no chip select {cs}"),
            Self::NoPin(at) => write!(f, "line {at}: the chip has no pin of this name"),
            Self::Twice(at) => write!(f, "line {at}: the pin is connected already"),
            Self::NoPad(pad) => write!(f, "the board has no {pad}"),
            Self::ChipSelect(pad) => write!(f, "{pad} is a chip select"),
            Self::Driven(pad) => write!(f, "{pad} is driven by a chip"),
            Self::TooMany => f.write_str("more than 32 input pins"),
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
            let (name, source, active_high) = match pin {
                Pin::Input(name) => {
                    let mut world = self.shared.world.borrow_mut();
                    let level = world.gpio[usize::from(pad.block)].pads() >> pad.bit & 1 != 0;
                    world.wire.connect(cs, name, driver(pad), level, now);
                    continue;
                }
                Pin::ActiveLow(name, source) => (*name, source.clone(), false),
                Pin::ActiveHigh(name, source) => (*name, source.clone(), true),
            };
            let engine = self.engine().clone();
            source.on_change(Rc::new(move || engine.look_again()));
            interrupts.push((name, self.line_of(source.clone())));
            self.shared.outputs.borrow_mut().push(Output { pad, active_high, source });
        }
        self.shared.follow_outputs(now);
        Ok(ChipLines(interrupts))
    }

    /// Whether a line may be connected to `pad`.
    fn check_pad(&self, pad: Pad) -> Result<(), LineError> {
        let pins =
            self.shared.world.borrow().gpio.get(usize::from(pad.block)).map(|gpio| gpio.pins());
        if pins.is_none_or(|pins| pad.bit >= pins) {
            return Err(LineError::NoPad(pad));
        }
        if self.spec.cs.iter().any(|cs| cs.driver == driver(pad)) {
            return Err(LineError::ChipSelect(pad));
        }
        if self.shared.outputs.borrow().iter().any(|output| output.pad == pad) {
            return Err(LineError::Driven(pad));
        }
        Ok(())
    }
}

fn driver(Pad { block, bit }: Pad) -> Driver {
    Driver::Gpio { block, bit }
}
