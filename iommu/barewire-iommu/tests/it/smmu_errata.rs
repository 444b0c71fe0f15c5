//! Errata on a fake SMMU that says which product it is, and records every command.

use std::thread;

use barewire_iommu::smmu::Polls;
use barewire_iommu::smmu::v3::{
    Command, ContextDescriptor, Errata, Erratum, Identity, Settings, Smmu, StreamLayout,
};
use barewire_iommu::{Config, Context, Geometry, Granule, Invalidate, Iova, PhysAddr, Tlbi};

use crate::smmu_fake::{Fake, Options, Ram};

const SYNC: [u64; 2] = [0x46, 0];

/// SMMU_IIDR of Arm's MMU-700 of a revision.
const fn mmu_700(variant: u32, revision: u32) -> u32 {
    0x487 << 20 | variant << 16 | revision << 12 | 0x43b
}

/// SMMU_IIDR of Arm's MMU-600 of a revision.
const fn mmu_600(variant: u32, revision: u32) -> u32 {
    0x483 << 20 | variant << 16 | revision << 12 | 0x43b
}

/// Without ranges, so that pages are commands.
fn options(iidr: u32) -> Options {
    Options { iidr, idr3: 0, pace: 1000, ..Options::default() }
}

fn settings(command_queue_log2: u8) -> Settings {
    Settings { command_queue_log2, patience: Polls(u32::MAX), ..Settings::default() }
}

/// Runs `test` on an SMMU of that product; returns every command since the queue began.
fn commands(
    iidr: u32,
    settings: Settings,
    test: impl FnOnce(&Smmu<'_, &Fake<'_>, Ram>),
) -> Vec<[u64; 2]> {
    let ram = Ram::new(1 << 18);
    let fake = Fake::new(&ram, options(iidr));
    let smmu = Smmu::new(&fake, &ram, settings).expect("it comes up");
    test(&smmu);
    std::mem::take(&mut fake.state().executed)
}

/// The commands between two CMD_SYNCs, each time.
fn between_syncs(commands: &[[u64; 2]]) -> impl Iterator<Item = &[[u64; 2]]> {
    commands.split(|command| *command == SYNC)
}

/// Asserts the workaround of erratum 2812531: at most 63 commands between two CMD_SYNCs, all of one
/// kind.
fn assert_separate(commands: &[[u64; 2]]) {
    for batch in between_syncs(commands) {
        assert!(batch.len() <= 63, "{} commands without a CMD_SYNC", batch.len());
        let opcodes: Vec<_> = batch.iter().map(|command| command[0] as u8).collect();
        assert!(opcodes.windows(2).all(|pair| pair[0] == pair[1]), "mixed: {opcodes:x?}");
    }
    assert_eq!(commands.last(), Some(&SYNC));
}

fn pages(iova: u64, count: u64) -> Tlbi {
    Tlbi::Pages { iova: Iova(iova), stride: 12, count, leaf: false, level: None }
}

/// The audit's case: 8,192 commands with one CMD_SYNC at the end.
#[test]
fn flaw_4_erratum_2812531_at_most_63_commands_between_syncs() {
    for iidr in [mmu_700(0, 0), mmu_700(0, 1), mmu_700(1, 0)] {
        for log2 in 1..=8 {
            let executed = commands(iidr, settings(log2), |smmu| {
                smmu.flush(Context::Asid(3), &[pages(0, 8192)]).unwrap();
            });
            assert_separate(&executed);
            // Each page once, in order.
            let pages = executed.iter().filter(|command| command[0] as u8 == 0x12);
            assert!(pages.map(|page| page[1] >> 12).eq(0..8192));
            if log2 == 8 {
                let syncs = executed.iter().filter(|&&command| command == SYNC).count();
                // The first commands have two.
                assert_eq!(syncs, 8192usize.div_ceil(63) + 2, "more CMD_SYNCs than needed");
            }
        }
    }
}

/// One call may ask for commands of several kinds; bring-up does.
#[test]
fn flaw_4_erratum_2812531_kinds_are_apart() {
    let executed = commands(mmu_700(1, 0), settings(6), |smmu| {
        let mixed = [pages(0, 3), Tlbi::Context, pages(0x8000, 2), pages(0x20_0000, 1)];
        smmu.flush(Context::Asid(3), &mixed).unwrap();
        smmu.run(&[Command::cfgi_ste(1, true), Command::cfgi_cd_all(1), Command::SYNC]).unwrap();
        smmu.run(&[]).unwrap();
        let mut streams = smmu.streams(StreamLayout::Linear { sid_bits: 2 }).unwrap();
        streams.enable().unwrap();
        let mut contexts = smmu.contexts(0).unwrap();
        let geometry = Geometry::new(Config {
            granule: Granule::Size4K,
            output_bits: 40,
            ..Config::default()
        });
        let (geometry, root) = (geometry.unwrap(), PhysAddr(0x4000));
        streams.set(1, &contexts.stream()).unwrap();
        let descriptor = ContextDescriptor { geometry, root, asid: 1 };
        contexts.set(0, Some(&descriptor), &[1]).unwrap();
    });
    assert_separate(&executed);
}

/// Two threads at once: no command of one comes before the CMD_SYNC of the other's batch.
#[test]
fn flaw_4_erratum_2812531_batches_of_threads_are_apart() {
    let rounds = if cfg!(miri) { 2 } else { 50 };
    for log2 in [2, 5, 7] {
        let executed = commands(mmu_700(0, 0), settings(log2), |smmu| {
            thread::scope(|scope| {
                for thread in 0..2u16 {
                    scope.spawn(move || {
                        for round in 0..rounds {
                            let count = 1 + 37 * round % 300;
                            smmu.flush(Context::Asid(thread), &[pages(0, count)]).unwrap();
                        }
                    });
                }
            });
        });
        assert_separate(&executed);
        for batch in between_syncs(&executed) {
            let asids: Vec<_> = batch.iter().map(|command| command[0] >> 48).collect();
            assert!(asids.windows(2).all(|pair| pair[0] == pair[1]), "two threads': {asids:?}");
        }
    }
}

/// Products without the erratum get one CMD_SYNC at the end of a call, as before.
#[test]
fn without_the_erratum_one_sync_is_enough() {
    for iidr in [0, mmu_700(1, 1), mmu_600(0, 0), 0x487 << 20 | 0x4e] {
        let executed = commands(iidr, settings(7), |smmu| {
            smmu.flush(Context::Asid(3), &[pages(0, 8192), Tlbi::Context]).unwrap();
        });
        let lengths: Vec<_> = between_syncs(&executed).map(<[_]>::len).collect();
        assert_eq!(lengths, [2, 8193, 0], "IIDR {iidr:#x}");
    }
}

/// A user can override the detected errata, in both directions.
#[test]
fn errata_can_be_overridden() {
    let flush = |iidr, errata| {
        commands(iidr, Settings { errata, ..settings(7) }, |smmu| {
            assert_eq!(Some(smmu.errata()), errata);
            smmu.flush(Context::Asid(3), &[pages(0, 100), Tlbi::Context]).unwrap();
        })
    };
    let executed = flush(mmu_700(1, 0), Some(Errata::NONE));
    assert_eq!(between_syncs(&executed).map(<[_]>::len).max(), Some(101));
    assert_separate(&flush(0, Some(Errata::NONE.with(Erratum::Arm2812531))));
}

#[test]
fn identity_and_errata_are_values() {
    let of = |iidr| {
        let ram = Ram::new(1 << 18);
        let fake = Fake::new(&ram, options(iidr));
        let smmu = Smmu::new(&fake, &ram, settings(4)).unwrap();
        assert_eq!(smmu.identity(), Identity::from_iidr(iidr));
        (smmu.identity().to_string(), smmu.errata().iter().map(Erratum::number).collect::<Vec<_>>())
    };
    let cases: [(u32, &str, &[u32]); 9] = [
        (mmu_700(0, 0), "Arm MMU-700 r0p0", &[2_268_618, 2_812_531]),
        (mmu_700(0, 1), "Arm MMU-700 r0p1", &[2_268_618, 2_812_531]),
        (mmu_700(1, 0), "Arm MMU-700 r1p0", &[2_268_618, 2_812_531]),
        (mmu_700(1, 1), "Arm MMU-700 r1p1", &[]),
        (mmu_600(0, 2), "Arm MMU-600 r0p2", &[1_076_982, 1_209_401]),
        (mmu_600(1, 0), "Arm MMU-600 r1p0", &[1_209_401]),
        (mmu_600(2, 0), "Arm MMU-600 r2p0", &[]),
        (0, "SMMU of implementer 0x0, product 0x0, r0p0", &[]),
        // A product of another vendor with the same number.
        (mmu_700(0, 0) ^ 1, "SMMU of implementer 0x43a, product 0x487, r0p0", &[]),
    ];
    for (iidr, name, errata) in cases {
        assert_eq!(of(iidr), (name.to_owned(), errata.to_vec()));
    }
    assert_eq!(Errata::NONE.to_string(), "no known erratum");
    let errata = Errata::of(Identity::from_iidr(mmu_700(0, 0)));
    let lines = errata.to_string();
    assert_eq!(lines.lines().count(), 2);
    assert!(lines.contains("Arm MMU-700 erratum 2812531") && lines.contains("63"), "{lines}");
    assert_eq!(format!("{errata:?}"), "{Arm2268618, Arm2812531}");
    assert_eq!(errata.without(Erratum::Arm2268618).without(Erratum::Arm2812531), Errata::NONE);
}
