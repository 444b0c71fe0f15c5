//! A display on a simulated board, whose picture is kept in a file.

use std::cell::RefCell;
use std::rc::Rc;

use barewire_sim::model::ssd1306::{COLUMNS, PAGES, Ssd1306};
use barewire_sim::{Board, Pad};

use crate::name::OledOptions;
use crate::{OpenError, OutFile};

/// A display in use.
pub(crate) struct Oled {
    chip: Rc<RefCell<Ssd1306>>,
    picture: Option<OutFile>,
}

impl Oled {
    /// Puts the display on the board, in the place of the chip behind its chip select.
    pub(crate) fn attach(board: &Board, options: &OledOptions) -> Result<Self, OpenError> {
        let OledOptions { chip_select, dc, reset, picture } = options;
        let refused = |why: String| OpenError::Failed(format!("option oled: {why}"));
        if *chip_select == board.spec().flash().cs {
            return Err(refused(format!(
                "chip select {chip_select} has the board's flash: use another"
            )));
        }
        let picture = picture.as_deref().map(OutFile::create).transpose()?;
        let chip = Rc::new(RefCell::new(Ssd1306::new()));
        let [dc, reset] = [*dc, *reset].map(|bit| Pad { block: 0, bit });
        board
            .attach_with_lines(*chip_select, chip.clone(), &[("D/C#", dc), ("RES#", reset)])
            .map_err(|error| refused(error.to_string()))?;
        Ok(Self { chip, picture })
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
