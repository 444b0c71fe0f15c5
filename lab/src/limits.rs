//! The limits of a user's own experiment: the values with which the workloads were tried.
//!
//! *Read first*: [`crate::experiment`].

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::experiment::{Experiment, Question, Workload};
use crate::kernel::Path;
use crate::workload::nor;

/// A workload's boards, clocks in Hz, and the beginning of the names of its paths.
struct Limits {
    boards: &'static [&'static str],
    speed_hz: RangeInclusive<u64>,
    paths: &'static str,
}

fn limits(workload: Workload) -> Option<Limits> {
    Some(match workload {
        // 0.85 of half the chip's clock, as its driver has it.
        Workload::Echo => {
            Limits { boards: &["imx8mp"], speed_hz: 4_000_000..=17_000_000, paths: "linux-5." }
        }
        Workload::Beside => {
            Limits { boards: &["imx6dl"], speed_hz: 4_000_000..=40_000_000, paths: "linux-5." }
        }
        Workload::Dd => Limits {
            boards: &["imx6dl", "imx8mp"],
            speed_hz: 4_000_000..=40_000_000,
            paths: "linux-5.",
        },
        // From the slowest clock at which the driver does not end chip select inside the last
        // clock, to the converter's limit at 5 V.
        Workload::Spidev => {
            Limits { boards: &["rpi3"], speed_hz: 2_000_000..=3_600_000, paths: "spidev-4.4" }
        }
        // The flash's limit for 13h.
        Workload::Nor => {
            Limits { boards: &["sama5d36"], speed_hz: 5_000_000..=50_000_000, paths: "linux-3.14" }
        }
        Workload::Unmap | Workload::Camera | Workload::Stated | Workload::Messages => return None,
    })
}

fn within<T: PartialOrd + Display>(
    what: &str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), String> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(format!("{what} is {value}: the lab takes {} to {}", range.start(), range.end()))
}

/// Checks an experiment before anything of it runs.
pub(crate) fn check(experiment: &Experiment) -> Result<(), String> {
    let Experiment { board, workload, speed_hz, frames, gap_us, processors, figure, .. } =
        experiment;
    if workload.has_no_figures() && !figure.is_empty() {
        return Err("this workload has no figures: leave [[figure]] out".into());
    }
    within("frames", *frames, 1..=1_000)?;
    within("processors", *processors, 1..=64)?;
    // Frames that come faster than a kernel serves them are lost; a full bus may lose some.
    if *gap_us != 0 {
        within("gap_us", *gap_us, 2_000..=1_000_000)?;
    }
    let limits = limits(*workload);
    if let Some(limits) = &limits {
        if !limits.boards.contains(&board.as_str()) {
            return Err(format!(
                "this workload runs on {}, not on {board:?}",
                limits.boards.join(" or ")
            ));
        }
        within("speed_hz", *speed_hz, limits.speed_hz.clone())?;
        experiment.paths.iter().try_for_each(|name| path(name, limits))?;
    }
    figure.iter().try_for_each(|asked| {
        let checked = limits
            .as_ref()
            .map_or(Ok(()), |limits| path(&asked.path, limits))
            .and_then(|()| numbers(asked));
        checked.map_err(|text| format!("{}: {text}", asked.id))
    })
}

fn path(name: &str, limits: &Limits) -> Result<(), String> {
    let names = Path::all().iter().map(|path| path.name.as_str());
    let fits: Vec<&str> = names.filter(|name| name.starts_with(limits.paths)).collect();
    if fits.contains(&name) {
        return Ok(());
    }
    Err(format!("the path is {name:?}: this workload runs {}", fits.join(", ")))
}

fn numbers(asked: &Question) -> Result<(), String> {
    let Question { batch, block, blocks, bytes, scale, .. } = asked;
    // spidev's own: more transfers than 511 make its request's size 0.
    within("batch", batch.unwrap_or(1), 1..=511)?;
    within("block", block.unwrap_or(1), 1..=nor::BLOCK_MAX)?;
    within("blocks", blocks.unwrap_or(1), 1..=1_000_000)?;
    within("bytes", bytes.unwrap_or(4_096), 4_096..=512 << 20)?;
    if bytes.is_some_and(|bytes| bytes % 4_096 != 0) {
        return Err("bytes are whole pages of 4096".into());
    }
    within("scale", scale.unwrap_or(1.0), 1e-9..=1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Core;

    #[test]
    fn the_lab_s_own_experiments_are_within() {
        for experiment in Experiment::all() {
            assert_eq!(check(&experiment), Ok(()), "{}", experiment.name);
        }
    }

    #[test]
    fn every_path_runs_in_some_workload() {
        for Path { name, core, .. } in Path::all() {
            let workloads = [Workload::Echo, Workload::Dd, Workload::Spidev, Workload::Nor];
            let fits =
                |workload| limits(workload).is_some_and(|limits| name.starts_with(limits.paths));
            assert!(workloads.into_iter().any(fits), "{name}");
            assert_eq!(
                fits(Workload::Nor),
                matches!(core, Core::Queue314 | Core::Tasklet314),
                "{name}"
            );
        }
    }
}
