//! LED drivers on a board.

use std::cell::RefCell;
use std::rc::Rc;

use crate::board::Board;
use crate::model::max7219::Max7219;

/// A chain of MAX7219 on a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedsSpec {
    /// Its chip select.
    pub cs: u8,
    /// How many chips are in the chain, at least one.
    pub chips: u8,
}

impl Board {
    /// Puts the chain behind its chip select and returns a share in it.
    pub fn attach_leds_of(&self, row: &LedsSpec) -> Rc<RefCell<Max7219>> {
        let chain = Rc::new(RefCell::new(Max7219::new(usize::from(row.chips))));
        self.attach(row.cs, chain.clone());
        chain
    }
}
