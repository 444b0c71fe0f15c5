//! Two threads on one domain, and a device that caches.

use std::collections::HashMap;
use std::thread;

use super::*;
use crate::deferred::Bounds;

/// A TLB that keeps an entry until it is invalidated. The value is the page that a device would
/// reach.
#[derive(Default)]
struct Device {
    cached: Mutex<HashMap<u64, PhysAddr>>,
}

impl Invalidate for &Device {
    fn flush(&self, _: Context, operations: &[Tlbi]) -> Result<(), FlushError> {
        let mut cached = lock(&self.cached);
        for operation in operations {
            match *operation {
                Tlbi::Context => cached.clear(),
                Tlbi::Pages { iova, stride, count, .. } => {
                    for i in 0..count {
                        cached.remove(&(iova.0 + (i << stride)));
                    }
                }
                Tlbi::Range { .. } => unreachable!("it has no ranges"),
            }
        }
        Ok(())
    }
}

fn under(policy: Policy) {
    let rounds: u64 = if cfg!(miri) { 3 } else { 3_000 };
    testing::with_arena(Granule::Size4K, if cfg!(miri) { 16 } else { 64 }, |arena| {
        let device = Device::default();
        // A small window, so that addresses are reused soon.
        let window = Iova(16 * MIB)..Iova(16 * MIB + 1280 * PAGE);
        let iovas = IovaWindow::new(window, Granule::Size4K, [0; 20]);
        let domain: Domain<_, _, _, 4> =
            Domain::with_queue(config(), Context::Asid(1), arena, &device, &iovas).unwrap();
        domain.set_policy(policy).unwrap();
        let work = |me: u64| {
            for round in 0..rounds {
                // A whole table now and then, in turns: it is most of the work under Miri.
                let pages = if (round + me).is_multiple_of(5) { 512 } else { 1 + (round + me) % 9 };
                let phys =
                    |page: u64| PhysAddr(PHYS + (((me * rounds + round) << 10) + 2 * page) * PAGE);
                let segments: Vec<Segment> =
                    (0..pages).map(|page| Segment { phys: phys(page), len: PAGE }).collect();
                let mapped = match domain.map_sg(&segments, rw()) {
                    Ok(mapped) => mapped,
                    // The addresses are held by the other thread or wait in the flush queue, so one
                    // of the threads must flush.
                    Err(DomainMapError::Exhausted(_)) => {
                        domain.flush().unwrap();
                        continue;
                    }
                    Err(error) => panic!("{error}"),
                };
                for page in [0, pages / 2, pages - 1] {
                    let iova = mapped.iova().0 + page * PAGE;
                    let found = domain.iova_to_phys(&mapped, Iova(iova)).unwrap().phys;
                    assert_eq!(found, phys(page));
                    // An entry cached there must not belong to another mapping.
                    let mut cached = lock(&device.cached);
                    assert_eq!(*cached.entry(iova).or_insert(found), found, "stale at {iova:#x}");
                }
                let range = mapped.range();
                let ticket = domain.unmap(mapped).unwrap().ticket;
                if round % 3 == 0 {
                    domain.wait(ticket).unwrap();
                }
                if domain.completed(ticket) {
                    // The device reaches our pages no more, although another mapping may have the
                    // addresses now.
                    let cached = lock(&device.cached);
                    let ours = |at: &PhysAddr| (0..pages).any(|page| phys(page) == *at);
                    let stale =
                        cached.iter().find(|(iova, at)| range.contains(&Iova(**iova)) && ours(at));
                    assert_eq!(stale, None);
                }
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| work(0));
            scope.spawn(|| work(1));
        });
        domain.flush().unwrap();
        assert_eq!((domain.waiting(), domain.live_leaves()), ((0, 0), 0));
        drop(domain);
        let all = if cfg!(miri) { 16 } else { 64 };
        assert_eq!(testing::drained(arena, PAGE as usize), all, "no table was lost");
        iovas.claim(iovas.range()).expect("no address was lost");
    });
}

#[test]
fn strict() {
    under(Strategy::ByPage.into());
}

#[test]
fn strict_each_table_by_context() {
    under(Policy { walks: Walks::EachTable, ..Strategy::ByContext.into() });
}

#[test]
fn deferred() {
    let bounds = Bounds { entries: 3, ..Bounds::default() };
    // To free, both are the same.
    let strategies = [Strategy::ByContext, Strategy::ByPage];
    for &strategy in &strategies[..if cfg!(miri) { 1 } else { 2 }] {
        let deferred = Some(Deferred { bounds, strategy });
        under(Policy { deferred, ..Policy::default() });
    }
}
