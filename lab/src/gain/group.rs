//! Steps of a call in groups: what a user can do something about.

use serde::Serialize;

use crate::outcome::StepCost;

/// The time of a group of steps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupTime {
    /// The group: `system call`, `SPI core`, `chip select`, `driver`, `interrupts`, `wake-ups`, `delays`, `wire`, `barewire`.
    pub group: &'static str,
    /// Its time of a part of the message, in microseconds.
    pub us: f64,
}

pub(super) const CHIP_SELECT: &str = "chip select";
/// The groups in the order of tables.
pub(super) const GROUPS: [&str; 9] = [
    "system call",
    "SPI core",
    CHIP_SELECT,
    "driver",
    "interrupts",
    "wake-ups",
    "delays",
    "wire",
    "barewire",
];
/// What the module takes the place of.
pub(super) const OF_MODULE: [&str; 3] = ["SPI core", CHIP_SELECT, "driver"];

/// The group of a step.
pub(super) fn group(step: &str) -> &'static str {
    match step {
        "system call" | "spidev" | "spidev transfer" | "copy" => "system call",
        "set chip select" | "chip select" => CHIP_SELECT,
        "cs_change delay" | "transfer's delay" => "delays",
        "wire" => "wire",
        "wake-up and switch"
        | "wake the caller"
        | "wake the next"
        | "wake the pump"
        | "wake the pump to idle"
        | "leave idle"
        | "interrupts and switches"
        | "wait for the bus" => "wake-ups",
        "interrupt entry"
        | "interrupt, wake-up and switch"
        | "handler"
        | "tasklet"
        | "DMA tasklets"
        | "enable interrupts"
        | "DMA, its interrupt and wake-up"
        | "timer tick" => "interrupts",
        "validate" | "statistics" | "queue" | "pump" | "mutexes" | "prepare" | "transfer"
        | "finalize" | "completion" | "chip select delays" | "lock" => "SPI core",
        _ => "driver",
    }
}

/// The groups that take any time, of `parts` parts.
pub(super) fn grouped(steps: &[StepCost], parts: f64) -> Vec<GroupTime> {
    let of = |name: &'static str| {
        let us = steps.iter().filter(|step| group(&step.step) == name).map(|step| step.us);
        GroupTime { group: name, us: us.sum::<f64>() / parts }
    };
    GROUPS.into_iter().map(of).filter(|group| group.us > 0.0).collect()
}

/// The same with `less_us` taken off the groups `names`, of each by its part.
pub(super) fn less(groups: Vec<GroupTime>, names: &[&str], less_us: f64) -> Vec<GroupTime> {
    let is_of = |group: &GroupTime| names.contains(&group.group);
    let all: f64 = groups.iter().filter(|group| is_of(group)).map(|group| group.us).sum();
    let left = if all > 0.0 { (1.0 - less_us / all).max(0.0) } else { 1.0 };
    let scaled = groups.into_iter().map(|group| match is_of(&group) {
        true => GroupTime { us: group.us * left, ..group },
        false => group,
    });
    scaled.filter(|group| group.us > 0.0).collect()
}
