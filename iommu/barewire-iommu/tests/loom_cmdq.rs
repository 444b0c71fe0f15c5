//! The command queue under a model checker: CPUs that issue batches, and an SMMU that executes them.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p barewire-iommu --release --test loom_cmdq`
//!
//! The SMMU checks that a slot it reads holds the command that was written for it, this time round.
//! The CPUs check that their batch was executed when their call returns, and that it reports only
//! their own errors.
#![cfg(loom)]
#![allow(unsafe_code, reason = "a pool hands out memory, and loom's threads want it for good")]

mod stacks;

use std::cell::Cell;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64 as Counter;

use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use loom::thread::{self, Thread};

use barewire_iommu::smmu::v3::{Command, CommandQueue, Errata, Erratum};
use barewire_iommu::smmu::{Patience, Registers};
use barewire_iommu::{FlushError, PhysAddr, Pool};

const CMDQ_PROD: u32 = 0x98;
const CMDQ_CONS: u32 = 0x9c;
const GERROR: u32 = 0x60;
const GERRORN: u32 = 0x64;

/// A flag in a command's number: the command is illegal.
const ILLEGAL: u32 = 1 << 8;
/// Numbers of one CPU.
const EACH: u32 = 4;

/// Memory that CPUs and SMMU share.
struct Ram {
    words: Vec<AtomicU64>,
    next: Counter,
}

impl Ram {
    fn new(words: usize) -> Self {
        let words = (0..words).map(|_| AtomicU64::new(0)).collect();
        Self { words, next: Counter::new(0) }
    }

    fn word(&self, at: PhysAddr, index: usize) -> &AtomicU64 {
        &self.words[at.0 as usize / 8 + index]
    }
}

// SAFETY: every piece is handed out once.
unsafe impl Pool for Ram {
    fn alloc(&self, bytes: usize) -> Option<PhysAddr> {
        let at = self.next.fetch_add(bytes as u64, Ordering::Relaxed);
        Some(PhysAddr(at))
    }

    unsafe fn free(&self, _table: PhysAddr, _bytes: usize) {}

    fn pointer(&self, _table: PhysAddr) -> NonNull<u64> {
        unreachable!("loom's words are no plain memory")
    }

    fn clean(&self, _table: PhysAddr, _entries: Range<usize>) {}

    fn barrier(&self) {
        fence(Ordering::Release);
    }

    unsafe fn load(&self, table: PhysAddr, index: usize) -> u64 {
        self.word(table, index).load(Ordering::Acquire)
    }

    unsafe fn store(&self, table: PhysAddr, index: usize, value: u64) {
        self.word(table, index).store(value, Ordering::Release);
    }

    unsafe fn unpublished<R>(
        &self,
        _table: PhysAddr,
        bytes: usize,
        fill: impl FnOnce(&mut [u64]) -> R,
    ) -> R {
        // All zeros already.
        fill(&mut vec![0; bytes / 8])
    }
}

/// Threads sleep here until another has made progress. A spinning thread would multiply the
/// interleavings.
///
/// A thread whose poll found nothing is ordered after everything done until then, so its next poll
/// sees that. For a first look, only the driver's own fences order memory.
struct Bed {
    done: AtomicU32,
    /// The same count behind std's mutex, which the model does not know, and the threads that sleep.
    sleepers: Mutex<(u32, Vec<Thread>)>,
}

impl Bed {
    fn new() -> Self {
        Self { done: AtomicU32::new(0), sleepers: Mutex::default() }
    }

    /// Sleeps until something was done that was not `seen`, and remembers that.
    fn sleep(&self, seen: &Cell<u32>) {
        loop {
            // Reading and writing in one reads the newest value.
            let done = self.done.fetch_add(0, Ordering::Acquire);
            if done != seen.replace(done) {
                return;
            }
            let mut sleepers = self.sleepers.lock().expect("no panic");
            if sleepers.0 == done {
                sleepers.1.push(thread::current());
                drop(sleepers);
                thread::park();
            }
        }
    }

    fn wake(&self) {
        self.done.fetch_add(1, Ordering::Release);
        let mut sleepers = self.sleepers.lock().expect("no panic");
        sleepers.0 += 1;
        let woken = std::mem::take(&mut sleepers.1);
        drop(sleepers);
        for sleeper in woken {
            sleeper.unpark();
        }
    }
}

/// Sleeps between looks.
struct Sleeps<'w> {
    bed: &'w Bed,
    seen: Cell<u32>,
}

impl Patience for Sleeps<'_> {
    fn more(&self, _started: u64, _looks: u32) -> bool {
        self.bed.sleep(&self.seen);
        true
    }
}

/// Looks once.
struct Once;

impl Patience for Once {
    fn more(&self, _started: u64, _looks: u32) -> bool {
        false
    }
}

/// The SMMU: registers, and what it has done.
struct Device {
    ram: &'static Ram,
    slots: PhysAddr,
    log2: u32,
    prod: AtomicU32,
    cons: AtomicU32,
    gerror: AtomicU32,
    gerrorn: AtomicU32,
    executed: Vec<AtomicBool>,
    /// The SMMU sleeps here.
    bed: Bed,
    /// The CPUs sleep here.
    cpus: Bed,
    /// The SMMU is an MMU-700 with erratum 2812531.
    separate: bool,
}

impl Registers for Device {
    fn read32(&self, offset: u32) -> u32 {
        match offset {
            // Alone, so that what comes after is ordered by the driver's fence.
            CMDQ_CONS => self.cons.load(Ordering::Relaxed),
            // Registers of one device are read in order.
            GERROR => self.gerror.load(Ordering::Acquire),
            GERRORN => self.gerrorn.load(Ordering::Acquire),
            other => panic!("read of {other:#x}"),
        }
    }

    fn write32(&self, offset: u32, value: u32) {
        match offset {
            // The driver's barrier orders what went before.
            CMDQ_PROD => {
                let wrap = (2 << self.log2) - 1;
                let before = self.prod.swap(value, Ordering::Relaxed);
                let moved = value.wrapping_sub(before) & wrap;
                assert!((1..=1 << self.log2).contains(&moved), "PROD from {before} to {value}");
                self.bed.wake();
            }
            GERRORN => {
                self.gerrorn.store(value, Ordering::Relaxed);
                self.bed.wake();
            }
            other => panic!("write of {value:#x} to {other:#x}"),
        }
    }
}

impl Device {
    /// Executes that many commands, and no more.
    fn run(&self, count: u32) {
        let wrap = (2 << self.log2) - 1;
        // The last number executed of each CPU.
        let mut last = [None; 3];
        // Whose commands came since the last CMD_SYNC.
        let mut unsynced = None;
        let mut cons = 0;
        let seen = Cell::new(0);
        while cons < count {
            while self.prod.load(Ordering::Relaxed) == cons & wrap {
                self.cpus.wake();
                self.bed.sleep(&seen);
            }
            fence(Ordering::Acquire);
            let slot = (cons & ((1 << self.log2) - 1)) as usize;
            let read = |word| self.ram.word(self.slots, 2 * slot + word).load(Ordering::Relaxed);
            let command = [read(0), read(1)];
            let number = (command[0] >> 32) as u32;
            if number & ILLEGAL != 0 {
                self.fail(cons & wrap, &seen);
                continue;
            }
            if command != Command::SYNC.0 {
                assert_eq!(command, numbered(number).0, "consumed before it was written");
                let cpu = (number / EACH) as usize;
                assert!(last[cpu] < Some(number), "out of order, or twice");
                last[cpu] = Some(number);
                let is_mixed = unsynced.replace(cpu).is_some_and(|before| before != cpu);
                assert!(!(self.separate && is_mixed), "no CMD_SYNC between two CPUs' commands");
                self.executed[number as usize].store(true, Ordering::Relaxed);
            } else {
                unsynced = None;
            }
            cons += 1;
            self.cons.store(cons & wrap, Ordering::Release);
        }
        self.cpus.wake();
    }

    /// Stops at an illegal command until that is acknowledged.
    fn fail(&self, cons: u32, seen: &Cell<u32>) {
        self.cons.store(cons | 1 << 24, Ordering::Release);
        let error = self.gerror.load(Ordering::Relaxed) ^ 1;
        self.gerror.store(error, Ordering::Release);
        while self.gerrorn.load(Ordering::Relaxed) != error {
            self.cpus.wake();
            self.bed.sleep(seen);
        }
        fence(Ordering::Acquire);
    }
}

/// A command with a number, in both words.
fn numbered(number: u32) -> Command {
    Command([0x03 | u64::from(number) << 32, u64::from(number) << 1 | 1])
}

struct QueueRig {
    queue: CommandQueue<'static, Ram>,
    device: Device,
}

impl QueueRig {
    fn run(
        &self,
        count: u32,
        commands: impl Iterator<Item = Command> + Clone,
    ) -> Result<(), FlushError> {
        let sleeps = Sleeps { bed: &self.device.cpus, seen: Cell::new(0) };
        let result = self.queue.run(&self.device, &sleeps, count.into(), commands);
        // A sleeping thread may have left an error to this one. Wake it: a real CPU, which spins,
        // would look again.
        self.device.cpus.wake();
        result
    }

    /// Each CPU issues one call after the other, each of this many commands.
    fn issue(&self, cpu: u32, calls: &[u32]) {
        let mut number = cpu * EACH;
        for &count in calls {
            let commands = (number..number + count).map(numbered);
            let result = self.run(count, commands);
            assert_eq!(result, Ok(()), "it got another CPU's error");
            for number in number..number + count {
                let is_executed = self.device.executed[number as usize].load(Ordering::Relaxed);
                assert!(is_executed, "completed before it was executed");
            }
            number += count;
        }
    }
}

/// Every interleaving with at most this many preemptions, unless `BAREWIRE_LOOM_BOUND` says
/// otherwise: a number, or `none` for every one there is.
fn builder(bound: usize) -> loom::model::Builder {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 20_000;
    builder.preemption_bound = match std::env::var("BAREWIRE_LOOM_BOUND") {
        Ok(text) if text == "none" => None,
        Ok(text) => Some(text.parse().expect("a number, or `none`")),
        Err(_) => Some(bound),
    };
    builder
}

/// Runs `test` with a queue of `1 << log2` commands.
fn with_world(log2: u32, test: impl FnOnce(&'static QueueRig)) {
    with_world_of(log2, false, test);
}

/// The same, with erratum 2812531 if `separate`.
fn with_world_of(log2: u32, separate: bool, test: impl FnOnce(&'static QueueRig)) {
    let ram: &'static Ram = Box::leak(Box::new(Ram::new(32)));
    let errata = Errata::NONE;
    let errata = if separate { errata.with(Erratum::Arm2812531) } else { errata };
    let queue = CommandQueue::new(ram, log2).expect("memory enough").with_errata(errata);
    let device = Device {
        ram,
        slots: PhysAddr(queue.base() & 0xffff_ffe0),
        log2,
        prod: AtomicU32::new(0),
        cons: AtomicU32::new(0),
        gerror: AtomicU32::new(0),
        gerrorn: AtomicU32::new(0),
        executed: (0..3 * EACH).map(|_| AtomicBool::new(false)).collect(),
        bed: Bed::new(),
        cpus: Bed::new(),
        separate,
    };
    let world: &'static QueueRig = Box::leak(Box::new(QueueRig { queue, device }));
    test(world);
    // SAFETY: leaked above, and `test` has joined all threads that had it.
    drop(unsafe { Box::from_raw(std::ptr::from_ref(world).cast_mut()) });
    // SAFETY: as above; what borrowed it is gone.
    drop(unsafe { Box::from_raw(std::ptr::from_ref(ram).cast_mut()) });
}

/// Runs `test` while an SMMU executes `count` commands.
fn model(
    bound: usize,
    log2: u32,
    count: u32,
    test: impl Fn(&'static QueueRig) + Sync + Send + 'static,
) {
    builder(bound).check(move || {
        with_world(log2, |world| {
            let device = thread::spawn(move || world.device.run(count));
            test(world);
            device.join().expect("the SMMU does not panic");
        });
    });
}

/// Two CPUs of an MMU-700 with erratum 2812531, one call of two batches: each batch has its CMD_SYNC, so
/// that the other CPU's command never comes between the batches without one. They look once and give
/// up; only then does the SMMU begin.
#[test]
fn flaw_4_batches_of_two_cpus_are_apart() {
    builder(3).check(|| {
        with_world_of(3, true, |world| {
            let give_up = |cpu: u32, count: u32| {
                let commands = (cpu * EACH..cpu * EACH + count).map(numbered);
                let result = world.queue.run(&world.device, &Once, count.into(), commands);
                assert_eq!(result, Err(FlushError::Timeout));
            };
            let other = thread::spawn(move || give_up(1, 1));
            // Half the queue is four slots: three commands and a CMD_SYNC, then one and another.
            give_up(0, 4);
            other.join().unwrap();
            let published = world.device.prod.load(Ordering::Relaxed);
            world.device.run(published);
        });
    });
}

/// Two CPUs, one call each, room for both.
#[test]
fn two_cpus() {
    model(2, 2, 4, |world| {
        let other = thread::spawn(|| world.issue(1, &[1]));
        world.issue(0, &[1]);
        other.join().unwrap();
    });
}

/// The queue has room for one batch of one command: both threads wait for room, and slots are
/// reused.
#[test]
fn two_cpus_and_no_room() {
    model(1, 1, 5, |world| {
        let other = thread::spawn(|| world.issue(1, &[1]));
        world.issue(0, &[2]);
        other.join().unwrap();
    });
}

/// One call after the other wraps the queue around.
#[test]
fn two_cpus_wrap_around() {
    model(1, 2, 7, |world| {
        let other = thread::spawn(|| world.issue(1, &[1]));
        world.issue(0, &[1, 2]);
        other.join().unwrap();
    });
}

/// Three CPUs look once and give up; only then does the SMMU begin. No CPU's batch is forgotten.
#[test]
fn three_cpus() {
    builder(3).check(|| {
        with_world(3, |world| {
            let give_up = |cpu: u32| {
                let commands = std::iter::once(numbered(cpu * EACH));
                let result = world.queue.run(&world.device, &Once, 1, commands);
                assert_eq!(result, Err(FlushError::Timeout));
            };
            let others = [1, 2].map(|cpu| thread::spawn(move || give_up(cpu)));
            give_up(0);
            for other in others {
                other.join().unwrap();
            }
            world.device.run(6);
        });
    });
}

/// An illegal command is reported to the CPU that issued it, even if another CPU finds the error.
#[test]
fn an_error_is_told_to_its_own() {
    model(1, 2, 4, |world| {
        let other = thread::spawn(|| {
            let bad = numbered(ILLEGAL);
            let result = world.run(1, std::iter::once(bad));
            assert_eq!(result, Err(FlushError::Command(1)));
        });
        world.issue(0, &[1]);
        other.join().unwrap();
    });
}

/// A CPU that gives up leaves nothing undone: its commands are executed all the same.
#[test]
fn one_gives_up() {
    model(2, 2, 4, |world| {
        let other = thread::spawn(|| {
            let commands = std::iter::once(numbered(EACH));
            let result = world.queue.run(&world.device, &Once, 1, commands);
            let is_executed = world.device.executed[EACH as usize].load(Ordering::Relaxed);
            assert!(result == Err(FlushError::Timeout) || (result == Ok(()) && is_executed));
        });
        world.issue(0, &[1]);
        other.join().unwrap();
    });
}
