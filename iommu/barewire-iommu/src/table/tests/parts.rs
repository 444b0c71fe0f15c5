//! Parts of one table in several threads: run under Miri, which sees data races and freed memory.

use std::thread;

use super::release;
use crate::address::{Iova, PhysAddr};
use crate::format::{Config, Granule, Stage};
use crate::gather::Gather;
use crate::table::PageTable;
use crate::testing::{config, rw, with_arena};

const K4: Config = config(Granule::Size4K, Stage::One, 32);
const PAGE: u64 = 4096;
const MIB: u64 = 1 << 20;

/// A thread maps, unmaps and frees tables while another looks up everything that its part gives it
/// a way to. (Before parts kept their table to themselves, the second thread could look up the
/// first one's page.)
#[test]
fn a_part_reaches_no_other_part() {
    with_arena(Granule::Size4K, 8, |arena| {
        let mut table = PageTable::new(K4, arena).expect("a root");
        let (mut low, high) = table.whole().split_at(Iova(2 * MIB));
        thread::scope(|scope| {
            scope.spawn(move || {
                for _ in 0..4 {
                    let mut gather = Gather::new();
                    let page = PhysAddr(16 * PAGE);
                    low.map(Iova(0), page, PAGE, rw(Stage::One), &mut gather).expect("free");
                    low.unmap(Iova(0), 2 * MIB, &mut gather).expect("no block is cut");
                    release(&low, &mut gather);
                }
            });
            scope.spawn(move || {
                for _ in 0..20 {
                    assert_eq!(high.iova_to_phys(Iova(0)), None, "the other part's");
                    assert_eq!(high.ranges(Iova(0)..Iova(1 << 32)).count(), 0);
                    assert_eq!(high.iova_to_phys(Iova(2 * MIB)), None, "its own, unmapped");
                    thread::yield_now();
                }
            });
        });
    });
}
