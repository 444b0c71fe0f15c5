//! SPI instructions, byte by byte.
//!
//! *Read first*: DS20006027, chapter 4.
//!
//! # How it works
//! The first two bytes are the instruction's code and address. Instructions with a CRC then have
//! the number of bytes (of RAM: words); for WRITE_SAFE that number is fixed. [`Instruction::out`]
//! returns the next byte to send, and [`Instruction::take`] handles the byte received with it.

use super::core::{Core, Mode};
use super::crc16::Crc16;
use super::regs::*;

/// Instruction codes.
const RESET: u8 = 0x0;
const WRITE: u8 = 0x2;
const READ: u8 = 0x3;
const WRITE_CRC: u8 = 0xa;
const READ_CRC: u8 = 0xb;
const WRITE_SAFE: u8 = 0xc;

/// An instruction in progress.
#[derive(Clone, Debug)]
pub(super) struct Instruction {
    /// The number of bytes so far.
    bytes: u32,
    code: u8,
    address: u16,
    /// The number of data bytes announced, for instructions with a CRC.
    length: u32,
    crc: Crc16,
    /// The CRC that READ_CRC sends, if it differs.
    sent_crc: Crc16,
    received_crc: u16,
    /// The word being read or written.
    word: [u8; 4],
    /// The first address, before it was incremented.
    first: u16,
    complained: bool,
    done: bool,
    count: u64,
    crc_reads: u32,
    volatile_reads: u32,
    crc_writes: u32,
}

impl Default for Instruction {
    fn default() -> Self {
        Self {
            bytes: 0,
            code: RESET,
            address: 0,
            length: 0,
            crc: Crc16::START,
            sent_crc: Crc16::START,
            received_crc: 0,
            word: [0; 4],
            first: 0,
            complained: false,
            done: false,
            count: 0,
            crc_reads: 0,
            volatile_reads: 0,
            crc_writes: 0,
        }
    }
}

/// Whether a register changes by itself.
fn is_volatile(address: u16) -> bool {
    matches!(address & !3, C1CON | C1TBC..=C1BDIAG1 | C1TEFSTA | C1TEFUA | OSC | CRC | ECCSTAT)
        || (C1TXQCON..=C1FIFOUA31).contains(&address)
}

impl Instruction {
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// CS fell.
    pub(super) fn begin(&mut self) {
        *self = Self {
            count: self.count,
            crc_reads: self.crc_reads,
            volatile_reads: self.volatile_reads,
            crc_writes: self.crc_writes,
            ..Self::default()
        };
    }

    fn has_crc(&self) -> bool {
        matches!(self.code, READ_CRC | WRITE_CRC | WRITE_SAFE)
    }

    /// The number of bytes before the data.
    fn header(&self) -> u32 {
        if matches!(self.code, READ_CRC | WRITE_CRC) { 3 } else { 2 }
    }

    /// The index of the next data byte.
    fn data_index(&self) -> Option<u32> {
        let index = self.bytes.checked_sub(self.header())?;
        (!self.has_crc() || index < self.length).then_some(index)
    }

    /// The index of the next CRC byte.
    fn crc_index(&self) -> Option<u32> {
        let index = self.bytes.checked_sub(self.header() + self.length)?;
        (self.has_crc() && index < 2).then_some(index)
    }

    /// The next byte to send.
    pub(super) fn out(&mut self, core: &mut Core) -> u8 {
        if !matches!(self.code, READ | READ_CRC) || self.bytes < 2 {
            return 0;
        }
        if let Some(index) = self.data_index() {
            return self.read(core, index);
        }
        match self.crc_index() {
            Some(0) => (self.sent_crc.0 >> 8) as u8,
            Some(_) => self.sent_crc.0 as u8,
            None => 0,
        }
    }

    fn read(&mut self, core: &mut Core, index: u32) -> u8 {
        let address = self.address;
        if index == 0 || address.is_multiple_of(4) {
            self.word = core.read_word(address & !3).to_le_bytes();
        }
        if index == 0 {
            self.check_ram_start(core);
        }
        let mut byte = self.word[usize::from(address % 4)];
        self.address = address.wrapping_add(1) & 0xfff;
        if self.code == READ_CRC {
            self.crc.add(byte);
            let mut summed = byte;
            if index == 0 {
                summed ^= self.erratum(core);
                byte ^= self.corruption(core);
            }
            self.sent_crc.add(summed);
        }
        byte
    }

    /// The first byte as the erratum puts it into the CRC.
    fn erratum(&mut self, core: &Core) -> u8 {
        let every = core.options.errata.read_crc_every;
        if !is_volatile(self.first) {
            return 0;
        }
        self.volatile_reads += 1;
        let wrong = every.is_some_and(|every| self.volatile_reads % every == 0);
        if wrong { 0x80 } else { 0 }
    }

    fn corruption(&mut self, core: &Core) -> u8 {
        self.crc_reads += 1;
        let every = core.options.faults.read_crc_corrupt_every;
        if every.is_some_and(|every| self.crc_reads % every == 0) { 0x10 } else { 0 }
    }

    fn check_ram_start(&mut self, core: &mut Core) {
        if Core::is_ram(self.first) && !self.first.is_multiple_of(4) {
            let first = self.first;
            core.complain(|| format!("RAM is accessed from {first:#05x}, which begins no word"));
        }
    }

    /// A byte was received. Returns whether it changed anything.
    pub(super) fn take(&mut self, core: &mut Core, byte: u8) -> bool {
        let place = self.bytes;
        let data = self.data_index();
        let in_crc = self.crc_index();
        self.bytes += 1;
        match place {
            0 => {
                self.code = byte >> 4;
                self.address = u16::from(byte & 0xf) << 8;
                self.begin_crc(byte);
                return false;
            }
            1 => {
                self.address |= u16::from(byte);
                self.first = self.address;
                self.begin_crc(byte);
                return self.decoded(core);
            }
            2 if self.header() == 3 => {
                let unit = if Core::is_ram(self.first) { 4 } else { 1 };
                self.length = u32::from(byte) * unit;
                self.begin_crc(byte);
                return false;
            }
            _ => {}
        }
        match (self.code, data, in_crc) {
            (WRITE, Some(index), _) => self.write(core, index, byte),
            (WRITE_CRC | WRITE_SAFE, Some(index), _) => {
                let byte = byte ^ if index == 0 { self.write_corruption(core) } else { 0 };
                self.crc.add(byte);
                if self.code == WRITE_SAFE {
                    self.word[(index % 4) as usize] = byte;
                    return false;
                }
                self.write(core, index, byte)
            }
            (WRITE_CRC | WRITE_SAFE, None, Some(index)) => {
                self.received_crc = self.received_crc << 8 | u16::from(byte);
                index == 1 && self.crc_complete(core)
            }
            (READ_CRC, None, Some(1)) => {
                self.done = true;
                false
            }
            (READ | READ_CRC | RESET, ..) => false,
            _ => {
                self.too_long(core);
                false
            }
        }
    }

    fn begin_crc(&mut self, byte: u8) {
        self.crc.add(byte);
        self.sent_crc.add(byte);
    }

    /// Code and address were received.
    fn decoded(&mut self, core: &mut Core) -> bool {
        self.count += 1;
        match self.code {
            RESET if self.address == 0 => {
                if core.opmod != Mode::Configuration {
                    core.complain(|| "RESET outside Configuration mode".into());
                }
                core.reset(core.now, false);
                self.done = true;
                return true;
            }
            READ | WRITE | READ_CRC | WRITE_CRC => {}
            WRITE_SAFE => self.length = if Core::is_ram(self.first) { 4 } else { 1 },
            code => {
                let address = self.address;
                core.complain(|| format!("no instruction has code {code:#x} (at {address:#05x})"));
                self.code = RESET;
                self.done = true;
            }
        }
        false
    }

    fn write_corruption(&mut self, core: &Core) -> u8 {
        self.crc_writes += 1;
        let every = core.options.faults.write_crc_corrupt_every;
        if every.is_some_and(|every| self.crc_writes % every == 0) { 0x10 } else { 0 }
    }

    /// A data byte is written: to registers at once, to RAM by words.
    fn write(&mut self, core: &mut Core, index: u32, byte: u8) -> bool {
        if index == 0 {
            self.check_ram_start(core);
        }
        let address = self.address;
        let lane = usize::from(address % 4);
        self.address = address.wrapping_add(1) & 0xfff;
        self.word[lane] = byte;
        if !Core::is_ram(address) {
            let (shift, now) = (8 * lane, core.now);
            core.write_sfr(address & !3, u32::from(byte) << shift, 0xff << shift, now);
            self.iocon_erratum(core, address, index);
            return true;
        }
        if lane == 3 && index >= 3 {
            core.write_ram_by_spi(address & !3, u32::from_le_bytes(self.word));
        }
        false
    }

    fn iocon_erratum(&self, core: &mut Core, address: u16, index: u32) {
        if core.options.errata.iocon_clears_latches && address & !3 == IOCON && index > 0 {
            core.iocon &= !iocon::LATS;
        }
    }

    /// The CRC was received.
    fn crc_complete(&mut self, core: &mut Core) -> bool {
        self.done = true;
        if self.received_crc != self.crc.0 {
            core.crc = core.crc & 0xffff_0000 | crc::CRCERRIF | u32::from(self.crc.0);
            core.update(core.now);
            return true;
        }
        if self.code == WRITE_SAFE {
            let word = self.word;
            for (index, &byte) in word.iter().take(self.length as usize).enumerate() {
                self.write(core, index as u32, byte);
            }
            return true;
        }
        false
    }

    fn too_long(&mut self, core: &mut Core) {
        if !std::mem::replace(&mut self.complained, true) {
            core.complain(|| "an instruction with CRC goes on after its CRC".into());
        }
    }

    /// CS rose. Returns whether that changed anything.
    pub(super) fn end(&mut self, core: &mut Core) -> bool {
        let data = self.bytes.saturating_sub(self.header());
        if !self.has_crc() {
            let moves = matches!(self.code, READ | WRITE) && Core::is_ram(self.first);
            if moves && !data.is_multiple_of(4) {
                core.complain(|| format!("{data} bytes of RAM are no words"));
            }
            if self.code == RESET && !self.done && self.bytes > 0 && !self.complained {
                core.complain(|| "CS ended an instruction before its address".into());
            }
            return false;
        }
        if self.bytes > 0 && !self.done {
            // The number of bytes differs from the one the instruction announced.
            core.crc |= crc::FERRIF;
            core.update(core.now);
            return true;
        }
        false
    }
}
