//! A SPI NOR flash chip on the wire: its commands, array, status registers, busy times and faults.
//!
//! Read first: the datasheets named in `part/`, and [`Chip`](crate::chip::Chip), which
//! `wire.rs` implements.
//!
//! How it works: bits are collected into bytes, and each byte advances a selection from phase to
//! phase (opcode, address, dummy, data out or data in). A byte on MISO is determined when its first
//! bit is clocked. A byte from MOSI is handled with its last bit. A command that changes something
//! is executed when CS rises, and only on a byte boundary. The array changes at once. The chip is
//! then BUSY until the operation's time has passed, so the change cannot be seen earlier. The end
//! of BUSY is computed at the next access, so the chip needs no timer.
//!
//! A driver's mistake (a command while BUSY, a program without WEL, CS rising inside a byte) has
//! the same effect as in silicon, mostly none, and is reported as a complaint. An opcode the part
//! does not have is not a mistake: drivers probe with them.
//!
//! This file has the state and the phases. `wire.rs` has the edges and bits that drive them,
//! `change.rs` the commands that change the array or the status registers.
//!
//! Not supported: what `part/` lists; the power-up delays; and a reset (66h and 99h, F0h) during an
//! operation, which is refused like any other command, though silicon would abort the operation.

mod change;
mod part;
mod sfdp;
#[cfg(test)]
mod tests;
mod wire;

use core::fmt;

pub use part::{Part, Span, Times};

use crate::chip::Ps;
use crate::chip::complaints::Complaints;
use part::{AddressWidth, Command, EraseUnit, ErrorBits, Op, StatusRegister};

const PS_PER_S: Ps = 1_000_000_000_000;

/// The unit in which changes are reported: the smallest erase of any part.
const GRANULE: usize = 4 << 10;

/// The value of a byte when MISO is not driven.
const UNDRIVEN: u8 = 0xff;

/// The most complaints kept until they are taken. A driver that polls with a wrong command would
/// otherwise fill the memory.
const COMPLAINTS_MAX: usize = 64;

/// Status register 1, all parts; the S25FL512S calls BUSY WIP.
const BUSY: u8 = 1 << 0;
const WEL: u8 = 1 << 1;
/// The S25FL512S's bank address register: 4-byte mode, and the upper address bits.
const EXTADD: u8 = 1 << 7;
const BANK: u8 = 0b11;

/// The content given for a chip does not have the size of its array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeMismatch {
    /// The part's name.
    pub part: &'static str,
    /// The size of its array in bytes.
    pub expected_bytes: usize,
    /// The number of bytes given.
    pub actual_bytes: usize,
}

impl fmt::Display for SizeMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, expected_bytes, actual_bytes } = self;
        write!(f, "a {part} holds {expected_bytes} bytes, the content given has {actual_bytes}")
    }
}

impl std::error::Error for SizeMismatch {}

/// Faults of a chip. Operations are counted from when the faults are set.
#[derive(Default, Clone, Debug, PartialEq, Eq)]
pub struct NorFaults {
    /// The first erase or program never ends.
    pub stuck_busy: bool,
    /// The n-th (from 0) page, byte or word program is interrupted: half of its bytes are
    /// programmed, then the chip is dead until [`Nor::power_cycle`].
    pub power_loss_in_program: Option<u64>,
    /// The n-th (from 0) erase is interrupted: its first half is erased, the rest keeps some of its
    /// old bits, then the chip is dead until [`Nor::power_cycle`].
    pub power_loss_in_erase: Option<u64>,
    /// There is no chip: MISO is never driven and MOSI is ignored.
    pub absent: bool,
    /// MISO is shorted to ground: the chip works, but reads as zeros.
    pub miso_stuck_low: bool,
    /// A program takes its time and changes nothing, as worn cells do.
    pub ignore_program: bool,
}

/// The phase of a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The opcode is next.
    Opcode,
    /// This many address bytes are still to come.
    Address(u8),
    /// This many dummy bytes are still to come.
    Dummy(u8),
    /// The chip drives MISO.
    Out(Source),
    /// The command takes data.
    Collect,
    /// The command is complete and awaits the rise of CS.
    Complete,
    /// More bytes came after a complete command, which cancels it.
    Overrun,
    /// An unknown or refused command: input is ignored and MISO not driven until CS rises.
    Deaf,
}

/// The source of the data on MISO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Array,
    Sfdp,
    Status(StatusRegister),
    JedecId,
    UniqueId,
    Bank,
    /// Manufacturer and device id alternately.
    Id,
    DeviceId,
}

/// What keeps the array beside the chip.
struct Keeper(Option<Box<Keep>>);

/// Takes bytes that changed, and where they begin.
type Keep = dyn FnMut(usize, &[u8]);

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Keeper" } else { "no keeper" })
    }
}

/// A SPI NOR flash chip.
#[derive(Debug)]
pub struct Nor {
    // A selection in progress.
    phase: Phase,
    /// The next byte to read, in the array or another source; for other commands their address.
    at: usize,
    /// The number of bits of the current byte so far, 0 to 7.
    bits_seen: u32,
    byte_in: u8,
    byte_out: u8,
    /// A shorter SCK period gets a complaint; 0 if the current command has no limit.
    min_period_ps: Ps,
    /// ORed into every answer, for faults of the wire and a dead chip.
    miso_or: u32,
    miso_and: u32,
    content: Vec<u8>,

    selected: bool,
    command: Option<Command>,
    /// The data bytes of a program or a status write: the n-th is in slot n modulo the page size.
    data: Vec<u8>,
    data_count: usize,
    /// EWSR or EnableReset came in the previous selection.
    status_write_armed: bool,
    reset_armed: bool,

    // State that outlives a selection but not a power cycle.
    now: Ps,
    write_enabled: bool,
    busy_until: Option<Ps>,
    /// The end of the operation in progress clears WEL and leaves AAI mode.
    end_disables_write: bool,
    /// All input is ignored until then: after a reset or a release from power-down.
    deaf_until: Ps,
    four_byte_mode: bool,
    /// Address bits 24 and up for commands with 3 address bytes.
    bank: u8,
    /// Error bits of status register 1. An operation failed, and BUSY stays set until they are
    /// cleared.
    failed: u8,
    /// In AAI mode: the address of the next word.
    aai_next: Option<usize>,
    powered_down: bool,
    enabled_status_write: bool,
    enabled_reset: bool,
    /// Status registers 1 and 2 without the bits that show state.
    status: [u8; 2],

    part: Part,
    sfdp: Vec<u8>,
    keeper: Keeper,
    faults: NorFaults,
    program_count: u64,
    erase_count: u64,
    /// Power was lost during an operation.
    dead: bool,
    complaints: Complaints<COMPLAINTS_MAX>,
}

impl Nor {
    /// Creates a chip that holds `content`, powered up and not selected.
    ///
    /// # Errors
    /// [`SizeMismatch`] if the size of `content` is not the size of the part's array.
    pub fn new(part: Part, content: Vec<u8>) -> Result<Self, SizeMismatch> {
        if content.len() != part.size {
            return Err(SizeMismatch {
                part: part.name,
                expected_bytes: part.size,
                actual_bytes: content.len(),
            });
        }
        Ok(Self {
            phase: Phase::Deaf,
            at: 0,
            bits_seen: 0,
            byte_in: 0,
            byte_out: UNDRIVEN,
            min_period_ps: 0,
            miso_or: 0,
            miso_and: u32::MAX,
            selected: false,
            command: None,
            // Two bytes: the longest status write, and an AAI word.
            data: vec![0; part.page_size.max(2)],
            data_count: 0,
            status_write_armed: false,
            reset_armed: false,
            now: 0,
            write_enabled: false,
            busy_until: None,
            end_disables_write: false,
            deaf_until: 0,
            four_byte_mode: false,
            bank: 0,
            failed: 0,
            aai_next: None,
            powered_down: false,
            enabled_status_write: false,
            enabled_reset: false,
            status: [part.status.factory[0], part.status.factory[1]],
            sfdp: part.sfdp.as_ref().map_or_else(Vec::new, |sfdp| sfdp.build()),
            keeper: Keeper(None),
            faults: NorFaults::default(),
            program_count: 0,
            erase_count: 0,
            dead: false,
            complaints: Complaints::default(),
            content,
            part,
        })
    }

    /// The part.
    #[must_use]
    pub fn part(&self) -> &Part {
        &self.part
    }

    /// The array. During an erase or a program it already holds the result.
    #[must_use]
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// Lets `keep` know each change of the array when it is made: where it begins, and the bytes that are
    /// there now. A file that is written so holds at each moment what the chip holds.
    pub fn keep_with(&mut self, keep: impl FnMut(usize, &[u8]) + 'static) {
        self.keeper = Keeper(Some(Box::new(keep)));
    }

    /// Sets the faults from now on, and counts operations from 0 again.
    pub fn set_faults(&mut self, faults: NorFaults) {
        self.faults = faults;
        self.program_count = 0;
        self.erase_count = 0;
        if self.faults.absent {
            self.phase = Phase::Deaf;
            self.command = None;
        }
        self.drive_by_faults();
    }

    /// The operations so far, programs and erases, since [`Nor::set_faults`] asked for a loss of power that
    /// has not come. `None` if it came, or none was asked for.
    #[must_use]
    pub fn power_loss_awaited(&self) -> Option<[u64; 2]> {
        let NorFaults { power_loss_in_program, power_loss_in_erase, .. } = self.faults;
        let asked = power_loss_in_program.or(power_loss_in_erase).is_some();
        (asked && !self.dead).then_some([self.program_count, self.erase_count])
    }

    /// Switches power off and on. Volatile state is lost; the array and the non-volatile status
    /// bits stay. An operation in progress counts as finished; to interrupt one, use [`NorFaults`].
    /// A chip that is selected meanwhile ignores all input until CS has risen.
    pub fn power_cycle(&mut self) {
        self.dead = false;
        self.reset_latches();
        self.phase = Phase::Deaf;
        self.command = None;
        self.drive_by_faults();
    }

    /// Status register 1 as RDSR would read it, at the chip's last edge or bit.
    #[must_use]
    pub fn status(&self) -> u8 {
        let busy = if self.busy() { BUSY } else { 0 };
        let wel = if self.write_enabled { WEL } else { 0 };
        let aai = if self.aai_next.is_some() { self.part.status.aai_mode } else { 0 };
        self.status[0] | self.failed | busy | wel | aai
    }

    fn busy(&self) -> bool {
        self.busy_until.is_some() || self.failed != 0
    }

    /// WEL, at the chip's last edge or bit.
    #[must_use]
    pub fn write_enabled(&self) -> bool {
        self.write_enabled
    }

    /// CS is active.
    #[must_use]
    pub fn selected(&self) -> bool {
        self.selected
    }

    /// Writes the writable bits of status register 1, as an earlier WRSR would have. If they are
    /// volatile (SST25VF016B), the next power cycle undoes it.
    pub fn set_status(&mut self, sr1: u8) {
        self.status[0] = sr1 & self.part.status.writable_1;
    }

    fn drive_by_faults(&mut self) {
        self.miso_or = if self.faults.absent || self.dead { u32::MAX } else { 0 };
        self.miso_and = if self.faults.miso_stuck_low { 0 } else { u32::MAX };
    }

    /// The common part of a power cycle and a software reset.
    fn reset_latches(&mut self) {
        self.write_enabled = false;
        self.busy_until = None;
        self.end_disables_write = false;
        self.deaf_until = 0;
        self.four_byte_mode = false;
        self.bank = 0;
        self.failed = 0;
        self.aai_next = None;
        self.powered_down = false;
        self.enabled_status_write = false;
        self.enabled_reset = false;
        if self.part.status.volatile_1 {
            self.status[0] = self.part.status.factory[0];
        }
    }

    #[cold]
    fn complain(&mut self, what: fmt::Arguments<'_>) {
        self.complaints.add(|| what.to_string());
    }

    /// Ends the operation in progress if its time is over.
    fn settle(&mut self, now: Ps) {
        self.now = now;
        if self.busy_until.is_some_and(|end| now >= end) {
            self.busy_until = None;
            if core::mem::take(&mut self.end_disables_write) {
                self.write_enabled = false;
                self.aai_next = None;
            }
        }
    }

    /// The byte on MISO whose first bit is clocked at `now`.
    fn begin_byte(&mut self, now: Ps) -> u8 {
        self.settle(now);
        let Phase::Out(source) = self.phase else {
            return UNDRIVEN;
        };
        let at = self.at;
        self.at += 1;
        let byte = match source {
            Source::Array => {
                if self.at == self.content.len() {
                    self.at = 0;
                }
                self.content.get(at).copied()
            }
            Source::Sfdp => {
                self.at %= sfdp::LENGTH;
                self.sfdp.get(at).copied()
            }
            Source::Status(StatusRegister::One) => Some(self.status()),
            Source::Status(StatusRegister::Two) => Some(self.status[1]),
            Source::Status(StatusRegister::Three) => {
                let layout = self.part.status;
                let mode = if self.four_byte_mode { layout.four_byte_mode } else { 0 };
                Some(layout.factory[2] | mode)
            }
            Source::JedecId => {
                let id = self.part.jedec_id;
                let at = if self.part.jedec_id_repeats { at % id.len() } else { at };
                id.iter().chain(self.part.jedec_id_tail).nth(at).copied()
            }
            Source::UniqueId => self.part.unique_id.and_then(|id| id.get(at).copied()),
            Source::Bank => Some(self.bank | if self.four_byte_mode { EXTADD } else { 0 }),
            Source::Id => Some([self.part.jedec_id[0], self.part.device_id][at % 2]),
            Source::DeviceId => Some(self.part.device_id),
        };
        byte.unwrap_or(UNDRIVEN)
    }

    /// Handles a whole byte from MOSI.
    fn end_byte(&mut self, byte: u8) {
        match self.phase {
            Phase::Opcode => self.decode(byte),
            Phase::Address(left) => {
                self.at = self.at << 8 | usize::from(byte);
                self.phase = if left > 1 { Phase::Address(left - 1) } else { self.after_address() };
            }
            Phase::Dummy(left) if left > 1 => self.phase = Phase::Dummy(left - 1),
            Phase::Dummy(_) => self.phase = self.out(),
            Phase::Collect => {
                let slot = self.data_count % self.data.len();
                self.data[slot] = byte;
                self.data_count += 1;
            }
            Phase::Complete => self.phase = Phase::Overrun,
            Phase::Out(_) | Phase::Overrun | Phase::Deaf => {}
        }
    }

    fn decode(&mut self, opcode: u8) {
        self.phase = Phase::Deaf;
        self.status_write_armed = core::mem::take(&mut self.enabled_status_write);
        self.reset_armed = core::mem::take(&mut self.enabled_reset);
        let found = self.part.commands.iter().find(|c| c.opcode == opcode);
        let Some(&command) = found else {
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
        let of_busy = matches!(op, Op::ReadStatus(_) | Op::ClearStatus)
            || self.failed != 0 && op == Op::SoftwareReset;
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
            Op::ReadStatus(_) | Op::ReadJedecId | Op::ReadBank => self.out(),
            Op::ReadId | Op::ReadSfdp | Op::ByteProgram => Phase::Address(3),
            Op::AaiWordProgram => match self.aai_next {
                Some(next) => {
                    self.at = next;
                    Phase::Collect
                }
                None => Phase::Address(3),
            },
            Op::Read { address, .. } | Op::PageProgram(address) | Op::Erase(address, _) => {
                Phase::Address(self.address_bytes(address))
            }
            Op::ReleasePowerDown => Phase::Dummy(3),
            Op::ReadUniqueId => Phase::Dummy(1 + self.address_bytes(AddressWidth::ByMode)),
            Op::WriteStatus | Op::WriteBank => Phase::Collect,
            Op::WriteEnable
            | Op::WriteDisable
            | Op::EnableWriteStatus
            | Op::ChipErase
            | Op::EnterFourByteMode
            | Op::ExitFourByteMode
            | Op::EnableReset
            | Op::Reset
            | Op::SoftwareReset
            | Op::PowerDown
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

    fn after_address(&mut self) -> Phase {
        let op = self.command.map(|command| command.op);
        let by_mode = op.and_then(Op::address) == Some(AddressWidth::ByMode);
        if by_mode && !self.four_byte_mode {
            self.at |= usize::from(self.bank) << 24;
        }
        // Address bits above the array are not decoded.
        self.at %= match op {
            Some(Op::ReadSfdp) => sfdp::LENGTH,
            Some(Op::ReadId) => 2,
            _ => self.content.len(),
        };
        match op {
            Some(Op::Read { dummy_bytes: 0, .. } | Op::ReadId) => self.out(),
            Some(Op::Read { dummy_bytes, .. }) => Phase::Dummy(dummy_bytes),
            Some(Op::ReadSfdp) => Phase::Dummy(1),
            Some(Op::PageProgram(_) | Op::ByteProgram | Op::AaiWordProgram) => Phase::Collect,
            Some(Op::Erase(..)) => Phase::Complete,
            _ => Phase::Deaf,
        }
    }

    fn out(&self) -> Phase {
        let source = match self.command.map(|command| command.op) {
            Some(Op::Read { .. }) => Source::Array,
            Some(Op::ReadSfdp) => Source::Sfdp,
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
    fn execute(&mut self, command: Command, at: Ps) {
        let Command { opcode, op, .. } = command;
        match op {
            Op::WriteEnable => self.write_enabled = true,
            Op::WriteDisable => {
                self.write_enabled = false;
                self.aai_next = None;
            }
            Op::EnableWriteStatus => self.enabled_status_write = true,
            Op::EnterFourByteMode => self.four_byte_mode = true,
            Op::ExitFourByteMode => self.four_byte_mode = false,
            Op::EnableReset => self.enabled_reset = true,
            Op::Reset if self.reset_armed => self.reset(at),
            Op::Reset => self.complain(format_args!("reset (99h) without 66h just before")),
            Op::SoftwareReset => self.reset(at),
            Op::PowerDown => self.powered_down = true,
            Op::ClearStatus => self.failed = 0,
            Op::WriteBank => self.write_bank(),
            Op::WriteStatus => self.write_status(at),
            Op::PageProgram(_) | Op::ByteProgram | Op::AaiWordProgram => self.program(command, at),
            Op::Erase(_, unit) => self.erase(opcode, unit, at),
            Op::ChipErase => self.erase(opcode, EraseUnit::Chip, at),
            Op::ReadStatus(_)
            | Op::ReadJedecId
            | Op::ReadUniqueId
            | Op::ReadBank
            | Op::ReadId
            | Op::ReleasePowerDown
            | Op::ReadSfdp
            | Op::Read { .. } => {}
        }
    }

    fn reset(&mut self, at: Ps) {
        self.reset_latches();
        self.deaf_until = at.saturating_add(self.part.times.reset.typical_ps);
    }

    fn write_bank(&mut self) {
        let count = self.data_count;
        if count != 1 {
            return self.complain(format_args!(
                "bank register write (17h) with {count} data bytes, 1 is needed"
            ));
        }
        self.four_byte_mode = self.data[0] & EXTADD != 0;
        self.bank = self.data[0] & BANK;
    }
}
