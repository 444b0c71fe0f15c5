//! The judge of bring-up: the state that a previous owner left in a block reaches no chip, and the first
//! message is complete.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::middleware::Pointer;
use barewire::reg::Registers;
use barewire::spi::{Settings, Transfer};
use barewire_sim::Rule;
use barewire_sim::model::echo::Echo;

use crate::blocks::{Block, on_every_block};

fn what_was_left_in_the_block_no_chip_hears(block: &'static Block) {
    for (number, left) in block.left.iter().enumerate() {
        let what = format!("{}, {number}", block.name);
        let board = block.board(block.usual(), 0);
        // PL022's own line is used only where no other line is.
        let lines = if block.has_both_lines() { 2 } else { 1 };
        let chips: Vec<_> = (0..lines)
            .map(|cs| {
                let chip = Rc::new(RefCell::new(Echo::default()));
                assert!(board.attach(cs, chip.clone()));
                chip
            })
            .collect();
        let mut pins = board.gpio(0).expect("a bank");
        block.pins_left.iter().for_each(|&(offset, value)| pins.write(offset, value));
        let mut regs = board.controller();
        left.iter().for_each(|&(offset, value)| regs.write(offset, value));
        let bus = Bus::new(Pointer((block.usual().start)(&board, None)));
        assert!(!board.wait_interrupt(Some(1)), "{what}: it interrupts nobody");
        let stray: Vec<usize> = chips.iter().map(|chip| chip.borrow().received().len()).collect();
        assert!(stray.iter().all(|&bytes| bytes <= block.stray_max), "{what}: {stray:?}");
        for (cs, chip) in (0..).zip(&chips) {
            let device = bus.device(&Settings::new(cs, 20_000_000)).expect("opens");
            let before = chip.borrow().received().len();
            let mut bytes = [1, 2, 3, 4, 5];
            device.sync(&mut [Transfer::in_place(&mut bytes)]).expect("runs");
            assert_eq!(bytes[1..], [1, 2, 3, 4], "{what}: no byte was left over");
            assert_eq!(chip.borrow().received()[before..], [1, 2, 3, 4, 5], "{what}");
        }
        let rules: Vec<Rule> = board.violations().iter().map(|found| found.rule).collect();
        assert!(rules.iter().all(|&rule| rule == Rule::ClockWithoutCs), "{what}: {rules:?}");
    }
}
on_every_block! { what_was_left_in_the_block_no_chip_hears }
