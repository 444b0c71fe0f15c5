//! A simulated board from its name's options, its chips on it and its flash kept in a file.

use std::cell::RefCell;
use std::fmt;
use std::path::Path;
use std::rc::Rc;

use barewire_sim::model::adc::AdcFaults;
use barewire_sim::model::can::{BitTimes, CanBus};
use barewire_sim::model::jumper::Jumper;
use barewire_sim::model::mcp2518fd::Mcp2518Fd;
use barewire_sim::model::nor::Nor;
use barewire_sim::model::signal::{Signal, SignalSpec};
use barewire_sim::profile::CostLevel;
use barewire_sim::{Board, BrokenRule, IntLine, Violation};

use crate::name::SimOptions;
use crate::oled::Oled;
use crate::{FlashFile, OpenError, files, wiring};

const PS_PER_NS: u64 = 1_000;

/// The chips on a simulated board's chip selects.
#[derive(Clone, Copy, Debug)]
pub enum Fitting {
    /// The board's chips. Its CAN bus has these bit times.
    Chips(BitTimes),
    /// MISO connected to MOSI on each, for a self-test.
    Jumpers,
    /// No chip that answers: a controller's own loopback is tested.
    Nothing,
}

impl Default for Fitting {
    /// The board's chips, on a CAN bus of 500 kbit/s and 2 Mbit/s.
    fn default() -> Self {
        Fitting::Chips(BitTimes::from_rates(500_000, 2_000_000))
    }
}

/// A simulated board's CAN controller and its CAN bus.
pub struct SimCan {
    /// The CAN bus. The chip is its only node until another is attached.
    pub bus: CanBus,
    /// The chip.
    pub chip: Rc<RefCell<Mcp2518Fd>>,
    /// The processor's end of its INT pin.
    pub line: IntLine,
}

impl fmt::Debug for SimCan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimCan").finish_non_exhaustive()
    }
}

/// A simulated board's counts since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimFigures {
    /// The time since power-up, in nanoseconds.
    pub virtual_ns: u64,
    /// Bits clocked.
    pub bits: u64,
    /// Register reads, controller and GPIO.
    pub register_reads: u64,
    /// Register writes, controller and GPIO.
    pub register_writes: u64,
    /// How many rules were broken on the wire that harm data or chips.
    pub violations: u64,
    /// The first of them, in words.
    pub violation_texts: Vec<String>,
}

/// A simulated board, powered up.
pub struct SimBoard {
    /// The board.
    pub board: Board,
    /// Its flash chip.
    pub flash: Rc<RefCell<Nor>>,
    /// Which costs it charges.
    pub costs: CostLevel,
    /// Its CAN controller, if it has one and its chips are on it.
    pub can: Option<SimCan>,
    file: Option<Rc<RefCell<FlashFile>>>,
    oled: Option<Oled>,
}

impl fmt::Debug for SimBoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimBoard").field("board", &self.board).finish_non_exhaustive()
    }
}

impl SimBoard {
    /// Builds the board with its options, and attaches the `fitted` chips. `tell` gets a note for people
    /// if a flash file was made.
    ///
    /// # Errors
    /// A flash file that cannot be used, or an input signal that the board's converter cannot have.
    pub fn new(
        options: &SimOptions,
        fitted: Fitting,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Self, OpenError> {
        let board = Board::new(options.board, options.board_options());
        let part = options.part();
        let (file, content) = match &options.flash {
            Some(path) => {
                let (file, content) =
                    FlashFile::open(path, part.size, part.name, options.makes_files, tell)?;
                (Some(Rc::new(RefCell::new(file))), Some(content))
            }
            None => (None, None),
        };
        let flash = board.attach_flash_part(part, content).map_err(OpenError::failed)?;
        if let Some(file) = file.clone() {
            flash.borrow_mut().keep_with(move |at, bytes| file.borrow_mut().keep(at, bytes));
        }
        if let Some(status) = options.status {
            flash.borrow_mut().set_status(status);
        }
        let mut can = None;
        let mut faults = options.faults.chip.clone();
        match fitted {
            Fitting::Chips(times) => {
                attach_adc(&board, options)?;
                can = attach_can(&board, options, times);
            }
            Fitting::Jumpers => {
                (0..).zip(board.spec().cs).for_each(|(cs, _)| {
                    board.attach(cs, Rc::new(RefCell::new(Jumper)));
                });
            }
            Fitting::Nothing => {}
        }
        let oled = options.oled.as_ref().map(|oled| Oled::attach(&board, oled)).transpose()?;
        wiring::wire(&board, &options.wiring)?;
        // A self-test's bytes are commands to a chip that hears them.
        faults.absent |= !matches!(fitted, Fitting::Chips(_));
        flash.borrow_mut().set_faults(faults);
        Ok(Self { board, flash, costs: options.costs, can, file, oled })
    }

    /// The broken rules that harm data or chips: those that were kept, and the number of all.
    #[must_use]
    pub fn harms(&self) -> (Vec<Violation>, u64) {
        let mut violations = self.board.violations();
        violations.retain(|violation| violation.rule.harms());
        (violations, self.board.harms_total())
    }

    /// The broken rules that harm data or chips, each once for a chip select, with their numbers.
    #[must_use]
    pub fn harmful_rules(&self) -> Vec<BrokenRule> {
        let mut broken = self.board.broken_rules();
        broken.retain(|one| one.first.rule.harms());
        broken
    }

    /// The counts so far.
    #[must_use]
    pub fn counted(&self) -> SimFigures {
        let (harms, violations) = self.harms();
        let counts = self.board.access_counts();
        SimFigures {
            virtual_ns: self.board.engine().now_ps() / PS_PER_NS,
            bits: self.board.wire_use().bits,
            register_reads: counts.iter().map(|count| count.reads).sum(),
            register_writes: counts.iter().map(|count| count.writes).sum(),
            violations,
            violation_texts: harms.iter().map(ToString::to_string).collect(),
        }
    }

    /// Lets that much virtual time pass without any use of the board.
    pub fn idle_ns(&self, ns: u64) {
        self.board.engine().spend_ps(ns.saturating_mul(PS_PER_NS));
    }

    /// Writes the files that outlive the bus, and checks that all were written. Called once, at the end.
    ///
    /// # Errors
    /// The flash file or the display's picture could not be written, or the loss of power that the options ask
    /// for did not come.
    pub fn close(&mut self) -> Result<(), OpenError> {
        let drawn = self.oled.as_mut().map_or(Ok(()), Oled::close);
        self.file.as_ref().map_or(Ok(()), |file| file.borrow().check()).and(drawn)?;
        match self.flash.borrow().power_loss_awaited() {
            None => Ok(()),
            Some([programs, erases]) => Err(OpenError::Failed(format!(
                "the loss of power did not come: the chip programmed {programs} times and erased {erases} \
                 times (fault=, counted from 0)"
            ))),
        }
    }
}

/// Puts the board's converter on, with the signals asked on its inputs and a sine on each other:
/// of 100 Hz on the first, 200 Hz on the second and so on.
fn attach_adc(board: &Board, options: &SimOptions) -> Result<(), OpenError> {
    let refused = |what: String| Err(OpenError::Failed(format!("option input: {what}")));
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
                signal.map_err(|error| OpenError::Failed(format!("{path}: {error}")))?
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
    // A board may be open for days, and no caller reads its bus's records.
    bus.set_recording(false);
    let (chip, line) = board.attach_can(&bus, Some(can))?;
    Some(SimCan { bus, chip, line })
}
