//! A converter on a board.

use std::cell::RefCell;
use std::rc::Rc;

use crate::board::Board;
use crate::model::adc::{Adc, AdcPart};
use crate::model::signal::SignalSpec;

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
    /// The signals on its inputs, by channel, as far as the board names them.
    pub inputs: &'static [SignalSpec],
}

impl Board {
    /// Puts the board's converter behind its chip select, its inputs at ground, and returns a share
    /// in it; `None` if the board has none.
    #[must_use]
    pub fn attach_adc(&self) -> Option<Rc<RefCell<Adc>>> {
        self.spec.adc().map(|row| self.attach_adc_of(&row))
    }

    /// Puts that converter of the board behind its chip select, its inputs at ground, and returns a share in it.
    #[must_use]
    pub fn attach_adc_of(&self, row: &AdcSpec) -> Rc<RefCell<Adc>> {
        let AdcSpec { cs, part, supply_mv, vref_mv, .. } = *row;
        let adc = Adc::new(part, supply_mv, vref_mv).expect("a board supplies its chips");
        let adc = Rc::new(RefCell::new(adc));
        self.attach(cs, adc.clone());
        adc
    }
}
