//! The judge of random messages: on every block, in front of a chip that is strict, in each way of waiting,
//! in time and late.

use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};

use crate::blocks::{Block, Way, on_every_block};
use crate::driver::Waits;
use crate::random::{Message, cases, messages, run};

fn run_all(
    block: &Block,
    way: &Way,
    jitter_ns: u64,
    waits: Waits,
    messages: &[Message],
) -> Result<u64, TestCaseError> {
    run(&block.asks, way.start, &block.board(way, jitter_ns), waits, messages, jitter_ns > 0)
}

fn random_messages_arrive_whole_and_in_time(block: &'static Block) {
    let ways: Vec<&Way> =
        block.ways.iter().filter(|way| way.kind.is_none() && !way.polled_only).collect();
    let limits = prop_oneof![Just(0), 0_u32..200_000];
    let strategy = (messages(&block.asks), 0..ways.len(), limits, any::<bool>(), any::<u64>());
    let judged =
        TestRunner::new(cases(48, 256)).run(&strategy, |(messages, way, limit_ns, late, how)| {
            let way = ways[way];
            let jitter_ns = if late { how % (way.late_ns + 1) } else { 0 };
            let run = |waits| run_all(block, way, jitter_ns, waits, &messages);
            let once = run(Waits::Polling)?;
            let again = run(Waits::Polling)?;
            prop_assert_eq!(once, again, "the same program has the same trace");
            // The bytes are those that polling gives: the model's.
            run(Waits::Asleep(limit_ns))?;
            run(Waits::ByHandler(limit_ns))?;
            Ok(())
        });
    judged.unwrap_or_else(|failure| panic!("{}: {failure}", block.name));
}
on_every_block! { random_messages_arrive_whole_and_in_time }
