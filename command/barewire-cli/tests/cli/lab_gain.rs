//! `barewire lab gain`: of experiments, of traces, as a table, as JSON and as a page.

use std::fs;

use serde_json::{Value, json};

use super::command::{Dir, Has, array, example, has_fields, kernels_trace, run, run_line};
use super::lab::TRACE;

/// The measure `name` of the first message.
#[track_caller]
fn measure<'v>(gain: &'v Value, name: &str) -> &'v Value {
    let all = array(&gain["messages"][0], "measures");
    all.iter().find(|one| one["measure"] == name).unwrap_or_else(|| panic!("no {name} in {gain}"))
}

#[test]
fn each_board_of_a_user_is_told_what_saves_what_and_what_is_not_for_it() {
    let dir = Dir::new();
    let file = dir.path("mine.toml");
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
        let told = run(&["lab", "gain", &file]).ok().text();
        assert!(told.lines().all(|line| line.chars().count() <= 120), "{told}");
        let line = |name: &str| {
            let begin = format!("  {name} ");
            let found = told.lines().find(|line| line.starts_with(&begin));
            found.unwrap_or_else(|| panic!("no {name} in {told}"))
        };
        assert!(line(saves).contains("  saves  "), "{told}");
        assert!(line(is_not).contains("not here: "), "{told}");
        assert!(told.contains("\n  Most alone: "), "{told}");
        let gain = run(&["lab", "gain", &file, "--json"]).ok().json();
        assert_eq!(measure(&gain, saves)["verdict"], "saves");
        let is_not = measure(&gain, is_not);
        assert_eq!(is_not["verdict"], "not-here");
        assert!(is_not["why"].is_string() && is_not["saves_us"].is_null(), "{is_not}");
    }
}

#[test]
fn costs_of_the_user_move_it_and_the_page_has_a_bar_for_each_measure_taken() {
    let dir = Dir::new();
    let [file, costs, page] = ["mine.toml", "costs.toml", "gain.html"].map(|name| dir.path(name));
    let content = "board = \"imx8mp\"\nkernel = \"6.1\"\nspeed_hz = 16_000_000\n[[message]]\nname = \"read\"\nlengths = [4]\n\
                   published.call = 15.0\n";
    fs::write(&file, content).expect("written");
    let gain = ["lab", "gain", &file];
    let told = run(&gain).ok().text();
    told.has(&["published 15 us\n  Published is not in the band: fit the costs first"]);
    run(&["lab", "fit", "--experiment", &file, "--out", &costs]).ok();
    let with = [&gain[..], &["--costs", &costs, "--json", "--out", &page]].concat();
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
    run(&[&gain[..], &["--out", &file]].concat()).misused("would overwrite");
    let shown = run(&[&gain[..], &["-o", "-"]].concat()).ok().text();
    assert!(shown.starts_with("<!doctype html>") && shown.ends_with("</html>\n"), "{shown}");
}

#[test]
fn a_trace_is_told_what_next_and_becomes_an_experiment() {
    let dir = Dir::new();
    let [trace, file] = ["trace.txt", "mine.toml"].map(|name| dir.path(name));
    fs::write(&trace, TRACE).expect("written");
    let told = run(&["lab", "fit", "--trace", &trace]).ok().text();
    let next = format!("  barewire lab gain --trace {trace} --board imx8mp --kernel 6.1\n");
    assert!(told.contains(&next), "{told}");
    let of = ["--trace", &trace, "--board", "imx8mp", "--kernel", "6.1", "--speed-hz", "4000000"];
    let made = run(&[&["lab", "new", &file][..], &of].concat()).ok().text();
    assert!(made.contains("barewire lab gain"), "{made}");
    let by_file = run(&["lab", "gain", &file, "--json"]).ok().json();
    let by_trace = run(&[&["lab", "gain", "--json"][..], &of].concat()).ok().json();
    assert_eq!(by_file["messages"], by_trace["messages"]);
    has_fields(&by_trace, &json!({"client": "in-kernel", "kernel": "Linux 6.1"}));
    // Two messages of 26 and 30 us.
    assert_eq!(by_trace["messages"][0]["published_us"], 28.0);
    run(&["lab", "gain", "--trace", &trace]).misused("--board");
    run(&["lab", "gain"]).misused("FILE.toml");
    run_line(&format!("lab gain --trace {trace} --board zynq --kernel 6.1 --speed-hz 4000000"))
        .misused("whose kernel driver is not in the lab");
    fs::write(&trace, "nothing of a trace\n").expect("written");
    run(&[&["lab", "gain"][..], &of].concat()).fails(1, "no whole message");
}

#[test]
fn a_capture_says_what_would_save() {
    let capture = example("adc-3.6MHz.vcd");
    let gain = ["lab", "gain", "--capture", &capture, "--board", "rpi3", "--kernel", "6.1"];
    let told = run(&[&gain[..], &["--json"]].concat()).ok().json();
    let message = &told["messages"][0];
    assert_eq!(told["client"], "in-kernel");
    has_fields(message, &json!({"name": "m-cs0-3", "lengths": [3]}));
    assert_eq!(told["messages"].as_array().map(Vec::len), Some(1));
    let hz = message["speed_hz"].as_f64().expect("a clock");
    assert!((3.5e6..3.7e6).contains(&hz), "{hz}");
    assert_eq!(measure(&told, "module-api")["verdict"], "saves");
    run(&gain[..4]).misused("--board");
    run(&[&gain[..], &["--trace", &capture]].concat()).misused("--trace");
    let dir = Dir::new();
    let none = dir.file("none.vcd", "nothing of a capture\n");
    run(&["lab", "gain", "--capture", &none, "--board", "rpi3", "--kernel", "6.1"])
        .fails(1, "none.vcd");
}

#[test]
fn a_trace_that_a_kernel_wrote_says_what_would_save() {
    let Some(path) = kernels_trace() else { return };
    let gain = format!("lab gain --trace {path} --board imx8mp --kernel 6.1 --json");
    let gain = run_line(&gain).ok().json();
    assert_eq!(gain["messages"][0]["lengths"], json!([1, 4, 1024]));
    assert_eq!(measure(&gain, "polling-limit")["verdict"], "saves");
    assert_eq!(measure(&gain, "user-polled")["verdict"], "not-here");
}
