//! The frozen predictions: well formed, never written anew, and the same on the page that waits for reports.
//!
//! `BAREWIRE_BLESS` has no effect here: a prediction that was wrong stays.

use std::collections::BTreeSet;

use barewire_lab::predict::{frozen, read, today};

const FILE: &str = include_str!("../predictions.csv");
const PAGE: &str = include_str!("../../docs/measured.md");
/// FNV-1a of the file as it was frozen.
const FROZEN: u64 = 0xba1b_ab88_1893_ac9e;

fn names(of: &[barewire_lab::predict::Prediction]) -> BTreeSet<(&str, &str)> {
    of.iter().map(|one| (&*one.board, &*one.figure)).collect()
}

#[test]
fn the_frozen_file_is_never_written_anew() {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = FILE.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    assert_eq!(
        hash, FROZEN,
        "lab/predictions.csv has changed ({hash:#x}): take it back. A later prediction is another file, with a date of its own"
    );
}

#[test]
fn each_figure_of_each_board_is_predicted_once_in_a_range() {
    let all = frozen();
    assert_eq!(names(&all).len(), all.len(), "one is there twice");
    let boards: BTreeSet<&str> = all.iter().map(|one| &*one.board).collect();
    let figures: BTreeSet<&str> = all.iter().map(|one| &*one.figure).collect();
    assert_eq!(boards.len() * figures.len(), all.len(), "one is missing");
    for one in &all {
        let band = one.band;
        assert!(0.0 < band.low && band.low <= band.used && band.used <= band.high, "{one:?}");
        assert!(["ns", "us", "1/s"].contains(&&*one.unit), "{one:?}");
        assert!(["any", "after idle", "in a loop"].contains(&&*one.regime), "{one:?}");
        assert!(!one.command.is_empty(), "{one:?}");
    }
    let head: Vec<&str> = FILE.lines().take_while(|line| line.starts_with('#')).collect();
    let origin = head.iter().find_map(|line| line.strip_prefix("# Date: 2026-11-29. Commit whose"));
    let hash = origin.and_then(|text| text.strip_prefix(" costs made it: "));
    let hash = hash.and_then(|text| text.get(..12)).expect("a date and a commit");
    assert!(hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{hash}");
}

#[test]
fn a_line_that_is_no_prediction_is_refused_with_its_number() {
    let line = "imx8mp,access-4,us,1,2,3,in a loop,barewire bench";
    let with = |line: &str| read(&format!("# remark\nboard,figure\n{line}\n"));
    assert_eq!(with(line).expect("a line").len(), 1);
    assert!(with("imx8mp,access-4").expect_err("short").starts_with("line 3: 2 fields"));
    assert!(
        with(&line.replace("1,", "inf,")).expect_err("no number").starts_with("line 3: \"inf\"")
    );
}

#[test]
fn the_page_has_every_prediction_as_it_was_frozen_and_no_other() {
    let fields = |line: &'static str| line.split(',').collect::<Vec<_>>();
    let lines = FILE.lines().filter(|line| !line.starts_with('#')).skip(1).map(fields);
    let cell = |one: Vec<&str>| {
        let unit = one[2].replace("us", "µs");
        format!("| `{}` | {}, {unit} | {} ({}–{}) |", one[0], one[1], one[4], one[3], one[5])
    };
    let frozen: BTreeSet<String> = lines.map(cell).collect();
    let (_, table) = PAGE.split_once("\n## The table\n").expect("the page's table");
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    // A row's first three cells; a figure that several people report has several rows.
    let first = |row: &str| row.split_inclusive('|').take(4).collect::<String>();
    let told: BTreeSet<String> = rows.map(first).collect();
    assert_eq!(told, frozen);
}

#[test]
fn what_the_costs_say_today_is_printed_beside_what_was_frozen() {
    if cfg!(debug_assertions) {
        println!(
            "SKIPPED: too slow without optimisation: cargo test --profile models -p barewire-lab --test predictions"
        );
        return;
    }
    let (frozen, today) = (frozen(), today());
    assert_eq!(names(&frozen), names(&today), "the generator answers what was predicted");
    for (then, now) in frozen.iter().zip(&today) {
        let drift = (now.band.used / then.band.used - 1.0) * 100.0;
        // Costs may move: that is no failure, and no reason to touch the file.
        println!(
            "{} {}: {} then, {:.4} now, {drift:+.1} %",
            then.board, then.figure, then.band.used, now.band.used
        );
    }
}
