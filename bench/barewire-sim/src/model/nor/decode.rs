//! A command of a flash chip from its opcode to its execution.
//!
//! Read first: `mod.rs`, which has the phases, and `part/command.rs`, which has the opcodes.
//!
//! A command that the chip must not get now (while BUSY, in power-down, in AAI mode) is ignored and reported.

use super::part::{AddressWidth, Command, EraseUnit, Op};
use super::registers::VOLATILE;
use super::{Nor, PS_PER_S, Phase, Source};
use crate::chip::Ps;

impl Nor {
    /// Begins a command: the phase after its opcode.
    pub(super) fn decode(&mut self, opcode: u8) {
        self.phase = Phase::Deaf;
        self.status_write_armed = core::mem::take(&mut self.enabled_status_write);
        self.reset_armed = core::mem::take(&mut self.enabled_reset);
        let found = self.part.commands().find(|c| c.opcode == opcode);
        let Some(command) = found else {
            return;
        };
        let op = command.op;
        if self.now < self.deaf_until {
            return self.complain(format_args!(
                "command {opcode:02X}h too soon after a reset or a release from power-down"
            ));
        }
        if self.powered_down && op != Op::ReleasePowerDown {
            return self.complain(format_args!("command {opcode:02X}h while powered down"));
        }
        let of_busy = matches!(
            op,
            Op::ReadStatus(_) | Op::ReadFlagStatus | Op::ReadAnyRegister | Op::ClearStatus
        ) || self.failed != 0 && op == Op::SoftwareReset;
        if self.busy() && !of_busy {
            return self.complain(format_args!("command {opcode:02X}h while BUSY"));
        }
        let of_aai = matches!(op, Op::AaiWordProgram | Op::ReadStatus(_) | Op::WriteDisable);
        if self.aai_next.is_some() && !of_aai {
            return self.complain(format_args!("command {opcode:02X}h in AAI mode"));
        }
        self.min_period_ps =
            command.max_clock_hz.map_or(0, |max_clock_hz| PS_PER_S / Ps::from(max_clock_hz));
        self.command = Some(command);
        self.at = 0;
        self.data_count = 0;
        self.phase = match op {
            Op::ReadStatus(_)
            | Op::ReadFlagStatus
            | Op::ReadJedecId
            | Op::ReadBank
            | Op::ReadExtendedAddress
            | Op::ReadNonvolatile
            | Op::ReadBlockProtection => self.out(),
            Op::ReadId | Op::ByteProgram => Phase::Address(3),
            Op::AaiWordProgram => match self.aai_next {
                Some(next) => {
                    self.at = next;
                    Phase::Collect
                }
                None => Phase::Address(3),
            },
            Op::Read { address, .. }
            | Op::PageProgram(address)
            | Op::Erase(address, _)
            | Op::ReadSfdp(address) => Phase::Address(self.address_bytes(address)),
            Op::ReadAnyRegister | Op::WriteAnyRegister => {
                Phase::Address(self.address_bytes(AddressWidth::ByMode))
            }
            Op::ReleasePowerDown => Phase::Dummy(3),
            Op::ReadUniqueId => Phase::Dummy(1 + self.address_bytes(AddressWidth::ByMode)),
            Op::WriteStatus
            | Op::WriteOneStatus(_)
            | Op::WriteBank
            | Op::WriteExtendedAddress
            | Op::WriteNonvolatile
            | Op::WriteBlockProtection => Phase::Collect,
            Op::WriteEnable
            | Op::WriteDisable
            | Op::EnableWriteStatus
            | Op::ChipErase
            | Op::FourByteMode { .. }
            | Op::EnableReset
            | Op::Reset
            | Op::SoftwareReset
            | Op::PowerDown
            | Op::UnlockBlocks
            | Op::ClearFlagStatus
            | Op::ClearStatus => Phase::Complete,
        };
    }

    fn address_bytes(&self, width: AddressWidth) -> u8 {
        match width {
            AddressWidth::Three => 3,
            AddressWidth::Four => 4,
            AddressWidth::ByMode => 3 + u8::from(self.four_byte_mode),
        }
    }

    /// The phase after the last address byte.
    pub(super) fn after_address(&mut self) -> Phase {
        let Some(Command { op, .. }) = self.command else {
            return Phase::Deaf;
        };
        match op {
            Op::ReadAnyRegister => {
                let dummy = if self.at < VOLATILE { 1 } else { self.part.any_register_dummy };
                return if dummy == 0 { self.out() } else { Phase::Dummy(dummy) };
            }
            Op::WriteAnyRegister => return Phase::Collect,
            _ if op.address() == Some(AddressWidth::ByMode) && !self.four_byte_mode => {
                self.at |= usize::from(self.bank) << 24;
            }
            _ => {}
        }
        // Address bits above the array are not decoded.
        self.at %= match op {
            Op::ReadSfdp(_) => self.sfdp_wrap,
            Op::ReadId => 2,
            _ => self.content.len(),
        };
        match op {
            Op::Read { dummy_bytes: 0, .. } | Op::ReadId => self.out(),
            Op::Read { dummy_bytes, .. } => Phase::Dummy(dummy_bytes),
            Op::ReadSfdp(_) => Phase::Dummy(1),
            Op::PageProgram(_) | Op::ByteProgram | Op::AaiWordProgram => Phase::Collect,
            Op::Erase(..) => Phase::Complete,
            _ => Phase::Deaf,
        }
    }

    /// The phase in which the command drives MISO.
    pub(super) fn out(&self) -> Phase {
        let source = match self.command.map(|command| command.op) {
            Some(Op::Read { .. }) => Source::Array,
            Some(Op::ReadSfdp(_)) => Source::Sfdp,
            Some(Op::ReadFlagStatus) => Source::FlagStatus,
            Some(Op::ReadExtendedAddress) => Source::ExtendedAddress,
            Some(Op::ReadNonvolatile) => Source::Nonvolatile,
            Some(Op::ReadAnyRegister) => Source::AnyRegister,
            Some(Op::ReadBlockProtection) => Source::BlockProtection,
            Some(Op::ReadStatus(register)) => Source::Status(register),
            Some(Op::ReadJedecId) => Source::JedecId,
            Some(Op::ReadUniqueId) => Source::UniqueId,
            Some(Op::ReadBank) => Source::Bank,
            Some(Op::ReadId) => Source::Id,
            Some(Op::ReleasePowerDown) => Source::DeviceId,
            _ => return Phase::Deaf,
        };
        Phase::Out(source)
    }

    /// Executes a command that CS ended correctly.
    pub(super) fn execute(&mut self, command: Command, at: Ps) {
        let Command { opcode, op, .. } = command;
        match op {
            Op::WriteEnable => self.write_enabled = true,
            Op::WriteDisable => {
                self.write_enabled = false;
                self.aai_next = None;
            }
            Op::EnableWriteStatus => self.enabled_status_write = true,
            Op::FourByteMode { on, needs_wel, then_bank } => {
                if needs_wel && !self.write_enabled {
                    return self.complain(format_args!("command {opcode:02X}h without WEL"));
                }
                self.four_byte_mode = on;
                self.bank = then_bank.unwrap_or(self.bank);
            }
            Op::EnableReset => self.enabled_reset = true,
            Op::Reset if self.reset_armed => self.reset(at),
            Op::Reset => self.complain(format_args!("reset (99h) without 66h just before")),
            Op::SoftwareReset => self.reset(at),
            Op::PowerDown => self.powered_down = true,
            Op::ClearStatus => self.failed = 0,
            Op::ClearFlagStatus => self.flags = 0,
            Op::WriteStatus
            | Op::WriteOneStatus(_)
            | Op::WriteBank
            | Op::WriteExtendedAddress
            | Op::WriteNonvolatile
            | Op::WriteAnyRegister
            | Op::WriteBlockProtection
            | Op::UnlockBlocks => self.write_register(command, at),
            Op::PageProgram(_) | Op::ByteProgram | Op::AaiWordProgram => self.program(command, at),
            Op::Erase(_, unit) => self.erase(opcode, unit, at),
            Op::ChipErase => self.erase(opcode, EraseUnit::Chip, at),
            _ => debug_assert!(op.only_reads() || op == Op::ReleasePowerDown, "{op:?}"),
        }
    }

    fn reset(&mut self, at: Ps) {
        self.reset_latches();
        self.deaf_until = at.saturating_add(self.part.times.reset.typical_ps);
    }
}
