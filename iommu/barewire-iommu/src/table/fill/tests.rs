//! Both ways to fill a table, against each other and against the leaves as they must be.

use std::vec;
use std::vec::Vec;

use super::*;
use crate::address::PhysAddr;

const BATCH: Batch =
    Batch { leaf: 0x0060_0000_0000_0f47, bad: !0x0000_ffff_ffff_f000, page: 0x1000 };

fn list(count: u64) -> Vec<Segment> {
    let page = |n: u64| Segment { phys: PhysAddr((n * 0x5_3a95) << 12), len: BATCH.page };
    (1..=count).map(page).collect()
}

/// Runs both ways on the list. They must return the same, and write the same if they accept it.
fn both(list: &[Segment]) -> bool {
    let (mut first, mut second) = (vec![!0; list.len()], vec![!0; list.len()]);
    let said = fill(&mut first, list, &BATCH);
    assert_eq!(one_by_one(&mut second, list, &BATCH), said, "{list:x?}");
    if said {
        let leaves: Vec<u64> = list.iter().map(|segment| segment.phys.0 | BATCH.leaf).collect();
        assert_eq!((&first, &second), (&leaves, &leaves));
    }
    said
}

#[test]
fn lists_of_every_length_are_written() {
    for count in 0..40 {
        assert!(both(&list(count)));
    }
}

#[test]
fn a_wrong_segment_is_found_wherever_it_is() {
    let wrong: [fn(&mut Segment); 8] = [
        |segment| segment.len = 0,
        |segment| segment.len = 0x2000,
        |segment| segment.len = 0x1001,
        |segment| segment.len = 0x3000,
        |segment| segment.len = 1 << 63 | 0x1000,
        |segment| segment.phys.0 |= 1,
        |segment| segment.phys.0 |= 0x800,
        |segment| segment.phys.0 |= 1 << 48,
    ];
    // The code reads the same memory for every wrong field, so Miri runs one.
    let (counts, wrong): (&[usize], _) =
        if cfg!(miri) { (&[1, 5, 9], &wrong[..1]) } else { (&[1, 3, 4, 5, 8, 9, 11], &wrong[..]) };
    for &count in counts {
        for at in 0..count {
            for wrong in wrong {
                let mut list = list(count as u64);
                wrong(&mut list[at]);
                assert!(!both(&list), "{at} of {count}: {:x?}", list[at]);
            }
        }
    }
}

/// Wrong lengths are refused even if their sum is right, or overflows to the right value.
#[test]
fn wrong_lengths_do_not_make_up_for_each_other() {
    for lens in [[0, 0x2000, 0x1000, 0x1000], [1 << 63, 0x1000, 1 << 63, 0x3000], [0, 0, 0, 0x4000]]
    {
        for rotated in 0..4 {
            let mut list = list(8);
            for (n, len) in lens.into_iter().enumerate() {
                list[(n + rotated) % 4].len = len;
            }
            assert!(!both(&list), "{list:x?}");
        }
    }
}
