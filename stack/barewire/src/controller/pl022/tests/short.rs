//! The shorter path beside the loop for any message.

use super::block::Looped;
use super::*;
use crate::controller::testing::short::{Bank, Case, LINES, Regs, shorter_path};

struct Short;

impl Case for Short {
    type Block = Looped;
    const DATA: u32 = 0x08;

    fn block(_kind: usize) -> Looped {
        Looped::default()
    }

    fn start<'r>(
        _kind: usize,
        regs: Regs<'r, Looped>,
        bank: Bank<'r, Looped>,
    ) -> impl Controller + 'r {
        let config = Pl022Config { chip_selects: LINES, ..config(PIN_3) };
        Pl022::new(regs, bank, Ticker::default(), config)
    }

    fn early(offset: u32) -> Option<u32> {
        match offset {
            0x0c => Some(0x13),
            0x18 => Some(0x8),
            _ => None,
        }
    }

    fn offences(block: &Looped) -> u32 {
        block.offences
    }
}

shorter_path!(Short);
