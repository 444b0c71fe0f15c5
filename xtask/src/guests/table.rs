//! The report at the end: a table of boards × checks, every failure with its reason, or JSON.

use super::counts::Counts;
use super::steps::Steps;
use crate::check::{Check, Verdict, quoted};

/// A check and the board it ran on.
pub(super) type Row = (&'static str, Check);

/// The table for people: a row for each check, a column for each board; then why.
pub(super) fn text(boards: &[&str], rows: &[Row]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (_, check) in rows {
        if !names.contains(&check.name.as_str()) {
            names.push(&check.name);
        }
    }
    let width = names.iter().map(|name| name.len()).max().unwrap_or(0).max(5) + 2;
    let mut text = format!("{:<width$}", "check");
    for board in boards {
        text += &format!("{board:<12}");
    }
    for name in names {
        text = text.trim_end().to_owned() + &format!("\n{name:<width$}");
        for board in boards {
            text += &format!("{:<12}", cell(rows, board, name));
        }
    }
    text = text.trim_end().to_owned() + "\n";
    for (board, check) in rows {
        if check.verdict != Verdict::Passed {
            text += &format!("{} {board} {}: {}\n", word(check.verdict), check.name, check.why);
        }
    }
    text
}

/// How a check of this name went on a board: the worst of its runs.
fn cell(rows: &[Row], board: &str, name: &str) -> &'static str {
    let own = rows.iter().filter(|(on, check)| *on == board && check.name == name);
    let rank = |verdict| match verdict {
        Verdict::Passed => 0,
        Verdict::Skipped => 1,
        Verdict::Failed => 2,
    };
    own.map(|(_, check)| check.verdict).max_by_key(|verdict| rank(*verdict)).map_or("", word)
}

/// For people: what needs attention stands out.
fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "FAILED",
        Verdict::Skipped => "skipped",
    }
}

/// One line of JSON: `checks`, `instructions` by board and path, and `steps` of kernels.
pub(super) fn json(rows: &[Row], counts: &Counts, steps: &[Steps]) -> String {
    let checks = rows.iter().map(|(board, check)| {
        format!(
            "{{\"board\":{},\"check\":{},\"result\":{},\"why\":{}}}",
            quoted(board),
            quoted(&check.name),
            quoted(check.verdict.word()),
            quoted(&check.why)
        )
    });
    let checks: Vec<String> = checks.collect();
    let mut boards: Vec<&str> = counts.keys().map(|(board, _)| board.as_str()).collect();
    boards.dedup();
    let instructions = boards.into_iter().map(|board| {
        let own = counts.iter().filter(|((name, _), _)| name == board);
        let own: Vec<String> =
            own.map(|((_, path), count)| format!("{}:{count}", quoted(path))).collect();
        format!("{}:{{{}}}", quoted(board), own.join(","))
    });
    let instructions: Vec<String> = instructions.collect();
    let steps = steps.iter().flat_map(|of| of.counted.iter().map(move |one| (of, one)));
    let steps = steps.map(|(of, one)| {
        format!(
            "{{\"board\":{},\"kernel\":{},\"step\":{},\"instructions\":{},\"low\":{},\"high\":{}}}",
            quoted(of.board),
            quoted(&of.kernel),
            quoted(one.name),
            one.median,
            one.lowest,
            one.highest
        )
    });
    let steps: Vec<String> = steps.collect();
    format!(
        "{{\"checks\":[{}],\"instructions\":{{{}}},\"steps\":[{}]}}",
        checks.join(","),
        instructions.join(","),
        steps.join(",")
    )
}

#[cfg(test)]
mod tests {
    use super::super::steps::Counted;
    use super::*;

    fn rows() -> Vec<Row> {
        vec![
            ("evk", Check::new("mem-id", Verdict::Passed, "")),
            ("hb", Check::new("mem-id", Verdict::Failed, "exit 1: \"no\" chip")),
            ("hb", Check::new("uio", Verdict::Skipped, "no module")),
        ]
    }

    #[test]
    fn the_table_has_a_row_a_check_and_says_why() {
        assert_eq!(
            text(&["evk", "hb"], &rows()),
            "check   evk         hb\n\
             mem-id  passed      FAILED\n\
             uio                 skipped\n\
             FAILED hb mem-id: exit 1: \"no\" chip\n\
             skipped hb uio: no module\n"
        );
    }

    #[test]
    fn the_worst_of_two_runs_stands_in_the_table() {
        let mut rows = rows();
        rows.push(("evk", Check::new("mem-id", Verdict::Failed, "again")));
        rows.push(("evk", Check::new("mem-id", Verdict::Passed, "")));
        assert_eq!(cell(&rows, "evk", "mem-id"), "FAILED");
        assert_eq!(cell(&rows, "evk", "nothing"), "");
    }

    #[test]
    fn json_is_one_line_with_its_strings_quoted() {
        let counts = Counts::from([
            (("evk".to_owned(), "prepared".to_owned()), 297.5),
            (("evk".to_owned(), "sync".to_owned()), 332.0),
        ]);
        let wake = Counted { name: "wake", median: 1566.0, lowest: 1560.0, highest: 1600.5 };
        let steps =
            Steps { board: "evk", boot: "steps", kernel: "6.1.0".to_owned(), counted: vec![wake] };
        assert_eq!(
            json(&rows()[1..2], &counts, &[steps]),
            "{\"checks\":[{\"board\":\"hb\",\"check\":\"mem-id\",\"result\":\"failed\",\
             \"why\":\"exit 1: \\\"no\\\" chip\"}],\
             \"instructions\":{\"evk\":{\"prepared\":297.5,\"sync\":332}},\
             \"steps\":[{\"board\":\"evk\",\"kernel\":\"6.1.0\",\"step\":\"wake\",\"instructions\":1566,\
             \"low\":1560,\"high\":1600.5}]}"
        );
        assert_eq!(quoted("a\tb\\"), "\"a\\u0009b\\\\\"");
    }
}
