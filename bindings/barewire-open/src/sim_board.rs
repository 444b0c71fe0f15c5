//! A simulated board from its name's options, its chips on it and its flash kept in a file.

use std::cell::RefCell;
use std::fmt;
use std::path::Path;
use std::rc::Rc;

use barewire_sim::board::LineError;
use barewire_sim::board::spec::{AdcSpec, ChipSpec};
use barewire_sim::model::adc::AdcFaults;
use barewire_sim::model::can::{BitTimes, CanBus};
use barewire_sim::model::jumper::Jumper;
use barewire_sim::model::mcp2518fd::{Mcp2518Fd, Options as CanOptions};
use barewire_sim::model::nor::{Nor, NorFaults};
use barewire_sim::model::signal::{Signal, SignalSpec};
use barewire_sim::model::tsc2046::TouchOptions;
use barewire_sim::profile::CostLevel;
use barewire_sim::{Board, BrokenRule, IntLine, Violation};

use crate::display::Display;
use crate::name::{FileUse, SimOptions};
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
    /// Its flash chips.
    pub flashes: Vec<SimFlash>,
    /// Which costs it charges.
    pub costs: CostLevel,
    /// Its CAN controller, if it has one and its chips are on it.
    pub can: Option<SimCan>,
    displays: Vec<Display>,
}

/// A simulated board's flash chip.
#[derive(Debug)]
pub struct SimFlash {
    /// Its chip select.
    pub cs: u8,
    /// The chip.
    pub chip: Rc<RefCell<Nor>>,
    file: Option<Rc<RefCell<FlashFile>>>,
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
    /// A file that cannot be used, or an input signal that the board's converter cannot have.
    pub fn new(
        options: &SimOptions,
        fitted: Fitting,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Self, OpenError> {
        let board = Board::new(options.board, options.board_options());
        let mut built = Self {
            flashes: attach_flashes(&board, options, fitted, tell)?,
            board,
            costs: options.costs,
            can: None,
            displays: Vec::new(),
        };
        match fitted {
            Fitting::Chips(times) => built.attach_chips(options, times)?,
            Fitting::Jumpers => (0..).zip(options.board.cs).for_each(|(cs, _)| {
                built.board.attach(cs, Rc::new(RefCell::new(Jumper)));
            }),
            Fitting::Nothing => {}
        }
        if let Some(oled) = &options.oled {
            built.displays.push(Display::in_the_place_of(
                &built.board,
                oled,
                options.picture(oled.picture.as_deref()),
            )?);
        }
        wiring::wire(&built.board, &options.wiring)?;
        Ok(built)
    }

    /// Puts the board's chips on that are no flash.
    fn attach_chips(&mut self, options: &SimOptions, times: BitTimes) -> Result<(), OpenError> {
        let board = &self.board;
        let failed = |cs: u8, error: LineError| {
            OpenError::Failed(format!("chip select {cs} of sim:{}: {error}", options.board.name))
        };
        let [first_adc, first_can] =
            [options.board.adc().map(|row| row.cs), options.board.can().map(|row| row.cs)];
        if first_adc.is_none() && !options.inputs.is_empty() {
            let what = format!("option input: sim:{} has no converter", options.board.name);
            return Err(OpenError::Failed(what));
        }
        let mut can_bus = None;
        for chip in options.board.chips {
            match chip {
                ChipSpec::Flash(_) => {}
                ChipSpec::Adc(row) => {
                    let asked = if first_adc == Some(row.cs) { &options.inputs[..] } else { &[] };
                    attach_adc(board, row, asked, &options.faults.chip)?;
                }
                ChipSpec::Can(row) => {
                    let bus = can_bus.get_or_insert_with(|| quiet_bus(times)).clone();
                    let built = CanOptions { faults: options.can_faults(), ..row.options() };
                    let (chip, line) = board.attach_can_of(row, &bus, built);
                    match row.int {
                        _ if first_can == Some(row.cs) => {
                            self.can = Some(SimCan { bus, chip, line });
                        }
                        Some(pad) => {
                            let int = chip.borrow().int();
                            let connected = board.connect_output(pad, int, false);
                            connected.map_err(|error| failed(row.cs, error))?;
                        }
                        None => {}
                    }
                }
                ChipSpec::Touch(row) => {
                    let (chip, _) = board.attach_touch_of(row, TouchOptions::default());
                    if let Some(pad) = row.int {
                        let int = chip.borrow().pen_irq();
                        let connected = board.connect_output(pad, int, false);
                        connected.map_err(|error| failed(row.cs, error))?;
                    }
                }
                ChipSpec::Display(row) => {
                    let picture = options.picture(row.picture);
                    let display =
                        Display::attach(board, row, picture, |error| failed(row.cs, error))?;
                    self.displays.push(display);
                }
                ChipSpec::Leds(row) => {
                    board.attach_leds_of(row);
                }
                ChipSpec::Jumper(cs) => {
                    board.attach(*cs, Rc::new(RefCell::new(Jumper)));
                    board.connect_jumper();
                }
            }
        }
        Ok(())
    }

    /// The board's flash chip, the first if it has several; `None` if it has none.
    #[must_use]
    pub fn flash(&self) -> Option<&Rc<RefCell<Nor>>> {
        self.flashes.first().map(|flash| &flash.chip)
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
        let drawn = self.displays.iter_mut().map(Display::close).collect::<Vec<_>>();
        let kept = self.flashes.iter().filter_map(|flash| flash.file.as_ref());
        let kept: Vec<_> = kept.map(|file| file.borrow().check()).collect();
        kept.into_iter().chain(drawn).collect::<Result<(), _>>()?;
        match self.flash().and_then(|flash| flash.borrow().power_loss_awaited()) {
            None => Ok(()),
            Some([programs, erases]) => Err(OpenError::Failed(format!(
                "the loss of power did not come: the chip programmed {programs} times and erased {erases} \
                 times (fault=, counted from 0)"
            ))),
        }
    }
}

/// Puts the board's flash chips on, with the options and faults that are asked of the first.
fn attach_flashes(
    board: &Board,
    options: &SimOptions,
    fitted: Fitting,
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<SimFlash>, OpenError> {
    let mut flashes = Vec::new();
    for row in options.board.chips.iter().filter_map(ChipSpec::flash) {
        let (part, path) = options.of_flash(&row);
        let (file, content) = match path {
            Some(path) => {
                let (file, content) = FlashFile::open(
                    path,
                    part.size,
                    part.name,
                    options.file_use == FileUse::Made,
                    tell,
                )?;
                (Some(Rc::new(RefCell::new(file))), Some(content))
            }
            None => (None, None),
        };
        let chip = board.attach_flash_at(row.cs, part, content).map_err(OpenError::failed)?;
        let mut flash = chip.borrow_mut();
        if let Some(file) = file.clone() {
            flash.keep_with(move |at, bytes| file.borrow_mut().keep(at, bytes));
        }
        let first = flashes.is_empty();
        if let Some(status) = options.status.filter(|_| first) {
            flash.set_status(status);
        }
        let mut faults = if first { options.faults.chip.clone() } else { NorFaults::default() };
        // A self-test's bytes are commands to a chip that hears them.
        faults.absent |= !matches!(fitted, Fitting::Chips(_));
        flash.set_faults(faults);
        drop(flash);
        flashes.push(SimFlash { cs: row.cs, chip, file });
    }
    Ok(flashes)
}

/// Puts a converter on, with the signals asked on its inputs, else the board's, else a sine: of 100 Hz on the first,
/// 200 Hz on the second and so on.
fn attach_adc(
    board: &Board,
    row: &AdcSpec,
    asked: &[(u8, SignalSpec)],
    faults: &NorFaults,
) -> Result<(), OpenError> {
    let adc = board.attach_adc_of(row);
    let mut adc = adc.borrow_mut();
    let part = adc.part();
    let vref_uv = i64::from(row.vref_mv) * 1_000;
    for channel in 0..part.channels() {
        let frequency_uhz = (u64::from(channel) + 1) * 100_000_000;
        adc.set_input(channel, Signal::sine(frequency_uhz, vref_uv * 2 / 5, vref_uv / 2));
    }
    let of_board = (0..).zip(row.inputs);
    for (channel, spec) in of_board.chain(asked.iter().map(|(channel, spec)| (*channel, spec))) {
        if channel >= part.channels() {
            let what = format!("option input: the {part} has no channel {channel}");
            return Err(OpenError::Failed(what));
        }
        let signal = match spec {
            SignalSpec::Ready(signal) => signal.clone(),
            SignalSpec::File { path, .. } => {
                let text = files::read_text(Path::new(path))?;
                let signal = spec.clone().with_file(&text);
                signal.map_err(|error| OpenError::Failed(format!("{path}: {error}")))?
            }
        };
        adc.set_input(channel, signal);
    }
    adc.set_faults(AdcFaults { absent: faults.absent, dout_stuck_low: faults.miso_stuck_low });
    Ok(())
}

/// A CAN bus of the board's own. A board may be open for days, and no caller reads its bus's records.
fn quiet_bus(times: BitTimes) -> CanBus {
    let bus = CanBus::new(times);
    bus.set_recording(false);
    bus
}
