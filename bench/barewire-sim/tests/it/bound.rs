//! The bound of `barewire bound`, judged by an adversary: no schedule exceeds it, and the worst comes close.

use barewire_sim::BoardSpec;
use barewire_sim::bound::adversary::{self, Worst};
use barewire_sim::bound::analysis::{self, Bound, Terms};
use barewire_sim::bound::{Interruption, Path, Task, Traffic, cost};
use barewire_sim::profile::CostLevel;

/// The worst that the adversary finds is at least this much of the bound, in percent.
const CLOSE_PERCENT: u64 = 80;

fn task(name: &str, chip_select: u8, priority: u8, period_us: u64, messages: &[&[usize]]) -> Task {
    Task {
        name: name.into(),
        chip_select,
        speed_hz: 20_000_000,
        priority,
        period_us,
        path: Path::Sync,
        messages: messages.iter().map(|lengths| lengths.to_vec()).collect(),
    }
}

/// An urgent chip beside long reads, as in `examples/canecho.toml`.
fn beside_long_reads() -> Traffic {
    let tasks = vec![
        Task { path: Path::Prepared, ..task("can", 1, 7, 1_000, &[&[6]]) },
        task("flash", 0, 0, 4_000, &[&[4, 512]]),
    ];
    Traffic { tasks, ..Traffic::default() }
}

/// For each name, whether the worst call comes close to the bound, and the traffic. Where many messages may overtake,
/// and as many may be served, no single case has all of both.
fn traffics() -> Vec<(&'static str, bool, Traffic)> {
    let plain = beside_long_reads();
    let equals = (0..4).map(|it| task(&format!("equal {it}"), 0, 0, 8_000, &[&[256]])).collect();
    let locked = vec![
        task("can", 1, 7, 4_000, &[&[6]]),
        Task { path: Path::Lock, ..task("flash", 0, 0, 8_000, &[&[1], &[4, 256], &[2]]) },
    ];
    let tick = Interruption { name: "tick".into(), task: 1, period_us: 4_000, keeps_us: 30 };
    let of = |tasks: Vec<Task>| Traffic { tasks, ..Traffic::default() };
    let among = |urgent: Task, others: &str, messages: &[&[usize]]| {
        let others = (0..3).map(|it| task(&format!("{others} {it}"), 0, 0, 100_000, messages));
        of([urgent].into_iter().chain(others).collect())
    };
    let streams = (0..4)
        .map(|it| task(&format!("stream {it}"), 0, 0, 100_000, &[&[64_usize] as &[usize]; 6]));
    let mut urgent: Vec<_> = (0..6)
        .map(|it| task(&format!("urgent {it}"), 1, 7, 200_000, &[&[6_usize] as &[usize]; 30]))
        .collect();
    urgent.push(task("low", 0, 0, 200_000, &[&[64]]));
    vec![
        ("beside long reads", true, plain.clone()),
        ("four equals", true, of(equals)),
        ("a lock", true, of(locked)),
        ("one among four", false, among(task("can", 1, 7, 100_000, &[&[6]]), "flash", &[&[128]])),
        ("four streams", false, of(streams.collect())),
        ("one below six", false, of(urgent)),
        ("interrupted", true, Traffic { interruptions: vec![tick], ..plain.clone() }),
        ("lending", true, Traffic { inheritance: true, ..plain }),
    ]
}

fn bounds(traffic: &Traffic, spec: &'static BoardSpec) -> Vec<Terms> {
    let board = traffic.board(spec, CostLevel::High);
    let costs = cost::of(traffic, &board).expect("the board can do it");
    let bounds = analysis::of(traffic, &board, &costs).bounds;
    let within = |bound| match bound {
        Bound::Within(terms) => terms,
        Bound::None(why) => panic!("no bound: {why}"),
    };
    bounds.into_iter().map(within).collect()
}

fn worst(traffic: &Traffic, spec: &'static BoardSpec, schedules: u64, seed: u64) -> Worst {
    let board = traffic.board(spec, CostLevel::High);
    let meet_ps = bounds(traffic, spec).iter().map(Terms::sum_ps).max().unwrap_or(1);
    adversary::run(traffic, &board, schedules, seed, meet_ps).expect("the board can do it")
}

/// Runs that many schedules of each traffic.
///
/// # Panics
/// Fails if a call exceeds the bound, or if the worst call is not as close to it as the table
/// claims.
pub(crate) fn judge(schedules: u64, seed: u64) {
    let spec = BoardSpec::find("imx8mp").expect("a board");
    for (name, close, traffic) in traffics() {
        let bounds = bounds(&traffic, spec);
        let seen = worst(&traffic, spec, schedules, seed);
        for ((task, bound), &seen) in traffic.tasks.iter().zip(&bounds).zip(&seen.call_ps) {
            let (bound_ps, task) = (bound.sum_ps(), &task.name);
            let percent = seen * 100 / bound_ps;
            let (seen_ns, bound_ns) = (seen / 1_000, bound_ps / 1_000);
            println!(
                "FIGURE: bound, {name}, {task}: {schedules} schedules, worst {seen_ns} ns of {bound_ns} ns ({percent} %)",
            );
            assert!(seen <= bound_ps, "{name}, {task}, seed {seed}: {seen} ps exceed {bound:#?}");
            assert!(!close || percent >= CLOSE_PERCENT, "{name}, {task}: {seen} ps of {bound:#?}");
        }
    }
}

#[cfg(test)]
#[test]
fn no_schedule_exceeds_the_bound_and_the_worst_is_close() {
    judge(if std::env::var_os("BAREWIRE_WHOLE").is_some() { 125_000 } else { 500 }, 1);
}
