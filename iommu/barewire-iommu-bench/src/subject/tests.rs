//! All contestants do the same work: every page gets the same translation, and none after the
//! unmap.

use barewire_iommu::{
    Config, Context, Descriptor, Domain, Granule, Iova, IovaWindow, Policy, Pool, Strategy, Walks,
};

use super::*;
use crate::counting::Counting;
use crate::list::PAGE;
use crate::pool::{Lease, Tables};

fn sizes() -> &'static [&'static str] {
    if cfg!(miri) { &["4K", "64K"] } else { &["4K", "64K", "1M", "2M", "12M", "32M"] }
}

fn jobs() -> impl Iterator<Item = Job> {
    let size = |name: &&str| Size::from_name(name).expect("one of the sizes");
    sizes().iter().map(size).flat_map(|size| {
        [(Layout::Scattered, false), (Layout::Contiguous, false), (Layout::Scattered, true)]
            .map(|(layout, by_leaf)| Job::new(size, layout, by_leaf))
    })
}

/// The expected translation of every page of the list, at the last of `slots` places.
fn expected(job: &Job, slots: usize) -> impl Iterator<Item = (u64, u64)> {
    let pages = job
        .list
        .iter()
        .flat_map(|piece| (0..piece.len / PAGE).map(|page| piece.phys.0 + page * PAGE));
    let begin = job.iova(slots - 1);
    (0..).zip(pages).map(move |(page, phys)| (begin + page * PAGE, phys))
}

fn check(mut subject: impl Subject, job: &Job) {
    let slots = if cfg!(miri) { 1 } else { job.slots() };
    for _ in 0..2 {
        subject.map(job, slots);
        for (iova, phys) in expected(job, slots) {
            assert_eq!(subject.translate(job, iova + 8), Some(phys + 8), "{iova:#x}");
        }
        subject.unmap(job, slots);
        subject.settle();
        for (iova, _) in expected(job, slots) {
            assert_eq!(subject.translate(job, iova), None, "{iova:#x}");
        }
    }
}

#[test]
fn the_floors_do_the_work() {
    let _lease = Lease::take();
    for job in jobs() {
        check(FloorReady::new(&job), &job);
        if job.is_whole_tables() {
            check(FloorTables::new(true), &job);
            check(FloorTables::new(false), &job);
        }
    }
}

#[test]
fn ours_does_the_work_by_every_strategy() {
    let _lease = Lease::take();
    for job in jobs() {
        for unmapping in Unmapping::ALL {
            check(Barewire::new(unmapping), &job);
        }
        check(TableWork::<Tables>::new(Tables), &job);
        if !job.by_leaf {
            check(WholeDomain::<false>::new(), &job);
        }
    }
}

#[cfg(target_pointer_width = "64")]
#[cfg_attr(miri, ignore = "these crates make pointers of numbers")]
#[test]
fn the_other_crates_do_the_work() {
    let _lease = Lease::take();
    for job in jobs().filter(|job| !job.by_leaf) {
        check(Aarch64Paging::new(), &job);
        check(Multiarch::new(), &job);
        check(Generic::new(), &job);
    }
}

#[test]
fn the_floors_write_what_ours_writes() {
    let _lease = Lease::take();
    let size = Size::from_name(if cfg!(miri) { "64K" } else { "2M" }).expect("one of the sizes");
    for layout in [Layout::Scattered, Layout::Contiguous] {
        let job = Job::new(size, layout, false);
        let mut ours = Barewire::new(Unmapping::Gathered);
        let mut floor = FloorReady::new(&job);
        ours.map(&job, 1);
        floor.map(&job, 1);
        for (iova, _) in expected(&job, 1) {
            assert_eq!(ours.descriptor(iova), floor.descriptor(&job, iova), "{iova:#x}");
        }
        if job.is_whole_tables() {
            for zeroes in [true, false] {
                let mut tables = FloorTables::new(zeroes);
                tables.map(&job, 1);
                for (iova, _) in expected(&job, 1) {
                    assert_eq!(ours.descriptor(iova), tables.descriptor(iova), "{iova:#x}");
                }
                tables.unmap(&job, 1);
            }
        }
        ours.unmap(&job, 1);
    }
}

#[cfg_attr(miri, ignore = "maps hundreds of MiB")]
#[test]
fn a_call_costs_the_invalidations_that_the_thread_counted() {
    let _lease = Lease::take();
    let counts = |size, unmapping| {
        let job =
            Job::new(Size::from_name(size).expect("one of the sizes"), Layout::Scattered, false);
        let mut ours = Barewire::new(unmapping);
        ours.map(&job, 1);
        assert_eq!(ours.counts().invalidations(), 0, "a map that succeeds flushes nothing");
        ours.unmap(&job, 1);
        ours.counts()
    };
    let of = |unmapping| counts("32M", unmapping).invalidations();
    assert_eq!(of(Unmapping::ByPage), 8192);
    assert_eq!(of(Unmapping::ByAsid), 16);
    assert_eq!(of(Unmapping::Gathered), 1);
    // 8,192 pages are one range command: 1 << 13.
    assert_eq!(of(Unmapping::ByRange), 1);
    // Single leaves are flushed by address, whatever is done for tables.
    let leaves = counts("1M", Unmapping::ByAsid);
    assert_eq!((leaves.leaves, leaves.walks, leaves.contexts, leaves.flushes), (256, 0, 0, 1));
    let walks = counts("12M", Unmapping::ByPage);
    assert_eq!((walks.leaves, walks.walks, walks.contexts, walks.flushes), (0, 3072, 0, 6));
}

#[cfg_attr(miri, ignore = "takes all tables there are, again and again")]
#[test]
fn unmapping_by_leaf_leaves_the_tables() {
    let _lease = Lease::take();
    let free = || {
        let all: Vec<_> = core::iter::from_fn(|| Tables.alloc(crate::pool::TABLE)).collect();
        let count = all.len();
        for table in all {
            crate::pool::give_back(table);
        }
        count
    };
    let size = Size::from_name("2M").expect("one of the sizes");
    let whole = Job::new(size, Layout::Scattered, false);
    let (mut work, before) = (TableWork::<Tables>::new(Tables), free());
    work.map(&whole, 1);
    work.unmap(&whole, 1);
    assert_eq!(before - free(), 3, "levels 1 to 3: the last is put aside");
    work.settle();
    assert_eq!(before - free(), 2, "and released later");
    let mut ours = Barewire::new(Unmapping::Gathered);
    let used = |ours: &mut Barewire, by_leaf| {
        let job = Job::new(size, Layout::Scattered, by_leaf);
        let before = free();
        ours.map(&job, 1);
        ours.unmap(&job, 1);
        before - free()
    };
    // Levels 1 and 2 stay. A call that covers the table of level 3 removes it.
    assert_eq!(used(&mut ours, false), 2);
    assert_eq!(used(&mut ours, true), 1);
}

#[test]
fn a_descriptor_is_a_leaf_of_its_level() {
    let leaf = Descriptor(floor::leaf_bits(3));
    assert!(leaf.is_leaf(3) && Descriptor(floor::leaf_bits(2)).is_leaf(2));
    assert_eq!(leaf.attributes(), ATTRIBUTES.bits());
}

#[cfg_attr(miri, ignore = "maps hundreds of MiB")]
#[test]
fn a_domain_s_policies_cost_the_same() {
    let _lease = Lease::take();
    let list = Layout::Scattered.list(Size::from_name("32M").expect("one of the sizes"));
    let tlb = Counting::new(true);
    let iovas = IovaWindow::new(Iova(1 << 21)..Iova(1 << 30), Granule::Size4K, vec![0; 1 << 12]);
    let domain = Domain::new(Config::default(), Context::Asid(1), Tables, &tlb, iovas)
        .expect("the pool has tables");
    for (strategy, walks, invalidations, flushes) in [
        (Strategy::ByPage, Walks::EachTable, 8192, 16),
        (Strategy::ByContext, Walks::EachTable, 16, 16),
        (Strategy::ByPage, Walks::Gathered, 8192, 1),
        (Strategy::ByRange, Walks::Gathered, 1, 1),
        (Strategy::ByContext, Walks::Gathered, 1, 1),
        (Strategy::default(), Walks::Gathered, 1, 1),
    ] {
        domain.set_policy(Policy { strategy, walks, deferred: None }).expect("nothing waits");
        let mapped = domain.map_sg(&list, ATTRIBUTES).expect("there is room");
        tlb.take();
        domain.unmap(mapped).expect("counting does not fail");
        let counts = tlb.take();
        let told = (counts.invalidations(), counts.flushes);
        assert_eq!(told, (invalidations, flushes), "{strategy:?} {walks:?}");
    }
}
