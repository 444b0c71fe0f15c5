//! The bus under a model checker: every interleaving of threads that run prepared accesses, sync,
//! submit, lock and cancel, with threads that sleep and are woken.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p barewire --release --test loom`
#![cfg(loom)]

#[path = "loom/line.rs"]
mod line;
#[path = "mixes/mod.rs"]
mod mixes;
#[path = "ops/mod.rs"]
mod ops;
#[path = "../../../iommu/barewire-iommu/tests/stacks/mod.rs"]
mod stacks;
#[path = "wire/mod.rs"]
mod wire;

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake};

use loom::thread::{self, Thread};

use barewire::bus::platform::{AtomicU32, WaitWord};
use barewire::bus::{Platform, Pump};
use mixes::{Client, model_bus};
use ops::Op::{
    self, Abandon, Async, Cancel, Enqueue, Lock, Prepared, Race, Sync, Transact, Try, Wait,
};

loom::lazy_static! {
    /// The sleeping threads, each with the address it waits on. Not loom's mutex: the lock is never
    /// held over a switch, and so adds no interleavings of its own.
    static ref SLEEPERS: Mutex<Vec<(usize, Thread)>> = Mutex::new(Vec::new());
}

/// Threads sleep as on a futex: whether the word still is as expected is asked of its newest value.
struct Park;

impl Platform for Park {
    fn spins(&self) -> u32 {
        0
    }

    fn relax(&self) {
        thread::yield_now();
    }

    fn wait(&self, word: WaitWord<'_>, expected: u32) {
        let at = word.as_ptr().addr();
        SLEEPERS.lock().expect("no panic").push((at, thread::current()));
        if word.load() == expected {
            thread::park();
        }
    }

    fn wake(&self, word: *const AtomicU32) {
        let mut sleepers = SLEEPERS.lock().expect("no panic");
        let woken: Vec<_> = sleepers.extract_if(.., |(at, _)| *at == word.addr()).collect();
        drop(sleepers);
        for (_, thread) in woken {
            thread.unpark();
        }
    }
}

struct Unpark {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }
}

/// A future that wakes itself gives others a chance before it is polled again. The checker forgets
/// an unpark over a yield, so wake-ups are remembered here.
fn block_on<F: Future>(future: F) -> F::Output {
    let unpark = Arc::new(Unpark { thread: thread::current(), woken: AtomicBool::new(false) });
    let waker = unpark.clone().into();
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        if unpark.woken.swap(false, Ordering::Relaxed) {
            thread::yield_now();
        } else {
            thread::park();
        }
    }
}

/// How many preemptions at most, unless `BAREWIRE_LOOM_BOUND` says otherwise: a number, or `none`
/// for every interleaving there is.
fn bound(usual: Option<usize>) -> Option<usize> {
    match std::env::var("BAREWIRE_LOOM_BOUND").as_deref() {
        Err(_) => usual,
        Ok("none") => None,
        Ok(number) => Some(number.parse().expect("BAREWIRE_LOOM_BOUND is a number or none")),
    }
}

/// Runs every interleaving of the threads, or every one of at most `preemptions`. Returns how many.
fn check(threads: &[Vec<Op>], pump: Pump, preemptions: Option<usize>) -> u64 {
    let threads = threads.to_vec();
    let interleavings = Arc::new(AtomicU64::new(0));
    let counter = interleavings.clone();
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        let bus = model_bus(&Park, pump);
        let handler =
            (pump == Pump::Interrupt).then(|| line::handle(move || bus.get().interrupt()));
        let clients = (0_u8..).zip(&threads).map(|(number, ops)| bus.client(number, ops));
        let mut clients: Vec<_> = clients.collect();
        let others = clients.split_off(1);
        let spawn = |other: Client| thread::spawn(move || block_on(other.run()));
        let handles: Vec<_> = others.into_iter().map(spawn).collect();
        let mut ended: Vec<_> = clients.into_iter().map(|first| block_on(first.run())).collect();
        ended.extend(handles.into_iter().map(|handle| handle.join().expect("no panic")));
        ended.iter_mut().for_each(Client::fetch);
        handler.map(line::Handler::stop);
        bus.judge(ended);
    });
    interleavings.load(Ordering::Relaxed)
}

/// Checks all mixes and says how much that was.
fn check_all(what: &str, mixes: &[Vec<Vec<Op>>], usual: Option<usize>) {
    check_all_on(Pump::Caller, what, mixes, usual);
}

/// [`check_all`] on a bus of this pump.
fn check_all_on(pump: Pump, what: &str, mixes: &[Vec<Vec<Op>>], usual: Option<usize>) {
    let preemptions = bound(usual);
    let interleavings: u64 = mixes.iter().map(|mix| check(mix, pump, preemptions)).sum();
    let preemptions = preemptions.map_or("any number of".into(), |bound| format!("up to {bound}"));
    println!(
        "FIGURE: loom, {what}: {} mixes, {preemptions} preemptions, {interleavings} interleavings",
        mixes.len()
    );
}

const PATHS: [Op; 5] = [Prepared, Sync, Async, Lock, Cancel];
const ALL: [Op; 9] = [Prepared, Sync, Async, Lock, Cancel, Enqueue, Wait, Transact, Try];

/// The unordered pairs of `ops`.
fn pairs<T: Clone>(ops: &[T]) -> impl Iterator<Item = [T; 2]> {
    let rest = ops.iter().enumerate().map(|(n, one)| (one, &ops[n..]));
    rest.flat_map(|(one, others)| others.iter().map(|other| [one.clone(), other.clone()]))
}

fn one_each(threads: &[Op]) -> Vec<Vec<Op>> {
    threads.iter().map(|&op| vec![op]).collect()
}

/// Whether every interleaving of the mix can be run in seconds. A future that finds the bus held
/// is polled again, which takes longer.
fn is_light(mix: &[Op; 2]) -> bool {
    let heavy = |op: &&Op| matches!(op, Async | Cancel | Wait | Transact);
    let retries =
        mix.contains(&Transact) && mix.iter().any(|op| matches!(op, Prepared | Sync | Lock));
    mix.iter().filter(heavy).count() < 2 && !retries
}

#[test]
fn two_threads_one_operation_each_every_interleaving() {
    let mixes: Vec<_> = pairs(&ALL).filter(is_light).map(|mix| one_each(&mix)).collect();
    check_all("one operation each", &mixes, None);
}

#[test]
fn two_threads_one_operation_each_those_that_wait_for_others() {
    let mixes: Vec<_> =
        pairs(&ALL).filter(|mix| !is_light(mix)).map(|mix| one_each(&mix)).collect();
    check_all("one operation each, heavy", &mixes, Some(4));
}

#[test]
fn two_futures_of_one_thread_and_one_operation_of_another() {
    let mixes: Vec<_> = ALL.iter().map(|&op| one_each(&[op, Race])).collect();
    check_all("two futures of a thread", &mixes, Some(3));
}

#[test]
fn a_future_dropped_with_a_waker_that_uses_the_bus_and_one_operation_of_another() {
    let mixes: Vec<_> = ALL.iter().chain(&[Abandon]).map(|&op| one_each(&[op, Abandon])).collect();
    check_all("a waker that uses the bus", &mixes, Some(3));
}

#[test]
fn two_threads_two_operations_each_in_every_mix() {
    let two: Vec<Vec<Op>> =
        PATHS.iter().flat_map(|&one| PATHS.iter().map(move |&other| vec![one, other])).collect();
    let mixes: Vec<_> = pairs(&two).map(Vec::from).collect();
    check_all("two operations each", &mixes, Some(2));
}

#[test]
fn two_threads_two_syncs_each_deeper() {
    check_all("two syncs each", &[vec![vec![Sync, Prepared]; 2]], Some(5));
}

/// Three of `ops`, in any order of the threads.
fn triples(ops: &[Op]) -> impl Iterator<Item = [Op; 3]> {
    let rest = ops.iter().enumerate().map(|(n, &one)| (one, &ops[n..]));
    rest.flat_map(|(one, others)| pairs(others).map(move |[two, three]| [one, two, three]))
}

#[test]
fn three_threads_one_operation_each_in_every_mix() {
    let mixes: Vec<_> = triples(&PATHS).map(|mix| one_each(&mix)).collect();
    check_all("three threads", &mixes, Some(2));
}

/// A message in flight, whose owner, whose waiters and whose interrupt come at any moment.
#[test]
fn a_future_in_flight_beside_one_operation_of_another_and_the_handler() {
    let mixes: Vec<_> =
        [Sync, Lock, Try, Enqueue, Transact].map(|op| one_each(&[op, Transact])).into();
    check_all_on(Pump::Interrupt, "a future in flight", &mixes, Some(1));
}
