//! `scope` of kernels' traces, alone and with a capture.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use super::command::{Dir, Has, array, example, has_fields, kernels_trace, run};
use super::lab::{TRACE, number};

/// The example's three messages, as perf script has them 100 s later: in nanoseconds its first clock, its last, and the bytes.
const SENT: [(u64, u64, &str); 3] =
    [(1_094, 8_234, "01-80-00"), (9_271, 16_411, "01-90-00"), (17_448, 24_588, "01-a0-00")];

fn traced(sent: &[(u64, u64, &str)]) -> String {
    queued(sent, |_| 300)
}

/// The same with another time in the queue, of each message.
fn queued(sent: &[(u64, u64, &str)], queue_ns: impl Fn(u64) -> u64) -> String {
    let mut text = String::new();
    for (nth, (first, last, tx)) in (0..).zip(sent) {
        let mut line = |ns: u64, event: &str| {
            let _ = writeln!(text, "app 7/7 [002] 100.{ns:09}: spi:{event}");
        };
        line(first - 400 - queue_ns(nth), "spi_message_submit: spi0.0 0xffff1");
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
    let dir = Dir::new();
    let path = dir.file("trace.txt", TRACE);
    let table = run(&["scope", &path]).ok().text();
    table.has(&[
        "a kernel's trace, 60.0 us, times in 1.00 us\n",
        "  note: line 8: it is no line of a tracer\n",
        "\nspi0.0  1 byte: 2 messages, 10.0 % of the time\n",
        "  submit to start              4.00 us     8.00 us     8.00 us\n",
    ]);
    let (all, report) = run(&["scope", &path, "--messages", "--json"]).ok().json_lines();
    assert_eq!(all.len(), 2);
    has_fields(&all[1], &json!({"submit_ns": 1_000_030_000, "tx": ["03"]}));
    let kind = &report["kinds"][0];
    assert_eq!(kind["done_to_submit_ns"], json!({"count": 1, "p50": 4e3, "p99": 4e3, "max": 4e3}));
    assert_eq!((&kind["done_to_waiter_ns"], &report["meaning"]), (&Value::Null, &json!([])));
    let csv = run(&["scope", &path, "--csv"]).ok().text();
    assert!(csv.contains("\nspi0.0,1,2,0.100000,submit_to_start_ns,2,4000,8000,8000\n"), "{csv}");
    run(&["scope", &path, "--mode", "0"]).misused("--mode is for captures");
    fs::write(&path, "# tracer: nop\n").expect("written");
    run(&["scope", &path]).fails(1, "without a whole message in its 1 lines");
}

#[test]
fn a_capture_and_its_trace_are_one() {
    let capture = example("adc.vcd");
    let dir = Dir::new();
    let path = dir.file("trace.txt", traced(&SENT));
    let of_page = capture.replace("adc.vcd", "adc-trace.txt");
    assert_eq!(fs::read_to_string(of_page).expect("an example"), traced(&SENT));
    let both = ["scope", &capture, "--trace", &path];
    let (all, report) = run(&[&both[..], &["--messages", "--json"]].concat()).ok().json_lines();
    let clock = &report["clock"];
    let (offset, residual) = (number(&clock["offset_ns"]), number(&clock["residual_ns"]));
    assert!((offset + 100e9).abs() <= residual && residual < 300.0, "{clock}");
    for (line, (first, last, _)) in all.iter().zip(SENT) {
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
    table.has(&[
        "joined with",
        "  spi0.0 is cs0\n",
        "\nWhat it means\n  cs0  clock-after-word (likely)",
    ]);
    let csv = run(&[&both[..], &["--messages", "--csv"]].concat()).ok().text();
    csv.has(&["\n0,spi0.0,cs0,3,889,"]);
    // A chip's names, as of the capture alone.
    let named = [&both[..], &["--chip", "mcp3008"]].concat();
    let (all, report) = run(&[&named[..], &["--messages", "--json"]].concat()).ok().json_lines();
    assert_eq!([&all[1]["kind"], &all[1]["detail"]], ["single-ended 1", "518"]);
    let kinds = array(&report, "kinds").iter();
    let kinds: Vec<_> = kinds.map(|kind| json!([kind["kind"], kind["messages"]])).collect();
    assert_eq!(kinds, [0, 1, 2].map(|nth| json!([format!("single-ended {nth}"), 1])));
    let table = run(&[&named[..], &["--messages"]].concat()).ok().text();
    table.has(&[
        "  wire  6.72 us, 84.9 %  single-ended 2 528\n",
        "\nspi0.0  3 bytes (single-ended 2): 1 message; wire",
    ]);
    let csv = run(&[&named[..], &["--csv"]].concat()).ok().text();
    assert!(csv.contains(",wire_ns,1,6720,6720,6720,single-ended 2\n"), "{csv}");
    let csv = run(&[&named[..], &["--csv", "--messages"]].concat()).ok().text();
    assert!(csv.ends_with(",single-ended 2,528\n"), "{csv}");
    fs::write(&path, traced(&SENT).replace("len=3", "len=4").replace("4/3", "4/4"))
        .expect("written");
    run(&both).fails(1, "the wire has messages of 3 bytes, the trace selections of 4 bytes");
    run(&["scope", &path, "--trace", &path]).fails(1, "a kernel's trace");
    run(&["scope", &capture, "--trace", &capture]).fails(1, "no kernel's trace");
}

#[test]
fn a_longer_queue_is_found_with_its_size_and_nothing_in_equal_traces() {
    let dir = Dir::new();
    let sent: Vec<_> = (0..24_u64)
        .map(|nth| (nth * 20_000 + 2_000, nth * 20_000 + 9_140 + nth % 4 * 10, "01-80-00"))
        .collect();
    let file = |name: &str, queue_ns: &dyn Fn(u64) -> u64| {
        let path = dir.path(name);
        fs::write(&path, queued(&sent, queue_ns)).expect("written");
        path
    };
    // The same times in another order are no difference.
    let a = file("a.txt", &|nth| 300 + nth % 5 * 4);
    let same = file("same.txt", &|nth| 300 + (nth + 2) % 5 * 4);
    let b = file("b.txt", &|nth| 650 + nth % 5 * 4);
    let equal = run(&["diff", &a, &same, "--exit-code"]).ok().text();
    assert!(equal.ends_with("no difference seen in 6 figures\n"), "{equal}");
    let report = run(&["diff", &a, &b, "--json"]).ok().json();
    let side = &report["a"];
    has_fields(side, &json!({"format": "trace", "messages": 24, "tick_ns": 1.0, "mode": null}));
    let kind = &report["kinds"][0];
    assert_eq!([&kind["select"], &kind["kind"]], ["spi0.0", "3 bytes"]);
    // Messages are submitted 350 ns earlier, and so end later behind that, and the client pauses less.
    let changed = array(kind, "figures").iter().filter(|figure| figure["found"] == "changed");
    let changed =
        changed.map(|one| (one["figure"].as_str().expect("a name"), one["difference"].clone()));
    let expected = json!({
        "submit_to_start_ns": 350.0, "submit_to_done_ns": 350.0, "done_to_submit_ns": -350.0,
    });
    assert_eq!(changed.collect::<Value>(), expected);
    let table = run(&["diff", &a, &b]).ok().text();
    table.has(&[
        "b.txt: a kernel's trace, 468 us, 24 messages; a tick is 1 ns\n",
        "\nspi0.0  3 bytes: 24 and 24 messages\n                                     A           B\n",
        "\n  submit to start               308 ns      658 ns  +350 ns, +113.6 % (+",
        "\n3 of 6 figures differ\n",
    ]);
    run(&["diff", &a, &b, "--exit-code"]).fails(1, "3 of 6 figures differ");
    run(&["diff", &a, &b, "--clk", "SCK"]).misused("--clk is for captures");
    let capture = example("adc.vcd");
    for mixed in [[&a, &capture], [&capture, &a]] {
        run(&["diff", mixed[0], mixed[1]]).fails(1, "a.txt is a kernel's trace and ");
    }
}

#[test]
fn a_trace_that_a_kernel_wrote_is_read_whole() {
    let Some(path) = kernels_trace() else { return };
    let report = run(&["scope", &path, "--json"]).ok().json();
    assert_eq!((&report["messages"], &report["notes"]), (&json!(25), &json!([])));
    assert_eq!(report["kinds"][1]["transfers"], json!([1, 4, 1_024]));
}
