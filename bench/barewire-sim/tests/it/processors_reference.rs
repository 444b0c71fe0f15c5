//! The engine's processors against a scheduler that goes picosecond by picosecond.

use std::cell::RefCell;

use barewire_sim::engine::{Costs, Engine, Thread};
use proptest::prelude::*;

const SWITCH_PS: u64 = 3;

/// A thread that sleeps and works by turns.
#[derive(Clone, Debug)]
struct Plan {
    cpu: usize,
    priority: u8,
    /// How long to sleep, then how long to work.
    steps: Vec<(u64, u64)>,
}

fn plan() -> impl Strategy<Value = Plan> {
    let steps = prop::collection::vec((0..40_u64, 0..30_u64), 1..6);
    (0..2_usize, 0..4_u8, steps).prop_map(|(cpu, priority, steps)| Plan { cpu, priority, steps })
}

/// When each step of each thread is done.
type Done = Vec<(u64, usize)>;

fn on_the_engine(plans: &[Plan]) -> Done {
    let engine = Engine::new();
    engine.set_costs(Costs {
        context_switch_ps: SWITCH_PS,
        futex_call_ps: 0,
        irq_thread_ps: 0,
        ..Costs::default()
    });
    let done = RefCell::new(Vec::new());
    let threads = plans.iter().enumerate().map(|(index, plan)| {
        let (engine, done) = (&engine, &done);
        let body = move || {
            for &(sleep, work) in &plan.steps {
                engine.sleep_until(engine.now_ps() + sleep);
                engine.spend_ps(work);
                done.borrow_mut().push((engine.now_ps(), index));
            }
        };
        Thread::new("planned", body).on(plan.cpu, plan.priority)
    });
    engine.run(threads.collect());
    done.into_inner()
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Ready,
    Runs,
    Sleeps { until: u64 },
    Ended,
}

/// A thread of the reference.
struct Task {
    state: State,
    turn: u64,
    slept: bool,
    left: u64,
    /// Steps begun, and whether the current one's sleep is over.
    step: usize,
    awake: bool,
}

struct Reference<'a> {
    plans: &'a [Plan],
    tasks: Vec<Task>,
    context: [Option<usize>; 2],
    turns: u64,
    done: Done,
}

impl Reference<'_> {
    fn dispatch(&mut self) {
        for cpu in 0..2 {
            let here = |index: &usize| self.plans[*index].cpu == cpu;
            let all = || (0..self.tasks.len()).filter(here);
            let runs = all().find(|&index| self.tasks[index].state == State::Runs);
            let ready = all().filter(|&index| self.tasks[index].state == State::Ready);
            let rank = |index: usize| {
                (self.plans[index].priority, std::cmp::Reverse(self.tasks[index].turn))
            };
            let Some(best) = ready.max_by_key(|&index| rank(index)) else { continue };
            if let Some(runs) = runs {
                if self.plans[runs].priority >= self.plans[best].priority {
                    continue;
                }
                self.tasks[runs].state = State::Ready;
            }
            let task = &mut self.tasks[best];
            if task.slept || self.context[cpu].is_some_and(|context| context != best) {
                task.left += SWITCH_PS;
            }
            task.slept = false;
            task.state = State::Runs;
            self.context[cpu] = Some(best);
        }
    }

    /// Acts until something takes time.
    fn act(&mut self, index: usize, now: u64) {
        loop {
            let task = &mut self.tasks[index];
            let Some(&(sleep, work)) = self.plans[index].steps.get(task.step) else {
                task.state = State::Ended;
                break;
            };
            if !task.awake {
                task.awake = true;
                if sleep > 0 {
                    self.turns += 1;
                    (task.turn, task.slept) = (self.turns, true);
                    task.state = State::Sleeps { until: now + sleep };
                    break;
                }
            }
            if task.left == 0 && work > 0 {
                task.left = work;
                // Its end is the next time it acts.
                task.awake = false;
                task.step += 1;
                return;
            }
            task.awake = false;
            task.step += 1;
            self.done.push((now, index));
        }
        self.dispatch();
    }

    fn run(mut self) -> Done {
        self.dispatch();
        let mut working = vec![false; self.tasks.len()];
        for now in 0.. {
            let mut roused = false;
            for index in 0..self.tasks.len() {
                if self.tasks[index].state == (State::Sleeps { until: now }) {
                    self.turns += 1;
                    self.tasks[index].turn = self.turns;
                    self.tasks[index].state = State::Ready;
                    roused = true;
                }
            }
            if roused {
                self.dispatch();
            }
            // Of those due the lowest acts, and may make others due.
            while let Some(index) = (0..self.tasks.len()).find(|&index| {
                self.tasks[index].state == State::Runs && self.tasks[index].left == 0
            }) {
                if std::mem::take(&mut working[index]) {
                    self.done.push((now, index));
                }
                self.act(index, now);
                working[index] = self.tasks[index].state == State::Runs;
            }
            if self.tasks.iter().all(|task| task.state == State::Ended) {
                return self.done;
            }
            for task in &mut self.tasks {
                if task.state == State::Runs {
                    task.left -= 1;
                }
            }
        }
        unreachable!()
    }
}

fn by_the_reference(plans: &[Plan]) -> Done {
    let task = |turn: usize| Task {
        state: State::Ready,
        turn: turn as u64,
        slept: false,
        left: 0,
        step: 0,
        awake: false,
    };
    let tasks: Vec<Task> = (0..plans.len()).map(task).collect();
    let turns = tasks.len() as u64;
    Reference { plans, tasks, context: [None; 2], turns, done: Vec::new() }.run()
}

proptest! {
    #[test]
    fn every_step_is_done_when_the_reference_says(plans in prop::collection::vec(plan(), 1..6)) {
        prop_assert_eq!(on_the_engine(&plans), by_the_reference(&plans));
    }
}
