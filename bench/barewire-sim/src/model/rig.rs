//! A block on a wire, for the tests of its model: an echo behind each line, and a time that only the test
//! advances.

use std::cell::RefCell;
use std::rc::Rc;

use super::ControllerBlock;
use super::echo::Echo;
use crate::check::{Faults, Rule};
use crate::chip::Ps;
use crate::wire::{Driver, Wire};

/// The rig of a block. Its tests add what only they need.
pub(super) struct Rig<B> {
    pub block: B,
    pub wire: Wire,
    /// In the order of the lines.
    pub echoes: Vec<Rc<RefCell<Echo>>>,
    pub now: Ps,
}

impl<B: ControllerBlock> Rig<B> {
    pub(super) fn with(block: B, lines: &[Driver]) -> Self {
        let mut wire = Wire::new(Faults::default());
        let mut attach = |&driver: &Driver| {
            let cs = wire.add_line(driver, false);
            let echo = Rc::new(RefCell::new(Echo::default()));
            assert!(wire.attach(cs, echo.clone()));
            echo
        };
        let echoes = lines.iter().map(&mut attach).collect();
        Self { block, wire, echoes, now: 0 }
    }

    pub(super) fn read(&mut self, offset: u32) -> u32 {
        self.block.read(offset, self.now, &mut self.wire)
    }

    pub(super) fn write(&mut self, offset: u32, value: u32) {
        self.block.write(offset, value, self.now, &mut self.wire);
    }

    /// Writes `values` in turn, as into a FIFO.
    pub(super) fn write_each(&mut self, offset: u32, values: impl IntoIterator<Item = u32>) {
        for value in values {
            self.write(offset, value);
        }
    }

    /// Writes registers in turn: offsets and values.
    pub(super) fn write_pairs(&mut self, pairs: &[(u32, u32)]) {
        for &(offset, value) in pairs {
            self.write(offset, value);
        }
    }

    pub(super) fn catch_up(&mut self) {
        self.block.catch_up(self.now, &mut self.wire);
    }

    pub(super) fn at(&mut self, now: Ps) -> &mut Self {
        self.now = now;
        self
    }

    /// Moves to `now` and processes all events due by then.
    pub(super) fn by(&mut self, now: Ps) -> &mut Self {
        self.at(now).catch_up();
        self
    }

    /// Drives the line of a pin.
    pub(super) fn drive(&mut self, pin: Driver, level: bool) {
        self.catch_up();
        self.wire.drive(pin, level, self.now);
    }

    /// Advances time in steps of 1 ns to the first instant at which `what` holds.
    pub(super) fn until(&mut self, what: impl Fn(&mut Self) -> bool) -> Ps {
        let limit = self.now + 1_000_000_000;
        while !what(self) {
            self.now += 1_000;
            assert!(self.now < limit, "nothing happened");
        }
        self.now
    }

    pub(super) fn received(&self, line: usize) -> Vec<u8> {
        self.echoes[line].borrow().received().to_vec()
    }

    pub(super) fn selections(&self, line: usize) -> u64 {
        self.echoes[line].borrow().selections()
    }

    /// The rules broken so far.
    pub(super) fn rules(&mut self) -> Vec<Rule> {
        self.wire.violations(self.now).kept().iter().map(|violation| violation.rule).collect()
    }

    /// Asserts what registers read.
    #[track_caller]
    pub(super) fn reads(&mut self, values: &[(u32, u32)]) {
        for &(offset, value) in values {
            assert_eq!(self.read(offset), value, "{offset:#x}");
        }
    }

    /// Asserts which bits the registers store. Afterwards they hold 0 or their previous values.
    #[track_caller]
    pub(super) fn keeps(&mut self, bits: &[(u32, u32)]) {
        for &(offset, kept) in bits {
            self.write(offset, u32::MAX);
            assert_eq!(self.read(offset), kept, "{offset:#x}");
            self.write(offset, 0);
        }
    }
}
