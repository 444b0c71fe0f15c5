//! The steps of CI: each timed, all run even if one failed, totals at the end.
//!
//! How it works: [`STEPS`] is the one table from which the runs, the command line and the help text come. A
//! step is a function from the [`Context`] to an [`Outcome`], with the tools that it needs. A step that runs
//! tests also returns the harness's counts.
//!
//! # Schedule
//!
//! Each step belongs to a [`Lane`]. The steps of a lane run one after another.
//!
//! 1. [`Lane::Test`]: what `cargo xtask test` runs, and a contributor before each push. It needs the pinned
//!    compiler and nothing else.
//! 2. [`Lane::Shared`] and [`Lane::Programs`], side by side. Cargo locks a target directory while it
//!    builds, so only steps with different directories can do that. The steps `whole`, `counted`, `linux32` and `docs`
//!    use the profile (`ci`) and the directory of `clippy` and `test`, so that procedural macros, build
//!    scripts and dependencies are built once. The steps of [`Lane::Programs`] (`dist`, `c`, `clients`, `python`) build
//!    with profiles, and so locks, of their own, and mostly wait for one program at a time.
//! 3. [`Lane::Own`]: steps that need other flags for the whole workspace (the model checkers, Miri,
//!    `no_std`, `msrv`) have a directory each and build as few packages as they can. So has
//!    `iommu`, another workspace. When one of the two lanes above has ended, it takes the next of
//!    these steps, so that both lanes end at about the same time.
//! 4. [`Lane::Boots`]: `guests`, `kernel` and `linux_sim`, one after another, since each keeps two processors busy. User-mode
//!    Linux and the simulated board's server answer each other within a microsecond; beside another lane they took ten
//!    times as long.
//!
//! While two lanes run, each line of output begins with the name of its step.
//!
//! A step's line in the table has its own time by the wall clock, and the processor time of its children,
//! which stays the same on a busy machine. The processor time of [`Lane::Programs`] is not known, since its steps start
//! their children themselves, beside another lane's.
//!
//! Not here: benches by the wall clock, which inform and never gate.

mod changed;
mod checkers;
mod counted;
mod host;
mod iommu;
mod whole;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::c_library;
use crate::child;
use crate::clients;
use crate::console::Tone;
use crate::context::{Context, Outcome};
use crate::dist;
use crate::guests;
use crate::linux_on_sim;
use crate::needs;
use crate::python;
use crate::report::{self, End, Report, Row};
use crate::size;
use crate::step::{Lane, Step};
use changed::ChangedFiles;

/// The profile of all steps that may share what they build.
const PROFILE: [&str; 2] = ["--profile", "ci"];

/// If it is set, tests that a debug build cuts short run in full.
const WHOLE: (&str, &str) = ("BAREWIRE_WHOLE", "1");

/// All of CI, by lanes. In the first the order is cheap before dear; in [`Lane::Own`] long before short, so that the last
/// to end is a short one.
pub(crate) const STEPS: &[Step] = &[
    host::FMT,
    host::TIDY,
    host::CLIPPY,
    host::TEST,
    whole::STEP,
    counted::STEP,
    checkers::LINUX32,
    checkers::DOCS,
    dist::STEP,
    c_library::STEP,
    clients::STEP,
    python::STEP,
    iommu::STEP,
    checkers::MIRI,
    iommu::MIRI,
    checkers::LOOM,
    checkers::SHUTTLE,
    checkers::NO_STD,
    size::STEP,
    checkers::MSRV,
    checkers::DENY,
    guests::STEP,
    guests::module::STEP,
    linux_on_sim::STEP,
];

/// The names of all steps.
pub(crate) fn names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.name).collect()
}

/// The list of steps for the help text.
pub(crate) fn list() -> String {
    let line = |step: &Step| format!("  {:<12}{} ({} min)\n", step.name, step.about, step.minutes);
    let of = |lanes: &[Lane]| {
        STEPS.iter().filter(|step| lanes.contains(&step.lane)).map(line).collect::<String>()
    };
    format!(
        "Steps of `cargo xtask test`, with their minutes on two quiet cores:\n{}\nSteps of `--rest`:\n{}",
        of(&[Lane::Test]),
        of(&[Lane::Shared, Lane::Programs, Lane::Own, Lane::Boots])
    )
}

/// Which steps are asked for, and when one of them may be left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Choice {
    /// All steps except those of `cargo xtask test`.
    pub(crate) rest: bool,
    /// By name; all if empty.
    pub(crate) only: Vec<String>,
    /// Only steps whose paths changed since this commit; if it is empty, the commit is looked up.
    pub(crate) changed: Option<String>,
}

impl Choice {
    /// In the order of CI, whatever the order asked.
    fn steps(&self) -> Vec<&'static Step> {
        let chosen = |step: &&Step| {
            (self.only.is_empty() || self.only.iter().any(|name| name == step.name))
                && !(self.rest && step.lane == Lane::Test)
        };
        STEPS.iter().filter(chosen).collect()
    }
}

/// `cargo xtask test`: the steps that need only the pinned compiler. Then lists the other steps, and
/// the command that runs them.
pub(crate) fn test(cx: &Context) -> End {
    let steps: Vec<_> = STEPS.iter().filter(|step| step.lane == Lane::Test).collect();
    let rest: Vec<_> = STEPS.iter().filter(|step| step.lane != Lane::Test).collect();
    let minutes: u32 = rest.iter().map(|step| u32::from(step.minutes)).sum();
    let names: Vec<_> = rest.iter().map(|step| step.name).collect();
    let left_out = format!(
        "not run here: {}\nabout {minutes} minutes on two quiet cores, some of them side by side: cargo xtask ci --rest\n\
         It names what this machine lacks for them, and installs it with --install.",
        names.join(", ")
    );
    let report = Report { left_out, ..run(&steps, None, cx) };
    report::print(&report, cx.console)
}

/// `cargo xtask ci`: the steps of a choice.
///
/// # Errors
/// If it is not known since when something changed.
pub(crate) fn ci(choice: &Choice, cx: &Context) -> Result<End, String> {
    let steps = choice.steps();
    let changed =
        choice.changed.as_deref().map(|base| ChangedFiles::since(&cx.root, base)).transpose()?;
    if let Some(changed) = &changed {
        cx.console.say(&changed.to_string());
    }
    let needs: Vec<_> = steps.iter().flat_map(|step| step.needs).copied().collect();
    let lacking = needs::obtain(&needs, cx);
    if let Some(lacking) = &lacking {
        cx.console.say(&cx.console.paint(Tone::Warning, lacking));
    }
    let report = run(&steps, changed.as_ref(), cx);
    // Repeated at the end, where it is still on the screen.
    let report = Report { left_out: lacking.unwrap_or_default(), ..report };
    Ok(report::print(&report, cx.console))
}

/// Runs `steps`, lane by lane.
fn run(steps: &[&'static Step], changed: Option<&ChangedFiles>, cx: &Context) -> Report {
    let run = Run { steps, changed, cx, broken: AtomicBool::new(false) };
    let started = Instant::now();
    let mut rows = run.lane(Lane::Test);
    let left = Mutex::new(run.of(Lane::Own));
    let next = || left.lock().expect("no step panics").next();
    // Runs a lane to its end, then the remaining steps that may run beside any lane.
    let and_own = |lane| {
        let mut rows = run.lane(lane);
        rows.extend(std::iter::from_fn(next).map(|(index, step)| run.step(index, step)));
        rows
    };
    rows.extend(std::thread::scope(|scope| {
        let programs = scope.spawn(|| and_own(Lane::Programs));
        let mut rows = and_own(Lane::Shared);
        rows.extend(programs.join().expect("no step panics"));
        rows
    }));
    rows.extend(run.lane(Lane::Boots));
    rows.sort_by_key(|row| steps.iter().position(|step| step.name == row.step));
    Report { rows, elapsed: started.elapsed(), left_out: String::new() }
}

/// A run under way, as each lane sees it.
struct Run<'a> {
    steps: &'a [&'static Step],
    changed: Option<&'a ChangedFiles>,
    cx: &'a Context,
    /// Whether the workspace is known not to compile.
    broken: AtomicBool,
}

impl Run<'_> {
    /// The steps of a lane, with their places in the run.
    fn of(&self, lane: Lane) -> impl Iterator<Item = (usize, &'static Step)> {
        self.steps.iter().copied().enumerate().filter(move |(_, step)| step.lane == lane)
    }

    /// Runs the steps of a lane, one after another.
    fn lane(&self, lane: Lane) -> Vec<Row> {
        self.of(lane).map(|(index, step)| self.step(index, step)).collect()
    }

    fn step(&self, index: usize, step: &'static Step) -> Row {
        let count =
            |lanes: &[Lane]| self.steps.iter().filter(|step| lanes.contains(&step.lane)).count();
        let beside = match step.lane {
            Lane::Shared => count(&[Lane::Programs, Lane::Own]) > 0,
            Lane::Programs => count(&[Lane::Shared, Lane::Own]) > 0,
            Lane::Own => count(&[Lane::Shared, Lane::Programs]) > 0 || count(&[Lane::Own]) > 1,
            Lane::Test | Lane::Boots => false,
        };
        let starts_children_itself = matches!(step.lane, Lane::Programs | Lane::Boots);
        let console = self.cx.console;
        let console = if beside { console.of_step(step.name) } else { console };
        let cx = self.cx.for_step(console, beside);
        let (of, minutes) = (format!("{}/{}", index + 1, self.steps.len()), step.minutes);
        cx.console.header(&format!("{of} {}: {} (about {minutes} min)", step.name, step.about));
        let (started, before) = (Instant::now(), child::children_time());
        let outcome = if self.broken.load(Ordering::Relaxed) {
            // Repeated compiler errors would only bury the first ones.
            Outcome::not_run("the workspace does not build")
        } else if let Some(changed) = self.changed.filter(|changed| !changed.touches(step)) {
            Outcome::not_run(&format!("nothing it checks has changed since {}", changed.base()))
        } else {
            step.run(&cx)
        };
        let elapsed = started.elapsed();
        if starts_children_itself && !beside {
            cx.spend(child::children_time().saturating_sub(before));
        }
        self.broken.fetch_or(outcome.tally.build_broke, Ordering::Relaxed);
        let processor = (!starts_children_itself || !beside).then(|| cx.spent());
        let ended = format!("{}: {}", step.name, outcome.verdict.word());
        let cpu = report::seconds(processor);
        cx.console.say(&format!(
            "---- {ended} after {:.1} s, processor time {cpu}",
            elapsed.as_secs_f64()
        ));
        Row { step: step.name, outcome, elapsed, processor }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    use super::*;
    use crate::console::Console;
    use crate::tally::Tally;

    fn context() -> Context {
        Context::new(PathBuf::from("."), Console::silent(), false)
    }

    const fn step(lane: Lane, name: &'static str, run: fn(&Context) -> Outcome) -> Step {
        Step { name, about: "x", lane, minutes: 1, needs: &[], paths: &[], run }
    }

    fn verdict(steps: &'static [Step]) -> End {
        let report = run(&steps.iter().collect::<Vec<_>>(), None, &context());
        report::print(&report, Console::silent())
    }

    #[test]
    fn step_names_are_unique_and_fit_the_table() {
        for (index, step) in STEPS.iter().enumerate() {
            assert!(step.name.len() < 12 && !step.about.is_empty(), "{}", step.name);
            assert!(STEPS[..index].iter().all(|other| other.name != step.name), "{}", step.name);
            assert!(step.minutes > 0, "{}", step.name);
        }
    }

    #[test]
    fn what_a_new_user_runs_needs_nothing_but_the_compiler() {
        let of_test = STEPS.iter().filter(|step| step.lane == Lane::Test);
        assert!(of_test.clone().all(|step| step.needs.is_empty()));
        assert_eq!(of_test.count(), 4);
    }

    #[test]
    fn a_choice_keeps_the_order_of_ci() {
        let names =
            |choice: &Choice| choice.steps().iter().map(|step| step.name).collect::<Vec<_>>();
        let only = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(names(&Choice::default()), super::names());
        let two = Choice { only: only(&["tidy", "fmt"]), ..Choice::default() };
        assert_eq!(names(&two), ["fmt", "tidy"]);
        let rest = Choice { rest: true, ..Choice::default() };
        assert_eq!(names(&rest), super::names()[4..]);
    }

    #[test]
    fn a_broken_build_stops_later_builds_and_nothing_else() {
        static RUN: &[Step] = &[
            step(Lane::Shared, "whole", |_| {
                Outcome::of_tests(false, Tally { build_broke: true, ..Tally::default() })
            }),
            step(Lane::Shared, "docs", |_| panic!("built after a broken build")),
            step(Lane::Boots, "guests", |_| panic!("built after a broken build")),
            step(Lane::Test, "tidy", |_| Outcome::passed()),
        ];
        assert_eq!(verdict(RUN), End::Failed);
    }

    #[test]
    fn the_two_lanes_run_side_by_side_and_after_the_first() {
        static FIRST: AtomicBool = AtomicBool::new(false);
        static HERE: AtomicU64 = AtomicU64::new(0);
        fn meet(_: &Context) -> Outcome {
            HERE.fetch_add(1, Ordering::Relaxed);
            let began = Instant::now();
            while HERE.load(Ordering::Relaxed) < 2 && began.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(1));
            }
            let met = HERE.load(Ordering::Relaxed) == 2;
            Outcome::of_check(met && FIRST.load(Ordering::Relaxed))
        }
        static RUN: &[Step] = &[
            step(Lane::Shared, "docs", meet),
            step(Lane::Own, "miri", meet),
            step(Lane::Test, "tidy", |_| {
                FIRST.store(true, Ordering::Relaxed);
                Outcome::passed()
            }),
        ];
        assert_eq!(verdict(RUN), End::Passed);
    }

    #[test]
    fn steps_are_listed_by_lane_so_that_the_table_has_the_order_of_the_list() {
        let lanes: Vec<_> = STEPS.iter().map(|step| step.lane as u8).collect();
        assert!(lanes.is_sorted(), "{lanes:?}");
    }

    #[test]
    fn a_run_that_could_not_do_all_is_neither_passed_nor_failed() {
        static RUN: &[Step] = &[
            step(Lane::Test, "tidy", |_| Outcome::passed()),
            step(Lane::Own, "miri", |_| Outcome::skipped("SKIPPED: no Miri".into())),
        ];
        assert_eq!(verdict(RUN), End::Incomplete);
    }

    #[test]
    fn a_good_run_is_reported_as_good() {
        static RUN: &[Step] = &[step(Lane::Test, "tidy", |_| Outcome::passed())];
        assert_eq!(verdict(RUN), End::Passed);
    }
}
