//! Messages of a user's experiment, sent in a loop or at a period, through a kernel's path.
//!
//! *Read first*: [`crate::own`] for the experiment; [`crate::kernel`] for the path.
//!
//! # How it works
//! A client sends the message again and again: a process through spidev, or a driver in the kernel. An echo is behind the chip
//! select, so every byte is checked. Processor 0 has the client, its timer tick and the interrupts. The pump's thread has
//! processor 1, or shares processor 0 if the board has one.
//!
//! # Cold and warm
//! In a loop that polls, code is in the caches. A client that sleeps between messages, or for the end of a transfer, finds a
//! processor that did something else or nothing: its code, and the handlers', are cold ([`OwnExperiment::is_cold`]).
//!
//! # Not supported
//! Other work on the machine, and more than one client.

mod barewire;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use barewire_sim::chip::Ps;
use barewire_sim::engine::Thread;
use barewire_sim::model::echo::Echo;
use barewire_sim::{Board, BoardOptions, Selection};

use super::Intervals;
use crate::cost::Costs;
use crate::kernel::bcm2835::{Bcm2835, POLL_LIMIT_NS};
use crate::kernel::imx::Imx;
use crate::kernel::mcspi::Mcspi;
use crate::kernel::{Host, Kernel, Waiting, Xfer};
use crate::machine::{Machine, Parts, Record};
use crate::own::{Client, DmaEngine, Driver, Measure, Message, OwnExperiment};
pub use barewire::barewire;

/// CONFIG_HZ=100.
const TICK_PS: Ps = 10_000_000_000;
/// Messages before anything is measured.
const WARM_UP: usize = 2;
/// Messages that are measured: whole turns of spi-bcm2835's eight phases of polling.
const MESSAGES: usize = 40;
const PHASES: usize = 8;
/// Selections after which fewer messages will do.
const SELECTIONS: usize = 400;
/// The processor's time that a thread's switches and interrupts take, which no step has.
pub const SWITCHES: &str = "interrupts and switches";

/// The driver of the experiment's controller.
enum AnyHost {
    Bcm2835(Box<Bcm2835>),
    Imx(Box<Imx>),
    Mcspi(Box<Mcspi>),
}

impl AnyHost {
    fn new(board: &Board, own: &OwnExperiment, message: &Message) -> Self {
        let (cs, speed_hz) = (own.cs, message.speed_hz);
        let dma = own.dma.map(|DmaEngine { setup_ps, byte_ps }| (setup_ps, (byte_ps as Ps).max(1)));
        match own.driver {
            Driver::Bcm2835 => {
                // A user who asks for polling gets it.
                let limit_ns =
                    if own.waiting == Some(Waiting::Polling) { u64::MAX } else { POLL_LIMIT_NS };
                let host = Bcm2835::new(board, cs, speed_hz, limit_ns);
                Self::Bcm2835(Box::new(match dma {
                    Some((setup_ps, byte_ps)) => host.with_dma(setup_ps, byte_ps),
                    None => host,
                }))
            }
            Driver::Imx => Self::Imx(Box::new(Imx::with_fifo(board, cs, speed_hz, own.fifo()))),
            Driver::Mcspi => Self::Mcspi(Box::new(Mcspi::new(board, cs, speed_hz, dma))),
        }
    }

    fn host(&self) -> &dyn Host {
        match self {
            Self::Bcm2835(host) => &**host,
            Self::Imx(host) => &**host,
            Self::Mcspi(host) => &**host,
        }
    }

    fn clock_hz(&self) -> u64 {
        match self {
            Self::Bcm2835(host) => host.clock_hz(),
            Self::Imx(host) => host.clock_hz(),
            Self::Mcspi(host) => host.clock_hz(),
        }
    }

    fn threads<'a>(&'a self, machine: &'a Machine) -> Vec<Thread<'a>> {
        match self {
            Self::Bcm2835(host) => host.threads(machine),
            Self::Imx(host) => host.threads(machine),
            Self::Mcspi(host) => host.threads(machine),
        }
    }
}

impl Host for AnyHost {
    fn prepare(&self, machine: &Machine) {
        self.host().prepare(machine);
    }

    fn set_cs(&self, machine: &Machine, active: bool) {
        self.host().set_cs(machine, active);
    }

    fn transfer(&self, machine: &Machine, waiting: Waiting, xfer: &mut Xfer) {
        self.host().transfer(machine, waiting, xfer);
    }
}

/// What was on the wire, and when the calls were.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timing {
    /// From the beginning of the first message to that of the one after the last.
    window: (Ps, Ps),
    calls: Vec<(Ps, Ps)>,
    wire: Vec<Selection>,
    /// A gap between two messages with a tick of the timer in it says nothing of the gap without.
    ticks: Vec<(Ps, Ps)>,
    clock_hz: u64,
}

/// A figure that is the mean of intervals: `value` is `scale / (mean - less)`, or `(mean - less) x scale`.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The intervals.
    pub intervals: Intervals,
    /// Taken off their mean, in microseconds.
    pub less_us: f64,
    /// The factor.
    pub scale: f64,
    /// The factor by what is left, not times it.
    pub is_rate: bool,
}

impl Measured {
    fn of(all: Vec<(Ps, Ps)>) -> Self {
        Self { intervals: Intervals { all }, less_us: 0.0, scale: 1.0, is_rate: false }
    }

    /// The figure, where the intervals have the mean `sum_us`.
    #[must_use]
    pub fn value(&self, sum_us: f64) -> f64 {
        let left = sum_us - self.less_us;
        if self.is_rate { self.scale / left } else { left * self.scale }
    }

    /// The same in words.
    #[must_use]
    pub fn relation(&self) -> String {
        let Self { less_us, scale, is_rate, .. } = self;
        let left = if *less_us > 0.0 { format!("(sum - {less_us:.3})") } else { "sum".into() };
        match (is_rate, *scale) {
            (true, scale) => format!("{scale} / {left}"),
            (_, 1.0) => left,
            (_, scale) => format!("{left} x {scale:.4}"),
        }
    }
}

impl Timing {
    /// The intervals of `measure`; none if the message has no such figure. A share of the processor is not one.
    pub(crate) fn measured(
        &self,
        own: &OwnExperiment,
        message: &Message,
        measure: Measure,
    ) -> Option<Measured> {
        let each = |part: &dyn Fn(&Selection) -> (Ps, Ps)| {
            Measured::of(self.wire.iter().map(part).collect())
        };
        let between = |inside: bool| {
            let pairs = self.wire.windows(2).enumerate();
            let pairs = pairs
                .filter(|(index, _)| (index + 1).is_multiple_of(message.selections()) != inside);
            let pairs = pairs.map(|(_, pair)| (pair[0].deselected_at, pair[1].selected_at));
            let has_tick =
                |(from, to): (Ps, Ps)| self.ticks.iter().any(|tick| from <= tick.0 && tick.1 <= to);
            Measured::of(pairs.filter(|&pair| !has_tick(pair)).collect())
        };
        let half_a_clock = 500_000_000_000 / self.clock_hz.max(1);
        let bytes = message.bytes() / message.selections();
        let bits_us = bytes as f64 * 8e6 / self.clock_hz.max(1) as f64;
        let clocks = || each(&|one| (one.first_clock_at, one.last_clock_at));
        let measured = match measure {
            Measure::Rate => {
                let (from, to) = self.window;
                let scale = (self.calls.len() * message.batch) as f64 * 1e6;
                Measured { scale, is_rate: true, ..Measured::of(vec![(from, to)]) }
            }
            Measure::Call => Measured::of(self.calls.clone()),
            Measure::CsLow => each(&|one| (one.selected_at, one.deselected_at)),
            Measure::CsHigh => between(false),
            Measure::CsToggle => between(true),
            Measure::CsToClock => each(&|one| (one.selected_at, one.first_clock_at + half_a_clock)),
            // A driver may move the line in the last bit's second half.
            Measure::ClockToCs => {
                each(&|one| (one.last_clock_at.min(one.deselected_at), one.deselected_at))
            }
            Measure::Clocks => clocks(),
            Measure::Rests => Measured { less_us: bits_us, ..clocks() },
            Measure::RefillGap => {
                let by_interrupts =
                    own.driver == Driver::Imx && own.path(message).waiting == Waiting::Interrupts;
                let of = |length: &usize| own.refills(*length);
                let refills: usize = message.lengths.iter().map(of).sum();
                let refills = (refills * message.batch / message.selections()) as f64;
                if !by_interrupts || refills == 0.0 || message.lengths.len() > 1 {
                    return None;
                }
                // Words of a byte rest between two in any case: not a refill's.
                let byte_us = self.rest_of_a_byte_us(own, bytes);
                Measured { less_us: bits_us + byte_us, scale: 1.0 / refills, ..clocks() }
            }
            Measure::Processor => return None,
        };
        (!measured.intervals.all.is_empty()).then_some(measured)
    }

    /// What the clock rests between bursts of a byte, in all: two half periods of lag and pause, and the lead's.
    fn rest_of_a_byte_us(&self, own: &OwnExperiment, bytes: usize) -> f64 {
        match own.fifo().word_bytes {
            1 => (bytes - 1) as f64 * 1.5e6 / self.clock_hz.max(1) as f64,
            _ => 0.0,
        }
    }
}

/// The result of a run.
pub struct MessagesRun {
    /// Where the time went.
    pub record: Record,
    /// When.
    pub(crate) timing: Timing,
    /// The steps in which processors were busy.
    pub busy: Parts,
    /// Messages measured.
    pub messages: usize,
    /// The clock that was made.
    pub clock_hz: u64,
    /// Whether every byte came back.
    pub is_right: bool,
    /// The first rule of the wire that was broken, in words.
    pub broken: Option<String>,
}

impl MessagesRun {
    /// From the first message to the one after the last.
    #[must_use]
    pub fn window_ps(&self) -> Ps {
        self.timing.window.1 - self.timing.window.0
    }

    /// The intervals of `measure`.
    #[must_use]
    pub fn measured(
        &self,
        own: &OwnExperiment,
        message: &Message,
        measure: Measure,
    ) -> Option<Measured> {
        self.timing.measured(own, message, measure)
    }
}

struct ClientLoop<'m> {
    machine: &'m Machine,
    kernel: &'m Kernel<'m, AnyHost>,
    own: &'m OwnExperiment,
    message: &'m Message,
    calls: RefCell<Vec<(Ps, Ps)>>,
    ends_at: Cell<Ps>,
    is_right: Cell<bool>,
}

/// How many messages are measured.
fn count(message: &Message) -> usize {
    (SELECTIONS / message.selections()).clamp(PHASES, MESSAGES) / PHASES * PHASES
}

impl ClientLoop<'_> {
    fn call(&self) {
        let Self { machine, own, message, .. } = self;
        if own.client == Client::Spidev {
            let transfers = (message.lengths.len() * message.batch) as f64;
            machine.charge("system call", &["syscall"]);
            machine.charge("spidev", &["spidev"]);
            machine.charge_times("spidev transfer", transfers, &["spidev-transfer"]);
            machine.charge_times("copy", 2.0 * message.bytes() as f64, &["copy"]);
        }
        let last = message.lengths.len() - 1;
        let mut bytes = 0_u8;
        let mut next = |length: usize| {
            let tx: Vec<u8> = (0..length)
                .map(|_| {
                    bytes = bytes.wrapping_add(37);
                    bytes
                })
                .collect();
            Xfer { tx, delay_ns: message.delay_ns, ..Xfer::default() }
        };
        let mut transfers = Vec::new();
        for part in 0..message.batch {
            for (place, &length) in message.lengths.iter().enumerate() {
                let cs_change = message.cs_change && place == last && part + 1 < message.batch;
                transfers.push(Xfer { cs_change, ..next(length) });
            }
        }
        let done = self.kernel.sync(transfers);
        let tx: Vec<u8> = done.iter().flat_map(|xfer| xfer.tx.clone()).collect();
        let rx: Vec<u8> = done.into_iter().flat_map(|xfer| xfer.rx).collect();
        // The echo answers a byte later.
        let is_right = rx.len() == tx.len() && rx[1..] == tx[..tx.len() - 1];
        self.is_right.set(self.is_right.get() && is_right);
    }

    /// The next message begins at `at`, if there is a period.
    fn pause(&self, at: Ps) {
        let machine = self.machine;
        if self.message.every_ps > 0 && machine.now() < at {
            machine.wait("sleep until the next message", false, || {
                machine.board().engine().sleep_until(at);
            });
            machine.charge("leave idle", &["idle-exit"]);
        }
    }

    fn run(&self) {
        let machine = self.machine;
        for _ in 0..WARM_UP {
            self.call();
        }
        machine.board().clear_violations();
        machine.start();
        let mut tick_at = machine.now() + TICK_PS;
        let begun_at = machine.now();
        for nth in 0..count(self.message) {
            self.pause(begun_at + nth as Ps * self.message.every_ps);
            while tick_at <= machine.now() {
                machine.charge("timer tick", &["tick"]);
                tick_at += TICK_PS;
            }
            let from = machine.now();
            self.call();
            self.calls.borrow_mut().push((from, machine.now()));
        }
        self.pause(begun_at + count(self.message) as Ps * self.message.every_ps);
        self.ends_at.set(machine.now());
        self.kernel.stop();
    }
}

/// The machine of an experiment with `costs`.
#[must_use]
pub fn machine(
    own: &OwnExperiment,
    costs: &Rc<Costs>,
    off: &Rc<std::collections::BTreeSet<String>>,
) -> Machine {
    let profile = Some(costs.profile(&own.profile));
    let board = Board::new(own.spec, BoardOptions { profile, ..BoardOptions::default() });
    Machine::new(board, costs.clone(), off.clone())
}

/// Sends `message` through the experiment's path.
///
/// # Panics
/// If the experiment was not made by [`OwnExperiment::read`], which checks board and chip select.
#[must_use]
pub fn run(machine: &Machine, own: &OwnExperiment, message: &Message) -> MessagesRun {
    let board = machine.board();
    board.attach(own.cs, Rc::new(RefCell::new(Echo::default())));
    let host = AnyHost::new(board, own, message);
    let path = own.path(message);
    let kernel = Kernel::new(machine, &host, &path);
    machine.set_cold(own.is_cold(message));
    let client = ClientLoop {
        machine,
        kernel: &kernel,
        own,
        message,
        calls: RefCell::default(),
        ends_at: Cell::new(0),
        is_right: Cell::new(true),
    };
    let mut threads = vec![
        Thread::new("client", || client.run()).on(0, 10),
        Thread::new("pump", || kernel.pump()).on(usize::from(own.processors > 1), 50),
    ];
    threads.extend(host.threads(machine));
    board.engine().run(threads);
    let record = machine.finish();
    let calls = client.calls.take();
    let window = (calls[0].0, client.ends_at.get());
    let ticks = record.times_of("timer tick");
    let (wire, clock_hz) = (record.wire().to_vec(), host.clock_hz());
    let timing = Timing { window, calls, wire, ticks, clock_hz };
    let busy = busy(machine, &record, timing.window);
    let broken = board.violations().first().map(|one| format!("{:?}: {}", one.rule, one.detail));
    MessagesRun {
        busy,
        messages: count(message),
        clock_hz: host.clock_hz(),
        is_right: client.is_right.get(),
        broken,
        record,
        timing,
    }
}

/// The steps in which processors were busy, with switches and the ways into and out of interrupts.
fn busy(machine: &Machine, record: &Record, (from, to): (Ps, Ps)) -> Parts {
    let lanes = record.lanes();
    let lanes: Vec<&str> =
        lanes.iter().map(|lane| &**lane).filter(|lane| !["SDMA", "DMA"].contains(lane)).collect();
    let mut parts = record.busy(&lanes, from, to);
    let threads = machine.threads();
    let entries = record.times_of("interrupt entry");
    let entries = entries.iter().filter(|at| (from..to).contains(&at.0)).count() as u64;
    let exit_ps = machine.board().profile().interrupt_exit_ps.value;
    parts.entry(SWITCHES).or_default().ps += record.switches(&lanes, from, to)
        * threads.context_switch_ps
        + entries * (threads.interrupt_latency_ps + exit_ps);
    parts
}
