//! The SMMUv3 driver on a fake SMMU that is written from the manual: bring-up, stream table, context
//! descriptors and the stores that change them, events.

use barewire_iommu::smmu::Polls;
use barewire_iommu::smmu::v3::{
    Disabled, EventClass, EventKind, Settings, Smmu, SmmuError, Stream, StreamLayout,
};
use barewire_iommu::{Iova, PhysAddr, Stage};

use crate::smmu_fake::{Fake, Options, Ram};
use crate::smmu_rig::{descriptor, stage2, with_smmu};

fn settings() -> Settings {
    Settings { patience: Polls(100), ..Settings::default() }
}

#[test]
fn bring_up_in_order() {
    let ram = Ram::new(1 << 18);
    let fake = Fake::new(&ram, Options::default());
    let smmu = Smmu::new(&fake, &ram, settings()).unwrap();
    let writes = fake.state().writes.clone();
    let offsets: Vec<u32> = writes.iter().map(|&(offset, _)| offset).collect();
    let expected = [
        0x44, 0x20, 0x50, 0x28, 0x2c, 0x64, // GBPA, CR0, IRQ_CTRL, CR1, CR2, GERRORN
        0x90, 0x98, 0x9c, 0x20, 0x98, // the command queue, CR0, and the first commands
        0xa0, 0x1_00a8, 0x1_00ac, 0x20, // the event queue, CR0
    ];
    assert_eq!(offsets, expected);
    // Accesses are aborted before the SMMU is stopped.
    assert_eq!(writes[0].1, 1 << 31 | 1 << 20);
    assert_eq!(writes[1].1, 0);
    // Inner shareable, write-back, both ways; PTM and RECINVSID.
    assert_eq!(fake.state().cr1, 0xd75);
    assert_eq!(fake.state().cr2, 0b110);
    // Of 256 and 128 entries the SMMU has 128 and 64.
    assert_eq!(writes[6].1 & 0x1f, 7);
    assert_eq!(writes[11].1 & 0x1f, 6);
    assert_eq!(fake.state().cr0ack, 0b1100);
    assert_eq!(fake.state().active_errors(), 0, "an earlier error is still active");
    assert_eq!(fake.take_executed(), [[0x04, 31], [0x30, 0]]);
    assert!(smmu.features().ranges);
    #[expect(clippy::drop_non_drop, reason = "dropping it must give nothing back")]
    drop(smmu);
    assert_eq!(ram.allocated(), 3, "the SMMU may look at its queues");
}

#[test]
fn a_table_and_a_stop() {
    for layout in [
        StreamLayout::Linear { sid_bits: 6 },
        StreamLayout::TwoLevel { sid_bits: 16, split: 8 },
        StreamLayout::TwoLevel { sid_bits: 12, split: 6 },
        StreamLayout::TwoLevel { sid_bits: 5, split: 10 },
    ] {
        with_smmu(Options::default(), |fake, ram, smmu| {
            let mut streams = smmu.streams(layout).unwrap();
            assert_eq!(smmu.streams(layout).unwrap_err(), SmmuError::Taken);
            // The stream is set before the SMMU is enabled, which aborts all other streams.
            streams.set(17, &Stream::Bypass).unwrap();
            streams.enable().unwrap();
            assert_eq!(fake.state().cr0ack & 1, 1);
            let entry = |sid| fake.stream_entry(sid).map(|at| fake.words(at)[0]);
            assert_eq!(entry(17), Some(0b1001));
            assert_eq!(entry(16), Some(0b0001));
            let last = match layout {
                StreamLayout::Linear { sid_bits } | StreamLayout::TwoLevel { sid_bits, .. } => {
                    (1 << sid_bits) - 1
                }
            };
            streams.set(last, &stage2(0x4_0000, 9)).unwrap();
            assert_eq!(entry(last), Some(0b1101));
            let bits = (last + 1).trailing_zeros() as u8;
            let beyond = streams.set(last + 1, &Stream::Bypass);
            assert_eq!(beyond, Err(SmmuError::StreamId { sid: last + 1, bits }));
            streams.disable().unwrap();
            assert_eq!(fake.state().cr0ack & 1, 0);
            assert_eq!(ram.allocated(), 3, "all tables are given back");
            assert!(smmu.streams(layout).is_ok());
        });
    }
    let ram = Ram::new(1 << 18);
    let fake = Fake::new(&ram, Options::default());
    Smmu::new(&fake, &ram, settings()).unwrap().shut_down().unwrap();
    assert_eq!((ram.allocated(), fake.state().cr0ack), (0, 0));
}

#[test]
fn tables_that_do_not_fit() {
    let options = Options { idr0: Options::default().idr0 & !(1 << 27), ..Options::default() };
    with_smmu(options, |_, _, smmu| {
        let two = StreamLayout::TwoLevel { sid_bits: 16, split: 8 };
        assert!(matches!(smmu.streams(two), Err(SmmuError::Unsupported(_))));
        let large = smmu.streams(StreamLayout::Linear { sid_bits: 17 });
        assert_eq!(large.unwrap_err(), SmmuError::StreamId { sid: 0x1_ffff, bits: 16 });
        let contexts = smmu.contexts(5);
        assert_eq!(contexts.unwrap_err(), SmmuError::SubstreamId { ssid: 31, bits: 4 });
        let mut contexts = smmu.contexts(4).unwrap();
        let beyond = contexts.set(16, None, &[]);
        assert_eq!(beyond, Err(SmmuError::SubstreamId { ssid: 16, bits: 4 }));
        // A refusal takes nothing away.
        smmu.streams(StreamLayout::Linear { sid_bits: 4 }).unwrap();
    });
}

#[test]
fn registers_that_never_agree() {
    let ram = Ram::new(1 << 18);
    let timeout = |slow, disabled| {
        let fake = Fake::new(&ram, Options { slow, ..Options::default() });
        Smmu::new(&fake, &ram, Settings { disabled, ..settings() }).unwrap_err()
    };
    let error = timeout(1000, Disabled::Abort);
    assert!(matches!(error, SmmuError::Timeout { register: 0x44, expected: 0, .. }), "{error:?}");
    let error = timeout(1000, Disabled::Unchanged);
    assert_eq!(error, SmmuError::Timeout { register: 0x24, expected: 0, actual: 1 });
    let error = error.to_string();
    assert!(error.contains("0x24") && error.contains("patience"), "{error}");
}

/// For every n, the n-th allocation fails: nothing is lost, and the next try succeeds.
#[test]
fn no_memory_at_any_point() {
    for left in 0..7 {
        let ram = Ram::new(1 << 18);
        let fake = Fake::new(&ram, Options::default());
        let all = || -> Result<(), SmmuError> {
            let smmu = Smmu::new(&fake, &ram, settings())?;
            let with_streams = || {
                let layout = StreamLayout::TwoLevel { sid_bits: 16, split: 6 };
                let mut streams = smmu.streams(layout)?;
                let mut set = |sid| streams.set(sid, &Stream::Bypass);
                let result = set(1).and_then(|()| set(64));
                streams.disable()?;
                result
            };
            let result = with_streams();
            smmu.shut_down()?;
            result
        };
        *ram.left.lock().unwrap() = left;
        let result = all();
        assert_eq!(ram.allocated(), 0, "after {left} allocations");
        if left < 6 {
            assert!(matches!(result, Err(SmmuError::OutOfMemory { .. })), "{left}: {result:?}");
        } else {
            assert_eq!(result, Ok(()));
        }
        *ram.left.lock().unwrap() = usize::MAX;
        all().unwrap();
    }
}

/// A second-level table is complete before it is hooked, and an SMMU that may have cached the empty
/// entry gets an invalidation.
#[test]
fn second_levels_are_hooked_in_whole() {
    with_smmu(Options::default(), |fake, ram, smmu| {
        let mut streams = smmu.streams(StreamLayout::TwoLevel { sid_bits: 16, split: 6 }).unwrap();
        streams.enable().unwrap();
        fake.take_executed();
        assert_eq!(fake.stream_entry(0x1ff), None);
        ram.watch();
        streams.set(0x1ff, &Stream::Bypass).unwrap();
        let link = (fake.state().strtab_base & 0x000f_ffff_ffff_ffc0) + 8 * (0x1ff >> 6);
        let table = fake.stream_entry(0x1c0).unwrap();
        let mut entries = [0; 64];
        let mut is_linked = false;
        for (at, value) in ram.take_stores().into_iter().flatten() {
            if (table..table + 64 * 64).contains(&at) && (at - table) % 64 == 0 && !is_linked {
                entries[(at - table) as usize / 64] = value;
            }
            if at == link && value & 0x1f != 0 {
                assert_eq!(entries, [1; 64], "hooked in before it was complete");
                is_linked = true;
            }
        }
        assert!(is_linked);
        // Not leaf: the level 1 descriptor too.
        assert_eq!(fake.take_executed()[0], [0x1ff_0000_0003, 0]);
    });
}

/// An SMMU that does not snoop sees all that it is to see (the fake asserts it).
#[test]
fn without_snooping() {
    with_smmu(Options::default().not_coherent(), |fake, _, smmu| {
        assert_eq!(fake.state().cr1, 0x820);
        let mut streams = smmu.streams(StreamLayout::TwoLevel { sid_bits: 16, split: 8 }).unwrap();
        streams.enable().unwrap();
        let mut contexts = smmu.contexts(1).unwrap();
        contexts.set(1, Some(&descriptor(0x4000, 1)), &[]).unwrap();
        streams.set(3, &contexts.stream()).unwrap();
        contexts.set(0, Some(&descriptor(0x8000, 2)), &[3]).unwrap();
        for sid in [2, 3, 4] {
            fake.words(fake.stream_entry(sid).unwrap());
        }
        for ssid in 0..2 {
            assert_ne!(fake.words(contexts.at().0 + 64 * ssid)[0], 0);
        }
        let mut events = smmu.events().unwrap();
        fake.record([0x10, 0, 0x1000, 0]);
        assert_eq!(events.pop().unwrap().iova, Some(Iova(0x1000)));
    });
}

#[test]
fn events_in_order_around_the_ring() {
    with_smmu(Options::default(), |fake, _, smmu| {
        let mut events = smmu.events().unwrap();
        assert_eq!(smmu.events().unwrap_err(), SmmuError::Taken);
        assert_eq!(events.pop(), None);
        let mut number = 0;
        for filled in (0..=64).chain([64, 64, 1]) {
            for ahead in 0..filled {
                fake.record([0x10 | (number + ahead) << 32, 0, 0, 0]);
            }
            for ahead in 0..filled {
                assert_eq!(u64::from(events.pop().unwrap().sid), number + ahead);
            }
            number += filled;
            assert_eq!(events.pop(), None);
        }
        assert_eq!(events.take_overflows(), 0);
        fake.record([0x02, 0, 0, 0]);
        // The next reader goes on where this one was.
        drop(events);
        let mut events = smmu.events().unwrap();
        assert_eq!(events.pop().unwrap().kind, EventKind::BadStreamId);
        assert_eq!(events.pop(), None);
    });
}

#[test]
fn lost_events_are_told() {
    with_smmu(Options::default(), |fake, _, smmu| {
        let mut events = smmu.events().unwrap();
        for round in 1..4u64 {
            for number in 0..66 {
                fake.record([0x10 | (round * 100 + number) << 32, 0, 0, 0]);
            }
            for number in 0..64 {
                assert_eq!(u64::from(events.pop().unwrap().sid), round * 100 + number);
                // The overflow is acknowledged at once: events lost from here on would be reported
                // again.
                assert_eq!(fake.state().eventq_cons >> 31, round as u32 % 2);
            }
            assert_eq!(events.pop(), None);
            assert_eq!(events.take_overflows(), 1);
            assert_eq!(events.take_overflows(), 0);
        }
    });
}

/// By hand from 7.3.
#[test]
fn events_are_decoded() {
    with_smmu(Options::default(), |fake, _, smmu| {
        let mut events = smmu.events().unwrap();
        let mut event = |record| {
            fake.record(record);
            events.pop().unwrap()
        };
        // Stream 0x8, substream 0xabcde; read, at stage 1, of the access itself.
        let read = event([0x8_abcd_e810, 1 << 35 | 0b10 << 40, 0xffff_0000_1234_5678, 0]);
        assert_eq!(read.kind, EventKind::Translation);
        assert_eq!((read.sid, read.ssid), (8, Some(0xabcde)));
        assert_eq!((read.iova, read.is_write), (Some(Iova(0xffff_0000_1234_5678)), Some(false)));
        assert_eq!((read.stage, read.class), (Some(Stage::One), Some(EventClass::In)));
        assert_eq!((read.ipa, read.fetch), (None, None));
        assert_eq!(
            read.to_string(),
            "F_TRANSLATION: stream 0x8, substream 0xabcde, read of 0xffff000012345678, at stage 1"
        );
        // Write, at stage 2, of a stage 1 descriptor; IPA.
        let write = event([0xffff_ffff_0000_0013, 1 << 39 | 0b01 << 40, 0x1000, 0x12_3456_7000]);
        assert_eq!(write.kind, EventKind::Permission);
        assert_eq!((write.sid, write.ssid, write.is_write), (u32::MAX, None, Some(true)));
        assert_eq!((write.stage, write.class), (Some(Stage::Two), Some(EventClass::Ttd)));
        assert_eq!(write.ipa, Some(PhysAddr(0x12_3456_7000)));
        assert_eq!(
            write.to_string(),
            "F_PERMISSION: stream 0xffffffff, write of 0x1000, at stage 2, IPA 0x1234567000"
        );
        let walk = event([0x0b, 1 << 35 | 0b10 << 40, 0x2000, 0x9_8765_4328]);
        assert_eq!(walk.kind, EventKind::WalkEabt);
        assert_eq!((walk.ipa, walk.fetch), (None, Some(PhysAddr(0x9_8765_4328))));
        let fetch = event([0x5_0000_0003, 0, 0x2000, 0x9_8765_4340]);
        assert_eq!((fetch.kind, fetch.iova), (EventKind::SteFetch, None));
        assert_eq!(fetch.to_string(), "F_STE_FETCH: stream 0x5, reading 0x987654340");
        let kinds = [
            (0x01, EventKind::Uut, "F_UUT"),
            (0x02, EventKind::BadStreamId, "C_BAD_STREAMID"),
            (0x04, EventKind::BadSte, "C_BAD_STE"),
            (0x05, EventKind::BadAtsTreq, "F_BAD_ATS_TREQ"),
            (0x06, EventKind::StreamDisabled, "F_STREAM_DISABLED"),
            (0x07, EventKind::TranslForbidden, "F_TRANSL_FORBIDDEN"),
            (0x08, EventKind::BadSubstreamId, "C_BAD_SUBSTREAMID"),
            (0x09, EventKind::CdFetch, "F_CD_FETCH"),
            (0x0a, EventKind::BadCd, "C_BAD_CD"),
            (0x11, EventKind::AddrSize, "F_ADDR_SIZE"),
            (0x12, EventKind::Access, "F_ACCESS"),
            (0x20, EventKind::TlbConflict, "F_TLB_CONFLICT"),
            (0x21, EventKind::CfgConflict, "F_CFG_CONFLICT"),
            (0x24, EventKind::PageRequest, "E_PAGE_REQUEST"),
            (0x25, EventKind::VmsFetch, "F_VMS_FETCH"),
        ];
        for (number, kind, name) in kinds {
            let event = event([number, 0, 0x3000, 0]);
            assert_eq!((event.kind, event.kind.name()), (kind, name));
            let has_address = matches!(number, 0x01 | 0x05 | 0x07 | 0x11 | 0x12 | 0x20);
            assert_eq!(event.iova.is_some(), has_address, "{name}");
            assert_eq!(event.stage.is_some(), matches!(number, 0x11 | 0x12), "{name}");
        }
        assert!(event([0xe7, 0, 0, 0]).to_string().contains("number 0xe7"));
    });
}

#[test]
fn interrupts_on_and_off() {
    with_smmu(Options::default(), |fake, _, smmu| {
        smmu.set_interrupts(true, true).unwrap();
        assert_eq!(fake.state().irq_ctrl, 0b101);
        smmu.set_interrupts(false, true).unwrap();
        assert_eq!(fake.state().irq_ctrl, 0b100);
    });
}

/// Firmware may leave the PRI queue enabled, and more: all that CR0 had is waited for.
#[test]
fn flaw_7_cr0_waits_for_every_bit() {
    let ram = Ram::new(1 << 18);
    // SMMUEN, PRIQEN, EVENTQEN, CMDQEN, ATSCHK, VMW.
    for bit in [0, 1, 2, 3, 4, 6, 7, 8] {
        for cr0 in [1 << bit, 0b1_1101_1111] {
            let fake = Fake::new(&ram, Options { cr0, slow: 0, ..Options::default() });
            // The fake asserts that CR0 is not written before CR0ACK agrees.
            let smmu = Smmu::new(&fake, &ram, settings()).unwrap();
            assert_eq!(fake.state().cr0ack, 0b1100);
            smmu.shut_down().unwrap();
            assert_eq!(fake.state().cr0ack, 0);
        }
    }
}

/// 64 bytes times 2^26 exceed 32 bits. A table that cannot fit the address space is refused on every
/// target.
#[test]
fn flaw_7_a_linear_table_larger_than_the_address_space() {
    let options = Options { idr1: Options::default().idr1 & !0x3f | 32, ..Options::default() };
    with_smmu(options, |_, ram, smmu| {
        let allocated = ram.allocated();
        for sid_bits in 20..=32 {
            let refused = smmu.streams(StreamLayout::Linear { sid_bits }).unwrap_err();
            let bytes = 64u64 << sid_bits;
            let is_refused = match refused {
                SmmuError::OutOfMemory { bytes: asked } => asked as u64 == bytes,
                _ => refused.to_string().contains(&bytes.to_string()),
            };
            assert!(is_refused, "{sid_bits}: {refused:?}");
            assert_eq!(ram.allocated(), allocated);
        }
        smmu.streams(StreamLayout::TwoLevel { sid_bits: 20, split: 10 }).unwrap();
    });
}
