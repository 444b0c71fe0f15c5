//! Stage 1 on QEMU's SMMUv3: a device's DMA through our tables, stream table and context descriptors,
//! and the events if an access is not allowed.

use barewire_iommu::smmu::v3::{EventKind, SmmuError, Stream, StreamLayout};
use barewire_iommu::{
    Access, Config, Gather, Granule, Invalidate, Iova, PhysAddr, Run, Segment, Stage, Strategy,
    Tlbi, UnmapError,
};
use barewire_iommu_qemu::VirtMachine;

use crate::rig;
use crate::rig::{
    MESSAGE, NOTHING, Rig, Setup, at, at_phys, leaves, message, page_at, with_rig, with_setup,
};

const IOVA: Iova = Iova(0x12_3440_0000);
const K4: u64 = 4 << 10;
const M2: u64 = 2 << 20;

#[test]
fn dma_goes_both_ways_through_pages_blocks_and_scatter_lists() {
    with_rig(|rig| {
        let mut device = rig.attach_stage1(7);
        device.map(IOVA, rig.page(3), K4, Access::ReadWrite);
        assert_eq!(rig.read(IOVA), message(3));
        rig.write(at(IOVA, K4 - MESSAGE as u64), *b"to the very end!");
        assert_eq!(rig.message_at(at_phys(page_at(3), K4 - 16)), *b"to the very end!");

        // A block: page 40 lies in its second half.
        let block = at(IOVA, M2);
        device.map(block, VirtMachine::DATA, M2, Access::ReadWrite);
        let level = device.table().iova_to_phys(block).map(|found| found.level);
        assert_eq!(level, Some(2));
        let inside = at(block, rig.page(20).0 - VirtMachine::DATA.0);
        assert_eq!(rig.read(inside), message(20));
        rig.write(inside, *b"through a block.");
        assert_eq!(rig.message_at(page_at(20)), *b"through a block.");

        // Scattered: pages the wrong way round, a block among them, and a page again.
        let list: Vec<Segment> = [(9, K4), (8, K4), (32, M2), (7, K4)]
            .map(|(page, len)| Segment { phys: rig.page(page), len })
            .into();
        let sg = at(IOVA, 3 * M2 - 2 * K4);
        let attributes = device.attributes(Access::ReadWrite);
        let mapped = device.table().whole().map_sg(sg, &list, attributes, &mut Gather::new());
        assert_eq!(mapped, Ok(3 * K4 + M2));
        let level = device.table().iova_to_phys(at(sg, 2 * K4)).map(|found| found.level);
        assert_eq!(level, Some(2), "the piece in the middle is a block");
        for (offset, page) in [(0, 9), (K4, 8), (2 * K4, 32), (2 * K4 + M2, 7)] {
            assert_eq!(rig.read(at(sg, offset)), message(page), "offset {offset:#x}");
        }
        // One transfer over the edge between two pages.
        rig.write(at(sg, K4 - 8), *b"page nine eight!");
        assert_eq!(&rig.message_at(at_phys(page_at(9), K4 - 8))[..8], b"page nin");
        assert_eq!(&rig.message_at(page_at(8))[..8], b"e eight!");
        rig.assert_misuse(&[]);
    });
}

#[test]
fn what_is_not_mapped_or_not_allowed_is_an_event_with_stream_and_address() {
    with_rig(|rig| {
        let config = Config { input_bits: 39, ..rig.config(Stage::One, Granule::Size4K) };
        let mut device = rig.attach(config, 7);
        device.map(IOVA, rig.page(3), K4, Access::Read);
        assert_eq!((rig.read(IOVA), rig.events()), (message(3), vec![]));

        // No entry at the last level, none above it, and an address that has too many bits.
        for iova in [at(IOVA, K4), at(IOVA, 5 << 30), Iova(1 << 39), Iova(1 << 47)] {
            rig.assert_unmapped(iova);
            rig.write(iova, *b"is written to no");
            rig.assert_fault(EventKind::Translation, iova, MESSAGE, true);
        }

        rig.write(at(IOVA, 64), *b"may not be there");
        rig.assert_fault(EventKind::Permission, at(IOVA, 64), MESSAGE, true);
        assert_eq!(rig.message_at(at_phys(page_at(3), 64)), NOTHING);
        assert_eq!(rig.read(IOVA), message(3));

        // A transfer that begins well and ends outside.
        device.map(at(IOVA, 4 * K4), rig.page(4), K4, Access::ReadWrite);
        rig.write(at(IOVA, 5 * K4 - 8), *b"half of it is wr");
        let beyond = at(IOVA, 5 * K4);
        rig.assert_fault(EventKind::Translation, beyond, 8, true);
        assert_eq!(&rig.message_at(at_phys(page_at(4), K4 - 8))[..8], b"half of ");
        rig.assert_misuse(&[]);
    });
}

#[test]
fn a_stream_is_aborted_bypassed_translated_and_aborted() {
    let layouts =
        [StreamLayout::Linear { sid_bits: 4 }, StreamLayout::TwoLevel { sid_bits: 16, split: 8 }];
    for layout in layouts {
        with_setup(Setup { layout, ..Setup::default() }, |rig| {
            let (edu, here) = (rig.machine.edu(), Iova(rig.page(3).0));
            let bypassed = || {
                edu.store(Iova(VirtMachine::DATA.0), MESSAGE).expect("stores");
                rig.message_at(VirtMachine::DATA)
            };
            // The stream was never set, so accesses are aborted without an event. QEMU only
            // complains if the table's second level is missing.
            edu.fetch(here, MESSAGE).expect("fetches");
            let complaints: &[&str] = match layout {
                StreamLayout::Linear { .. } => &[],
                StreamLayout::TwoLevel { .. } => &["L1STD span=0"; MESSAGE / 4],
            };
            if !complaints.is_empty() {
                rig.assert_fault(EventKind::BadStreamId, here, MESSAGE, false);
            }
            assert_eq!(rig.events(), []);
            rig.set_stream(&Stream::Bypass);
            assert_eq!(bypassed(), NOTHING);
            edu.fetch(here, MESSAGE).expect("fetches");
            assert_eq!(bypassed(), message(3));

            let mut device = rig.attach_stage1(7);
            device.map(here, rig.page(4), K4, Access::ReadWrite);
            assert_eq!(rig.read(here), message(4), "translated");

            rig.set_stream(&Stream::Abort);
            edu.fetch(here, MESSAGE).expect("fetches");
            edu.store(here, MESSAGE).expect("stores");
            assert_eq!(rig.events(), []);
            rig.set_stream(&Stream::Bypass);
            assert_eq!(bypassed(), NOTHING, "nothing was read while aborted");
            assert_eq!(rig.message_at(page_at(4)), message(4), "nor written");
            device.switch();
            assert_eq!(rig.read(here), message(4));
            rig.assert_misuse(complaints);
        });
    }
}

#[test]
fn a_stream_beyond_the_table_is_an_event() {
    let layout = StreamLayout::Linear { sid_bits: 2 };
    with_setup(Setup { layout, ..Setup::default() }, |rig| {
        rig.machine.edu().fetch(Iova(rig.page(1).0), MESSAGE).expect("fetches");
        rig.assert_fault(EventKind::BadStreamId, Iova(0), MESSAGE, false);
    });
}

/// The context descriptor changes, and the stream with it, without the stream's own entry.
#[test]
fn another_table_takes_over_when_the_context_descriptor_changes() {
    with_rig(|rig| {
        let mut one = rig.attach_stage1(7);
        one.map(IOVA, rig.page(1), K4, Access::ReadWrite);
        let mut contexts = rig.smmu.contexts(0).expect("a context table");
        contexts.set(0, Some(&one.descriptor()), &[]).expect("set");
        rig.set_stream(&contexts.stream());
        assert_eq!(rig.read(IOVA), message(1));

        let mut other = rig.prepare(rig.config(Stage::One, Granule::Size4K), 8);
        other.map(IOVA, rig.page(2), K4, Access::ReadWrite);
        contexts.set(0, Some(&other.descriptor()), &[rig.sid()]).expect("set");
        assert_eq!(rig.read(IOVA), message(2));
        // Translations are cached under their ASIDs, so no invalidation was needed.
        contexts.set(0, Some(&one.descriptor()), &[rig.sid()]).expect("set");
        assert_eq!(rig.read(IOVA), message(1));
        contexts.set(0, None, &[rig.sid()]).expect("removed");
        assert_eq!(rig.read(IOVA), message(1), "nothing came");
        rig.assert_fault(EventKind::BadCd, IOVA, 2 * MESSAGE, false);
    });
}

#[test]
fn granules_of_4_16_and_64_kib_are_walked() {
    with_rig(|rig| {
        let features = *rig.smmu.features();
        assert!(features.granule_4k && features.granule_64k, "{features:?}");
        for (tag, granule) in [(4, Granule::Size4K), (16, Granule::Size16K), (64, Granule::Size64K)]
        {
            if granule == Granule::Size16K && !features.granule_16k {
                println!("SKIPPED: virt: this QEMU's SMMU has no granule of 16 KiB");
                continue;
            }
            through_a_granule(rig, rig.config(Stage::One, granule), tag);
        }
        rig.assert_misuse(&[]);
    });
}

fn through_a_granule(rig: &Rig<'_>, config: Config, tag: u16) {
    let mut device = rig.attach(config, tag);
    let (page, block) = leaves(config.granule);
    // The last page there is, and one on each side of a table's end.
    let top = (1 << config.input_bits) - page;
    for (index, iova) in [(1, block - page), (2, block), (3, 0), (4, top)] {
        device.map(Iova(iova), rig.page(index), page, Access::ReadWrite);
        assert_eq!(rig.read(Iova(iova)), message(index), "{config:?} {iova:#x}");
    }
    // A block: the machine's memory begins at a multiple of all of them.
    let iova = Iova(6 * block);
    let begin = VirtMachine::DATA.0 & !(block - 1);
    device.map(iova, PhysAddr(begin), block, Access::ReadWrite);
    let found = device.table().iova_to_phys(iova).map(|found| (found.level, 1 << found.shift));
    assert_eq!(found, Some((2, block)));
    let inside = at(iova, rig.page(5).0 - begin);
    assert_eq!(rig.read(inside), message(5));
    rig.write(inside, *b"in a large block");
    assert_eq!(rig.message_at(page_at(5)), *b"in a large block");

    // Without an invalidation the device still reaches page and block; with it, neither.
    for (iova, inside, size) in [(Iova(0), Iova(0), page), (iova, inside, block)] {
        assert_eq!(device.unmap(iova, size), size);
        assert_ne!(rig.read(inside), NOTHING, "stale");
        let operations = device.operations(Strategy::ByPage);
        let context = device.context;
        device.flush(context, operations.as_slice());
        device.release();
        rig.assert_unmapped(inside);
    }
}

/// SMMU_IDR3.BBML is 2 here: part of a block may go while the device uses the rest.
#[test]
fn part_of_a_live_block_is_unmapped() {
    with_rig(|rig| {
        let config = rig.config(Stage::One, Granule::Size4K);
        let bbml2 = config.bbml2;
        let mut device = rig.attach(config, 7);
        device.map(IOVA, VirtMachine::DATA, M2, Access::ReadWrite);
        let (gone, kept) = (at(IOVA, 20 << 16), at(IOVA, 21 << 16));
        let pages = (rig.page(20), rig.page(21));
        assert_eq!(pages.0.0 - VirtMachine::DATA.0, 20 << 16);
        assert_eq!((rig.read(gone), rig.read(kept)), (message(20), message(21)));
        let context = device.context;
        if bbml2 {
            assert_eq!(device.unmap(gone, K4), K4);
        } else {
            let mut gather = Gather::new();
            let refused = device.table().whole().unmap(gone, K4, &mut gather);
            assert!(matches!(refused, Err(UnmapError::PartOfBlock { level: 2, .. })));
            let flush = |run: &Run| {
                let operations = Strategy::ByPage.operations(Some(&[*run]), &rig.facts(12));
                rig.smmu.flush(context, operations.as_slice())
            };
            let unmapped = device.table().whole().unmap_quiesced(gone, K4, &mut gather, flush);
            assert_eq!(unmapped, Ok(K4));
            device.gather = gather;
        }
        let operations = device.operations(Strategy::ByPage);
        device.flush(context, operations.as_slice());
        device.release();
        rig.assert_unmapped(gone);
        assert_eq!(rig.read(kept), message(21));
        device.flush(context, &[Tlbi::Context]);
        assert_eq!(rig.read(kept), message(21), "walked anew");
        rig.assert_misuse(&[]);
    });
}

#[test]
fn what_the_smmu_cannot_walk_is_refused_before_it_sees_it() {
    with_rig(|rig| {
        let output = rig.smmu.features().output_bits;
        assert!(output < 48, "this QEMU's SMMU puts out {output} bits");
        let device = rig.prepare(Config::default(), 7);
        let mut contexts = rig.smmu.contexts(0).expect("a context table");
        let refused = contexts.set(0, Some(&device.descriptor()), &[]);
        assert_eq!(refused, Err(SmmuError::OutputBits { asked: 48, has: output }));
    });
}

#[test]
fn a_machine_ends_with_its_handle() {
    let Some(machine) = rig::open() else { return };
    let process = std::path::PathBuf::from(format!("/proc/{}", machine.pid()));
    assert!(process.exists());
    drop(machine);
    assert!(!process.exists(), "ended and reaped");
}
