//! `scope` of kernels' traces, alone and with a capture.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::command::{run, text};
use super::lab::TRACE;

/// The example's three messages, as perf script has them 100 s later: in nanoseconds its first clock, its last, and the bytes.
const SENT: [(u64, u64, &str); 3] =
    [(1_094, 8_234, "01-80-00"), (9_271, 16_411, "01-90-00"), (17_448, 24_588, "01-a0-00")];

fn traced(sent: &[(u64, u64, &str)]) -> String {
    let mut text = String::new();
    for (first, last, tx) in sent {
        let mut line = |ns: u64, event: &str| {
            let _ = writeln!(text, "app 7/7 [002] 100.{ns:09}: spi:{event}");
        };
        line(first - 700, "spi_message_submit: spi0.0 0xffff1");
        line(first - 400, "spi_message_start: spi0.0 0xffff1");
        let data = format!("spi0.0 0xffff2 len=3 tx=[{tx}] rx=[]");
        line(first - 100, &format!("spi_transfer_start: {data}"));
        line(last + 60, &format!("spi_transfer_stop: {data}"));
        line(last + 70, "spi_message_done: spi0.0 0xffff1 len=3/3");
    }
    text
}

#[test]
fn a_trace_is_told_from_a_capture_and_has_the_times_of_its_events() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = text(&dir.path().join("trace.txt"));
    fs::write(&path, TRACE).expect("written");
    let table = run(&["scope", &path]).ok().text();
    for part in [
        "a kernel's trace, 60.0 us, times in 1.00 us\n",
        "  note: line 8: it is no line of a tracer\n",
        "\nspi0.0  1 byte: 2 messages, 10.0 % of the time\n",
        "  submit to start              4.00 us     8.00 us     8.00 us\n",
    ] {
        assert!(table.contains(part), "{part:?} is not in {table}");
    }
    let all = run(&["scope", &path, "--messages", "--json"]).ok().text();
    let all: Vec<Value> =
        all.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(
        (all.len(), &all[1]["submit_ns"], &all[1]["tx"]),
        (3, &json!(1_000_030_000), &json!(["03"]))
    );
    let kind = &all[2]["kinds"][0];
    assert_eq!(kind["done_to_submit_ns"], json!({"count": 1, "p50": 4e3, "p99": 4e3, "max": 4e3}));
    assert_eq!((&kind["done_to_waiter_ns"], &all[2]["meaning"]), (&Value::Null, &json!([])));
    let csv = run(&["scope", &path, "--csv"]).ok().text();
    assert!(csv.contains("\nspi0.0,1,2,0.100000,submit_to_start_ns,2,4000,8000,8000\n"), "{csv}");
    run(&["scope", &path, "--mode", "0"]).misused("--mode is for captures");
    fs::write(&path, "# tracer: nop\n").expect("written");
    run(&["scope", &path]).fails(1, "without a whole message in its 1 lines");
}

#[test]
fn a_capture_and_its_trace_are_one() {
    let example = text(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/adc.vcd"));
    let dir = tempfile::tempdir().expect("a directory");
    let path = text(&dir.path().join("trace.txt"));
    fs::write(&path, traced(&SENT)).expect("written");
    let of_page = example.replace("adc.vcd", "adc-trace.txt");
    assert_eq!(fs::read_to_string(of_page).expect("an example"), traced(&SENT));
    let both = ["scope", &example, "--trace", &path];
    let all = run(&[&both[..], &["--messages", "--json"]].concat()).ok().text();
    let all: Vec<Value> =
        all.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    let clock = &all[3]["clock"];
    let (offset, residual) = (number(&clock["offset_ns"]), number(&clock["residual_ns"]));
    assert!((offset + 100e9).abs() <= residual && residual < 300.0, "{clock}");
    for (line, (first, last, _)) in all[..3].iter().zip(SENT) {
        assert_eq!((&line["device"], &line["select"]), (&json!("spi0.0"), &json!("cs0")));
        let close = |name: &str, truth: f64| {
            assert!((number(&line[name]) - truth).abs() <= residual, "{name}: {line}, {truth}");
        };
        close("queue_ns", 300.0);
        close("begin_ns", 400.0);
        close("end_ns", 70.0);
        close("wire_ns", 24.0 * 280.0);
        close("pauses_ns", (last - first) as f64 - 24.0 * 280.0);
    }
    assert_eq!((&all[0]["gap_ns"], number(&all[1]["gap_ns"])), (&Value::Null, 1_037.0));
    let table = run(&both).ok().text();
    for part in
        ["joined with", "  spi0.0 is cs0\n", "\nWhat it means\n  cs0  clock-after-word (likely)"]
    {
        assert!(table.contains(part), "{part:?} is not in {table}");
    }
    let csv = run(&[&both[..], &["--messages", "--csv"]].concat()).ok().text();
    assert!(
        csv.lines().nth(1).is_some_and(|line| line.starts_with("0,spi0.0,cs0,3,889,")),
        "{csv}"
    );
    fs::write(&path, traced(&SENT).replace("len=3", "len=4").replace("4/3", "4/4"))
        .expect("written");
    run(&both).fails(1, "the wire has messages of 3 bytes, the trace selections of 4 bytes");
    run(&["scope", &path, "--trace", &path]).fails(1, "a kernel's trace");
    run(&["scope", &example, "--trace", &example]).fails(1, "no kernel's trace");
}

#[test]
fn a_trace_that_a_kernel_wrote_is_read_whole() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces/imx8mp_linux61_dd.txt");
    if !path.exists() {
        println!("SKIPPED: a kernel's trace: it is not beside this repository");
        return;
    }
    let report = run(&["scope", &text(&path), "--json"]).ok().json();
    assert_eq!((&report["messages"], &report["notes"]), (&json!(25), &json!([])));
    assert_eq!(report["kinds"][1]["transfers"], json!([1, 4, 1_024]));
}
