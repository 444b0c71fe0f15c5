//! What a thread pays to sleep and to be woken, without any bus: the same bodies on this machine and on a simulated board.
//!
//! *Read first*: [`barewire_sim::engine::Costs`], whose terms these are; futex(2).

use std::hint;
use std::panic;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::Instant;

use barewire::bus::platform::{AtomicU32, Platform};
use barewire_linux::platform::FUTEX;
use barewire_sim::engine::Thread;
use barewire_sim::{Board, SimPlatform};

use super::rounds::{Collected, Effort, Now, timed};
use crate::shared::failure::Failure;
use crate::shared::processors;

/// How long the waker waits for the sleeper to sleep.
const PAUSE_US: u64 = 300;
/// The word's last value.
const END: u32 = u32::MAX;

/// A word to sleep on, and when the sleeper woke.
#[derive(Default)]
struct Shared {
    word: AtomicU32,
    woke_at: AtomicU64,
}

/// Sleeps until the word changes, again and again.
fn sleeper(shared: &Shared, platform: &dyn Platform, now: Now<'_>) {
    let mut seen = 0;
    while seen != END {
        while shared.word.load(Acquire) == seen {
            platform.wait((&shared.word).into(), seen);
        }
        let at = now();
        seen = shared.word.load(Acquire);
        shared.woke_at.store(at.max(1), Release);
    }
}

/// Wakes the sleeper `times` times: what each call took, and how long after its end the sleeper ran.
fn waker(
    shared: &Shared,
    platform: &dyn Platform,
    now: Now<'_>,
    pause: &dyn Fn(),
    times: usize,
) -> [Vec<f64>; 2] {
    let [mut calls, mut wakes] = [Vec::new(), Vec::new()];
    for value in 1..=times as u32 {
        pause();
        let begun = now();
        shared.word.store(value, Release);
        platform.wake(&shared.word);
        let ended = now();
        let mut woke = 0;
        while woke == 0 {
            platform.relax();
            woke = shared.woke_at.swap(0, Acquire);
        }
        calls.push((ended - begun) as f64 / 1e3);
        wakes.push(woke.saturating_sub(ended) as f64 / 1e3);
    }
    end(shared, platform);
    [calls, wakes]
}

/// Ends the sleeper.
fn end(shared: &Shared, platform: &dyn Platform) {
    shared.word.store(END, Release);
    platform.wake(&shared.word);
}

/// The result of a thread; its panic goes on here.
fn joined<T>(result: thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| panic::resume_unwind(panic))
}

/// One of two threads that hand a turn to each other `times` times.
fn player(turn: &AtomicU32, me: u32, platform: &dyn Platform, times: usize) {
    let other = 1 - me;
    for _ in 0..times {
        while turn.load(Acquire) != me {
            platform.wait(turn.into(), other);
        }
        turn.store(other, Release);
        platform.wake(turn);
    }
}

/// A wait call that finds the word changed.
fn futex_calls(platform: &dyn Platform, now: Now<'_>, effort: Effort) -> Result<Vec<f64>, Failure> {
    let word = AtomicU32::new(1);
    timed(now, effort.rounds, effort.calls, || {
        platform.wait((&word).into(), 0);
        Ok(())
    })
}

/// Rounds of handing over, each of `calls` turns of both.
const HANDED: [usize; 2] = [20, 50];

/// This machine's.
pub(super) fn on_this_machine(
    now: &(dyn Fn() -> u64 + Sync),
    effort: Effort,
    collected: &mut Collected,
) -> Result<(), Failure> {
    collected.add("futex-call", futex_calls(&FUTEX, now, effort)?);
    let allowed = processors::allowed();
    let [first, second] = match allowed[..] {
        [first, second, ..] => [vec![first], vec![second]],
        _ => [allowed.clone(), allowed.clone()],
    };
    let failed = |error: String| Failure::Failed(format!("cannot start a thread: {error}"));
    if first == second {
        collected.miss("wake", "one processor: no other can be woken");
    } else {
        let shared = Shared::default();
        let pause = || {
            let begun = Instant::now();
            while begun.elapsed().as_micros() < u128::from(PAUSE_US) {
                hint::spin_loop();
            }
        };
        let [calls, wakes] = thread::scope(|scope| {
            let asleep =
                processors::spawn_on(scope, &second, 0, |_| sleeper(&shared, &FUTEX, now))?;
            let awake = processors::spawn_on(scope, &first, 0, |_| {
                waker(&shared, &FUTEX, now, &pause, effort.waits)
            });
            let awake = awake.inspect_err(|_| end(&shared, &FUTEX))?;
            let woken = joined(awake.join());
            joined(asleep.join());
            Ok(woken)
        })
        .map_err(failed)?;
        collected.add("wake-call", calls);
        collected.add("wake", wakes);
    }
    let [rounds, calls] = HANDED;
    let rounds = if effort.waits < Effort::QUICK.waits { rounds / 4 } else { rounds };
    let mut handed = Vec::new();
    for _ in 0..rounds {
        crate::shared::interrupt::check()?;
        let turn = AtomicU32::new(0);
        let took = thread::scope(|scope| {
            let play = |me| {
                let turn = &turn;
                processors::spawn_on(scope, &first, 0, move |_| {
                    let begun = now();
                    player(turn, me, &FUTEX, calls);
                    now() - begun
                })
            };
            let one = play(0)?;
            // If the other cannot be started, this thread plays for it, so that the first one ends.
            let other = play(1).inspect_err(|_| player(&turn, 1, &FUTEX, calls))?;
            let took = joined(one.join());
            joined(other.join());
            Ok(took)
        })
        .map_err(failed)?;
        handed.push(took as f64 / 1e3 / (2 * calls) as f64);
    }
    collected.add("hand-over", handed);
    Ok(())
}

/// A simulated board's.
pub(super) fn simulated(
    new_board: &dyn Fn() -> Board,
    effort: Effort,
    collected: &mut Collected,
) -> Result<(), Failure> {
    let board = new_board();
    let now = || board.engine().now_ps();
    let mut calls = Ok(Vec::new());
    let alone = Thread::new("one", || calls = futex_calls(&SimPlatform, &now, effort)).on(0, 1);
    board.engine().run(vec![alone]);
    collected.add("futex-call", calls?);
    let shared = Shared::default();
    let pause = || board.engine().spend_ps(PAUSE_US * 1_000_000);
    let mut woken = [Vec::new(), Vec::new()];
    board.engine().run(vec![
        Thread::new("asleep", || sleeper(&shared, &SimPlatform, &now)).on(1, 1),
        Thread::new("awake", || {
            woken = waker(&shared, &SimPlatform, &now, &pause, effort.waits);
        })
        .on(0, 1),
    ]);
    let [calls, wakes] = woken;
    collected.add("wake-call", calls);
    collected.add("wake", wakes);
    let board = new_board();
    let now = || board.engine().now_ps();
    let (turn, [_, calls]) = (AtomicU32::new(0), HANDED);
    let took = AtomicU64::new(0);
    board.engine().run(vec![
        Thread::new("other", || player(&turn, 1, &SimPlatform, calls)).on(0, 1),
        Thread::new("one", || {
            let begun = now();
            player(&turn, 0, &SimPlatform, calls);
            took.store(now() - begun, Relaxed);
        })
        .on(0, 1),
    ]);
    collected.add("hand-over", vec![took.load(Relaxed) as f64 / 1e3 / (2 * calls) as f64]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use barewire_lab::measured::Quantiles;
    use barewire_sim::{BoardOptions, BoardSpec};

    use super::*;

    const EFFORT: Effort = Effort { rounds: 3, calls: 20, waits: 4, ..Effort::SIMULATED };

    fn medians(collected: Collected) -> Vec<(&'static str, f64)> {
        let of = |rounds| Quantiles::of(rounds).expect("rounds").median;
        collected.figures.into_iter().map(|(id, rounds)| (id, of(rounds))).collect()
    }

    #[test]
    fn this_machine_s_threads_are_woken_and_hand_over() {
        let begun = Instant::now();
        let mut collected = Collected::default();
        let now = || begun.elapsed().as_nanos() as u64 * 1_000;
        on_this_machine(&now, EFFORT, &mut collected).expect("threads start");
        let found = medians(collected);
        let [futex, hand] = ["futex-call", "hand-over"]
            .map(|id| found.iter().find(|(one, _)| *one == id).expect("a figure").1);
        // A wait that finds the word changed sleeps for nobody; a turn wakes a thread and sleeps.
        assert!(0.0 < futex && futex < hand, "{found:?}");
        if processors::allowed().len() > 1 {
            let ids: Vec<_> = found.iter().map(|(id, _)| *id).collect();
            assert_eq!(ids, ["futex-call", "wake-call", "wake", "hand-over"]);
        }
    }

    #[test]
    fn simulated_threads_cost_what_their_profile_says() {
        let spec = BoardSpec::find("imx8mp").expect("a board");
        let mut collected = Collected::default();
        let board = || Board::new(spec, BoardOptions::default());
        simulated(&board, EFFORT, &mut collected).expect("it runs");
        let found = medians(collected);
        // 875 ns a call; 2.8 us to wake; 3.15 us until ready, and a switch of 1.75 us.
        let expected = [("futex-call", 875.0), ("wake-call", 2_800.0), ("wake", 4_900.0)];
        assert_eq!(found[..3], expected);
        // A turn is a wake-up, a wait and a switch; the first and the last one are less.
        let (id, hand) = found[3];
        assert!(id == "hand-over" && (5_300.0..5_425.0).contains(&hand), "{hand}");
    }
}
