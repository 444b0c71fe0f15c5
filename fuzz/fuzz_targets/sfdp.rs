//! SFDP of any bytes ends in a geometry that makes sense or in an error; and a driver on a chip that says so changes
//! nothing unasked, and ends.
#![no_main]

use std::convert::Infallible;

use barewire::chip::Port;
use barewire::chip::spi_nor::sfdp::{self, Ask};
use barewire::chip::spi_nor::{Assume, JedecId, SpiNor, no_observer};
use barewire::spi::{MessageError, Transfer};
use barewire::time::Timer;
use libfuzzer_sys::fuzz_target;

/// A chip with an SFDP that may say anything. Its registers answer with bytes of that SFDP too.
struct Chip<'i> {
    id: [u8; 3],
    image: &'i [u8],
    messages: u32,
    /// Whether the test asks for changes.
    asked: bool,
    enabled: bool,
}

impl Chip<'_> {
    fn answer(&mut self, sent: &[u8]) -> Vec<u8> {
        self.messages += 1;
        assert!(self.messages < 1_000_000, "endless");
        let mut answer = vec![0xff; sent.len()];
        let byte = |at: usize| self.image.get(at).copied().unwrap_or(0xff);
        match sent[0] {
            0x9f => answer[1..4].copy_from_slice(&self.id),
            0x05 => answer[1..].fill(u8::from(self.enabled) << 1),
            0x5a if sent.len() > 5 => {
                let at = sent[1..4].iter().fold(0, |at, &byte| at << 8 | usize::from(byte));
                (5..sent.len()).for_each(|n| answer[n] = byte(at + n - 5));
            }
            0x06 => self.enabled = true,
            0x04 => self.enabled = false,
            // What only reads, what selects a mode, and what it takes to leave one.
            0x03 | 0x0b | 0x13 | 0x0c | 0x07 | 0x15 | 0x16 | 0x35 | 0x65 | 0x70 | 0x72 | 0x85 | 0xb5 | 0xc8
            | 0xb7 | 0xe9 | 0xb8 | 0x17 | 0xc5 | 0x66 | 0x99 | 0xf0 | 0x30 | 0x82 | 0x50 => {
                (1..sent.len()).for_each(|n| answer[n] = byte(n));
            }
            opcode => assert!(self.asked, "{opcode:02x} was sent, and no change was asked for"),
        }
        answer
    }
}

impl Port for Chip<'_> {
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        let mut sent = Vec::new();
        for transfer in &*message {
            match transfer.data().tx() {
                Some(tx) => sent.extend_from_slice(tx),
                None => sent.resize(sent.len() + transfer.data().len(), 0),
            }
        }
        let answer = self.answer(&sent);
        let mut at = 0;
        for transfer in message {
            let len = transfer.data().len();
            if let Some(rx) = transfer.rx_mut() {
                rx.copy_from_slice(&answer[at..at + len]);
            }
            at += len;
        }
        Ok(())
    }

    fn speed_hz(&self) -> u32 {
        10_000_000
    }
}

#[derive(Debug)]
struct Clock(u64);

impl Timer for Clock {
    fn frequency_hz(&self) -> u32 {
        1_000_000_000
    }
    fn now_ticks(&mut self) -> u64 {
        self.0
    }
    fn sleep_ns(&mut self, ns: u64) {
        self.0 += ns;
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((id, image)) = input.split_first_chunk() else { return };
    let Ok(parsed) = sfdp::parse(JedecId(*id), &Assume::default(), |ask, into: &mut [u8]| {
        let from = match ask {
            Ask::Sfdp { address } => address as usize,
            Ask::Register { address, .. } => address as usize % 256,
        };
        for (offset, byte) in into.iter_mut().enumerate() {
            *byte = image.get(from + offset).copied().unwrap_or(0xff);
        }
        Ok::<(), Infallible>(())
    });
    if let Ok(chip) = parsed {
        assert!(chip.size > 0 && chip.page_size().is_power_of_two() && chip.reach <= chip.size);
        let ends: Vec<_> = chip.regions().map(|region| region.end).collect();
        assert!(ends.is_sorted() && ends.last() == Some(&chip.size));
        for region in chip.regions() {
            let blocks = chip.blocks_at(region.start).chain(chip.blocks_at(region.end - 1));
            assert!(blocks.into_iter().all(|block| block.start >= region.start && block.end() <= region.end));
        }
    }
    let mut chip = Chip { id: *id, image, messages: 0, asked: false, enabled: false };
    let Ok(mut nor) = SpiNor::new(&mut chip, Clock(0)) else { return };
    let middle = nor.size() / 2;
    let _ = (nor.read(0, &mut [0; 8]), nor.read(middle, &mut [0; 8]), nor.protection());
    drop(nor);
    chip.asked = true;
    let Ok(mut nor) = SpiNor::new(&mut chip, Clock(0)) else { return };
    let scratch = nor.geometry().scratch_size() as usize;
    if scratch <= 1 << 16 {
        let _ = nor.write(middle, &[0x55; 3], &mut vec![0; scratch], &mut no_observer);
        let _ = nor.program_only(0, &[0]);
    }
    let block = nor.geometry().blocks_at(middle).next();
    if let Some(block) = block.filter(|block| block.len <= 1 << 16) {
        let _ = nor.erase(block.start..block.end(), &mut no_observer);
    }
    let _ = nor.unprotect();
    drop(nor);
    assert!(!chip.enabled, "the latch stays set");
});
