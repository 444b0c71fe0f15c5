//! A simulated board as a bus, with what the command tells of it.

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::time::Timer;
use barewire_open::{Fitted, SimBoard, SimCan};
use barewire_sim::bring_up::{Charged, any};
use barewire_sim::vcd::Capture;
use barewire_sim::{Board, Selection, SimPlatform, Violation};

use super::selftest::{self, Around};
use super::{Figures, OpenBus, Simulated};
use crate::shared::bus_name::SimOptions;
use crate::shared::costs::Costs;
use crate::shared::failure::Failure;
use crate::shared::output::note;

const PS_PER_NS: u64 = 1_000;
/// Status register 1: an operation is in progress.
const BUSY: u8 = 1;

/// A simulated board in use.
pub(super) struct SimBus {
    board: Board,
    bus: Box<Bus<dyn Controller>>,
    parts: SimBoard,
    costs: Costs,
}

impl SimBus {
    /// The board as asked, powered up.
    pub(super) fn open(options: &SimOptions, around: Around) -> Result<Self, Failure> {
        let fitted = match &around.selftest {
            None => Fitted::Chips(around.can),
            Some(selftest) if selftest.wired => Fitted::Jumpers,
            Some(_) => Fitted::Nothing,
        };
        // Notes even where notes are not wanted: a file's name may be a slip.
        let parts = SimBoard::new(options, fitted, &mut |text| note!("{text}"))?;
        let board = parts.board.clone();
        let mut controller = Charged::new(any(&board), board.clone());
        if around.linux_process {
            controller = controller.for_linux_process();
        }
        let bus = selftest::bus(controller, around, Watch(board.clone()), &SimPlatform);
        Ok(Self { board, bus, parts, costs: Costs::of(options.costs) })
    }
}

impl OpenBus for SimBus {
    fn bus(&self) -> &Bus<dyn Controller + '_> {
        &*self.bus
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(self.board.timer())
    }

    fn simulated(&self) -> Option<&dyn Simulated> {
        Some(self)
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(self.parts.close()?)
    }
}

impl Simulated for SimBus {
    fn reset_figures(&self) {
        self.board.reset_marks();
    }

    fn figures(&self) -> Figures {
        let elapsed_ps = self.board.elapsed_ps();
        let wire_use = self.board.wire_use();
        let counts = self.board.access_counts();
        Figures {
            profile: self.board.profile().name,
            costs: self.costs,
            virtual_ns: elapsed_ps / PS_PER_NS,
            seconds_virtual: (elapsed_ps / PS_PER_NS) as f64 / 1e9,
            bus_use: wire_use.bus_use(elapsed_ps),
            bus_use_in_transfers: wire_use.bus_use_in_transfers(),
            bits: wire_use.bits,
            register_reads: counts.iter().map(|count| count.reads).sum(),
            register_writes: counts.iter().map(|count| count.writes).sum(),
            violations: self.board.harms_total(),
        }
    }

    fn violations(&self) -> (Vec<Violation>, u64) {
        let mut violations = self.board.violations();
        violations.retain(|violation| violation.rule.harms());
        (violations, self.board.harms_total())
    }

    fn left_open(&self) -> Option<&'static str> {
        let flash = self.parts.flash.borrow();
        // A busy chip keeps its latch until it is done, and hears no command until then.
        if flash.selected() {
            Some("SELECTED")
        } else if flash.write_enabled() && flash.status() & BUSY == 0 {
            Some("WRITE-ENABLED")
        } else {
            None
        }
    }

    fn can(&self) -> Option<&SimCan> {
        self.parts.can.as_ref()
    }

    fn board(&self) -> &Board {
        &self.board
    }

    fn now_ps(&self) -> u64 {
        self.board.engine().now_ps()
    }

    fn idle_ns(&self, ns: u64) {
        self.board.engine().spend_ps(ns.saturating_mul(PS_PER_NS));
    }

    fn work(&self, instructions: u64) {
        self.board.cpu_work(instructions);
    }

    fn start_selections(&self) {
        self.board.start_selections();
    }

    fn take_selections(&self) -> Vec<Selection> {
        self.board.take_selections()
    }

    fn start_vcd(&self) {
        self.board.start_vcd();
    }

    fn take_vcd(&self) -> Option<Capture> {
        self.board.take_vcd()
    }
}

/// Virtual time, read in no time: the watched message is as it would be unwatched.
struct Watch(Board);

impl Timer for Watch {
    fn frequency_hz(&self) -> u32 {
        1_000_000_000
    }

    fn now_ticks(&mut self) -> u64 {
        self.0.engine().now_ps() / PS_PER_NS
    }
}
