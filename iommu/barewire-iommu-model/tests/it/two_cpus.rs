//! Two processors and a walker that does not snoop: one processor is stopped before every single
//! access to table memory, and meanwhile the other maps beside it. When a call returns, a walk finds
//! what it mapped, in memory as in the caches.
#![allow(unsafe_code, reason = "wraps a pool, whose trait is unsafe")]

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use barewire_iommu::{
    Attributes, Config, Context, Gather, Invalidate, Iova, PageTable, Part, PhysAddr, Pool,
    Segment, Stage, Tlbi,
};
use barewire_iommu_model::{Machine, Naive, Shape};

use crate::bench::{Kind, machine};

/// The machine, whose every access may stop the processor that makes it.
struct StoppableMachine<'m>(&'m Machine);

/// How many accesses a thread makes before it stops, and how it lets the other thread run.
struct Stop {
    after: u64,
    go: Sender<()>,
    done: Receiver<()>,
}

thread_local! {
    static STOP: RefCell<Option<Stop>> = const { RefCell::new(None) };
}

impl StoppableMachine<'_> {
    fn step(&self) {
        STOP.with_borrow_mut(|stop| match stop {
            Some(Stop { after: 0, .. }) => {
                let Stop { go, done, .. } = stop.take().expect("it was `Some` above");
                go.send(()).expect("the other thread waits");
                done.recv().expect("the other thread did not panic");
            }
            Some(stop) => stop.after -= 1,
            None => {}
        });
    }
}

// SAFETY: every method is the machine's.
unsafe impl Pool for StoppableMachine<'_> {
    fn alloc(&self, bytes: usize) -> Option<PhysAddr> {
        self.0.alloc(bytes)
    }

    unsafe fn free(&self, table: PhysAddr, bytes: usize) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.free(table, bytes) };
    }

    fn pointer(&self, table: PhysAddr) -> NonNull<u64> {
        self.0.pointer(table)
    }

    fn clean(&self, table: PhysAddr, entries: Range<usize>) {
        self.step();
        self.0.clean(table, entries);
    }

    fn barrier(&self) {
        self.step();
        self.0.barrier();
    }

    unsafe fn load(&self, table: PhysAddr, index: usize) -> u64 {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.load(table, index) }
    }

    unsafe fn store(&self, table: PhysAddr, index: usize, value: u64) {
        self.step();
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.store(table, index, value) };
    }

    unsafe fn publish(&self, table: PhysAddr, index: usize, now: u64, new: u64) -> Result<(), u64> {
        self.step();
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.publish(table, index, now, new) }
    }

    unsafe fn unpublished<R>(
        &self,
        table: PhysAddr,
        bytes: usize,
        fill: impl FnOnce(&mut [u64]) -> R,
    ) -> R {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.unpublished(table, bytes, fill) }
    }
}

/// A mapping of one processor: where, and the lengths of its segments in pages. Every second page of
/// memory is left out between two segments.
#[derive(Clone, Copy)]
struct Job {
    iova: u64,
    pages: &'static [u64],
}

impl Job {
    fn segments(self, page: u64) -> Vec<Segment> {
        let mut phys = (1 << 36) + self.iova;
        let next = |pages: &u64| {
            let segment = Segment { phys: PhysAddr(phys), len: pages * page };
            phys += segment.len + page;
            segment
        };
        self.pages.iter().map(next).collect()
    }

    fn range(self, page: u64) -> Range<u64> {
        self.iova..self.iova + self.pages.iter().sum::<u64>() * page
    }

    fn add(self, page: u64, stage: Stage, map: &mut Naive) {
        let mut at = self.iova;
        for Segment { phys, len } in self.segments(page) {
            map.map(at, phys.0, len, Kind::Plain.meaning(stage)).expect("it is free");
            at += len;
        }
    }
}

/// One processor: maps its job, after which a walk must find it.
fn work(machine: &Machine, config: &Config, part: &mut Part<'_, StoppableMachine<'_>>, job: Job) {
    let (context, page) = (context(config), Shape::new(config).span(3));
    let attributes = Kind::Plain.attributes(config.stage);
    let mut gather = Gather::new();
    let mapped = part.map_sg(Iova(job.iova), &job.segments(page), attributes, &mut gather);
    mapped.expect("it is free, and there is memory");
    machine.update(context, |now, _| job.add(page, config.stage, now));
    machine.ended(context, job.range(page));
    machine.assert_sound();
}

fn context(config: &Config) -> Context {
    if config.stage == Stage::One { Context::Asid(1) } else { Context::Vmid(1) }
}

/// The first processor stops before its access number `after`, and the second does all its work
/// then. Returns `false` if the first makes fewer accesses.
fn stopped(config: Config, coherent: bool, after: u64, jobs: [Job; 2]) -> bool {
    let machine = machine(&config, coherent);
    let (context, shape) = (context(&config), Shape::new(&config));
    let page = shape.span(3);
    let table = PageTable::new(config, StoppableMachine(&machine)).expect("there is memory");
    // Not dropped if a judgement fails: broken tables might be walked for ever.
    let mut table = ManuallyDrop::new(table);
    machine.attach(context, table.root(), shape, Attributes::MAIR);
    let [first, second] = jobs;
    let ends = jobs.map(|job| job.range(page).end);
    let (mut low, mut high) = table.whole().split_at(Iova(ends[0].min(ends[1])));
    let (ours, theirs) =
        if ends[0] < ends[1] { (&mut low, &mut high) } else { (&mut high, &mut low) };
    machine.update(context, |_, next| {
        jobs.iter().for_each(|job| job.add(page, config.stage, next));
    });
    let (go, wait) = channel();
    let (tell, done) = channel();
    let (machine, config) = (&machine, &config);
    let was_stopped = thread::scope(|scope| {
        scope.spawn(move || {
            // An error: the first thread did not stop.
            let _ = wait.recv();
            work(machine, config, theirs, second);
            let _ = tell.send(());
        });
        STOP.set(Some(Stop { after, go, done }));
        let worked = catch_unwind(AssertUnwindSafe(|| work(machine, config, ours, first)));
        // Drops the sender, also after a panic: else the other thread would wait for ever.
        let was_stopped = STOP.take().is_none();
        worked.unwrap_or_else(|panic| resume_unwind(panic));
        was_stopped
    });
    let mut all = Naive::new();
    jobs.iter().for_each(|job| job.add(page, config.stage, &mut all));
    machine.end(context, all);
    machine.settle(context);
    machine.assert_sound();
    assert_eq!(machine.tables(), machine.hooked());
    machine.detach(context);
    machine.flush(context, &[Tlbi::Context]).expect("nothing fails unasked");
    drop(ManuallyDrop::into_inner(table));
    machine.assert_sound();
    was_stopped
}

#[test]
#[cfg_attr(miri, ignore = "large, and nothing in it is unsafe")]
fn what_a_call_maps_is_visible_when_it_returns_whatever_another_processor_has_not_cleaned() {
    let mut stops = 0;
    for (stage, input_bits) in [(Stage::One, 48), (Stage::Two, 40)] {
        let config = Config { stage, input_bits, ..Config::default() };
        let (page, table, upper) = (1 << 12, 1 << 21, 1 << 30);
        let one = |iova| Job { iova, pages: &[1] };
        for jobs in [
            // In one table of each level.
            [one(0), one(page)],
            [one(page), one(0)],
            [Job { iova: 0, pages: &[1, 1, 1] }, Job { iova: 4 * page, pages: &[2, 1] }],
            // In tables that share those above.
            [one(0), one(table)],
            [one(0), one(upper)],
            // A block beside a table.
            [one(0), Job { iova: table, pages: &[512] }],
            [Job { iova: 0, pages: &[512] }, one(table)],
            // Across a boundary: the first table is shared.
            [Job { iova: table - page, pages: &[1, 1, 1] }, one(table - 2 * page)],
            // Into a table that the other processor has just installed.
            [one(table + 2 * page), Job { iova: table - page, pages: &[1, 1] }],
            // A whole table of pages between two that are shared.
            [Job { iova: table - page, pages: &[1, 511, 2] }, one(2 * table + page)],
        ] {
            for coherent in [false, true] {
                for after in 0.. {
                    if !stopped(config, coherent, after, jobs) {
                        break;
                    }
                    stops += 1;
                }
            }
        }
    }
    assert!(stops > 300, "{stops}");
}
