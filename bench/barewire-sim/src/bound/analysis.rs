//! The bound: response-time analysis of a bus that promises how often a message is overtaken and how many a holder
//! serves.
//!
//! # How it works
//! A call of task *i* meets one of four cases; its bound is the worst of them.
//!
//! | case | what passes from call to return |
//! |---|---|
//! | *queued* | the message on the wire; those queued before it of its priority or higher; those of higher priority that overtake it; its own, run by the holder; its wake-up |
//! | *holder* | the bus is idle, or becomes so as the call looks: its own message, then those of others that came meanwhile, which it serves before it returns |
//! | *turn* | as *queued*, but the task waits for the bus itself (a lock; a message that only the controller can plan), and then serves as a holder |
//! | *handed over* | as *queued*, but the holder had served its share and hands the bus over: a wake-up with an idle bus, its own message, and those that it serves |
//!
//! With priority inheritance a holder runs no message of others. A call then waits for the message on the wire,
//! whose task inherits the priority; for all messages of higher priority that arrive while it waits; for one
//! message of each task of its own priority; and for a wake-up each.
//!
//! How many messages come in a time is bounded by the tasks' periods, and by how late their jobs may run: the bounds
//! are the least fixed point of each other, found by iteration (Joseph and Pandya, 1986; Audsley and others, 1993).

use super::cost::{Cost, Costs};
use super::{Path, Traffic, wake_up_ps};
use crate::Board;
use crate::chip::{PS_PER_S, Ps};

/// The most messages of higher priority, submitted later, that run before a message: promise 5.
const OVERTAKERS_MAX: u64 = 16;
/// The most messages of others that a holder runs before it hands the bus over: promise 5. Twice as
/// many if there are urgent ones among them, which do not wait for the next holder to wake up.
const SERVED_MAX: u64 = 16;
/// Instructions that a message's way through the queue takes, which the simulator does not charge. Counted: 233 for a
/// message of a batch and 139 for one of sync (`tests/snapshots/instructions.txt`); twice the difference, for the
/// paths that a batch does not take.
const QUEUE_INSTRUCTIONS: u64 = 188;
/// A larger sum counts as no bound.
const LIMIT_PS: Ps = 10 * PS_PER_S;
const US: Ps = 1_000_000;

/// What a bound is the sum of, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The task's own call on an idle bus.
    pub own_ps: Ps,
    /// The message on the wire when it calls.
    pub blocking_ps: Ps,
    /// Messages queued before it that go first.
    pub ahead_ps: Ps,
    /// Messages of higher priority that come later and go first.
    pub overtakers_ps: Ps,
    /// Messages of others that it runs before it returns.
    pub served_ps: Ps,
    /// Wake-ups and the calls that make them.
    pub wake_ups_ps: Ps,
    /// The interruptions of the task, or of the task that holds the bus.
    pub interrupts_ps: Ps,
}

impl Terms {
    /// Their sum.
    #[must_use]
    pub fn sum_ps(&self) -> Ps {
        self.named().iter().map(|(_, ps)| ps).sum()
    }

    /// The terms, named.
    #[must_use]
    pub fn named(&self) -> [(&'static str, Ps); 7] {
        [
            ("own", self.own_ps),
            ("blocking", self.blocking_ps),
            ("ahead", self.ahead_ps),
            ("overtakers", self.overtakers_ps),
            ("served", self.served_ps),
            ("wake-ups", self.wake_ups_ps),
            ("interrupts", self.interrupts_ps),
        ]
    }

    /// The largest term.
    #[must_use]
    pub fn largest(&self) -> (&'static str, Ps) {
        self.named().into_iter().max_by_key(|&(_, ps)| ps).unwrap_or_default()
    }
}

/// The bound of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// No call takes longer.
    Within(Terms),
    /// There is no bound, for this reason.
    None(String),
}

/// The bounds of all tasks, and the costs of each one's dearest call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analysis {
    /// In the order of [`Traffic::tasks`].
    pub bounds: Vec<Bound>,
    /// The dearest call of each task.
    pub calls: Vec<Cost>,
}

/// A task, as the analysis sees it.
struct TaskTimes {
    priority: u8,
    period: Ps,
    calls: u64,
    /// The longest time for which one of its calls has the bus, including its way through the
    /// queue.
    call: Ps,
    /// The longest time for which it keeps the bus from others. In a turn it already has the bus
    /// while it wakes up.
    foreign: Ps,
    /// Whether one of its calls is a turn.
    is_turn: bool,
}

/// The analysis of `traffic` on `board`, whose calls and interruptions [cost](super::cost::of) that.
#[must_use]
pub fn of(traffic: &Traffic, board: &Board, costs: &Costs) -> Analysis {
    let Costs { calls: costs, extensions } = costs;
    let queue = QUEUE_INSTRUCTIONS * instruction_ps(board);
    let dearest = |calls: &Vec<Cost>| calls.iter().copied().max_by_key(|cost| cost.call_ps);
    let calls: Vec<_> = costs.iter().map(|calls| dearest(calls).unwrap_or_default()).collect();
    let tasks: Vec<_> = (traffic.tasks.iter().zip(costs).zip(&calls))
        .map(|((task, costs), dearest)| {
            let (call, is_turn) = (dearest.call_ps + queue, costs.iter().any(|cost| cost.is_turn));
            TaskTimes {
                priority: task.priority,
                period: task.period_us * US,
                calls: costs.len() as u64,
                call,
                foreign: call + if is_turn { wake_up_ps(board) } else { 0 },
                is_turn,
            }
        })
        .collect();
    let system = System { traffic, board, tasks, extensions };
    let bounds = match system.overload() {
        Some(why) => traffic.tasks.iter().map(|_| Bound::None(why.clone())).collect(),
        None => system.fixed_point(),
    };
    Analysis { bounds, calls }
}

fn instruction_ps(board: &Board) -> Ps {
    let profile = board.profile();
    let rate = u128::from(profile.cpu_hz.value) * u128::from(profile.ipc_milli.value) / 1_000;
    (u128::from(PS_PER_S).div_ceil(rate.max(1))) as Ps
}

struct System<'t> {
    traffic: &'t Traffic,
    board: &'t Board,
    tasks: Vec<TaskTimes>,
    /// For each interruption, the delay that it adds to the interrupted call.
    extensions: &'t [Ps],
}

impl System<'_> {
    /// Why the bus, or a processor, is never idle.
    fn overload(&self) -> Option<String> {
        let share = |busy: Ps, period: Ps| busy as f64 / period.max(1) as f64;
        let load: f64 =
            self.tasks.iter().map(|task| share(task.calls * task.call, task.period)).sum();
        let interrupts: f64 = (self.traffic.interruptions.iter())
            .zip(self.extensions)
            .map(|(it, &extension)| share(extension, it.period_us * US))
            .sum();
        (load + interrupts >= 1.0).then(|| {
            format!("messages and interrupts take {:.0} % of all time", (load + interrupts) * 100.0)
        })
    }

    /// The bounds of all tasks, each found from how late the others may be.
    fn fixed_point(&self) -> Vec<Bound> {
        let mut latest: Vec<Ps> = self.tasks.iter().map(|task| task.call).collect();
        loop {
            let bounds: Vec<_> =
                (0..self.tasks.len()).map(|task| self.bound(task, &latest)).collect();
            let sums = bounds.iter().map(|bound| match bound {
                Bound::Within(terms) => terms.sum_ps(),
                Bound::None(_) => LIMIT_PS,
            });
            // Upwards only, so that it ends.
            let next: Vec<_> = sums.zip(&latest).map(|(sum, &before)| sum.max(before)).collect();
            if next == latest {
                return bounds;
            }
            latest = next;
        }
    }

    fn bound(&self, own: usize, latest: &[Ps]) -> Bound {
        let mut window = self.tasks[own].call;
        loop {
            let terms = self.terms(own, window, latest);
            let sum = terms.sum_ps();
            if sum >= LIMIT_PS {
                let name = &self.traffic.tasks[own].name;
                return Bound::None(format!(
                    "{name} may wait longer than {} s: others keep the bus busy",
                    LIMIT_PS / PS_PER_S
                ));
            }
            if sum <= window {
                return Bound::Within(terms);
            }
            window = sum;
        }
    }

    /// The most calls of a task that can be pending in an interval of that length: the calls of each job that
    /// begins in it, or that has not ended when it begins.
    fn arrivals(&self, task: usize, window: Ps, latest: &[Ps]) -> u64 {
        let it = &self.tasks[task];
        let job = it.calls * latest[task];
        (window + job).div_ceil(it.period.max(1)) * it.calls
    }

    /// Takes the `most` dearest of these calls away. Returns their sum, and how many there were.
    fn take_dearest(calls: &mut [(Ps, u64)], most: u64) -> (Ps, u64) {
        calls.sort_unstable_by_key(|&(ps, _)| std::cmp::Reverse(ps));
        let (mut sum, mut left) = (0, most);
        for (ps, count) in calls {
            let taken = left.min(*count);
            sum += *ps * taken;
            (left, *count) = (left - taken, *count - taken);
        }
        (sum, most - left)
    }

    fn terms(&self, own: usize, window: Ps, latest: &[Ps]) -> Terms {
        let costs = self.board.engine().costs();
        let me = &self.tasks[own];
        let others: Vec<_> = (0..self.tasks.len()).filter(|&task| task != own).collect();
        let call = |task: usize| self.tasks[task].foreign;
        let is_higher = |task: usize| self.tasks[task].priority > me.priority;
        let goes_first = |task: usize| self.tasks[task].priority >= me.priority;
        let urgent = others.iter().any(|&task| self.tasks[task].priority > 0);
        let wake_up = wake_up_ps(self.board) + costs.futex_call_ps;
        let base = Terms {
            own_ps: me.call,
            interrupts_ps: self.interrupts_ps(window),
            ..Terms::default()
        };

        // The task whose message is on the wire decides which messages are ahead.
        let ahead_of = |blocker: usize| {
            let ahead = others.iter().filter(move |&&task| task != blocker && goes_first(task));
            ahead.copied().collect::<Vec<_>>()
        };
        let sum = |tasks: &[usize]| tasks.iter().map(|&task| call(task)).sum::<Ps>();
        let worst = others.iter().max_by_key(|&&task| call(task) + sum(&ahead_of(task)));
        let Some(&blocker) = worst else { return base };
        let ahead = ahead_of(blocker);
        // `base` and `ahead` already contain one call of the blocker and of each task ahead.
        let later = |task: usize| {
            let counted = task == blocker || ahead.contains(&task);
            (call(task), self.arrivals(task, window, latest) - u64::from(counted))
        };
        let later_of = |higher: bool| {
            let tasks = others.iter().copied().filter(|&task| is_higher(task) == higher);
            tasks.map(later).collect::<Vec<_>>()
        };
        let (mut higher, mut left) = (later_of(true), later_of(false));

        if self.traffic.inheritance {
            let (overtakers, count) = Self::take_dearest(&mut higher, u64::MAX);
            let woken = ahead.len() as u64 + count + 1;
            return Terms {
                blocking_ps: call(blocker),
                ahead_ps: sum(&ahead),
                overtakers_ps: overtakers,
                wake_ups_ps: woken * (wake_up + costs.wake_call_ps),
                ..base
            };
        }

        let (overtakers, overtaker_count) = Self::take_dearest(&mut higher, OVERTAKERS_MAX);
        left.append(&mut higher);
        // A message of lower priority that was overtaken the allowed number of times goes first.
        let all: u64 = others.iter().map(|&task| self.arrivals(task, window, latest)).sum();
        let lower: Vec<_> = others.iter().copied().filter(|&task| !goes_first(task)).collect();
        let lower = if all > OVERTAKERS_MAX { lower } else { Vec::new() };
        let foreign = 1 + (ahead.len() + lower.len()) as u64 + overtaker_count;
        // An urgent holder hands the bus over at once. The next holder runs its share of messages and hands it over,
        // and so on. The bus is idle while the next holder wakes up.
        let hand_overs = u64::from(urgent) + foreign / SERVED_MAX;
        // A waker's call comes while it has the bus.
        let wakes = foreign * costs.wake_call_ps;
        let to_others = if others.len() > 1 { hand_overs } else { 0 };
        let queued = Terms {
            blocking_ps: call(blocker),
            ahead_ps: sum(&ahead) + sum(&lower),
            overtakers_ps: overtakers,
            wake_ups_ps: wakes + (1 + to_others) * wake_up,
            ..base
        };
        let served_max = if urgent { 2 * SERVED_MAX } else { SERVED_MAX };
        // The holder of an urgent message leaves queued messages to others; the holder of a lock
        // runs them.
        let is_lock = self.traffic.tasks[own].path == Path::Lock;
        let serves_after_turn = me.is_turn && (me.priority == 0 || is_lock);
        let (served, count) = Self::take_dearest(&mut left, served_max);
        // The last of the wake-up calls may be for the next holder.
        let handed = Terms {
            served_ps: served,
            wake_ups_ps: wakes + hand_overs * wake_up + (count + 1) * costs.wake_call_ps,
            ..queued
        };
        let turn = match serves_after_turn {
            true => Terms {
                served_ps: served,
                wake_ups_ps: queued.wake_ups_ps + (count + 1) * costs.wake_call_ps,
                ..queued
            },
            false => queued,
        };
        let come = |&task: &usize| (call(task), self.arrivals(task, window, latest));
        let (served, count) =
            Self::take_dearest(&mut others.iter().map(come).collect::<Vec<_>>(), served_max);
        let wake_ups_ps = (count + 1) * costs.wake_call_ps;
        let holder = Terms { served_ps: served, wake_ups_ps, ..base };
        let cases = [turn, holder, if hand_overs > 0 { handed } else { queued }];
        cases.into_iter().max_by_key(Terms::sum_ps).unwrap_or(base)
    }

    /// The time that all interruptions take in a window of that length.
    fn interrupts_ps(&self, window: Ps) -> Ps {
        let all = self.traffic.interruptions.iter().zip(self.extensions);
        all.map(|(it, extension)| (window / (it.period_us * US).max(1) + 1) * extension).sum()
    }
}
