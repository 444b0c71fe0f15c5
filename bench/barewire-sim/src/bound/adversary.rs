//! An adversary: runs a traffic's tasks on simulated threads, released at moments chosen against them, and keeps the
//! worst time of each.
//!
//! # How it works
//! A *schedule* is one round: each task's job is released once, at a random moment of a short time in which they
//! meet, and each call is timed. An interruption of a task comes at a random time within its call, so between any two
//! accesses of its thread. Rounds are a longest period apart, so that each task keeps its period. A seed gives the
//! same rounds again.

use std::cell::RefCell;

use super::Traffic;
use super::cost::{TaskError, bus, device, with_calls};
use crate::chip::Ps;
use crate::engine::Thread;
use crate::random::SplitMix64;
use crate::{Board, chip::PS_PER_NS};

/// The worst that was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Worst {
    /// Of each task, in the order of [`Traffic::tasks`]: the longest from call to return, in picoseconds.
    pub call_ps: Vec<Ps>,
    /// Schedules that were run.
    pub schedules: u64,
}

/// Runs `schedules` rounds from `seed` on `board`.
///
/// # Errors
/// What the board refuses.
///
/// # Panics
/// If a message fails, or the bus loses a waiter: then no thread can go on.
pub fn run(
    traffic: &Traffic,
    board: &Board,
    schedules: u64,
    seed: u64,
    meet_ps: Ps,
) -> Result<Worst, TaskError> {
    let (bus, engine) = (bus(traffic, board), board.engine());
    let worst = RefCell::new(vec![0; traffic.tasks.len()]);
    let devices: Result<Vec<_>, _> = traffic.tasks.iter().map(|task| device(&bus, task)).collect();
    let devices = devices?;
    let period = traffic.tasks.iter().map(|task| task.period_us * 1_000 * PS_PER_NS).max();
    let round = 2 * period.unwrap_or(1) + meet_ps;
    let begun = engine.now_ps() + round;
    let mut threads = Vec::new();
    for (index, (task, device)) in traffic.tasks.iter().zip(&devices).enumerate() {
        let worst = &worst;
        let thread = Thread::new(&task.name, move || {
            let mut moments = SplitMix64::new(seed ^ (index as u64 + 1) << 32);
            let ran = with_calls(device, task, |calls| {
                for schedule in 0..schedules {
                    engine.sleep_until(begun + schedule * round + moment(&mut moments, meet_ps));
                    for call in &mut *calls {
                        let called = engine.now_ps();
                        call().expect("the message ran alone before");
                        let worst = &mut worst.borrow_mut()[index];
                        *worst = (engine.now_ps() - called).max(*worst);
                    }
                }
            });
            ran.expect("the message was planned before");
        });
        threads.push(thread.on(index, if traffic.inheritance { task.priority } else { 1 }));
    }
    for (index, it) in traffic.interruptions.iter().enumerate() {
        let thread = Thread::new(&it.name, move || {
            let mut moments = SplitMix64::new(seed ^ (index as u64 + 1) << 48);
            for schedule in 0..schedules {
                engine.sleep_until(begun + schedule * round + moment(&mut moments, meet_ps));
                engine.spend_ps(it.keeps_us * 1_000 * PS_PER_NS);
            }
        });
        threads.push(thread.on(it.task, u8::MAX));
    }
    engine.run(threads);
    Ok(Worst { call_ps: worst.into_inner(), schedules })
}

/// A moment of the time in which the tasks meet: most often close to its beginning, where the others are.
fn moment(moments: &mut SplitMix64, meet_ps: Ps) -> Ps {
    let span = meet_ps >> (moments.next_u64() % 6);
    moments.next_u64() % span.max(1)
}
