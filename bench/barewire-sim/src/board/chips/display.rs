//! A display on a board.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use crate::board::{Board, LineError, Pad};
use crate::model::ssd1306::Ssd1306;

/// An SSD1306 on a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisplaySpec {
    /// Its chip select.
    pub cs: u8,
    /// The pad that drives D/C#.
    pub dc: Pad,
    /// The pad that drives RES#.
    pub reset: Pad,
    /// The file that its picture is written to at the end, if the board names one.
    pub picture: Option<&'static Path>,
}

impl Board {
    /// Puts a display behind its chip select, wired to its pads, and returns a share in it.
    ///
    /// # Errors
    /// [`LineError`]; nothing is attached then.
    pub fn attach_display_of(&self, row: &DisplaySpec) -> Result<Rc<RefCell<Ssd1306>>, LineError> {
        let DisplaySpec { cs, dc, reset, .. } = *row;
        let chip = Rc::new(RefCell::new(Ssd1306::new()));
        self.attach_with_lines(cs, chip.clone(), &[("D/C#", dc), ("RES#", reset)])?;
        Ok(chip)
    }
}
