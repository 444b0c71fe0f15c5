//! NOR flash on a board.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use crate::board::Board;
use crate::model::nor::{Nor, Part, SizeMismatch};

/// A flash on a board.
#[derive(Clone, Copy, Debug)]
pub struct FlashSpec {
    /// Its chip select.
    pub cs: u8,
    /// The part.
    pub part: fn() -> Part,
    /// The file that keeps its content, if the board names one.
    pub file: Option<&'static Path>,
}

impl Board {
    /// Puts the board's flash behind its chip select, with `content` or erased, and returns a
    /// share in it.
    ///
    /// # Errors
    /// If the content's size is not the part's.
    pub fn attach_flash(&self, content: Option<Vec<u8>>) -> Result<Rc<RefCell<Nor>>, SizeMismatch> {
        self.attach_flash_part((self.spec.flash().part)(), content)
    }

    /// Puts `part` in the place of the board's flash, behind its chip select, with `content` or erased, and returns a
    /// share in it. [`Part::named`] finds a part by its name.
    ///
    /// # Errors
    /// If the content's size is not the part's.
    pub fn attach_flash_part(
        &self,
        part: Part,
        content: Option<Vec<u8>>,
    ) -> Result<Rc<RefCell<Nor>>, SizeMismatch> {
        self.attach_flash_at(self.spec.flash().cs, part, content)
    }

    /// Puts `part` behind chip select `cs`, with `content` or erased, and returns a share in it.
    ///
    /// # Errors
    /// If the content's size is not the part's.
    pub fn attach_flash_at(
        &self,
        cs: u8,
        part: Part,
        content: Option<Vec<u8>>,
    ) -> Result<Rc<RefCell<Nor>>, SizeMismatch> {
        let content = content.unwrap_or_else(|| vec![0xff; part.size]);
        let flash = Rc::new(RefCell::new(Nor::new(part, content)?));
        self.attach(cs, flash.clone());
        Ok(flash)
    }
}
