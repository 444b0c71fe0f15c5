//! A display on a simulated board, whose picture is kept in a file.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use barewire_sim::Board;
use barewire_sim::Pad;
use barewire_sim::board::LineError;
use barewire_sim::board::spec::{ChipSpec, DisplaySpec};
use barewire_sim::model::ssd1306::{COLUMNS, PAGES, Ssd1306};

use crate::name::OledOptions;
use crate::{OpenError, OutFile};

/// A display in use.
pub(crate) struct Display {
    chip: Rc<RefCell<Ssd1306>>,
    picture: Option<OutFile>,
}

impl Display {
    /// Puts the display on the board. Its picture is written to that file when the bus is closed. `refused` makes the error
    /// of pins that it cannot have.
    pub(crate) fn attach(
        board: &Board,
        row: &DisplaySpec,
        picture: Option<&Path>,
        refused: impl FnOnce(LineError) -> OpenError,
    ) -> Result<Self, OpenError> {
        let picture = picture.map(OutFile::create).transpose()?;
        let chip = board.attach_display_of(row).map_err(refused)?;
        Ok(Self { chip, picture })
    }

    /// Puts the display of an option on the board, in the place of the chip behind its chip select.
    pub(crate) fn in_the_place_of(
        board: &Board,
        options: &OledOptions,
        picture: Option<&Path>,
    ) -> Result<Self, OpenError> {
        let OledOptions { chip_select: cs, dc, reset, .. } = options;
        let refused = |why: String| OpenError::Failed(format!("option oled: {why}"));
        if let Some(ChipSpec::Flash(_)) = board.spec().chip_at(*cs) {
            return Err(refused(format!("chip select {cs} has the board's flash: use another")));
        }
        let [dc, reset] = [*dc, *reset].map(|bit| Pad { block: 0, bit });
        let row = DisplaySpec { cs: *cs, dc, reset, picture: None };
        Self::attach(board, &row, picture, |error| refused(error.to_string()))
    }

    /// Writes the picture: the display's memory, dark while it is off, as a PBM file.
    pub(crate) fn close(&mut self) -> Result<(), OpenError> {
        let Some(mut file) = self.picture.take() else { return Ok(()) };
        file.write_all(&pbm(&self.chip.borrow()))?;
        file.commit()
    }
}

/// Netpbm's bitmap, P4: a bit for each dot, eight columns a byte, lit dots are 1.
fn pbm(chip: &Ssd1306) -> Vec<u8> {
    let mut bytes = format!("P4\n{COLUMNS} {}\n", 8 * PAGES).into_bytes();
    for row in 0..8 * PAGES {
        let page = &chip.memory()[row / 8];
        let lit = |dot: &u8| chip.is_on() && dot >> (row % 8) & 1 != 0;
        let packed = page
            .chunks(8)
            .map(|eight| eight.iter().fold(0, |byte, dot| byte << 1 | u8::from(lit(dot))));
        bytes.extend(packed);
    }
    bytes
}
