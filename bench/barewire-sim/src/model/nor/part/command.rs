//! The effects of a part's opcodes, and the groups of opcodes that many parts share.
//!
//! Read first: JESD216, which names these opcodes, and the command table of the part's datasheet. A part has exactly
//! the opcodes of its groups: any other is ignored, and WEL stays as it is.

use super::KIB;

/// The width of a command's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum AddressWidth {
    /// 3 bytes, or 4 in 4-byte mode.
    ByMode,
    /// Always 3 bytes.
    Three,
    /// Always 4 bytes.
    Four,
}

/// The range that an erase command erases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum EraseUnit {
    /// An aligned block of this many bytes, anywhere: a sector, a block, a die of a stack.
    Block(usize),
    /// The block of the part's [`EraseMap`](super::EraseMap) at the address.
    OfMap,
    /// A 4 KiB sector at the end of the array where the part has such. Anywhere else the command is ignored.
    Parameter,
    Chip,
}

/// The status register that a command reads or writes. Parts name the second and third differently
/// (configuration register, control register).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum StatusRegister {
    One,
    Two,
    Three,
}

/// The function of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Op {
    WriteEnable,
    WriteDisable,
    EnableWriteStatus,
    /// 01h: registers 1 and up, as many as there are data bytes.
    WriteStatus,
    /// One register alone.
    WriteOneStatus(StatusRegister),
    ReadStatus(StatusRegister),
    /// Reads the flag status register of Micron's parts. Only this read finishes a program or an erase.
    ReadFlagStatus,
    ClearFlagStatus,
    ReadJedecId,
    /// Four dummy bytes, five in 4-byte mode, then 64 bits.
    ReadUniqueId,
    /// Three address bytes, then manufacturer and device id alternately.
    ReadId,
    /// Wakes the chip. After three dummy bytes it reads the device id.
    ReleasePowerDown,
    ReadSfdp(AddressWidth),
    Read {
        address: AddressWidth,
        dummy_bytes: u8,
    },
    PageProgram(AddressWidth),
    ByteProgram,
    AaiWordProgram,
    Erase(AddressWidth, EraseUnit),
    ChipErase,
    /// Enters or leaves 4-byte mode.
    FourByteMode {
        on: bool,
        /// It is ignored without WEL.
        needs_wel: bool,
        /// What the extended address register holds then, if the command changes it.
        then_bank: Option<u8>,
    },
    EnableReset,
    Reset,
    /// A reset in one byte.
    SoftwareReset,
    PowerDown,
    /// Clears the error bits, and BUSY with them.
    ClearStatus,
    /// Reads the bank register: the upper address bits for 3-byte commands, and 4-byte mode in bit 7.
    ReadBank,
    WriteBank,
    /// Reads the extended address register: the upper address bits for 3-byte commands alone.
    ReadExtendedAddress,
    /// Needs WEL, and leaves it.
    WriteExtendedAddress,
    /// Reads the non-volatile configuration register of Micron's parts, the low byte first.
    ReadNonvolatile,
    WriteNonvolatile,
    /// Reads a register by its address: Spansion's, Cypress's and Infineon's parts.
    ReadAnyRegister,
    WriteAnyRegister,
    /// The block protection register of SST26 parts: reads, writes, and clears it.
    ReadBlockProtection,
    WriteBlockProtection,
    UnlockBlocks,
}

impl Op {
    /// The width of the address, if the part has a choice.
    pub(in super::super) fn address(self) -> Option<AddressWidth> {
        match self {
            Self::Read { address, .. }
            | Self::PageProgram(address)
            | Self::ReadSfdp(address)
            | Self::Erase(address, _) => Some(address),
            Self::ReadAnyRegister | Self::WriteAnyRegister => Some(AddressWidth::ByMode),
            _ => None,
        }
    }

    /// It changes nothing and may end after any bit.
    pub(in super::super) fn only_reads(self) -> bool {
        matches!(
            self,
            Self::Read { .. }
                | Self::ReadStatus(_)
                | Self::ReadFlagStatus
                | Self::ReadJedecId
                | Self::ReadUniqueId
                | Self::ReadId
                | Self::ReadBank
                | Self::ReadExtendedAddress
                | Self::ReadNonvolatile
                | Self::ReadAnyRegister
                | Self::ReadBlockProtection
                | Self::ReadSfdp(_)
        )
    }
}

/// One opcode of a part.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Command {
    pub(in super::super) opcode: u8,
    pub(in super::super) op: Op,
    /// The command's own limit, if it is below the part's.
    pub(in super::super) max_clock_hz: Option<u32>,
}

pub(super) const fn command(opcode: u8, op: Op) -> Command {
    Command { opcode, op, max_clock_hz: None }
}

pub(super) const fn slow_read(opcode: u8, address: AddressWidth, max_clock_hz: u32) -> Command {
    Command { opcode, op: Op::Read { address, dummy_bytes: 0 }, max_clock_hz: Some(max_clock_hz) }
}

pub(super) const fn fast_read(opcode: u8, address: AddressWidth) -> Command {
    let dummy_bytes = 1;
    command(opcode, Op::Read { address, dummy_bytes })
}

pub(super) const fn erase(opcode: u8, address: AddressWidth, bytes: usize) -> Command {
    command(opcode, Op::Erase(address, EraseUnit::Block(bytes)))
}

const fn four_byte_mode(opcode: u8, on: bool, needs_wel: bool) -> Command {
    command(opcode, Op::FourByteMode { on, needs_wel, then_bank: None })
}

/// What every part of JESD216 has.
const fn common(sfdp_address: AddressWidth) -> [Command; 6] {
    [
        command(0x06, Op::WriteEnable),
        command(0x04, Op::WriteDisable),
        command(0x05, Op::ReadStatus(StatusRegister::One)),
        command(0x01, Op::WriteStatus),
        command(0x9f, Op::ReadJedecId),
        command(0x5a, Op::ReadSfdp(sfdp_address)),
    ]
}

/// With three address bytes for 5Ah in either mode.
pub(super) const COMMON: &[Command] = &common(AddressWidth::Three);
/// With four in 4-byte mode.
pub(super) const COMMON_SFDP_BY_MODE: &[Command] = &common(AddressWidth::ByMode);

/// Reads and program whose addresses have four bytes in 4-byte mode. 03h has the limit that most parts have.
pub(super) const READ_PROGRAM: &[Command] = &[
    slow_read(0x03, AddressWidth::ByMode, 50_000_000),
    fast_read(0x0b, AddressWidth::ByMode),
    command(0x02, Op::PageProgram(AddressWidth::ByMode)),
];

pub(super) const CHIP_ERASE: &[Command] =
    &[command(0xc7, Op::ChipErase), command(0x60, Op::ChipErase)];

/// Sectors of 4 KiB, blocks of 32 and 64 KiB.
pub(super) const ERASES: &[Command] = &[
    erase(0x20, AddressWidth::ByMode, 4 * KIB),
    erase(0x52, AddressWidth::ByMode, 32 * KIB),
    erase(0xd8, AddressWidth::ByMode, 64 * KIB),
];

/// Dedicated 4-byte opcodes, each by itself.
pub(super) const READ_4B: &[Command] = &[slow_read(0x13, AddressWidth::Four, 50_000_000)];
pub(super) const FAST_READ_4B: &[Command] = &[fast_read(0x0c, AddressWidth::Four)];
pub(super) const PROGRAM_4B: &[Command] = &[command(0x12, Op::PageProgram(AddressWidth::Four))];
pub(super) const ERASE_4K_4B: &[Command] = &[erase(0x21, AddressWidth::Four, 4 * KIB)];
pub(super) const ERASE_32K_4B: &[Command] = &[erase(0x5c, AddressWidth::Four, 32 * KIB)];
pub(super) const ERASE_64K_4B: &[Command] = &[erase(0xdc, AddressWidth::Four, 64 * KIB)];

/// All of them.
pub(super) const ALL_4B: &[Command] =
    &[READ_4B[0], FAST_READ_4B[0], PROGRAM_4B[0], ERASE_4K_4B[0], ERASE_32K_4B[0], ERASE_64K_4B[0]];

/// Ways into and out of 4-byte mode, each by itself.
pub(super) const ENTER_B7: &[Command] = &[four_byte_mode(0xb7, true, false)];
pub(super) const ENTER_B7_WEL: &[Command] = &[four_byte_mode(0xb7, true, true)];
pub(super) const EXIT_E9: &[Command] = &[four_byte_mode(0xe9, false, false)];
pub(super) const EXIT_E9_WEL: &[Command] = &[four_byte_mode(0xe9, false, true)];
pub(super) const EXIT_29: &[Command] = &[four_byte_mode(0x29, false, false)];
pub(super) const EXIT_B8: &[Command] = &[four_byte_mode(0xb8, false, false)];
/// E9h, after which the extended address register holds 1.
pub(super) const EXIT_E9_BANK_1: &[Command] =
    &[command(0xe9, Op::FourByteMode { on: false, needs_wel: false, then_bank: Some(1) })];

pub(super) const EXTENDED_ADDRESS: &[Command] =
    &[command(0xc8, Op::ReadExtendedAddress), command(0xc5, Op::WriteExtendedAddress)];
pub(super) const BANK: &[Command] = &[command(0x16, Op::ReadBank), command(0x17, Op::WriteBank)];
pub(super) const NONVOLATILE: &[Command] =
    &[command(0xb5, Op::ReadNonvolatile), command(0xb1, Op::WriteNonvolatile)];

/// Status register 2, as Winbond's and GigaDevice's parts have it; read and written by itself.
pub(super) const READ_STATUS_2: &[Command] = &[command(0x35, Op::ReadStatus(StatusRegister::Two))];
pub(super) const WRITE_STATUS_2: &[Command] =
    &[command(0x31, Op::WriteOneStatus(StatusRegister::Two))];
pub(super) const STATUS_3: &[Command] = &[
    command(0x15, Op::ReadStatus(StatusRegister::Three)),
    command(0x11, Op::WriteOneStatus(StatusRegister::Three)),
];
/// Macronix's configuration register, which 01h writes with its second byte.
pub(super) const CONFIGURATION: &[Command] = &[command(0x15, Op::ReadStatus(StatusRegister::Two))];
pub(super) const FLAG_STATUS: &[Command] =
    &[command(0x70, Op::ReadFlagStatus), command(0x50, Op::ClearFlagStatus)];
pub(super) const ANY_REGISTER: &[Command] =
    &[command(0x65, Op::ReadAnyRegister), command(0x71, Op::WriteAnyRegister)];

pub(super) const RESET: &[Command] = &[command(0x66, Op::EnableReset), command(0x99, Op::Reset)];
pub(super) const POWER_DOWN: &[Command] =
    &[command(0xb9, Op::PowerDown), command(0xab, Op::ReleasePowerDown)];
pub(super) const IDS: &[Command] = &[command(0x90, Op::ReadId), command(0x4b, Op::ReadUniqueId)];
