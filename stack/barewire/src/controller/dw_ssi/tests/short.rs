//! The shorter path beside the loop for any message.

use super::*;
use crate::controller::testing::short::{Bank, Case, LINES, Regs, shorter_path};

struct Short;

/// Frames of up to 32 bits, of up to 16, and FIFOs that hold little.
const SIZES: [(u32, bool); 3] = [(64, true), (16, false), (4, true)];

impl Case for Short {
    type Block = Looped;
    const KINDS: usize = SIZES.len();
    const DATA: u32 = DR;

    fn block(kind: usize) -> Looped {
        let (depth, wide) = SIZES[kind];
        Looped { depth, wide, drops: true, ..Looped::default() }
    }

    fn start<'r>(
        _kind: usize,
        regs: Regs<'r, Looped>,
        bank: Bank<'r, Looped>,
    ) -> impl Controller + 'r {
        let config = DwSsiConfig { chip_selects: LINES, ..config(PIN_8) };
        DwSsi::new(regs, bank, Ticker::default(), config)
    }

    fn early(offset: u32) -> Option<u32> {
        match offset {
            RXFLR => Some(0),
            SR => Some(BUSY),
            _ => None,
        }
    }

    /// The model asserts that none is sent beyond the depth, nor read that is not there.
    fn offences(_block: &Looped) -> u32 {
        0
    }
}

shorter_path!(Short);
