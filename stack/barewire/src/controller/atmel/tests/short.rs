//! The shorter path beside the loop for any message.

use super::piped::Piped;
use super::*;
use crate::controller::testing::short::{Bank, Case, LINES, Regs, shorter_path};

struct Short;

/// How many words are in flight, and the reads of SR that a word takes. With `TwoWords`, one as short as a read is lost.
const PIPES: [(Pipe, u32); 5] = [
    (Pipe::WaitDataRead, 0),
    (Pipe::WaitDataRead, 2),
    (Pipe::OneWord, 0),
    (Pipe::TwoWords, 1),
    (Pipe::TwoWords, 3),
];

impl Case for Short {
    type Block = Piped;
    const KINDS: usize = PIPES.len();
    const DATA: u32 = 0x0c;

    fn block(kind: usize) -> Piped {
        Piped::new(PIPES[kind].1)
    }

    fn start<'r>(
        kind: usize,
        regs: Regs<'r, Piped>,
        bank: Bank<'r, Piped>,
    ) -> impl Controller + 'r {
        let (pipe, chip_selects) = (PIPES[kind].0, LINES);
        Atmel::new(
            regs,
            bank,
            Ticker::default(),
            AtmelConfig { pipe, chip_selects, ..config(PIN_13) },
        )
    }

    fn early(offset: u32) -> Option<u32> {
        (offset == 0x10).then_some(1 << 16)
    }

    fn offences(block: &Piped) -> u32 {
        block.overwritten
    }
}

shorter_path!(Short);
