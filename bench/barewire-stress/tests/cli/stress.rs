//! Every promise holds at the wire, and each one that is broken on purpose is seen.

use serde_json::{Value, json};

use super::{Ran, interrupted, run};

const BROKEN: [&str; 7] = [
    "order_violations",
    "interleavings",
    "lost",
    "duplicated",
    "statistics_mismatches",
    "wrong_results",
    "wire_violations",
];

fn stress(arguments: &[&str]) -> Ran {
    let common = ["--bus", "sim:imx8mp", "--messages", "4000", "--json"];
    run(&[&common, arguments].concat())
}

fn number(line: &Value, name: &str) -> u64 {
    line[name].as_u64().unwrap_or_else(|| panic!("{name} of {line}"))
}

#[track_caller]
fn assert_kept(line: &Value) {
    for name in BROKEN {
        assert_eq!(line[name], json!(0), "{name} of {line}");
    }
}

#[test]
fn every_promise_is_kept_with_and_without_faults() {
    for seed in ["1", "2", "3"] {
        for faults in ["0", "0.01"] {
            let line = stress(&["--seed", seed, "--faults", faults]).ok().json();
            assert_kept(&line);
            assert_eq!(number(&line, "messages"), 4000);
            // Every path must have been used often: an unused path breaks no promise.
            let paths = ["prepared", "prepared_message", "sync", "submitted", "enqueued"];
            let more = ["future", "transact", "locked", "try", "called_back"];
            for path in paths.iter().chain(&more) {
                assert!(number(&line["paths"], path) > 50, "{path} of {line}");
            }
            for name in ["cancelled", "busy", "waited", "priority_overtakes"] {
                assert!(number(&line, name) > 20, "{name} of {line}");
            }
            assert_eq!(number(&line, "failed") > 0, faults != "0", "{line}");
            assert!(number(&line, "overtaken_max") <= 16, "the queue's own bound: {line}");
            let settled = ["wire_messages", "failed", "cancelled", "busy"];
            let settled: u64 = settled.iter().map(|name| number(&line, name)).sum();
            assert_eq!(settled, 4000, "{line}");
        }
    }
}

#[test]
fn it_holds_on_other_boards_with_jitter_and_for_any_number_of_contexts() {
    for arguments in [
        ["--bus", "sim:sabrelite", "--contexts", "3", "--faults", "0.3"],
        ["--bus", "sim:imx8mp,jitter-ns=300", "--contexts", "5", "--faults", "0.001"],
        ["--bus", "sim:imx8mp", "--contexts", "64", "--faults", "0"],
        ["--bus", "sim:imx8mp", "--contexts", "1", "--faults", "1"],
    ] {
        let common = ["--messages", "1000", "--json"];
        assert_kept(&run(&[&common[..], &arguments].concat()).ok().json());
    }
}

#[test]
fn what_is_sabotaged_is_seen_in_its_own_field() {
    for (kind, field) in [
        ("reorder", "order_violations"),
        ("interleave", "interleavings"),
        ("lose", "lost"),
        ("duplicate", "duplicated"),
    ] {
        for seed in ["1", "2"] {
            let ran = stress(&["--seed", seed, "--sabotage", kind]).fails(1, "promises broken");
            let line = ran.json();
            assert!(number(&line, field) >= number(&line, "sabotaged"), "{kind}: {line}");
            assert_eq!([&line["sabotaged"], &line["sabotage"]], [&json!(5), &json!(kind)]);
            for other in &BROKEN[..4] {
                assert_eq!(number(&line, other) > 0, *other == field, "{kind}, {other}: {line}");
            }
        }
    }
    // The bus's statistics do not show a controller's false results; comparing them with the wire
    // does.
    let line = stress(&["--sabotage", "lose"]).json();
    assert!(number(&line, "statistics_mismatches") > 0, "{line}");
    let text = run(&["--messages", "4000", "--sabotage", "lose"]).text();
    assert!(text.trim_end().lines().last().unwrap_or("").starts_with("PROMISES BROKEN: lost: 5"));
}

#[test]
fn a_seed_is_a_run() {
    let without_times = |seed: &str| {
        let mut line = stress(&["--seed", seed, "--faults", "0.01"]).ok().json();
        line["real_ns"] = Value::Null;
        line
    };
    let (one, again, other) = (without_times("7"), without_times("7"), without_times("8"));
    assert_eq!(one, again);
    assert_ne!(one["trace_hash"], other["trace_hash"]);
    let text = run(&["--messages", "1000", "--seed", "7"]).ok().text();
    assert!(text.ends_with("all promises kept\n"), "{text}");
}

#[test]
fn what_cannot_be_stressed_is_refused() {
    for (arguments, part) in [
        (&["--contexts", "0"][..], "--contexts 0: 1 to 64"),
        (&["--contexts", "65"], "--contexts 65: 1 to 64"),
        (&["--messages", "7"], "at least one for each of the 8 contexts"),
        (&["--bus", "qemu:sabrelite"], "qemu:sabrelite has neither; name a simulated board"),
        (&["--bus", "spidev:/dev/spidev0.0"], "name a simulated board"),
        (&["--bus", "sim:imx8m"], "did you mean \"imx8mp\"?"),
        (&["--bus", "sim:imx8mp,flash=x"], "leave flash, protect and fault out"),
    ] {
        run(arguments).fails(2, part);
    }
    for (arguments, part) in [
        (["--faults", "1.1"], "a rate is a number from 0 to 1"),
        (["--faults", "-0.1"], "'-0'"),
        (["--faults", "NaN"], "a rate is a number from 0 to 1"),
        (["--messages", "many"], "not a number"),
        (["--sabotage", "los"], "'lose'"),
    ] {
        let ran = run(&arguments);
        assert!(ran.code == Some(2) && ran.stderr.contains(part), "{part}: {ran:?}");
    }
}

#[test]
fn ctrl_c_ends_it_with_a_report_of_what_was_done() {
    let ran = interrupted(&["--messages", "100M", "--json"]);
    let line = ran.fails(130, "stopped as asked").json();
    assert_kept(&line);
    assert!((1..100_000_000).contains(&number(&line, "messages")), "{line}");
}

#[test]
fn every_promise_is_kept_with_a_worker_and_with_inheritance() {
    let modes: [&[&str]; 3] =
        [&["--pump", "worker"], &["--inheritance"], &["--inheritance", "--pump", "worker"]];
    for mode in modes {
        for seed in ["1", "2"] {
            let line = stress(&[mode, &["--seed", seed, "--faults", "0.01"]].concat()).ok().json();
            assert_kept(&line);
            assert!(number(&line, "cancelled") > 20, "{line}");
        }
    }
}

#[test]
fn every_controller_keeps_them() {
    for board in [
        "beaglebone",
        "highbank",
        "imx6dl",
        "rpi3",
        "rpi5",
        "sabrelite",
        "sama5d36",
        "unleashed",
        "zynq",
    ] {
        let bus = format!("sim:{board}");
        let line = run(&["--bus", &bus, "--messages", "2000", "--json"]).ok().json();
        assert_kept(&line);
    }
}

#[test]
fn the_rig_has_help_of_its_own() {
    assert!(run(&["--help"]).ok().text().contains("--sabotage"));
}

#[test]
fn high_costs_take_longer() {
    let [used, high] = ["used", "high"].map(|costs| {
        let line = run(&["--messages", "200", "--costs", costs, "--json"]).ok().json();
        assert_eq!(line["costs"], json!(costs));
        number(&line, "virtual_ns")
    });
    assert!(used < high, "{used} {high}");
    let usual = run(&["--messages", "200", "--json"]).ok().json();
    assert_eq!((&usual["costs"], number(&usual, "virtual_ns")), (&json!("used"), used));
}
