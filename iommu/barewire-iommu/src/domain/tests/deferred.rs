//! Deferred domains: nothing is released before its flush, and the bounds hold.

use super::*;
use crate::deferred::Bounds;

fn deferred(bounds: Bounds) -> Policy {
    Policy { deferred: Some(Deferred { bounds, ..Deferred::default() }), ..Policy::default() }
}

#[test]
#[cfg_attr(miri, ignore = "takes Miri long, and shows it nothing that the others do not")]
fn nothing_comes_back_before_its_flush() {
    with_domain(|bench, domain| {
        domain.set_policy(deferred(Bounds::default())).unwrap();
        let before = tables_left(bench);
        let mapped: Vec<Mapped> =
            (0..3).map(|_| domain.map_sg(&scattered(512), rw()).unwrap()).collect();
        let ranges: Vec<_> = mapped.iter().map(Mapped::range).collect();
        let tickets: Vec<Ticket> =
            mapped.into_iter().map(|mapped| domain.unmap(mapped).unwrap().ticket).collect();
        assert_eq!(bench.events(), []);
        assert_eq!(domain.waiting(), (3, 3 * 2 * MIB));
        // Two upper levels, and three tables that wait.
        assert_eq!(tables_left(bench), before - 5);
        for (range, ticket) in ranges.iter().zip(&tickets) {
            assert!(!domain.completed(*ticket));
            let taken = domain.map_at(range.start, &scattered(1), rw());
            assert!(matches!(taken, Err(DomainMapError::Claim(ClaimError::Taken))));
        }
        // Waiting for the first ticket flushes all of them, once and by context.
        domain.wait(tickets[0]).unwrap();
        assert!(tickets.iter().all(|ticket| domain.completed(*ticket)));
        let events = bench.events();
        assert_eq!(events[0], Event::Flush(vec![Tlbi::Context]));
        assert_eq!((events.len(), tables_left(bench)), (1 + 3 + 3, before - 2));
        assert_eq!(domain.waiting(), (0, 0));
        domain.flush().unwrap();
        assert_eq!(bench.events(), []);
    });
}

/// The queue has room for four: the fifth unmap flushes them, then waits itself.
#[test]
#[cfg_attr(miri, ignore = "takes Miri a minute, and shows it nothing that the others do not")]
fn bound_by_entries() {
    with_domain(|bench, domain| {
        for (entries, flushes) in [(usize::MAX, 2), (2, 4), (1, 9), (0, 10)] {
            domain.set_policy(deferred(Bounds { entries, ..Bounds::default() })).unwrap();
            for _ in 0..10 {
                let mapped = domain.map_sg(&scattered(1), rw()).unwrap();
                domain.unmap(mapped).unwrap();
                assert!(domain.waiting().0 <= entries.min(4));
            }
            assert_eq!(bench.flushes().len(), flushes, "{entries}");
            domain.flush().unwrap();
            bench.events();
        }
    });
}

#[test]
#[cfg_attr(miri, ignore = "takes Miri a minute, and shows it nothing that the others do not")]
fn bound_by_bytes() {
    with_domain(|bench, domain| {
        let bounds = Bounds { bytes: 10 * PAGE, ..Bounds::default() };
        domain.set_policy(deferred(bounds)).unwrap();
        let unmap = |pages| {
            let mapped = domain.map_sg(&scattered(pages), rw()).unwrap();
            let ticket = domain.unmap(mapped).unwrap().ticket;
            (bench.flushes().len(), domain.completed(ticket), domain.waiting().1 / PAGE)
        };
        assert_eq!(unmap(4), (0, false, 4));
        assert_eq!(unmap(6), (0, false, 10));
        assert_eq!(unmap(1), (1, false, 1));
        // Larger than the bound: the queue is flushed to make room, then this range is flushed at
        // once.
        assert_eq!(unmap(11), (2, true, 0));
    });
}

#[test]
#[cfg_attr(miri, ignore = "takes Miri a minute, and shows it nothing that the others do not")]
fn bound_by_age() {
    with_domain(|bench, domain| {
        let bounds = Bounds { age_ticks: 100, ..Bounds::default() };
        domain.poll(1).unwrap();
        domain.set_policy(deferred(bounds)).unwrap();
        domain.poll(1_000).unwrap();
        let mapped = domain.map_sg(&scattered(1), rw()).unwrap();
        let ticket = domain.unmap(mapped).unwrap().ticket;
        domain.poll(1_099).unwrap();
        assert_eq!((bench.events(), domain.completed(ticket)), (vec![], false));
        bench.fail(1);
        assert_eq!(domain.poll(1_100), Err(FlushError::Timeout));
        assert!(!domain.completed(ticket));
        domain.poll(1_101).unwrap();
        assert!(domain.completed(ticket));
        bench.events();
        domain.poll(5_000).unwrap();
        assert_eq!(bench.events(), [], "nothing waits");
    });
}

#[test]
fn a_failed_flush_releases_nothing() {
    with_domain(|bench, domain| {
        domain.set_policy(deferred(Bounds::default())).unwrap();
        let unmap = |pages| {
            let mapped = domain.map_sg(&scattered(pages), rw()).unwrap();
            domain.unmap(mapped)
        };
        let first = unmap(512).unwrap().ticket;
        bench.fail(3);
        assert_eq!(domain.wait(first), Err(FlushError::Timeout));
        assert_eq!(domain.flush(), Err(FlushError::Timeout));
        assert_eq!(domain.set_policy(Policy::default()), Err(FlushError::Timeout));
        assert_eq!(bench.events(), [Event::Failed, Event::Failed, Event::Failed]);
        assert!(!domain.completed(first));
        domain.wait(first).unwrap();
        assert_eq!(bench.events().len(), 3);
    });
}

/// A full queue whose flush fails: the next unmap is flushed on its own. If that fails too, the
/// caller gets it back as held.
#[test]
fn a_full_queue_that_fails_leaves_the_next_to_its_caller() {
    with_domain(|bench, domain| {
        let bounds = Bounds { entries: 1, ..Bounds::default() };
        domain.set_policy(deferred(bounds)).unwrap();
        let unmap = || {
            let mapped = domain.map_sg(&scattered(1), rw()).unwrap();
            domain.unmap(mapped)
        };
        let waits = unmap().unwrap().ticket;
        bench.fail(2);
        let Err(DomainUnmapError::Held(held)) = unmap() else { panic!("both flushes failed") };
        assert_eq!((bench.events().len(), domain.waiting().0), (2, 1));
        bench.fail(1);
        let done = unmap().unwrap().ticket;
        assert!(domain.completed(done) && !domain.completed(waits));
        domain.retry(held).unwrap();
        assert!(!domain.completed(waits), "the queue is flushed by its own flushes alone");
        domain.flush().unwrap();
        assert!(domain.completed(waits));
    });
}

#[test]
#[cfg_attr(miri, ignore = "takes Miri a minute, and shows it nothing that the others do not")]
fn by_page_if_that_is_asked_for() {
    with_domain(|bench, domain| {
        let by_page = Deferred { strategy: Strategy::ByPage, ..Deferred::default() };
        domain.set_policy(Policy { deferred: Some(by_page), ..Policy::default() }).unwrap();
        for pages in [3, 4] {
            let mapped = domain.map_sg(&scattered(pages), rw()).unwrap();
            domain.unmap(mapped).unwrap();
        }
        domain.flush().unwrap();
        assert_eq!(bench.commands(), 7);
    });
}

#[test]
#[cfg_attr(miri, ignore = "takes Miri a minute, and shows it nothing that the others do not")]
fn becoming_strict_flushes() {
    with_domain(|bench, domain| {
        domain.set_policy(deferred(Bounds::default())).unwrap();
        let mapped = domain.map_sg(&scattered(1), rw()).unwrap();
        let ticket = domain.unmap(mapped).unwrap().ticket;
        domain.set_policy(Strategy::ByPage).unwrap();
        assert!(domain.completed(ticket));
        assert_eq!(bench.flushes().len(), 1);
    });
}

#[test]
#[should_panic(expected = "another domain's")]
#[cfg_attr(miri, ignore = "takes Miri a minute, and shows it nothing that the others do not")]
fn another_domains_ticket_is_a_mistake() {
    with_domain(|bench, domain| {
        let other = super::domain(bench, 2);
        let mapped = other.map_sg(&scattered(1), rw()).unwrap();
        let ticket = other.unmap(mapped).unwrap().ticket;
        domain.completed(ticket);
    });
}

#[test]
#[cfg_attr(miri, ignore = "takes Miri a minute, and shows it nothing that the others do not")]
fn a_dropped_domain_flushes_what_waits() {
    with_domain(|bench, first| {
        drop(first);
        let before = tables_left(bench);
        let domain = domain(bench, 3);
        domain.set_policy(deferred(Bounds::default())).unwrap();
        let mapped = domain.map_sg(&scattered(512), rw()).unwrap();
        domain.unmap(mapped).unwrap();
        drop(domain);
        assert_eq!(tables_left(bench), before);
    });
}
