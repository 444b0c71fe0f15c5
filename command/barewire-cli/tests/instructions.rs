//! Exact instruction counts of the bus paths: a reviewed table that gates.
//!
//! Only the optimised build under the pinned compiler on x86-64 has reproducible counts; elsewhere
//! the test says that it skipped. Set `BAREWIRE_BLESS=1` to write the table anew; the difference is
//! then for a reviewer.

mod program;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use barewire_sim::bring_up::{INSTRUCTIONS_PER_MESSAGE, INSTRUCTIONS_PER_TRANSFER};
use barewire_sim::scenario::can_echo;
use program::program;

const HEADER: &str = "\
Instructions per operation, null controller, counted by callgrind; x86-64, release, pinned compiler.
floor is bare with a compare-and-swap and an exchange around it; ..._in_100 are per transfer.
async_batch_32: a message of 32 that are queued, run, and asked for their results.
ecspi_...: a prepared 4-byte access through that driver, its registers ready at once.
process_shared: a sync under the lock between processes.
prepared_6, regmap_read: 6 bytes prepared, and the same as a register read by name.
can_...: an MCP2518FD's classic frame of 8 bytes, two messages to receive it and one to send it.
Last: a message through each driver by its bytes, or by those of its transfers under one chip select.

";

/// Operations without a count: work of several threads.
const NOT_COUNTED: [&str; 2] = ["worker_hop", "contended_"];

/// Why this machine's counts cannot be compared with the reviewed ones, or `None` if they can.
fn why_not() -> Option<String> {
    if std::env::var_os("BAREWIRE_PROGRAMS").is_none() {
        let step = "cargo xtask ci --step counted";
        return Some(format!("instructions are counted in programs of profile `counted`: {step}"));
    }
    if !cfg!(target_arch = "x86_64") {
        return Some("instruction counts are reviewed for x86-64 only".into());
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Some("instruction counts need valgrind (sudo apt-get install valgrind)".into());
    }
    let rustc = Command::new("rustc").arg("--version").output().ok()?;
    let version = String::from_utf8_lossy(&rustc.stdout).into_owned();
    let number = version.split_whitespace().nth(1).unwrap_or_default();
    let pinned = include_str!("../../../rust-toolchain.toml");
    (!pinned.contains(&format!("channel = \"{number}\"")))
        .then(|| format!("instruction counts are reviewed for the pinned compiler, not {number}"))
}

/// A line for each driver and path; a column for each message.
fn lengths(report: &serde_json::Value, table: &mut String) {
    let rows = report["lengths"].as_array().expect("counts by length");
    let name = |row: &serde_json::Value, key: &str| row[key].as_str().expect("a name").to_owned();
    let line = |row: &serde_json::Value| (name(row, "driver"), name(row, "path"));
    let lines: Vec<_> = rows.chunk_by(|a, b| line(a) == line(b)).collect();
    assert!(lines.len() >= 16, "eight drivers, two paths");
    let _ = write!(table, "\n{:<17}", "");
    for row in lines[0] {
        let _ = write!(table, " {:>7}", name(row, "message"));
    }
    for rows in lines {
        let (driver, path) = line(&rows[0]);
        let _ = write!(table, "\n{driver:<8} {path:<8}");
        for row in rows {
            let _ = write!(table, " {:>7}", row["instructions"].as_u64().expect("a number"));
        }
        let count = |message: &str| {
            let row = rows.iter().find(|row| row["message"] == message).expect("it is there");
            row["instructions"].as_u64().expect("a number")
        };
        // A message that exceeds one word of the FIFO costs no jump. DW_apb_ssi's second frame is a
        // call, and more than that for 5 to 7 bytes, for which the block is set up anew.
        if driver != "dw_ssi" {
            assert!(count("8") <= count("4") + 80, "{driver} {path}\n{table}");
        }
    }
    table.push('\n');
}

#[test]
fn instructions_are_as_reviewed_and_within_their_bars() {
    if let Some(why) = why_not() {
        println!("SKIPPED: {why}");
        return;
    }
    let output = Command::new(program(env!("CARGO_BIN_EXE_barewire")))
        .args(["bench", "--json", "--rounds", "1"])
        .output()
        .expect("the command runs");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON line");
    let rows = report["rows"].as_array().expect("rows");
    let mut table = String::from(HEADER);
    let drivers = report["drivers"].as_array().expect("drivers");
    for row in rows.iter().chain(drivers) {
        let op = row["op"].as_str().expect("a name");
        if NOT_COUNTED.iter().any(|&begin| op.starts_with(begin)) {
            assert!(row["instructions"].is_null(), "{op} is not to be counted");
            continue;
        }
        let count = row["instructions"]
            .as_u64()
            .unwrap_or_else(|| panic!("not counted: {}", String::from_utf8_lossy(&output.stderr)));
        let _ = writeln!(table, "{op:<26}{count:>6}");
    }
    lengths(&report, &mut table);
    let count = |op: &str| {
        let mut all = rows.iter().chain(drivers);
        let row = all.find(|row| row["op"] == op).expect("the operation is there");
        row["instructions"].as_u64().expect("counted above")
    };
    assert!(
        count("floor") <= count("bare") + 15,
        "the floor does more than add two atomics to bare\n{table}"
    );
    let statistics = count("sync_with_statistics") - count("sync");
    assert!(statistics <= 28, "statistics\n{table}");
    assert!(count("prepared") <= 106, "prepared\n{table}");
    assert!(count("sync") <= 140, "sync\n{table}");
    assert!(count("async_batch_32") <= 240, "async_batch_32\n{table}");
    assert!(count("regmap_read") <= count("prepared_6") + 20, "regmap_read\n{table}");

    // The simulated echo charges the counted instructions.
    let message = INSTRUCTIONS_PER_MESSAGE;
    let two_transfers = message + INSTRUCTIONS_PER_TRANSFER;
    let received = can_echo::INSTRUCTIONS_PER_RECEIVED + message + two_transfers;
    let sent = can_echo::INSTRUCTIONS_PER_SENT + two_transfers;
    for (op, charged) in [("can_receive", received), ("can_transmit", sent)] {
        assert!(count(op).abs_diff(charged) <= 20, "{op}: charged {charged}\n{table}");
    }

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/instructions.txt");
    if std::env::var_os("BAREWIRE_BLESS").is_some() {
        std::fs::write(&path, &table).expect("the snapshot is writable");
        panic!("{}: snapshot written: review and run again", path.display());
    }
    let reviewed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(table == reviewed, "not as reviewed in {}:\n{table}", path.display());
}
