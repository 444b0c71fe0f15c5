//! Measures a message while several threads contend for the bus, and compares it with a mutex
//! around equal work.
//!
//! # How it works
//! In a window of time each of N threads sends one 4-byte message after the other; what a message
//! costs is the window over the messages of all threads. The bus, parking_lot's mutex with fair
//! unlock and the standard library's mutex have their windows in turn, again and again, so that
//! what disturbs the machine disturbs all three; ratios are medians over those turns. The mutexes
//! guard the same null controller, and plan and run the same message, as sync does. Threads are
//! pinned to the processors in turn ([`processors`]).
//!
//! A fair mutex hands over at each unlock. The standard one lets the running thread acquire it
//! again: that is fast and starves other threads. The holder of the bus runs what others queued.

use std::hint::black_box;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use barewire::bus::Bus;
use barewire::controller::null::Null;
use barewire::controller::{Controller, Preset};
use barewire::spi::{Settings, Transfer};
use barewire_linux::platform::FUTEX;

use super::stats::median;
use crate::shared::processors::{self, spawn_on};

/// How many threads, a row for each.
pub(super) const THREADS: [(usize, &str); 4] =
    [(1, "contended_1"), (2, "contended_2"), (4, "contended_4"), (8, "contended_8")];

/// For each thread that shares a processor: long beside a scheduler's time slice, as far as patience
/// allows.
const WINDOW: Duration = Duration::from_millis(60);

type Dyn = dyn Controller + Send;

/// The result of one window.
struct Window {
    ns: f64,
    least_share: f64,
}

/// The result for one number of threads.
pub(super) struct ContentionRow {
    /// The time of a message on the bus, one for each window.
    pub(super) ns: Vec<f64>,
    /// Speed of the bus over that of the fair mutex: above 1 the bus is faster.
    pub(super) ratio_to_fair_mutex: f64,
    /// Speed of the bus over that of the standard mutex.
    pub(super) ratio_to_std_mutex: f64,
    /// The messages of the thread that had the fewest, over its fair share.
    pub(super) least_share: f64,
}

/// Runs `windows` windows of each kind with `threads` threads.
pub(super) fn measure(threads: usize, windows: u32) -> Result<ContentionRow, String> {
    let settings = Settings::new(0, 20_000_000);
    let (preset, _) = Null::new().configure(&settings).expect("the null controller takes all");
    let bus = Bus::with_platform(Null::new(), &FUTEX);
    let bus: &Bus<Dyn> = black_box(&bus);
    let device = bus.device(&settings).expect("the null controller takes all");
    let fair = parking_lot::Mutex::new(Null::new());
    let fair: &parking_lot::Mutex<Dyn> = black_box(&fair);
    let standard = std::sync::Mutex::new(Null::new());
    let standard: &std::sync::Mutex<Dyn> = black_box(&standard);

    let (mut ns, mut to_fair, mut to_standard, mut shares) = (vec![], vec![], vec![], vec![]);
    for _ in 0..windows {
        let ours = window(threads, &preset, &|_, message| {
            let _ = black_box(device.sync(message));
        })?;
        let fair = window(threads, &preset, &|preset, message| {
            let mut guard = fair.lock();
            let planned = guard.plan(preset, message);
            let _ = black_box(planned.is_ok().then(|| guard.run(preset, message)));
            parking_lot::MutexGuard::unlock_fair(guard);
        })?;
        let standard = window(threads, &preset, &|preset, message| {
            let mut guard = standard.lock().expect("nobody panics");
            let planned = guard.plan(preset, message);
            let _ = black_box(planned.is_ok().then(|| guard.run(preset, message)));
        })?;
        ns.push(ours.ns);
        to_fair.push(fair.ns / ours.ns);
        to_standard.push(standard.ns / ours.ns);
        shares.push(ours.least_share);
    }
    Ok(ContentionRow {
        ns,
        ratio_to_fair_mutex: median(to_fair),
        ratio_to_std_mutex: median(to_standard),
        least_share: median(shares),
    })
}

/// `threads` threads that call `send` for a [`WINDOW`] each, each with a message of its own.
fn window(
    threads: usize,
    preset: &Preset,
    send: &(dyn Fn(&Preset, &mut [Transfer<'_>]) + Sync),
) -> Result<Window, String> {
    let (stop, gate) = (AtomicBool::new(false), RwLock::new(()));
    let sender = || {
        let tx = [0x9f, 0, 0, 0];
        let mut rx = [0; 4];
        let mut message = [Transfer::exchange(&tx, &mut rx)];
        let mut sent = 0_u64;
        drop(gate.read().expect("nobody panics"));
        let begun = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            send(preset, &mut message);
            sent += 1;
        }
        (sent, begun, Instant::now())
    };
    let processors = processors::allowed();
    let ran: Result<Vec<(u64, Instant, Instant)>, String> = thread::scope(|scope| {
        let closed = gate.write().expect("nobody panics");
        let spawned: Vec<_> =
            (0..threads).map(|index| spawn_on(scope, &processors, index, |_| sender())).collect();
        drop(closed);
        let sharing = threads.div_ceil(processors.len().max(1)) as u32;
        thread::sleep(WINDOW * sharing);
        stop.store(true, Ordering::Relaxed);
        spawned.into_iter().map(|worker| Ok(worker?.join().expect("nobody panics"))).collect()
    });
    let ran = ran?;
    let begun = ran.iter().map(|ran| ran.1).min().expect("there are threads");
    let ended = ran.iter().map(|ran| ran.2).max().expect("there are threads");
    let all: u64 = ran.iter().map(|ran| ran.0).sum();
    let least = ran.iter().map(|ran| ran.0).min().unwrap_or_default();
    Ok(Window {
        ns: ended.duration_since(begun).as_nanos() as f64 / all as f64,
        least_share: least as f64 * threads as f64 / all as f64,
    })
}
