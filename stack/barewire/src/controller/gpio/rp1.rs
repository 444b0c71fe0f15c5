//! Bank 0 of RP1's GPIO: the header of the Raspberry Pi 5.
//!
//! Read first: Raspberry Pi Ltd, *RP1 Peripherals*, chapter 3, "Low speed peripherals": IO_BANK0
//! (function select), SYS_RIO0 (level and direction), PADS_BANK0 (the pad itself), and the atomic
//! register aliases (<https://datasheets.raspberrypi.com/rp1/rp1-peripherals.pdf>).
//!
//! The three blocks are 64 KiB apart. Linux maps them as one, `/dev/gpiomem0`, and so does this
//! bank: IO_BANK0 at 0, SYS_RIO0 at 0x1_0000, PADS_BANK0 at 0x2_0000. SYS_RIO0 has three aliases of
//! each register, which flip, set or clear the bits that are written. So an edge is one write, and
//! programs that drive other pins of the bank are not disturbed.
//!
//! # Ordering
//! 1. A pin gets its level and its direction before its function becomes SYS_RIO and its pad is
//!    enabled.
//! 2. An edge stands between two barriers. RP1 is behind PCIe, where writes are posted: they arrive
//!    in order, but later than the barrier ends. A driver that waits for time to pass after an edge
//!    reads a register of RP1 first ([`dw_ssi`](crate::controller::dw_ssi) does).
//!
//! # Not supported
//! Banks 1 and 2, which are on no header. Pulls, drive strength and slew rate stay as they are.

use super::{GpioBank, in_order};
use crate::reg::Registers;

/// IO_BANK0: GPIO0_CTRL. Each pin has a status register and a control register.
const CTRL0: u32 = 0x0_0004;
const CTRL_STEP: u32 = 8;
/// SYS_RIO0: the levels that are driven.
const RIO_OUT: u32 = 0x1_0000;
/// SYS_RIO0: the pins that are driven.
const RIO_OE: u32 = 0x1_0004;
/// The alias of a register that sets the bits written.
const SET: u32 = 0x2000;
/// The alias of a register that clears the bits written.
const CLR: u32 = 0x3000;
/// PADS_BANK0: the pad of GPIO0; the register before it selects the voltage.
const PAD0: u32 = 0x2_0004;
const PAD_STEP: u32 = 4;

/// CTRL: what drives the pin.
const FUNCSEL: u32 = 0x1f;
/// CTRL: what overrides the level and the direction of the function.
const OVERRIDES: u32 = 0b11 << 12 | 0b11 << 14;
/// FUNCSEL: SYS_RIO.
const SYS_RIO: u32 = 5;
/// Pad: the output is disabled, whatever drives the pin.
const OD: u32 = 1 << 7;

/// GPIO 0 to 27 of RP1.
#[derive(Debug)]
pub struct Rp1Gpio<R> {
    regs: R,
}

impl<R: Registers> Rp1Gpio<R> {
    /// Takes the bank whose IO_BANK0 is at `regs`. The mapping is 0x3_0000 bytes, up to the end of
    /// PADS_BANK0.
    pub fn new(regs: R) -> Self {
        Self { regs }
    }

    /// Lets SYS_RIO0 drive `pin`.
    fn hand_over(&mut self, pin: u32) {
        let pad = PAD0 + pin * PAD_STEP;
        let before = self.regs.read(pad);
        if before & OD != 0 {
            self.regs.write(pad, before & !OD);
        }
        let ctrl = CTRL0 + pin * CTRL_STEP;
        let before = self.regs.read(ctrl);
        let after = before & !(FUNCSEL | OVERRIDES) | SYS_RIO;
        if before != after {
            self.regs.write(ctrl, after);
        }
    }
}

impl<R: Registers> GpioBank for Rp1Gpio<R> {
    #[inline(always)]
    fn drive(&mut self, mask: u32, high: bool) {
        let alias = if high { SET } else { CLR };
        in_order(&mut self.regs, |regs| regs.write(RIO_OUT + alias, mask));
    }

    fn output(&mut self, mask: u32, high: bool) {
        // Ordering 1: the level and the direction before the function.
        self.drive(mask, high);
        self.regs.write(RIO_OE + SET, mask);
        for pin in (0..u32::BITS).filter(|pin| mask >> pin & 1 != 0) {
            self.hand_over(pin);
        }
        self.regs.barrier();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reg::Access::{self, Barrier, Read, Write};
    use crate::reg::Fake;

    fn held(script: &[Access], drive: impl FnOnce(&mut Rp1Gpio<&mut Fake<'_>>)) {
        let mut fake = Fake::new(script);
        drive(&mut Rp1Gpio::new(&mut fake));
        assert_eq!(fake.remaining(), 0);
    }

    #[test]
    fn an_edge_is_one_write_between_two_barriers() {
        let rise = [Barrier, Write(0x1_2000, 0x100), Barrier];
        held(&rise, |gpio| gpio.drive(1 << 8, true));
        let fall = [Barrier, Write(0x1_3000, 0x100), Barrier];
        held(&fall, |gpio| gpio.drive(1 << 8, false));
    }

    #[test]
    fn a_pin_has_its_level_and_its_direction_before_it_drives() {
        // GPIO 8 was SPI0's CE0 (function 0) with its output forced; pull and drive stay.
        let script = [
            Barrier,
            Write(0x1_2000, 0x100),
            Barrier,
            Write(0x1_2004, 0x100),
            Read(0x2_0024, 0x9a),
            Write(0x2_0024, 0x1a),
            Read(0x44, 0x0000_3080),
            Write(0x44, 0x0000_0085),
            Barrier,
        ];
        held(&script, |gpio| gpio.output(1 << 8, true));
    }

    #[test]
    fn a_pin_that_sys_rio_drives_is_left_so() {
        let script = [
            Write(0x1_3000, 1 << 27),
            Write(0x1_2004, 1 << 27),
            Read(0x2_0070, 0x56),
            Read(0xdc, 5),
        ];
        held(&script, |gpio| gpio.output(1 << 27, false));
    }
}
