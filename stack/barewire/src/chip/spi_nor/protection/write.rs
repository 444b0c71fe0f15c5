//! Writing the status registers: in the form that the part takes, with every other bit as it was.
//!
//! Read first: JESD216B, BFPT word 15, bits 22 to 20 (quad enable requirement).
//!
//! The quad enable bit is in these registers, and a board that boots in quad mode does not boot without it. So
//! both registers are read before, and compared after.

use crate::chip::Port;
use crate::chip::spi_nor::layout::CMP;
use crate::chip::spi_nor::opcode::{EWSR, RDSR2, WRSR, WRSR2};
use crate::chip::spi_nor::status::StatusForm;
use crate::chip::spi_nor::{BUSY, NorError, SpiNor, WEL, read_register};
use crate::spi::Transfer;
use crate::time::Timer;

/// Status register 1 without the bits that only show state.
const fn lasting(status: u8) -> u8 {
    status & !(BUSY | WEL)
}

impl<P: Port, T: Timer> SpiNor<P, T> {
    /// Clears the protection bits of both registers, and reads back that nothing else changed.
    pub(super) fn clear_protection_bits(&mut self) -> Result<(), NorError> {
        let layout = self.geometry.protection;
        let old = self.both_registers()?;
        let second = |old: u8| if layout.has_cmp() { old & !CMP } else { old };
        let new = (lasting(old.0) & !layout.cleared(), old.1.map(second));
        self.write_registers(new)?;
        let now = self.both_registers()?;
        // Protection bits are checked by the caller. Bits that the hardware sets itself are not compared.
        let kept = !layout.cleared() & !(BUSY | WEL) & !self.geometry.report.status_bits();
        for (register, expected, actual) in
            [(1, new.0 & kept, now.0 & kept), (2, new.1.map_or(0, second), now.1.map_or(0, second))]
        {
            if expected != actual {
                return Err(NorError::StatusChanged { register, expected, actual });
            }
        }
        Ok(())
    }

    /// Registers 1 and 2. The second is `None` if the part has none, or it does not answer.
    fn both_registers(&mut self) -> Result<(u8, Option<u8>), NorError> {
        let first = self.status_now()?;
        let form = self.geometry.status_form;
        // Where the form is not known, 35h may be another command.
        let known = form != StatusForm::Unknown || self.geometry.protection.needs_status_2();
        if !form.has_second() || !known {
            return Ok((first, None));
        }
        let mut second = || read_register(&mut self.port, RDSR2);
        // It is written back, with bits that can be set only once: a disturbed reading must not get there.
        let (one, other) = (second()?, second()?);
        if one != other {
            return Err(NorError::StatusChanged { register: 2, expected: one, actual: other });
        }
        Ok((first, Some(one).filter(|&second| second != 0xff)))
    }

    fn write_registers(&mut self, (first, second): (u8, Option<u8>)) -> Result<(), NorError> {
        let form = self.geometry.status_form;
        let Some(second) = second else {
            return self.write_status(&[WRSR, first]).map(drop);
        };
        match form {
            StatusForm::Separate => {
                self.write_status(&[WRSR, first])?;
                self.write_status(&[WRSR2, second])?;
            }
            StatusForm::Unknown => {
                // A part that takes one byte ignores two, and its latch stays set.
                if !self.write_status(&[WRSR, first, second])? {
                    self.write_status(&[WRSR, first])?;
                    self.write_status(&[WRSR2, second])?;
                }
            }
            _ => {
                self.write_status(&[WRSR, first, second])?;
            }
        }
        Ok(())
    }

    /// One write of a status register. Returns whether the chip took it.
    fn write_status(&mut self, command: &[u8]) -> Result<bool, NorError> {
        let limit_ns = self.geometry.status_write_max_ns;
        if self.geometry.status_form == StatusForm::Volatile {
            self.port.run(&mut [Transfer::write(&[EWSR])])?;
            self.port.run(&mut [Transfer::write(command)])?;
            return Ok(true);
        }
        let mut enabled = self.write_enable(0)?;
        enabled.chip().port.run(&mut [Transfer::write(command)])?;
        let status = enabled.wait_ready((limit_ns / 4, limit_ns), 0)?;
        if status & WEL == 0 {
            enabled.done();
            return Ok(true);
        }
        // The guard clears the latch.
        drop(enabled);
        Ok(false)
    }
}
