//! Commands for addresses above 16 MiB: into 4-byte mode and out of it, and the extended address register.
//!
//! A boot ROM reads with 3-byte addresses. So a chip is left in 3-byte mode, with its extended address register
//! at 0. A way in is used only if a way out is known.

use super::address::{Addressing, Enter, Exit, THREE_BYTE_REACH};
use super::opcode::{EN4B, EX4B, EX4B_INFINEON, RESET, RST, RSTEN, WRBR, WRDI, WREAR, WREN};
use super::{NorError, SpiNor};
use crate::chip::Port;
use crate::spi::Transfer;
use crate::time::Timer;

/// The bank register's bit for 4-byte mode.
const EXTADD: u8 = 1 << 7;
/// From a reset until the chip accepts a command: more than a part in use needs when it is idle
/// (W25Q256JV tRST 30 us, MT25Q tSHSL3 40 us, S25HS-T tSR 83 us).
const RESET_NS: u64 = 200_000;

/// Sends the commands of a way in.
pub(super) fn enter(port: &mut impl Port, way: Enter) -> Result<(), NorError> {
    match way {
        Enter::En4b => send(port, &[&[EN4B]]),
        // Parts differ in whether the latch stays set after the command.
        Enter::WrenEn4b => send(port, &[&[WREN], &[EN4B], &[WRDI]]),
        // Parts differ in whether the register needs write enable.
        Enter::Bank => send(port, &[&[WREN], &[WRBR, EXTADD], &[WRDI]]),
    }
}

/// Sends the commands of a way out.
pub(super) fn exit(
    port: &mut impl Port,
    timer: &mut impl Timer,
    way: Exit,
) -> Result<(), NorError> {
    match way {
        Exit::Ex4b => send(port, &[&[EX4B]]),
        Exit::WrenEx4b => send(port, &[&[WREN], &[EX4B], &[WRDI]]),
        Exit::Bank => send(port, &[&[WREN], &[WRBR, 0], &[WRDI]]),
        Exit::Ex4bInfineon => send(port, &[&[EX4B_INFINEON]]),
        Exit::Reset | Exit::ResetF0 => {
            let commands: &[&[u8]] =
                if way == Exit::Reset { &[&[RSTEN], &[RST]] } else { &[&[RESET]] };
            send(port, commands)?;
            timer.sleep_ns(RESET_NS);
            Ok(())
        }
    }
}

/// Writes the extended address register, the upper byte of 3-byte addresses.
fn set_upper(port: &mut impl Port, upper: u8) -> Result<(), NorError> {
    send(port, &[&[WREN], &[WREAR, upper], &[WRDI]])
}

/// Sends each command as a message of its own, and reads nothing.
fn send(port: &mut impl Port, commands: &[&[u8]]) -> Result<(), NorError> {
    commands.iter().try_for_each(|&command| Ok(port.run(&mut [Transfer::write(command)])?))
}

impl<P: Port, T: Timer> SpiNor<P, T> {
    /// Enters 4-byte mode, if the driver addresses this part so.
    pub(super) fn enter(&mut self) -> Result<(), NorError> {
        match self.geometry.addressing {
            Addressing::FourByteMode { enter: way } => enter(&mut self.port, way),
            _ => Ok(()),
        }
    }

    /// Leaves 4-byte mode if the driver entered it, and brings the extended address register to 0.
    pub(super) fn leave(&mut self) -> Result<(), NorError> {
        match self.geometry.addressing {
            Addressing::FourByteMode { .. } => {
                if let Some(way) = self.geometry.exit {
                    exit(&mut self.port, &mut self.timer, way)?;
                }
                // On the W25Q256FV the register holds 1 after E9h (Linux's drivers/mtd/spi-nor/winbond.c).
                // It is written unread: where it cannot be read it is not known to be 0.
                if self.geometry.extended_address { set_upper(&mut self.port, 0) } else { Ok(()) }
            }
            Addressing::ExtendedAddress => self.reach(0),
            _ => Ok(()),
        }
    }

    /// Sets the extended address register for `address`, if the part is addressed so.
    pub(super) fn reach(&mut self, address: u64) -> Result<(), NorError> {
        if let Some(upper) = self.upper_due(address) {
            // Unknown if the message fails.
            self.upper = None;
            set_upper(&mut self.port, upper)?;
            self.upper = Some(upper);
        }
        Ok(())
    }

    /// The value to write into the extended address register for `address`; `None` if it holds that value.
    pub(super) fn upper_due(&self, address: u64) -> Option<u8> {
        let upper = (address / THREE_BYTE_REACH) as u8;
        let used = self.geometry.addressing == Addressing::ExtendedAddress;
        (used && self.upper != Some(upper)).then_some(upper)
    }

    /// The end of the longest read that begins at `address`: with an extended address, that of its 16 MiB.
    pub(super) fn read_end(&self, address: u64) -> u64 {
        match self.geometry.addressing {
            Addressing::ExtendedAddress => (address / THREE_BYTE_REACH + 1) * THREE_BYTE_REACH,
            _ => u64::MAX,
        }
    }
}
