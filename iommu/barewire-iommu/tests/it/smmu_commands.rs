//! The command queue, and the commands of invalidations, on a fake SMMU that is written from the
//! manual.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use barewire_iommu::smmu::v3::{Command, CommandQueue, Scope, Settings, Smmu};
use barewire_iommu::smmu::{Patience, Polls, Registers};
use barewire_iommu::{Context, FlushError, Granule, Invalidate, Iova, Pool, Tlbi};

use crate::smmu_fake;
use crate::smmu_fake::{Fake, Options, Ram};

const SYNC: [u64; 2] = [0x46, 0];

fn settings(command_queue_log2: u8, polls: u32) -> Settings {
    Settings { command_queue_log2, patience: Polls(polls), ..Settings::default() }
}

/// Runs `test` on an SMMU that has just been brought up.
fn with_smmu(options: Options, settings: Settings, test: impl FnOnce(&Fake, &Smmu<&Fake, Ram>)) {
    let ram = Ram::new(1 << 18);
    let fake = Fake::new(&ram, options);
    let smmu = Smmu::new(&fake, &ram, settings).expect("it comes up");
    fake.state().executed.clear();
    test(&fake, &smmu);
}

/// A command that carries a number.
fn numbered(number: u32) -> Command {
    Command::cfgi_ste(number, true)
}

/// By hand from chapter 4.
#[test]
fn encodings_are_the_manual_s() {
    let scope = |granule, num, scale, level| Some(Scope { granule, num, scale, level });
    let va = |iova, leaf, scope| Command::tlbi_nh_va(0xcafe, 0xbeef, Iova(iova), leaf, scope).0;
    let ipa = |iova, leaf, scope| Command::tlbi_s2_ipa(0xcafe, Iova(iova), leaf, scope).0;
    let top = 0xffff_ffff_f000;
    let cases = [
        (Command::SYNC.0, SYNC),
        (Command::CFGI_ALL.0, [0x04, 31]),
        (Command::TLBI_NSNH_ALL.0, [0x30, 0]),
        (Command::cfgi_ste(0x89ab_cdef, true).0, [0x89ab_cdef_0000_0003, 1]),
        (Command::cfgi_ste(1, false).0, [0x1_0000_0003, 0]),
        (Command::cfgi_cd(0x89ab_cdef, 0xabcde, true).0, [0x89ab_cdef_abcd_e005, 1]),
        (Command::cfgi_cd_all(0x1234).0, [0x1234_0000_0006, 0]),
        (Command::tlbi_nh_all(0xcafe).0, [0xcafe_0000_0010, 0]),
        (Command::tlbi_nh_asid(0xcafe, 0xbeef).0, [0xbeef_cafe_0000_0011, 0]),
        (Command::tlbi_s12_vmall(0xcafe).0, [0xcafe_0000_0028, 0]),
        (va(top, false, None), [0xbeef_cafe_0000_0012, 0xffff_ffff_f000]),
        (va(top, true, None), [0xbeef_cafe_0000_0012, 0xffff_ffff_f001]),
        // NUM 31, SCALE 9; TG 1, TTL 3.
        (va(0, true, scope(Granule::Size4K, 31, 9, Some(3))), [0xbeef_cafe_0091_f012, 0x701]),
        // NUM 2, SCALE 31; TG 2, no TTL.
        (va(0, false, scope(Granule::Size16K, 2, 31, None)), [0xbeef_cafe_01f0_2012, 0x800]),
        // NUM 0, SCALE 0; TG 3, TTL 2.
        (
            va(1 << 29, true, scope(Granule::Size64K, 0, 0, Some(2))),
            [0xbeef_cafe_0000_0012, 0x2000_0e01],
        ),
        // NUM, SCALE and TTL 0: TG would be reserved.
        (va(0x1000, false, scope(Granule::Size4K, 0, 0, None)), [0xbeef_cafe_0000_0012, 0x1000]),
        // What a field has no bits for is not written, and TTL 0 is no level.
        (
            va(0, false, scope(Granule::Size4K, 0x20 | 1, 0x60 | 2, Some(7))),
            [0xbeef_cafe_0020_1012, 0x700],
        ),
        (va(0x1000, false, scope(Granule::Size4K, 0, 0, Some(4))), [0xbeef_cafe_0000_0012, 0x1000]),
        (ipa(0x10_0000_0000_1000, true, None), [0xcafe_0000_002a, 0x1001]),
        (ipa(top, true, None), [0xcafe_0000_002a, 0xffff_ffff_f001]),
        (ipa(0, true, scope(Granule::Size4K, 0, 18, Some(1))), [0xcafe_0120_002a, 0x501]),
    ];
    for (index, (ours, manual)) in cases.into_iter().enumerate() {
        assert_eq!(ours, manual, "case {index}: {ours:x?}, {manual:x?}");
    }
}

#[test]
fn operations_become_commands() {
    with_smmu(Options::default(), settings(4, 100), |fake, smmu| {
        let flush = |context, operation| {
            smmu.flush(context, &[operation]).unwrap();
            let executed = fake.take_executed();
            assert_eq!(smmu.commands(&[operation]), executed.len() as u64);
            executed
        };
        let asid = Context::Asid(0xbeef);
        let vmid = Context::Vmid(0xcafe);
        assert_eq!(flush(asid, Tlbi::Context), [[0xbeef_0000_0000_0011, 0]]);
        assert_eq!(flush(vmid, Tlbi::Context), [[0xcafe_0000_0028, 0]]);

        let pages =
            |leaf, level| Tlbi::Pages { iova: Iova(0x5000), stride: 12, count: 2, leaf, level };
        let va = 0xbeef_0000_0000_0012;
        // Tables: NUM 1, which is two granules, because one at any level has no encoding.
        let walk = va | 1 << 12;
        assert_eq!(flush(asid, pages(false, None)), [[walk, 0x5400], [walk, 0x6400]]);
        assert_eq!(flush(asid, pages(true, None)), [[va, 0x5001], [va, 0x6001]]);
        assert_eq!(flush(asid, pages(true, Some(3))), [[va, 0x5701], [va, 0x6701]]);
        // A level says nothing of tables.
        assert_eq!(flush(asid, pages(false, Some(3))), [[walk, 0x5400], [walk, 0x6400]]);
        let ipa = 0xcafe_0000_002a;
        assert_eq!(flush(vmid, pages(true, Some(3))), [[ipa, 0x5701], [ipa, 0x6701]]);

        // Blocks: one command each, over the whole block, at its level.
        let blocks = |iova, stride, level| Tlbi::Pages {
            iova: Iova(iova),
            stride,
            count: 2,
            leaf: true,
            level: Some(level),
        };
        let two = flush(asid, blocks(0x20_0000, 21, 2));
        assert_eq!(two, [[va | 9 << 20, 0x20_0601], [va | 9 << 20, 0x40_0601]]);
        let two = flush(asid, blocks(0x2000_0000, 29, 2));
        assert_eq!(two, [[va | 13 << 20, 0x2000_0e01], [va | 13 << 20, 0x4000_0e01]]);
        // An address at which such a block cannot begin, or a size that no granule has: no hint.
        let two = flush(asid, blocks(0x20_1000, 21, 2));
        assert_eq!(two, [[va, 0x20_1001], [va, 0x40_1001]]);
        assert_eq!(flush(asid, blocks(0x20_0000, 20, 2))[0], [va, 0x20_0001]);

        let range = |iova, page_shift, pages, leaf, level| Tlbi::Range {
            iova: Iova(iova),
            page_shift,
            pages,
            leaf,
            level,
        };
        // 32 MiB: the thread's buffer.
        let one = flush(asid, range(0x4000_0000, 12, 8192, false, None));
        assert_eq!(one, [[va | 13 << 20, 0x4000_0400]]);
        // 1 + 2 × 16 + 1 × 64.
        let three = flush(vmid, range(0x1000, 12, 97, true, Some(3)));
        assert_eq!(three, [[ipa, 0x1701], [ipa | 2 << 12 | 5 << 20, 0x2701]]);
        // One page, at any level, is no range.
        assert_eq!(flush(asid, range(0x1000, 12, 1, true, None)), [[va, 0x1001]]);
        assert_eq!(flush(asid, range(0x1_0000, 16, 1, true, Some(3))), [[va, 0x1_0f01]]);
        // One granule of tables: two, as above.
        assert_eq!(flush(asid, range(0x1_0000, 16, 1, false, None)), [[walk, 0x1_0c00]]);
        // Level 2 only where leaves of level 2 begin.
        let two = flush(asid, range(0x20_0000, 12, 1024, true, Some(2)));
        assert_eq!(two, [[va | 10 << 20, 0x20_0601]]);
        let two = flush(asid, range(0x20_1000, 12, 1024, true, Some(2)));
        assert_eq!(two, [[va | 10 << 20, 0x20_1401]]);
        // An empty list of commands sends nothing, not even a CMD_SYNC.
        smmu.flush(asid, &[]).unwrap();
        assert!(fake.state().executed.is_empty());
    });
}

#[test]
fn without_ranges_every_page_is_a_command() {
    let options = Options { idr3: 0, ..Options::default() };
    with_smmu(options, settings(4, 100), |fake, smmu| {
        assert!(!smmu.has_ranges());
        let range = Tlbi::Range {
            iova: Iova(0x1_0000),
            page_shift: 16,
            pages: 3,
            leaf: true,
            level: Some(3),
        };
        let pages = Tlbi::Pages { iova: Iova(0), stride: 12, count: 1, leaf: true, level: Some(3) };
        assert_eq!(smmu.commands(&[range, pages]), 4);
        smmu.flush(Context::Asid(1), &[range, pages]).unwrap();
        let va = 0x0001_0000_0000_0012;
        let executed = fake.take_executed();
        assert_eq!(executed, [[va, 0x1_0001], [va, 0x2_0001], [va, 0x3_0001], [va, 1]]);
    });
}

/// The commands for a range, decoded, cover exactly that range. The only granule that they may cover
/// twice, or beyond the end, is the one after a single granule.
#[test]
fn ranges_are_covered_exactly() {
    with_smmu(Options::default(), settings(4, 100), |fake, smmu| {
        let mut random = 1u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) % below
        };
        for round in 0..if cfg!(miri) { 5 } else { 500 } {
            let page_shift = [12, 14, 16][round % 3];
            let bits = next(20) + 1;
            let pages = next(1 << bits) + 1;
            let iova = next(1 << 20) << page_shift;
            let operation =
                Tlbi::Range { iova: Iova(iova), page_shift, pages, leaf: false, level: None };
            smmu.flush(Context::Asid(0), &[operation]).unwrap();
            let executed = fake.take_executed();
            assert_eq!(executed.len() as u64, smmu.commands(&[operation]));
            let mut at = iova;
            for [low, high] in executed {
                assert_eq!(high & !0xfff, at, "a gap, or twice");
                let tg = high >> 10 & 0b11;
                let (num, scale) = (low >> 12 & 0x1f, low >> 20 & 0x1f);
                assert_eq!(10 + 2 * tg, u64::from(page_shift), "no range fields");
                assert_eq!(high >> 8 & 0b11, 0, "a level, for tables");
                assert!(num != 0 || scale != 0, "reserved");
                let is_one = at == iova && scale == 0 && num == 1 && pages % 2 == 1;
                at += if is_one { 1 } else { (num + 1) << scale } << page_shift;
            }
            assert_eq!(at, iova + (pages << page_shift));
        }
    });
}

#[test]
fn as_many_commands_as_counted() {
    with_smmu(Options::default(), settings(7, 100), |fake, smmu| {
        let pages =
            Tlbi::Pages { iova: Iova(0), stride: 12, count: 8192, leaf: false, level: None };
        assert_eq!(smmu.commands(&[pages]), 8192);
        smmu.flush(Context::Asid(3), &[pages]).unwrap();
        let executed = std::mem::take(&mut fake.state().executed);
        assert_eq!(executed.len(), 8193);
        for (page, command) in (0..8192).zip(&executed) {
            assert_eq!(*command, [0x0003_0000_0000_1012, page << 12 | 0x400]);
        }
        assert_eq!(executed[8192], SYNC);
    });
}

/// Batches of every length, beginning at every slot and either wrap bit, and past 2^32, near which
/// positions begin.
#[test]
fn wraps_around_anywhere() {
    for log2 in 1..=if cfg!(miri) { 2 } else { 4 } {
        let size = 1 << log2;
        for length in 0..=2 * size {
            for pace in [1, 3, usize::MAX] {
                let options = Options { pace, ..Options::default() };
                with_smmu(options, settings(log2, 1000), |fake, smmu| {
                    let mut number = 0;
                    // Each batch moves the next one on by its length and CMD_SYNC.
                    for round in 0..4 * size {
                        // All offsets, even where length and size have a common divisor.
                        let length = length + round % 2;
                        let batch: Vec<_> = (number..number + length).map(numbered).collect();
                        number += length;
                        smmu.run(&batch).unwrap();
                        let executed = std::mem::take(&mut fake.state().executed);
                        let expected: Vec<_> =
                            batch.iter().map(|command| command.0).chain([SYNC]).collect();
                        assert_eq!(executed, expected, "{length} commands, queue of {size}");
                    }
                });
            }
        }
    }
}

#[test]
fn a_full_queue_is_waited_for() {
    let options = Options { pace: 0, ..Options::default() };
    let ram = Ram::new(1 << 18);
    let fake = Fake::new(&ram, Options { pace: 1, ..options });
    let smmu = Smmu::new(&fake, &ram, settings(2, 5)).unwrap();
    fake.state().executed.clear();
    let set_pace = |pace| fake.options.lock().unwrap().pace = pace;
    set_pace(0);
    // Two batches of two fill it; the third finds no room.
    for number in 0..3 {
        assert_eq!(smmu.run(&[numbered(number)]), Err(FlushError::Timeout));
    }
    assert!(fake.state().executed.is_empty());
    set_pace(1);
    smmu.run(&[numbered(3)]).unwrap();
    let expected = [numbered(0).0, SYNC, numbered(1).0, SYNC, numbered(3).0, SYNC];
    assert_eq!(fake.state().executed, expected);
}

#[test]
fn a_refused_command_becomes_a_sync_and_its_batch_s_error() {
    for at in 0..9 {
        let options = Options { illegal: vec![0x30], ..Options::default() };
        let ram = Ram::new(1 << 18);
        let fake = Fake::new(&ram, Options::default());
        let smmu = Smmu::new(&fake, &ram, settings(3, 100)).unwrap();
        *fake.options.lock().unwrap() = options;
        fake.state().executed.clear();
        let mut batch: Vec<_> = (0..9).map(numbered).collect();
        batch[at] = Command::TLBI_NSNH_ALL;
        assert_eq!(smmu.run(&batch), Err(FlushError::Command(1)));
        let mut expected: Vec<_> = batch.iter().map(|command| command.0).chain([SYNC]).collect();
        expected[at] = SYNC;
        assert_eq!(fake.state().executed, expected);
        // The reason of the old error is still in CONS; it is not taken for a new error.
        assert_eq!(smmu.run(&[numbered(1)]), Ok(()));
        assert_eq!(fake.state().active_errors(), 0);
    }
}

#[test]
fn several_refused_commands() {
    let bad = Command::TLBI_NSNH_ALL;
    let ram = Ram::new(1 << 18);
    let fake = Fake::new(&ram, Options::default());
    let smmu = Smmu::new(&fake, &ram, settings(4, 1000)).unwrap();
    fake.options.lock().unwrap().illegal = vec![0x30];
    fake.state().executed.clear();
    assert_eq!(smmu.run(&[bad; 30]), Err(FlushError::Command(1)));
    assert_eq!(fake.state().executed, [SYNC; 31]);
    assert_eq!(smmu.run(&[numbered(0)]), Ok(()));
}

#[test]
fn an_aborted_fetch_is_tried_again() {
    with_smmu(Options::default(), settings(3, 100), |fake, smmu| {
        fake.options.lock().unwrap().aborts = 2;
        assert_eq!(smmu.run(&[numbered(0), numbered(1)]), Err(FlushError::Command(2)));
        assert_eq!(fake.state().executed, [numbered(0).0, numbered(1).0, SYNC]);
        assert_eq!(smmu.run(&[numbered(2)]), Ok(()));
    });
}

/// An interrupt handler issues commands while the interrupted call waits. Each call gets its own
/// error, even if the other acknowledged it.
#[test]
fn calls_within_calls() {
    /// The handler runs when the first poll finds the command unfinished.
    struct InterruptedWait<'f, F: Fn()>(&'f F, AtomicBool);
    impl<F: Fn()> Patience for InterruptedWait<'_, F> {
        fn more(&self, _started: u64, looks: u32) -> bool {
            if !self.1.swap(true, Ordering::Relaxed) {
                self.0();
            }
            looks < 100
        }
    }

    let bad = Command::TLBI_NSNH_ALL;
    for (outer, inner) in [(numbered(1), bad), (bad, numbered(1)), (bad, bad), (bad, Command::SYNC)]
    {
        let ram = Ram::new(1 << 18);
        let fake = Fake::new(&ram, Options { pace: 1, ..Options::default() });
        let smmu = Smmu::new(&fake, &ram, settings(4, 100)).unwrap();
        fake.options.lock().unwrap().illegal = vec![0x30];
        fake.state().executed.clear();
        let expected = |command| match command == bad {
            true => Err(FlushError::Command(1)),
            false => Ok(()),
        };
        let handler = || assert_eq!(smmu.run(&[inner]), expected(inner));
        let interrupted = InterruptedWait(&handler, AtomicBool::new(false));
        let commands = std::iter::once(outer);
        let result = smmu.command_queue().run(&&fake, &interrupted, 1, commands);
        assert_eq!(result, expected(outer));
        assert_eq!(fake.state().executed.len(), 4);
    }
}

/// An error is returned to the call that caused it, even if another CPU handled it.
#[test]
fn errors_are_their_batch_s_alone() {
    with_smmu(Options::default(), settings(4, u32::MAX), |fake, smmu| {
        fake.options.lock().unwrap().illegal = vec![0x30];
        thread::scope(|scope| {
            let bad = scope.spawn(|| {
                // Fewer than the queue tells apart.
                for number in 0..7 {
                    let batch = [numbered(number), Command::TLBI_NSNH_ALL];
                    assert_eq!(smmu.run(&batch), Err(FlushError::Command(1)));
                }
            });
            for number in 0..if cfg!(miri) { 5 } else { 200 } {
                assert_eq!(smmu.run(&[numbered(1000 + number)]), Ok(()));
            }
            bad.join().unwrap();
        });
    });
}

#[test]
fn an_interrupt_handler_deals_with_errors() {
    let options = Options { slow: 0, pace: usize::MAX, ..Options::default() };
    with_smmu(options, settings(4, 1), |fake, smmu| {
        let set = |pace, illegal| {
            let mut options = fake.options.lock().unwrap();
            (options.pace, options.illegal) = (pace, illegal);
        };
        set(0, vec![0x30]);
        assert_eq!(smmu.run(&[Command::TLBI_NSNH_ALL]), Err(FlushError::Timeout));
        set(usize::MAX, vec![0x30]);
        // Time passes: the SMMU stops at the command.
        smmu.registers().read32(0x9c);
        fake.state().gerror ^= 1 << 2;
        assert_eq!(fake.state().active_errors(), 1 << 2 | 1);
        let errors = smmu.handle_errors();
        assert_eq!(errors.bits(), 1 << 2, "the refused command is its call's error");
        assert_eq!(fake.state().active_errors(), 0);
        assert_eq!(smmu.run(&[numbered(1)]), Ok(()));
        assert_eq!(fake.state().executed, [SYNC, SYNC, numbered(1).0, SYNC]);
    });
}

/// Many CPUs: every command once, each CPU's in order, none missing when its call returns.
#[test]
fn threads_share_the_queue() {
    const THREADS: u32 = 4;
    let rounds = if cfg!(miri) { 3 } else { 300 };
    for log2 in [1, 2, 5] {
        with_smmu(Options::default(), settings(log2, u32::MAX), |fake, smmu| {
            thread::scope(|scope| {
                for thread in 0..THREADS {
                    scope.spawn(move || {
                        let mut number = thread << 16;
                        for round in 0..rounds {
                            let batch: Vec<_> =
                                (number..=number + round % 7).map(numbered).collect();
                            number += batch.len() as u32;
                            smmu.run(&batch).unwrap();
                            let state = fake.state();
                            let last = batch.last().unwrap().0;
                            let is_there = state.executed.iter().rev().any(|&done| done == last);
                            assert!(is_there, "completed before it was executed");
                        }
                    });
                }
            });
            let executed = fake.take_executed();
            for thread in 0..THREADS {
                let of = executed.iter().map(|command| (command[0] >> 32) as u32);
                let of: Vec<_> = of.filter(|number| number >> 16 == thread).collect();
                let count = of.len() as u32;
                assert_eq!(of, (thread << 16..(thread << 16) + count).collect::<Vec<_>>());
            }
            let per_thread: u32 = (0..rounds).map(|round| round % 7 + 1).sum();
            assert_eq!(executed.len() as u32, THREADS * per_thread);
        });
    }
}

#[test]
fn a_queue_s_base() {
    let ram = Ram::new(1 << 18);
    let _gap = ram.alloc(64).unwrap();
    let queue = CommandQueue::new(&ram, 5).unwrap();
    // RA, ADDR, LOG2SIZE.
    assert_eq!(queue.base(), 1 << 62 | (smmu_fake::ram::BASE + 512) | 5);
}
