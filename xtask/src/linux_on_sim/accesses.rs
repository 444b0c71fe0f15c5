//! Accesses of Linux's drivers, beside the reviewed table.
//!
//! The table stands beside the test that counts ours: `bench/barewire-mmio/tests/it/beside_linux.txt`. Time in
//! the guest is virtual, so the figures are the same on every machine.

use std::fs;
use std::path::Path;

use super::protocol::Accesses;
use super::table::Row;
use crate::check::{Check, Verdict, is_blessing};

const TABLE: &str = "bench/barewire-mmio/tests/it/beside_linux.txt";

/// A line: a board, a length, Linux's reads and writes, and the rest of the line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) board: String,
    pub(super) linux: Accesses,
    rest: String,
}

/// The reviewed table.
pub(super) fn read(root: &Path) -> Result<Vec<Line>, String> {
    let text =
        fs::read_to_string(root.join(TABLE)).map_err(|e| format!("cannot read {TABLE}: {e}"))?;
    let lines = text.lines().skip(1);
    lines.map(|line| parse(line).ok_or_else(|| format!("{TABLE}: cannot read `{line}`"))).collect()
}

fn parse(line: &str) -> Option<Line> {
    let mut parts = line.split_whitespace();
    let board = parts.next()?.to_owned();
    let bytes = parts.next()?.parse().ok()?;
    let (reads, writes) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    // Ours are right-aligned behind Linux's.
    let rest = line.get(37..)?.to_owned();
    Some(Line { board, linux: Accesses { bytes, reads, writes }, rest })
}

fn told(Line { board, linux: Accesses { bytes, reads, writes }, rest }: &Line) -> String {
    format!("{board:<10} {bytes:>5} {reads:>13} {writes:>6}{rest}\n")
}

/// Compares the counts of a run with the reviewed ones. There is no check if it counted nothing.
pub(super) fn judge(board: &str, counted: &[Accesses], reviewed: &[Line]) -> Option<Check> {
    if counted.is_empty() {
        return None;
    }
    if is_blessing() {
        let why = "table written: review it and run again";
        return Some(Check::new("accesses", Verdict::Failed, why));
    }
    let own = reviewed.iter().filter(|line| line.board == board);
    let own: Vec<Accesses> = own.map(|line| line.linux).collect();
    let right = own == counted;
    let why = format!("counted {counted:?}; {TABLE} has {own:?}");
    Some(match right {
        true => Check::new("accesses", Verdict::Passed, ""),
        false => Check::new("accesses", Verdict::Failed, why),
    })
}

/// Writes Linux's columns, if that is asked.
pub(super) fn bless(root: &Path, reviewed: &[Line], rows: &[Row]) -> Result<(), String> {
    if !is_blessing() {
        return Ok(());
    }
    let mut lines = reviewed.to_vec();
    for line in &mut lines {
        let own = rows.iter().filter(|row| !row.module && row.board == line.board);
        let mut counted = own.flat_map(|row| &row.said.accesses);
        if let Some(found) = counted.find(|accesses| accesses.bytes == line.linux.bytes) {
            line.linux = *found;
        }
    }
    let path = root.join(TABLE);
    let text = fs::read_to_string(&path).map_err(|e| format!("cannot read {TABLE}: {e}"))?;
    let head = text.lines().next().unwrap_or_default();
    let blessed = lines.iter().map(told).fold(format!("{head}\n"), |text, line| text + &line);
    fs::write(&path, blessed).map_err(|e| format!("cannot write {TABLE}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str =
        "imx6dl         4            29      7              22      1               3      5";

    #[test]
    fn a_line_is_read_and_written() {
        let line = parse(LINE).expect("a line");
        assert_eq!(line.linux, Accesses { bytes: 4, reads: 29.0, writes: 7.0 });
        assert_eq!(told(&line), format!("{LINE}\n"));
    }

    #[test]
    fn other_counts_fail() {
        let reviewed = [parse(LINE).expect("a line")];
        let counted = |reads| [Accesses { bytes: 4, reads, writes: 7.0 }];
        assert_eq!(judge("imx6dl", &[], &reviewed), None);
        for (reads, verdict) in [(29.0, Verdict::Passed), (30.0, Verdict::Failed)] {
            let check = judge("imx6dl", &counted(reads), &reviewed).expect("a check");
            assert_eq!(check.verdict, verdict);
        }
    }
}
