//! Compares with a naive set, and tests calls from several threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

const PAGE: u64 = 4096;

fn pages(range: Range<u64>) -> Range<Iova> {
    Iova(range.start * PAGE)..Iova(range.end * PAGE)
}

fn window(range: Range<u64>, words: usize) -> IovaWindow<Vec<u64>> {
    IovaWindow::new(pages(range), Granule::Size4K, vec![u64::MAX; words])
}

fn release(window: &IovaWindow<Vec<u64>>, range: Range<u64>) {
    // SAFETY: handed out to this test, which maps nothing.
    unsafe { window.release(pages(range)) };
}

#[test]
fn the_window_is_what_was_asked_for_or_what_the_storage_holds() {
    assert_eq!(window(0..128, 2).range(), pages(0..128));
    assert_eq!(window(0..128, 9).range(), pages(0..128));
    assert_eq!(window(0..1000, 2).range(), pages(0..128));
    // Words begin at multiples of 64 granules, so the other bits of the first word are unused.
    assert_eq!(window(10..1000, 2).range(), pages(10..128));
    assert_eq!(window(10..20, 1).range(), pages(10..20));
    let backwards = Range { start: 20, end: 10 };
    for empty in [window(10..20, 0), window(backwards, 1), window(64..64, 1)] {
        assert!(empty.range().is_empty());
        assert_eq!(empty.alloc(PAGE), None);
    }
    let odd = IovaWindow::new(Iova(1)..Iova(5 * PAGE + 1), Granule::Size4K, [0; 1]);
    assert_eq!(odd.range(), pages(1..5));
}

#[test]
fn every_page_of_a_window_is_handed_out_once() {
    let window = window(10..150, 3);
    let mut given: Vec<u64> = (0..140).map(|_| window.alloc(PAGE).unwrap().0 / PAGE).collect();
    assert_eq!(window.alloc(PAGE), None);
    given.sort_unstable();
    assert_eq!(given, (10..150).collect::<Vec<_>>());
    release(&window, 77..78);
    assert_eq!(window.alloc(2 * PAGE), None);
    assert_eq!(window.alloc(PAGE), Some(Iova(77 * PAGE)));
}

#[test]
fn ranges_are_aligned_for_blocks() {
    const MIB: u64 = 1 << 20;
    let window = window(1..4096, 64);
    assert_eq!(window.alloc(PAGE), Some(Iova(PAGE)));
    assert_eq!(window.alloc(3 * PAGE), Some(Iova(4 * PAGE)));
    assert_eq!(window.alloc(2 * MIB), Some(Iova(2 * MIB)));
    assert_eq!(window.alloc(2 * MIB + PAGE), Some(Iova(4 * MIB)));
    assert_eq!(window.alloc(0), None);
    assert_eq!(window.alloc(u64::MAX), None);
    // The alignment never exceeds the largest block: three of these need no alignment to four.
    let large = IovaWindow::new(Iova(1 << 25)..Iova(1 << 28), Granule::Size16K, vec![0; 256]);
    assert_eq!(large.alloc(3 << 25), Some(Iova(1 << 25)));
}

#[test]
fn claims_are_exclusive_inside_outside_and_across() {
    let window = window(64..128, 1);
    let claim = |range| window.claim(pages(range));
    assert_eq!(claim(64..65), Ok(()));
    assert_eq!(window.alloc(PAGE), Some(Iova(65 * PAGE)));
    assert_eq!(claim(65..66), Err(ClaimError::Taken));
    // From before the window into it, and across all of it.
    assert_eq!(claim(60..65), Err(ClaimError::Taken));
    release(&window, 64..65);
    assert_eq!(claim(60..65), Ok(()));
    assert_eq!(claim(0..1000), Err(ClaimError::Taken));
    assert_eq!(claim(59..61), Err(ClaimError::Taken));
    assert_eq!(claim(50..60), Ok(()));
    release(&window, 65..66);
    release(&window, 60..65);
    assert_eq!(claim(60..1000), Ok(()));
    assert_eq!(window.alloc(PAGE), None);
    assert_eq!(claim(999..1001), Err(ClaimError::Taken));
    release(&window, 60..1000);
    assert_eq!(claim(999..1001), Ok(()));
    assert_eq!(window.alloc(64 * PAGE), Some(Iova(64 * PAGE)));
    assert_eq!(claim(7..7), Err(ClaimError::Unaligned { to: PAGE }));
    assert_eq!(window.claim(Iova(1)..Iova(PAGE)), Err(ClaimError::Unaligned { to: PAGE }));
}

#[test]
fn sixteen_claims_outside_are_remembered_and_the_next_changes_nothing() {
    let window = window(64..128, 1);
    for i in 0..15 {
        window.claim(pages(1000 + 2 * i..1001 + 2 * i)).unwrap();
    }
    // A claim on both sides of the window needs two places, and one is left.
    assert_eq!(window.claim(pages(60..130)), Err(ClaimError::TooMany(OUTSIDE)));
    assert_eq!(window.alloc(64 * PAGE), Some(Iova(64 * PAGE)), "the window was left alone");
    assert_eq!(window.claim(pages(60..64)), Ok(()));
    assert_eq!(window.claim(pages(50..51)), Err(ClaimError::TooMany(OUTSIDE)));
    release(&window, 1000..1001);
    assert_eq!(window.claim(pages(50..51)), Ok(()));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Alloc(u64),
    Claim(u64, u64),
    Release(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u64..200).prop_map(Step::Alloc),
        1 => (0u64..700, 1u64..80).prop_map(|(at, count)| Step::Claim(at, count)),
        4 => any::<usize>().prop_map(Step::Release),
    ]
}

/// The ranges handed out, by their first page.
type Given = BTreeMap<u64, u64>;

fn is_free(given: &Given, at: u64, count: u64) -> bool {
    given.iter().all(|(&start, &len)| start + len <= at || at + count <= start)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    #[cfg_attr(miri, ignore = "looks for wrong ranges, of which the other tests have enough for Miri")]
    fn as_a_naive_set(steps in prop::collection::vec(step(), 300)) {
        let (first, end) = (40, 600);
        let window = window(first..end, 10);
        let mut given = Given::new();
        for step in steps {
            match step {
                Step::Alloc(count) => {
                    let align = count.next_power_of_two();
                    match window.alloc(count * PAGE) {
                        Some(Iova(at)) => {
                            let at = at / PAGE;
                            prop_assert!(at.is_multiple_of(align));
                            prop_assert!(at >= first && at + count <= end);
                            prop_assert!(is_free(&given, at, count));
                            given.insert(at, count);
                        }
                        None => {
                            let mut gaps = (first..=end - count).filter(|at| {
                                at.is_multiple_of(align) && is_free(&given, *at, count)
                            });
                            prop_assert_eq!(gaps.next(), None, "{} fit", count);
                        }
                    }
                }
                Step::Claim(at, count) => {
                    let outside = given.range(..first).chain(given.range(end..)).count();
                    match window.claim(pages(at..at + count)) {
                        Ok(()) => {
                            prop_assert!(is_free(&given, at, count));
                            given.insert(at, count);
                        }
                        Err(ClaimError::Taken) => prop_assert!(!is_free(&given, at, count)),
                        Err(error) => prop_assert!(outside >= OUTSIDE - 2, "{:?}", error),
                    }
                }
                Step::Release(which) => {
                    if let Some((&at, &count)) = given.iter().nth(which % given.len().max(1)) {
                        given.remove(&at);
                        release(&window, at..at + count);
                    }
                }
            }
        }
        for (at, count) in given {
            release(&window, at..at + count);
        }
        // No page was lost: the whole window is one gap again.
        prop_assert_eq!(window.claim(pages(first..end)), Ok(()));
    }
}

#[test]
fn threads_never_get_the_same() {
    let window = window(0..256, 4);
    let rounds = if cfg!(miri) { 20 } else { 20_000 };
    let owner: Vec<AtomicU32> = (0..256).map(|_| AtomicU32::new(0)).collect();
    let work = |me: u32| {
        for round in 0..rounds {
            let count = 1 + (round + u64::from(me)) % 7;
            let Some(Iova(at)) = window.alloc(count * PAGE) else { continue };
            let first = at / PAGE;
            let range = first as usize..(first + count) as usize;
            for page in &owner[range.clone()] {
                assert_eq!(page.swap(me, Relaxed), 0);
            }
            for page in &owner[range] {
                assert_eq!(page.swap(0, Relaxed), me);
            }
            release(&window, first..first + count);
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| work(1));
        scope.spawn(|| work(2));
    });
    assert_eq!(window.claim(pages(0..256)), Ok(()));
}
