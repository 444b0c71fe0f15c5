//! `cargo xtask linux-on-sim`: Linux's own SPI and chip drivers, unmodified, on this project's simulated boards.
//!
//! How it works: [`kernel`] builds user-mode Linux from Debian's source, [`ours`] the simulated board's server
//! and the guest's program, [`module`] this project's module, which drives the controller in some runs. [`boot`] runs a
//! server and a guest for each run of each board ([`board`]), and [`protocol`] reads what they say. docs/judges.md explains
//! what is judged, and how to add a board.

mod accesses;
mod board;
mod boot;
mod figures;
mod kernel;
mod module;
mod ours;
mod package;
mod protocol;
mod table;
mod traces;

use std::time::{Duration, Instant};

use clap::builder::PossibleValuesParser;

use crate::check::{Check, Verdict};
use crate::context::{Context, Outcome, Stop};
use crate::needs::{self, Need};
use crate::report::End;
use crate::step::{Lane, Step};
use crate::tally::Tally;
use board::{BOARDS, Board, LONG_CAN, NOT_IN_CI, Run};
use boot::Parts;
use protocol::RunReport;
use table::{Row, count};

/// The step of CI.
pub(crate) const STEP: Step = Step {
    name: "linux_sim",
    about: "Linux's own drivers on the simulated boards",
    lane: Lane::Boots,
    minutes: 6,
    needs: &[
        Need::package("gcc"),
        Need::package("make"),
        Need::package("flex"),
        Need::package("bison"),
        Need::package("bc"),
        Need::program("libc6-dev", "/usr/include/stdio.h"),
        Need::program("device-tree-compiler", "dtc"),
        Need::program("dpkg", "dpkg-deb"),
        Need::package("tar"),
        Need::program("xz-utils", "xz"),
    ],
    paths: &[
        "bench/barewire-sim/",
        "bench/barewire-mmio/",
        "kernel/",
        "stack/barewire/",
        "xtask/src/linux_on_sim/",
    ],
    run: step,
};

/// Frames of a CAN run, unless told.
const FRAMES: u32 = 1_000;
/// No run of CI takes as many seconds, on a busy machine either.
const LONGEST: u64 = 900;

/// The name of a run, with its board's.
fn whole(board: &Board, run: &Run) -> String {
    format!("{}/{}", board.name, run.name)
}

/// The options of the command line.
#[derive(clap::Args, Clone, Debug, PartialEq)]
pub(crate) struct Options {
    /// Boards, or runs of them; all unless told
    #[arg(value_name = "BOARD[/RUN]", value_parser = PossibleValuesParser::new(names()), hide_possible_values = true)]
    only: Vec<String>,
    /// Print one line of JSON on stdout; progress is on stderr
    #[arg(long)]
    json: bool,
    /// How many frames a CAN run echoes [default: 1000; with --short more on two boards]
    #[arg(long, value_name = "N")]
    frames: Option<u32>,
    /// A run that takes more seconds has failed; a million frames take half an hour
    #[arg(long, value_name = "SECONDS", default_value_t = LONGEST)]
    longest: u64,
    /// Leave out the runs that CI leaves out
    #[arg(long)]
    short: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { only: Vec::new(), json: false, frames: None, longest: LONGEST, short: false }
    }
}

/// All boards, and all runs of them. Once a run, so they may stay for good.
fn names() -> Vec<&'static str> {
    let runs = |board: &'static Board| {
        let name = board.name;
        let runs = board.runs.iter().map(move |run| &*format!("{name}/{}", run.name).leak());
        [name].into_iter().chain(runs)
    };
    BOARDS.iter().flat_map(runs).collect()
}

/// The boards for the help text.
pub(crate) fn list() -> String {
    let mut text = String::from("Boards and their runs:\n");
    for board in &BOARDS {
        let runs: Vec<&str> = board.runs.iter().map(|run| run.name).collect();
        let what = match board.driver {
            Ok(driver) => format!("{} ({driver})", runs.join(", ")),
            Err(why) => format!("none: {why}"),
        };
        text += &format!("  {:<12}{what}\n", board.name);
    }
    text += &format!("Not in CI: {}\n", NOT_IN_CI.join(", "));
    text + "\nBAREWIRE_BLESS=1 writes Linux's columns of bench/barewire-mmio/tests/it/beside_linux.txt anew, and\nmodule.txt and the files of tests/it/traces beside it, and fails."
}

/// One run to be done.
type Job = (&'static Board, &'static Run);

impl Options {
    fn jobs(&self) -> Vec<Job> {
        let wanted = |board: &Board, run: &Run| {
            let whole = whole(board, run);
            let chosen = self.only.is_empty()
                || self.only.iter().any(|name| *name == board.name || *name == whole);
            chosen && !(self.short && NOT_IN_CI.contains(&whole.as_str()))
        };
        let runs = |board: &'static Board| board.runs.iter().map(move |run| (board, run));
        BOARDS.iter().flat_map(runs).filter(|(board, run)| wanted(board, run)).collect()
    }
}

impl Options {
    fn frames_of(&self, board: &Board, run: &Run) -> u32 {
        let whole = whole(board, run);
        let long = LONG_CAN.iter().find(|(name, _)| self.short && *name == whole);
        self.frames.unwrap_or(long.map_or(FRAMES, |(_, frames)| *frames))
    }
}

/// The command.
pub(crate) fn run(options: &Options, cx: &Context) -> Result<End, String> {
    let rows = match needs::obtain(STEP.needs, cx) {
        None => all(options, cx),
        Some(lacking) => Err(Stop::Lacks(lacking)),
    };
    match rows {
        Ok(rows) => {
            cx.console.say(&table::told(&rows, options.json));
            let (failed, passed) = (count(&rows, Verdict::Failed), count(&rows, Verdict::Passed));
            Ok(match (failed, passed) {
                (0, 0) => End::Incomplete,
                (0, _) => End::Passed,
                _ => End::Failed,
            })
        }
        Err(stop) => Ok(End::of(&stop.outcome(STEP.name, cx))),
    }
}

/// Each check counts as a test.
pub(crate) fn step(cx: &Context) -> Outcome {
    let options = Options { short: true, ..Options::default() };
    let rows = match all(&options, cx) {
        Ok(rows) => rows,
        Err(stop) => return stop.outcome(STEP.name, cx),
    };
    cx.console.say(&table::told(&rows, false));
    let line = |row: &Row, check: &Check| {
        format!("{}/{}, {}: {}", row.board, row.run, check.name, check.why)
    };
    let of = |verdict| {
        let lines = rows.iter().flat_map(move |row| {
            let checks = row.said.checks.iter().filter(move |check| check.verdict == verdict);
            checks.map(move |check| line(row, check))
        });
        lines.collect::<Vec<_>>()
    };
    let failures = of(Verdict::Failed);
    let skipped = of(Verdict::Skipped).into_iter().map(|line| format!("SKIPPED: linux_sim {line}"));
    let tally = Tally {
        passed: count(&rows, Verdict::Passed) as u64,
        failed: failures.len() as u64,
        skipped: skipped.collect(),
        ..Tally::default()
    };
    Outcome::of_tests(failures.is_empty(), Tally { failures, ..tally })
}

/// Prepares and does what was asked for, one run after the other: each keeps two processors busy.
fn all(options: &Options, cx: &Context) -> Result<Vec<Row>, Stop> {
    let say = |line: &str| cx.console.aside(&format!("linux-on-sim: {line}"));
    let target = cx.target();
    let work = target.join("linux-on-sim");
    let kernel = kernel::obtain(&work, &cx.root.join("bench/barewire-mmio/linux"), &say)?;
    say("building the server and the guest's program");
    let programs = ours::build(&cx.root, &target, &work, &say).map_err(Stop::Broke)?;
    let longest = Duration::from_secs(options.longest);
    let jobs = options.jobs();
    let modules = match jobs.iter().any(|(_, run)| run.module) {
        true => {
            say("building this project's module");
            Some(module::build(&cx.root, &work, &kernel).map_err(Stop::Broke)?)
        }
        false => None,
    };
    let parts = Parts { work, kernel, programs, modules, longest };
    say(&format!("user-mode Linux of {}", parts.kernel.version));
    let reviewed = accesses::read(&cx.root).map_err(Stop::Broke)?;
    let figures = figures::read(&cx.root).map_err(Stop::Broke)?;
    let total = jobs.len();
    let mut rows = Vec::new();
    for (index, (board, run)) in jobs.into_iter().enumerate() {
        let began = Instant::now();
        let mut said = match board.driver {
            Ok(_) => parts
                .run(board, run, options.frames_of(board, run))
                .unwrap_or_else(|why| one(run.name, Verdict::Failed, &why)),
            Err(why) => one(run.name, Verdict::Skipped, why),
        };
        if !run.module {
            said.checks.extend(accesses::judge(board.name, &said.accesses, &reviewed));
            said.checks.extend(traces::judge(&cx.root, board.name, said.message.as_deref()));
        }
        said.checks.extend(figures::judge(&whole(board, run), run.module, &said, &figures));
        let failed = said.checks.iter().filter(|check| check.verdict == Verdict::Failed).count();
        say(&format!(
            "{}/{} ({} of {total}): {} checks, {failed} failed, {:.1} s",
            board.name,
            run.name,
            index + 1,
            said.checks.len(),
            began.elapsed().as_secs_f64()
        ));
        rows.push(Row { board: board.name, run: run.name, module: run.module, said });
    }
    accesses::bless(&cx.root, &reviewed, &rows).map_err(Stop::Broke)?;
    figures::bless(&cx.root, &figures, &rows).map_err(Stop::Broke)?;
    Ok(rows)
}

/// A run of one check.
fn one(name: &str, verdict: Verdict, why: &str) -> RunReport {
    RunReport { checks: vec![Check::new(name, verdict, why)], ..RunReport::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boards_and_runs_are_chosen_by_name() {
        let of = |names: &[&str]| {
            let only = names.iter().map(|name| (*name).to_owned()).collect();
            Options { only, ..Options::default() }.jobs().len()
        };
        assert_eq!(of(&[]), BOARDS.iter().map(|board| board.runs.len()).sum::<usize>());
        assert_eq!(of(&["rpi5/nor"]), 1);
        assert_eq!(of(&["rpi5", "imx8mp/can"]), 14);
        let all = names();
        assert!(
            NOT_IN_CI
                .iter()
                .chain(LONG_CAN.iter().map(|(name, _)| name))
                .all(|name| all.contains(name))
        );
        let short = Options { short: true, ..Options::default() };
        assert_eq!(short.jobs().len(), of(&[]) - NOT_IN_CI.len());
    }

    #[test]
    fn help_names_every_board() {
        assert!(BOARDS.iter().all(|board| list().contains(board.name)));
    }
}
