//! `barewire lab gain`: of experiments, of traces, as a table, as JSON and as a page.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::command::run;
use super::lab::TRACE;

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// The measure `name` of the first message.
#[track_caller]
fn measure<'v>(gain: &'v Value, name: &str) -> &'v Value {
    let all = gain["messages"][0]["measures"].as_array().expect("measures");
    all.iter().find(|one| one["measure"] == name).unwrap_or_else(|| panic!("no {name} in {gain}"))
}

#[test]
fn each_board_of_a_user_is_told_what_saves_what_and_what_is_not_for_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("mine.toml");
    for (board, kernel, hz, lengths, saves, is_not) in [
        ("rpi3", "4.9", 8_000_000, "[1]", "user-polled", "native-select"),
        ("rpi3", "4.9", 8_000_000, "[2]", "batch-no-delay", "stay-awake"),
        ("rpi3", "4.9", 3_000_000, "[3]", "user-polled", "polling-limit"),
        ("imx6dl", "4.1", 10_000_000, "[256]", "kernel-upgrade", "polling-limit"),
        ("beaglebone", "4.4", 2_000_000, "[4]", "kernel-upgrade", "module"),
        ("imx8mp", "6.12", 16_000_000, "[4]", "module", "kernel-upgrade"),
    ] {
        let content = format!(
            "board = \"{board}\"\nkernel = \"{kernel}\"\nspeed_hz = {hz}\n[[message]]\nname = \"read\"\nlengths = {lengths}\n"
        );
        fs::write(&file, content).expect("written");
        let told = run(&["lab", "gain", text(&file)]).ok().text();
        assert!(told.lines().all(|line| line.chars().count() <= 120), "{told}");
        let line = |name: &str| {
            let begin = format!("  {name} ");
            let found = told.lines().find(|line| line.starts_with(&begin));
            found.unwrap_or_else(|| panic!("no {name} in {told}"))
        };
        assert!(line(saves).contains("  saves  "), "{told}");
        assert!(line(is_not).contains("not here: "), "{told}");
        assert!(told.contains("\n  Most alone: "), "{told}");
        let gain = run(&["lab", "gain", text(&file), "--json"]).ok().json();
        assert_eq!(measure(&gain, saves)["verdict"], "saves");
        assert_eq!(measure(&gain, is_not)["verdict"], "not-here");
        assert!(
            measure(&gain, is_not)["why"].is_string()
                && measure(&gain, is_not)["saves_us"].is_null()
        );
    }
}

#[test]
fn costs_of_the_user_move_it_and_the_page_has_a_bar_for_each_measure_taken() {
    let dir = tempfile::tempdir().expect("a directory");
    let [file, costs, page] =
        ["mine.toml", "costs.toml", "gain.html"].map(|name| dir.path().join(name));
    let content = "board = \"imx8mp\"\nkernel = \"6.1\"\nspeed_hz = 16_000_000\n[[message]]\nname = \"read\"\nlengths = [4]\n\
                   published.call = 15.0\n";
    fs::write(&file, content).expect("written");
    let gain = ["lab", "gain", text(&file)];
    let told = run(&gain).ok().text();
    assert!(
        told.contains("published 15 us\n  Published is not in the band: fit the costs first"),
        "{told}"
    );
    run(&["lab", "fit", "--experiment", text(&file), "--out", text(&costs)]).ok();
    let with = [&gain[..], &["--costs", text(&costs), "--json", "--out", text(&page)]].concat();
    let ran = run(&with).ok();
    assert!(ran.stderr.contains("written: "), "{ran:?}");
    let fitted = ran.json();
    let message = &fitted["messages"][0];
    let today = message["today_us"]["used"].as_f64().expect("a number");
    assert!((today / 15.0 - 1.0).abs() < 0.1, "{message}");
    let html = fs::read_to_string(&page).expect("a page");
    let taken = message["measures"].as_array().expect("measures");
    let taken: Vec<_> = taken.iter().filter(|one| !one["together_us"].is_null()).collect();
    assert!(!taken.is_empty(), "{message}");
    for one in taken {
        let bar =
            format!("read-and {}:", one["measure"].as_str().expect("a name").replace('-', " "));
        assert!(html.contains(&bar), "{bar}");
    }
    assert!(html.contains("read-today: simulated") && html.contains("<strong>Simulated</strong>"));
    assert!(!html.contains("<script"), "it has no script");
    run(&[&gain[..], &["--out", text(&file)]].concat()).misused("would overwrite");
    let shown = run(&[&gain[..], &["-o", "-"]].concat()).ok().text();
    assert!(shown.starts_with("<!doctype html>") && shown.ends_with("</html>\n"), "{shown}");
}

#[test]
fn a_trace_is_told_what_next_and_becomes_an_experiment() {
    let dir = tempfile::tempdir().expect("a directory");
    let [trace, file] = ["trace.txt", "mine.toml"].map(|name| dir.path().join(name));
    fs::write(&trace, TRACE).expect("written");
    let told = run(&["lab", "fit", "--trace", text(&trace)]).ok().text();
    let next =
        format!("  barewire lab gain --trace {} --board imx8mp --kernel 6.1\n", text(&trace));
    assert!(told.contains(&next), "{told}");
    let of =
        ["--trace", text(&trace), "--board", "imx8mp", "--kernel", "6.1", "--speed-hz", "4000000"];
    let made = run(&[&["lab", "new", text(&file)][..], &of].concat()).ok().text();
    assert!(made.contains("barewire lab gain"), "{made}");
    let by_file = run(&["lab", "gain", text(&file), "--json"]).ok().json();
    let by_trace = run(&[&["lab", "gain", "--json"][..], &of].concat()).ok().json();
    assert_eq!(by_file["messages"], by_trace["messages"]);
    assert_eq!(
        (&by_trace["client"], &by_trace["kernel"]),
        (&"in-kernel".into(), &"Linux 6.1".into())
    );
    // Two messages of 26 and 30 us.
    assert_eq!(by_trace["messages"][0]["published_us"], 28.0);
    run(&["lab", "gain", "--trace", text(&trace)]).misused("--board");
    run(&["lab", "gain"]).misused("FILE.toml");
    let zynq = [
        "lab",
        "gain",
        "--trace",
        text(&trace),
        "--board",
        "zynq",
        "--kernel",
        "6.1",
        "--speed-hz",
        "4000000",
    ];
    run(&zynq).misused("whose kernel driver is not in the lab");
    fs::write(&trace, "nothing of a trace\n").expect("written");
    run(&[&["lab", "gain"][..], &of].concat()).fails(1, "no whole message");
}

#[test]
fn a_capture_says_what_would_save() {
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/adc-3.6MHz.vcd");
    let gain = ["lab", "gain", "--capture", text(&capture), "--board", "rpi3", "--kernel", "6.1"];
    let told = run(&[&gain[..], &["--json"]].concat()).ok().json();
    let message = &told["messages"][0];
    assert_eq!(
        (&told["client"], &message["name"], &message["lengths"]),
        (&"in-kernel".into(), &"m-cs0-3".into(), &serde_json::json!([3]))
    );
    assert_eq!(told["messages"].as_array().map(Vec::len), Some(1));
    let hz = message["speed_hz"].as_f64().expect("a clock");
    assert!((3.5e6..3.7e6).contains(&hz), "{hz}");
    assert_eq!(measure(&told, "module-api")["verdict"], "saves");
    run(&gain[..4]).misused("--board");
    run(&[&gain[..], &["--trace", text(&capture)]].concat()).misused("--trace");
    let dir = tempfile::tempdir().expect("a directory");
    let none = dir.path().join("none.vcd");
    fs::write(&none, "nothing of a capture\n").expect("written");
    run(&["lab", "gain", "--capture", text(&none), "--board", "rpi3", "--kernel", "6.1"])
        .fails(1, "none.vcd");
}

#[test]
fn a_trace_that_a_kernel_wrote_says_what_would_save() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces/imx8mp_linux61_dd.txt");
    if !path.exists() {
        println!("SKIPPED: a kernel's trace: it is not beside this repository");
        return;
    }
    let gain =
        ["lab", "gain", "--trace", text(&path), "--board", "imx8mp", "--kernel", "6.1", "--json"];
    let gain = run(&gain).ok().json();
    assert_eq!(gain["messages"][0]["lengths"], serde_json::json!([1, 4, 1024]));
    assert_eq!(measure(&gain, "polling-limit")["verdict"], "saves");
    assert_eq!(measure(&gain, "user-polled")["verdict"], "not-here");
}
