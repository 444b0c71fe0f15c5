//! Random calls, compared with a naive set.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

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
