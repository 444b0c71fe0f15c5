//! The shorter path beside the loop for any message.

use super::*;
use crate::controller::testing::short::{Bank, Case, LINES, Regs, shorter_path};

struct Short;

impl Case for Short {
    type Block = Looped;
    const DATA: u32 = 0x04;

    fn block(_kind: usize) -> Looped {
        Looped::default()
    }

    fn start<'r>(
        _kind: usize,
        regs: Regs<'r, Looped>,
        bank: Bank<'r, Looped>,
    ) -> impl Controller + 'r {
        let config = Bcm2835Config { chip_selects: LINES, ..config(PIN_8) };
        Bcm2835::new(regs, bank, Ticker::default(), config)
    }

    fn early(offset: u32) -> Option<u32> {
        (offset == 0x00).then_some(0x80)
    }

    fn offences(block: &Looped) -> u32 {
        block.overruns + block.astray
    }
}

shorter_path!(Short);
