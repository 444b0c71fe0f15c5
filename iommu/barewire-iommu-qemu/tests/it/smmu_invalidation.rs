//! Invalidation at stage 1 on QEMU's SMMUv3. After a missing invalidation the device sees stale data;
//! after the right one it sees new data or a fault. An invalidation of something else changes
//! nothing.

use barewire_iommu::smmu::v3::{Command, Scope};
use barewire_iommu::{
    Access, Context, Costs, FlushError, Granule, Invalidate, Iova, Segment, Stage, Strategy, Tlbi,
};

use crate::rig::{AttachedDevice, Setup, at, message, page_at, with_rig, with_setup};

const ASID: u16 = 7;
const IOVA: Iova = Iova(0x12_3440_0000);
const K4: u64 = 4 << 10;
const M2: u64 = 2 << 20;

fn pages(iova: Iova, count: u64) -> Tlbi {
    Tlbi::Pages { iova, stride: 12, count, leaf: true, level: None }
}

fn range(iova: Iova, pages: u64) -> Tlbi {
    Tlbi::Range { iova, page_shift: 12, pages, leaf: true, level: None }
}

/// Maps `IOVA` to page 1, has the device see it, and maps it to page 2.
fn remap(device: &mut AttachedDevice<'_, '_>) {
    let rig = device.rig;
    device.map(IOVA, rig.page(1), K4, Access::ReadWrite);
    assert_eq!(rig.read(IOVA), message(1));
    assert_eq!(device.unmap(IOVA, K4), K4);
    device.map(IOVA, rig.page(2), K4, Access::ReadWrite);
    assert_eq!(rig.read(IOVA), message(1), "nothing was invalidated, so the old page is read");
}

#[test]
fn the_right_invalidation_shows_the_new_page_and_a_wrong_one_the_old() {
    with_rig(|rig| {
        let mut device = rig.attach_stage1(ASID);
        let context = Context::Asid(ASID);
        let wrong = [
            (Context::Asid(ASID + 1), Tlbi::Context),
            (Context::Asid(ASID + 1), pages(IOVA, 1)),
            (Context::Asid(ASID | 0x100), pages(IOVA, 1)),
            (context, pages(at(IOVA, K4), 1)),
            (context, pages(Iova(IOVA.0 - 8 * K4), 8)),
            (context, pages(Iova(IOVA.0 & 0xffff_ffff), 1)),
            (context, range(at(IOVA, K4), 31)),
            (context, range(Iova(IOVA.0 - 33 * K4), 33)),
            (Context::Asid(ASID + 1), range(IOVA, 1)),
        ];
        let level = |operation| match operation {
            Tlbi::Pages { iova, stride, count, leaf, .. } => {
                Tlbi::Pages { iova, stride, count, leaf, level: Some(3) }
            }
            Tlbi::Range { iova, page_shift, pages, leaf, .. } => {
                Tlbi::Range { iova, page_shift, pages, leaf, level: Some(3) }
            }
            Tlbi::Context => Tlbi::Context,
        };
        let right = [
            (Tlbi::Context, &["TLBI_NH_ASID"][..]),
            (pages(IOVA, 1), &["TLBI_NH_VA"]),
            (level(pages(IOVA, 1)), &["TLBI_NH_VA"]),
            (pages(Iova(IOVA.0 - 2 * K4), 3), &["TLBI_NH_VA"; 3]),
            (range(IOVA, 1), &["TLBI_NH_VA"]),
            (level(range(IOVA, 1)), &["TLBI_NH_VA"]),
            (range(Iova(IOVA.0 - 31 * K4), 32), &["TLBI_NH_VA"]),
            (level(range(Iova(IOVA.0 - 32 * K4), 33)), &["TLBI_NH_VA"; 2]),
            (range(Iova(IOVA.0 & !(M2 - 1)), 512), &["TLBI_NH_VA"]),
        ];
        assert!(rig.smmu.has_ranges());
        for (operation, commands) in right {
            remap(&mut device);
            for (context, operation) in wrong {
                device.flush(context, &[operation]);
                assert_eq!(rig.read(IOVA), message(1), "{context:?} {operation:x?}");
            }
            let told = rig.commands(|| device.flush(context, &[operation]));
            assert_eq!(told, commands, "{operation:x?}");
            assert_eq!(rig.smmu.commands(&[operation]), commands.len() as u64);
            assert_eq!(rig.read(IOVA), message(2), "{operation:x?}");
            device.unmap(IOVA, K4);
            device.flush(context, &[Tlbi::Context]);
            rig.assert_unmapped(IOVA);
        }
        rig.assert_misuse(&[]);
    });
}

/// Entries of both tags are in the TLB at once, and each device uses its own.
#[test]
fn two_address_spaces_keep_apart() {
    with_rig(|rig| {
        let config = rig.config(Stage::One, Granule::Size4K);
        let (mut one, mut two) = (rig.attach(config, 1), rig.attach(config, 0xff01));
        one.map(IOVA, rig.page(1), K4, Access::ReadWrite);
        two.map(IOVA, rig.page(2), K4, Access::ReadWrite);
        assert_eq!(rig.read(IOVA), message(2));
        one.switch();
        assert_eq!(rig.read(IOVA), message(1));
        one.unmap(IOVA, K4);
        two.unmap(IOVA, K4);
        two.flush(two.context, &[Tlbi::Context]);
        assert_eq!(rig.read(IOVA), message(1), "still cached: the other's flush does not reach it");
        two.switch();
        rig.assert_unmapped(IOVA);
        one.switch();
        one.flush(one.context, &[pages(IOVA, 1)]);
        rig.assert_unmapped(IOVA);
    });
}

/// 40 pages go out of 64, in one call and in pieces; by every strategy the device has lost exactly
/// these.
#[test]
fn every_strategy_covers_what_was_unmapped() {
    let strategies = [
        (Strategy::ByPage, 40),
        // 32 + 8 pages: one command each.
        (Strategy::ByRange, 2),
        (Strategy::ByContext, 1),
        (Strategy::Adaptive(Costs::default()), 1),
    ];
    with_rig(|rig| {
        let mut device = rig.attach_stage1(ASID);
        let context = device.context;
        for (strategy, most) in strategies {
            for index in 0..64 {
                device.map(at(IOVA, index * K4), rig.page(index + 1), K4, Access::ReadWrite);
                assert_eq!(rig.read(at(IOVA, index * K4)), message(index + 1));
            }
            for (first, count) in [(4, 12), (16, 28)] {
                assert_eq!(device.unmap(at(IOVA, first * K4), count * K4), count * K4);
            }
            assert_eq!(rig.read(at(IOVA, 4 * K4)), message(5), "stale");
            assert_eq!(rig.read(at(IOVA, 43 * K4)), message(44), "stale");
            let operations = device.operations(strategy);
            let told = rig.commands(|| device.flush(context, operations.as_slice()));
            assert!((1..=most).contains(&told.len()), "{strategy:?}: {told:?}");
            device.release();
            for index in 0..64 {
                let iova = at(IOVA, index * K4);
                if (4..44).contains(&index) {
                    rig.assert_unmapped(iova);
                } else {
                    assert_eq!(rig.read(iova), message(index + 1));
                }
            }
            device.unmap(IOVA, 4 * K4);
            device.unmap(at(IOVA, 44 * K4), 20 * K4);
            device.flush(context, &[Tlbi::Context]);
            device.release();
        }
        rig.assert_misuse(&[]);
    });
}

/// The thread's buffer: 32 MiB of scattered pages, all tables unhooked, one invalidation.
#[test]
fn tables_unhooked_by_a_call_that_covers_them_are_one_invalidation() {
    const PAGES: u64 = 8192;
    with_rig(|rig| {
        let mut device = rig.attach_stage1(ASID);
        let list: Vec<_> = (0..PAGES)
            .map(|index| Segment { phys: page_at(1 + (index * 7) % 997), len: K4 })
            .collect();
        for page in 1..998 {
            rig.page(page);
        }
        let attributes = device.attributes(Access::ReadWrite);
        let mut gather = Default::default();
        // Of pages that lie one behind the other, so that the call covers whole tables.
        for round in 0..3 {
            let mapped = device.table().whole().map_sg(IOVA, &list, attributes, &mut gather);
            assert_eq!(mapped, Ok(PAGES * K4));
            let probes = [0, 1, 511, 512, 4095, PAGES - 1];
            let read_all = |what: &str| {
                for probe in probes {
                    let expected = message(1 + (probe * 7) % 997);
                    assert_eq!(rig.read(at(IOVA, probe * K4)), expected, "{what} {probe}");
                }
            };
            read_all("mapped");
            let tables = rig.machine.pool().taken();
            assert_eq!(device.unmap(IOVA, PAGES * K4), PAGES * K4);
            assert_eq!(device.gather.tables(), 16);
            assert_eq!(rig.machine.pool().taken(), tables, "none is given back yet");
            read_all("stale");
            let strategy = [Strategy::ByContext, Strategy::ByRange, Strategy::default()][round];
            let operations = device.operations(strategy);
            let context = device.context;
            let told = rig.commands(|| device.flush(context, operations.as_slice()));
            assert_eq!(told.len(), 1, "{strategy:?}: {told:?}");
            device.release();
            assert_eq!(rig.machine.pool().taken(), tables - 16);
            for probe in probes {
                rig.assert_unmapped(at(IOVA, probe * K4));
            }
        }
        // By page it is a command for each, through a queue of 64.
        assert!(device.table().whole().map_sg(IOVA, &list, attributes, &mut gather).is_ok());
        assert_eq!(rig.read(at(IOVA, (PAGES - 1) * K4)), message(1 + ((PAGES - 1) * 7) % 997));
        device.unmap(IOVA, PAGES * K4);
        let operations = device.operations(Strategy::ByPage);
        let context = device.context;
        let told = rig.commands(|| device.flush(context, operations.as_slice()));
        assert_eq!((told.len(), &*told[0]), (PAGES as usize, "TLBI_NH_VA"));
        device.release();
        rig.assert_unmapped(at(IOVA, (PAGES - 1) * K4));
        rig.assert_misuse(&[]);
    });
}

/// Queues of 2, 4 and 8 commands: batches are cut, indices wrap again and again.
#[test]
fn a_full_command_queue_completes_all_the_same() {
    for command_queue_log2 in 1..=3 {
        with_setup(Setup { command_queue_log2, ..Setup::default() }, |rig| {
            let mut device = rig.attach_stage1(ASID);
            let context = device.context;
            for count in [1, 2, 3, 7, 8, 9, 100] {
                remap(&mut device);
                // The page is the last of them.
                let first = Iova(IOVA.0 - (count - 1) * K4);
                let told = rig.commands(|| device.flush(context, &[pages(first, count)]));
                assert_eq!(told, vec!["TLBI_NH_VA"; count as usize]);
                assert_eq!(rig.read(IOVA), message(2), "{count} commands");
                device.unmap(IOVA, K4);
                device.flush(context, &[Tlbi::Context]);
            }
            rig.assert_misuse(&[]);
        });
    }
}

#[test]
fn a_refused_command_is_an_error_and_the_queue_goes_on() {
    /// No command has this number.
    const ILLEGAL: Command = Command([0xff, 0]);
    with_rig(|rig| {
        let mut device = rig.attach_stage1(ASID);
        let context = device.context;
        let right = Command::tlbi_nh_va(0, ASID, IOVA, true, None);
        let batches = [vec![ILLEGAL, right], vec![right, ILLEGAL], vec![ILLEGAL, ILLEGAL, right]];
        for batch in &batches {
            remap(&mut device);
            assert_eq!(rig.smmu.run(batch), Err(FlushError::Command(1)));
            assert_eq!(rig.read(IOVA), message(2), "the others were executed");
            device.unmap(IOVA, K4);
            device.flush(context, &[pages(IOVA, 1)]);
            rig.assert_unmapped(IOVA);
        }
        // More than the queue has room for.
        let all = vec![ILLEGAL; 150];
        assert_eq!(rig.smmu.run(&all), Err(FlushError::Command(1)));
        assert_eq!(rig.smmu.run(&[Command::SYNC]), Ok(()));
        remap(&mut device);
        device.flush(context, &[Tlbi::Context]);
        assert_eq!(rig.read(IOVA), message(2));
    });
}

/// SMMU_IDR3.RIL: TG, NUM and SCALE as the manual has them.
#[test]
fn the_fields_of_a_range_are_the_manual_s() {
    with_rig(|rig| {
        let mut device = rig.attach_stage1(ASID);
        let below = |granules: u64| Iova(IOVA.0 - granules * K4);
        let scope = |num, scale| Some(Scope { granule: Granule::Size4K, num, scale, level: None });
        // The first granule and the number covered. With one granule less, the page would not be
        // covered.
        for (num, scale, granules) in [(1, 0, 2), (31, 0, 32), (0, 1, 2), (0, 9, 512), (4, 3, 40)] {
            for (iova, expected) in [(below(granules), 1), (below(granules - 1), 2)] {
                remap(&mut device);
                // A range must begin at a multiple of its SCALE unit; otherwise the architecture
                // does not say what it covers.
                let command = Command::tlbi_nh_va(0, ASID, iova, true, scope(num, scale));
                rig.smmu.run(&[command]).expect("completes");
                assert_eq!(rig.read(IOVA), message(expected), "NUM {num}, SCALE {scale}");
                device.unmap(IOVA, K4);
                device.flush(Context::Asid(ASID), &[Tlbi::Context]);
            }
        }
    });
}
