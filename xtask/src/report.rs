//! The end of a run: every skip and failure repeated, a table of steps, and the totals as the last line.

use std::time::Duration;

use crate::console::{Console, Tone};
use crate::context::{Outcome, Verdict};

/// One step that is over.
#[derive(Debug)]
pub(crate) struct Row {
    /// The step's name.
    pub(crate) step: &'static str,
    /// How it went.
    pub(crate) outcome: Outcome,
    /// How long it took.
    pub(crate) elapsed: Duration,
    /// How much processor time its children took, if that is known.
    pub(crate) processor: Option<Duration>,
}

/// A run that is over.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// The steps.
    pub(crate) rows: Vec<Row>,
    /// How long they took together, which is less than their sum where some ran side by side.
    pub(crate) elapsed: Duration,
    /// The steps that were not asked for, with their time and their command; empty if nothing is left out.
    pub(crate) left_out: String,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum End {
    /// All that was asked for ran, and nothing failed.
    Passed,
    /// Something failed.
    Failed,
    /// Nothing failed, but a step could not run on this machine.
    Incomplete,
}

impl End {
    /// The end of a run with one check, which passed or failed.
    pub(crate) fn of_check(success: bool) -> Self {
        if success { Self::Passed } else { Self::Failed }
    }

    /// The end of a run of one step alone.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        match outcome.verdict {
            Verdict::Failed => Self::Failed,
            Verdict::Skipped => Self::Incomplete,
            Verdict::Passed | Verdict::NotRun => Self::Passed,
        }
    }

    /// The exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Failed => 1,
            Self::Incomplete => 3,
        }
    }
}

/// The totals of a run.
#[derive(Debug, Default, PartialEq)]
struct Totals {
    passed: u64,
    failed: u64,
    skipped: usize,
}

impl Totals {
    fn of(report: &Report) -> Self {
        let mut totals = Self::default();
        for Row { outcome, .. } in &report.rows {
            let (passed, failed) = outcome.counts();
            totals.passed += passed;
            totals.failed += failed;
            totals.skipped += outcome.tally.skipped.len();
        }
        totals
    }

    /// An interface: build machines read the last line.
    fn line(&self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// Prints the end of a run, and returns it.
pub(crate) fn print(report: &Report, console: Console) -> End {
    console.header("summary");
    for line in figure_lines(report) {
        console.say(&line);
    }
    for line in skip_lines(report) {
        console.say(&console.paint(Tone::Warning, &line));
    }
    for line in failure_lines(report) {
        console.say(&console.paint(Tone::Bad, &line));
    }
    // After the failures, which may be long: a log that is cut to its end still has the table.
    console.say(&format!("\n{:<14}{:<9}{:>8}{:>8}", "step", "result", "seconds", "cpu"));
    for row in &report.rows {
        console.say(&table_line(row, console));
    }
    console.say(&time_line(report));
    if !report.left_out.is_empty() {
        console.say(&console.paint(Tone::Warning, &format!("\n{}", report.left_out)));
    }
    let totals = Totals::of(report);
    console.say(&format!("\n{}", totals.line()));
    match totals.failed {
        0 if report.rows.iter().any(|row| row.outcome.verdict == Verdict::Skipped) => {
            End::Incomplete
        }
        0 => End::Passed,
        _ => End::Failed,
    }
}

fn table_line(row: &Row, console: Console) -> String {
    let verdict = row.outcome.verdict;
    let tone = match verdict {
        Verdict::Passed => Tone::Good,
        Verdict::Failed => Tone::Bad,
        Verdict::Skipped | Verdict::NotRun => Tone::Warning,
    };
    // Padded before painting: colour codes would count as columns.
    let word = console.paint(tone, &format!("{:<9}", verdict.word()));
    let (elapsed, cpu) = (row.elapsed.as_secs_f64(), seconds(row.processor));
    let line = format!("{:<14}{word}{elapsed:>8.1}{cpu:>8}  {}", row.step, remark(&row.outcome));
    line.trim_end().to_string()
}

/// The seconds as text; `-` for a time that was not measured, which is not zero.
pub(crate) fn seconds(processor: Option<Duration>) -> String {
    processor.map_or_else(|| "-".into(), |time| format!("{:.1}", time.as_secs_f64()))
}

/// The time of all steps together; of processor time, what is known.
fn time_line(report: &Report) -> String {
    let cpu = report.rows.iter().filter_map(|row| row.processor).sum::<Duration>().as_secs_f64();
    let seconds = report.elapsed.as_secs_f64();
    format!("{:<23}{seconds:>8.1}{cpu:>8.1}  {:.1} minutes", "all", seconds / 60.0)
}

/// The last column: tests counted, then whatever the step had to say.
fn remark(outcome: &Outcome) -> String {
    let tally = &outcome.tally;
    let mut parts = Vec::new();
    if tally.passed + tally.failed > 0 {
        parts.push(format!("{} tests passed", tally.passed));
    }
    for (count, what) in [(tally.failed, "failed"), (tally.ignored, "ignored")] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    if !outcome.note.is_empty() {
        parts.push(outcome.note.clone());
    }
    parts.join(", ")
}

/// The lines that tests want repeated, each with its step.
fn figure_lines(report: &Report) -> Vec<String> {
    let of = |row: &Row| {
        let figures = row.outcome.tally.figures.clone().into_iter();
        let step = row.step;
        figures.map(move |figure| format!("  [{step}] {figure}"))
    };
    report.rows.iter().flat_map(of).collect()
}

/// The skips, each with its step, so that a reader sees that the run was not complete. Those with the same
/// reason are one line.
fn skip_lines(report: &Report) -> Vec<String> {
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for row in &report.rows {
        for skip in &row.outcome.tally.skipped {
            let line = format!("  [{}] {skip}", row.step);
            match reasons.iter_mut().find(|(known, _)| *known == line) {
                Some((_, count)) => *count += 1,
                None => reasons.push((line, 1)),
            }
        }
    }
    let total: usize = reasons.iter().map(|(_, count)| count).sum();
    let told = reasons.into_iter().map(|(line, count)| match count {
        1 => line,
        _ => format!("{line} ({count} times)"),
    });
    let head = (total > 0).then(|| format!("\n!!!! {} did not run:", plural(total, "check")));
    head.into_iter().chain(told).collect()
}

/// The failures, each with its step.
fn failure_lines(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for Row { step, outcome, .. } in &report.rows {
        if outcome.verdict == Verdict::Failed {
            lines.push(format!("\n!!!! {step} failed: {}", remark(outcome)));
            let told = outcome.tally.failures.iter().flat_map(|failure| failure.lines());
            lines.extend(told.map(|line| format!("  [{step}] {line}")));
        }
    }
    lines
}

/// `1 check`, `2 checks`.
pub(crate) fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Tally;

    fn row(step: &'static str, outcome: Outcome) -> Row {
        let [elapsed, processor] = [1500, 2500].map(Duration::from_millis);
        Row { step, outcome, elapsed, processor: Some(processor) }
    }

    fn report<const N: usize>(rows: [Row; N]) -> Report {
        Report { rows: rows.into(), ..Report::default() }
    }

    fn tests(success: bool, passed: u64, failed: u64, skipped: &[&str]) -> Outcome {
        let skipped = skipped.iter().map(|line| (*line).to_string()).collect();
        Outcome::of_tests(success, Tally { passed, failed, skipped, ..Tally::default() })
    }

    #[test]
    fn tests_count_singly_and_other_steps_as_one() {
        let report = report([
            row("fmt", Outcome::passed()),
            row("docs", Outcome::failed()),
            row("test", tests(false, 40, 2, &["SKIPPED: no valgrind"])),
            row("miri", Outcome::skipped("SKIPPED: no miri".into())),
            row("no_std", Outcome::not_run("the build is broken")),
        ]);
        assert_eq!(Totals::of(&report), Totals { passed: 41, failed: 3, skipped: 2 });
        assert_eq!(Totals::of(&report).line(), "41 passed, 3 failed, 2 skipped");
    }

    #[test]
    fn a_test_run_that_died_without_a_failed_test_still_counts_as_failed() {
        for (failed, counted) in [(0, 1), (3, 3)] {
            let report = report([row("test", tests(false, 5, failed, &[]))]);
            assert_eq!(Totals::of(&report).failed, counted);
        }
    }

    #[test]
    fn every_skip_is_repeated_with_its_step() {
        let skips = ["SKIPPED: a", "SKIPPED: b", "SKIPPED: a"];
        let lines = skip_lines(&report([row("test", tests(true, 1, 0, &skips))]));
        assert_eq!(lines[0], "\n!!!! 3 checks did not run:");
        assert_eq!(lines[1..], ["  [test] SKIPPED: a (2 times)", "  [test] SKIPPED: b"]);
        assert!(skip_lines(&report([row("fmt", Outcome::passed())])).is_empty());
    }

    #[test]
    fn what_failed_is_repeated_with_its_step() {
        let mut failed = tests(false, 3, 1, &[]);
        failed.tally.failures = vec!["first: why\nand more".into()];
        let lines = failure_lines(&report([
            row("fmt", Outcome::passed()),
            row("guests", failed),
            row("dist", Outcome::failed().with_note("a package is wrong".into())),
        ]));
        let guests = ["  [guests] first: why", "  [guests] and more"];
        assert_eq!(lines[0], "\n!!!! guests failed: 3 tests passed, 1 failed");
        assert_eq!(lines[1..3], guests);
        assert_eq!(lines[3..], ["\n!!!! dist failed: a package is wrong"]);
    }

    #[test]
    fn a_run_has_one_time_by_the_wall_clock_and_the_sum_of_processor_time() {
        let steps = ["fmt", "tidy"].map(|step| row(step, Outcome::passed()));
        let report = Report { elapsed: Duration::from_secs(2), ..report(steps) };
        assert_eq!(time_line(&report), "all                         2.0     5.0  0.0 minutes");
    }

    #[test]
    fn a_time_that_is_not_known_is_not_zero() {
        assert_eq!([seconds(None), seconds(Some(Duration::ZERO))], ["-", "0.0"]);
    }

    #[test]
    fn codes_tell_a_failure_from_what_could_not_run() {
        let skipped = Outcome::skipped("SKIPPED: x".into());
        let all = [Outcome::passed(), Outcome::failed(), skipped, Outcome::not_run("x")];
        assert_eq!(all.each_ref().map(|outcome| End::of(outcome).code()), [0, 1, 3, 0]);
    }

    #[test]
    fn a_remark_leaves_out_what_is_zero() {
        assert_eq!(remark(&tests(true, 3, 0, &[])), "3 tests passed");
        assert_eq!(
            remark(&tests(false, 3, 1, &[]).with_note("exit 101".into())),
            "3 tests passed, 1 failed, exit 101"
        );
        assert_eq!(remark(&Outcome::passed()), "");
    }
}
