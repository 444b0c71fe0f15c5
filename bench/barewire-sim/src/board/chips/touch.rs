//! A touch controller on a board.

use std::cell::RefCell;
use std::rc::Rc;

use crate::board::{Board, Pad};
use crate::chip::Ps;
use crate::line::IntLine;
use crate::model::tsc2046::{Stroke, TouchOptions, Tsc2046};

/// The resistance of a touch that a board's file asks for: a firm one.
const PEN_OHMS: u32 = 300;

/// A touch controller on a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TouchSpec {
    /// Its chip select.
    pub cs: u8,
    /// The pad that its PENIRQ is wired to. `None` if it is wired to none.
    pub int: Option<Pad>,
    /// Where a pen rests on the panel from power-up on, X and Y in 65,536ths; `None` without a pen.
    pub pen: Option<[u16; 2]>,
}

impl Board {
    /// Puts the board's touch controller behind its chip select, its panel as `options` say or a small
    /// one, and returns a share in it and the line at its PENIRQ; `None` if the board has none.
    #[must_use]
    pub fn attach_touch(
        &self,
        options: Option<TouchOptions>,
    ) -> Option<(Rc<RefCell<Tsc2046>>, IntLine)> {
        self.spec.touch().map(|row| self.attach_touch_of(&row, options.unwrap_or_default()))
    }

    /// Puts that touch controller of the board behind its chip select, its panel as `options` say, and returns a
    /// share in it and the line at its PENIRQ.
    #[must_use]
    pub fn attach_touch_of(
        &self,
        row: &TouchSpec,
        options: TouchOptions,
    ) -> (Rc<RefCell<Tsc2046>>, IntLine) {
        let chip = Tsc2046::new(options);
        if let Some(at) = row.pen {
            chip.add_stroke(Stroke {
                down_ps: 0,
                up_ps: Ps::MAX,
                from: at,
                to: at,
                ohms: PEN_OHMS,
            });
        }
        let line = self.line_of(chip.pen_irq());
        let chip = Rc::new(RefCell::new(chip));
        self.attach(row.cs, chip.clone());
        (chip, line)
    }
}
