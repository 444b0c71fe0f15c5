//! The shorter path beside the loop for any message: what it writes, reads and reports is the same.

use std::collections::BTreeSet;

use super::*;
use crate::controller::testing::short::{
    self, Bank, Case, Given, How, LINES, Part, Regs, shorter_path,
};
use Part::{Exchange, Slower};

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
        let config = EcspiConfig { chip_selects: LINES, ..config(PIN_9) };
        Ecspi::new(regs, bank, Ticker::default(), config)
    }

    fn early(offset: u32) -> Option<u32> {
        match offset {
            // XCH is set.
            0x08 => Some(4),
            // TE.
            0x18 => Some(1),
            _ => None,
        }
    }

    fn offences(block: &Looped) -> u32 {
        block.overruns
    }
}

shorter_path!(Short);

#[test]
fn each_transfer_has_the_divider_of_its_clock() {
    for len in [4, 6, 16] {
        for parts in [
            &[Slower(len)][..],
            &[Slower(len), Slower(4)],
            &[Exchange(4), Slower(len)],
            &[Slower(len), Exchange(4)],
        ] {
            let ran = short::run::<Short>(parts, How::Prepared, true, &Given::default());
            assert!(ran.result.is_ok(), "{:?}", ran.result);
            let dividers: BTreeSet<u32> = ran
                .accesses
                .iter()
                .filter_map(|access| match access {
                    Write(0x08, control) => Some(control & 0xff00),
                    _ => None,
                })
                .collect();
            let clocks = if parts.iter().all(|part| matches!(part, Slower(_))) { 1 } else { 2 };
            assert_eq!(dividers.len(), clocks, "{parts:?}");
        }
    }
}
