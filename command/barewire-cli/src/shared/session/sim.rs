//! A simulated board as a bus: built from its options, its flash kept in a file.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::time::Timer;
use barewire_sim::bring_up::{Charged, any};
use barewire_sim::model::adc::AdcFaults;
use barewire_sim::model::can::{BitTimes, CanBus};
use barewire_sim::model::jumper::Jumper;
use barewire_sim::model::mcp2518fd::Mcp2518Fd;
use barewire_sim::model::nor::Nor;
use barewire_sim::model::signal::{Signal, SignalSpec};
use barewire_sim::vcd::Capture;
use barewire_sim::{Board, IntLine, Selection, SimPlatform, Violation};

use super::flash_file::FlashFile;
use super::oled::Oled;
use super::selftest::{self, Around};
use super::{Figures, OpenBus, Simulated};
use crate::shared::bus_name::SimOptions;
use crate::shared::costs::Costs;
use crate::shared::failure::Failure;
use crate::shared::files;

const PS_PER_NS: u64 = 1_000;
/// Status register 1: an operation is in progress.
const BUSY: u8 = 1;

/// A simulated board's CAN controller and its CAN bus.
pub(crate) struct SimCan {
    /// The CAN bus. The chip is its only node until another is attached.
    pub(crate) bus: CanBus,
    /// The chip.
    pub(crate) chip: Rc<RefCell<Mcp2518Fd>>,
    /// The processor's end of its INT pin.
    pub(crate) line: IntLine,
}

/// A simulated board in use.
pub(super) struct SimBus {
    board: Board,
    bus: Box<Bus<dyn Controller>>,
    flash: Rc<RefCell<Nor>>,
    can: Option<SimCan>,
    file: Option<Rc<RefCell<FlashFile>>>,
    oled: Option<Oled>,
    costs: Costs,
}

impl SimBus {
    /// The board as asked, powered up.
    pub(super) fn open(options: &SimOptions, around: Around) -> Result<Self, Failure> {
        let board = Board::new(options.board, options.board_options());
        let (file, content) = match &options.flash {
            Some(path) => {
                let part = (options.board.flash().part)();
                let (file, content) = FlashFile::open(path, part.size, part.name)?;
                (Some(Rc::new(RefCell::new(file))), Some(content))
            }
            None => (None, None),
        };
        let flash = board.attach_flash(content).map_err(|e| Failure::Failed(e.to_string()))?;
        if let Some(file) = file.clone() {
            flash.borrow_mut().keep_with(move |at, bytes| file.borrow_mut().keep(at, bytes));
        }
        if let Some(status) = options.status {
            flash.borrow_mut().set_status(status);
        }
        let mut can = None;
        match &around.selftest {
            None => {
                attach_adc(&board, options)?;
                can = attach_can(&board, options, around.can);
            }
            Some(selftest) if selftest.wired => {
                (0..).zip(board.spec().cs).for_each(|(cs, _)| {
                    board.attach(cs, Rc::new(RefCell::new(Jumper)));
                });
            }
            Some(_) => {}
        }
        let oled = options.oled.as_ref().map(|oled| Oled::attach(&board, oled)).transpose()?;
        let mut faults = options.faults.chip.clone();
        // A self-test's bytes are commands to a chip that hears them.
        faults.absent |= around.selftest.is_some();
        flash.borrow_mut().set_faults(faults);
        let mut controller = Charged::new(any(&board), board.clone());
        if around.linux_process {
            controller = controller.for_linux_process();
        }
        let bus = selftest::bus(controller, around, Watch(board.clone()), &SimPlatform);
        Ok(Self { board, bus, flash, can, file, oled, costs: options.costs })
    }
}

/// Puts the board's converter on, with the signals asked on its inputs and a sine on each other:
/// of 100 Hz on the first, 200 Hz on the second and so on.
fn attach_adc(board: &Board, options: &SimOptions) -> Result<(), Failure> {
    let refused = |what: String| Err(Failure::Failed(format!("option input: {what}")));
    let Some(adc) = board.attach_adc() else {
        return match options.inputs.is_empty() {
            true => Ok(()),
            false => refused(format!("sim:{} has no converter", options.board.name)),
        };
    };
    let mut adc = adc.borrow_mut();
    let part = adc.part();
    let vref_uv = board.spec().adc().map_or(0, |adc| i64::from(adc.vref_mv) * 1_000);
    for channel in 0..part.channels() {
        let frequency_uhz = (u64::from(channel) + 1) * 100_000_000;
        adc.set_input(channel, Signal::sine(frequency_uhz, vref_uv * 2 / 5, vref_uv / 2));
    }
    for (channel, spec) in &options.inputs {
        if *channel >= part.channels() {
            return refused(format!("the {part} has no channel {channel}"));
        }
        let signal = match spec {
            SignalSpec::Ready(signal) => signal.clone(),
            SignalSpec::File { path, .. } => {
                let text = files::read_text(Path::new(path))?;
                let signal = spec.clone().with_file(&text);
                signal.map_err(|error| Failure::Failed(format!("{path}: {error}")))?
            }
        };
        adc.set_input(*channel, signal);
    }
    adc.set_faults(AdcFaults {
        absent: options.faults.chip.absent,
        dout_stuck_low: options.faults.chip.miso_stuck_low,
    });
    Ok(())
}

/// Puts the board's CAN controller on, if it has one, alone on a CAN bus of its own.
fn attach_can(board: &Board, options: &SimOptions, times: BitTimes) -> Option<SimCan> {
    let mut can = board.can_options()?;
    can.faults = options.can_faults();
    let bus = CanBus::new(times);
    let (chip, line) = board.attach_can(&bus, Some(can))?;
    Some(SimCan { bus, chip, line })
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
        let drawn = self.oled.as_mut().map_or(Ok(()), Oled::close);
        self.file.as_ref().map_or(Ok(()), |file| file.borrow().check()).and(drawn)?;
        match self.flash.borrow().power_loss_awaited() {
            None => Ok(()),
            Some([programs, erases]) => Err(Failure::Failed(format!(
                "the loss of power did not come: the chip programmed {programs} times and erased {erases} \
                 times (fault=, counted from 0)"
            ))),
        }
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

    fn can(&self) -> Option<&SimCan> {
        self.can.as_ref()
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
