//! Transfers of one FIFO word at 10 MHz or more, inlined in their caller: step 2 of the driver's
//! module.

use super::regs::{BURST_LENGTH, RR, SMC, STATREG, TXDATA, burst_length};
use super::{CS_HIGH, Ecspi, P_CS_HIGH_SETTLE, P_CS_MASK, pack};
use crate::controller::gpio::GpioBank;
use crate::controller::{Interrupt, Program, SelectLine, Short, Stopped};
use crate::reg::Registers;
use crate::time::Timer;

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Short for Ecspi<R, G, T, I> {
    #[inline(always)]
    fn is_short(&self, program: &Program, control: u32, len: usize) -> bool {
        if !self.gpio.is_short() {
            return false;
        }
        len > 0 && len <= 4 && control & SMC != 0 && self.is_configured(program)
    }

    #[inline(always)]
    fn line(&self, program: &Program) -> SelectLine {
        SelectLine {
            mask: program.regs[P_CS_MASK],
            active_high: program.regs[P_CS_HIGH_SETTLE] & CS_HIGH != 0,
        }
    }

    #[inline(always)]
    fn drive_short(&mut self, line: SelectLine, active: bool) {
        if line.mask != 0 {
            self.gpio.drive_short(line.mask, line.active_high == active);
        }
    }

    #[inline(always)]
    fn exchange_short(
        &mut self,
        control: u32,
        len: usize,
        tx: Option<&[u8]>,
        rx: Option<&mut [u8]>,
    ) -> bool {
        self.set_conreg(control & !BURST_LENGTH | burst_length(len));
        let word = tx.map_or(0, |tx| pack(tx, 1));
        self.regs.write(TXDATA, word);
        if self.regs.read(STATREG) & RR == 0 {
            return false;
        }
        self.receive_word(rx);
        true
    }

    fn exchange_rest(&mut self, len: usize, rx: Option<&mut [u8]>) -> Result<(), Stopped> {
        self.poll(STATREG, RR, RR, len)?;
        self.receive_word(rx);
        Ok(())
    }
}
