//! A CAN controller on a board.

use std::cell::RefCell;
use std::rc::Rc;

use crate::board::{Board, LineError, Pad};
use crate::line::IntLine;
use crate::model::can::CanBus;
use crate::model::mcp2518fd::{Mcp2518Fd, Options, PartKind};

/// A CAN controller on a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CanSpec {
    /// Its chip select.
    pub cs: u8,
    /// The part.
    pub part: PartKind,
    /// Its oscillator.
    pub oscillator_hz: u32,
    /// The pad that its INT pin is wired to, which a program may read:
    /// [`Board::connect_can_int`]. `None` if it is wired to none.
    pub int: Option<Pad>,
}

impl CanSpec {
    /// How the chip is built.
    #[must_use]
    pub fn options(&self) -> Options {
        let Self { part, oscillator_hz, .. } = *self;
        Options { part, oscillator_hz, ..Options::default() }
    }
}

impl Board {
    /// How the board's CAN controller is built: [`Board::attach_can`]'s options, to be changed; `None`
    /// if the board has none.
    #[must_use]
    pub fn can_options(&self) -> Option<Options> {
        self.spec.can().map(|row| row.options())
    }

    /// Puts the board's CAN controller behind its chip select and on `bus`, as `options` say or as the
    /// board has it, and returns a share in it and the line at its INT pin; `None` if the board has
    /// none.
    #[must_use]
    pub fn attach_can(
        &self,
        bus: &CanBus,
        options: Option<Options>,
    ) -> Option<(Rc<RefCell<Mcp2518Fd>>, IntLine)> {
        let row = self.spec.can()?;
        Some(self.attach_can_of(&row, bus, options.unwrap_or_else(|| row.options())))
    }

    /// Puts that CAN controller of the board behind its chip select and on `bus`, as `options` say, and returns a
    /// share in it and the line at its INT pin.
    #[must_use]
    pub fn attach_can_of(
        &self,
        row: &CanSpec,
        bus: &CanBus,
        options: Options,
    ) -> (Rc<RefCell<Mcp2518Fd>>, IntLine) {
        let chip = Mcp2518Fd::new(bus, options);
        let line = self.line_of(chip.int());
        let engine = self.engine().clone();
        bus.on_change(move || engine.look_again());
        let chip = Rc::new(RefCell::new(chip));
        self.attach(row.cs, chip.clone());
        (chip, line)
    }

    /// Connects the INT pin of `chip`, this board's CAN controller, to its pad, and returns the pad; `None`
    /// if the board has none. Until then only an interrupt line leads to the pin.
    ///
    /// # Errors
    /// If the pad is in use already.
    pub fn connect_can_int(&self, chip: &Mcp2518Fd) -> Result<Option<Pad>, LineError> {
        let Some(CanSpec { int: Some(int), .. }) = self.spec.can() else { return Ok(None) };
        self.connect_output(int, chip.int(), false).map(|()| Some(int))
    }
}
