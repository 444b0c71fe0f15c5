//! A GPIO block whose pins share one data register, without registers that set or clear one pin.
//!
//! Changing one pin writes the whole bank. How that is done depends on which other program writes the
//! bank:
//!
//! * [`Ownership::Exclusive`]: no other program does. The data register is kept in memory: one access
//!   per edge.
//! * [`Ownership::Shared`]: another program does. It reads the data register before each of its
//!   writes, and never writes between a read and a write of this driver (because of a lock around
//!   both, or on one processor without preemption). An edge reads the register and writes it back: two
//!   accesses.
//!
//! # Beside Linux
//! Linux's drivers of such blocks do not do that. They use the generic driver for memory-mapped GPIO
//! (`bgpio_init` in `drivers/gpio/gpio-mmio.c`, Linux 6.12), which reads the data and the direction
//! register once, when it is loaded, and from then on writes *cached* values: `bgpio_set_set` changes
//! a bit of `bgpio_data` and writes all 32, `bgpio_dir_out` and `bgpio_dir_in` do so with `bgpio_dir`.
//! So when the kernel writes another pin of the bank, a pin that was changed here returns to its level
//! of when the kernel started; when the kernel changes another pin's direction, this pin may become
//! an input. This is not a race: a shorter window does not help. The kernel must hold no other line
//! of the bank while this driver writes its registers; `barewire-linux` ensures that.

use super::{GpioBank, Ownership, in_order};
use crate::reg::Registers;

/// One bank, with its data register at the offset `DATA` and its direction register (1 is an output)
/// at `DIRECTION`: [`ImxGpio`](super::ImxGpio), [`SiFiveGpio`](super::SiFiveGpio).
#[derive(Debug)]
pub struct DataRegister<R, const DATA: u32, const DIRECTION: u32> {
    regs: R,
    /// The data register as last written, if no other program writes it.
    owned: Option<u32>,
}

impl<R: Registers, const DATA: u32, const DIRECTION: u32> DataRegister<R, DATA, DIRECTION> {
    /// Takes the bank at `regs`. Reads an exclusive bank once, here.
    pub fn new(mut regs: R, ownership: Ownership) -> Self {
        let owned = (ownership == Ownership::Exclusive).then(|| regs.read(DATA));
        Self { regs, owned }
    }
}

impl<R: Registers, const DATA: u32, const DIRECTION: u32> GpioBank
    for DataRegister<R, DATA, DIRECTION>
{
    #[inline(always)]
    fn drive(&mut self, mask: u32, high: bool) {
        let Self { regs, owned } = self;
        let set = if high { mask } else { 0 };
        in_order(regs, |regs| match owned {
            Some(data) => {
                *data = *data & !mask | set;
                regs.write(DATA, *data);
            }
            None => {
                let before = regs.read(DATA);
                regs.write(DATA, before & !mask | set);
            }
        });
    }

    fn output(&mut self, mask: u32, high: bool) {
        // The level first: a pin that became an output at the wrong level would select its chip.
        self.drive(mask, high);
        let direction = self.regs.read(DIRECTION);
        self.regs.write(DIRECTION, direction | mask);
        self.regs.barrier();
    }
}

#[cfg(test)]
mod tests {
    use super::super::ImxGpio;
    use super::*;
    use crate::reg::Access::{Barrier, Read, Write};
    use crate::reg::Fake;

    const DR: u32 = 0x00;
    const GDIR: u32 = 0x04;

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

    /// `output_en` is at 0x08 and `output_val` at 0x0c, by SiFive's manual.
    #[test]
    fn sifives_registers_are_elsewhere() {
        let script =
            [Read(0x0c, 0), Write(0x0c, 0x8000), Read(0x08, 1), Write(0x08, 0x8001), Barrier];
        let mut gpio = super::super::SiFiveGpio::new(Fake::new(&script), Ownership::Shared);
        gpio.output(1 << 15, true);
        assert_eq!(gpio.regs.remaining(), 0);
    }
}
