//! Threads map and unmap side by side in parts of one table. They share tables of every level, and
//! the model judges each store of each thread.
#![allow(unsafe_code, reason = "who frees tables promises that their invalidation has completed")]

use std::mem::ManuallyDrop;
use std::ops::Range;

use barewire_iommu::{
    Config, Context, Facts, Gather, Granule, Invalidate, Iova, PageTable, Part, PhysAddr, Stage,
    Strategy, Tlbi,
};
use barewire_iommu_model::{Machine, Naive, Shape};

use crate::bench::{Kind, machine};

/// Small numbers that follow from `state`.
fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

/// One thread: maps and unmaps in its part, and knows what is mapped there.
struct Worker<'t, 'm> {
    machine: &'m Machine,
    context: Context,
    config: Config,
    part: Part<'t, &'m Machine>,
    /// The range of its part in which it maps.
    ground: Range<u64>,
    map: Naive,
    seed: u64,
}

impl Worker<'_, '_> {
    fn run(mut self, rounds: u32) -> Naive {
        for round in 0..rounds {
            self.round(round);
        }
        self.map
    }

    fn round(&mut self, round: u32) {
        let page = Shape::new(&self.config).span(3);
        let pages = (self.ground.end - self.ground.start) / page;
        let at = random(&mut self.seed, pages);
        let count = match random(&mut self.seed, 4) {
            // The whole range: tables that the part covers are then unhooked.
            0 => pages,
            1 => random(&mut self.seed, 40) + 1,
            _ => random(&mut self.seed, 4) + 1,
        };
        let at = if count == pages { 0 } else { at };
        let start = self.ground.start + at * page;
        let range = start..start + count.min(pages - at) * page;
        let len = range.end - range.start;
        let mut gather = Gather::new();
        if self.map.first(range.clone()).is_none() && count < pages {
            let stage = self.config.stage;
            let phys = (u64::from(round % 8) + 1) << 36 | start;
            let meaning = Kind::Plain.meaning(stage);
            self.map.map(start, phys, len, meaning).expect("it is free");
            let change = |map: &mut Naive| map.map(start, phys, len, meaning).expect("it is free");
            self.machine.update(self.context, |_, next| change(next));
            let attributes = Kind::Plain.attributes(stage);
            let done = self.part.map(Iova(start), PhysAddr(phys), len, attributes, &mut gather);
            done.expect("it is free");
            self.machine.update(self.context, |now, _| change(now));
            self.machine.ended(self.context, range.clone());
            let there = self.part.iova_to_phys(Iova(range.end - 1)).expect("it is mapped");
            assert_eq!(there.phys.0, phys + len - 1);
        } else {
            self.map.unmap(range.clone());
            self.machine.update(self.context, |_, next| {
                next.unmap(range.clone());
            });
            self.part.unmap(Iova(start), len, &mut gather).expect("blocks are never cut");
            self.machine.update(self.context, |now, _| {
                now.unmap(range.clone());
            });
            let page_shift = Shape::new(&self.config).page_shift();
            let facts = Facts { page_shift, has_ranges: true, live_entries: 1 };
            let strategies = [Strategy::ByPage, Strategy::ByRange, Strategy::ByContext];
            let strategy = strategies[random(&mut self.seed, 3) as usize];
            let operations = strategy.operations(gather.runs(), &facts);
            self.machine.flush(self.context, operations.as_slice()).expect("it never fails");
            // SAFETY: the gather is this table's, and the invalidation has completed.
            unsafe { self.part.release(&mut gather) };
            self.machine.given_back(self.context, range);
        }
        self.machine.assert_sound();
    }
}

/// Three threads whose parts meet at `first` and `second`, each playing around there.
fn three(config: Config, coherent: bool, first: u64, second: u64, rounds: u32) {
    let machine = machine(&config, coherent);
    let context = if config.stage == Stage::One { Context::Asid(1) } else { Context::Vmid(1) };
    let shape = Shape::new(&config);
    let table = PageTable::new(config, &machine).expect("there is memory");
    // Not dropped if a judgement fails: broken tables might be walked for ever.
    let mut table = ManuallyDrop::new(table);
    machine.attach(context, table.root(), shape, barewire_iommu::Attributes::MAIR);
    let (low, rest) = table.whole().split_at(Iova(first));
    let (middle, high) = rest.split_at(Iova(second));
    // Less than a table on the outer sides, so that no blocks fit that are cut later.
    let reach = shape.span(3) * 300;
    let grounds = [first.saturating_sub(reach)..first, first..second, second..second + reach];
    let mut all = Naive::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = [low, middle, high]
            .into_iter()
            .zip(grounds)
            .zip(1..)
            .map(|((part, ground), seed)| {
                let map = Naive::new();
                let machine = &machine;
                let worker = Worker { machine, context, config, part, ground, map, seed };
                scope.spawn(move || worker.run(rounds))
            })
            .collect();
        for worker in workers {
            let map = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            for (iova, piece) in map.pieces() {
                all.map(iova, piece.output, piece.len, piece.meaning).expect("parts are disjoint");
            }
        }
    });
    machine.end(context, all);
    machine.settle(context);
    machine.assert_sound();
    assert_eq!(machine.tables(), machine.hooked());
    machine.detach(context);
    machine.flush(context, &[Tlbi::Context]).expect("it never fails");
    drop(ManuallyDrop::into_inner(table));
    machine.assert_sound();
    assert_eq!(machine.tables(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "large, and nothing in it is unsafe")]
fn parts_that_meet_within_tables_of_every_level() {
    let rounds = 200;
    for granule in [Granule::Size4K, Granule::Size16K] {
        for (stage, input_bits, coherent) in [(Stage::One, 48, true), (Stage::Two, 40, false)] {
            let config = Config { granule, stage, input_bits, ..Config::default() };
            let shape = Shape::new(&config);
            let (table, page) = (shape.span(2), shape.span(3));
            let upper = if shape.start < 2 { shape.span(1) } else { 8 * table };
            // All three in one last-level table; the middle with a table of its own; tables of the
            // level above shared as well.
            for (first, second) in [
                (4 * table + 7 * page, 4 * table + 100 * page),
                (4 * table - 3 * page, 5 * table + 5 * page),
                (upper - 3 * page, upper + table),
            ] {
                three(config, coherent, first, second, rounds);
            }
        }
    }
}
