//! The message RAM: its words, its ECC, and the addresses of FIFOs.

use super::core::{Core, RAM_BYTES};
use super::fifo::Fifo;
use super::regs::{con, ecc};

impl Core {
    /// Places all FIFOs in RAM, one after the other.
    pub(super) fn lay_out(&mut self) {
        let mut offset = 0;
        if self.con & con::STEF != 0 {
            self.tef.offset = offset;
            offset += self.tef.bytes();
        }
        for (index, fifo) in self.fifos.iter_mut().enumerate() {
            if index == 0 && self.con & con::TXQEN == 0 {
                continue;
            }
            fifo.offset = offset;
            // Far beyond RAM the exact address does not matter.
            offset = offset.saturating_add(fifo.bytes()).min(0x4000);
        }
    }

    // By its own offsets.

    pub(super) fn ram_word(&mut self, offset: u16) -> u32 {
        let word = usize::from(offset) / 4;
        if self.ecccon & ecc::ECCEN != 0 && !self.ecc_good[word] {
            self.ecc_error(ecc::DEDIF, offset);
        }
        self.ram_words += 1;
        let every = self.options.faults.ram_flip_every;
        if every.is_none_or(|every| !self.ram_words.is_multiple_of(every.get().into())) {
            return self.peek_ram(offset);
        }
        if self.ecccon & ecc::ECCEN == 0 {
            return self.peek_ram(offset) ^ 1;
        }
        self.ecc_error(ecc::SECIF, offset);
        self.peek_ram(offset)
    }

    pub(super) fn peek_ram(&self, offset: u16) -> u32 {
        let place = usize::from(offset) & (RAM_BYTES - 4);
        let bytes = &self.ram[place..place + 4];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    pub(super) fn write_ram(&mut self, offset: u16, value: u32) {
        let place = usize::from(offset) & (RAM_BYTES - 4);
        self.ram[place..place + 4].copy_from_slice(&value.to_le_bytes());
        self.ecc_good[place / 4] = self.ecccon & ecc::ECCEN != 0;
    }

    pub(super) fn ecc_error(&mut self, flag: u32, offset: u16) {
        let address = u32::from(offset) + 0x400;
        self.eccstat = self.eccstat & 0xffff | flag | address << ecc::ERRADDR;
        self.update(self.now);
    }

    pub(super) fn flip_ram(&mut self, address: u16, two: bool) {
        let offset = address.saturating_sub(0x400);
        let ecc_on = self.ecccon & ecc::ECCEN != 0;
        if two || !ecc_on {
            self.ram[usize::from(offset) % RAM_BYTES] ^= if two { 3 } else { 1 };
        }
        if ecc_on {
            self.ecc_error(if two { ecc::DEDIF } else { ecc::SECIF }, offset & 0x7fc);
        }
    }

    /// Whether an object is in RAM. If not, the FIFOs were configured too large.
    pub(super) fn in_ram(&mut self, fifo: &Fifo, index: u8) -> bool {
        let end = usize::from(fifo.place(index)) + usize::from(fifo.object_bytes());
        let fits = end <= RAM_BYTES;
        if !fits {
            self.complain(|| {
                format!("a message object ends at RAM byte {end}, RAM has {RAM_BYTES}")
            });
        }
        fits
    }
}
