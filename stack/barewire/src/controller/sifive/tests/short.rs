//! The shorter path beside the loop for any message.

use std::collections::VecDeque;

use super::*;
use crate::controller::testing::short::{Bank, Case, LINES, Regs, shorter_path};

/// Loops back: a byte is there at the first look. Under CSMODE's AUTO and OFF alike.
#[derive(Default)]
struct Looped {
    rx: VecDeque<u32>,
    /// Bytes for which the receive FIFO had no room.
    lost: u32,
}

impl Registers for Looped {
    fn read(&mut self, offset: u32) -> u32 {
        match offset {
            0x4c => self.rx.pop_front().unwrap_or(NONE),
            _ => 0,
        }
    }

    fn write(&mut self, offset: u32, value: u32) {
        if offset == 0x48 {
            self.lost += u32::from(self.rx.len() >= 8);
            self.rx.push_back(value);
        }
    }
}

struct Short;

impl Case for Short {
    type Block = Looped;
    const DATA: u32 = 0x48;

    fn block(_kind: usize) -> Looped {
        Looped::default()
    }

    fn start<'r>(
        _kind: usize,
        regs: Regs<'r, Looped>,
        bank: Bank<'r, Looped>,
    ) -> impl Controller + 'r {
        let config = SiFiveConfig { chip_selects: LINES, ..config(ALWAYS_POLL) };
        SiFive::new(regs, bank, Ticker::default(), config)
    }

    fn early(offset: u32) -> Option<u32> {
        (offset == 0x4c).then_some(NONE)
    }

    // What is there is not a look alone: it takes the byte.
    fn is_look(access: Access) -> bool {
        access == Read(0x4c, NONE)
    }

    fn offences(block: &Looped) -> u32 {
        block.lost
    }
}

shorter_path!(Short);
