//! The reviewed table of steps, and what differs from it.

use std::fmt::Write;
use std::path::Path;

use super::measures::{CHECKED, Counted, INFORMS};
use crate::check::{Check, Verdict};
use crate::guests::counts::Counts;
use crate::guests::reviewed;

/// The reviewed steps.
const SNAPSHOT: &str = "guests/steps.txt";

/// The share by which a count may differ from the table, or the instructions where those are more: as of the other
/// counts.
const TOLERANCE: f64 = 0.02;
const FLUTTER: f64 = 6.0;

/// The steps of a boot.
#[derive(Clone, Debug)]
pub(in crate::guests) struct Steps {
    pub(in crate::guests) board: &'static str,
    pub(in crate::guests) boot: &'static str,
    /// The kernel's full version.
    pub(in crate::guests) kernel: String,
    pub(in crate::guests) counted: Vec<Counted>,
}

/// A line of the table.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    board: String,
    kernel: String,
    step: String,
    /// The middle of the repeats, the lowest, the highest.
    counts: [f64; 3],
}

fn lines(steps: &Steps) -> impl Iterator<Item = Line> + '_ {
    steps.counted.iter().map(|one| Line {
        board: steps.board.to_owned(),
        kernel: steps.kernel.clone(),
        step: one.name.to_owned(),
        counts: [one.median, one.lowest, one.highest],
    })
}

/// The table, a line each: board, kernel, step, the middle, the lowest and the highest count.
fn text<'l>(lines: impl IntoIterator<Item = &'l Line>) -> String {
    let mut text = String::from(
        "# Instructions of steps of stock kernels, counted in guests by function (`cargo xtask guests`): the middle of 40\n\
         # operations, the lowest, the highest. xtask/src/guests/steps/measures.rs says which functions a step is; docs/lab.md,\n\
         # which costs of the lab they are. The middle gates within 2 % or 6 on the kernel that the line names,\n\
         # but for the tick and the ways out of idle.\n",
    );
    for Line { board, kernel, step, counts: [middle, lowest, highest] } in lines {
        let _ = writeln!(
            text,
            "{board:<12}{kernel:<22}{step:<22}{middle:>8.0}{lowest:>8.0}{highest:>8.0}"
        );
    }
    text
}

/// For people.
pub(in crate::guests) fn table(all: &[Steps]) -> String {
    text(&all.iter().flat_map(lines).collect::<Vec<_>>())
}

/// Reads a table.
fn parse(text: &str) -> Result<Vec<Line>, String> {
    let read = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [board, kernel, step, counts @ ..] = &words[..] else { return None };
        let counts: Vec<f64> =
            counts.iter().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let [board, kernel, step] = [board, kernel, step].map(|word| (*word).to_owned());
        Some(Line { board, kernel, step, counts: counts.try_into().ok()? })
    };
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines.map(|line| read(line).ok_or_else(|| format!("no line of steps: `{line}`"))).collect()
}

/// `6.1` of `6.1.0-50-arm64`.
fn series(kernel: &str) -> &str {
    let second = kernel.match_indices('.').nth(1);
    second.map_or(kernel, |(at, _)| &kernel[..at])
}

fn is_same(line: &Line, steps: &Steps) -> bool {
    line.board == steps.board && series(&line.kernel) == series(&steps.kernel)
}

fn differs(counted: f64, reviewed: f64) -> bool {
    (counted - reviewed).abs() > (reviewed * TOLERANCE).max(FLUTTER)
}

/// Judges a boot's steps by the table.
fn judge(steps: &Steps, known: &[Line]) -> Check {
    let own: Vec<&Line> = known.iter().filter(|line| is_same(line, steps)).collect();
    if let Some(other) = own.iter().find(|line| line.kernel != steps.kernel) {
        // Another compiler or another patch: to be looked at, and no fault.
        let why = format!(
            "{SNAPSHOT} is of {}, this kernel is {}; BAREWIRE_BLESS=1 rewrites it",
            other.kernel, steps.kernel
        );
        return Check::new(steps.boot, Verdict::Skipped, why);
    }
    let mut wrong = Vec::new();
    for line in lines(steps) {
        match own.iter().find(|other| other.step == line.step) {
            None => wrong.push(format!("{} is not in {SNAPSHOT}", line.step)),
            Some(_) if INFORMS.contains(&&*line.step) => {}
            Some(was) if differs(line.counts[0], was.counts[0]) => wrong.push(format!(
                "{} {:.0}, reviewed {:.0}",
                line.step, line.counts[0], was.counts[0]
            )),
            Some(_) => {}
        }
    }
    let missing = own.iter().filter(|line| !steps.counted.iter().any(|one| one.name == line.step));
    wrong.extend(missing.map(|line| format!("{} was not counted", line.step)));
    reviewed::check(steps.boot, &wrong)
}

/// Compares what the trace makes of spidev's system call with what the guest's clock makes of it in another boot.
fn judge_by_clock(steps: &Steps, by_clock: &Counts) -> Check {
    const NAME: &str = "steps-by-clock";
    let stock = format!("{CHECKED}-{}", series(&steps.kernel));
    let of = |path: &str| by_clock.get(&(steps.board.to_owned(), path.to_owned())).copied();
    let clock = of(&stock).or_else(|| of(CHECKED));
    let counted = steps.counted.iter().find(|one| one.name == CHECKED).map(|one| one.median);
    let (Some(counted), Some(clock)) = (counted, clock) else {
        return Check::new(NAME, Verdict::Failed, format!("{CHECKED} was not counted twice"));
    };
    if differs(counted, clock) {
        let why = format!("{CHECKED}: {counted:.0} by function, {clock:.0} by the guest's clock");
        return Check::new(NAME, Verdict::Failed, why);
    }
    Check::new(NAME, Verdict::Passed, "")
}

/// The reviewed table with the boots' steps in place of those on the same board and series of kernels.
fn blessed(mut reviewed: Vec<Line>, all: &[Steps]) -> Vec<Line> {
    reviewed.retain(|line| !all.iter().any(|steps| is_same(line, steps)));
    reviewed.extend(all.iter().flat_map(lines));
    // Those of a boot stay in their order.
    reviewed.sort_by(|a, b| (&a.board, &a.kernel).cmp(&(&b.board, &b.kernel)));
    reviewed
}

/// The reviewed table.
#[derive(Debug)]
pub(in crate::guests) struct Table(Vec<Line>);

impl Table {
    /// # Errors
    /// A line that is none of the table.
    pub(in crate::guests) fn read(root: &Path) -> Result<Self, String> {
        reviewed::read(root, SNAPSHOT, parse).map(Self)
    }

    /// Writes those of boots in their place.
    pub(in crate::guests) fn bless(&self, root: &Path, all: &[Steps]) -> Result<(), String> {
        if all.is_empty() {
            return Ok(());
        }
        reviewed::write(root, SNAPSHOT, text(&blessed(self.0.clone(), all)))
    }

    /// Judges all: checks with their boards.
    pub(in crate::guests) fn judge_all(
        &self,
        by_clock: &Counts,
        all: &[Steps],
    ) -> Vec<(&'static str, Check)> {
        let both = |steps: &Steps| {
            let check = reviewed::unless_blessing(steps.boot, || judge(steps, &self.0));
            [check, judge_by_clock(steps, by_clock)].map(|check| (steps.board, check))
        };
        all.iter().flat_map(both).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(kernel: &str, wake: f64) -> Steps {
        let counted =
            vec![Counted { name: "wake", median: wake, lowest: wake - 1.0, highest: wake + 9.0 }];
        Steps { board: "evk", boot: "steps", kernel: kernel.to_owned(), counted }
    }

    fn reviewed() -> Vec<Line> {
        lines(&steps("6.1.0-50-arm64", 1566.0)).collect()
    }

    #[test]
    fn a_table_reads_back() {
        assert_eq!(parse(&text(&reviewed())), Ok(reviewed()));
        for line in ["evk 6.1 wake 1 2", "evk 6.1 wake 1 2 3 4", "evk 6.1 wake 1 2 x", "evk"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn the_middle_gates_within_two_percent() {
        let judged = |wake| judge(&steps("6.1.0-50-arm64", wake), &reviewed());
        assert_eq!(judged(1597.0).verdict, Verdict::Passed);
        let worse = judged(1598.0);
        assert_eq!(worse.verdict, Verdict::Failed);
        assert!(worse.why.contains("wake 1598, reviewed 1566"), "{worse:?}");
        assert_eq!(judged(1534.0).verdict, Verdict::Failed);
    }

    #[test]
    fn a_step_that_time_decides_informs() {
        let with = |name, count| {
            let mut all = steps("6.1.0-50-arm64", count);
            all.counted[0].name = name;
            all
        };
        let reviewed: Vec<Line> = lines(&with("tick", 3_486.0)).collect();
        assert_eq!(judge(&with("tick", 4_000.0), &reviewed).verdict, Verdict::Passed);
    }

    #[test]
    fn a_step_that_is_new_or_missing_fails_and_another_kernel_is_to_be_looked_at() {
        let check = |mut steps: Steps, name| {
            steps.counted[0].name = name;
            judge(&steps, &reviewed())
        };
        let why = check(steps("6.1.0-50-arm64", 1566.0), "tick").why;
        assert!(why.contains("tick is not in") && why.contains("wake was not"), "{why}");
        assert_eq!(check(steps("6.1.0-51-arm64", 9.0), "wake").verdict, Verdict::Skipped);
        assert_eq!(check(steps("6.12.95+deb12-arm64", 9.0), "wake").verdict, Verdict::Failed);
    }

    #[test]
    fn blessing_replaces_a_series_of_kernels_on_a_board() {
        let newer = blessed(reviewed(), &[steps("6.12.95+deb12-arm64", 1653.0)]);
        assert_eq!(newer.len(), 2);
        let both = blessed(newer, &[steps("6.1.0-51-arm64", 1570.0)]);
        let kernels: Vec<&str> = both.iter().map(|line| line.kernel.as_str()).collect();
        assert_eq!(kernels, ["6.1.0-51-arm64", "6.12.95+deb12-arm64"]);
    }

    #[test]
    fn two_ways_to_count_a_system_call_must_agree() {
        let mut steps = steps("6.1.0-50-arm64", 5282.0);
        let key = |path: &str| ("evk".to_owned(), path.to_owned());
        let clock = Counts::from([(key("spidev-4"), 5301.0), (key("spidev-4-6.12"), 5967.0)]);
        assert_eq!(judge_by_clock(&steps, &clock).verdict, Verdict::Failed, "no spidev-4");
        steps.counted[0].name = CHECKED;
        assert_eq!(judge_by_clock(&steps, &clock).verdict, Verdict::Passed);
        steps.kernel = "6.12.95+deb12-arm64".to_owned();
        let apart = judge_by_clock(&steps, &clock);
        assert!(apart.why.contains("5282 by function, 5967 by"), "{apart:?}");
    }
}
