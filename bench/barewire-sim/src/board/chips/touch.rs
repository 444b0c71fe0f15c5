//! A touch controller on a board.

use std::cell::RefCell;
use std::rc::Rc;

use super::BoardChip;
use crate::board::Board;
use crate::line::IntLine;
use crate::model::tsc2046::{TouchOptions, Tsc2046};

/// A touch controller on a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TouchSpec {
    /// Its chip select.
    pub cs: u8,
}

impl BoardChip for TouchSpec {
    fn cs(&self) -> u8 {
        self.cs
    }
}

impl Board {
    /// Puts the board's touch controller behind its chip select, its panel as `options` say or a small
    /// one, and returns a share in it and the line at its PENIRQ; `None` if the board has none.
    #[must_use]
    pub fn attach_touch(
        &self,
        options: Option<TouchOptions>,
    ) -> Option<(Rc<RefCell<Tsc2046>>, IntLine)> {
        let TouchSpec { cs } = self.spec.touch()?;
        let chip = Tsc2046::new(options.unwrap_or_default());
        let line = self.line_of(chip.pen_irq());
        let chip = Rc::new(RefCell::new(chip));
        self.attach(cs, chip.clone());
        Some((chip, line))
    }
}
