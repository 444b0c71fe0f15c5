//! Bank 0 of the GPIO controller of Zynq-7000 and Zynq UltraScale+: MIO 0 to 31 (0 to 25 on the latter).
//!
//! Read first: Xilinx, *Zynq-7000 SoC Technical Reference Manual* (UG585), chapter 14 and appendix B.19.
//!
//! MASK_DATA_0_LSW and MASK_DATA_0_MSW have a mask in their upper half: a write changes those of 16 pins whose
//! mask bit is 0, and leaves the others alone. So an edge is one write and no read, and programs that drive other
//! pins of the bank are not disturbed.
//!
//! # Ordering
//! A pin gets its level, then its direction (DIRM_0), then its output is enabled (OEN_0). These two registers have
//! no mask: each is read once, at bring-up, and written if it lacks the pin. A change of another pin's direction by
//! another program between the two would be lost. Under Linux the kernel makes the pin an output first, so that
//! nothing is written here.
//!
//! # Not supported
//! Banks 1 to 3: MIO 32 and above, and EMIO. The multiplexer of the MIO pins (SLCR), which the board's bring-up
//! code must set.

use super::{GpioBank, in_order};
use crate::reg::Registers;

/// Data of pins 0 to 15, with their mask above it; pins 16 to 31 follow.
const MASK_DATA_0_LSW: u32 = 0x000;
const MASK_DATA_0_MSW: u32 = 0x004;
const DIRM_0: u32 = 0x204;
const OEN_0: u32 = 0x208;

/// Pins of a half.
const HALF: u32 = 0xffff;

/// Bank 0 of the GPIO controller.
#[derive(Debug)]
pub struct ZynqGpio<R> {
    regs: R,
}

impl<R: Registers> ZynqGpio<R> {
    /// Takes the controller at `regs`.
    pub fn new(regs: R) -> Self {
        Self { regs }
    }
}

impl<R: Registers> GpioBank for ZynqGpio<R> {
    #[inline(always)]
    fn drive(&mut self, mask: u32, high: bool) {
        in_order(&mut self.regs, |regs| {
            for (offset, pins) in [(MASK_DATA_0_LSW, mask & HALF), (MASK_DATA_0_MSW, mask >> 16)] {
                if pins != 0 {
                    regs.write(offset, (pins ^ HALF) << 16 | if high { pins } else { 0 });
                }
            }
        });
    }

    fn output(&mut self, mask: u32, high: bool) {
        self.drive(mask, high);
        for offset in [DIRM_0, OEN_0] {
            let before = self.regs.read(offset);
            if before & mask != mask {
                self.regs.write(offset, before | mask);
            }
        }
        self.regs.barrier();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reg::Access::{Barrier, Read, Write};
    use crate::reg::Fake;

    #[test]
    fn an_edge_is_one_write_between_two_barriers() {
        let (fall, rise) = (Write(0x000, 0xfdff_0000), Write(0x004, 0x7fff_8000));
        let script = [Barrier, fall, Barrier, Barrier, rise, Barrier];
        let mut gpio = ZynqGpio::new(Fake::new(&script));
        gpio.drive(1 << 9, false);
        gpio.drive(1 << 31, true);
        assert_eq!(gpio.regs.remaining(), 0);
    }

    #[test]
    fn a_pin_has_its_level_before_it_drives_and_an_output_stays_one() {
        let script = [
            Write(0x000, 0xfdff_0200),
            Read(0x204, 0x1),
            Write(0x204, 0x201),
            Read(0x208, 0x200),
            Barrier,
        ];
        let mut gpio = ZynqGpio::new(Fake::new(&script));
        gpio.output(1 << 9, true);
        assert_eq!(gpio.regs.remaining(), 0);
    }
}
