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
use mixes::{Client, Leaked, model_bus};
use ops::Op::{
    self, Async, Cancel, Enqueue, Lock, Prepared, QueuedFuture, Race, Statistics, Sync, Transact,
    Try, Wait,
};
use platform::Threads;
use sleep::{Checked, PARK, PARK_INHERITING};
use strict::{Priorities, Strict};

/// What threads do.
const THREADS: [Op; 12] = [
    Prepared,
    Sync,
    Async,
    Lock,
    Cancel,
    Enqueue,
    Wait,
    Transact,
    QueuedFuture,
    Try,
    Statistics,
    Race,
];
/// What tasks do: mostly what they can await. They go from thread to thread, and messages of two
/// threads are in no order: so they leave nothing in the queue.
const TASKS: [Op; 13] = [
    Transact,
    Transact,
    Transact,
    QueuedFuture,
    QueuedFuture,
    QueuedFuture,
    Sync,
    Prepared,
    Lock,
    Cancel,
    Wait,
    Try,
    Race,
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
    fn spawn(bus: Leaked, pump: Pump) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread =
            (pump == Pump::Worker).then(|| thread::spawn(move || bus.get().serve(&stopped)));
        Self { stop, thread }
    }

    /// Ends it. Returns how many messages it ran.
    fn stop(self, bus: Leaked) -> u64 {
        self.stop.store(true, Ordering::SeqCst);
        bus.get().ring();
        self.thread.map_or(0, |thread| thread.join().expect("no panic"))
    }
}

/// The controller's interrupt handler: it looks at what was counted, and goes on with the queue.
fn handle_interrupt(bus: Leaked) -> bool {
    ops::assert_one_moment(&bus.get().statistics());
    bus.get().interrupt()
}

/// The threads have ended: their messages came as promised, and were counted.
fn judge(bus: Leaked, clients: Vec<Client>) {
    let counted = bus.get().statistics();
    ops::assert_one_moment(&counted);
    assert_eq!(counted.messages, bus.judge(clients), "not as many as were on the wire");
}

fn join(thread: JoinHandle<Client>) -> Client {
    thread.join().expect("no panic")
}

/// A mix of threads, and what serves their bus.
#[derive(Clone, Copy)]
struct Mix {
    platform: &'static Threads<Checked>,
    pump: Pump,
    threads: u8,
    ops: usize,
}

impl Mix {
    /// Runs the mix once. Returns how many messages a worker, or how many interrupts a handler
    /// served.
    fn run(self) -> u64 {
        let Self { platform, pump, threads, ops } = self;
        let bus = model_bus(platform, pump);
        bus.get().set_counting(true);
        let server = Server::spawn(bus, pump);
        let handling = (pump == Pump::Interrupt)
            .then(|| strict::handle_interrupts(move || handle_interrupt(bus)));
        let spawn = |number| {
            let client = bus.client(number, &draw(&THREADS, ops));
            thread::spawn(move || block_on(client.run()))
        };
        let threads: Vec<_> = (0..threads).map(spawn).collect();
        let mut clients: Vec<_> = threads.into_iter().map(join).collect();
        clients.iter_mut().for_each(Client::fetch);
        let served = server.stop(bus) + handling.map_or(0, strict::Handling::stop);
        judge(bus, clients);
        served
    }

    fn run_random(self, percent: usize) {
        let served = Arc::new(AtomicU64::new(0));
        let counter = served.clone();
        let schedules = schedules(percent);
        let run = move || {
            counter.fetch_add(self.run(), Ordering::Relaxed);
        };
        shuttle::check_random(run, schedules);
        println!(
            "FIGURE: shuttle, {} threads of up to {} operations, {:?}: {schedules} schedules, {} messages served",
            self.threads,
            self.ops,
            self.pump,
            served.load(Ordering::Relaxed)
        );
    }

    fn run_strict(self, kind: &str, priorities: Priorities, percent: usize) {
        let served = Arc::new(AtomicU64::new(0));
        let counter = served.clone();
        let schedules = schedules(percent);
        let strict = Strict::new(schedules, priorities);
        let preemptions = strict.preemptions();
        strict.run(move || {
            counter.fetch_add(self.run(), Ordering::Relaxed);
        });
        println!(
            "FIGURE: shuttle, {kind}, {} threads of up to {} operations, {:?}{}: {schedules} schedules, {} preemptions, {} {}",
            self.threads,
            self.ops,
            self.pump,
            if self.platform.inherits { ", inheriting" } else { "" },
            preemptions.load(Ordering::Relaxed),
            served.load(Ordering::Relaxed),
            if self.pump == Pump::Interrupt { "interrupts" } else { "messages served" },
        );
    }
}

#[test]
fn three_threads_three_operations() {
    Mix { platform: &PARK, pump: Pump::Caller, threads: 3, ops: 3 }.run_random(5);
}

#[test]
fn two_threads_six_operations() {
    Mix { platform: &PARK, pump: Pump::Caller, threads: 2, ops: 6 }.run_random(5);
}

#[test]
fn five_threads_two_operations() {
    Mix { platform: &PARK, pump: Pump::Caller, threads: 5, ops: 2 }.run_random(5);
}

#[test]
fn three_threads_beside_a_worker() {
    Mix { platform: &PARK, pump: Pump::Worker, threads: 3, ops: 2 }.run_random(5);
}

#[test]
fn three_threads_that_lend_priorities() {
    Mix { platform: &PARK_INHERITING, pump: Pump::Caller, threads: 3, ops: 3 }.run_random(5);
}

#[test]
fn strict_priorities() {
    let mix = Mix { platform: &PARK, pump: Pump::Caller, threads: 3, ops: 3 };
    mix.run_strict("strict priorities", Priorities::Random, 15);
}

#[test]
fn strict_priorities_beside_a_worker() {
    let mix = Mix { platform: &PARK, pump: Pump::Worker, threads: 3, ops: 2 };
    mix.run_strict("strict priorities", Priorities::Random, 15);
}

#[test]
fn strict_priorities_that_are_lent() {
    let mix = Mix { platform: &PARK_INHERITING, pump: Pump::Caller, threads: 3, ops: 3 };
    mix.run_strict("strict priorities", Priorities::Random, 10);
}

#[test]
fn strict_priorities_that_are_lent_beside_a_worker() {
    let mix = Mix { platform: &PARK_INHERITING, pump: Pump::Worker, threads: 3, ops: 2 };
    mix.run_strict("strict priorities", Priorities::Random, 5);
}

/// Interrupts come between any two atomics of equal threads.
#[test]
fn interrupts() {
    let mix = Mix { platform: &PARK, pump: Pump::Interrupt, threads: 3, ops: 3 };
    mix.run_strict("interrupts", Priorities::Equal, 9);
}

#[test]
fn interrupts_and_strict_priorities() {
    let mix = Mix { platform: &PARK, pump: Pump::Interrupt, threads: 3, ops: 3 };
    mix.run_strict("interrupts and strict priorities", Priorities::Random, 9);
}

/// Two tasks of an executor that runs them inside their wakers, and the two threads that poll them
/// first and then run other paths. All of them end, and all promises hold.
#[derive(Clone, Copy)]
struct Nested {
    platform: &'static Threads<Checked>,
    pump: Pump,
}

impl Nested {
    const PAIRS: u8 = 2;
    const OPS: usize = 3;

    fn run(self) {
        let Self { platform, pump } = self;
        let bus = model_bus(platform, pump);
        bus.get().set_counting(true);
        let server = Server::spawn(bus, pump);
        let (ended, ends) = mpsc::channel();
        let spawn = |number| {
            let as_task = bus.client(number, &draw(&TASKS, Self::OPS));
            let ended = ended.clone();
            let task = nested::Task::new(async move {
                ended.send(as_task.run().await).expect("the main thread waits");
            });
            let client = bus.client(Self::PAIRS + number, &draw(&THREADS, Self::OPS));
            thread::spawn(move || {
                task.wake();
                block_on(client.run())
            })
        };
        let threads: Vec<_> = (0..Self::PAIRS).map(spawn).collect();
        let mut clients: Vec<_> = threads.into_iter().map(join).collect();
        clients.extend((0..Self::PAIRS).map(|_| ends.recv().expect("every task ends")));
        clients.iter_mut().for_each(Client::fetch);
        server.stop(bus);
        judge(bus, clients);
    }

    fn figure(self, schedules: usize, what: &str) {
        println!(
            "FIGURE: shuttle, nested wake-ups{what}, {} tasks and {} threads of up to {} operations, {:?}{}: {schedules} schedules",
            Self::PAIRS,
            Self::PAIRS,
            Self::OPS,
            self.pump,
            if self.platform.inherits { ", inheriting" } else { "" },
        );
    }

    fn run_random(self, percent: usize) {
        let schedules = schedules(percent);
        let mut config = Config::new();
        // A woken task has the waker's stack.
        config.stack_size = 1 << 18;
        Runner::new(RandomScheduler::new(schedules), config).run(move || self.run());
        self.figure(schedules, "");
    }

    fn run_strict(self, percent: usize) {
        let schedules = schedules(percent);
        Strict::new(schedules, Priorities::Random).run(move || self.run());
        self.figure(schedules, " under strict priorities");
    }
}

#[test]
fn nested_wake_ups() {
    Nested { platform: &PARK, pump: Pump::Caller }.run_random(3);
}

#[test]
fn nested_wake_ups_beside_a_worker() {
    Nested { platform: &PARK, pump: Pump::Worker }.run_random(3);
}

#[test]
fn nested_wake_ups_and_lent_priorities() {
    Nested { platform: &PARK_INHERITING, pump: Pump::Caller }.run_random(3);
}

#[test]
fn nested_wake_ups_under_strict_priorities() {
    Nested { platform: &PARK, pump: Pump::Caller }.run_strict(3);
}
