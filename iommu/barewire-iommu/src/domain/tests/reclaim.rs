//! Empty tables: freed when tables run out, on request, and where a block belongs.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr};
use std::thread;

use super::sweeps::Sweeps;
use super::*;
use crate::deferred::Bounds;

/// The span of a last-level table.
const TABLE: u64 = 2 * MIB;
/// The first address of the window.
const START: u64 = 16 * MIB;

fn page(phys: u64) -> [Segment; 1] {
    [Segment { phys: PhysAddr(PHYS + phys), len: PAGE }]
}

/// Maps a page in table `n` of the window and unmaps it.
fn pair(domain: &Tested<'_, '_>, n: u64) {
    let mapped = domain.map_at(Iova(START + n * TABLE), &page(0), rw()).expect("there are tables");
    domain.unmap(mapped).expect("nothing fails unasked");
}

/// The numbers of flushes, freed tables and released ranges.
fn counted(bench: &Bench<'_>) -> [usize; 3] {
    let events = bench.events();
    let of = |kind: fn(&&Event) -> bool| events.iter().filter(kind).count();
    [
        of(|event| matches!(event, Event::Flush(_))),
        of(|event| matches!(event, Event::Freed(_))),
        of(|event| matches!(event, Event::Released(_))),
    ]
}

/// A page in each of many tables, one after the other: nothing is mapped when the next comes.
#[test]
#[cfg_attr(miri, ignore = "takes Miri a minute, and shows it nothing that the others do not")]
fn small_mappings_all_over_do_not_exhaust_the_pool() {
    let (tables, pairs) = if cfg!(miri) { (8, 20) } else { (40, 400) };
    with_tables(tables, |_, domain| {
        for n in 0..pairs {
            pair(&domain, n * 11 % 119);
        }
    });
}

#[test]
fn a_block_takes_the_place_of_an_empty_table() {
    with_domain(|bench, domain| {
        let at = Iova(START);
        pair(&domain, 0);
        bench.events();
        let before = tables_left(bench);
        let block = [Segment { phys: PhysAddr(PHYS), len: TABLE }];
        let mapped = domain.map_at(at, &block, rw()).expect("free");
        let found = domain.iova_to_phys(&mapped, at).expect("mapped");
        assert_eq!((found.level, found.shift), (2, 21));
        // A walk may be cached for each of the table's 512 granules: the context is cheaper. It comes
        // first.
        let events = bench.events();
        assert!(
            matches!(&events[..], [Event::Flush(list), Event::Freed(_)] if **list == [Tlbi::Context]),
            "{events:?}"
        );
        assert_eq!(tables_left(bench), before + 1);
        domain.unmap(mapped).expect("nothing fails unasked");
        // And of a whole tree of empty tables, where a block of 1 GiB belongs.
        let far = Iova(1 << 30);
        for n in [0, 3] {
            let at = Iova(far.0 + n * TABLE);
            domain.unmap(domain.map_at(at, &page(0), rw()).expect("free")).expect("unmapped");
        }
        let before = tables_left(bench);
        let block = [Segment { phys: PhysAddr(PHYS), len: 1 << 30 }];
        let mapped = domain.map_at(far, &block, rw()).expect("free");
        assert_eq!(domain.iova_to_phys(&mapped, far).expect("mapped").level, 1);
        assert_eq!(tables_left(bench), before + 3);
        domain.unmap(mapped).expect("nothing fails unasked");
    });
}

#[test]
fn several_empty_tables_cost_one_flush() {
    with_domain(|bench, domain| {
        let tables = if cfg!(miri) { 2 } else { 16 };
        for n in 0..tables {
            pair(&domain, n);
        }
        bench.events();
        let blocks = [Segment { phys: PhysAddr(PHYS), len: tables * TABLE }];
        let mapped = domain.map_at(Iova(START), &blocks, rw()).expect("free");
        assert_eq!(counted(bench), [1, tables as usize, 0]);
        for n in 0..tables {
            let found = domain.iova_to_phys(&mapped, Iova(START + n * TABLE)).expect("mapped");
            assert_eq!((found.level, found.phys), (2, PhysAddr(PHYS + n * TABLE)));
        }
        domain.unmap(mapped).expect("nothing fails unasked");
    });
}

#[test]
fn a_table_whose_walks_cannot_be_invalidated_is_used_as_it_is() {
    with_domain(|bench, domain| {
        pair(&domain, 0);
        bench.events();
        bench.fail(1);
        let block = [Segment { phys: PhysAddr(PHYS), len: TABLE }];
        let mapped = domain.map_at(Iova(START), &block, rw()).expect("free");
        assert_eq!(bench.events(), [Event::Failed]);
        let last = Iova(START + TABLE - PAGE);
        let found = domain.iova_to_phys(&mapped, last).expect("mapped");
        assert_eq!((found.level, found.phys), (3, PhysAddr(PHYS + TABLE - PAGE)));
        domain.unmap(mapped).expect("nothing fails unasked");
    });
}

#[test]
#[cfg_attr(miri, ignore = "takes Miri a minute, and shows it nothing that the others do not")]
fn tables_in_use_stay_and_empty_ones_are_freed() {
    with_domain(|bench, domain| {
        let kept = domain.map_at(Iova(START), &page(0), rw()).expect("free");
        domain.reserve(Iova(START + TABLE + PAGE)..Iova(START + TABLE + 2 * PAGE)).expect("free");
        for n in [1, 2, 5] {
            pair(&domain, n);
        }
        // Outside the allocator's window, below a table of its own for each upper level.
        let far = Iova(5 << 39);
        domain.unmap(domain.map_at(far, &page(0), rw()).expect("free")).expect("unmapped");
        bench.events();
        let before = tables_left(bench);
        // The table with a reserved page is not freed. Of the far ones all three, by one flush.
        assert_eq!(domain.reclaim().expect("nothing fails unasked"), 2 + 3);
        let [flushes, freed, released] = counted(bench);
        assert_eq!((flushes, freed), (3, 5));
        assert!(released < 8, "{released} claims: what is empty is passed over");
        assert_eq!(tables_left(bench), before + 5);
        assert_eq!(domain.reclaim().expect("nothing fails unasked"), 0);
        assert_eq!(domain.iova_to_phys(&kept, Iova(START)).expect("mapped").phys, PhysAddr(PHYS));
        domain.unmap(kept).expect("nothing fails unasked");
        // The table of the reserved page, and those above it, stay.
        assert_eq!(domain.reclaim().expect("nothing fails unasked"), 1);
    });
}

/// A span that is larger than the window needs one of 16 places to be claimed. If none is left, the spans in
/// the window are claimed one by one.
#[test]
#[cfg_attr(miri, ignore = "takes Miri long, and shows it nothing that the others do not")]
fn tables_are_freed_when_no_claim_outside_the_window_is_left() {
    with_domain(|bench, domain| {
        let far = |n: u64| Iova((20 + n) << 39)..Iova(((20 + n) << 39) + PAGE);
        (0..16).for_each(|n| domain.reserve(far(n)).expect("free"));
        assert!(matches!(domain.reserve(far(16)), Err(ClaimError::TooMany(16))));
        for n in [0, 1, 5] {
            pair(&domain, n);
        }
        let before = tables_left(bench);
        assert_eq!(domain.reclaim().expect("nothing fails unasked"), 3);
        assert_eq!(tables_left(bench), before + 3);
    });
}

#[test]
#[cfg_attr(miri, ignore = "takes Miri long, and shows it nothing that the others do not")]
fn a_reclaim_whose_flush_fails_frees_nothing() {
    with_domain(|bench, domain| {
        pair(&domain, 0);
        bench.events();
        let before = tables_left(bench);
        bench.fail(1);
        let held = domain.reclaim().expect_err("told to fail");
        assert_eq!((bench.events(), tables_left(bench)), (vec![Event::Failed], before));
        // The addresses are held too.
        let refused = domain.map_at(Iova(START), &page(0), rw()).map(drop);
        assert!(matches!(refused, Err(DomainMapError::Claim(ClaimError::Taken))), "{refused:?}");
        domain.retry(held).expect("it works again");
        assert_eq!(tables_left(bench), before + 3);
        pair(&domain, 0);
    });
}

#[test]
fn a_map_whose_reclaim_fails_hands_it_back() {
    with_tables(4, |bench, domain| {
        pair(&domain, 0);
        bench.fail(1);
        let error = domain.map_at(Iova(START + TABLE), &page(0), rw()).map(drop);
        let Err(DomainMapError::Held { error, held }) = error else { panic!("{error:?}") };
        assert_eq!(error, MapError::OutOfMemory(Iova(START + TABLE)));
        domain.retry(held).expect("it works again");
        pair(&domain, 1);
    });
}

#[test]
#[cfg_attr(miri, ignore = "takes Miri a minute, and shows it nothing that the others do not")]
fn memory_may_run_out_nevertheless() {
    with_tables(4, |bench, domain| {
        let kept = domain.map_at(Iova(START), &page(0), rw()).expect("a root and three more");
        let at = Iova(START + TABLE);
        let error = domain.map_at(at, &page(0), rw()).map(drop);
        let expected = MapError::OutOfMemory(at);
        assert!(matches!(error, Err(DomainMapError::Table(found)) if found == expected));
        // Its addresses are free again.
        domain.reserve(at..Iova(at.0 + PAGE)).expect("free");
        domain.unmap(kept).expect("nothing fails unasked");
        assert_eq!(tables_left(bench), 0);
    });
}

#[test]
#[cfg_attr(miri, ignore = "takes Miri long, and shows it nothing that the others do not")]
fn what_waits_in_the_flush_queue_comes_first() {
    with_tables(4, |bench, domain| {
        let deferred = Deferred { bounds: Bounds::default(), strategy: Strategy::ByContext };
        domain.set_policy(Policy { deferred: Some(deferred), ..Policy::default() }).unwrap();
        let mapped = domain.map_at(Iova(START), &scattered(512), rw()).expect("free");
        domain.unmap(mapped).expect("it is queued");
        assert_eq!((domain.waiting().0, tables_left(bench)), (1, 0));
        bench.events();
        let mapped = domain.map_at(Iova(START + TABLE), &page(0), rw()).expect("after a flush");
        assert_eq!(counted(bench), [1, 1, 1]);
        domain.unmap(mapped).expect("it is queued");
    });
}

/// Threads map single pages and whole tables while another reclaims all the time. No thread ever
/// gets the error that no addresses are free.
#[test]
fn threads_map_while_another_reclaims() {
    let (rounds, tables) = if cfg!(miri) { (4, 16) } else { (2_000, 24) };
    testing::with_arena(Granule::Size4K, tables, |arena| {
        let device = Quiet;
        let window = Iova(START)..Iova(START + 8 * TABLE);
        let iovas = IovaWindow::new(window, Granule::Size4K, [0; 64]);
        let domain: Domain<_, _, _, 4> =
            Domain::with_queue(config(), Context::Asid(1), arena, &device, &iovas).unwrap();
        let work = |me: u64| {
            for round in 0..rounds {
                let list = if round % 4 == me { scattered(512) } else { page(0).to_vec() };
                let mapped = if round % 2 == 0 {
                    domain.map_sg(&list, rw()).expect("there are addresses and tables")
                } else {
                    let at = Iova(START + (4 * me + round % 4) * TABLE + (round % 3) * PAGE);
                    match domain.map_at(at, &page(0), rw()) {
                        Ok(mapped) => mapped,
                        // The other thread's scattered list, which may be anywhere.
                        Err(DomainMapError::Claim(ClaimError::Taken)) => continue,
                        Err(error) => panic!("{error}"),
                    }
                };
                let found = domain.iova_to_phys(&mapped, mapped.iova()).expect("mapped");
                assert_eq!(found.phys, PhysAddr(PHYS));
                domain.unmap(mapped).expect("nothing fails unasked");
            }
        };
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let workers = [0, 1].map(|me| scope.spawn(move || work(me)));
            let reclaims = scope.spawn(|| {
                let mut freed = 0;
                while !done.load(Relaxed) {
                    freed += domain.reclaim().expect("nothing fails unasked");
                    thread::yield_now();
                }
                freed
            });
            // Stored before a result is looked at: else a worker's panic leaves the other thread in its loop.
            let worked = workers.map(thread::ScopedJoinHandle::join);
            done.store(true, Relaxed);
            for result in worked {
                result.expect("it does not panic");
            }
            reclaims.join().expect("it does not panic");
        });
        domain.reclaim().expect("nothing fails unasked");
        assert_eq!(testing::drained(arena, PAGE as usize), tables - 1, "all but the root");
        drop(domain);
        iovas.claim(iovas.range()).expect("no address was lost");
    });
}

/// An allocator that at the first try finds all addresses claimed by a sweep, which then ends. A sweep that
/// began before the end of the second try could claim them again.
struct Swept<'w> {
    window: &'w IovaWindow<[u64; 8]>,
    /// The domain's.
    sweeps: AtomicPtr<Sweeps>,
    tries: AtomicUsize,
}

impl Swept<'_> {
    fn is_first_try(&self) -> bool {
        // SAFETY: the only test that tries sets it to a domain's that lives.
        let sweeps = unsafe { &*self.sweeps.load(Relaxed) };
        let first = self.tries.fetch_add(1, Relaxed).is_multiple_of(2);
        if first {
            drop(sweeps.begin());
        } else {
            assert_eq!(sweeps.count() % 2, 1, "a sweep can begin");
        }
        first
    }
}

// SAFETY: the ranges come from the window.
unsafe impl IovaAllocator for Swept<'_> {
    fn alloc(&self, size: u64) -> Option<Iova> {
        if self.is_first_try() { None } else { self.window.alloc(size) }
    }

    fn claim(&self, range: Range<Iova>) -> Result<(), ClaimError> {
        if self.is_first_try() { Err(ClaimError::Taken) } else { self.window.claim(range) }
    }

    unsafe fn release(&self, range: Range<Iova>) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.window.release(range) };
    }
}

#[test]
fn a_second_try_for_addresses_excludes_sweeps() {
    testing::with_arena(Granule::Size4K, 8, |arena| {
        let window = IovaWindow::new(Iova(START)..Iova(START + TABLE), Granule::Size4K, [0; 8]);
        let (sweeps, tries) = (AtomicPtr::new(ptr::null_mut()), AtomicUsize::new(0));
        let swept = Swept { window: &window, sweeps, tries };
        let domain: Domain<_, _, _, 4> =
            Domain::with_queue(config(), Context::Asid(1), arena, &Quiet, &swept).unwrap();
        swept.sweeps.store(ptr::from_ref(&domain.inner.sweeps).cast_mut(), Relaxed);
        let mapped = domain.map_sg(&page(0), rw()).expect("at the second try");
        domain.unmap(mapped).expect("nothing fails unasked");
        let mapped = domain.map_at(Iova(START), &page(0), rw()).expect("at the second try");
        domain.unmap(mapped).expect("nothing fails unasked");
        assert_eq!(swept.tries.load(Relaxed), 4);
    });
}

/// Hardware that has nothing to invalidate.
struct Quiet;

impl Invalidate for &Quiet {
    fn flush(&self, _: Context, _: &[Tlbi]) -> Result<(), FlushError> {
        Ok(())
    }
}
