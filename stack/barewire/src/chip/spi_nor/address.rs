//! Addresses above 16 MiB: the ways into 4-byte mode and out of it, and the extended address register.
//!
//! Read first: JESD216B, BFPT word 16 (*enter* and *exit 4-byte addressing*) and the 4-byte address
//! instruction table.
//!
//! A boot ROM reads with 3-byte addresses. So a chip is left in 3-byte mode, with its extended address register
//! at 0. A way in is used only if a way out is known.

use super::opcode::{EN4B, EX4B, EX4B_INFINEON, RESET, RST, RSTEN, WRBR, WRDI, WREAR, WREN};
use super::{NorError, SpiNor};
use crate::chip::Port;
use crate::spi::Transfer;
use crate::time::Timer;

/// The reach of a 3-byte address, in bytes.
pub(super) const THREE_BYTE_REACH: u64 = 16 << 20;
/// The bank register's bit for 4-byte mode.
const EXTADD: u8 = 1 << 7;
/// From a reset until the chip accepts a command: more than a part in use needs when it is idle
/// (W25Q256JV tRST 30 us, MT25Q tSHSL3 40 us, S25HS-T tSR 83 us).
const RESET_NS: u64 = 200_000;

/// The width of addresses, and the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Addressing {
    /// Three bytes.
    ThreeByte,
    /// Three bytes, and the upper ones in the extended address register.
    ExtendedAddress,
    /// Four bytes, with separate opcodes, so there is no mode to leave.
    FourByteOpcodes,
    /// Four bytes in 4-byte mode. The way out is [`Geometry::exit`](super::Geometry::exit).
    FourByteMode {
        /// The way in.
        enter: Enter,
    },
    /// Four bytes always: the chip has no other mode, or does not leave it.
    FourByteOnly,
}

impl Addressing {
    /// The number of bytes in an address.
    #[must_use]
    pub const fn bytes(self) -> u8 {
        match self {
            Addressing::ThreeByte | Addressing::ExtendedAddress => 3,
            _ => 4,
        }
    }
}

/// A way into 4-byte mode (JESD216B, BFPT word 16, bits 31 to 24).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Enter {
    /// B7h.
    En4b,
    /// 06h, then B7h.
    WrenEn4b,
    /// 17h with 80h: the bank register.
    Bank,
}

/// A way out of 4-byte mode (JESD216B, BFPT word 16, bits 23 to 14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Exit {
    /// E9h.
    Ex4b,
    /// 06h, then E9h.
    WrenEx4b,
    /// 17h with 00h: the bank register.
    Bank,
    /// B8h (Infineon S25HS-T, S28HS-T and S25FS256T datasheets, EX4BA).
    Ex4bInfineon,
    /// 66h, then 99h: a reset of everything volatile.
    Reset,
    /// F0h: the same.
    ResetF0,
}

impl Enter {
    /// The way in by its name on command lines: `b7`, `06+b7` or `17`; and the way out that belongs to it.
    #[must_use]
    pub fn named(name: &str) -> Option<(Self, Exit)> {
        match name {
            "b7" => Some((Enter::En4b, Exit::Ex4b)),
            "06+b7" => Some((Enter::WrenEn4b, Exit::WrenEx4b)),
            "17" => Some((Enter::Bank, Exit::Bank)),
            _ => None,
        }
    }

    /// The opcodes, as datasheets write them.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Enter::En4b => "B7h",
            Enter::WrenEn4b => "06h B7h",
            Enter::Bank => "17h 80h",
        }
    }
}

impl Exit {
    /// The opcodes, as datasheets write them.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Exit::Ex4b => "E9h",
            Exit::WrenEx4b => "06h E9h",
            Exit::Bank => "17h 00h",
            Exit::Ex4bInfineon => "B8h",
            Exit::Reset => "66h 99h",
            Exit::ResetF0 => "F0h",
        }
    }

    /// Whether this changes nothing else, so that it may be sent to a chip that is perhaps in 3-byte mode.
    pub(super) const fn is_harmless(self) -> bool {
        !matches!(self, Exit::Reset | Exit::ResetF0)
    }
}

/// Sends the commands of a way in.
pub(super) fn enter(port: &mut impl Port, way: Enter) -> Result<(), NorError> {
    match way {
        Enter::En4b => send(port, &[&[EN4B]]),
        // Parts differ in whether the latch stays set after the command.
        Enter::WrenEn4b => send(port, &[&[WREN], &[EN4B], &[WRDI]]),
        Enter::Bank => send(port, &[&[WRBR, EXTADD]]),
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
        Exit::Bank => send(port, &[&[WRBR, 0]]),
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

/// Messages of which nothing is read.
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

    /// What must be written into the extended address register for `address`.
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
