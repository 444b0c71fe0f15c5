//! Strict domains: the operations and the failures of an unmap.

use super::*;
use crate::format::Access;

#[test]
fn what_is_mapped_is_found_and_what_is_unmapped_is_gone() {
    with_domain(|bench, domain| {
        let segments = scattered(5);
        let mapped = domain.map_sg(&segments, rw()).unwrap();
        assert_eq!(mapped.size(), 5 * PAGE);
        for (i, segment) in segments.iter().enumerate() {
            let iova = Iova(mapped.iova().0 + i as u64 * PAGE + 17);
            let found = domain.iova_to_phys(&mapped, iova).unwrap();
            assert_eq!(found.phys, PhysAddr(segment.phys.0 + 17));
        }
        assert_eq!(domain.iova_to_phys(&mapped, mapped.range().end), None);
        assert_eq!(bench.events(), [], "mapping invalidates nothing");
        let range = mapped.range();
        let unmapped = domain.unmap(mapped).unwrap();
        assert_eq!(unmapped.bytes, 5 * PAGE);
        assert!(domain.completed(unmapped.ticket));
        assert_eq!(domain.wait(unmapped.ticket), Ok(()));
        assert!(
            matches!(&bench.events()[..], [Event::Flush(_), Event::Released(r)] if *r == range)
        );
        // The next mapping gets the same addresses and finds them empty.
        let again = domain.map(PhysAddr(PHYS), PAGE, rw()).unwrap();
        assert_eq!(again.iova(), range.start);
        domain.unmap(again).unwrap();
    });
}

/// Counts the case of S. P. Ranjan's patch "iommu/arm-smmu: Optimize ->tlb_flush_walk() for qcom
/// implementation" (v3, 23 June 2021): 8,192 commands by page, 16 with each table flushed on its
/// own, 1 gathered.
#[test]
#[cfg_attr(miri, ignore = "takes Miri long, and shows it nothing that the others do not")]
fn thirty_two_mebibytes_of_pages() {
    let tables = if cfg!(miri) { 1 } else { 16 };
    let pages = tables * 512;
    with_domain(|bench, domain| {
        let each = |strategy| Policy { strategy, walks: Walks::EachTable, deferred: None };
        let policies = [
            (Policy::from(Strategy::ByPage), pages, 1),
            (each(Strategy::ByPage), pages, tables),
            (Policy::from(Strategy::ByContext), 1, 1),
            (each(Strategy::ByContext), tables, tables),
            (Policy::default(), 1, 1),
        ];
        for (policy, commands, flushes) in policies {
            domain.set_policy(policy).unwrap();
            let mapped = domain.map_sg(&scattered(pages), rw()).unwrap();
            assert!(mapped.iova().0.is_multiple_of(2 * MIB));
            let bytes = domain.unmap(mapped).unwrap().bytes;
            assert_eq!(bytes, pages * PAGE);
            let events = bench.events();
            let flushed = |event: &&Event| matches!(event, Event::Flush(_));
            assert_eq!(events.iter().filter(flushed).count() as u64, flushes, "{policy:?}");
            let freed = |event: &&Event| matches!(event, Event::Freed(_));
            assert_eq!(events.iter().filter(freed).count() as u64, tables, "{policy:?}");
            // No table is freed before its flush, and no address is released before the last flush.
            assert!(matches!(events[0], Event::Flush(_)));
            assert!(matches!(events.last(), Some(Event::Released(_))));
            lock(&bench.events).extend(events);
            assert_eq!(bench.commands(), commands, "{policy:?}");
        }
    });
}

/// Each table is unhooked, flushed and freed before the next is touched. Pages at both ends wait
/// for the last flush.
#[test]
fn each_table_by_itself() {
    with_domain(|bench, domain| {
        let walks = Walks::EachTable;
        domain.set_policy(Policy { walks, ..Strategy::ByPage.into() }).unwrap();
        let start = Iova(20 * MIB - PAGE);
        let segments = scattered(512 + 2);
        let mapped = domain.map_at(start, &segments, rw()).unwrap();
        domain.unmap(mapped).unwrap();
        let flushes = bench.flushes();
        let counts: Vec<Vec<u64>> =
            flushes.iter().map(|list| list.iter().map(Tlbi::commands).collect()).collect();
        assert_eq!(counts, [vec![1, 512], vec![1]]);
    });
}

/// Going table by table never cuts a block.
#[test]
fn each_table_by_itself_leaves_blocks_whole() {
    with_domain(|bench, domain| {
        let walks = Walks::EachTable;
        domain.set_policy(Policy { walks, ..Strategy::ByPage.into() }).unwrap();
        let gib = 1 << 30;
        let segment = Segment { phys: PhysAddr(4 * gib), len: gib + 4 * MIB + PAGE };
        let mapped = domain.map_at(Iova(gib), &[segment], rw()).unwrap();
        // A block of 1 GiB, two of 2 MiB, a page.
        let found = |at| domain.iova_to_phys(&mapped, Iova(at)).unwrap().shift;
        assert_eq!([gib, 2 * gib, 2 * gib + 4 * MIB].map(found), [30, 21, 12]);
        assert_eq!(domain.unmap(mapped).unwrap().bytes, gib + 4 * MIB + PAGE);
        assert_eq!(bench.commands(), 1 + 2 + 1);
    });
}

#[test]
fn blocks_are_used_where_size_and_addresses_permit() {
    with_domain(|bench, domain| {
        domain.set_strategy(Strategy::ByPage);
        let mapped = domain.map(PhysAddr(PHYS), 4 * MIB, rw()).unwrap();
        assert_eq!(domain.live_leaves(), 2);
        assert_eq!(domain.iova_to_phys(&mapped, mapped.iova()).unwrap().shift, 21);
        domain.unmap(mapped).unwrap();
        assert_eq!((bench.commands(), domain.live_leaves()), (2, 0));
    });
}

/// The adaptive strategy changes exactly at the threshold its costs give, which depends on the
/// other mappings.
#[test]
fn adaptive_turns_where_its_costs_say() {
    let costs = Costs {
        address_ps: 100,
        context_ps: 1_000,
        wait_ps: 0,
        miss_ps: 50,
        tlb_entries: 8,
        ..Costs::default()
    };
    with_domain(|bench, domain| {
        domain.set_strategy(Strategy::Adaptive(costs));
        let flushed = |pages| {
            let mapped = domain.map_sg(&scattered(pages), rw()).unwrap();
            domain.unmap(mapped).unwrap();
            bench.flushes().concat()[0] == Tlbi::Context
        };
        assert_eq!([10, 11].map(flushed), [false, true]);
        // Four pages of other mappings: 200 ps more to lose.
        let others = domain.map_sg(&scattered(4), rw()).unwrap();
        assert_eq!([11, 12, 13].map(flushed), [false, false, true]);
        // No more can be lost than the TLB holds: 400 ps.
        let more = domain.map_sg(&scattered(40), rw()).unwrap();
        assert_eq!([14, 15].map(flushed), [false, true]);
        domain.unmap(others).unwrap();
        domain.unmap(more).unwrap();
        bench.events();
        assert_eq!([10, 11].map(flushed), [false, true]);
        assert_eq!(Costs::crossover_addresses(&costs, 40), Some(15));
    });
}

#[test]
fn strategies_change_while_mappings_live() {
    with_domain(|bench, domain| {
        let mappings: Vec<Mapped> =
            (0..4).map(|_| domain.map_sg(&scattered(3), rw()).unwrap()).collect();
        let strategies = [Strategy::ByPage, Strategy::ByContext, Strategy::ByRange];
        for (strategy, mapped) in strategies.into_iter().cycle().zip(mappings) {
            domain.set_strategy(strategy);
            assert_eq!(domain.policy().strategy, strategy);
            domain.unmap(mapped).unwrap();
            let expected = if strategy == Strategy::ByContext { 1 } else { 3 };
            assert_eq!(bench.commands(), expected);
        }
    });
}

#[test]
#[cfg_attr(miri, ignore = "takes Miri long, and shows it nothing that the others do not")]
fn a_failed_flush_frees_nothing_and_is_tried_again() {
    for walks in [Walks::Gathered, Walks::EachTable] {
        with_domain(|bench, domain| {
            domain.set_policy(Policy { walks, ..Strategy::ByPage.into() }).unwrap();
            let before = tables_left(bench);
            let mapped = domain.map_sg(&scattered(1024), rw()).unwrap();
            let range = mapped.range();
            bench.fail(2);
            let Err(DomainUnmapError::Held(held)) = domain.unmap(mapped) else {
                // The second flush of each table's own may have succeeded: then the unmap succeeds.
                panic!("two failures");
            };
            assert_eq!((held.range(), held.error()), (range.clone(), FlushError::Timeout));
            let events = bench.events();
            assert!(events.iter().all(|event| *event == Event::Failed), "{events:?}");
            // Neither its addresses nor its tables can be allocated.
            assert!(matches!(
                domain.map_at(range.start, &scattered(1), rw()),
                Err(DomainMapError::Claim(ClaimError::Taken))
            ));
            assert_eq!(tables_left(bench), before - 4, "levels 1 and 2 stay, two are held");
            bench.fail(1);
            let held = match (walks, domain.retry(held)) {
                (Walks::Gathered, Err(held)) | (Walks::EachTable, Err(held)) => held,
                (_, Ok(())) => panic!("a failure"),
            };
            domain.retry(held).unwrap();
            let events = bench.events();
            assert_eq!(events[..2], [Event::Failed, Event::Flush(vec![Tlbi::Context])]);
            assert_eq!(events.last(), Some(&Event::Released(range)));
            assert_eq!((events.len(), tables_left(bench)), (5, before - 2));
        });
    }
}

/// A failed flush of one table does not affect the others: whatever is left goes into the last
/// flush.
#[test]
#[cfg_attr(miri, ignore = "takes Miri long, and shows it nothing that the others do not")]
fn a_failed_flush_of_one_table_is_made_up_for_by_the_last() {
    with_domain(|bench, domain| {
        let walks = Walks::EachTable;
        domain.set_policy(Policy { walks, ..Strategy::ByContext.into() }).unwrap();
        let mapped = domain.map_sg(&scattered(1024), rw()).unwrap();
        bench.fail(1);
        domain.unmap(mapped).unwrap();
        let events = bench.events();
        assert_eq!(events[..2], [Event::Failed, Event::Flush(vec![Tlbi::Context])]);
        assert_eq!(events.len(), 5, "two tables and the addresses came free: {events:?}");
    });
}

#[test]
fn another_domains_mapping_is_refused_and_comes_back() {
    with_domain(|bench, domain| {
        let other = super::domain(bench, 2);
        let mapped = domain.map_sg(&scattered(2), rw()).unwrap();
        let Err(DomainUnmapError::Foreign(mapped)) = other.unmap(mapped) else {
            panic!("it is another's");
        };
        assert!(domain.iova_to_phys(&mapped, mapped.iova()).is_some());
        domain.unmap(mapped).unwrap();
    });
}

#[test]
fn a_failed_map_leaves_nothing() {
    with_domain(|bench, domain| {
        let free = bench.iovas.range();
        let size = free.end.0 - free.start.0;
        let whole = || {
            bench.iovas.claim(free.clone()).unwrap();
            // SAFETY: claimed just now.
            unsafe { bench.iovas.release(free.clone()) };
        };
        let too_large = Segment { phys: PhysAddr(PHYS), len: size + PAGE };
        let exhausted = domain.map_sg(&[too_large], rw());
        assert!(matches!(exhausted, Err(DomainMapError::Exhausted(s)) if s == size + PAGE));
        let endless = [Segment { phys: PhysAddr(0), len: u64::MAX }; 2];
        assert!(matches!(domain.map_sg(&endless, rw()), Err(DomainMapError::Exhausted(_))));
        let empty = domain.map_sg(&[], rw());
        assert!(matches!(empty, Err(DomainMapError::Table(MapError::Empty(_)))));
        let mut segments = scattered(3);
        segments[2].phys.0 += 1;
        let unaligned = domain.map_sg(&segments, rw());
        assert!(matches!(unaligned, Err(DomainMapError::Table(MapError::Unaligned { .. }))));
        segments[2].phys.0 -= 1;
        segments[2].len = 5;
        let unaligned = domain.map_sg(&segments, rw());
        assert!(matches!(unaligned, Err(DomainMapError::Table(MapError::Unaligned { .. }))));
        let end = domain.geometry().input_end();
        for iova in [end, end - PAGE, u64::MAX - PAGE + 1] {
            let beyond = domain.map_at(Iova(iova), &scattered(2), rw());
            let refused = matches!(beyond, Err(DomainMapError::Table(MapError::IovaRange { .. })));
            assert!(refused, "{iova:#x}");
        }
        whole();
        assert_eq!(domain.live_leaves(), 0);
    });
}

/// Walkers may have cached what was mapped before a map failed. So that part is flushed, and held
/// if the flush fails too.
#[test]
#[cfg_attr(miri, ignore = "takes Miri long, and shows it nothing that the others do not")]
fn a_map_that_fails_half_way_is_flushed() {
    with_domain(|bench, domain| {
        let range = Iova(20 * MIB)..Iova(24 * MIB);
        // The table for the first half exists, so its pages are published at once.
        let first = domain.map_at(Iova(18 * MIB), &scattered(513), rw()).unwrap();
        domain.unmap(first).unwrap();
        bench.events();
        for failures in [0, 1] {
            *lock(&bench.left) = 0;
            bench.fail(failures);
            let failed = domain.map_at(range.start, &scattered(1024), rw()).unwrap_err();
            *lock(&bench.left) = usize::MAX;
            let events = bench.events();
            match (failures, failed) {
                (0, DomainMapError::Table(MapError::OutOfMemory(_))) => {
                    let [Event::Flush(_), Event::Freed(_), then @ ..] = &events[..] else {
                        panic!("{events:?}")
                    };
                    // Claims of the search for empty tables, which finds none, and then the range.
                    assert!(then.iter().all(|event| matches!(event, Event::Released(_))));
                    assert_eq!(then.last(), Some(&Event::Released(range.clone())));
                    // For the second round: another table that this unmap does not free.
                    let again = domain.map_at(Iova(18 * MIB), &scattered(513), rw()).unwrap();
                    domain.unmap(again).unwrap();
                    bench.events();
                }
                (1, DomainMapError::Held { error: MapError::OutOfMemory(_), held }) => {
                    assert_eq!(events, [Event::Failed]);
                    assert_eq!(held.range(), range);
                    domain.retry(held).unwrap();
                    assert_eq!(bench.events().last(), Some(&Event::Released(range.clone())));
                }
                (_, other) => panic!("{other}"),
            }
        }
    });
}

#[test]
fn reserved_addresses_are_never_mapped() {
    with_domain(|bench, domain| {
        let msi = Iova(16 * MIB)..Iova(17 * MIB);
        domain.reserve(msi.clone()).unwrap();
        domain.reserve(Iova(0x0800_0000_0000)..Iova(0x0800_0010_0000)).unwrap();
        let mapped = domain.map(PhysAddr(PHYS), PAGE, rw()).unwrap();
        assert_eq!(mapped.iova(), msi.end);
        let identity = Segment { phys: PhysAddr(0x0800_0000_0000), len: PAGE };
        let taken = domain.map_at(Iova(identity.phys.0), &[identity], rw());
        assert!(matches!(taken, Err(DomainMapError::Claim(ClaimError::Taken))));
        domain.unmap(mapped).unwrap();
        bench.events();
    });
}

#[test]
fn the_context_is_of_the_tables_stage() {
    with_domain(|bench, _domain| {
        let two = Config { stage: Stage::Two, ..Config::default() };
        for (config, context) in [(two, Context::Asid(1)), (Config::default(), Context::Vmid(1))] {
            let made: Result<Tested<'_, '_>, _> =
                Domain::with_queue(config, context, Tables(bench), bench, bench);
            let stage = config.stage;
            assert_eq!(made.unwrap_err(), DomainError::Context { stage, context });
        }
    });
}

#[test]
fn a_dropped_domain_frees_its_tables_after_a_flush_or_not_at_all() {
    with_domain(|bench, first| {
        drop(first);
        let before = tables_left(bench);
        for failures in [0, 1] {
            let domain = domain(bench, 3);
            let _stays = domain.map_sg(&scattered(1), rw()).unwrap();
            bench.events();
            bench.fail(failures);
            drop(domain);
            let events = bench.events();
            if failures == 0 {
                assert_eq!(events[0], Event::Flush(vec![Tlbi::Context]));
                assert_eq!((events.len(), tables_left(bench)), (5, before), "{events:?}");
            } else {
                assert_eq!((events, tables_left(bench)), (vec![Event::Failed], before - 4));
            }
        }
    });
}

#[test]
#[cfg_attr(miri, ignore = "takes Miri long, and shows it nothing that the others do not")]
fn statistics_count_when_they_are_told_to() {
    with_domain(|_bench, domain| {
        let round = || {
            let mapped = domain.map_sg(&scattered(512), rw()).unwrap();
            domain.unmap(mapped).unwrap();
        };
        round();
        assert_eq!(domain.statistics(), Statistics::default());
        domain.set_counting(true);
        domain.set_strategy(Strategy::ByPage);
        round();
        domain.set_strategy(Strategy::ByContext);
        round();
        domain.set_counting(false);
        round();
        let expected = Statistics {
            maps: 2,
            pages_mapped: 1024,
            unmaps: 2,
            pages_unmapped: 1024,
            flushes: 2,
            page_commands: 512,
            context_commands: 1,
            tables_freed: 2,
            ..Statistics::default()
        };
        assert_eq!(domain.statistics(), expected);
    });
}

/// Counts commands.
struct Commands(Mutex<u64>);

impl Invalidate for Commands {
    fn flush(&self, _: Context, operations: &[Tlbi]) -> Result<(), FlushError> {
        *lock(&self.0) += self.commands(operations);
        Ok(())
    }
}

/// The span of one table plus a page, for each granule and stage, mapped as pages and as a block.
#[test]
fn every_granule_and_stage() {
    for granule in [Granule::Size4K, Granule::Size16K, Granule::Size64K] {
        let (page, entries) = (granule.bytes(), granule.bytes() / 8);
        let span = page * entries;
        if cfg!(miri) && granule != Granule::Size4K {
            // So many pages would take minutes.
            continue;
        }
        for (stage, context) in [(Stage::One, Context::Asid(7)), (Stage::Two, Context::Vmid(7))] {
            testing::with_arena(granule, 24, |arena| {
                let smmu = Commands(Mutex::new(0));
                let words = vec![0; (4 * entries / 64) as usize];
                let iovas = IovaWindow::new(Iova(span)..Iova(5 * span), granule, words);
                let config = testing::config(granule, stage, 40);
                let domain = Domain::new(config, context, arena, &smmu, &iovas).unwrap();
                let attributes = testing::rw(stage);
                for walks in [Walks::Gathered, Walks::EachTable] {
                    domain.set_policy(Policy { walks, ..Strategy::ByPage.into() }).unwrap();
                    let apart = |i| Segment { phys: PhysAddr(span + 2 * i * page), len: page };
                    let pages: Vec<Segment> = (0..=entries).map(apart).collect();
                    let mapped = domain.map_sg(&pages, attributes).unwrap();
                    assert!(mapped.iova().0.is_multiple_of(span));
                    domain.unmap(mapped).unwrap();
                    assert_eq!(core::mem::take(&mut *lock(&smmu.0)), entries + 1, "{granule:?}");
                    let mapped = domain.map(PhysAddr(span), span + page, attributes).unwrap();
                    assert_eq!(domain.live_leaves(), 2);
                    domain.unmap(mapped).unwrap();
                    assert_eq!(core::mem::take(&mut *lock(&smmu.0)), 2, "{granule:?}");
                }
                iovas.claim(iovas.range()).expect("no address was lost");
            });
        }
    }
}

/// Read-only and back, and a failed flush that a second call makes good.
#[test]
fn a_mapping_s_attributes_change_and_are_invalidated() {
    with_domain(|bench, domain| {
        let mut mapped = domain.map(PhysAddr(PHYS), 4 * PAGE, rw()).expect("room");
        let read = Attributes::new(Stage::One, Access::Read);
        let attributes =
            |mapped: &Mapped| domain.iova_to_phys(mapped, mapped.iova()).map(|to| to.attributes);
        bench.events();
        domain.protect(&mut mapped, read).expect("nothing fails unasked");
        assert_eq!(attributes(&mapped), Some(read));
        assert_eq!(bench.commands(), 4);
        bench.fail(1);
        let (iova, error) = (mapped.iova(), FlushError::Timeout);
        assert_eq!(domain.protect(&mut mapped, rw()), Err(UnmapError::Flush { iova, error }));
        bench.events();
        domain.protect(&mut mapped, rw()).expect("nothing fails unasked");
        assert_eq!((attributes(&mapped), bench.commands()), (Some(rw()), 4));
        let two = Attributes::new(Stage::Two, Access::Read);
        assert_eq!(domain.protect(&mut mapped, two), Err(UnmapError::Stage));
        domain.unmap(mapped).expect("nothing fails unasked");
    });
}
