//! The edges of a window, and calls from several threads.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::vec;
use std::vec::Vec;

use super::*;

// Random calls look for wrong ranges, of which the other tests have enough for Miri.
#[cfg(not(any(miri, loom)))]
mod random;

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
