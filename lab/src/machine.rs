//! A simulated machine on which a kernel's path runs as named steps, and the record of where its time went.
//!
//! *Read first*: `barewire_sim::engine` for threads and interrupts; [`crate::cost`] for what a step costs.
//!
//! # How it works
//! - A path [charges](Machine::charge) a step: it spends the step's costs on the running simulated thread. A charge
//!   does nothing else, so it can be switched off.
//! - Work that must happen, register accesses above all, runs inside [`Machine::step`]. It cannot be switched off.
//! - A waiting thread names the reason: [`Machine::wait`].
//! - Each of these leaves a span. [`Record::attribute`] gives every instant of an interval to exactly one of them, so
//!   the steps of a figure add up to the figure.
//!
//! # Which span has an instant
//! 1. A step of a thread that the measured work waits for; of several the one begun last, so that the inner one wins.
//! 2. The wire, if only waits are left and a chip's clocks run.
//! 3. What the thread waits for: an interrupt, a wake-up, a switch.
//! 4. A step in the background, which nothing measured waits for.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

use barewire_sim::chip::Ps;
use barewire_sim::engine;
use barewire_sim::{Board, Selection};

use crate::cost::{Amount, Costs};
use crate::regime::Regime;

/// How a span takes part in the attribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Background,
    Wait,
    Work,
}

/// The work done in a span, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expense {
    /// Instructions, as counted, before the temperature makes them longer.
    pub instructions: f64,
    /// Register reads.
    pub reads: u64,
    /// Register writes.
    pub writes: u64,
    /// Threads woken.
    pub wakes: u64,
}

/// Only wakes a thread.
const WAKE: Expense = Expense { instructions: 0.0, reads: 0, writes: 0, wakes: 1 };

/// Work that must happen: its class, that the processor is busy, and that it cannot be switched off.
const WORK: (Class, bool, bool) = (Class::Work, true, false);
/// Work that can be switched off.
const REMOVABLE: (Class, bool, bool) = (Class::Work, true, true);

#[derive(Clone, Debug)]
struct Span {
    lane: Rc<str>,
    step: &'static str,
    from: Ps,
    to: Ps,
    class: Class,
    /// The processor is busy in it.
    busy: bool,
    spent: Expense,
    removable: bool,
}

/// A step's part of an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// Its time.
    pub ps: Ps,
    /// How often it was met.
    pub times: u64,
    /// The work done in it.
    pub spent: Expense,
    /// Whether it can be switched off.
    pub removable: bool,
}

impl Part {
    /// Adds another part of the same step, `times` over.
    pub(crate) fn add(&mut self, other: &Self, times: u64) {
        self.ps += times * other.ps;
        self.times += times * other.times;
        self.spent.instructions += times as f64 * other.spent.instructions;
        self.spent.reads += times * other.spent.reads;
        self.spent.writes += times * other.spent.writes;
        self.spent.wakes += times * other.spent.wakes;
        self.removable |= other.removable;
    }
}

/// The spans of a run.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The spans, sorted by their ends once the run is over.
    spans: Vec<Span>,
    /// The earliest beginning of the span at the same place and all after it.
    begins: Vec<Ps>,
    wire: Vec<Selection>,
}

/// The steps of an interval.
pub type Parts = BTreeMap<&'static str, Part>;

/// Adds the parts of another interval, `times` over.
pub(crate) fn add_parts(into: &mut Parts, parts: &Parts, times: u64) {
    for (step, part) in parts {
        into.entry(step).or_default().add(part, times);
    }
}

/// A lane, its step there, from and to.
pub type Piece = (Rc<str>, &'static str, Ps, Ps);

/// The lane of the wire.
const WIRE: &str = "wire";
/// An instant that no span has: between a wake-up and the thread's first step.
const BETWEEN: &str = "wake-up and switch";

impl Record {
    fn new(mut spans: Vec<Span>, wire: Vec<Selection>) -> Self {
        spans.sort_by_key(|span| span.to);
        let mut begins: Vec<Ps> = spans.iter().map(|span| span.from).collect();
        for place in (1..begins.len()).rev() {
            begins[place - 1] = begins[place - 1].min(begins[place]);
        }
        Self { spans, begins, wire }
    }

    /// The spans that have a part of the time between `from` and `to`.
    fn within(&self, from: Ps, to: Ps) -> Vec<&Span> {
        let first = self.spans.partition_point(|span| span.to <= from);
        let all = self.spans[first..].iter().zip(&self.begins[first..]);
        all.take_while(|(_, begins)| **begins < to)
            .map(|(span, _)| span)
            .filter(|span| span.from < to)
            .collect()
    }

    /// The steps of the interval from `from` to `to`, which add up to it, and its stretches in order.
    #[must_use]
    pub fn attribute(&self, from: Ps, to: Ps) -> (Parts, Vec<Piece>) {
        let wire: Rc<str> = WIRE.into();
        let spans = self.within(from, to);
        let first = self.wire.partition_point(|one| one.last_clock_at <= from);
        let clocks = self.wire[first..].iter().map(|one| (one.first_clock_at, one.last_clock_at));
        let clocks: Vec<(Ps, Ps)> = clocks.take_while(|&(first, _)| first < to).collect();
        let mut edges: Vec<Ps> = spans.iter().flat_map(|span| [span.from, span.to]).collect();
        edges.extend(clocks.iter().flat_map(|&(a, b)| [a, b]));
        edges.extend([from, to]);
        edges.retain(|&at| (from..=to).contains(&at));
        edges.sort_unstable();
        edges.dedup();
        let mut parts = Parts::new();
        let mut stretches: Vec<Piece> = Vec::new();
        let mut begins: Vec<usize> = (0..spans.len()).collect();
        begins.sort_by_key(|&place| spans[place].from);
        let mut begins = begins.into_iter().peekable();
        let mut clocks = clocks.into_iter().peekable();
        let mut open: Vec<usize> = Vec::new();
        for pair in edges.windows(2) {
            let [a, b] = [pair[0], pair[1]];
            while let Some(place) = begins.next_if(|&place| spans[place].from <= a) {
                open.push(place);
            }
            open.retain(|&place| spans[place].to >= b);
            while clocks.next_if(|&(_, last)| last <= a).is_some() {}
            let clocked = clocks.peek().is_some_and(|&(first, _)| first <= a);
            let top =
                open.iter().max_by_key(|&&place| (spans[place].class, spans[place].from, place));
            let (lane, step) = match top.map(|&place| spans[place]) {
                Some(span) if span.class == Class::Work => (&span.lane, span.step),
                _ if clocked => (&wire, WIRE),
                Some(span) => (&span.lane, span.step),
                None => (&wire, BETWEEN),
            };
            parts.entry(step).or_default().ps += b - a;
            match stretches.last_mut() {
                Some(last) if last.0 == *lane && last.1 == step && last.3 == a => last.3 = b,
                _ => stretches.push((lane.clone(), step, a, b)),
            }
        }
        for span in spans {
            // What a step spent counts where it ended.
            if let Some(part) = parts.get_mut(span.step)
                && (from..=to).contains(&span.to)
                && span.class != Class::Wait
            {
                let Span { spent, removable, .. } = *span;
                part.add(&Part { ps: 0, times: 1, spent, removable }, 1);
            }
        }
        (parts, stretches)
    }

    /// The steps in which the threads `lanes` kept a processor busy between `from` and `to`, each thread on its own.
    #[must_use]
    pub fn busy(&self, lanes: &[&str], from: Ps, to: Ps) -> Parts {
        let mut parts = Parts::new();
        for lane in lanes {
            let spans = self
                .spans
                .iter()
                .filter(|span| span.busy && &*span.lane == *lane)
                .cloned()
                .collect();
            let (mut of_lane, _) = Self::new(spans, Vec::new()).attribute(from, to);
            of_lane.remove(BETWEEN);
            add_parts(&mut parts, &of_lane, 1);
        }
        parts
    }

    /// How often the threads `lanes` gave up their processor between `from` and `to`.
    #[must_use]
    pub fn switches(&self, lanes: &[&str], from: Ps, to: Ps) -> u64 {
        let slept =
            |span: &&Span| span.class == Class::Wait && !span.busy && lanes.contains(&&*span.lane);
        self.spans.iter().filter(slept).filter(|span| (from..=to).contains(&span.to)).count() as u64
    }

    /// The beginnings and ends of a step, in order.
    #[must_use]
    pub fn times_of(&self, step: &str) -> Vec<(Ps, Ps)> {
        self.spans
            .iter()
            .filter(|span| span.step == step)
            .map(|span| (span.from, span.to))
            .collect()
    }

    /// The selections on the wire, oldest first.
    #[must_use]
    pub fn wire(&self) -> &[Selection] {
        &self.wire
    }

    /// The threads that left spans.
    #[must_use]
    pub fn lanes(&self) -> BTreeSet<Rc<str>> {
        self.spans.iter().map(|span| span.lane.clone()).collect()
    }
}

/// A board with costs and a record: a handle; all its clones are one machine.
#[derive(Clone)]
pub struct Machine {
    board: Board,
    costs: Rc<Costs>,
    off: Rc<BTreeSet<String>>,
    record: Rc<RefCell<Vec<Span>>>,
    /// Whether the code that runs now is cold.
    regime: Rc<Cell<Regime>>,
    /// The kernel's scheduler beside the counted one, in instructions.
    scheduler: Rc<Cell<f64>>,
    /// The background spans that the running thread has open.
    background: Rc<RefCell<BTreeSet<Rc<str>>>>,
}

impl Machine {
    /// A machine of `board`, which has been built with the profile that [`Costs::profile`] made; the steps in `off`
    /// cost nothing.
    #[must_use]
    pub fn new(board: Board, costs: Rc<Costs>, off: Rc<BTreeSet<String>>) -> Self {
        let machine = Self {
            board,
            costs,
            off,
            record: Rc::default(),
            regime: Rc::default(),
            scheduler: Rc::new(Cell::new(1.0)),
            background: Rc::default(),
        };
        machine.set_cold(false);
        machine
    }

    /// The costs of threads: a kernel's wake-ups and switches are instructions. They are never cold, since the scheduler
    /// runs at every tick and interrupt.
    #[must_use]
    pub fn threads(&self) -> engine::Costs {
        let profile = self.board.profile();
        let instruction_ps = self.costs.instruction_ps(profile, Regime::InALoop);
        let scheduler = self.scheduler.get();
        let warm = |name| (self.costs.get(name) * scheduler * instruction_ps).round() as Ps;
        engine::Costs {
            context_switch_ps: warm("context-switch"),
            wake_call_ps: warm("wake"),
            wake_ps: (self.costs.get("wake-other") * 1e3) as Ps,
            futex_call_ps: self.instructions_ps(50.0).max(1),
            ..profile.thread_costs()
        }
    }

    /// The board.
    #[must_use]
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// The costs.
    #[must_use]
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Wake-ups and switches take `by` times as many instructions as those that were counted.
    pub fn set_scheduler(&self, by: f64) {
        self.scheduler.set(by);
        self.board.engine().set_costs(self.threads());
    }

    /// From now on code runs that was not run a moment ago: see the cost `cold`. A switch of threads costs what it does
    /// when the engine's run begins.
    pub fn set_cold(&self, cold: bool) {
        self.regime.set(if cold { Regime::AfterIdle } else { Regime::InALoop });
        self.board.engine().set_costs(self.threads());
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Ps {
        self.board.engine().now_ps()
    }

    fn lane(&self) -> Rc<str> {
        self.board.engine().running_name().unwrap_or_else(|| "outside".into())
    }

    /// Whether a step is switched off.
    #[must_use]
    pub fn is_off(&self, step: &str) -> bool {
        self.off.contains(step)
    }

    /// Marks the beginning or the end of work of the running thread that no measured operation
    /// waits for.
    pub fn set_background(&self, background: bool) {
        let lane = self.lane();
        let mut set = self.background.borrow_mut();
        if background {
            set.insert(lane)
        } else {
            set.remove(&lane)
        };
    }

    fn accesses(&self) -> (u64, u64) {
        let counts = self.board.access_counts();
        counts.iter().fold((0, 0), |(reads, writes), one| (reads + one.reads, writes + one.writes))
    }

    /// Runs `body` as a span of the running thread. `body` returns how the time was spent.
    fn span<R>(
        &self,
        step: &'static str,
        (class, busy, removable): (Class, bool, bool),
        body: impl FnOnce() -> (R, Expense),
    ) -> R {
        let (lane, from) = (self.lane(), self.now());
        let (result, spent) = body();
        let class = match class {
            Class::Work if self.background.borrow().contains(&lane) => Class::Background,
            class => class,
        };
        let span = Span { lane, step, from, to: self.now(), class, busy, spent, removable };
        self.record.borrow_mut().push(span);
        result
    }

    /// Spends the costs called `names` as the step `step`, `times` over.
    pub fn charge_times(&self, step: &'static str, times: f64, names: &[&'static str]) {
        if self.is_off(step) || times <= 0.0 {
            return;
        }
        self.span(step, REMOVABLE, || {
            let mut spent = Expense::default();
            for name in names {
                match self.costs.amount(name) {
                    Amount::Instructions(count) => {
                        spent.instructions += count * times;
                        self.board.engine().spend_ps(self.instructions_ps(count * times));
                    }
                    Amount::Ps(ps) => self.board.engine().spend_ps((ps * times).round() as Ps),
                }
            }
            ((), spent)
        });
    }

    /// Spends the costs called `names` once, as the step `step`.
    pub fn charge(&self, step: &'static str, names: &[&'static str]) {
        self.charge_times(step, 1.0, names);
    }

    fn instructions_ps(&self, count: f64) -> Ps {
        (count * self.costs.instruction_ps(self.board.profile(), self.regime.get())).round() as Ps
    }

    /// Work that must happen.
    pub fn step<R>(&self, step: &'static str, work: impl FnOnce() -> R) -> R {
        self.span(step, WORK, || {
            let (reads, writes) = self.accesses();
            let result = work();
            let (reads_now, writes_now) = self.accesses();
            let (reads, writes) = (reads_now - reads, writes_now - writes);
            (result, Expense { reads, writes, ..Expense::default() })
        })
    }

    /// Wakes a thread as the step `step`; `wake` makes the engine's call.
    pub fn waking(&self, step: &'static str, wake: impl FnOnce()) {
        self.span(step, WORK, || (wake(), WAKE));
    }

    /// Wakes a thread that has nothing to do, so that the step can be switched off.
    pub fn waking_idly(&self, step: &'static str, wake: impl FnOnce()) {
        if !self.is_off(step) {
            self.span(step, REMOVABLE, || (wake(), WAKE));
        }
    }

    /// Spends `ps` that the path itself states, as the step `step`.
    pub fn delay(&self, step: &'static str, ps: Ps) {
        if !self.is_off(step) {
            self.span(step, REMOVABLE, || (self.board.engine().spend_ps(ps), Expense::default()));
        }
    }

    /// Runs `wait` as a span. The processor is `busy` meanwhile, or free for other threads.
    pub fn wait<R>(&self, what: &'static str, busy: bool, wait: impl FnOnce() -> R) -> R {
        self.span(what, (Class::Wait, busy, false), || (wait(), Expense::default()))
    }

    /// Begins to note the wire.
    pub fn start(&self) {
        self.board.start_selections();
        self.record.borrow_mut().clear();
    }

    /// Ends, with the record.
    #[must_use]
    pub fn finish(&self) -> Record {
        Record::new(self.record.take(), self.board.take_selections())
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").field("board", &self.board).finish_non_exhaustive()
    }
}
