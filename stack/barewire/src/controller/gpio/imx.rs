//! The i.MX GPIO block.
//!
//! Read first: i.MX 6Dual/6Quad reference manual, chapter GPIO (memory map; DR and GDIR); the
//! block is the same in i.MX 7 and i.MX 8M.
//!
//! A bank has one data register, DR, for 32 pins and no set or clear register, so a pin is
//! changed by writing the whole bank. Which other program writes the bank decides how:
//!
//! * [`Ownership::Exclusive`]: none does. DR is kept in memory: one access an edge.
//! * [`Ownership::Shared`]: another program does, which itself reads DR before each write, and never
//!   between a read and a write here (a lock around both, or one processor without preemption). Each
//!   edge reads DR and writes it back: two accesses.
//!
//! # Beside Linux
//! Linux's driver is no such program. `gpio-mxc` uses the generic driver for memory-mapped GPIO
//! (`bgpio_init` in `drivers/gpio/gpio-mmio.c`, Linux 6.12), which reads DR and GDIR once, when it is
//! loaded, and from then on writes *cached* values: `bgpio_set_set` changes a bit of `bgpio_data` and
//! writes all 32, `bgpio_dir_out` and `bgpio_dir_in` do the same with `bgpio_dir`. So any write of the
//! kernel to another pin of the bank puts a pin that was changed here back to what it was when the
//! kernel started, and any change of another pin's direction may make this one an input. That is no race
//! that a shorter window would make rarer. The kernel must hold no other line of the bank while its
//! registers are written here; `barewire-linux` sees to that.
//!
//! # Not supported
//! i.MX RT's DR_SET and DR_CLEAR.

use super::{GpioBank, Ownership, in_order};
use crate::reg::Registers;

const DR: u32 = 0x00;
const GDIR: u32 = 0x04;

/// One bank of the i.MX GPIO block.
#[derive(Debug)]
pub struct ImxGpio<R> {
    regs: R,
    /// DR as last written, when nobody else writes it.
    owned_dr: Option<u32>,
}

impl<R: Registers> ImxGpio<R> {
    /// Takes the bank at `regs`. An exclusive bank is read once, here.
    pub fn new(mut regs: R, ownership: Ownership) -> Self {
        let owned_dr = (ownership == Ownership::Exclusive).then(|| regs.read(DR));
        Self { regs, owned_dr }
    }
}

impl<R: Registers> GpioBank for ImxGpio<R> {
    #[inline(always)]
    fn drive(&mut self, mask: u32, high: bool) {
        let Self { regs, owned_dr } = self;
        let set = if high { mask } else { 0 };
        in_order(regs, |regs| match owned_dr {
            Some(dr) => {
                *dr = *dr & !mask | set;
                regs.write(DR, *dr);
            }
            None => {
                let before = regs.read(DR);
                regs.write(DR, before & !mask | set);
            }
        });
    }

    fn output(&mut self, mask: u32, high: bool) {
        // The level first: a pin that became an output at the wrong level would select its chip.
        self.drive(mask, high);
        let direction = self.regs.read(GDIR);
        self.regs.write(GDIR, direction | mask);
        self.regs.barrier();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reg::Access::{Barrier, Read, Write};
    use crate::reg::Fake;

    #[test]
    fn a_shared_bank_is_read_before_each_write() {
        let script = [
            Barrier,
            Read(DR, 0x8000_0001),
            Write(DR, 0x8000_0003),
            Barrier,
            Barrier,
            Read(DR, 0x0000_0003),
            Write(DR, 0x0000_0001),
            Barrier,
        ];
        let mut gpio = ImxGpio::new(Fake::new(&script), Ownership::Shared);
        gpio.drive(2, true);
        gpio.drive(2, false);
        assert_eq!(gpio.regs.remaining(), 0);
    }

    #[test]
    fn an_exclusive_bank_costs_one_write_an_edge() {
        let (rise, fall) = (Write(DR, 0x12), Write(DR, 0x10));
        let script = [Read(DR, 0x10), Barrier, rise, Barrier, Barrier, fall, Barrier];
        let mut gpio = ImxGpio::new(Fake::new(&script), Ownership::Exclusive);
        gpio.drive(2, true);
        gpio.drive(2, false);
        assert_eq!(gpio.regs.remaining(), 0);
    }

    #[test]
    fn a_pin_has_its_level_before_it_drives() {
        let script = [Read(DR, 0), Write(DR, 4), Read(GDIR, 1), Write(GDIR, 5), Barrier];
        let mut gpio = ImxGpio::new(Fake::new(&script), Ownership::Shared);
        gpio.output(4, true);
        assert_eq!(gpio.regs.remaining(), 0);
    }
}
