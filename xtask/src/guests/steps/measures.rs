//! What each step is: which functions, in which operation.
//!
//! *Read first*: `guests/spisteps.c` for the operations, `guests/checks/steps.sh` for their labels, `lab/costs.toml` for
//! the steps of the lab, whose names these have.
//!
//! # How it works
//! A step is a sum of terms. A term is a query in each of an operation's repeats, or another step. A step's value is
//! the middle of what its first term's repeats give, with the middles of the other terms; its spread is the lowest and
//! the highest of them.
//!
//! The parts of a message add up: `validate`, `io-mutex`, `prepare`, two of `set-cs` and `set-cs-delays`, `transfer`, two
//! of `transfer-statistics`, `transfer-one`, `finalize` and the driver's parts of the last are `spi-sync`, since `prepare`
//! is what the others leave.

use super::tree::{Interval, Query};
use super::walk::Walk;

/// By what a term is divided.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Per {
    /// By its calls.
    Call,
    /// By a number.
    Number(f64),
}

#[derive(Clone, Copy, Debug)]
enum Term {
    /// In the operation of that label.
    Count(&'static str, Query<'static>, Per),
    /// Of a step above, so many times.
    Step(&'static str, f64),
}

/// The system call of spidev's message, which `guests/instructions.txt` has too: by the clock, as `spidev-4`.
pub(super) const CHECKED: &str = "spidev-4";

/// Steps that inform and do not gate. Whether the tick was stopped, how many have passed, and whether the scheduler's
/// averages are due differs from boot to boot.
pub(super) const INFORMS: [&str; 4] =
    ["tick", "idle-exit", "idle-exit-tick-kept", "switch-from-idle"];

/// A step.
#[derive(Clone, Copy, Debug)]
struct Step {
    name: &'static str,
    terms: &'static [Term],
}

const fn all(what: &'static [&'static str]) -> Query<'static> {
    Query { what, under: &[], without: &[] }
}

const fn without(
    what: &'static [&'static str],
    without: &'static [&'static str],
) -> Query<'static> {
    Query { what, under: &[], without }
}

const fn under(what: &'static [&'static str], under: &'static [&'static str]) -> Query<'static> {
    Query { what, under, without: &[] }
}

const fn each(label: &'static str, query: Query<'static>) -> Term {
    Term::Count(label, query, Per::Call)
}

const fn whole(label: &'static str, query: Query<'static>) -> Term {
    Term::Count(label, query, Per::Number(1.0))
}

/// A tenth of it: the share of one of eleven transfers beyond the first, with [`less_tenth`].
const fn tenth(label: &'static str, query: Query<'static>) -> Term {
    Term::Count(label, query, Per::Number(10.0))
}

const fn less_tenth(label: &'static str, query: Query<'static>) -> Term {
    Term::Count(label, query, Per::Number(-10.0))
}

const DRIVER: &[&str] = &["spi_imx_transfer_one", "bcm2835_spi_transfer_one"];
const HANDLER: &[&str] = &["spi_imx_isr", "bcm2835_spi_interrupt"];
const STATISTICS: &str = "spi_statistics_add_transfer_stats";
const IOCTL: &[&str] = &["__arm64_sys_ioctl", "sys_ioctl", "__se_sys_ioctl"];
/// The core's own work on transfers.
const CORE: Query<'_> = without(
    &["spi_transfer_one_message"],
    &["spi_imx_transfer_one", "bcm2835_spi_transfer_one", STATISTICS, "spi_set_cs"],
);
/// The second calls the first, and from Linux 6.9 on the compiler made them one.
const VALIDATE: &[&str] = &["__spi_validate", "__spi_optimize_message"];
const MUTEXES: &[&str] = &["mutex_lock", "mutex_unlock"];

/// All steps.
const STEPS: &[Step] = &[
    Step { name: "syscall", terms: &[each("call", all(&["[sync]"]))] },
    Step { name: "wake", terms: &[each("hand-over", all(&["try_to_wake_up"]))] },
    Step {
        name: "wake-remote",
        terms: &[each("hand-over-other", under(&["try_to_wake_up"], &["pipe_write"]))],
    },
    Step {
        name: "context-switch",
        terms: &[each("hand-over", under(&["schedule"], &["pipe_read"]))],
    },
    Step {
        name: "switch-to-idle",
        terms: &[each("sleep", under(&["schedule"], &["do_nanosleep"]))],
    },
    Step { name: "switch-from-idle", terms: &[each("sleep", all(&["schedule_idle"]))] },
    Step {
        name: "idle-exit",
        terms: &[
            each("sleep-long", all(&["tick_nohz_idle_exit"])),
            each("sleep-long", all(&["tick_irq_enter"])),
            each("sleep-long", all(&["ct_idle_exit"])),
            each("sleep-long", all(&["flush_smp_call_function_queue"])),
        ],
    },
    Step {
        name: "idle-exit-tick-kept",
        terms: &[
            each("sleep", all(&["tick_nohz_idle_exit"])),
            each("sleep", all(&["tick_irq_enter"])),
            each("sleep", all(&["ct_idle_exit"])),
            each("sleep", all(&["flush_smp_call_function_queue"])),
        ],
    },
    Step {
        name: "interrupt-entry",
        terms: &[each("spidev-interrupt", without(&["[irq]"], HANDLER))],
    },
    Step { name: "tick", terms: &[each("spin", all(&["[irq]"]))] },
    Step { name: CHECKED, terms: &[each("spidev-1", all(&["[sync]"]))] },
    Step { name: "spi-sync", terms: &[each("sync-1", all(&["spi_sync"]))] },
    Step {
        name: "spi-sync-transfer",
        terms: &[tenth("sync-11", all(&["spi_sync"])), less_tenth("sync-1", all(&["spi_sync"]))],
    },
    Step {
        name: "validate",
        terms: &[tenth("sync-11", all(VALIDATE)), less_tenth("sync-1", all(VALIDATE))],
    },
    Step { name: "transfer-statistics", terms: &[each("sync-1", all(&[STATISTICS]))] },
    Step { name: "transfer", terms: &[tenth("sync-11", CORE), less_tenth("sync-1", CORE)] },
    Step { name: "transfer-one", terms: &[each("sync-1", all(DRIVER))] },
    Step {
        name: "driver-imx",
        terms: &[each(
            "sync-1",
            without(
                &["spi_imx_transfer_one"],
                &["spi_imx_push", "spi_imx_buf_rx_swap", "mx51_ecspi_rx_available"],
            ),
        )],
    },
    Step {
        name: "driver-bcm2835",
        terms: &[each(
            "sync-1",
            without(
                &["bcm2835_spi_transfer_one"],
                &["bcm2835_wr_fifo", "bcm2835_rd_fifo", "bcm2835_spi_transfer_one_poll"],
            ),
        )],
    },
    Step { name: "set-cs", terms: &[each("sync-1", all(&["gpiod_set_value_cansleep"]))] },
    Step {
        name: "set-cs-delays",
        terms: &[each("sync-1", without(&["spi_set_cs"], &["gpiod_set_value_cansleep"]))],
    },
    Step { name: "io-mutex", terms: &[whole("sync-1", under(MUTEXES, &["spi_sync"]))] },
    Step { name: "prepare-imx", terms: &[each("sync-1", all(&["spi_imx_prepare_message"]))] },
    Step { name: "unprepare-imx", terms: &[each("sync-1", all(&["spi_imx_unprepare_message"]))] },
    Step {
        name: "finalize",
        terms: &[each(
            "sync-1",
            without(&["spi_finalize_current_message"], &["spi_imx_unprepare_message"]),
        )],
    },
    Step {
        name: "prepare",
        terms: &[
            Term::Step("spi-sync", 1.0),
            Term::Step("io-mutex", -1.0),
            Term::Step("validate", -1.0),
            Term::Step("set-cs", -2.0),
            Term::Step("set-cs-delays", -2.0),
            Term::Step("transfer", -1.0),
            Term::Step("transfer-statistics", -2.0),
            Term::Step("transfer-one", -1.0),
            Term::Step("prepare-imx", -1.0),
            Term::Step("unprepare-imx", -1.0),
            Term::Step("finalize", -1.0),
        ],
    },
    Step {
        name: "completion",
        terms: &[
            each("spidev-interrupt", under(&["complete"], HANDLER)),
            each("spidev-interrupt", under(&["wait_for_completion_timeout"], DRIVER)),
        ],
    },
    Step {
        name: "queue",
        terms: &[each(
            "async-1",
            without(&["spi_queued_transfer", "__spi_queued_transfer"], &["wake_up_process"]),
        )],
    },
    Step {
        name: "pump",
        terms: &[each(
            "async-1",
            without(
                &["spi_pump_messages"],
                &[
                    "__spi_pump_transfer_message",
                    "mutex_lock",
                    "mutex_unlock",
                    "kthread_queue_work",
                ],
            ),
        )],
    },
    // Where the pump's thread slept decides what waking it costs; what waking costs is a step of its own.
    Step {
        name: "spi-async",
        terms: &[each("async-1", without(&["spi_async"], &["wake_up_process"]))],
    },
    Step { name: "pump-thread", terms: &[whole("async-1", all(&["kthread_worker_fn"]))] },
    Step {
        name: "spidev-transfer",
        terms: &[
            tenth("spidev-11", without(IOCTL, &["spi_sync"])),
            less_tenth("spidev-1", without(IOCTL, &["spi_sync"])),
        ],
    },
    Step {
        name: "spidev",
        terms: &[
            each("spidev-1", without(IOCTL, &["spi_sync"])),
            Term::Step("spidev-transfer", -1.0),
        ],
    },
    Step { name: "mtd", terms: &[each("mtd", without(&["mtd_read"], &["spi_sync"]))] },
];

/// A step's count.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::guests) struct Counted {
    pub(in crate::guests) name: &'static str,
    /// The middle of the operations.
    pub(in crate::guests) median: f64,
    pub(in crate::guests) lowest: f64,
    pub(in crate::guests) highest: f64,
}

/// A term in each repeat of its operation.
fn values(walk: &Walk, label: &str, query: &Query<'_>, per: Per) -> Vec<f64> {
    let repeats = walk.intervals.iter().filter(|interval| interval.label == label);
    let value = |interval: &Interval| {
        let sum = interval.sum(&walk.tree, &walk.symbols, query);
        let calls = sum.calls as f64;
        // An operation in which it was not called, or that only saw its end, says nothing.
        match per {
            Per::Call => (sum.calls > 0).then(|| sum.instructions as f64 / calls),
            Per::Number(number) => (sum.instructions > 0).then(|| sum.instructions as f64 / number),
        }
    };
    repeats.filter_map(value).collect()
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => None,
        n => Some(f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2])),
    }
}

/// All steps that the trace has. A step without calls of one of its terms is left out: the board has another driver,
/// or the compiler made the function a part of its caller.
pub(super) fn count(walk: &Walk) -> Vec<Counted> {
    let mut counted: Vec<Counted> = Vec::new();
    for Step { name, terms } in STEPS {
        let of = |term: &Term| match term {
            Term::Count(label, query, per) => values(walk, label, query, *per),
            // A step that the board lacks takes no part.
            Term::Step(name, times) => {
                let step = counted.iter().find(|one| one.name == *name);
                vec![step.map_or(0.0, |step| step.median) * times]
            }
        };
        let all: Vec<Vec<f64>> = terms.iter().map(of).collect();
        let medians: Vec<Option<f64>> = all.iter().map(|values| median(values)).collect();
        let Some(sum) = medians.iter().copied().sum::<Option<f64>>() else { continue };
        let (Some(first), Some(Some(middle))) = (all.first(), medians.first()) else { continue };
        let end = |choose: fn(f64, f64) -> f64| {
            sum - middle + first.iter().copied().reduce(choose).unwrap_or(*middle)
        };
        counted.push(Counted { name, median: sum, lowest: end(f64::min), highest: end(f64::max) });
    }
    counted
}
