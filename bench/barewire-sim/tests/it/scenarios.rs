//! Relations that must hold between the scenarios' times. The times themselves are a reviewed
//! table, `command/barewire-cli/tests/snapshots/simulated.txt`.

use barewire_sim::BoardSpec;
use barewire_sim::engine::Costs;
use barewire_sim::profile::CostLevel::Used;
use barewire_sim::scenario::hop::{self, Way};
use barewire_sim::scenario::{PROFILE, priority};

/// The profile's thread costs in nanoseconds: a wake's call, and the way from there to running.
fn wake_ns() -> (u64, u64) {
    let costs: Costs = BoardSpec::find(PROFILE).expect("a board").profile.thread_costs();
    (costs.wake_call_ps / 1_000, (costs.wake_ps + costs.context_switch_ps) / 1_000)
}

#[test]
fn a_hop_costs_what_its_wake_ups_and_switches_do() {
    let [sync, same, other] = hop::WAYS.map(|(_, way)| hop::run(way, Used));
    assert_eq!(hop::run(Way::Sync, Used), sync, "the same each time");
    let (call_ns, way_ns) = wake_ns();
    assert!(same.median_ns > sync.median_ns + call_ns, "{same:?}");
    // On another processor the worker must be woken, then the caller.
    assert!(other.median_ns >= sync.median_ns + 2 * call_ns + 2 * way_ns, "{other:?}");
}

#[test]
fn inheritance_bounds_what_a_medium_thread_can_do() {
    let (call_ns, way_ns) = wake_ns();
    let [plain, lending] = [false, true].map(|lends| priority::inversion(lends, Used));
    // Other work occupies the processor for two milliseconds at a time in between.
    assert!(plain.longest_ns > plain.message_ns + 1_000_000, "{plain:?}");
    let bound = lending.message_ns + lending.own_ns + 2 * (call_ns + way_ns);
    assert!(lending.longest_ns <= bound, "{lending:?}");
}

#[test]
fn an_urgent_access_waits_for_the_message_on_the_wire_at_most() {
    let (call_ns, way_ns) = wake_ns();
    let [equal, urgent] = [false, true].map(|urgent| priority::queueing(urgent, false, Used));
    // The holder that drains the queue wakes the message's owner before it continues.
    assert!(urgent.begun_longest_ns <= urgent.message_ns + call_ns, "{urgent:?}");
    // And then ours is run, and its owner woken.
    let bound = urgent.message_ns + call_ns + urgent.own_ns + call_ns + way_ns;
    assert!(urgent.longest_ns <= bound, "{urgent:?}");
    let paused = priority::queueing(true, true, Used);
    assert!(paused.begun_longest_ns <= paused.message_ns + call_ns, "{paused:?}");
    // An equal one waits for everybody.
    assert!(equal.begun_median_ns > 4 * equal.message_ns, "{equal:?}");
}
