//! Stream table entries and context descriptors that change while the SMMU may read them. Checks the
//! entry between any two stores.

use barewire_iommu::FlushError;
use barewire_iommu::smmu::v3::{SmmuError, Stream, StreamLayout};

use crate::smmu_fake::{Fake, Options, Ram};
use crate::smmu_rig::{descriptor, stage2, with_smmu};

type Entry = [u64; 8];

/// The fields of a stream table entry that have a meaning, by 5.2: the others are cleared, so that
/// entries are equal if the SMMU does the same with them.
fn meaning_of_ste(entry: Entry) -> Entry {
    let [word0, word1, word2, word3, ..] = entry;
    // S1DSS, S1CIR, S1COR, S1CSH; S1STALLD.
    let stage1_fields = 0xff | 1 << 27;
    if word0 & 1 == 0 {
        return [0; 8];
    }
    match word0 >> 1 & 0b111 {
        0b000 => [1, 0, 0, 0, 0, 0, 0, 0],
        0b100 => [0b1001, word1 & !stage1_fields, 0, 0, 0, 0, 0, 0],
        // Stage 1's translations have the tag S2VMID too.
        0b101 => [word0, word1, word2 & 0xffff, 0, 0, 0, 0, 0],
        0b110 => [0b1101, word1 & !stage1_fields, word2, word3, 0, 0, 0, 0],
        config => panic!("Config {config:#b}"),
    }
}

/// The same for a context descriptor, by 5.4.
fn meaning_of_cd(entry: Entry) -> Entry {
    if entry[0] >> 31 & 1 == 0 { [0; 8] } else { entry }
}

/// The values that an SMMU may have read of the words at `at`, for each stretch between two
/// synchronisations. Each word is read on its own, with its value at any time in the stretch.
fn readings(at: u64, before: Entry, stores: &[Option<(u64, u64)>]) -> Vec<[Vec<u64>; 8]> {
    let mut stretches = vec![before.map(|word| vec![word])];
    for store in stores {
        let stretch = stretches.last_mut().unwrap();
        match *store {
            Some((to, value)) if (at..at + 64).contains(&to) => {
                stretch[(to - at) as usize / 8].push(value);
            }
            Some(_) => {}
            None => {
                let now = std::array::from_fn(|word| vec![*stretch[word].last().unwrap()]);
                stretches.push(now);
            }
        }
    }
    stretches
}

/// Every combination of `words`.
fn combinations(words: &[Vec<u64>; 8]) -> Vec<Entry> {
    let mut all = vec![[0; 8]];
    for (index, values) in words.iter().enumerate() {
        let with = |one: &Entry, value| {
            let mut one = *one;
            one[index] = value;
            one
        };
        all =
            all.iter().flat_map(|one| values.iter().map(move |&value| with(one, value))).collect();
    }
    all
}

/// Checks that at every moment, and for every order of reads, the SMMU saw the old entry or the new
/// one, with an invalid one between them if and only if that is allowed; and that it has confirmed
/// the new one.
fn assert_replaced(
    fake: &Fake<'_>,
    ram: &Ram,
    at: u64,
    meaning: fn(Entry) -> Entry,
    old: Entry,
    is_hitless: bool,
) {
    let new = meaning(fake.words(at));
    let stretches = readings(at, old, &ram.take_stores());
    let old = meaning(old);
    let mut was_invalid = false;
    for (index, words) in stretches.iter().enumerate() {
        for read in combinations(words) {
            let seen = meaning(read);
            let is_one = seen == old || seen == new;
            was_invalid |= !is_one && seen == [0; 8];
            assert!(
                is_one || seen == [0; 8],
                "stretch {index}: {read:x?} means {seen:x?}, neither {old:x?} nor {new:x?}"
            );
        }
    }
    assert_eq!(was_invalid, !is_hitless, "from {old:x?} to {new:x?}");
    let last = stretches.last().unwrap();
    assert!(last.iter().all(|values| values.len() == 1), "a store after the last agreement");
    assert!(stretches.len() > 1);
}

/// Which changes of a stream the documentation promises to make without an invalid entry in between.
fn is_hitless(old: Stream, new: Stream) -> bool {
    match (old, new) {
        (Stream::Stage1 { .. }, Stream::Stage2 { .. })
        | (Stream::Stage2 { .. }, Stream::Stage1 { .. }) => false,
        (Stream::Stage2 { root: old_root, vmid: old, .. }, Stream::Stage2 { root, vmid, .. }) => {
            old_root == root || old == vmid
        }
        _ => true,
    }
}

#[test]
fn flaw_7_stream_table_entries_change_without_a_gap_where_promised() {
    with_smmu(Options::default(), |fake, ram, smmu| {
        let mut streams = smmu.streams(StreamLayout::TwoLevel { sid_bits: 16, split: 6 }).unwrap();
        streams.enable().unwrap();
        let one = smmu.contexts(0).unwrap().stream();
        let many = smmu.contexts(4).unwrap().stream();
        let kinds = [
            Stream::Abort,
            Stream::Bypass,
            one,
            many,
            stage2(0x4_0000, 1),
            stage2(0x8_0000, 2),
            stage2(0x8_0000, 1),
        ];
        assert_eq!(streams.set(0x123, &stage2(0x8_0000, 0)), Err(SmmuError::VmidOfStage1));
        for old in kinds {
            for new in kinds {
                streams.set(0x123, &old).unwrap();
                let at = fake.stream_entry(0x123).unwrap();
                let before = fake.words(at);
                fake.take_executed();
                ram.watch();
                streams.set(0x123, &new).unwrap();
                assert_replaced(fake, ram, at, meaning_of_ste, before, is_hitless(old, new));
                let executed = fake.take_executed();
                assert!((1..=3).contains(&executed.len()));
                assert!(executed.iter().all(|command| *command == [0x123_0000_0003, 1]));
                // What the entry was before has left nothing behind.
                let after = fake.words(at);
                streams.set(0x124, &new).unwrap();
                assert_eq!(after, fake.words(at + 64));
            }
        }
    });
}

#[test]
fn flaw_7_context_descriptors_change_without_a_gap_where_promised() {
    with_smmu(Options::default(), |fake, ram, smmu| {
        let mut contexts = smmu.contexts(2).unwrap();
        let kinds = [
            None,
            Some(descriptor(0x4000, 1)),
            Some(descriptor(0x8000, 2)),
            Some(descriptor(0x4000, 3)),
            Some(descriptor(0x8000, 1)),
        ];
        let at = contexts.at().0 + 2 * 64;
        let used = [0x10, 0x11];
        for old in kinds {
            for new in kinds {
                contexts.set(2, old.as_ref(), &used).unwrap();
                let before = fake.words(at);
                fake.take_executed();
                ram.watch();
                contexts.set(2, new.as_ref(), &used).unwrap();
                let is_hitless = match (old, new) {
                    (Some(old), Some(new)) => old.root == new.root || old.asid == new.asid,
                    _ => true,
                };
                assert_replaced(fake, ram, at, meaning_of_cd, before, is_hitless);
                assert_eq!(fake.words(at)[0] >> 31 & 1, u64::from(new.is_some()));
                for each in fake.take_executed().chunks(2) {
                    assert_eq!(each, [[0x10_0000_2005, 1], [0x11_0000_2005, 1]]);
                }
            }
        }
        // The neighbours are as they were.
        assert_eq!((fake.words(at - 64), fake.words(at + 64)), ([0; 8], [0; 8]));
    });
}

/// After an unconfirmed change the SMMU may still use an entry that is no longer in memory. The next
/// change waits for its end before it stores.
#[test]
fn a_change_after_one_that_timed_out_begins_with_an_agreement() {
    const CFGI_ALL: [u64; 2] = [0x04, 31];
    with_smmu(Options::default(), |fake, ram, smmu| {
        let set_pace = |pace| fake.options.lock().unwrap().pace = pace;
        let timeout = Err(SmmuError::Flush(FlushError::Timeout));
        let agreed_before_storing = |at: u64| {
            let stores = ram.take_stores();
            let first = stores
                .iter()
                .position(|store| store.is_some_and(|(to, _)| (at..at + 64).contains(&to)));
            stores[..first.unwrap()].contains(&None)
        };
        let mut streams = smmu.streams(StreamLayout::Linear { sid_bits: 4 }).unwrap();
        let mut contexts = smmu.contexts(0).unwrap();
        contexts.set(0, Some(&descriptor(0x4000, 1)), &[3]).unwrap();
        streams.set(3, &contexts.stream()).unwrap();
        assert!(!fake.take_executed().contains(&CFGI_ALL));

        set_pace(0);
        assert_eq!(streams.set(3, &Stream::Bypass), timeout);
        assert_eq!(contexts.set(0, Some(&descriptor(0x8000, 1)), &[3]), timeout);
        assert_eq!(streams.set(3, &Stream::Abort), timeout, "still not");
        set_pace(3);
        ram.watch();
        streams.set(3, &stage2(0x4_0000, 7)).unwrap();
        assert!(agreed_before_storing(fake.stream_entry(3).unwrap()));
        ram.watch();
        contexts.set(0, Some(&descriptor(0xc000, 2)), &[3]).unwrap();
        assert!(agreed_before_storing(contexts.at().0));
        let executed = fake.take_executed();
        // One of the three is from the call that timed out.
        assert_eq!(executed.iter().filter(|&&command| command == CFGI_ALL).count(), 3);

        streams.set(3, &Stream::Bypass).unwrap();
        contexts.set(0, None, &[3]).unwrap();
        assert!(!fake.take_executed().contains(&CFGI_ALL), "once is enough");
    });
}
