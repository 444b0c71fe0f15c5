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
//! This file has the state and the phases. `wire.rs` has the edges and bits that drive them, `decode.rs` the commands,
//! `change.rs` those that change the array, `registers.rs` those that change registers, address mode and locks. `inspect.rs`
//! has what a test may ask that no driver can, and leaves a chip as another user would have.
//!
//! Not supported: what `part/` lists; the power-up delays; and a reset (66h and 99h, F0h) during an
//! operation, which is refused like any other command, though silicon would abort the operation.

mod change;
mod decode;
mod faults;
mod inspect;
mod part;
mod registers;
mod sfdp;
#[cfg(test)]
mod tests;
mod wire;

use core::fmt;

pub use faults::NorFaults;
pub use inspect::Left;
pub use part::{Part, Span, Times};

use crate::chip::complaints::Complaints;
use crate::chip::{PS_PER_S, Ps};
use part::{Command, StatusRegister};

/// The unit in which changes are reported: the smallest erase of any part.
const GRANULE: usize = 4 << 10;

/// The value of a byte when MISO is not driven.
const UNDRIVEN: u8 = 0xff;

/// The most complaints kept until they are taken. A driver that polls with a wrong command would
/// otherwise fill the memory.
const COMPLAINTS_MAX: usize = 64;

/// Status register 1, all parts. Some call BUSY WIP, and some show it in a second bit too.
#[cfg(test)]
const BUSY: u8 = 1 << 0;
const WEL: u8 = 1 << 1;

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
    FlagStatus,
    Bank,
    ExtendedAddress,
    Nonvolatile,
    AnyRegister,
    BlockProtection,
    /// Manufacturer and device id alternately.
    Id,
    DeviceId,
}

/// The callback that stores changes of the array, for example in a file.
struct Keeper(Option<Box<Keep>>);

/// Gets the changed bytes, and the address of the first.
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
    /// Error bits of the flag status register.
    flags: u8,
    /// A program or an erase was made, and the flag status register not read since it ended.
    flag_status_unread: bool,
    /// The block protection register, highest byte first.
    locks: Vec<u8>,
    /// In AAI mode: the address of the next word.
    aai_next: Option<usize>,
    powered_down: bool,
    enabled_status_write: bool,
    enabled_reset: bool,
    /// Status registers 1 to 3 without the bits that show state.
    status: [u8; 3],
    /// Configuration registers 2 and 3, where registers are read by address.
    configuration: [u8; 2],
    nonvolatile: u16,

    part: Part,
    sfdp: Vec<u8>,
    /// The address of 5Ah wraps there.
    sfdp_wrap: usize,
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
        let (sfdp, sfdp_wrap) = part.sfdp.bytes();
        let mut nor = Self {
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
            // The longest register write is that of the block protection; an AAI word has two bytes.
            data: vec![0; part.page_size.max(part.locks.len()).max(3)],
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
            flags: 0,
            flag_status_unread: false,
            locks: Vec::new(),
            aai_next: None,
            powered_down: false,
            enabled_status_write: false,
            enabled_reset: false,
            status: part.status.factory,
            configuration: part.configuration,
            nonvolatile: part.nonvolatile.unwrap_or(u16::MAX),
            sfdp,
            sfdp_wrap,
            keeper: Keeper(None),
            faults: NorFaults::default(),
            program_count: 0,
            erase_count: 0,
            dead: false,
            complaints: Complaints::default(),
            content,
            part,
        };
        nor.reset_latches();
        Ok(nor)
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

    fn busy(&self) -> bool {
        self.busy_until.is_some() || self.failed != 0
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
        // Bit 0 of the non-volatile configuration register clear: 4-byte addresses.
        self.four_byte_mode = self.part.four_byte_at_power_up
            || self.part.nonvolatile.is_some() && self.nonvolatile & 1 == 0;
        self.bank = 0;
        self.failed = 0;
        self.flags = 0;
        self.flag_status_unread = false;
        self.locks = self.part.locks.to_vec();
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
                self.at %= self.sfdp_wrap;
                self.sfdp.get(at).copied()
            }
            Source::Status(StatusRegister::One) => Some(self.status()),
            Source::Status(StatusRegister::Two) => Some(self.status[1]),
            Source::Status(StatusRegister::Three) => Some(self.status_3()),
            Source::FlagStatus => Some(self.read_flag_status()),
            Source::ExtendedAddress => Some(self.bank),
            Source::Nonvolatile => self.nonvolatile.to_le_bytes().get(at).copied(),
            // The address is the register's as long as CS is active.
            Source::AnyRegister => {
                self.at = at;
                self.register(at)
            }
            Source::BlockProtection => self.locks.get(at).copied(),
            Source::JedecId => {
                let id = self.part.jedec_id;
                let at = if self.part.jedec_id_repeats { at % id.len() } else { at };
                id.iter().chain(self.part.jedec_id_tail).nth(at).copied()
            }
            Source::UniqueId => self.part.unique_id.and_then(|id| id.get(at).copied()),
            Source::Bank => Some(self.bank_register()),
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
}
