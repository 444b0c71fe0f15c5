//! `--stats` and `--latency`: the kernel's names, and times that the wire bears out.

use serde_json::json;

use super::command::{Bench, has_fields, noise, run, run_line};

#[test]
fn a_message_is_listed_access_by_access() {
    let xfer = |rest: &[&str]| run(&[&["xfer", "--bus", "sim:imx8mp", "9f000000"], rest].concat());
    let line = xfer(&["--trace", "--json"]).ok().json();
    let accesses = line["accesses"].as_array().expect("a list");
    let counted = |what| line[what].as_u64().expect("a count");
    assert_eq!(accesses.len() as u64, counted("register_reads") + counted("register_writes"));
    let sent = accesses.iter().filter(|it| it["register"] == "TXDATA").collect::<Vec<_>>();
    assert_eq!(sent.len(), 1, "four bytes are a word: {accesses:#?}");
    assert_eq!((&sent[0]["value"], &sent[0]["access"]), (&0x9f00_0000_u32.into(), &"write".into()));
    assert_eq!((&sent[0]["block"], &sent[0]["offset"]), (&"ECSPI".into(), &4.into()));
    let times: Vec<_> = accesses.iter().map(|it| it["at_ns"].as_u64().expect("a time")).collect();
    assert!(times.is_sorted() && times[0] < times[times.len() - 1], "{times:?}");
    let text = xfer(&["--trace"]).ok().text();
    assert!(text.starts_with("ff ef 40 19\n\n       ns block        register\n"), "{text}");
    assert!(text.contains(" ECSPI        TXDATA      <- 9f000000\n"), "{text}");
    assert!(xfer(&["--json"]).ok().json().get("accesses").is_none());
    run(&["xfer", "--bus", "qemu:highbank", "--trace", "9f"]).misused("sim:BOARD");
    run(&["xfer", "--bus", "sim:imx8", "--trace", "9f"]).misused("did you mean");
}

#[test]
fn statistics_are_of_what_was_asked() {
    let line = run_line("xfer --bus sim:imx8mp --stats --json 9f000000 05 00").ok().json();
    let statistics = &line["statistics"];
    let expected = json!({
        "messages": 1, "transfers": 3, "errors": 0, "timedout": 0, "spi_sync": 1,
        "spi_sync_immediate": 1, "spi_async": 0, "bytes": 6, "bytes_rx": 6, "bytes_tx": 6,
        "transfer_bytes_histo_0-1": 2, "transfer_bytes_histo_4-7": 1,
        "transfer_bytes_histo_65536+": 0, "transfers_split_maxsize": 0
    });
    has_fields(statistics, &expected);
    assert_eq!(statistics.as_object().map(|names| names.len()), Some(28));
    assert_eq!(line["latency_ns"], json!(null), "nobody asked");
    let plain = run(&["xfer", "--bus", "sim:imx8mp", "--json", "9f000000"]).ok().json();
    assert!(plain["statistics"].is_null() && plain["latency_ns"].is_null());
    let ran = run(&["xfer", "--bus", "sim:imx8mp", "--stats", "--latency", "9f000000"]).ok();
    let row = |line: &&str| line.trim_start().starts_with("transfer_bytes_histo_4-7 ");
    assert!(ran.stderr.lines().any(|line| row(&line) && line.ends_with(" 1")), "{ran:?}");
    assert!(ran.stderr.contains("latency of 1 message: p50 "), "{ran:?}");
}

#[test]
fn statistics_equal_the_wire_and_no_message_is_faster_than_it() {
    let bench = Bench::new("imx8mp");
    let input = bench.file("in", &noise(8192, 1));
    let line = bench.flash("write", "", &["--stats", "--latency", "--json", &input]).ok().json();
    let number = |name: &str| line["statistics"][name].as_u64().expect(name);
    assert_eq!(Some(number("bytes") * 8), line["bits"].as_u64(), "{line}");
    let latency = |name: &str| line["latency_ns"][name].as_u64().expect(name);
    assert_eq!(latency("count"), number("messages"));
    let times = ["p50", "p90", "p99", "p999", "max"].map(latency);
    assert!(times.is_sorted() && times[0] > 100, "{line}");
    // 4,096 bytes read back at 20 MHz take 1.64 ms.
    assert!((1_638_400..1_700_000).contains(&latency("max")), "{line}");
    let ran = "selftest --bus sim:imx8mp --max-len 64 --stats --latency --json";
    let ran = run_line(ran).ok().json();
    assert_eq!(ran["latency_ns"]["count"], ran["statistics"]["messages"]);
}

#[test]
fn watching_changes_no_virtual_time() {
    let time = |arguments: &[&str]| {
        let id = ["flash", "id", "--bus", "sim:imx8mp", "--json"];
        let line = run(&[&id, arguments].concat()).ok().json();
        line["virtual_ns"].as_u64().expect("virtual_ns")
    };
    assert_eq!(time(&[]), time(&["--stats", "--latency"]));
}
