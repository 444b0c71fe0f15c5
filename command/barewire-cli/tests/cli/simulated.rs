//! The bench's simulated section: a reviewed table.
//!
//! Set `BAREWIRE_BLESS=1` to write it anew, then review the difference.

use std::path::Path;

use crate::command::{array, barewire};

fn bench(arguments: &[&str]) -> String {
    let output = barewire(&[])
        .args(["bench", "--rounds", "1", "--no-instructions"])
        .args(arguments)
        .output()
        .expect("the command runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn simulated_times_are_as_reviewed() {
    let text = bench(&[]);
    let begin = text.find("Simulated on imx8mp").expect("the section is there");
    let table = &text[begin..];
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/simulated.txt");
    if std::env::var_os("BAREWIRE_BLESS").is_some() {
        std::fs::write(&path, table).expect("the snapshot is writable");
        panic!("{}: snapshot written: review and run again", path.display());
    }
    let reviewed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(table == reviewed, "not as reviewed in {}:\n{table}", path.display());
}

#[test]
fn the_json_says_that_it_is_simulated_and_has_every_row() {
    let report: serde_json::Value = serde_json::from_str(&bench(&["--json"])).expect("one line");
    assert_eq!(report["simulated"]["simulated"], true);
    assert_eq!(report["simulated"]["profile"], "imx8mp");
    let rows = array(&report, "rows").iter();
    let ops: Vec<&str> = rows.filter_map(|row| row["op"].as_str()).collect();
    let known = "async_batch_32 sync_with_statistics worker_hop process_shared contended_1 contended_2 \
                 contended_4 contended_8";
    for op in known.split(' ') {
        assert!(ops.contains(&op), "{op} is missing among {ops:?}");
    }
    let of =
        |op: &str| &report["rows"][ops.iter().position(|&other| other == op).expect("is there")];
    assert!(of("contended_2")["least_share"].is_number());
    assert!(of("sync").get("least_share").is_none());
}
