//! The causes that delay a process beyond its own work: clock governors, idle states, real-time
//! throttling.
//!
//! Read first: the kernel's `Documentation/admin-guide/pm/cpuidle.rst` and `cpufreq.rst`;
//! `Documentation/scheduler/sched-rt-group.rst` on `sched_rt_runtime_us`.

use crate::root::{Root, number};

const CPUS: &str = "/sys/devices/system/cpu";

/// The processors' idle states, and the clocks at which they run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processor {
    /// The governors of the clock frequency, by policy (`policy0`); empty if the clock is fixed.
    pub governors: Vec<(String, String)>,
    /// The idle states of the first processor, from the shallowest.
    pub idle: Vec<IdleState>,
    /// Microseconds of each period that real-time threads may run, if they are throttled.
    pub rt_runtime_us: Option<u64>,
    /// The period, in microseconds.
    pub rt_period_us: Option<u64>,
}

/// A state into which an idle processor goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleState {
    /// Its directory below `cpuidle`, as `state1`.
    pub directory: String,
    /// Its name.
    pub name: String,
    /// Microseconds to leave it, at most.
    pub exit_latency_us: u64,
    /// Whether it is switched off.
    pub disabled: bool,
}

impl Processor {
    pub(super) fn of(root: &Root) -> Self {
        let governors = root.names(format!("{CPUS}/cpufreq")).into_iter().filter_map(|policy| {
            let governor = root.text(format!("{CPUS}/cpufreq/{policy}/scaling_governor")).ok()?;
            Some((policy, governor))
        });
        let idle = format!("{CPUS}/cpu0/cpuidle");
        let states = root.names(&idle).into_iter().filter_map(|directory| {
            let file = |name: &str| root.text(format!("{idle}/{directory}/{name}")).ok();
            Some(IdleState {
                name: file("name")?,
                exit_latency_us: number(&file("latency")?)?,
                disabled: file("disable").is_some_and(|text| text != "0"),
                directory: directory.clone(),
            })
        });
        let kernel = |name: &str| {
            let text = root.text(format!("/proc/sys/kernel/{name}")).ok()?;
            // -1 means no throttling.
            text.parse().ok()
        };
        Self {
            governors: governors.collect(),
            idle: states.collect(),
            rt_runtime_us: kernel("sched_rt_runtime_us"),
            rt_period_us: kernel("sched_rt_period_us"),
        }
    }

    /// The enabled idle state that takes longest to leave.
    #[must_use]
    pub fn slowest_wake(&self) -> Option<&IdleState> {
        let enabled = self.idle.iter().filter(|state| !state.disabled);
        enabled.max_by_key(|state| state.exit_latency_us)
    }
}
