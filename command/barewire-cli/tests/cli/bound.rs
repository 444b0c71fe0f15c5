//! `barewire bound`.

use serde_json::{Value, json};

use super::command::{Dir, Has, run};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/canecho.toml");

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn the_example_has_bounds_that_an_adversary_comes_close_to_and_does_not_exceed() {
    let args = ["bound", EXAMPLE, "--bus", "sim:imx8mp", "--schedules", "1000", "--json"];
    let report = run(&args).ok().last_json();
    assert_eq!((&report["simulated"], &report["costs"]), (&json!(true), &json!("high")));
    let tasks = report["tasks"].as_array().expect("a list");
    assert_eq!(tasks.len(), 2);
    for task in tasks {
        let (bound, seen) = (number(&task["bound_ns"]), number(&task["worst_seen_ns"]));
        assert!(seen <= bound && seen * 100 >= bound * 80, "{task}");
        let terms = task["terms_ns"].as_object().expect("an object");
        let sum: u64 = terms.values().map(number).sum();
        // Each is rounded up.
        assert!(sum >= bound && sum <= bound + 7, "{task}");
        let largest = terms.values().map(number).max();
        assert_eq!(Some(number(&terms[task["largest"].as_str().expect("a name")])), largest);
        assert!(number(&task["change"]["bound_ns"]) < bound, "{task}");
    }
    let again = run(&args).ok().last_json();
    assert_eq!(again, report, "the same seed");
}

#[test]
fn the_table_names_each_task_and_its_terms() {
    let text = run(&["bound", EXAMPLE, "--bus", "sim:rpi3"]).ok().text();
    text.has(&["can: chip select 1, prepared, priority 7", "at most", "blocking", "alone"]);
    text.has(&["the largest"]);
    assert!(!text.contains("worst seen"), "{text}");
}

/// A traffic of one task, `more` behind it.
fn traffic(directory: &Dir, more: &str) -> String {
    let task = "[[task]]\nname = \"a\"\nchip_select = 0\nspeed_hz = 1000000\npath = \"sync\"\nmessages = [[4]]\n";
    directory.file("traffic.toml", format!("{task}{more}"))
}

#[test]
fn a_bus_that_is_never_idle_has_no_bound() {
    let directory = Dir::new();
    let path = traffic(&directory, "period_us = 10\n");
    let report = run(&["bound", &path, "--bus", "sim:imx8mp", "--json"]).ok().last_json();
    let task = &report["tasks"][0];
    assert_eq!(task["bound_ns"], Value::Null);
    assert!(task["unbounded"].as_str().expect("why").contains("% of all time"), "{task}");
}

#[test]
fn what_it_cannot_be_made_of_is_named() {
    let directory = Dir::new();
    let good = traffic(&directory, "period_us = 1000\n");
    run(&["bound", &good, "--bus", "null:"]).fails(2, "--bus sim:BOARD");
    run(&["bound", &good, "--bus", "sim:imx9"]).fails(2, "imx9");
    run(&["bound", "/nowhere.toml", "--bus", "sim:imx8mp"]).fails(1, "/nowhere.toml");
    let bad = traffic(&directory, "period_us = 1000\nprority = 3\n");
    run(&["bound", &bad, "--bus", "sim:imx8mp"]).fails(2, "unknown field `prority`");
    let slow = traffic(&directory, "period_us = 1000\n");
    let text = std::fs::read_to_string(&slow).expect("a file").replace("1000000", "0");
    std::fs::write(&slow, text).expect("a file");
    run(&["bound", &slow, "--bus", "sim:imx8mp"]).fails(1, "task a: its device cannot be opened");
}
