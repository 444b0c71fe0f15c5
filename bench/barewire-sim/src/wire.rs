//! One SPI bus's pins: SCK, MOSI, MISO and the chip selects, with the chips behind them.
//!
//! *Read first*: [`crate::chip`] for what a chip sees; the timing figures of a controller's manual
//! for what CPHA means: here data changes where a bit's cell begins and is sampled in its middle,
//! in both phases. With CPHA = 0 the cell's middle is SCK's leading edge and its end the trailing
//! one; with CPHA = 1 its beginning is the leading edge and its middle the trailing one.
//!
//! # How it works
//! A controller announces a run of bits when their first cell begins ([`Wire::begin_run`]), and
//! takes the received bits at the last sampling edge ([`Wire::end_run`]). In between, a GPIO write
//! may move a chip select. The bits sampled before it belong to the chip that was selected then. If
//! nothing moved, a run is one call of the chip, so a word costs one call.
//!
//! MISO has a pull-up: without a chip or a selection it reads ones. A chip that is clocked in a
//! mode it does not support is not called. MISO then carries MOSI one bit late, after a leading
//! one: garbage, but always the same garbage.
//!
//! # Ordering
//! 1. Times on a wire never decrease. A thread that unwinds (see [`crate::engine`]) may break this
//!    rule; a negative difference then counts as zero.
//!
//! # Not supported
//! - Three-wire, dual and quad modes.
//! - Several controllers on one wire.
//! - Words longer than 32 bits: a longer burst is a sequence of runs without a gap.

use std::cell::{RefCell, RefMut};
use std::fmt;
use std::rc::Rc;

use crate::check::{Faults, LineCheck, Log, Rule};
use crate::chip::{Chip, Clocking, NO_LIMITS, Ps, SetupEdge};
pub use crate::run::Run;
use crate::selection::Selection;
use crate::vcd::{Event, Recorder};

/// A chip that the wire and the bench share.
///
/// Borrow it only while nothing runs on the wire.
pub type SharedChip = Rc<RefCell<dyn Chip>>;

/// The driver of a chip select line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// The controller's own SSn.
    Native(u8),
    /// A bit of a GPIO block; `block` is its index on the board.
    Gpio {
        /// The block's index.
        block: u8,
        /// The pin's bit.
        bit: u8,
    },
}

/// How the wire was used during an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireUse {
    /// The time SCK ran: bits times their period.
    pub clock_ps: u64,
    /// The time any chip select was active.
    pub selected_ps: u64,
    /// The time from the start of the first bit's cell to the end of the last one's, summed over
    /// all selections. A run of bits without a selection counts as one.
    pub span_ps: u64,
    /// Bits clocked.
    pub bits: u64,
}

impl WireUse {
    /// The share of `elapsed_ps` in which SCK ran; 0 if no time has passed.
    #[must_use]
    pub fn bus_use(&self, elapsed_ps: u64) -> f64 {
        ratio(self.clock_ps, elapsed_ps)
    }

    /// The share of all data transfers (from first to last clock of each selection) in which SCK
    /// ran; 0 if there was no transfer.
    #[must_use]
    pub fn bus_use_in_transfers(&self) -> f64 {
        ratio(self.clock_ps, self.span_ps)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Borrows the chip on `cs` for one call. `None` while a panic unwinds and the chip is borrowed: a
/// second panic would hide the first.
///
/// # Panics
/// If the program holds a borrow of it.
fn called(chip: &SharedChip, cs: u8) -> Option<RefMut<'_, dyn Chip + 'static>> {
    match chip.try_borrow_mut() {
        Ok(chip) => Some(chip),
        Err(_) if std::thread::panicking() => None,
        Err(_) => panic!("the chip on cs{cs} is borrowed while the wire calls it: end the borrow"),
    }
}

/// An input pin of a chip, and the board's pad that drives it.
struct Input {
    cs: u8,
    pin: &'static str,
    driver: Driver,
    level: bool,
    /// Its number in the recording.
    recorded: Option<u8>,
}

/// A pad that is recorded: no chip hears it.
struct Probe {
    name: String,
    driver: Driver,
    level: bool,
    /// Its number in the recording.
    recorded: Option<u8>,
}

/// An input pin's name in a recording.
fn input_name(cs: u8, pin: &str) -> String {
    format!("cs{cs}_{}", pin.to_lowercase())
}

/// A run on its way.
struct Running {
    run: Run,
    done: u32,
    miso: u32,
}

struct Line {
    driver: Driver,
    active_high: bool,
    level: bool,
    chip: Option<SharedChip>,
    check: LineCheck,
}

/// The pins.
pub struct Wire {
    lines: Vec<Line>,
    inputs: Vec<Input>,
    probes: Vec<Probe>,
    /// One bit for each active line.
    active: u32,
    /// One bit for each line with a chip.
    chips: u32,
    running: Option<Running>,
    /// After the last bit was sampled, SCK is away from its idle level until then.
    sck_busy_until: Ps,
    sck: bool,
    mosi: bool,
    unselected_reported: bool,
    /// The program drives a chip select itself, so it may clock on purpose while none is active.
    program_selects: bool,
    /// MOSI is wired to MISO.
    jumper: bool,
    faults: Faults,
    log: Log,
    recorder: Option<Box<Recorder>>,
    hash: u64,
    used: WireUse,
    selected_since: Ps,
    span: Option<(Ps, Ps)>,
    selections: Option<Vec<Selection>>,
}

/// The largest number of connected input pins and recorded pads: each has a character in a VCD file.
const INPUTS_MAX: usize = 32;

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

fn mask(bits: u32) -> u32 {
    ((1_u64 << bits) - 1) as u32
}

impl Wire {
    /// Creates a wire without lines; SCK is low and MOSI high.
    #[must_use]
    pub fn new(faults: Faults) -> Self {
        Self {
            lines: Vec::new(),
            inputs: Vec::new(),
            probes: Vec::new(),
            active: 0,
            chips: 0,
            running: None,
            sck_busy_until: 0,
            sck: false,
            mosi: true,
            unselected_reported: false,
            program_selects: false,
            jumper: false,
            faults,
            log: Log::default(),
            recorder: None,
            hash: FNV_OFFSET,
            used: WireUse::default(),
            selected_since: 0,
            span: None,
            selections: None,
        }
    }

    /// Adds a chip select line, inactive and without a chip. Returns its number: the count of lines
    /// before it.
    ///
    /// # Panics
    /// If there are 32 lines already.
    pub fn add_line(&mut self, driver: Driver, active_high: bool) -> u8 {
        assert!(self.lines.len() < 32, "a wire has at most 32 chip selects");
        let cs = self.lines.len() as u8;
        let check = LineCheck::new(cs, NO_LIMITS, SetupEdge::First);
        self.lines.push(Line { driver, active_high, level: !active_high, chip: None, check });
        cs
    }

    /// Connects `chip` to line `cs`. Returns false if there is no such line.
    pub fn attach(&mut self, cs: u8, chip: SharedChip) -> bool {
        let Some(line) = self.lines.get_mut(usize::from(cs)) else { return false };
        let (limits, setup_edge) = (chip.borrow().limits(), chip.borrow().setup_edge());
        line.check = LineCheck::new(cs, limits, setup_edge);
        line.chip = Some(chip);
        self.chips |= 1 << cs;
        true
    }

    /// Whether line `cs` has a chip.
    #[must_use]
    pub fn has_chip(&self, cs: u8) -> bool {
        self.lines.get(usize::from(cs)).is_some_and(|line| line.chip.is_some())
    }

    /// The part's name of the chip at line `cs`; `None` if there is none, or while it is being called.
    #[must_use]
    pub fn chip_name(&self, cs: u8) -> Option<&'static str> {
        let chip = self.lines.get(usize::from(cs))?.chip.as_ref()?;
        chip.try_borrow().ok().map(|chip| chip.name())
    }

    /// The number of chip select lines.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.lines.len()
    }

    /// Sets line `cs` to `level`. No effect if it has that level already or does not exist.
    pub fn set_line(&mut self, cs: u8, level: bool, at: Ps) {
        let Some(line) = self.lines.get(usize::from(cs)) else { return };
        if line.level != level {
            self.edge(cs, level, at);
        }
    }

    /// Wires the select of line `cs` to `driver`, which the program drives and which has `level` at `at`. What
    /// drove the line before leads to nothing then, and [`Rule::ClockWithoutCs`] is no rule of this wire any
    /// more: a program may clock on purpose while no chip is selected, as SD cards need it.
    pub(crate) fn select_by_program(&mut self, cs: u8, driver: Driver, level: bool, at: Ps) {
        let Some(line) = self.lines.get_mut(usize::from(cs)) else { return };
        line.driver = driver;
        self.program_selects = true;
        self.set_line(cs, level, at);
    }

    /// Wires MOSI to MISO for as long as no chip is selected: a chip that is selected is stronger.
    pub(crate) fn set_jumper(&mut self) {
        self.jumper = true;
    }

    /// Connects input pin `pin` of the chip on line `cs` to `driver`, which has `level` at `at`, and
    /// tells the chip that level. Returns false if `cs` has no chip or the wire has 32 such pins.
    ///
    /// # Panics
    /// If the program holds a borrow of the chip.
    pub fn connect(
        &mut self,
        cs: u8,
        pin: &'static str,
        driver: Driver,
        level: bool,
        at: Ps,
    ) -> bool {
        if !self.has_chip(cs) || !self.has_room(1) {
            return false;
        }
        let recorder = self.recorder.as_deref_mut();
        let recorded = recorder.map(|recorder| recorder.add_pin(input_name(cs, pin), level));
        self.inputs.push(Input { cs, pin, driver, level, recorded });
        self.input_edge(self.inputs.len() - 1, level, at);
        true
    }

    /// Whether `driver` drives an input pin of a chip.
    #[must_use]
    pub fn is_input(&self, driver: Driver) -> bool {
        self.inputs.iter().any(|input| input.driver == driver)
    }

    /// Records the level of `driver`, which has `level` at `at`, under that name. The driver need not drive a
    /// chip's pin; if it does, the pin is recorded too. Does nothing if the driver is recorded already or the
    /// wire has 32 such pins.
    pub(crate) fn probe(&mut self, driver: Driver, name: &str, level: bool, at: Ps) {
        let known = self.probes.iter().any(|probe| probe.driver == driver);
        if known || !self.has_room(1) {
            return;
        }
        let recorder = self.recorder.as_deref_mut();
        let recorded = recorder.map(|recorder| recorder.add_pin(name.into(), level));
        self.probes.push(Probe { name: name.into(), driver, level, recorded });
        self.record_pin(recorded, level, at);
    }

    fn record_pin(&mut self, recorded: Option<u8>, level: bool, at: Ps) {
        if let (Some(recorder), Some(pin)) = (&mut self.recorder, recorded) {
            recorder.record(Event::Pin { at, pin, level });
        }
    }

    /// Whether `inputs` more input pins may be connected.
    #[must_use]
    pub(crate) fn has_room(&self, inputs: usize) -> bool {
        self.inputs.len() + self.probes.len() + inputs <= INPUTS_MAX
    }

    /// Tells a chip a new level at one of its input pins.
    ///
    /// The bits sampled before the edge are exchanged first: the chip sees them under the old level.
    fn input_edge(&mut self, index: usize, level: bool, at: Ps) {
        self.shift_until(at);
        let input = &mut self.inputs[index];
        input.level = level;
        let (cs, pin, recorded) = (input.cs, input.pin, input.recorded);
        self.fold(4 << 16 | u64::from(level) << 8 | index as u64, at, 0);
        self.record_pin(recorded, level, at);
        let chip = self.lines[usize::from(cs)].chip.as_ref();
        if let Some(mut chip) = chip.and_then(|chip| called(chip, cs)) {
            chip.set_pin(pin, level, at);
        }
        self.collect_complaints(at);
    }

    /// Sets all lines and connected input pins of `driver` to `level`.
    pub fn drive(&mut self, driver: Driver, level: bool, at: Ps) {
        let changed = self.probes.iter_mut().find(|probe| probe.driver == driver);
        if let Some(probe) = changed.filter(|probe| probe.level != level) {
            probe.level = level;
            let recorded = probe.recorded;
            self.record_pin(recorded, level, at);
        }
        for cs in 0..self.lines.len() {
            if self.lines[cs].driver == driver {
                self.set_line(cs as u8, level, at);
            }
        }
        for index in 0..self.inputs.len() {
            let input = &self.inputs[index];
            if input.driver == driver && input.level != level {
                self.input_edge(index, level, at);
            }
        }
    }

    fn edge(&mut self, cs: u8, level: bool, at: Ps) {
        self.shift_until(at);
        self.check_sck(cs, at);
        let line = &mut self.lines[usize::from(cs)];
        line.level = level;
        let active = level == line.active_high;
        let others = self.active;
        if active {
            self.active |= 1 << cs;
        } else {
            self.active &= !(1 << cs);
        }
        self.unselected_reported = false;
        self.fold(1 << 16 | u64::from(level) << 8 | u64::from(cs), at, 0);
        if let Some(recorder) = &mut self.recorder {
            recorder.record(Event::Cs { at, cs, level });
        }
        match (others == 0, self.active == 0) {
            (true, false) => self.selected_since = at,
            (false, true) => self.close_selection(at),
            _ => {}
        }
        let line = &mut self.lines[usize::from(cs)];
        if let Some(chip) = &line.chip {
            if active {
                line.check.select(at, &self.log);
                if let Some(mut chip) = called(chip, cs) {
                    chip.select(at);
                }
            } else {
                line.check.deselect(at, &self.log);
                if let Some(mut chip) = called(chip, cs) {
                    chip.deselect(at);
                }
            }
            if active && others & self.chips != 0 {
                let other = (others & self.chips).trailing_zeros();
                let detail = format!("selected while cs{other} is active");
                self.log.report(at, Rule::OneCs, Some(cs), detail);
            }
        }
        self.collect_complaints(at);
    }

    fn close_selection(&mut self, at: Ps) {
        let selected_at = self.selected_since;
        self.used.selected_ps += at.saturating_sub(selected_at);
        let Some((first, last)) = self.span.take() else { return };
        self.used.span_ps += last.saturating_sub(first);
        if let Some(selections) = &mut self.selections {
            selections.push(Selection {
                selected_at,
                first_clock_at: first,
                last_clock_at: last,
                deselected_at: at,
            });
        }
    }

    fn check_sck(&mut self, cs: u8, at: Ps) {
        if self.chips >> cs & 1 == 0 {
            return;
        }
        let mut away = at < self.sck_busy_until;
        if let Some(Running { run, .. }) = &self.running {
            let inside = at.saturating_sub(run.clocking.at) % run.clocking.period.max(1);
            away = if run.cpha() { inside < run.half() } else { inside >= run.half() };
            self.log.report(at, Rule::MidWord, Some(cs), "CS changed in the middle of a word");
        }
        if away {
            self.log.report(at, Rule::SckIdle, Some(cs), "CS changed between two edges of SCK");
        }
    }

    /// Sets SCK's idle level.
    pub fn set_sck(&mut self, level: bool, at: Ps) {
        if self.sck == level {
            return;
        }
        self.sck = level;
        let selected = self.active & self.chips;
        if selected != 0 {
            let cs = Some(selected.trailing_zeros() as u8);
            self.log.report(at, Rule::SckIdle, cs, "SCK's idle level changed under an active CS");
        }
        self.fold(2 << 16 | u64::from(level), at, 0);
        if let Some(recorder) = &mut self.recorder {
            recorder.record(Event::Sck { at, level });
        }
    }

    /// Sets MOSI's idle level.
    pub fn set_mosi(&mut self, level: bool, at: Ps) {
        self.mosi = level;
        if let Some(recorder) = &mut self.recorder {
            recorder.record(Event::Mosi { at, level });
        }
    }

    /// The controller begins to clock `run`.
    pub fn begin_run(&mut self, run: Run) {
        debug_assert!((1..=32).contains(&run.bits));
        let cpol = run.mode & 2 != 0;
        if self.sck != cpol {
            self.set_sck(cpol, run.clocking.at);
        }
        self.running = Some(Running { run, done: 0, miso: 0 });
    }

    /// The last bit of the run was sampled. Returns the bits on MISO, or all ones if there is no
    /// run.
    pub fn end_run(&mut self) -> u32 {
        let Some(mut running) = self.running.take() else { return u32::MAX };
        let bits = running.run.bits;
        if running.done < bits {
            self.piece(&mut running, bits);
        }
        self.finish(&running);
        running.miso
    }

    /// The controller stops in the middle of a run, if there is one.
    pub fn abort_run(&mut self, at: Ps) {
        self.shift_until(at);
        if let Some(mut running) = self.running.take() {
            let selected = self.active & self.chips;
            if selected != 0 {
                let cs = Some(selected.trailing_zeros() as u8);
                self.log.report(at, Rule::MidWord, cs, "the controller stopped within a word");
            }
            if running.done > 0 {
                running.run.mosi >>= running.run.bits - running.done;
                running.run.bits = running.done;
                self.finish(&running);
            }
        }
        self.sck_busy_until = self.sck_busy_until.min(at);
    }

    fn finish(&mut self, running: &Running) {
        let run = &running.run;
        let (at, end) = (run.clocking.at, run.end());
        self.sck_busy_until = if run.cpha() { 0 } else { end };
        let clocked = u64::from(run.bits) * run.clocking.period;
        self.used.clock_ps += clocked;
        self.used.bits += u64::from(run.bits);
        if self.active == 0 {
            self.used.span_ps += clocked;
        } else {
            let first = self.span.map_or(at, |(first, _)| first);
            self.span = Some((first, end));
        }
        self.fold(
            3 << 16 | u64::from(run.mode) << 8 | u64::from(run.bits),
            at ^ run.clocking.period.rotate_left(40),
            u64::from(run.mosi) << 32 | u64::from(running.miso),
        );
        if let Some(recorder) = &mut self.recorder {
            recorder.record(Event::Run { run: *run, miso: running.miso });
        }
    }

    /// Exchanges the bits whose sampling edge has passed.
    fn shift_until(&mut self, at: Ps) {
        let Some(mut running) = self.running.take() else { return };
        let Clocking { at: begin, period } = running.run.clocking;
        let sampled = match at.checked_sub(begin + running.run.half()) {
            Some(past) => past.checked_div(period).map_or(0, |cells| cells + 1),
            None => 0,
        };
        let sampled = sampled.min(u64::from(running.run.bits)) as u32;
        if sampled > running.done {
            self.piece(&mut running, sampled);
        }
        self.running = Some(running);
    }

    /// Exchanges the bits from those done up to `upto`.
    fn piece(&mut self, running: &mut Running, upto: u32) {
        let run = &running.run;
        let bits = upto - running.done;
        let mosi = run.mosi >> (run.bits - upto) & mask(bits);
        let at = run.clocking.at + u64::from(running.done) * run.clocking.period;
        let miso = self.shift(run, Clocking { at, ..run.clocking }, mosi, bits);
        running.miso = (u64::from(running.miso) << bits) as u32 | miso;
        running.done = upto;
    }

    fn shift(&mut self, run: &Run, clocking: Clocking, mosi: u32, bits: u32) -> u32 {
        let Clocking { at, period } = clocking;
        let jumper = self.jumper && self.active & self.chips == 0;
        let mut miso = if jumper { mosi } else { mask(bits) };
        let on_purpose = run.loopback || jumper || self.program_selects;
        if self.active == 0 && !on_purpose && !self.unselected_reported {
            self.unselected_reported = true;
            self.log.report(at, Rule::ClockWithoutCs, None, "SCK runs, no CS is active");
        }
        let end = at + u64::from(bits) * period;
        let (first_edge, last_edge) =
            if run.cpha() { (at, end - (period - run.half())) } else { (at + run.half(), end) };
        let mut left = self.active & self.chips;
        while left != 0 {
            let cs = left.trailing_zeros() as u8;
            let line = &mut self.lines[usize::from(cs)];
            left &= left - 1;
            let Some(chip) = &line.chip else { continue };
            let check = &mut line.check;
            let first = check.unclocked();
            let understood = check.clock(first_edge, last_edge, period, run.mode, &self.log);
            let mut bits_in = if understood {
                let Some(mut chip) = called(chip, cs) else { continue };
                if first {
                    chip.clocked_in(run.mode);
                }
                chip.exchange(clocking, mosi, bits) & mask(bits)
            } else {
                mosi >> 1 | 1 << (bits - 1)
            };
            if self.faults.timing_corrupts && check.timing_broken() {
                bits_in ^= mask(bits);
            }
            miso &= bits_in;
        }
        miso
    }

    fn collect_complaints(&mut self, at: Ps) {
        for (cs, line) in self.lines.iter().enumerate() {
            let Some(chip) = &line.chip else { continue };
            // A chip that the caller has borrowed keeps its complaints until the next time.
            let Ok(mut chip) = chip.try_borrow_mut() else { continue };
            while let Some(complaint) = chip.take_complaint() {
                let detail = format!("{}: {complaint}", chip.name());
                self.log.report(at, Rule::Chip, Some(cs as u8), detail);
            }
        }
    }

    /// The violations so far, including the chips' complaints up to `now`.
    pub fn violations(&mut self, now: Ps) -> &Log {
        self.collect_complaints(now);
        &self.log
    }

    /// The log for models to report to.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// How the wire was used since the last [`Wire::reset_use`].
    #[must_use]
    pub fn wire_use(&self, now: Ps) -> WireUse {
        let mut used = self.used;
        if self.active != 0 {
            used.selected_ps += now.saturating_sub(self.selected_since);
        }
        if let Some((first, last)) = self.span {
            used.span_ps += last.saturating_sub(first);
        }
        used
    }

    /// Resets the sums of [`Wire::wire_use`].
    pub fn reset_use(&mut self, now: Ps) {
        self.used = WireUse::default();
        self.selected_since = now;
        self.span = None;
    }

    /// Starts to record every selection in which bits are clocked.
    pub fn start_selections(&mut self) {
        self.selections = Some(Vec::new());
    }

    /// Returns the recorded selections, oldest first, and goes on recording.
    pub fn drain_selections(&mut self) -> Vec<Selection> {
        self.selections.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Returns the recorded selections, oldest first, and stops recording.
    pub fn take_selections(&mut self) -> Vec<Selection> {
        self.selections.take().unwrap_or_default()
    }

    /// Starts to record the wire: at most `max_events` words and level changes.
    pub fn start_recording(&mut self, now: Ps, max_events: usize) {
        let levels = self.lines.iter().map(|line| (line.level, line.active_high)).collect();
        let mut recorder = Recorder::new(now, max_events, (self.sck, self.mosi), levels);
        for input in &mut self.inputs {
            let name = input_name(input.cs, input.pin);
            input.recorded = Some(recorder.add_pin(name, input.level));
        }
        for probe in &mut self.probes {
            probe.recorded = Some(recorder.add_pin(probe.name.clone(), probe.level));
        }
        self.recorder = Some(Box::new(recorder));
    }

    /// Stops the recording and returns it; `None` if there is none.
    pub fn take_recording(&mut self) -> Option<Recorder> {
        self.recorder.take().map(|recorder| *recorder)
    }

    /// A hash over everything that happened on the wire: FNV-1a over 64-bit units.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.hash
    }

    #[inline]
    fn fold(&mut self, kind: u64, at: u64, data: u64) {
        for unit in [kind, at, data] {
            let mixed = (self.hash ^ unit).wrapping_mul(FNV_PRIME);
            // FNV's multiplication only carries upward, so the high bits of a word would not reach
            // the low bits of the hash. The byte-wise form does not have this problem.
            self.hash = mixed ^ mixed >> 32;
        }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire")
            .field("lines", &self.lines.len())
            .field("active", &self.active)
            .field("used", &self.used)
            .finish_non_exhaustive()
    }
}
