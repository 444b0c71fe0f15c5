//! The steps of CI: each timed, all run even if one failed, totals at the end.
//!
//! How it works: [`STEPS`] is the one table from which the run, the command line and the help
//! text come. A step is a function from the [`Context`] to an [`Outcome`]; those that run tests
//! bring the harness's own counts along.
//!
//! # Schedule
//!
//! Each step belongs to a [`Lane`]. The steps of a lane run one after another.
//!
//! 1. [`Lane::First`]: `tools`, `fmt`, `clippy`, `tidy`. They are cheap, or keep all cores busy.
//! 2. [`Lane::Shared`] and [`Lane::Own`], side by side. Cargo locks a target directory while it
//!    builds, so only steps with different directories can do that. The steps `clippy`, `test`,
//!    `linux32` and `docs` use one profile (`ci`) and one directory, so that procedural macros, build
//!    scripts and dependencies are built once. Steps that need other flags for the whole workspace (the
//!    model checkers, Miri, `no_std`, `msrv`) have a directory each and build as few packages as they can.
//!    Many of these tests keep one core busy; the other lane uses the other. Each lane ends with builds,
//!    which use all cores when the other lane is over.
//! 3. [`Lane::Apart`]: `dist`, `c`, `clients`, `python` and `guests`, whose time is summed apart.
//!
//! While two lanes run, each line of output begins with the name of its step.
//!
//! A step's line in the table has its own time by the wall clock, and the processor time of its children,
//! which stays the same on a busy machine. The line `checks` has the wall clock of the first three lanes.
//!
//! Not here: benches by the wall clock, which inform and never gate.

mod test_release;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::c_library;
use crate::child::{self, Ran, Task};
use crate::clients;
use crate::console::Console;
use crate::dist;
use crate::guests;
use crate::python;
use crate::report::{self, Report, Row, plural};
use crate::tally::{SKIPPED, Tally};
use crate::tidy;
use crate::tools::{self, BARE_TARGETS, LINUX32_TARGET, NO_CAS_TARGETS};

/// What every step may know. Each has one of its own.
#[derive(Debug)]
pub(crate) struct Context {
    /// The workspace's root, where children run.
    pub(crate) root: PathBuf,
    /// Where lines go.
    pub(crate) console: Console,
    /// Whether this is a build machine, which must skip nothing that can run there.
    pub(crate) ci: bool,
    /// Whether tools may be installed.
    pub(crate) may_install: bool,
    /// Whether another lane of steps runs meanwhile.
    beside: bool,
    /// The processor time of this step's children so far, in milliseconds.
    spent_ms: AtomicU64,
}

impl Context {
    /// Reads the environment once; steps are told, they do not look.
    pub(crate) fn new(root: PathBuf, console: Console) -> Self {
        let ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        let may_install = std::env::var_os("BAREWIRE_NO_INSTALL").is_none();
        Self { root, console, ci, may_install, beside: false, spent_ms: AtomicU64::new(0) }
    }

    /// The same for one step, that says its lines on `console`.
    fn for_step(&self, console: Console, beside: bool) -> Self {
        let (root, spent_ms) = (self.root.clone(), AtomicU64::new(0));
        Self { root, console, ci: self.ci, may_install: self.may_install, beside, spent_ms }
    }

    fn spend(&self, processor: Duration) {
        let ms = u64::try_from(processor.as_millis()).unwrap_or(u64::MAX);
        self.spent_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// Runs a task in the workspace's root.
    fn ran(&self, task: &Task) -> Ran {
        self.ran_in(&self.root, task)
    }

    fn ran_in(&self, dir: &Path, task: &Task) -> Ran {
        let ran = task.run(dir, self.console);
        self.spend(ran.processor);
        ran
    }

    fn run(&self, task: &Task) -> Outcome {
        Outcome::of_check(self.ran(task).success)
    }

    fn run_tests(&self, task: &Task) -> Outcome {
        let ran = self.ran(task);
        Outcome::of_tests(ran.success, ran.tally)
    }

    /// Runs test tasks that have one busy thread each: two at a time, or one if another lane of steps
    /// keeps the other core busy.
    fn run_tests_beside(&self, tasks: &[Task]) -> Outcome {
        let (left, ran) = (Mutex::new(tasks.iter()), Mutex::new(Vec::new()));
        let next = || left.lock().expect("no thread panics").next();
        let work = || {
            while let Some(task) = next() {
                let outcome = self.run_tests(task);
                ran.lock().expect("no thread panics").push(outcome);
            }
        };
        std::thread::scope(|scope| {
            if !self.beside {
                scope.spawn(work);
            }
            work();
        });
        Outcome::of_all(ran.into_inner().expect("no thread panics"))
    }

    /// A missing tool: a skip for a person, a failure for a build machine.
    pub(crate) fn lacks(&self, what: &str) -> Outcome {
        let line = format!("{SKIPPED} {what}; `cargo xtask ci --step tools` gets it or says how");
        self.console.say(&line);
        if self.ci { Outcome::failed().with_note(what.into()) } else { Outcome::skipped(line) }
    }

    /// A target directory of its own for builds with other flags, which would otherwise throw
    /// away what the plain builds made.
    pub(crate) fn target_dir(&self, name: &str) -> String {
        let base =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
        base.join(name).to_string_lossy().into_owned()
    }
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    Passed,
    Failed,
    Skipped,
    NotRun,
}

impl Verdict {
    /// The verdict for the table; what needs attention stands out without colours too.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::Skipped => "SKIPPED",
            Self::NotRun => "not run",
        }
    }
}

/// A step's end, with what it counted.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// How it ended.
    pub(crate) verdict: Verdict,
    /// Tests counted and skips noted; all zero for a step that is no test run.
    pub(crate) tally: Tally,
    /// For the last column of the table.
    pub(crate) note: String,
    counts_tests: bool,
}

impl Outcome {
    fn new(verdict: Verdict) -> Self {
        Self { verdict, tally: Tally::default(), note: String::new(), counts_tests: false }
    }

    /// A check that is satisfied.
    pub(crate) fn passed() -> Self {
        Self::new(Verdict::Passed)
    }

    /// A check that is not.
    pub(crate) fn failed() -> Self {
        Self::new(Verdict::Failed)
    }

    /// A check that could not run here; `line` begins `SKIPPED:`.
    pub(crate) fn skipped(line: String) -> Self {
        let tally = Tally { skipped: vec![line], ..Tally::default() };
        Self { tally, ..Self::new(Verdict::Skipped) }
    }

    /// A check left out because it could only repeat an earlier failure.
    pub(crate) fn not_run(why: &str) -> Self {
        Self::new(Verdict::NotRun).with_note(why.into())
    }

    /// A check that counts as one.
    pub(crate) fn of_check(success: bool) -> Self {
        if success { Self::passed() } else { Self::failed() }
    }

    /// A test run, which counts as its tests.
    pub(crate) fn of_tests(success: bool, tally: Tally) -> Self {
        let success = success && tally.failed == 0;
        let note = if tally.build_broke { "does not build".into() } else { String::new() };
        Self { tally, note, counts_tests: true, ..Self::of_check(success) }
    }

    /// Test runs that are one step.
    fn of_all(ran: Vec<Self>) -> Self {
        let mut tally = Tally::default();
        // A task that broke without a failed test is a failure in these totals too.
        let failed: u64 = ran.iter().map(|outcome| outcome.counts().1).sum();
        ran.into_iter().for_each(|outcome| tally.absorb(outcome.tally));
        tally.failed = failed;
        Self::of_tests(failed == 0, tally)
    }

    /// Adds a remark for the table.
    pub(crate) fn with_note(mut self, note: String) -> Self {
        self.note = note;
        self
    }

    /// Adds what went wrong, for the end of the run.
    pub(crate) fn with_failure(mut self, why: String) -> Self {
        self.tally.failures.push(why);
        self
    }

    /// What this step adds to the totals: passed and failed.
    ///
    /// A test run that failed without a failed test (it did not build, a test aborted) is one
    /// failure, so that no broken run can end in `0 failed`.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let failed = u64::from(self.verdict == Verdict::Failed);
        if self.counts_tests {
            (self.tally.passed, self.tally.failed.max(failed))
        } else {
            (u64::from(self.verdict == Verdict::Passed), failed)
        }
    }
}

/// When a step runs. The head of this module says why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Lane {
    /// Before all others.
    First,
    /// With the target directory that builds share, beside [`Lane::Own`].
    Shared,
    /// With target directories of its own, beside [`Lane::Shared`].
    Own,
    /// After all others, its time summed apart: 15 minutes are for the checks alone.
    Apart,
}

/// One step of CI.
#[derive(Debug)]
pub(crate) struct Step {
    /// What `--step` calls it.
    pub(crate) name: &'static str,
    /// What it checks, for headers and help.
    pub(crate) about: &'static str,
    run: fn(&Context) -> Outcome,
    lane: Lane,
}

impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Step {
    const fn new(
        lane: Lane,
        name: &'static str,
        about: &'static str,
        run: fn(&Context) -> Outcome,
    ) -> Self {
        Self { name, about, run, lane }
    }
}

/// Crates that build for targets without an operating system.
const BARE_PACKAGES: [&str; 2] = ["barewire", "barewire-iommu"];

/// The backend that a library is built with alone, as in `.cargo/config.toml`, which `RUSTFLAGS` replaces.
const NO_CAS_FLAGS: &str = "-Dwarnings --cfg portable_atomic_unsafe_assume_single_core";

/// The core's features, and a target to build them all for.
const FEATURES: &str = "defmt,embassy,embedded-storage-async,portable-atomic,words16";
const FEATURES_TARGET: &str = "thumbv7em-none-eabihf";

/// All of CI, by lanes. In the first the order is cheap before dear; in those beside each other, one busy
/// core before builds.
pub(crate) const STEPS: &[Step] = &[
    Step::new(
        Lane::First,
        "tools",
        "what the other steps need, installed where that is ours to do",
        tools::check,
    ),
    Step::new(Lane::First, "fmt", "rustfmt has nothing to change", fmt),
    Step::new(Lane::First, "clippy", "no compiler or clippy warning in any target", clippy),
    Step::new(Lane::First, "tidy", "the house rules", tidy),
    Step::new(
        Lane::Shared,
        "test",
        "unit, integration and doc tests, whole, with debug checks",
        test,
    ),
    Step::new(
        Lane::Shared,
        "test-release",
        "instructions counted, and the command as it ships",
        test_release::run,
    ),
    Step::new(Lane::Shared, "linux32", "libraries and programs compile for 32-bit Linux", linux32),
    Step::new(Lane::Shared, "docs", "documentation without warnings", docs),
    Step::new(Lane::Own, "miri", "the tests of the core and of the page tables under Miri", miri),
    Step::new(Lane::Own, "loom", "bus word, tables and command queue under a model checker", loom),
    Step::new(Lane::Own, "shuttle", "the bus under a million random schedules", shuttle),
    Step::new(
        Lane::Own,
        "no_std",
        "what needs no operating system builds without one, and runs in QEMU",
        no_std,
    ),
    Step::new(Lane::Own, "msrv", "the oldest compiler promised builds it", msrv),
    Step::new(Lane::Apart, "dist", "the command's package is installed, run and removed", dist),
    Step::new(
        Lane::Apart,
        "c",
        "the C library, by programs in C and C++ under valgrind and sanitizers",
        c,
    ),
    Step::new(Lane::Apart, "clients", "programs nobody here wrote, unmodified", clients),
    Step::new(Lane::Apart, "python", "the Python package, installed by pip", python),
    Step::new(Lane::Apart, "guests", "the command beside stock kernels on emulated boards", guests),
];

/// Runs `steps` and reports; `true` if nothing failed.
pub(crate) fn run(steps: &[&'static Step], cx: &Context) -> bool {
    let run = Run { steps, cx, broken: AtomicBool::new(false) };
    let started = Instant::now();
    let mut rows = run.lane(Lane::First);
    let (shared, own) = std::thread::scope(|scope| {
        let own = scope.spawn(|| run.lane(Lane::Own));
        (run.lane(Lane::Shared), own.join().expect("no step panics"))
    });
    rows.extend(shared.into_iter().chain(own));
    let checks = (!rows.is_empty()).then(|| started.elapsed());
    let apart = run.lane(Lane::Apart);
    report::print(&Report { rows, checks, apart }, cx.console)
}

/// A run under way, as each lane sees it.
struct Run<'a> {
    steps: &'a [&'static Step],
    cx: &'a Context,
    /// Whether the workspace is known not to compile.
    broken: AtomicBool,
}

impl Run<'_> {
    /// Runs the steps of a lane, one after another.
    fn lane(&self, lane: Lane) -> Vec<Row> {
        let steps = self.steps.iter().enumerate().filter(|(_, step)| step.lane == lane);
        steps.map(|(index, step)| self.step(index, step)).collect()
    }

    fn step(&self, index: usize, step: &'static Step) -> Row {
        let has = |lane| self.steps.iter().any(|step| step.lane == lane);
        let both = has(Lane::Shared) && has(Lane::Own);
        let beside = both && matches!(step.lane, Lane::Shared | Lane::Own);
        let console = self.cx.console;
        let console = if beside { console.of_step(step.name) } else { console };
        let cx = self.cx.for_step(console, beside);
        let of = format!("{}/{}", index + 1, self.steps.len());
        cx.console.header(&format!("{of} {}: {}", step.name, step.about));
        let started = Instant::now();
        let outcome = if step.lane != Lane::First && self.broken.load(Ordering::Relaxed) {
            // Repeated compiler errors would only bury the first ones.
            Outcome::not_run("the workspace does not build")
        } else {
            (step.run)(&cx)
        };
        let elapsed = started.elapsed();
        self.broken.fetch_or(outcome.tally.build_broke, Ordering::Relaxed);
        let processor = Duration::from_millis(cx.spent_ms.load(Ordering::Relaxed));
        let (seconds, cpu) = (elapsed.as_secs_f64(), processor.as_secs_f64());
        let ended = format!("{}: {}", step.name, outcome.verdict.word());
        cx.console
            .say(&format!("---- {ended} after {seconds:.1} s, with {cpu:.1} s of processor time"));
        Row { step: step.name, outcome, elapsed, processor }
    }
}

fn fmt(cx: &Context) -> Outcome {
    // Left to itself rustfmt colours its differences even into a file.
    let colour = if cx.console.colour() { "always" } else { "never" };
    let args = ["fmt", "--all", "--check", "--", "--color", colour];
    let outcome = cx.run(&Task::new("cargo", &args));
    match outcome.verdict {
        Verdict::Failed => outcome.with_note("remedy: cargo fmt --all".into()),
        _ => outcome,
    }
}

fn clippy(cx: &Context) -> Outcome {
    let args =
        [&["clippy", "--workspace", "--all-targets"], &PROFILE[..], &["--", "-D", "warnings"]];
    cx.run(&Task::new("cargo", &args.concat()))
}

fn tidy(cx: &Context) -> Outcome {
    match tidy::run(&cx.root, &cx.console) {
        Ok(0) => Outcome::passed(),
        Ok(count) => Outcome::failed().with_note(plural(count, "finding")),
        Err(why) => {
            cx.console.say(&why);
            Outcome::failed().with_note(why)
        }
    }
}

/// The profile of all steps that may share what they build.
const PROFILE: [&str; 2] = ["--profile", "ci"];

/// Where it is set, tests run whole which a debug build cuts short.
const WHOLE: (&str, &str) = ("BAREWIRE_WHOLE", "1");

/// A test that writes 32 MiB to a chip by the command. It runs where the command is fast: in the step
/// `test-release`.
const LONGEST: &str = "flash::the_whole_chip_goes_there_and_back";

/// `--no-fail-fast`, so that the totals are of all tests; `--show-output`, because a test that
/// skips itself passes, and the harness keeps what a passed test printed to itself.
///
/// Optimised, with debug assertions and overflow checks, and whole: one run instead of a debug run
/// cut short and a release run without the checks.
fn test(cx: &Context) -> Outcome {
    let harness = ["--no-fail-fast", "--", "--show-output", "--skip", LONGEST];
    let args = [&["test", "--workspace"], &PROFILE[..], &harness].concat();
    cx.run_tests(&Task::new("cargo", &args).env(WHOLE.0, WHOLE.1))
}

fn no_std(cx: &Context) -> Outcome {
    let dir = cx.target_dir("no_std");
    // Not the profile `dev`, which would optimise procedural macros.
    let build = [&["build", "--target-dir", &dir], &PROFILE[..]].concat();
    let mut lacking = Vec::new();
    let mut success = true;
    for target in BARE_TARGETS {
        if tools::has_target(cx, target) {
            // Each alone: built together, one could lean on what another turns on.
            for package in BARE_PACKAGES {
                let args = [&build[..], &["-p", package, "--target", target]].concat();
                let task = match (NO_CAS_TARGETS.contains(&target), package) {
                    (false, _) => Task::new("cargo", &args).env("RUSTFLAGS", "-Dwarnings"),
                    (true, "barewire") => {
                        let args = [&args[..], &["--features", "portable-atomic"]].concat();
                        Task::new("cargo", &args).env("RUSTFLAGS", NO_CAS_FLAGS)
                    }
                    // Page tables are for processors that have it.
                    (true, _) => continue,
                };
                success &= cx.ran(&task).success;
            }
            if target == FEATURES_TARGET {
                for (package, features) in [("barewire", FEATURES), ("barewire-iommu", "alloc")] {
                    let all = ["-p", package, "--features", features, "--target", target];
                    let args = [&build[..], &all].concat();
                    let task = Task::new("cargo", &args).env("RUSTFLAGS", "-Dwarnings");
                    success &= cx.ran(&task).success;
                }
            }
        } else {
            lacking.push(target);
        }
    }
    match lacking.as_slice() {
        _ if !success => Outcome::failed(),
        [] => firmware(cx),
        _ => cx.lacks(&format!("no standard library for {}", lacking.join(", "))),
    }
}

/// The example for microcontrollers, built and run on the board that QEMU emulates.
fn firmware(cx: &Context) -> Outcome {
    if !tools::has_program("qemu-system-arm") {
        return cx.lacks("no qemu-system-arm");
    }
    let dir = cx.root.join(cx.target_dir("firmware"));
    let task = Task::new("cargo", &["run", "--target-dir", &dir.to_string_lossy()]);
    // Where its own settings are found: the linker script, the emulator.
    let ran = cx.ran_in(&cx.root.join("examples/firmware"), &task);
    Outcome::of_check(ran.success)
}

/// Compiled and not linked, which needs no foreign linker. With `--target` the flags are for that
/// target alone, so that what runs at build time is the plain builds'.
fn linux32(cx: &Context) -> Outcome {
    if !tools::has_target(cx, LINUX32_TARGET) {
        return cx.lacks(&format!("no standard library for {LINUX32_TARGET}"));
    }
    let args = ["check", "--workspace", "--target", LINUX32_TARGET];
    let args = [&args[..], &PROFILE].concat();
    cx.run(&Task::new("cargo", &args).env("RUSTFLAGS", "-Dwarnings"))
}

fn msrv(cx: &Context) -> Outcome {
    let version = tools::oldest_compiler(cx);
    if !tools::has_compiler(cx, &version) {
        return cx.lacks(&format!("no Rust {version}"));
    }
    let (compiler, dir) = (format!("+{version}"), cx.target_dir("msrv"));
    let args = [&compiler, "check", "--workspace", "--target-dir", &dir];
    cx.run(&Task::new("cargo", &[&args[..], &PROFILE].concat()))
}

/// Programs apart from libraries: the command and the core are both called `barewire`, and in one
/// run cargo would write both to one page, in no certain order, with a warning.
fn docs(cx: &Context) -> Outcome {
    let success = ["--bins", "--lib"].into_iter().fold(true, |success, kind| {
        let args = [&["doc", "--workspace", "--no-deps", kind], &PROFILE[..]].concat();
        let task = Task::new("cargo", &args);
        let ran = cx.ran(&task.env("RUSTDOCFLAGS", "-Dwarnings"));
        success && ran.success
    });
    Outcome::of_check(success)
}

fn loom(cx: &Context) -> Outcome {
    // What loom is to look at inside a crate stands in modules named after it.
    cx.run_tests_beside(&[
        model_checker(cx, "loom", "barewire", &["--test", "loom"]),
        model_checker(cx, "loom", "barewire-iommu", &["--test", "loom*"]),
        model_checker(cx, "loom", "barewire-iommu", &["--lib", "loom"]),
    ])
}

fn shuttle(cx: &Context) -> Outcome {
    let task = model_checker(cx, "shuttle", "barewire", &["--test", "shuttle"]);
    cx.run_tests(&task.env("BAREWIRE_SCHEDULES", "1000000"))
}

/// A package's tests built for a model checker, in a profile for programs that run long and are built
/// for it alone.
fn model_checker(cx: &Context, name: &str, package: &str, which: &[&str]) -> Task {
    let dir = cx.target_dir(name);
    let cargo =
        ["test", "-p", package, "--profile", "models", "--no-fail-fast", "--target-dir", &dir];
    let args = [&cargo[..], which, &["--", "--show-output"]].concat();
    let flags = if name == "loom" { "--cfg loom" } else { "--cfg shuttle" };
    Task::new("cargo", &args).env("RUSTFLAGS", flags)
}

/// The modules of the core whose unit tests Miri runs: those with unsafe code. The others cannot show
/// undefined behaviour but through these, and would take four times as long.
const MIRI_MODULES: [&str; 2] = ["bus", "reg"];

/// The modules of the page tables and of their model whose unit tests Miri leaves out for the same reason:
/// they have no unsafe code and call none. `explain` reads tables through a closure, `bits` is a set in atomic
/// words, `naive` is a map, and `strategy` computes. They would take more time than all others.
const MIRI_SKIPS: [(&str, &str); 4] = [
    ("barewire-iommu", "explain"),
    ("barewire-iommu", "iova::bits"),
    ("barewire-iommu", "strategy"),
    ("barewire-iommu-model", "naive"),
];

/// Isolation is off because proptest reads its regression files; few cases, because Miri is some
/// hundred times slower and looks for undefined behaviour rather than for rare values. It has
/// one thread whatever the tests have.
fn miri(cx: &Context) -> Outcome {
    if !tools::has_miri(cx) {
        return cx.lacks("no nightly toolchain with Miri");
    }
    let dir = cx.target_dir("miri");
    let task = |packages: &[&str], modules: &[&str]| {
        let cargo = ["+nightly", "miri", "test", "--no-fail-fast", "--target-dir", &dir];
        let args = [&cargo[..], packages, &["--", "--show-output"], modules].concat();
        Task::new("cargo", &args)
            .env("MIRIFLAGS", "-Zmiri-disable-isolation")
            // Each backtrace of a panic takes Miri seconds.
            .env("RUST_BACKTRACE", "0")
            .env("PROPTEST_CASES", "8")
    };
    let modules = MIRI_MODULES.map(|module| format!("{module}::"));
    // A chip's tests have modules of the same names.
    let core = [&modules.each_ref().map(String::as_str)[..], &["--skip", "chip::"]].concat();
    let skips = MIRI_SKIPS.map(|(_, module)| ["--skip".to_owned(), format!("{module}::")]).concat();
    let skips: Vec<_> = skips.iter().map(String::as_str).collect();
    // Their other tests are long runs of what these cover, without unsafe code of their own.
    let page_tables =
        task(&["-p", "barewire-iommu", "-p", "barewire-iommu-model", "--lib"], &skips);
    cx.run_tests_beside(&[
        task(&["-p", "barewire", "--test", "panics"], &[]),
        task(&["-p", "barewire", "--test", "worst_moments"], &[]),
        task(&["-p", "barewire", "--lib"], &core),
        task(&["-p", "barewire", "--doc"], &[]),
        task(&["-p", "barewire-open", "--lib"], &["confined::"]),
        // The worker's futex is a system call that Miri checks by another type.
        task(
            &["-p", "barewire-open", "--test", "owned_message"],
            &["--skip", "the_bytes_are_changed_between_two_runs"],
        ),
        page_tables,
    ])
}

/// It starts programs in ways of its own, while no other step runs.
fn dist(cx: &Context) -> Outcome {
    timed(cx, dist::step)
}

fn c(cx: &Context) -> Outcome {
    timed(cx, c_library::step)
}

fn clients(cx: &Context) -> Outcome {
    timed(cx, clients::step)
}

fn python(cx: &Context) -> Outcome {
    timed(cx, python::step)
}

fn guests(cx: &Context) -> Outcome {
    timed(cx, guests::step)
}

/// A step that starts its children itself, alone.
fn timed(cx: &Context, step: fn(&Context) -> Outcome) -> Outcome {
    let before = child::children_time();
    let outcome = step(cx);
    cx.spend(child::children_time().saturating_sub(before));
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(ci: bool) -> Context {
        let root = PathBuf::from(".");
        Context { ci, may_install: false, ..Context::new(root, Console::silent()) }
    }

    #[test]
    fn step_names_are_unique_and_fit_the_table() {
        for (index, step) in STEPS.iter().enumerate() {
            assert!(step.name.len() < 14 && !step.about.is_empty(), "{}", step.name);
            assert!(!STEPS[..index].contains(step), "{} twice", step.name);
        }
    }

    #[test]
    fn a_missing_tool_skips_for_a_person_and_fails_for_a_build_machine() {
        let skipped = context(false).lacks("no tool");
        assert_eq!((skipped.verdict, skipped.counts()), (Verdict::Skipped, (0, 0)));
        assert_eq!(skipped.tally.skipped.len(), 1);
        let failed = context(true).lacks("no tool");
        assert_eq!((failed.verdict, failed.counts()), (Verdict::Failed, (0, 1)));
    }

    #[test]
    fn a_broken_build_stops_later_builds_and_nothing_else() {
        static RUN: &[Step] = &[
            Step::new(Lane::Shared, "test", "breaks", |_| {
                Outcome::of_tests(false, Tally { build_broke: true, ..Tally::default() })
            }),
            Step::new(Lane::Shared, "docs", "must not run", |_| {
                panic!("built after a broken build")
            }),
            Step::new(
                Lane::Apart,
                "dist",
                "the command's package is installed, run and removed",
                dist,
            ),
            Step::new(Lane::Apart, "python", "the Python package, installed by pip", python),
            Step::new(Lane::Apart, "guests", "must not run", |_| {
                panic!("built after a broken build")
            }),
            Step::new(Lane::First, "tidy", "runs", |_| Outcome::passed()),
        ];
        assert!(!run(&RUN.iter().collect::<Vec<_>>(), &context(false)));
    }

    #[test]
    fn the_two_lanes_run_side_by_side_and_after_the_first() {
        static FIRST: AtomicBool = AtomicBool::new(false);
        static HERE: AtomicU64 = AtomicU64::new(0);
        fn meet(_: &Context) -> Outcome {
            HERE.fetch_add(1, Ordering::Relaxed);
            let began = Instant::now();
            while HERE.load(Ordering::Relaxed) < 2 && began.elapsed() < Duration::from_secs(5) {
                std::thread::sleep(Duration::from_millis(1));
            }
            let met = HERE.load(Ordering::Relaxed) == 2;
            Outcome::of_check(met && FIRST.load(Ordering::Relaxed))
        }
        static RUN: &[Step] = &[
            Step::new(Lane::Shared, "docs", "meets", meet),
            Step::new(Lane::Own, "miri", "meets", meet),
            Step::new(Lane::First, "tidy", "runs", |_| {
                FIRST.store(true, Ordering::Relaxed);
                Outcome::passed()
            }),
        ];
        assert!(run(&RUN.iter().collect::<Vec<_>>(), &context(false)));
    }

    #[test]
    fn steps_are_listed_by_lane_so_that_the_table_has_the_order_of_the_list() {
        let lanes: Vec<_> = STEPS.iter().map(|step| step.lane as u8).collect();
        assert!(lanes.is_sorted(), "{lanes:?}");
    }

    #[test]
    fn tasks_beside_each_other_all_run_and_their_time_is_summed() {
        let cx = context(false);
        let counts = "i=0; while [ $i -lt 50000 ]; do i=$((i + 1)); done";
        let tasks = [counts, counts, counts].map(|script| Task::new("sh", &["-c", script]));
        assert_eq!(cx.run_tests_beside(&tasks).counts(), (0, 0));
        assert!(cx.spent_ms.load(Ordering::Relaxed) >= 30);
        let broken = [Task::new("true", &[]), Task::new("false", &[])];
        assert_eq!(cx.run_tests_beside(&broken).counts(), (0, 1));
    }

    /// The files under `dir` that allow unsafe code, from there.
    fn unsafe_files(dir: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                found.extend(unsafe_files(&path));
            } else if std::fs::read_to_string(&path).is_ok_and(|text| {
                text.lines()
                    .any(|line| line.starts_with("#![allow") && line.contains("unsafe_code"))
            }) {
                found.push(path);
            }
        }
        found
    }

    #[test]
    fn miri_runs_every_module_of_the_core_that_allows_unsafe_code() {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stack/barewire/src");
        let files = unsafe_files(&src);
        assert!(files.len() > 8, "{files:?}");
        for file in files {
            let inside = file.strip_prefix(&src).expect("is inside");
            let module = inside.components().next().expect("a folder").as_os_str();
            assert!(MIRI_MODULES.contains(&module.to_str().expect("text")), "{}", inside.display());
        }
    }

    #[test]
    fn miri_leaves_out_no_module_that_has_unsafe_code() {
        for (package, module) in MIRI_SKIPS {
            let src =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../iommu").join(package).join("src");
            let found = unsafe_files(&src);
            assert!(!found.is_empty(), "none in {package}, which has some");
            let place = src.join(module.replace("::", "/"));
            assert!(place.join("mod.rs").exists() || place.with_extension("rs").exists());
            let inside = |path: &PathBuf| path.with_extension("").starts_with(&place);
            assert_eq!(found.into_iter().find(inside), None);
        }
    }

    #[test]
    fn a_good_run_is_reported_as_good() {
        static RUN: &[Step] = &[Step::new(Lane::First, "tidy", "runs", |_| Outcome::passed())];
        assert!(run(&RUN.iter().collect::<Vec<_>>(), &context(false)));
    }
}
