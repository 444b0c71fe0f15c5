//! The bus under randomised schedulers: larger mixes than the model checker can exhaust, two
//! million schedules of them.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p barewire --release --test shuttle`
//!
//! Four kinds of runs:
//! 1. random schedules of threads;
//! 2. strict priorities, under which a spin for a lower thread never ends ([`strict`]);
//! 3. wake-ups that run the woken task at once, nested in the waker ([`nested`]);
//! 4. a controller's interrupt that comes between any two atomics ([`strict`], *Interrupts*).
//!
//! A failing schedule of the first kind is printed, and replayed by `shuttle::replay`. A failing
//! schedule under strict priorities prints its seed: see [`strict`].
#![cfg(shuttle)]

#[path = "mixes/mod.rs"]
mod mixes;
#[path = "shuttle/nested.rs"]
mod nested;
#[path = "ops/mod.rs"]
mod ops;
#[path = "platform/mod.rs"]
mod platform;
#[path = "shuttle/sleep.rs"]
mod sleep;
#[path = "shuttle/strict.rs"]
mod strict;
#[path = "wire/mod.rs"]
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Wake;

use shuttle::future::block_on;
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::RandomScheduler;
use shuttle::sync::mpsc;
use shuttle::thread::{self, JoinHandle};
use shuttle::{Config, Runner};

use barewire::bus::Pump;
use mixes::{Client, LeakedBus, model_bus};
use ops::Op::{
    self, Abandon, Async, Await, Cancel, Enqueue, Lock, Prepared, Race, Statistics, Sync, Transact,
    Try, Wait,
};
use platform::Threads;
use sleep::{PARK, PARK_INHERITING, Shuttle};
use strict::{Priorities, Strict};

/// What threads do.
const THREADS: [Op; 13] = [
    Prepared, Sync, Async, Lock, Cancel, Enqueue, Wait, Transact, Await, Try, Statistics, Race,
    Abandon,
];
/// The operations of tasks: mostly those that can be awaited. They go from thread to thread, and
/// messages of two threads are in no order: so they leave nothing in the queue.
const TASKS: [Op; 14] = [
    Transact, Transact, Transact, Await, Await, Await, Sync, Prepared, Lock, Cancel, Wait, Try,
    Race, Abandon,
];

/// Schedules of a test: its share of two million, or of `BAREWIRE_SCHEDULES`.
fn schedules(percent: usize) -> usize {
    let all = std::env::var("BAREWIRE_SCHEDULES").ok();
    let all: usize = all.map_or(2_000_000, |all| all.parse().expect("a number of schedules"));
    (all * percent).div_ceil(100)
}

/// Up to `ops` random ones of `kinds`.
fn draw(kinds: &[Op], ops: usize) -> Vec<Op> {
    (0..thread_rng().gen_range(1..=ops))
        .map(|_| kinds[thread_rng().gen_range(0..kinds.len())])
        .collect()
}

/// The bus's worker thread, if it is to have one.
struct Server {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

impl Server {
    fn spawn(bus: LeakedBus, pump: Pump) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread =
            (pump == Pump::Worker).then(|| thread::spawn(move || bus.get().serve(&stopped)));
        Self { stop, thread }
    }

    /// Ends it. Returns how many messages it ran.
    fn stop(self, bus: LeakedBus) -> u64 {
        self.stop.store(true, Ordering::SeqCst);
        bus.get().ring();
        self.thread.map_or(0, |thread| thread.join().expect("no panic"))
    }
}

/// The controller's interrupt handler: it looks at what was counted, locks the bus if that is idle, and goes
/// on with the queue.
fn handle_interrupt(bus: LeakedBus) -> bool {
    ops::assert_one_moment(&bus.get().statistics());
    drop(bus.get().try_lock());
    bus.get().interrupt()
}

/// The threads have ended: their messages came as promised, and were counted.
fn judge(bus: LeakedBus, clients: Vec<Client>) {
    let counted = bus.get().statistics();
    ops::assert_one_moment(&counted);
    // A future that was dropped in flight is counted, as an error, and sent nothing.
    let ended = counted.messages - counted.errors;
    assert_eq!(ended, bus.judge(clients), "the count is not that of the wire");
}

/// Threads that mix the paths, and the pump of their bus.
#[derive(Clone, Copy)]
struct Mix {
    platform: &'static Threads<Shuttle>,
    pump: Pump,
    threads: u8,
    /// This many of the threads have a task each. The task's executor polls it inside its waker.
    /// Such a thread polls the task once, and then runs other paths.
    tasks: u8,
    ops: usize,
}

const THREE: Mix = Mix { platform: &PARK, pump: Pump::Caller, threads: 3, tasks: 0, ops: 3 };
const LENDING: Mix = Mix { platform: &PARK_INHERITING, ..THREE };
const WORKER: Mix = Mix { pump: Pump::Worker, ops: 2, ..THREE };
const INTERRUPTS: Mix = Mix { pump: Pump::Interrupt, ..THREE };
const NESTED: Mix = Mix { threads: 2, tasks: 2, ..THREE };

impl Mix {
    /// Runs the mix once: all threads and tasks end, and all promises hold. Returns how many messages
    /// a worker, or how many interrupts a handler served.
    fn run(self) -> u64 {
        let bus = model_bus(self.platform, self.pump);
        bus.get().set_counting(true);
        let server = Server::spawn(bus, self.pump);
        let handling = (self.pump == Pump::Interrupt)
            .then(|| strict::handle_interrupts(move || handle_interrupt(bus)));
        let (ended, ends) = mpsc::channel();
        let spawn = |number| {
            let task = (number < self.tasks).then(|| {
                let as_task = bus.client(self.threads + number, &draw(&TASKS, self.ops));
                let ended = ended.clone();
                nested::Task::new(async move {
                    ended.send(as_task.run().await).expect("the main thread waits");
                })
            });
            let client = bus.client(number, &draw(&THREADS, self.ops));
            thread::spawn(move || {
                if let Some(task) = task {
                    task.wake();
                }
                block_on(client.run())
            })
        };
        let threads: Vec<_> = (0..self.threads).map(spawn).collect();
        let ended = threads.into_iter().map(|thread| thread.join().expect("no panic"));
        let mut clients: Vec<_> = ended.collect();
        clients.extend((0..self.tasks).map(|_| ends.recv().expect("every task ends")));
        clients.iter_mut().for_each(Client::fetch);
        let served = server.stop(bus) + handling.map_or(0, strict::Handling::stop);
        judge(bus, clients);
        served
    }

    /// Runs as many schedules as are its share, with priorities or at random.
    fn check(self, kind: &str, priorities: Option<Priorities>, percent: usize) {
        let served = Arc::new(AtomicU64::new(0));
        let counter = served.clone();
        let run = move || {
            counter.fetch_add(self.run(), Ordering::Relaxed);
        };
        let schedules = schedules(percent);
        let mut preempted = String::new();
        if let Some(priorities) = priorities {
            let strict = Strict::new(schedules, priorities);
            let preemptions = strict.preemptions();
            strict.run(run);
            preempted = format!(" {} preemptions,", preemptions.load(Ordering::Relaxed));
        } else {
            let mut config = Config::new();
            // A woken task has the waker's stack.
            config.stack_size = 1 << 18;
            Runner::new(RandomScheduler::new(schedules), config).run(run);
        }
        println!(
            "FIGURE: shuttle, {kind}{} threads of up to {} operations, {:?}{}: {schedules} schedules,{preempted} {} {}",
            self.threads,
            self.ops,
            self.pump,
            if self.platform.inherits { ", inheriting" } else { "" },
            served.load(Ordering::Relaxed),
            if self.pump == Pump::Interrupt { "interrupts" } else { "messages served" },
        );
    }

    fn check_random(self, percent: usize) {
        self.check("", None, percent);
    }

    fn check_strict(self, percent: usize) {
        self.check("strict priorities, ", Some(Priorities::Random), percent);
    }
}

#[test]
fn three_threads_three_operations() {
    THREE.check_random(5);
}

#[test]
fn two_threads_six_operations() {
    Mix { threads: 2, ops: 6, ..THREE }.check_random(5);
}

#[test]
fn five_threads_two_operations() {
    Mix { threads: 5, ops: 2, ..THREE }.check_random(5);
}

#[test]
fn three_threads_beside_a_worker() {
    WORKER.check_random(5);
}

#[test]
fn three_threads_that_lend_priorities() {
    LENDING.check_random(5);
}

#[test]
fn strict_priorities() {
    THREE.check_strict(15);
}

#[test]
fn strict_priorities_beside_a_worker() {
    WORKER.check_strict(15);
}

#[test]
fn strict_priorities_that_are_lent() {
    LENDING.check_strict(10);
}

#[test]
fn strict_priorities_that_are_lent_beside_a_worker() {
    Mix { platform: &PARK_INHERITING, ..WORKER }.check_strict(5);
}

/// Interrupts come between any two atomics of equal threads.
#[test]
fn interrupts() {
    INTERRUPTS.check("interrupts, ", Some(Priorities::Equal), 9);
}

#[test]
fn interrupts_and_strict_priorities() {
    INTERRUPTS.check("interrupts and strict priorities, ", Some(Priorities::Random), 9);
}

#[test]
fn nested_wake_ups() {
    NESTED.check("nested wake-ups, 2 tasks and ", None, 3);
}

#[test]
fn nested_wake_ups_beside_a_worker() {
    Mix { pump: Pump::Worker, ..NESTED }.check("nested wake-ups, 2 tasks and ", None, 3);
}

#[test]
fn nested_wake_ups_and_lent_priorities() {
    let mix = Mix { platform: &PARK_INHERITING, ..NESTED };
    mix.check("nested wake-ups, 2 tasks and ", None, 3);
}

#[test]
fn nested_wake_ups_under_strict_priorities() {
    let kind = "nested wake-ups under strict priorities, 2 tasks and ";
    NESTED.check(kind, Some(Priorities::Random), 3);
}
