//! A simulated board as a bus: built from its options, its flash kept in a file.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::time::Timer;
use barewire_sim::bring_up::{Charged, any};
use barewire_sim::check::Faults;
use barewire_sim::model::nor::Nor;
use barewire_sim::vcd::Capture;
use barewire_sim::{Board, BoardOptions, SimPlatform, Violation};

use super::flash_file::FlashFile;
use super::selftest::{self, Around};
use super::{Figures, OpenBus, Simulated};
use crate::bus_name::SimOptions;
use crate::failure::Failure;
use crate::output::note;

const PS_PER_NS: u64 = 1_000;
/// Status register 1: an operation is in progress.
const BUSY: u8 = 1;

/// A simulated board in use.
pub(super) struct SimBus {
    board: Board,
    bus: Box<Bus<dyn Controller>>,
    flash: Rc<RefCell<Nor>>,
    file: Option<FlashFile>,
}

impl SimBus {
    /// The board as asked, powered up.
    pub(super) fn open(options: &SimOptions, around: Around) -> Result<Self, Failure> {
        let board_options = BoardOptions {
            faults: Faults { timing_corrupts: options.faults.timing_corrupts },
            jitter_ps: options.jitter_ns.saturating_mul(PS_PER_NS),
            seed: options.seed,
            ..BoardOptions::default()
        };
        let board = Board::new(options.board, board_options);
        let (file, content) = match &options.flash {
            Some(path) => {
                let part = (options.board.flash_part)();
                let (file, content) = FlashFile::open(path, part.size, part.name)?;
                (Some(file), Some(content))
            }
            None => (None, None),
        };
        let flash = board.attach_flash(content).map_err(|e| Failure::Failed(e.to_string()))?;
        if let Some(status) = options.status {
            flash.borrow_mut().set_status(status);
        }
        let mut faults = options.faults.chip.clone();
        // A self-test's bytes are commands to a chip that hears them.
        faults.absent |= around.selftest.is_some();
        flash.borrow_mut().set_faults(faults);
        let controller = Charged::new(any(&board), board.clone());
        let bus = selftest::bus(controller, around, Watch(board.clone()), &SimPlatform);
        Ok(Self { board, bus, flash, file })
    }

    fn write_back(&mut self) -> Result<(), Failure> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut flash = self.flash.borrow_mut();
        let ranges = flash.take_dirty();
        file.write_back(flash.content(), &ranges)
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
        self.write_back()
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
            virtual_ns: elapsed_ps / PS_PER_NS,
            seconds_virtual: (elapsed_ps / PS_PER_NS) as f64 / 1e9,
            bus_use: wire_use.bus_use(elapsed_ps),
            bus_use_in_transfers: wire_use.bus_use_in_transfers(),
            bits: wire_use.bits,
            register_reads: counts.iter().map(|count| count.reads).sum(),
            register_writes: counts.iter().map(|count| count.writes).sum(),
            violations: self.board.violations_total(),
        }
    }

    fn violations(&self) -> (Vec<Violation>, u64) {
        (self.board.violations(), self.board.violations_total())
    }

    fn left_open(&self) -> Option<&'static str> {
        let flash = self.flash.borrow();
        // A busy chip keeps its latch until it is done, and hears no command until then.
        if flash.selected() {
            Some("SELECTED")
        } else if flash.write_enabled() && flash.status() & BUSY == 0 {
            Some("WRITE-ENABLED")
        } else {
            None
        }
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

impl Drop for SimBus {
    fn drop(&mut self) {
        // Only where a panic or an early return came before `close`: else nothing is left to write.
        if let Err(error) = self.write_back() {
            note!("barewire: {error}");
        }
    }
}
