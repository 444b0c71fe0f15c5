//! kill -9 of a process on a shared bus, at random moments, while another works on it: the other
//! process continues each time, and no half-run message counts as complete.
//!
//! How it works: the controller is a [`recorder`](recorder) in shared memory, behind
//! [`ProcessShared`]. This process is context 0 and sends messages all the time; a child, which is
//! this same program told so by its environment, is context 1 and does the same until it is
//! killed, and then there is the next. In the end the record is [checked](check): every entry of
//! it, from the first.
//!
//! `BAREWIRE_KILL_SEED=N` repeats the choice of moments; what happens at them is the scheduler's.

#[path = "kill/check.rs"]
mod check;
#[path = "kill/recorder.rs"]
mod recorder;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use barewire::bus::Bus;
use barewire::spi::{Settings, Transfer};
use barewire_linux::shared::{ProcessShared, Recoveries, SharedLock};

use check::{Counts, check, message, speed_hz};
use recorder::{Entry, Record, Recorder};

const KILLS: u32 = 200;
/// Where the files are, for a child.
const PLACE: &str = "BAREWIRE_KILL_PLACE";
/// After how many bytes of its first message a child waits to be killed.
const HANGS: &str = "BAREWIRE_KILL_HANGS";
/// After how many messages a child sends no more.
const IDLES: &str = "BAREWIRE_KILL_IDLES";
const SEED: &str = "BAREWIRE_KILL_SEED";
/// Longer than anything takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// One process's way onto the bus.
struct OpenBus {
    bus: Bus<ProcessShared<Recorder>>,
    record: Record,
    recoveries: Recoveries,
}

impl OpenBus {
    fn at(place: &Path, hangs_after: Option<usize>) -> Self {
        let record = Record::open(&place.join("record"));
        let lock = SharedLock::open(&place.join("lock"), place).expect("the lock opens");
        let mut recorder = Recorder::new(record.clone());
        recorder.hangs_after = hangs_after;
        let told = record.clone();
        let controller =
            ProcessShared::new(lock, recorder).on_recovered(move |_| told.push(Entry::Recovered));
        Self { recoveries: controller.recoveries(), bus: Bus::new(controller), record }
    }

    /// Sends `context`'s messages, numbered from 0, until `end` of how many it sent says so.
    fn work(&self, context: u8, end: impl Fn(u32) -> bool) -> u32 {
        let device = self.bus.device(&Settings::new(0, speed_hz(context))).expect("opens");
        let mut number = 0;
        while !end(number) {
            let bytes = message(context, number);
            assert_eq!(device.sync(&mut [Transfer::write(&bytes)]), Ok(bytes.len()));
            number += 1;
            self.record.completed(context).fetch_add(1, Ordering::Release);
        }
        number
    }
}

/// Runs as the child. Does nothing if the environment names no place.
#[test]
fn child() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else { return };
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u32>().expect("a number"));
    let opened = OpenBus::at(&place, number(HANGS).map(|bytes| bytes as usize));
    let parent = std::os::unix::process::parent_id();
    // It does not outlive the test, should that fail, not even where it waits for the lock.
    thread::spawn(move || {
        while std::os::unix::process::parent_id() == parent {
            thread::sleep(Duration::from_millis(50));
        }
        std::process::exit(1);
    });
    let idles_after = number(IDLES);
    opened.work(1, |sent| idles_after == Some(sent));
    loop {
        thread::park();
    }
}

/// A child, with the settings that its environment has besides the place.
fn spawn(place: &Path, told: Option<(&str, u32)>) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "child", "--test-threads", "1"]).env(PLACE, place);
    command.envs(told.map(|(name, number)| (name, number.to_string())));
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("this program runs again")
}

/// A child that is killed when this is dropped, also if the test fails.
struct ChildGuard(Child);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        self.0.kill().expect("a child of ours");
        self.0.wait().expect("a child of ours");
    }
}

fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "it does not: {what}");
        thread::sleep(Duration::from_micros(100));
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }
}

/// Sets its flag when dropped, so that a failed assertion ends the worker too.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn killed_at_any_moment_the_bus_goes_on() {
    let place = tempfile::tempdir().expect("a directory");
    let seed = std::env::var(SEED).ok().map(|seed| seed.parse().expect("a number"));
    let now =
        || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64);
    let seed: u64 = seed.unwrap_or_else(now);
    println!("seed {seed}: {SEED}={seed} repeats the moments");
    let mut random = Random(seed);
    let opened = Arc::new(OpenBus::at(place.path(), None));
    let ended = Arc::new(AtomicBool::new(false));
    let (mine, childs) = (opened.record.completed(0), opened.record.completed(1));

    // Not a scoped thread: one that waits for ever must fail the test, not hang it.
    let survivor = {
        let (opened, ended) = (Arc::clone(&opened), Arc::clone(&ended));
        thread::spawn(move || opened.work(0, |_| ended.load(Ordering::Relaxed)))
    };
    let ends = Ends(&ended);
    for round in 0..KILLS {
        let before = childs.load(Ordering::Acquire);
        let child = ChildGuard(spawn(place.path(), None));
        eventually("the child gets on the bus", || childs.load(Ordering::Acquire) > before);
        thread::sleep(Duration::from_micros(random.below(2_000)));
        drop(child);
        let before = mine.load(Ordering::Acquire);
        eventually(&format!("the survivor goes on after kill {round}, seed {seed}"), || {
            mine.load(Ordering::Acquire) > before.wrapping_add(2)
        });
    }
    drop(ends);
    let survived = survivor.join().expect("no message of the survivor failed");

    let counts =
        check(opened.record.entries()).unwrap_or_else(|wrong| panic!("{wrong}, seed {seed}"));
    let recovered = opened.recoveries.times();
    println!(
        "FIGURE: kill test: {KILLS} kills, {recovered} recoveries, {survived} messages by the survivor, seed {seed}"
    );
    println!(
        "of the recoveries {} in a half-run message, {} beside one; {} messages by the killed",
        counts.half,
        counts.recovered - counts.half,
        counts.whole[1]
    );
    assert_eq!(counts.whole[0], survived, "each of the survivor's messages is whole on the wire");
    assert!(counts.whole[1] >= childs.load(Ordering::Acquire), "and each that a child completed");
    assert_eq!(counts.recovered, recovered, "each death that left the lock was told once");
    assert_eq!(opened.recoveries.total(), recovered, "no other process found a death");
    assert!((1..=KILLS).contains(&recovered), "each kill hits the holder once at most");
    assert!(counts.half > 0, "kills hit messages");
}

#[test]
fn a_kill_at_a_known_byte_costs_one_recovery() {
    for hangs_after in [0, 1, 5] {
        let place = tempfile::tempdir().expect("a directory");
        let opened = OpenBus::at(place.path(), None);
        let child = ChildGuard(spawn(place.path(), Some((HANGS, hangs_after))));
        // The child's first entries: a reclaim, CS active, and as many bytes.
        let there = 2 + hangs_after as usize;
        eventually("the child hangs", || opened.record.entries().count() == there);
        drop(child);
        opened.work(0, |sent| sent == 3);
        let counts = check(opened.record.entries()).expect("a good record");
        assert_eq!(counts, Counts { whole: [3, 0], half: 1, recovered: 1 });
        assert_eq!(opened.recoveries.times(), 1);
    }
}

#[test]
fn a_kill_of_a_process_beside_the_bus_costs_none() {
    let place = tempfile::tempdir().expect("a directory");
    let opened = OpenBus::at(place.path(), None);
    let child = ChildGuard(spawn(place.path(), Some((IDLES, 3))));
    eventually("the child idles", || opened.record.completed(1).load(Ordering::Acquire) == 3);
    drop(child);
    opened.work(0, |sent| sent == 3);
    let counts = check(opened.record.entries()).expect("a good record");
    assert_eq!(counts, Counts { whole: [3, 3], half: 0, recovered: 0 });
    assert_eq!(opened.recoveries.times(), 0);
}
