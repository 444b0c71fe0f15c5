//! `barewire measure`, on simulated boards: costs come out as they went in, and are taken back; what is wrong is told; a signal
//! leaves no half of a result.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::command::{Dir, barewire, interrupted, run, works_for};
use super::lab::{browser, chart, opened};

/// Measures, and reads the JSON file.
#[track_caller]
fn measured(bus: &str, options: &[&str], out: &str) -> Value {
    let all = [&["measure", "--board", bus, "--quick", "--out", out], options].concat();
    run(&all).ok();
    let text = fs::read_to_string(format!("{out}/measured.json")).expect("the file");
    serde_json::from_str(&text).expect("JSON")
}

fn costs(measured: &Value) -> BTreeMap<String, f64> {
    let rows = measured["costs"].as_array().expect("costs").iter();
    rows.map(|row| {
        (row["name"].as_str().expect("a name").into(), row["value"].as_f64().expect("a value"))
    })
    .collect()
}

#[test]
fn the_costs_that_come_out_are_those_that_went_in() {
    let dir = Dir::new();
    let (out, file) = (dir.path("out"), dir.path("in.json"));
    for board in
        ["imx8mp", "rpi3", "rpi5", "beaglebone", "zynq", "highbank", "sama5d36", "unleashed"]
    {
        let bus = format!("sim:{board}");
        let own = costs(&measured(&bus, &[], &out));
        assert_eq!(own.len(), 11, "{board}: {own:?}");
        // Each cost by another factor: one that took another's place would show.
        let factor = |at: usize| 0.6 + 0.13 * at as f64;
        let given: BTreeMap<&str, f64> = own
            .iter()
            .enumerate()
            .map(|(at, (name, value))| (&**name, (value * factor(at)).round()))
            .collect();
        let row = |(name, value): (&&str, &f64)| json!({"name": name, "value": value, "low": value, "high": value});
        let rows: Vec<Value> = given.iter().map(row).collect();
        fs::write(&file, json!({"profile": board, "costs": rows}).to_string()).expect("written");
        let bus = format!("sim:{board},costs={file}");
        let all = measured(&bus, &[], &out);
        let found = costs(&all);
        for (name, &value) in &given {
            let apart = (found[*name] - value).abs();
            // A message that sleeps ends at a tick of the driver's timer, 125 ns on the i.MX 8M.
            let tick = if *name == "irq_thread_ps" { 125e3 } else { 2.0 };
            let out = found[*name];
            assert!(apart <= tick + 1e-3 * value, "{board} {name}: {value} in, {out} out");
        }
        // And with them the simulated board takes what was measured, also in figures that no cost is made of.
        for figure in all["figures"].as_array().expect("figures") {
            let [here, again] =
                ["median", "with_costs"].map(|key| figure[key].as_f64().expect("a time"));
            assert!((again / here - 1.0).abs() < 2e-3, "{board}: {figure}");
        }
    }
}

#[test]
fn the_result_says_what_it_is_and_both_takers_take_it() {
    let dir = Dir::new();
    let out = dir.path("out");
    let all = measured("sim:imx8mp,jitter-ns=100,seed=7", &["--flash"], &out);
    assert_eq!(all["format"], "barewire-measured-1");
    assert_eq!(all["origin"], "simulated");
    assert!(all["provenance"].as_str().is_some_and(|text| text.starts_with("simulated")), "{all}");
    assert_eq!((&all["complete"], &all["answers"]), (&json!(true), &json!("flash")));
    assert_eq!(all["selftest"]["failed"], 0);
    let read = &all["figures"][0];
    assert_eq!(read["id"], "register-read");
    // Jitter of up to 100 ns at 448.5 ns: a range, within it.
    let [low, median, high] =
        ["low", "median", "high"].map(|key| read[key].as_f64().expect("a time"));
    assert!(
        448.5 < low && low < high && high < 548.5 && (480.0..520.0).contains(&median),
        "{read}"
    );
    assert_eq!(read["predicted"]["used"], 448.5);
    let cost = &all["costs"][0];
    assert_eq!((&cost["name"], &cost["assumed"]), (&json!("register_read_ps"), &json!(446_000.0)));
    assert!(
        cost["low"].as_f64() < cost["value"].as_f64() && cost["source"] == all["provenance"],
        "{cost}"
    );

    let file = format!("{out}/measured.json");
    let bus = format!("sim:imx8mp,costs={file}");
    let [with, without] = [&*bus, "sim:imx8mp"]
        .map(|bus| run(&["xfer", "--bus", bus, "--json", "9f000000"]).ok().last_json());
    assert!(with["virtual_ns"].as_u64() > without["virtual_ns"].as_u64(), "{with} {without}");
    assert!(with["profile"].as_str().is_some_and(|name| name.contains("measured.json")), "{with}");
    run(&["xfer", "--bus", &bus.replace("imx8mp", "rpi3"), "9f"]).fails(2, "those of imx8mp");

    let mine = dir.path("mine.toml");
    run(&["lab", "new", &mine, "--board", "imx8mp", "--kernel", "6.1"]).ok();
    let gain = |more: &[&str]| run(&[&["lab", "gain", &mine, "--json"], more].concat()).ok().json();
    let today = |gain: &Value| gain["messages"][0]["today_us"]["used"].as_f64().expect("a time");
    assert!(today(&gain(&["--costs", &file])) > 1.2 * today(&gain(&[])));
    run(&["lab", "run", &mine, "--costs", &file]).ok();
    let other = dir.path("other.toml");
    run(&["lab", "new", &other, "--board", "rpi3", "--kernel", "6.1"]).ok();
    run(&["lab", "gain", &other, "--costs", &file]).fails(2, "those of imx8mp");
}

#[test]
fn what_is_wrong_is_told_before_anything_is_measured() {
    let dir = Dir::new();
    let out = dir.path("out");
    let measure = |more: &[&str]| run(&[&["measure", "--out", &out], more].concat());
    measure(&["--board", "sim:imx8"]).fails(2, "did you mean \"imx8mp\"");
    measure(&["--board", "qemu:sabrelite"]).fails(2, "no time of its own");
    measure(&["--board", "null:"]).fails(2, "no time of its own");
    measure(&["--board", "spidev:/dev/spidev77.0", "--like", "rpi3"]).fails(1, "/dev/spidev77.0");
    measure(&["--board", "spidev:/dev/spidev77.0"]).fails(2, "--like BOARD");
    measure(&["--board", "sim:imx8mp", "--flash", "--loopback"]).misused("cannot be used with");
    assert!(!Path::new(&out).exists(), "nothing was measured");
    let file = dir.file("file", "");
    run(&["measure", "--board", "sim:rpi3", "--out", &file]).fails(1, "cannot make the directory");
    run(&["measure", "--board", "sim:rpi3", "--out", "/proc"]).fails(1, "/proc/measured.json");
    // A host without SPI: what is missing, and what to do.
    if run(&["list"]).ok().text().contains("spidev:/dev/") {
        return;
    }
    measure(&[]).fails(1, "`barewire doctor` says what is missing");
}

#[test]
fn a_part_that_fails_is_missing_and_the_others_are_there() {
    let dir = Dir::new();
    let options = ["--flash", "--quick", "--out", &dir.whole()];
    let ran = run(&[&["measure", "--board", "sim:imx8mp,fault=no-chip"], &options[..]].concat());
    let told = ran.fails(1, "no chip answers 9F");
    assert!(told.text().contains("missing: messages: "), "{told:?}");
    let text = fs::read_to_string(dir.path("measured.json")).expect("the file");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(costs(&all).len(), 11);
}

#[test]
fn the_page_opens_in_a_browser_with_predicted_beside_measured() {
    let Some(browser) = browser() else { return };
    let dir = Dir::new();
    let out = dir.path("out");
    measured("sim:rpi3", &["--flash"], &out);
    let (dom, console) = opened(browser, &format!("{out}/measured.html"), &dir.path("profile"));
    assert!(console.is_empty(), "{console:?}");
    for group in ["registers", "threads", "messages"] {
        let chart = chart(&dom, &format!("measured-idle-{group}"));
        for class in ["replayed", "barewire"] {
            let bars = chart.matches(&format!("<rect class=\"{class}\"")).count();
            assert!(bars >= 4, "{group}: {bars} {class}");
        }
    }
    assert!(dom.contains("Not a board's time:"), "{dom}");
}

/// One that works for a long time.
fn slow(out: &str) -> std::process::Command {
    barewire(&["measure", "--board", "sim:imx8mp", "--speed-hz", "100k", "--out", out])
}

#[test]
fn stopped_in_the_middle_it_writes_what_it_has_and_says_what_is_missing() {
    let dir = Dir::new();
    let ran = interrupted(slow(&dir.whole()), 400).fails(130, "stopped as asked");
    assert!(ran.stderr.contains("lacks selftest"), "{ran:?}");
    let text = fs::read_to_string(dir.path("measured.json")).expect("the file");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&all["complete"], &all["selftest"]), (&json!(false), &Value::Null));
    assert!(!costs(&all).is_empty());
    let page = fs::read_to_string(dir.path("measured.html")).expect("the page");
    assert!(page.contains("Stopped in the middle"));
}

#[test]
fn killed_in_the_middle_it_leaves_no_half_of_a_result() {
    let dir = Dir::new();
    let mut child =
        slow(&dir.whole()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    works_for(&child.id().to_string(), 300);
    assert!(child.try_wait().expect("a state").is_none(), "it was still at work");
    child.kill().expect("killed");
    child.wait().expect("ended");
    for name in ["measured.json", "measured.html"] {
        assert!(!Path::new(&dir.path(name)).exists(), "{name}");
    }
}
