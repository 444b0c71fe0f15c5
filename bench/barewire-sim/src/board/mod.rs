//! A simulated board: processor time, a controller, GPIO blocks, a wire with chips, and the ways in.
//!
//! *Read first*: [`mod@file`] for the boards, [`crate::profile`] for their costs.
//!
//! # How it works
//! [`Board::new`] builds the board of a [`BoardSpec`]; nothing is on its wire until a chip is
//! attached. Drivers get [`SimRegisters`] and a [`SimTimer`]; both are handles, as the board is:
//! clones are the same board. Time passes only by accesses, waits and [`Board::cpu_work`]. The
//! controller's interrupt line is [`Board::wait_interrupt`]'s, a chip's is a [`Board::line`].
//!
//! ```
//! use barewire::reg::Registers;
//! use barewire_sim::{Board, BoardOptions, BoardSpec};
//!
//! let board = Board::new(BoardSpec::find("imx8mp")?, BoardOptions::default());
//! board.attach_flash(None)?;
//! let mut ecspi = board.controller();
//! assert_eq!(ecspi.read(0x18), 3, "STATREG at reset: TE and TDR");
//! assert!(board.engine().now_ps() > 0, "every access costs");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Not supported
//! More than one controller to a board, which takes a board [beside](Board::beside) it; an interrupt
//! controller's registers: an interrupt line wakes its waiters directly.

mod accesses;
mod body;
pub mod chips;
pub mod file;
mod lines;
mod selects;
pub mod shipped;
pub mod spec;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::rc::Rc;

use accesses::AccessLog;
pub use accesses::{Access, MANY_ACCESSES, folded, listed};
pub use body::{Pad, SimRegisters, SimTimer};
pub use lines::{ChipLines, LineError};
use selects::PadWire;
pub use shipped::{board_names, boards};
pub use spec::BoardSpec;

use crate::check::{BrokenRule, Faults, Log, Rule, Violation};
use crate::chip::{Chip, Ps};
use crate::engine::{Engine, RELAX_PS};
use crate::line::{self, IntLine, Source};
use crate::model::gpio::GpioBlock;
use crate::model::{BlockOptions, ControllerBlock};
use crate::profile::Profile;
use crate::random::SplitMix64;
use crate::selection::Selection;
use crate::vcd::{Capture, MAX_EVENTS, VcdSummary};
use crate::wire::{Driver, Wire, WireUse};
use body::{BoardState, Stall};

/// Options of a board.
#[derive(Clone, Debug)]
pub struct BoardOptions {
    /// Costs other than the board's own.
    pub profile: Option<Profile>,
    /// Faults of the wire.
    pub faults: Faults,
    /// The cost of one turn of a spin loop, see [`Engine::relax`].
    pub relax_ps: Ps,
    /// Every access takes up to this much longer, at random: to try other orders of events.
    pub jitter_ps: Ps,
    /// The seed of that randomness. The same seed gives the same trace.
    pub seed: u64,
    /// How its blocks behave where their manuals leave it open.
    pub blocks: BlockOptions,
}

impl Default for BoardOptions {
    fn default() -> Self {
        Self {
            profile: None,
            faults: Faults::default(),
            relax_ps: RELAX_PS,
            jitter_ps: 0,
            seed: 0,
            blocks: BlockOptions::default(),
        }
    }
}

/// Register accesses of one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessCounts {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Barriers. A pin's driver issues one before each edge and one after it.
    pub barriers: u64,
}

/// The hardware outside the processor: blocks and wire.
struct World {
    wire: Wire,
    controller: Box<dyn ControllerBlock>,
    gpio: Vec<Box<dyn GpioBlock>>,
    /// Wires from one pad to another.
    wires: Vec<PadWire>,
    counts: Vec<AccessCounts>,
    accesses: AccessLog,
    mark: Ps,
}

impl World {
    #[inline]
    fn count_barrier(&mut self, block: usize) {
        self.counts[block].barriers += 1;
    }

    #[inline]
    fn read(&mut self, block: usize, offset: u32, now: Ps) -> u32 {
        self.counts[block].reads += 1;
        let value = self.value(block, offset, now);
        self.note(block, offset, value, false, now);
        value
    }

    #[inline]
    fn value(&mut self, block: usize, offset: u32, now: Ps) -> u32 {
        if block == 0 {
            return self.controller.read(offset, now, &mut self.wire);
        }
        self.controller.catch_up(now, &mut self.wire);
        self.gpio[block - 1].read(offset).unwrap_or_else(|_| {
            let detail = format!("read of offset {offset:#x}, where the GPIO has no register");
            self.wire.log().report(now, Rule::BadAccess, None, detail);
            0
        })
    }

    #[inline]
    fn note(&mut self, block: usize, offset: u32, value: u32, write: bool, at: Ps) {
        self.accesses.note(|| Access { at, block: block as u8, offset, value, write });
    }

    #[inline]
    fn write(&mut self, block: usize, offset: u32, value: u32, now: Ps) {
        self.counts[block].writes += 1;
        self.note(block, offset, value, true, now);
        if block == 0 {
            self.controller.write(offset, value, now, &mut self.wire);
            return;
        }
        self.controller.catch_up(now, &mut self.wire);
        let gpio = &mut self.gpio[block - 1];
        let before = gpio.pads();
        if gpio.write(offset, value).is_err() {
            let detail = format!("write to offset {offset:#x}, where the GPIO has no register");
            self.wire.log().report(now, Rule::BadAccess, None, detail);
        }
        self.pads_moved((block - 1) as u8, before, now);
    }

    /// Reports each pad of the GPIO block at `index` that differs from `before`, to the wire and to
    /// the pads that are wired to it.
    fn pads_moved(&mut self, index: u8, before: u64, now: Ps) {
        let pads = self.gpio[usize::from(index)].pads();
        let mut changed = pads ^ before;
        while changed != 0 {
            let bit = changed.trailing_zeros() as u8;
            changed &= changed - 1;
            let (pad, level) = (Pad { block: index, bit }, pads >> bit & 1 != 0);
            self.wire.drive(Driver::Gpio { block: index, bit }, level, now);
            for at in 0..self.wires.len() {
                let PadWire { from, to } = self.wires[at];
                if from == pad {
                    self.set_outside(to, level, now);
                }
            }
        }
    }

    /// The surroundings of a pad give it that level while its block does not drive it.
    fn set_outside(&mut self, pad: Pad, level: bool, now: Ps) {
        let gpio = &mut self.gpio[usize::from(pad.block)];
        let before = gpio.pads();
        gpio.set_outside(pad.bit, level);
        self.pads_moved(pad.block, before, now);
    }
}

/// A simulated board: a handle, all clones one board.
#[derive(Clone)]
pub struct Board {
    spec: &'static BoardSpec,
    profile: Profile,
    shared: Rc<BoardState>,
}

impl Board {
    /// The board of `spec`, at time zero, just reset, no chip on its wire.
    #[must_use]
    pub fn new(spec: &'static BoardSpec, options: BoardOptions) -> Self {
        let engine = Engine::new();
        engine.set_relax_ps(options.relax_ps);
        let costs = options.profile.as_ref().unwrap_or(&spec.profile).thread_costs();
        engine.set_costs(costs);
        Self::on(engine, spec, options)
    }

    /// Another board beside this one: a controller, pins and a wire of its own, the same time and
    /// threads. Two controllers of one SoC are two boards. Threads have the costs of this board,
    /// not of the other.
    #[must_use]
    pub fn beside(&self, spec: &'static BoardSpec, options: BoardOptions) -> Self {
        Self::on(self.engine().clone(), spec, options)
    }

    fn on(engine: Engine, spec: &'static BoardSpec, options: BoardOptions) -> Self {
        let profile = options.profile.unwrap_or_else(|| spec.profile.clone());
        let mut wire = Wire::new(options.faults);
        let mut gpio: Vec<_> =
            spec.gpio.iter().map(|block| (block.kind.model)(&options.blocks)).collect();
        for cs in spec.cs {
            wire.add_line(cs.driver, cs.active_high);
            // The board pulls an undriven line to where nothing is selected.
            if let Driver::Gpio { block, bit } = cs.driver
                && let Some(gpio) = gpio.get_mut(usize::from(block))
            {
                gpio.set_outside(bit, !cs.active_high);
            }
        }
        let counts = vec![AccessCounts::default(); 1 + gpio.len()];
        let controller = (spec.kind.model)(profile.reference_hz.value, &options.blocks);
        let log = wire.log().clone();
        let accesses = AccessLog::default();
        let world = RefCell::new(World {
            wire,
            controller,
            gpio,
            wires: Vec::new(),
            counts,
            accesses,
            mark: 0,
        });
        let random = Cell::new(SplitMix64::new(options.seed));
        let jitter_ps = options.jitter_ps;
        let (stall, acknowledged_at) = (Cell::new(None), Cell::new(0));
        let (outputs, selects) = (RefCell::default(), RefCell::default());
        let shared = BoardState {
            engine,
            log,
            world,
            outputs,
            selects,
            jitter_ps,
            random,
            stall,
            acknowledged_at,
        };
        let board = Self { spec, profile, shared: Rc::new(shared) };
        board.wire_as_described();
        board
    }

    /// Gives the program the chip selects that are its own, and wires pads to others.
    fn wire_as_described(&self) {
        let BoardSpec { cs, no_cs, wires, .. } = *self.spec;
        let own = (0..).zip(cs).filter(|(_, cs)| cs.by_program);
        let own: Vec<(u8, Pad)> = own.filter_map(|(at, cs)| Some((at, cs.pad?))).collect();
        if no_cs || !own.is_empty() {
            self.give_selects(&own, no_cs).expect("a board's file is checked");
        }
        for &(from, to) in wires {
            self.connect_pads(from, to).expect("a board's file is checked");
        }
    }

    /// The description it was built from.
    #[must_use]
    pub fn spec(&self) -> &'static BoardSpec {
        self.spec
    }

    /// The costs it charges.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Its time and threads.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// The controller's registers.
    #[must_use]
    pub fn controller(&self) -> SimRegisters {
        let Profile { register_read_ps, register_write_ps, .. } = self.profile;
        self.registers(0, register_read_ps.value, register_write_ps.value)
    }

    /// The registers of the GPIO block at `index` of [`BoardSpec::gpio`]; `None` beyond it.
    #[must_use]
    pub fn gpio(&self, index: u8) -> Option<SimRegisters> {
        let Profile { gpio_read_ps, gpio_write_ps, .. } = self.profile;
        let index = usize::from(index);
        (index < self.spec.gpio.len())
            .then(|| self.registers(1 + index, gpio_read_ps.value, gpio_write_ps.value))
    }

    fn registers(&self, block: usize, read_ps: Ps, write_ps: Ps) -> SimRegisters {
        let around = self.profile.instructions_ps(self.profile.instructions_per_access.value);
        SimRegisters {
            shared: self.shared.clone(),
            block,
            read_ps: read_ps + around,
            write_ps: write_ps + around,
            write_ack_ps: self.profile.write_ack_ps.value,
            barrier_ps: self.profile.instructions_ps(1),
        }
    }

    /// The tick counter.
    #[must_use]
    pub fn timer(&self) -> SimTimer {
        let frequency_hz = u32::try_from(self.profile.timer_frequency_hz.value);
        SimTimer {
            shared: self.shared.clone(),
            read_ps: self.profile.timer_read_ps.value,
            frequency_hz: frequency_hz.unwrap_or(u32::MAX).max(1),
        }
    }

    /// Sleeps until the controller's interrupt line is high; false if `timeout_ps` passed before,
    /// or, in an [interrupt thread](crate::engine::Thread::interrupt), if all other threads have
    /// ended and nothing is on the wire.
    ///
    /// An interrupt thread returns `interrupt_latency_ps` of the profile after the line rose, if
    /// its processor was not in another handler. Any other thread is woken by a kernel's handler, as
    /// through UIO: it is ready `irq_thread_ps` after the rise, and then its processor is switched
    /// to it. Outside any simulated thread the processor stands for bare metal that waits for an
    /// event.
    ///
    /// # Panics
    /// Outside any simulated thread if nothing will raise the line and there is no timeout.
    pub fn wait_interrupt(&self, timeout_ps: Option<Ps>) -> bool {
        self.engine().wait_line(self.shared.clone(), timeout_ps)
    }

    /// The level of the controller's interrupt line now, and when it may change without another access;
    /// `None` for never. As an interrupt controller looks: it costs no access and no time.
    #[must_use]
    pub fn look_interrupt(&self) -> (bool, Option<Ps>) {
        self.settled(|world, _| {
            let due = world.controller.due();
            (world.controller.interrupt(), (due != Ps::MAX).then_some(due))
        })
    }

    /// A chip's interrupt line, low. Every holder of a clone may raise it, a chip's model included.
    #[must_use]
    pub fn line(&self) -> IntLine {
        let shared: Rc<dyn line::World> = self.shared.clone();
        IntLine::with_world(self.engine(), Some(Rc::downgrade(&shared)), None)
    }

    /// The interrupt line at a chip's pin, high while the pin is asserted.
    #[must_use]
    pub fn line_of(&self, pin: Rc<dyn Source>) -> IntLine {
        let shared: Rc<dyn line::World> = self.shared.clone();
        IntLine::with_world(self.engine(), Some(Rc::downgrade(&shared)), Some(pin))
    }

    /// The processor runs `instructions`.
    pub fn cpu_work(&self, instructions: u64) {
        self.engine().spend_ps(self.profile.instructions_ps(instructions));
    }

    /// Delays one register access of this board by `ps`: the one after the next `accesses`, of any
    /// thread. Everything due in that time happens before it, including a handler that interrupts
    /// the thread. So a test can place an interrupt between any two accesses.
    pub fn stall_after(&self, accesses: u64, ps: Ps) {
        self.shared.stall.set(Some(Stall { accesses, ps }));
    }

    /// Whether the access that was to be [put off](Board::stall_after) is still to come.
    #[must_use]
    pub fn is_stall_to_come(&self) -> bool {
        self.shared.stall.get().is_some()
    }

    /// Puts `chip` behind chip select `cs` and keeps a share in it; false if there is no such
    /// chip select.
    pub fn attach<C: Chip + 'static>(&self, cs: u8, chip: Rc<RefCell<C>>) -> bool {
        self.shared.world.borrow_mut().wire.attach(cs, chip)
    }

    /// Whether a chip is behind chip select `cs`.
    #[must_use]
    pub fn has_chip(&self, cs: u8) -> bool {
        self.shared.world.borrow().wire.has_chip(cs)
    }

    /// The part's name of the chip behind chip select `cs`.
    #[must_use]
    pub fn chip_name(&self, cs: u8) -> Option<&'static str> {
        self.shared.world.borrow().wire.chip_name(cs)
    }

    /// Lets the blocks catch up with the running thread's time and gives the world out.
    fn settled<T>(&self, with: impl FnOnce(&mut World, Ps) -> T) -> T {
        let now = self.engine().now_ps();
        let mut world = self.shared.world.borrow_mut();
        let World { controller, wire, .. } = &mut *world;
        controller.catch_up(now, wire);
        with(&mut world, now)
    }

    /// How the wire was used since [`Board::reset_marks`].
    #[must_use]
    pub fn wire_use(&self) -> WireUse {
        self.settled(|world, now| world.wire.wire_use(now))
    }

    /// Virtual time since [`Board::reset_marks`].
    #[must_use]
    pub fn elapsed_ps(&self) -> Ps {
        self.settled(|world, now| now.saturating_sub(world.mark))
    }

    /// Register accesses since [`Board::reset_marks`]: the controller's, then each GPIO block's.
    #[must_use]
    pub fn access_counts(&self) -> Vec<AccessCounts> {
        self.shared.world.borrow().counts.clone()
    }

    /// Begins all sums anew: wire use, elapsed time, access counts. Violations stay.
    pub fn reset_marks(&self) {
        self.settled(|world, now| {
            world.wire.reset_use(now);
            world.counts.fill(AccessCounts::default());
            world.mark = now;
        });
    }

    /// The log. Blocks and chips first report what they have found up to now.
    ///
    /// During a call of a chip the world is borrowed, so the log is returned without those reports.
    fn log(&self) -> &Log {
        if let Ok(mut world) = self.shared.world.try_borrow_mut() {
            let now = self.engine().now_ps();
            let World { controller, wire, .. } = &mut *world;
            controller.catch_up(now, wire);
            wire.violations(now);
        }
        &self.shared.log
    }

    /// The rules broken so far, oldest first, as far as they are kept.
    ///
    /// May be called at any moment. Inside a call of a chip, the list ends with the violations reported
    /// before that call. A chip that the caller has borrowed keeps its own complaints until the next
    /// call.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        self.log().kept()
    }

    /// The rules broken so far, each once for a chip select, with their numbers. With the list, if
    /// such a rule was broken.
    #[must_use]
    pub fn broken_rules(&self) -> Vec<BrokenRule> {
        self.log().broken()
    }

    /// The number of violations, including those not kept. May be called at any moment, as
    /// [`Board::violations`].
    #[must_use]
    pub fn violations_total(&self) -> u64 {
        self.log().total()
    }

    /// How many of them [harm](Rule::harms). At any moment, as [`Board::violations`].
    #[must_use]
    pub fn harms_total(&self) -> u64 {
        self.log().harms()
    }

    /// Forgets the violations so far. At any moment, as [`Board::violations`].
    pub fn clear_violations(&self) {
        self.log().clear();
    }

    /// Begins to record the wire, with the default limit.
    pub fn start_vcd(&self) {
        self.start_vcd_limited(MAX_EVENTS);
    }

    /// Begins to record the wire, at most `max_events` words and level changes.
    pub fn start_vcd_limited(&self, max_events: usize) {
        self.settled(|world, now| world.wire.start_recording(now, max_events));
    }

    /// Ends the recording and writes it to `out` piece by piece; `None` if none was begun.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_vcd(&self, out: &mut dyn io::Write) -> io::Result<Option<VcdSummary>> {
        let recorder = self.settled(|world, _| world.wire.take_recording());
        recorder.map(|recorder| recorder.write_to(out)).transpose()
    }

    /// Ends the recording and returns its file; `None` if none was begun.
    #[must_use]
    pub fn take_vcd(&self) -> Option<Capture> {
        let recorder = self.settled(|world, _| world.wire.take_recording());
        Some(recorder?.into_capture())
    }

    /// Begins to note every selection in which bits are clocked: [`Board::take_selections`].
    pub fn start_selections(&self) {
        self.settled(|world, _| world.wire.start_selections());
    }

    /// The selections noted since [`Board::start_selections`] or the last call, oldest first.
    /// Recording continues: a long run that calls this now and then keeps its memory bounded.
    #[must_use]
    pub fn drain_selections(&self) -> Vec<Selection> {
        self.settled(|world, _| world.wire.drain_selections())
    }

    /// The selections noted since [`Board::start_selections`], oldest first.
    #[must_use]
    pub fn take_selections(&self) -> Vec<Selection> {
        self.settled(|world, _| world.wire.take_selections())
    }

    /// Begins to note accesses to registers, the next `most` of them: [`Board::take_accesses`].
    pub fn start_accesses(&self, most: usize) {
        self.settled(|world, _| world.accesses.start(most));
    }

    /// The accesses noted since [`Board::start_accesses`] or the last call, oldest first.
    #[must_use]
    pub fn take_accesses(&self) -> Vec<Access> {
        self.settled(|world, _| world.accesses.take())
    }

    /// A hash over everything that happened on the wire so far: same options, same program, same
    /// hash.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.settled(|world, _| world.wire.trace_hash())
    }
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Board")
            .field("name", &self.spec.name)
            .field("now_ps", &self.engine().now_ps())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
