//! [`Domain`] on QEMU's SMMUv3: what its callers are promised, as a device sees it; and what the
//! device sees when the hardware's back end does not keep its own promise.

use std::cell::Cell;

use barewire_iommu::smmu::v3::{ContextDescriptor, Stream};
use barewire_iommu::{
    Access, Attributes, Config, Context, Costs, Deferred, Domain, DomainUnmapError, FlushError,
    Granule, Invalidate, Iova, IovaWindow, Mapped, Policy, Segment, Stage, Strategy, Ticket, Tlbi,
    Walks,
};
use barewire_iommu_qemu::{GuestPool, VirtMachine};

use crate::rig::{MAILBOX, Mmu, Rig, at, message, page_at, with_rig, with_stage2};

const K4: u64 = 4 << 10;
const TAG: u16 = 3;
/// The thread's buffer.
const PAGES: u64 = 8192;
/// Above it and around it: blocks are not the subject here.
const WINDOW: std::ops::Range<Iova> = Iova(0x1_0000_0000)..Iova(0x1_4000_0000);

/// The back end's treatment of a flush.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
enum Mood {
    /// It issues the right commands.
    #[default]
    Honest,
    /// It issues nothing, and reports success.
    Forgets,
    /// It issues the right commands with another domain's tag.
    WrongTag,
    /// It issues all but the last command, or commands for another page.
    WrongPages,
    /// It issues nothing, and reports an error.
    Fails,
}

/// The SMMU's back end, on a bad day.
struct Moody<'s, 'r> {
    smmu: &'s Mmu<'r>,
    mood: Cell<Mood>,
}

impl Invalidate for Moody<'_, '_> {
    fn flush(&self, context: Context, operations: &[Tlbi]) -> Result<(), FlushError> {
        match self.mood.get() {
            Mood::Honest => self.smmu.flush(context, operations),
            Mood::Forgets => Ok(()),
            Mood::WrongTag => {
                let other = match context {
                    Context::Asid(asid) => Context::Asid(asid ^ 1),
                    Context::Vmid(vmid) => Context::Vmid(vmid ^ 1),
                };
                self.smmu.flush(other, operations)
            }
            Mood::WrongPages => {
                let pages =
                    |iova| Tlbi::Pages { iova, stride: 12, count: 1, leaf: false, level: None };
                self.smmu.flush(context, &[pages(WINDOW.end)])
            }
            Mood::Fails => Err(FlushError::Timeout),
        }
    }

    fn has_ranges(&self) -> bool {
        self.smmu.has_ranges()
    }

    fn commands(&self, operations: &[Tlbi]) -> u64 {
        self.smmu.commands(operations)
    }
}

type Tested<'s, 'r> = Domain<&'r GuestPool, Moody<'s, 'r>, IovaWindow<Vec<u64>>>;

/// A device in a domain.
struct Bench<'s, 'r> {
    rig: &'s Rig<'r>,
    domain: Tested<'s, 'r>,
    attributes: Attributes,
}

impl<'s, 'r> Bench<'s, 'r> {
    fn new(rig: &'s Rig<'r>, config: Config) -> Self {
        let storage = vec![0; (WINDOW.end.0 - WINDOW.start.0) as usize / K4 as usize / 64];
        let iovas = IovaWindow::new(WINDOW, config.granule, storage);
        let context = match config.stage {
            Stage::One => Context::Asid(TAG),
            Stage::Two => Context::Vmid(TAG),
        };
        let moody = Moody { smmu: rig.smmu, mood: Cell::default() };
        let pool = rig.machine.pool();
        let domain = Domain::new(config, context, pool, moody, iovas).expect("a domain");
        let attributes = Attributes::new(config.stage, Access::ReadWrite);
        let mailbox = [Segment { phys: VirtMachine::DATA, len: K4 }];
        // Mapped as long as the domain lives.
        let _mapped = domain.map_at(MAILBOX, &mailbox, attributes).expect("mapped");
        let (geometry, root) = (*domain.geometry(), domain.root());
        match config.stage {
            Stage::One => {
                let mut contexts = rig.smmu.contexts(0).expect("a context table");
                let descriptor = ContextDescriptor { geometry, root, asid: TAG };
                contexts.set(0, Some(&descriptor), &[]).expect("a context descriptor");
                rig.set_stream(&contexts.stream());
            }
            Stage::Two => rig.set_stream(&Stream::Stage2 { geometry, root, vmid: TAG }),
        }
        domain.set_counting(true);
        Self { rig, domain, attributes }
    }

    fn stage1(rig: &'s Rig<'r>) -> Self {
        Self::new(rig, rig.config(Stage::One, Granule::Size4K))
    }

    fn set_mood(&self, mood: Mood) {
        self.domain.invalidate().mood.set(mood);
    }

    /// Maps `count` pages, no two of which lie side by side; the first is `page`.
    fn map(&self, page: u64, count: u64) -> Mapped {
        let list: Vec<_> = (0..count)
            .map(|index| Segment { phys: self.rig.page(nth(page, index)), len: K4 })
            .collect();
        self.domain.map_sg(&list, self.attributes).expect("mapped")
    }

    /// The device reads the first page that `map` mapped, the last, and some between.
    fn assert_read(&self, iova: Iova, page: u64, count: u64, why: &str) {
        for index in probes(count) {
            let found = self.rig.read(at(iova, index * K4));
            assert_eq!(found, message(nth(page, index)), "{why}, page {index} of {count}");
        }
    }

    fn assert_unmapped(&self, iova: Iova, count: u64) {
        for index in probes(count) {
            self.rig.assert_unmapped(at(iova, index * K4));
        }
    }

    /// The SMMU's commands while a mapping is unmapped.
    fn unmap(&self, mapped: Mapped) -> Vec<String> {
        self.rig.commands(|| {
            let unmapped = self.domain.unmap(mapped).expect("unmapped");
            assert!(self.domain.completed(unmapped.ticket));
        })
    }
}

impl Drop for Bench<'_, '_> {
    fn drop(&mut self) {
        // The device must stop before its tables go.
        if !std::thread::panicking() {
            self.rig.set_stream(&Stream::Abort);
        }
    }
}

fn nth(page: u64, index: u64) -> u64 {
    1 + (page - 1 + index * 7) % 997
}

fn probes(count: u64) -> impl Iterator<Item = u64> {
    let probes = [0, 1, count / 2, count.saturating_sub(2), count - 1];
    probes.into_iter().filter(move |&index| index < count)
}

/// The thread's figures, counted by the SMMU: 32 MiB of scattered pages are 8,192 invalidations by
/// page, 16 by ASID where each table is flushed alone, and one gathered.
#[test]
fn an_unmap_of_32_mib_is_8192_commands_or_16_or_1() {
    with_rig(|rig| {
        let bench = Bench::stage1(rig);
        let policy = |strategy, walks| Policy { strategy, walks, deferred: None };
        let cases = [
            (policy(Strategy::ByPage, Walks::EachTable), "TLBI_NH_VA", PAGES),
            (policy(Strategy::ByPage, Walks::Gathered), "TLBI_NH_VA", PAGES),
            (policy(Strategy::ByContext, Walks::EachTable), "TLBI_NH_ASID", 16),
            (policy(Strategy::ByContext, Walks::Gathered), "TLBI_NH_ASID", 1),
            (policy(Strategy::ByRange, Walks::EachTable), "TLBI_NH_VA", 16),
            (policy(Strategy::ByRange, Walks::Gathered), "TLBI_NH_VA", 1),
            (policy(Strategy::Adaptive(Costs::default()), Walks::Gathered), "", 1),
        ];
        for (round, (policy, name, count)) in cases.into_iter().enumerate() {
            bench.domain.set_policy(policy).expect("nothing waits");
            let page = 1 + round as u64;
            let mapped = bench.map(page, PAGES);
            let iova = mapped.iova();
            bench.assert_read(iova, page, PAGES, "mapped");
            let before = bench.domain.statistics();
            let told = bench.unmap(mapped);
            assert_eq!(told.len() as u64, count, "{policy:?}");
            assert!(told.iter().all(|told| name.is_empty() || told == name), "{policy:?}");
            let after = bench.domain.statistics();
            let counted =
                |from: fn(&barewire_iommu::Statistics) -> u64| from(&after) - from(&before);
            let commands = counted(|s| s.page_commands + s.range_commands + s.context_commands);
            assert_eq!((commands, counted(|s| s.tables_freed)), (count, 16), "{policy:?}");
            bench.assert_unmapped(iova, PAGES);
        }
        rig.assert_misuse(&[]);
    });
}

#[test]
fn in_a_strict_domain_nothing_is_reached_after_unmap_and_addresses_are_used_again() {
    with_rig(|rig| {
        let bench = Bench::stage1(rig);
        let strategies = [
            Strategy::ByPage,
            Strategy::ByRange,
            Strategy::ByContext,
            Strategy::Adaptive(Costs::default()),
        ];
        for strategy in strategies {
            bench.domain.set_strategy(strategy);
            let mut begin = None;
            for (page, count) in [(1, 1), (2, 1), (30, 2), (40, 16), (50, 16), (60, 100), (70, 512)]
            {
                let mapped = bench.map(page, count);
                let iova = mapped.iova();
                begin.get_or_insert(iova);
                bench.assert_read(iova, page, count, "mapped");
                let held = bench.map(page + 1, count);
                bench.assert_read(held.iova(), page + 1, count, "its neighbour");
                bench.unmap(mapped);
                bench.assert_unmapped(iova, count);
                bench.assert_read(held.iova(), page + 1, count, "untouched");
                bench.unmap(held);
            }
            // The first IOVA was mapped again, to another page.
            let mapped = bench.map(90, 1);
            assert_eq!(Some(mapped.iova()), begin);
            bench.assert_read(mapped.iova(), 90, 1, "again");
            bench.unmap(mapped);
        }
        rig.assert_misuse(&[]);
    });
}

/// Shows that these tests can fail: if an invalidation is left out, or covers the wrong addresses,
/// the device still reads data that should be unreachable.
#[test]
fn a_back_end_that_does_not_invalidate_is_seen_as_stale_data() {
    with_rig(|rig| {
        let bench = Bench::stage1(rig);
        for mood in [Mood::Forgets, Mood::WrongTag, Mood::WrongPages] {
            for strategy in [Strategy::ByPage, Strategy::ByRange, Strategy::ByContext] {
                bench.domain.set_strategy(strategy);
                for count in [1, 20, 1024] {
                    let mapped = bench.map(100, count);
                    let iova = mapped.iova();
                    bench.assert_read(iova, 100, count, "mapped");
                    bench.set_mood(mood);
                    bench.unmap(mapped);
                    bench.assert_read(
                        iova,
                        100,
                        count,
                        "unmapped for us, still mapped for the device",
                    );
                    let mapped = bench.map(200, count);
                    assert_eq!(mapped.iova(), iova);
                    bench.assert_read(
                        iova,
                        100,
                        count,
                        "the device reads the old pages, not the new",
                    );
                    bench.set_mood(Mood::Honest);
                    bench.unmap(mapped);
                    bench.assert_unmapped(iova, count);
                }
            }
        }
    });
}

/// A flush that fails frees nothing: the device goes on reaching the pages, their addresses are
/// not handed out again, and no table changes hands until it succeeds.
#[test]
fn what_a_failed_flush_holds_is_nobody_s() {
    with_rig(|rig| {
        let bench = Bench::stage1(rig);
        let mapped = bench.map(100, 1024);
        let (iova, tables) = (mapped.iova(), rig.machine.pool().taken());
        bench.assert_read(iova, 100, 1024, "mapped");
        bench.set_mood(Mood::Fails);
        let Err(DomainUnmapError::Held(held)) = bench.domain.unmap(mapped) else {
            panic!("the flush failed")
        };
        assert_eq!((held.error(), held.range().start), (FlushError::Timeout, iova));
        bench.assert_read(iova, 100, 1024, "still reached");
        assert_eq!(rig.machine.pool().taken(), tables);
        let other = bench.map(500, 1024);
        assert_ne!(other.iova(), iova);
        bench.set_mood(Mood::Honest);
        bench.domain.retry(held).expect("this time it works");
        bench.assert_unmapped(iova, 1024);
        bench.assert_read(other.iova(), 500, 1024, "untouched");
        bench.unmap(other);
    });
}

#[test]
fn in_a_deferred_domain_one_flush_is_for_all_and_until_then_addresses_rest() {
    with_rig(|rig| {
        let bench = Bench::stage1(rig);
        let deferred = Some(Deferred::default());
        bench.domain.set_policy(Policy { deferred, ..Policy::default() }).expect("nothing waits");
        let mut waiting: Vec<(Iova, u64, Ticket)> = Vec::new();
        let told = rig.commands(|| {
            for page in [1, 40, 80, 120] {
                let mapped = bench.map(page, 16);
                let iova = mapped.iova();
                assert!(waiting.iter().all(|&(used, ..)| used != iova), "used too early");
                bench.assert_read(iova, page, 16, "mapped");
                let unmapped = bench.domain.unmap(mapped).expect("unmapped");
                waiting.push((iova, page, unmapped.ticket));
            }
            for &(iova, page, ticket) in &waiting {
                assert!(!bench.domain.completed(ticket));
                bench.assert_read(iova, page, 16, "no completion was promised yet");
            }
        });
        assert_eq!((told.len(), bench.domain.waiting().0), (0, 4));
        let told = rig.commands(|| bench.domain.wait(waiting[1].2).expect("flushed"));
        assert_eq!(told, ["TLBI_NH_ASID"]);
        for (iova, _, ticket) in waiting {
            assert!(bench.domain.completed(ticket));
            bench.assert_unmapped(iova, 16);
        }
        let mapped = bench.map(200, 16);
        bench.assert_read(mapped.iova(), 200, 16, "used again");
        bench.domain.unmap(mapped).expect("unmapped");
        rig.assert_misuse(&[]);
    });
}

#[test]
fn a_virtual_machine_s_domain_goes_by_its_vmid() {
    with_stage2(|rig| {
        let bench = Bench::new(rig, rig.config(Stage::Two, Granule::Size4K));
        for (strategy, name, most) in [
            (Strategy::ByPage, "TLBI_S2_IPA", 1024),
            (Strategy::ByRange, "TLBI_S2_IPA", 1),
            (Strategy::ByContext, "TLBI_S12_VMALL", 1),
        ] {
            bench.domain.set_strategy(strategy);
            for mood in [Mood::Honest, Mood::WrongTag] {
                let mapped = bench.map(100, 1024);
                let iova = mapped.iova();
                bench.assert_read(iova, 100, 1024, "mapped");
                bench.set_mood(mood);
                let told = bench.unmap(mapped);
                bench.set_mood(Mood::Honest);
                if mood == Mood::Honest {
                    assert_eq!((told.len(), &*told[0]), (most, name));
                    bench.assert_unmapped(iova, 1024);
                } else {
                    bench.assert_read(iova, 100, 1024, "another's VMID");
                    rig.smmu.flush(Context::Vmid(TAG), &[Tlbi::Context]).expect("completes");
                }
            }
        }
        rig.assert_misuse(&[]);
    });
}

/// Each allocation that a mapping needs fails in turn: no mapping remains, and no table is lost.
#[test]
fn a_mapping_that_finds_no_memory_leaves_nothing_behind() {
    with_rig(|rig| {
        let bench = Bench::stage1(rig);
        let pool = rig.machine.pool();
        let list: Vec<_> =
            (0..1500).map(|index| Segment { phys: page_at(nth(1, index)), len: K4 }).collect();
        let iova = WINDOW.start;
        let before = bench.domain.live_leaves();
        let mut failures = 0;
        loop {
            pool.limit(failures);
            let mapped = bench.domain.map_at(iova, &list, bench.attributes);
            pool.limit(usize::MAX);
            let Ok(mapped) = mapped else {
                failures += 1;
                assert_eq!(bench.domain.live_leaves(), before);
                bench.assert_unmapped(iova, 1500);
                continue;
            };
            rig.page(nth(1, 1499));
            assert_eq!(rig.read(at(iova, 1499 * K4)), message(nth(1, 1499)));
            bench.unmap(mapped);
            break;
        }
        assert!(failures >= 3, "at least three tables, but {failures} failures");
    });
}
