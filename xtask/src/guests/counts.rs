//! Instructions of one operation: boards × paths, compared with a reviewed table.
//!
//! Our counts, and the hand-written loop's, must agree within [`TOLERANCE`] or [`FLUTTER`]. Rows
//! with the kernel's work in them inform, since they change with each of Debian's kernels.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::reviewed;
use crate::check::{Check, Verdict};

/// Counts by board and path.
pub(super) type Counts = BTreeMap<(String, String), f64>;

/// The share by which a gated count may differ from the table, in percent: `prepared-64` of raspi3b has been 498, 510 and
/// 515 in builds whose source for it was the same.
const TOLERANCE: f64 = 3.5;

/// The instructions by which it may differ in any case. The compiler spills one register more or less around a
/// call when code elsewhere changes: `sync-4` of raspi3b went from 185 to 179 and to 184 by commits that
/// touched nothing it runs. The shipped command's counts must match exactly
/// (`tests/snapshots/instructions.txt`).
const FLUTTER: f64 = 6.0;

/// The suffix of rows of register accesses; the other rows count instructions.
const ACCESSES: &str = "-accesses";

/// The suffix of rows that are counted on the newer kernel.
const NEWER: &str = "-6.12";

/// Whether a path's count only informs: paths of the kernel, and register accesses, which are counted in another boot
/// than instructions.
fn informs(path: &str) -> bool {
    let kernels = ["chardev", "spidev", "mtd", "served", "run-handled"];
    path.ends_with(ACCESSES) || kernels.iter().any(|kernel| path.starts_with(kernel))
}

/// The register accesses of one operation, by path. `told` has a path and its number of calls for each pair of marks;
/// `marks` has the count at each mark, a line each.
///
/// # Errors
/// If there are not two marks for each entry of `told`.
pub(super) fn accesses(told: &[(String, f64)], marks: &str) -> Result<Vec<(String, f64)>, String> {
    let counts: Vec<f64> = marks.lines().filter_map(|line| line.parse().ok()).collect();
    if counts.is_empty() || counts.len() != 2 * told.len() {
        return Err(format!("{} marks for {} loops", counts.len(), told.len()));
    }
    let each = told.iter().zip(counts.chunks_exact(2));
    let each = each.filter(|((path, _), _)| path != "-");
    Ok(each
        .map(|((path, calls), pair)| (format!("{path}{ACCESSES}"), (pair[1] - pair[0]) / calls))
        .collect())
}

/// The reviewed table, a line each: board, path, count.
pub(super) fn table(counts: &Counts) -> String {
    let mut text = format!(
        "# Instructions of one operation in a guest (`cargo xtask guests`); see docs/guests.md.\n\
         # Rows with the kernel in them (chardev, spidev, mtd, served, run-handled) inform; the others gate within \
         {TOLERANCE} % or {FLUTTER}.\n",
    );
    for ((board, path), count) in counts {
        let _ = writeln!(text, "{board:<12}{path:<24}{count:>10.0}");
    }
    text
}

/// Reads the reviewed table.
///
/// # Errors
/// A line that is not part of the table.
pub(super) fn parse(text: &str) -> Result<Counts, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let read = |line: &str| {
        let mut words = line.split_whitespace();
        let (board, path) = (words.next()?, words.next()?);
        let count: f64 = words.next()?.parse().ok()?;
        words.next().is_none().then(|| ((board.to_owned(), path.to_owned()), count))
    };
    lines.map(|line| read(line).ok_or_else(|| format!("no line of counts: `{line}`"))).collect()
}

/// Judges what was counted on `board`.
pub(super) fn judge(board: &str, counted: &Counts, known: &Counts) -> Check {
    const NAME: &str = "instructions";
    let of_board = |counts: &Counts| -> Vec<(String, f64)> {
        let own = counts.iter().filter(|((name, path), _)| name == board && !informs(path));
        own.map(|((_, path), count)| (path.clone(), *count)).collect()
    };
    let (counted, known) = (of_board(counted), of_board(known));
    if counted.is_empty() {
        return Check::new(NAME, Verdict::Failed, "nothing was counted");
    }
    let is_off =
        |_: &str, now: &f64, was: &f64| (now - was).abs() > (was * TOLERANCE / 100.0).max(FLUTTER);
    let shown = |count: &f64| format!("{count:.0}");
    let wrong = reviewed::differences(super::SNAPSHOT, &counted, &known, shown, is_off);
    reviewed::check(NAME, &wrong)
}

/// The reviewed table with one board's counts, of instructions or accesses, replaced by those counted now.
pub(super) fn blessed(reviewed: &Counts, counted: &Counts) -> Counts {
    let kind = |path: &String| (path.ends_with(ACCESSES), path.ends_with(NEWER));
    let is_new = |(board, path): &(String, String)| {
        counted.keys().any(|(name, other)| name == board && kind(other) == kind(path))
    };
    let kept = reviewed.iter().filter(|(row, _)| !is_new(row));
    kept.chain(counted).map(|(key, count)| (key.clone(), *count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(rows: &[(&str, &str, f64)]) -> Counts {
        rows.iter().map(|(b, p, n)| (((*b).to_owned(), (*p).to_owned()), *n)).collect()
    }

    #[test]
    fn a_table_reads_back() {
        let counts = counts(&[("evk", "prepared", 297.0), ("evk", "mtd-1024", 35307.0)]);
        assert_eq!(parse(&table(&counts)), Ok(counts));
        assert!(parse("evk prepared").is_err() && parse("evk prepared x").is_err());
        assert!(parse("evk prepared 1 2").is_err());
    }

    #[test]
    fn ours_gate_within_the_tolerance_and_the_kernel_s_inform() {
        let reviewed = counts(&[("evk", "prepared", 400.0), ("evk", "spidev-4", 5000.0)]);
        let judged = |prepared, spidev| {
            let now = counts(&[("evk", "prepared", prepared), ("evk", "spidev-4", spidev)]);
            judge("evk", &now, &reviewed)
        };
        assert_eq!(judged(414.0, 9000.0).verdict, Verdict::Passed);
        assert_eq!(judged(386.0, 1.0).verdict, Verdict::Passed);
        let worse = judged(415.0, 5000.0);
        assert!(worse.why.contains("prepared 415, reviewed 400"), "{worse:?}");
        assert_eq!(judged(385.0, 5000.0).verdict, Verdict::Failed);
    }

    #[test]
    fn a_short_path_may_differ_by_a_spill() {
        let reviewed = counts(&[("pi", "sync-4", 179.0)]);
        let judged = |now| judge("pi", &counts(&[("pi", "sync-4", now)]), &reviewed).verdict;
        assert_eq!(judged(185.0), Verdict::Passed);
        assert_eq!((judged(186.0), judged(172.0)), (Verdict::Failed, Verdict::Failed));
    }

    #[test]
    fn a_row_that_is_new_or_missing_fails() {
        let reviewed = counts(&[("evk", "prepared", 300.0), ("sab", "sync", 400.0)]);
        let now = counts(&[("evk", "sync", 330.0)]);
        let why = judge("evk", &now, &reviewed).why;
        assert!(why.contains("sync 330 is not in") && why.contains("prepared was not"), "{why}");
        assert_eq!(judge("evk", &counts(&[]), &reviewed).verdict, Verdict::Failed);
    }

    #[test]
    fn blessing_replaces_the_boards_that_ran() {
        let accesses = ("evk", "spidev-4-accesses", 18.0);
        let reviewed = counts(&[("evk", "prepared", 300.0), accesses, ("sab", "sync", 400.0)]);
        let now = counts(&[("evk", "sync", 330.0)]);
        assert_eq!(
            blessed(&reviewed, &now),
            counts(&[("evk", "sync", 330.0), accesses, ("sab", "sync", 400.0)])
        );
        // What is counted on the newer kernel alone leaves the others.
        let newer = counts(&[("evk", "spidev-4-6.12", 5_967.0)]);
        let all = blessed(&reviewed, &newer);
        assert_eq!(all.len(), reviewed.len() + 1);
        assert_eq!(blessed(&all, &newer), all);
        let now = counts(&[("evk", "mtd-1024-accesses", 805.0)]);
        assert_eq!(
            blessed(&reviewed, &now),
            counts(&[
                ("evk", "prepared", 300.0),
                ("evk", "mtd-1024-accesses", 805.0),
                ("sab", "sync", 400.0)
            ])
        );
    }

    #[test]
    fn accesses_are_what_lies_between_two_marks() {
        let told = [("spidev-4".to_owned(), 1_000.0), ("-".to_owned(), 100.0)];
        assert_eq!(
            accesses(&told, "7\n18007\n18007\n99999\n"),
            Ok(vec![("spidev-4-accesses".to_owned(), 18.0)])
        );
        assert!(accesses(&told, "7\n18007\n18007\n").is_err());
        assert!(accesses(&[], "").is_err(), "nothing was counted");
    }
}
