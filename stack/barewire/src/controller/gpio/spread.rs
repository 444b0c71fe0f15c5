//! Chip selects in several banks, as one bank.
//!
//! A controller's table of chip selects names pins of one bank. [`Spread`] is such a bank: each of
//! its pins is a pin of one of the banks below it. These may be of one type or, with an enum, of
//! several. An edge costs as much as in the bank below, plus a table lookup.

use super::GpioBank;

/// The most pins of a [`Spread`]: the bits of [`GpioBank`]'s masks.
const PINS: usize = 32;

/// Where a pin of a [`Spread`] is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PinAt {
    /// The index of the bank.
    pub bank: u8,
    /// The pin of that bank, 0 to 31.
    pub bit: u8,
}

/// A bank whose pins are spread over `BANKS` others.
#[derive(Debug)]
pub struct Spread<B, const BANKS: usize> {
    banks: [B; BANKS],
    pins: [PinAt; PINS],
    count: usize,
}

impl<B: GpioBank, const BANKS: usize> Spread<B, BANKS> {
    /// A bank whose pin `n` is `pins[n]`.
    ///
    /// # Panics
    /// If there are more than 32 pins, or one is in a bank above `BANKS - 1` or above bit 31.
    pub fn new(banks: [B; BANKS], pins: &[PinAt]) -> Self {
        assert!(pins.len() <= PINS, "a bank has at most 32 pins");
        for pin in pins {
            assert!(
                usize::from(pin.bank) < BANKS && pin.bit < 32,
                "{pin:?} is in none of the banks"
            );
        }
        let mut table = [PinAt::default(); PINS];
        table[..pins.len()].copy_from_slice(pins);
        Self { banks, pins: table, count: pins.len() }
    }

    /// Calls `with` for each pin of `mask`: its bank, and its mask there.
    #[inline]
    fn each(&mut self, mut mask: u32, mut with: impl FnMut(&mut B, u32)) {
        while mask != 0 {
            let pin = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            assert!(pin < self.count, "the table of chip selects names a pin that there is not");
            let PinAt { bank, bit } = self.pins[pin];
            with(&mut self.banks[usize::from(bank)], 1 << bit);
        }
    }
}

/// # Panics
/// If a mask has a pin that was not passed to [`Spread::new`].
impl<B: GpioBank, const BANKS: usize> GpioBank for Spread<B, BANKS> {
    #[inline]
    fn drive(&mut self, mask: u32, high: bool) {
        self.each(mask, |bank, mask| bank.drive(mask, high));
    }

    fn output(&mut self, mask: u32, high: bool) {
        self.each(mask, |bank, mask| bank.output(mask, high));
    }
}

#[cfg(test)]
mod tests {
    use super::super::AtmelPio;
    use super::*;
    use crate::reg::Access::Write;
    use crate::reg::Fake;

    const SODR: u32 = 0x30;
    const CODR: u32 = 0x34;

    #[test]
    fn each_pin_is_driven_in_its_own_bank() {
        let first = [Write(CODR, 1 << 9), Write(SODR, 1 << 31)];
        let second = [Write(SODR, 1 << 9)];
        let (mut first, mut second) = (Fake::new(&first), Fake::new(&second));
        let at = |bank, bit| PinAt { bank, bit };
        {
            let banks = [AtmelPio::new(&mut first), AtmelPio::new(&mut second)];
            let mut pins = Spread::new(banks, &[at(0, 9), at(1, 9), at(0, 31)]);
            pins.drive(0b001, false);
            pins.drive(0b110, true);
        }
        assert_eq!((first.remaining(), second.remaining()), (0, 0));
    }

    #[test]
    fn an_output_is_one_in_its_own_bank() {
        let script = [Write(SODR, 4), Write(0x10, 4), Write(0x00, 4)];
        let (mut none, mut second) = (Fake::new(&[]), Fake::new(&script));
        let banks = [AtmelPio::new(&mut none), AtmelPio::new(&mut second)];
        Spread::new(banks, &[PinAt { bank: 1, bit: 2 }]).output(1, true);
        assert_eq!(second.remaining(), 0);
    }

    #[test]
    #[should_panic(expected = "a pin that there is not")]
    fn a_pin_that_nobody_told_of_is_not_driven() {
        let banks = [AtmelPio::new(Fake::new(&[]))];
        Spread::new(banks, &[PinAt::default()]).drive(2, true);
    }

    #[test]
    #[should_panic(expected = "in none of the banks")]
    fn a_bank_that_there_is_not_is_refused() {
        let banks = [AtmelPio::new(Fake::new(&[]))];
        let _ = Spread::new(banks, &[PinAt { bank: 1, bit: 0 }]);
    }
}
