//! The input of a step of CI, and its outcome.
//!
//! This file knows no step. The steps use it; [`step`](crate::step) says what one is.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::child::{Task, TaskResult};
use crate::console::Console;
use crate::tally::{SKIPPED, Tally};

/// The context of a step. Each step has one of its own.
#[derive(Debug)]
pub(crate) struct Context {
    /// The workspace's root, where children run.
    pub(crate) root: PathBuf,
    /// Where lines go.
    pub(crate) console: Console,
    /// Whether this is a build machine, which must skip nothing that can run there.
    pub(crate) ci: bool,
    /// Whether tools may be installed: `--install`, or a build machine.
    pub(crate) may_install: bool,
    /// Whether another lane of steps runs meanwhile.
    beside: bool,
    /// The processor time of this step's children so far, in milliseconds.
    spent_ms: AtomicU64,
}

impl Context {
    /// Reads the environment once. Steps get the values from here and do not read it themselves.
    pub(crate) fn new(root: PathBuf, console: Console, install: bool) -> Self {
        let ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        let may_install = install || ci;
        Self { root, console, ci, may_install, beside: false, spent_ms: AtomicU64::new(0) }
    }

    /// The same for one step, which prints its lines on `console`.
    pub(crate) fn for_step(&self, console: Console, beside: bool) -> Self {
        let (root, spent_ms) = (self.root.clone(), AtomicU64::new(0));
        Self { root, console, ci: self.ci, may_install: self.may_install, beside, spent_ms }
    }

    /// Adds to the processor time of this step.
    pub(crate) fn spend(&self, processor: Duration) {
        let ms = u64::try_from(processor.as_millis()).unwrap_or(u64::MAX);
        self.spent_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// The processor time of this step so far.
    pub(crate) fn spent(&self) -> Duration {
        Duration::from_millis(self.spent_ms.load(Ordering::Relaxed))
    }

    /// Runs a task in the workspace's root.
    pub(crate) fn ran(&self, task: &Task) -> TaskResult {
        self.ran_in(&self.root, task)
    }

    /// Runs a task in `dir`.
    pub(crate) fn ran_in(&self, dir: &Path, task: &Task) -> TaskResult {
        let ran = task.run(dir, self.console);
        self.spend(ran.processor);
        ran
    }

    /// Runs a task that is a check.
    pub(crate) fn run(&self, task: &Task) -> Outcome {
        self.run_in(&self.root, task)
    }

    /// Runs a task that is a check, in `dir`.
    pub(crate) fn run_in(&self, dir: &Path, task: &Task) -> Outcome {
        let ran = self.ran_in(dir, task);
        let broke = Tally { build_broke: ran.tally.build_broke, ..Tally::default() };
        Outcome { tally: broke, ..Outcome::of_check(ran.success) }
    }

    /// Runs a task that runs tests, in the workspace's root.
    pub(crate) fn run_tests(&self, task: &Task) -> Outcome {
        self.run_tests_in(&self.root, task)
    }

    /// Runs a task that runs tests, in `dir`.
    pub(crate) fn run_tests_in(&self, dir: &Path, task: &Task) -> Outcome {
        let ran = self.ran_in(dir, task);
        Outcome::of_tests(ran.success, ran.tally)
    }

    /// Runs test tasks in `dir` that have one busy thread each: two at a time, or one if another lane of
    /// steps keeps the other core busy.
    pub(crate) fn run_tests_beside(&self, dir: &Path, tasks: &[Task]) -> Outcome {
        let (left, ran) = (Mutex::new(tasks.iter()), Mutex::new(Vec::new()));
        let next = || left.lock().expect("no thread panics").next();
        let work = || {
            while let Some(task) = next() {
                let outcome = self.run_tests_in(dir, task);
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
    pub(crate) fn lacks(&self, what: &str, mend: &str) -> Outcome {
        let line = format!("{SKIPPED} {what}; to mend: {mend}");
        self.console.say(&line);
        if self.ci { Outcome::failed().with_note(what.into()) } else { Outcome::skipped(line) }
    }

    /// A separate target directory for builds with other flags, which would otherwise replace the
    /// artifacts of the plain builds.
    pub(crate) fn target_dir(&self, name: &str) -> String {
        target().join(name).to_string_lossy().into_owned()
    }

    /// The directory of all builds.
    pub(crate) fn target(&self) -> PathBuf {
        self.root.join(target())
    }
}

/// Where Cargo builds, from the workspace's root.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from)
}

/// Why a step could not do its work.
#[derive(Debug, PartialEq)]
pub(crate) enum Stop {
    /// This machine lacks something: a skip for people, a failure for a build machine.
    Lacks(String),
    /// Something that should work here did not.
    Broke(String),
}

impl Stop {
    /// How the step `name` ends if it stopped for this reason.
    pub(crate) fn outcome(self, name: &str, cx: &Context) -> Outcome {
        match self {
            Self::Lacks(why) => cx.lacks(
                &format!("{name}: {why}"),
                &format!("cargo xtask ci --step {name} --install"),
            ),
            Self::Broke(why) => {
                cx.console.say(&why);
                Outcome::failed().with_note(format!("{name} could not be made")).with_failure(why)
            }
        }
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

    /// A check that is left out because it would only repeat an earlier failure or an earlier result.
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

    /// The joint outcome of test runs and checks of one step.
    pub(crate) fn of_all(ran: Vec<Self>) -> Self {
        let mut tally = Tally::default();
        // A task that broke without a failed test is a failure in these totals too; a check counts
        // as one test.
        let counts: Vec<(u64, u64)> = ran.iter().map(Self::counts).collect();
        ran.into_iter().for_each(|outcome| tally.absorb(outcome.tally));
        let failed = counts.iter().map(|(_, failed)| failed).sum();
        (tally.passed, tally.failed) = (counts.iter().map(|(passed, _)| passed).sum(), failed);
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

    /// The counts that this step adds to the totals: passed and failed.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn context(ci: bool) -> Context {
        let root = PathBuf::from(".");
        Context { ci, may_install: false, ..Context::new(root, Console::silent(), false) }
    }

    #[test]
    fn a_missing_tool_skips_for_a_person_and_fails_for_a_build_machine() {
        let skipped = context(false).lacks("no tool", "get it");
        assert_eq!((skipped.verdict, skipped.counts()), (Verdict::Skipped, (0, 0)));
        assert_eq!(skipped.tally.skipped, ["SKIPPED: no tool; to mend: get it"]);
        let failed = context(true).lacks("no tool", "get it");
        assert_eq!((failed.verdict, failed.counts()), (Verdict::Failed, (0, 1)));
    }

    #[test]
    fn tasks_beside_each_other_all_run_and_their_time_is_summed() {
        let cx = context(false);
        let counts = "i=0; while [ $i -lt 50000 ]; do i=$((i + 1)); done";
        let tasks = [counts, counts, counts].map(|script| Task::new("sh", &["-c", script]));
        assert_eq!(cx.run_tests_beside(Path::new("."), &tasks).counts(), (0, 0));
        assert!(cx.spent() >= Duration::from_millis(30));
        let broken = [Task::new("true", &[]), Task::new("false", &[])];
        assert_eq!(cx.run_tests_beside(Path::new("."), &broken).counts(), (0, 1));
    }
}
