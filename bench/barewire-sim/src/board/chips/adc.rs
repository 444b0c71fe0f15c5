//! A converter on a board.

use std::cell::RefCell;
use std::rc::Rc;

use super::BoardChip;
use crate::board::Board;
use crate::model::adc::{Adc, AdcPart};

/// A converter on a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdcSpec {
    /// Its chip select.
    pub cs: u8,
    /// The part.
    pub part: AdcPart,
    /// VDD.
    pub supply_mv: u32,
    /// VREF.
    pub vref_mv: u32,
}

impl BoardChip for AdcSpec {
    fn cs(&self) -> u8 {
        self.cs
    }
}

impl Board {
    /// Puts the board's converter behind its chip select, its inputs at ground, and returns a share
    /// in it; `None` if the board has none.
    #[must_use]
    pub fn attach_adc(&self) -> Option<Rc<RefCell<Adc>>> {
        let AdcSpec { cs, part, supply_mv, vref_mv } = self.spec.adc()?;
        let adc = Adc::new(part, supply_mv, vref_mv).expect("a board supplies its chips");
        let adc = Rc::new(RefCell::new(adc));
        self.attach(cs, adc.clone());
        Some(adc)
    }
}
