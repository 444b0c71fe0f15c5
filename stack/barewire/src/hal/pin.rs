//! A pin of a GPIO bank as `embedded-hal`'s `OutputPin`.

use core::convert::Infallible;

use embedded_hal::digital::{ErrorType, OutputPin};

use crate::controller::gpio::GpioBank;

/// One output pin of a bank.
///
/// It owns its value of the bank, not the hardware. Other pins of the bank are driven through other
/// values, which must be [shared](crate::controller::gpio::Ownership::Shared).
#[derive(Debug)]
pub struct BankPin<G> {
    bank: G,
    mask: u32,
}

impl<G: GpioBank> BankPin<G> {
    /// Makes pin `bit` (0 to 31) of `bank` an output that starts at level `high`.
    ///
    /// # Panics
    /// If `bit` is above 31.
    pub fn new(mut bank: G, bit: u8, high: bool) -> Self {
        assert!(bit < 32, "a bank has 32 pins");
        let mask = 1 << bit;
        bank.output(mask, high);
        Self { bank, mask }
    }

    /// Returns the bank; the pin keeps its level.
    pub fn release(self) -> G {
        self.bank
    }
}

impl<G> ErrorType for BankPin<G> {
    type Error = Infallible;
}

impl<G: GpioBank> OutputPin for BankPin<G> {
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.bank.drive(self.mask, false);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.bank.drive(self.mask, true);
        Ok(())
    }
}
