//! The Contiguous hint: what it saves, and that a group is cut only as hardware permits.

use barewire_iommu::{Config, Context, Iova, MapError, PhysAddr, UnmapError};
use barewire_iommu_model::{Fetching, FlushFailure, Machine, Options, Violation};

use crate::bench::{Bench, Kind};

const PAGE: u64 = 4096;
const GROUP: u64 = 16 * PAGE;
/// Not where a block of 2 MiB begins.
const AT: u64 = (1 << 30) + GROUP;
const PHYS: u64 = (3 << 30) + GROUP;

fn machine(bbml2: bool, fetching: Fetching) -> (Machine, Config) {
    let config = Config { input_bits: 39, bbml2, ..Config::default() };
    (Machine::new(Options { bbml2, fetching, ranges: true, ..Options::default() }), config)
}

fn with_group(bbml2: bool, test: impl FnOnce(&mut Bench<'_>)) {
    let (machine, config) = machine(bbml2, Fetching::Always);
    let mut bench = Bench::contiguous(&machine, config);
    bench.map(AT, PHYS, GROUP, Kind::Plain).expect("free");
    test(&mut bench);
    machine.assert_sound();
    bench.finish();
}

fn is_group(bench: &Bench<'_>, iova: u64) -> bool {
    bench.machine.walk(bench.context, iova).is_ok_and(|leaf| leaf.contiguous)
}

/// Counted in the model's TLB, of any size: the walks of a device that reads every page of 1 MiB once.
#[test]
fn a_group_takes_one_walk_instead_of_16() {
    let walks = |is_contiguous: bool, phys: u64| {
        let (machine, config) = machine(false, Fetching::OnDemand);
        let new = if is_contiguous { Bench::contiguous } else { Bench::new };
        let mut bench = new(&machine, config);
        bench.map(AT, phys, 1 << 20, Kind::Plain).expect("free");
        for page in 0..256 {
            let found = machine.access(bench.context, AT + page * PAGE).expect("it is mapped");
            assert_eq!(found.output + (AT + page * PAGE - found.iova), phys + page * PAGE);
        }
        machine.assert_sound();
        machine.counts().walks
    };
    assert_eq!((walks(false, PHYS), walks(true, PHYS)), (256, 16));
    assert_eq!(walks(true, PHYS + PAGE), 256, "memory that is not aligned as the addresses are");
}

#[test]
fn a_scatter_list_of_pages_becomes_groups_where_16_are_neighbours() {
    let (machine, config) = machine(false, Fetching::Always);
    let mut bench = Bench::contiguous(&machine, config);
    let neighbours = (0..40).map(|n| (PHYS + n * PAGE, PAGE));
    let list: Vec<_> = neighbours.chain((0..24).map(|n| (PHYS * 2 + 3 * n * PAGE, PAGE))).collect();
    bench.map_sg(AT, &list, Kind::Plain).expect("free");
    let groups = (0..64).filter(|n| is_group(&bench, AT + n * PAGE)).collect::<Vec<_>>();
    assert_eq!(groups, (0..32).collect::<Vec<_>>());
    // A page in the way: nothing is mapped, and the error names it.
    bench.unmap(AT, 64 * PAGE).expect("no group is cut");
    bench.map(AT + 20 * PAGE, PHYS, PAGE, Kind::Plain).expect("free");
    let in_the_way = bench.map(AT, PHYS, 2 * GROUP, Kind::Plain).expect_err("occupied");
    assert!(matches!(in_the_way, MapError::Occupied { iova, .. } if iova.0 == AT + 20 * PAGE));
    // The pages around it are mapped one by one, which makes no group.
    bench.map(AT + GROUP, PHYS + GROUP, 4 * PAGE, Kind::Plain).expect("free");
    assert!(!is_group(&bench, AT + GROUP));
    // Whole tables too, below a table that is there.
    let begin = (1 << 30) + (4 << 20);
    let list: Vec<_> = (0..1024).map(|n| (PHYS + (8 << 20) + n * PAGE, PAGE)).collect();
    bench.map_sg(begin, &list, Kind::Plain).expect("free");
    assert!((0..1024).all(|n| is_group(&bench, begin + n * PAGE)));
    machine.assert_sound();
    bench.finish();
}

#[test]
fn a_group_is_cut_only_as_hardware_permits() {
    for (skip, len) in [(0, PAGE), (5 * PAGE, PAGE), (15 * PAGE, PAGE), (4 * PAGE, 12 * PAGE)] {
        with_group(false, |bench| {
            let refused = bench.unmap(AT + skip, len).expect_err("a group is cut");
            let is_it = matches!(
                refused,
                UnmapError::PartOfBlock { iova, level: 3, .. } if iova.0 == AT
            );
            assert!(is_it, "{refused:?}");
            assert!(is_group(bench, AT), "nothing has changed");
            bench.flush().expect("nothing fails unasked");
            bench.unmap_quiesced(AT + skip, len).expect("any part can be unmapped");
            let left = (0..16).filter(|n| bench.machine.walk(bench.context, AT + n * PAGE).is_ok());
            assert_eq!(left.count() as u64, 16 - len / PAGE);
            assert!(!is_group(bench, AT) && !is_group(bench, AT + 15 * PAGE));
        });
        with_group(true, |bench| {
            bench.unmap(AT + skip, len).expect("the hint may change under a walker");
            bench.flush().expect("nothing fails unasked");
            assert!(!is_group(bench, AT) && !is_group(bench, AT + 15 * PAGE));
        });
    }
}

#[test]
fn a_group_that_could_not_be_invalidated_stays() {
    with_group(false, |bench| {
        bench.machine.fail_flush(0, FlushFailure::After);
        bench.machine.quiesce(bench.context, true);
        let (machine, context) = (bench.machine, bench.context);
        machine.begin(context, bench.map.clone());
        let mut part = bench.table.whole();
        let result = part.unmap_quiesced(Iova(AT + PAGE), PAGE, &mut bench.gather, |_| {
            barewire_iommu::Invalidate::flush(machine, context, &[barewire_iommu::Tlbi::Context])
        });
        assert!(matches!(result, Err(UnmapError::Flush { iova: Iova(AT), .. })), "{result:?}");
        machine.end(context, bench.map.clone());
        machine.quiesce(context, false);
        assert!((0..16).all(|n| is_group(bench, AT + n * PAGE)));
    });
}

#[test]
fn a_group_s_attributes_change_together() {
    with_group(false, |bench| {
        // Permissions alone: for a group by break-before-make too.
        bench.protect(AT, GROUP, Kind::PlainReadOnly).expect("all of it");
        bench.flush().expect("nothing fails unasked");
        assert!((0..16).all(|n| is_group(bench, AT + n * PAGE)));
        let cut = bench.protect(AT, PAGE, Kind::Plain).expect_err("a group is cut");
        assert!(matches!(cut, UnmapError::PartOfBlock { .. }));
    });
}

#[test]
#[allow(unsafe_code, reason = "misuses the pool on purpose")]
fn a_group_with_a_page_that_is_not_like_the_others_is_found() {
    use barewire_iommu::Pool;
    let (machine, config) = machine(true, Fetching::Always);
    let mut bench = Bench::contiguous(&machine, config);
    bench.map(AT, PHYS, GROUP, Kind::Plain).expect("free");
    let map = bench.map.clone();
    machine.end(Context::Asid(3), map.clone());
    machine.assert_sound();
    // The table of the last level was made last.
    let index = (AT >> 12 & 511) as usize;
    let leaf = machine.walk(bench.context, AT + 3 * PAGE).expect("it is mapped").raw;
    let last = (1..64).map(|n| PhysAddr((1 << 30) + n * 0x2000));
    // SAFETY: the machine checks accesses itself.
    let is_it = |at: &PhysAddr| unsafe { machine.load(*at, index + 3) } == leaf;
    let table = last.into_iter().find(is_it).expect("there is such a table");
    machine.take_violations();
    // SAFETY: as above.
    unsafe { machine.store(table, index + 3, leaf & !(1 << 52)) };
    machine.barrier();
    machine.end(Context::Asid(3), map);
    let found = machine.take_violations();
    assert!(found.contains(&Violation::Group { context: Context::Asid(3), iova: AT }), "{found:?}");
}

/// What was split is still in the TLB, as the block or the group that it was, until the gather is flushed.
#[test]
fn a_memory_type_changes_in_what_was_split_before_the_flush() {
    for (at, len) in [(1 << 30, 2 << 20), (AT, GROUP)] {
        let (machine, config) = machine(true, Fetching::Always);
        let mut bench = Bench::contiguous(&machine, config);
        bench.map(at, at + (1 << 30), len, Kind::Plain).expect("free");
        bench.unmap(at + len - PAGE, PAGE).expect("it may be split");
        bench.protect(at, PAGE, Kind::Registers).expect("all of it");
        machine.assert_sound();
        bench.flush().expect("nothing fails unasked");
        bench.finish();
    }
}
