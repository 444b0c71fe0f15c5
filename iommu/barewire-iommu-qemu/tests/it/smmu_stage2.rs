//! Stage 2 on QEMU's SMMUv3 (8.1 or later): a device's addresses are a virtual machine's.

use std::collections::BTreeSet;

use barewire_iommu::smmu::v3::EventKind;
use barewire_iommu::{
    Access, Config, Context, Granule, Iova, PhysAddr, Segment, Stage, Strategy, Tlbi,
};
use barewire_iommu_qemu::VirtMachine;

use crate::rig::{
    AttachedDevice, MESSAGE, NOTHING, Rig, at, at_phys, leaves, message, page_at, with_stage2,
};

const VMID: u16 = 5;
const IPA: Iova = Iova(0x8_3440_0000);
const K4: u64 = 4 << 10;
const M2: u64 = 2 << 20;

fn stage2(rig: &Rig<'_>) -> Config {
    Config { input_bits: 40, ..rig.config(Stage::Two, Granule::Size4K) }
}

fn pages(iova: Iova, count: u64) -> Tlbi {
    Tlbi::Pages { iova, stride: 12, count, leaf: true, level: None }
}

fn range(iova: Iova, pages: u64) -> Tlbi {
    Tlbi::Range { iova, page_shift: 12, pages, leaf: true, level: None }
}

#[test]
fn dma_goes_both_ways_and_what_may_not_is_an_event() {
    with_stage2(|rig| {
        let mut device = rig.attach(stage2(rig), VMID);
        device.map(IPA, rig.page(1), K4, Access::ReadWrite);
        device.map(at(IPA, K4), rig.page(2), K4, Access::Read);
        device.map(at(IPA, 2 * K4), rig.page(3), K4, Access::Write);
        device.map(at(IPA, M2), VirtMachine::DATA, M2, Access::ReadWrite);
        assert_eq!(rig.read(IPA), message(1));
        rig.write(at(IPA, 32), *b"a guest's device");
        assert_eq!(rig.message_at(at_phys(page_at(1), 32)), *b"a guest's device");
        let inside = at(IPA, M2 + rig.page(20).0 - VirtMachine::DATA.0);
        assert_eq!(rig.read(inside), message(20));

        // The refused accesses come first, because of a difference of the model
        // (`src/virt/mod.rs`).
        rig.write(at(IPA, K4), *b"is read only....");
        rig.assert_fault(EventKind::Permission, at(IPA, K4), MESSAGE, true);
        assert_eq!(rig.read(at(IPA, K4)), message(2));
        assert_eq!(rig.read(at(IPA, 2 * K4)), NOTHING);
        rig.assert_fault(EventKind::Permission, at(IPA, 2 * K4), MESSAGE, false);
        rig.write(at(IPA, 2 * K4), *b"is write only...");
        assert_eq!(rig.message_at(page_at(3)), *b"is write only...");

        let beyond = at(IPA, 3 * K4);
        rig.machine.edu().fetch(at(beyond, 8), 4).expect("fetches");
        let events = rig.events();
        let [event] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!((event.kind, event.sid), (EventKind::Translation, rig.sid()));
        assert_eq!((event.iova, event.is_write), (Some(at(beyond, 8)), Some(false)));
        assert_eq!((event.stage, event.ipa), (Some(Stage::Two), Some(PhysAddr(beyond.0))));
        rig.assert_misuse(&[]);
    });
}

/// Maps `IPA` to page 1, has the device see it, and maps it to page 2.
fn remap(device: &mut AttachedDevice<'_, '_>) {
    let rig = device.rig;
    device.map(IPA, rig.page(1), K4, Access::ReadWrite);
    assert_eq!(rig.read(IPA), message(1));
    assert_eq!(device.unmap(IPA, K4), K4);
    device.map(IPA, rig.page(2), K4, Access::ReadWrite);
    assert_eq!(rig.read(IPA), message(1), "nothing was invalidated, so the old page is read");
}

#[test]
fn the_right_invalidation_shows_the_new_page_and_a_wrong_one_the_old() {
    with_stage2(|rig| {
        let mut device = rig.attach(stage2(rig), VMID);
        let context = Context::Vmid(VMID);
        let wrong = [
            (Context::Vmid(VMID + 1), Tlbi::Context),
            (Context::Vmid(VMID + 1), pages(IPA, 1)),
            (Context::Vmid(VMID | 0x100), range(IPA, 1)),
            (Context::Asid(VMID), Tlbi::Context),
            (Context::Asid(0), pages(IPA, 1)),
            (context, pages(at(IPA, K4), 1)),
            (context, range(at(IPA, K4), 31)),
            (context, range(Iova(IPA.0 - 32 * K4), 32)),
        ];
        let right = [
            (Tlbi::Context, &["TLBI_S12_VMALL"][..]),
            (pages(IPA, 1), &["TLBI_S2_IPA"]),
            (pages(Iova(IPA.0 - 2 * K4), 3), &["TLBI_S2_IPA"; 3]),
            (range(IPA, 1), &["TLBI_S2_IPA"]),
            (range(Iova(IPA.0 - 31 * K4), 32), &["TLBI_S2_IPA"]),
            (range(Iova(IPA.0 & !(M2 - 1)), 512), &["TLBI_S2_IPA"]),
        ];
        for (operation, commands) in right {
            remap(&mut device);
            for (context, operation) in wrong {
                device.flush(context, &[operation]);
                assert_eq!(rig.read(IPA), message(1), "{context:?} {operation:x?}");
            }
            let told = rig.commands(|| device.flush(context, &[operation]));
            assert_eq!(told, commands, "{operation:x?}");
            assert_eq!(rig.read(IPA), message(2), "{operation:x?}");
            device.unmap(IPA, K4);
            device.flush(context, &[Tlbi::Context]);
            rig.assert_unmapped(IPA);
        }
        rig.assert_misuse(&[]);
    });
}

/// A stage 2 table and a stage 1 table with the same addresses and the same number for a tag.
#[test]
fn a_virtual_machine_and_an_address_space_keep_apart() {
    with_stage2(|rig| {
        let mut machine = rig.attach(stage2(rig), VMID);
        let mut space = rig.attach_stage1(VMID);
        machine.map(IPA, rig.page(1), K4, Access::ReadWrite);
        space.map(IPA, rig.page(2), K4, Access::ReadWrite);
        assert_eq!(rig.read(IPA), message(2));
        machine.switch();
        assert_eq!(rig.read(IPA), message(1));
        machine.unmap(IPA, K4);
        space.unmap(IPA, K4);
        space.flush(space.context, &[Tlbi::Context]);
        assert_eq!(rig.read(IPA), message(1), "still cached: the other's flush does not reach it");
        machine.flush(machine.context, &[Tlbi::Context]);
        rig.assert_unmapped(IPA);
        space.switch();
        rig.assert_unmapped(IPA);
    });
}

#[test]
fn tables_are_unhooked_by_a_call_that_covers_them() {
    with_stage2(|rig| {
        let mut device = rig.attach(stage2(rig), VMID);
        let list: Vec<_> =
            (0..1024).map(|index| Segment { phys: rig.page(1 + index % 900), len: K4 }).collect();
        for strategy in [Strategy::ByContext, Strategy::ByRange, Strategy::ByPage] {
            let attributes = device.attributes(Access::ReadWrite);
            let mut gather = Default::default();
            let mapped = device.table().whole().map_sg(IPA, &list, attributes, &mut gather);
            assert_eq!(mapped, Ok(2 * M2));
            let probes = [0, 511, 512, 1023].map(|index| (at(IPA, index * K4), 1 + index % 900));
            for (iova, page) in probes {
                assert_eq!(rig.read(iova), message(page));
            }
            let tables = rig.machine.pool().taken();
            assert_eq!(device.unmap(IPA, 2 * M2), 2 * M2);
            assert_eq!(device.gather.tables(), 2);
            for (iova, page) in probes {
                assert_eq!(rig.read(iova), message(page), "stale");
            }
            let operations = device.operations(strategy);
            let told = rig.commands(|| device.flush(Context::Vmid(VMID), operations.as_slice()));
            let expected = if strategy == Strategy::ByPage { 1024 } else { 1 };
            assert_eq!(told.len(), expected, "{strategy:?}");
            device.release();
            assert_eq!(rig.machine.pool().taken(), tables - 2);
            for (iova, _) in probes {
                rig.assert_unmapped(iova);
            }
        }
        rig.assert_misuse(&[]);
    });
}

/// Tests every granule and number of input bits, so that the root is 1 to 16 tables side by
/// side. Addresses lie in the first table, and, where the model walks the others too, also in
/// the second and the last.
#[test]
fn roots_of_several_tables_are_walked() {
    with_stage2(|rig| {
        let mut roots = BTreeSet::new();
        for granule in [Granule::Size4K, Granule::Size16K, Granule::Size64K] {
            let largest = rig.config(Stage::Two, granule);
            for input_bits in 32..=largest.input_bits {
                let config = Config { input_bits, ..largest };
                let mut device = rig.attach(config, u16::from(input_bits));
                let (page, _) = leaves(granule);
                let tables = device.table().geometry().root_bytes() as u64 / page;
                roots.insert(tables.max(1));
                let first = (1 << input_bits) / tables.max(1);
                let walks_all = tables < 2 || walks_all(&mut device, first, page);
                let further = [first, (1 << input_bits) - page];
                let further = further.into_iter().filter(|_| tables > 1 && walks_all);
                for (iova, index) in [0, first - page].into_iter().chain(further).zip(1..) {
                    let iova = Iova(iova);
                    device.map(iova, rig.page(index), page, Access::ReadWrite);
                    assert_eq!(rig.read(iova), message(index), "{config:?}");
                    device.unmap(iova, page);
                    assert_eq!(rig.read(iova), message(index), "stale");
                    flush(&mut device);
                    rig.assert_unmapped(iova);
                }
                // Beyond the last there is nothing.
                if input_bits < largest.output_bits {
                    rig.assert_unmapped(Iova(1 << input_bits));
                }
            }
        }
        assert_eq!(Vec::from_iter(roots), [1, 2, 4, 8, 16]);
        rig.assert_misuse(&[]);
    });
}

/// Whether the model walks the second of the concatenated root tables. A model that walks the first
/// in its place reads the page mapped there.
fn walks_all(device: &mut AttachedDevice<'_, '_>, first: u64, page: u64) -> bool {
    let rig = device.rig;
    let (low, high) = (Iova(first - page), Iova(2 * first - page));
    device.map(low, rig.page(1), page, Access::ReadWrite);
    let walks_all = match rig.read(high) {
        NOTHING => {
            rig.assert_fault(EventKind::Translation, high, MESSAGE, false);
            true
        }
        other => {
            assert_eq!(other, message(1), "the first table's");
            false
        }
    };
    device.unmap(low, page);
    flush(device);
    device.flush(device.context, &[Tlbi::Context]);
    walks_all
}

fn flush(device: &mut AttachedDevice<'_, '_>) {
    let operations = device.operations(Strategy::ByRange);
    device.flush(device.context, operations.as_slice());
    device.release();
}

#[test]
fn blocks_of_every_granule_are_walked() {
    with_stage2(|rig| {
        for granule in [Granule::Size4K, Granule::Size16K, Granule::Size64K] {
            let mut device = rig.attach(rig.config(Stage::Two, granule), 0x1000);
            let (_, block) = leaves(granule);
            let iova = Iova(9 * block);
            let begin = VirtMachine::DATA.0 & !(block - 1);
            device.map(iova, PhysAddr(begin), block, Access::ReadWrite);
            let inside = at(iova, rig.page(5).0 - begin);
            assert_eq!(rig.read(inside), message(5));
            device.unmap(iova, block);
            assert_eq!(rig.read(inside), message(5), "stale");
            let operations = device.operations(Strategy::ByPage);
            let context = device.context;
            let told = rig.commands(|| device.flush(context, operations.as_slice()));
            assert_eq!(told, ["TLBI_S2_IPA"], "one command for the block");
            rig.assert_unmapped(inside);
        }
        rig.assert_misuse(&[]);
    });
}
