//! The report at the end: boards × runs, every failure with its reason, and accesses a message; or JSON.

use super::protocol::RunReport;
use crate::check::{Verdict, quoted};

/// One run on one board.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) board: &'static str,
    pub(super) run: &'static str,
    /// Whether this project's module drove the controller.
    pub(super) module: bool,
    pub(super) said: RunReport,
}

/// The report.
pub(super) fn told(rows: &[Row], as_json: bool) -> String {
    if as_json { json(rows) } else { text(rows) }
}

/// How many checks ended so.
pub(super) fn count(rows: &[Row], verdict: Verdict) -> usize {
    let checks = rows.iter().flat_map(|row| &row.said.checks);
    checks.filter(|check| check.verdict == verdict).count()
}

/// The values in order, each once.
fn each<'r>(rows: &'r [Row], of: impl Fn(&'r Row) -> &'static str) -> Vec<&'static str> {
    let mut all = Vec::new();
    for row in rows {
        if !all.contains(&of(row)) {
            all.push(of(row));
        }
    }
    all
}

fn text(rows: &[Row]) -> String {
    let (boards, runs) = (each(rows, |row| row.board), each(rows, |row| row.run));
    let mut text = format!("{:<12}", "board");
    let width = runs.iter().map(|run| run.len() + 1).max().unwrap_or(0).max(11);
    for run in &runs {
        text += &format!("{run:<width$}");
    }
    for board in &boards {
        text = text.trim_end().to_owned() + &format!("\n{board:<12}");
        for run in &runs {
            let row = rows.iter().find(|row| row.board == *board && row.run == *run);
            text += &format!("{:<width$}", row.map_or_else(|| "-".into(), |row| cell(&row.said)));
        }
    }
    text = text.trim_end().to_owned() + "\n";
    for row in rows {
        for check in row.said.checks.iter().filter(|check| check.verdict != Verdict::Passed) {
            let word = if check.verdict == Verdict::Failed { "FAILED" } else { "skipped" };
            text += &format!("{word} {}/{} {}: {}\n", row.board, row.run, check.name, check.why);
        }
    }
    for row in rows.iter().filter(|row| !row.said.notes.is_empty()) {
        for note in &row.said.notes {
            text += &format!("{}/{}: {note}\n", row.board, row.run);
        }
    }
    let counted = |row: &&Row| !row.said.accesses.is_empty() || row.said.frame.is_some();
    let counted: Vec<&Row> = rows.iter().filter(counted).collect();
    if !counted.is_empty() {
        text += "\nregister accesses, reads + writes: of a message of that many bytes, or of a CAN frame there and back\n";
        for row in counted {
            let messages = row.said.accesses.iter().map(|accesses| {
                format!("{}: {} + {}", accesses.bytes, accesses.reads, accesses.writes)
            });
            let frame = row.said.frame.map(|(reads, writes)| format!("frame: {reads} + {writes}"));
            text += &format!("{:<24}", format!("{}/{}", row.board, row.run));
            for cell in messages.chain(frame) {
                text += &format!("{cell:<22}");
            }
            text = text.trim_end().to_owned() + "\n";
        }
    }
    let [passed, failed, skipped] =
        [Verdict::Passed, Verdict::Failed, Verdict::Skipped].map(|verdict| count(rows, verdict));
    text + &format!("\nlinux-on-sim: {passed} passed, {failed} failed, {skipped} skipped")
}

/// How a run went: its passed checks, of all.
fn cell(said: &RunReport) -> String {
    let of = |verdict| said.checks.iter().filter(|check| check.verdict == verdict).count();
    match (of(Verdict::Failed), of(Verdict::Skipped), said.checks.len()) {
        (0, 0, all) => format!("passed {all}"),
        (0, ..) => "skipped".into(),
        (failed, _, all) => format!("FAILED {failed}/{all}"),
    }
}

/// One line of JSON: `checks`, `accesses` of the controllers for messages, and for `frames` there and back.
fn json(rows: &[Row]) -> String {
    let checks = rows.iter().flat_map(|row| {
        row.said.checks.iter().map(move |check| {
            format!(
                "{{\"board\":{},\"run\":{},\"check\":{},\"result\":{},\"why\":{}}}",
                quoted(row.board),
                quoted(row.run),
                quoted(&check.name),
                quoted(check.verdict.word()),
                quoted(&check.why)
            )
        })
    });
    let accesses = rows.iter().flat_map(|row| {
        row.said.accesses.iter().map(move |accesses| {
            format!(
                "{{\"board\":{},\"run\":{},\"bytes\":{},\"reads\":{},\"writes\":{}}}",
                quoted(row.board),
                quoted(row.run),
                accesses.bytes,
                accesses.reads,
                accesses.writes
            )
        })
    });
    let frames = rows.iter().filter_map(|row| {
        let (reads, writes) = row.said.frame?;
        Some(format!(
            "{{\"board\":{},\"run\":{},\"reads\":{reads},\"writes\":{writes}}}",
            quoted(row.board),
            quoted(row.run)
        ))
    });
    let (checks, accesses): (Vec<_>, Vec<_>) = (checks.collect(), accesses.collect());
    let (checks, accesses) = (checks.join(","), accesses.join(","));
    let frames = frames.collect::<Vec<_>>().join(",");
    format!("{{\"checks\":[{checks}],\"accesses\":[{accesses}],\"frames\":[{frames}]}}")
}

#[cfg(test)]
mod tests {
    use super::super::protocol::Accesses;
    use super::*;
    use crate::check::Check;

    fn rows() -> Vec<Row> {
        let passed = Check::new("nor", Verdict::Passed, "");
        let failed = Check::new("can", Verdict::Failed, "no \"can0\"");
        let accesses = vec![Accesses { bytes: 4, reads: 2.0, writes: 1.5 }];
        vec![
            Row {
                board: "a",
                run: "nor",
                module: false,
                said: RunReport { checks: vec![passed.clone()], accesses, ..RunReport::default() },
            },
            Row {
                board: "b",
                run: "can",
                module: false,
                said: RunReport {
                    checks: vec![passed, failed],
                    frame: Some((180.5, 90.0)),
                    ..RunReport::default()
                },
            },
        ]
    }

    #[test]
    fn the_table_has_boards_and_runs_and_says_why() {
        let text = told(&rows(), false);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(lines[0], "board       nor        can");
        assert_eq!(lines[1], "a           passed 1   -");
        assert_eq!(lines[2], "b           -          FAILED 1/2");
        assert_eq!(lines[3], "FAILED b/can can: no \"can0\"");
        assert!(text.contains("a/nor                   4: 2 + 1.5\n"), "{text}");
        assert!(text.contains("b/can                   frame: 180.5 + 90\n"), "{text}");
        assert!(text.ends_with("linux-on-sim: 2 passed, 1 failed, 0 skipped"));
    }

    #[test]
    fn json_is_one_line() {
        let line = told(&rows(), true);
        assert!(!line.contains('\n'));
        assert!(line.contains("\"why\":\"no \\\"can0\\\"\""), "{line}");
        assert!(
            line.ends_with(
                "\"accesses\":[{\"board\":\"a\",\"run\":\"nor\",\"bytes\":4,\"reads\":2,\"writes\":1.5}],\
                 \"frames\":[{\"board\":\"b\",\"run\":\"can\",\"reads\":180.5,\"writes\":90}]}"
            )
        );
    }
}
