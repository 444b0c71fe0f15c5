//! `barewire lab` with experiments of users: written, run, taken apart, swept, fitted, and refused by line.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::command::{Dir, Has, run};
use super::lab::{is_too_slow, number};

/// A folder with `mine.toml` in it.
fn file(content: &str) -> (Dir, String) {
    let dir = Dir::new();
    let path = dir.file("mine.toml", content);
    (dir, path)
}

const PI: &str = "board = \"rpi3\"\nkernel = \"4.9\"\nspeed_hz = 3_000_000\n\n[[message]]\nname = \"read\"\nlengths = [3]\n";

/// The figure of a message, in the JSON of `lab run`.
#[track_caller]
fn figure<'v>(outcome: &'v Value, message: &str, figure: &str) -> &'v Value {
    let find = |list: &'v Value, key: &str, name: &str| {
        let found = list.as_array().expect("a list").iter().find(|one| one[key] == name);
        found.unwrap_or_else(|| panic!("no {name} in {list}"))
    };
    let message = find(&outcome[0]["messages"], "name", message);
    find(&message["figures"], "figure", figure)
}

#[test]
fn a_new_experiment_runs_on_each_board_that_has_a_driver_and_is_never_overwritten() {
    let dir = Dir::new();
    for (board, kernel) in
        [("rpi3", "4.9"), ("imx6dl", "4.1"), ("beaglebone", "4.4"), ("imx8mp", "6.12")]
    {
        let path = dir.path(&format!("{board}.toml"));
        let new = ["lab", "new", &path, "--board", board, "--kernel", kernel];
        let told = run(&new).ok().text();
        assert!(told.contains("barewire lab explain"), "{told}");
        run(&new).fails(1, "is there already: name another file");
        let told = run(&["lab", "run", &path]).ok().text();
        let title = format!("{board}, Linux {kernel}, spidev");
        told.has(&[&title, "one-byte: 1 byte at", "batch: 3 bytes x 10", "barewire"]);
        assert!(told.lines().all(|line| line.chars().count() <= 120), "{told}");
        let name = format!("{path}:register");
        let told = run(&["lab", "explain", &name, "--json"]).ok().json();
        assert!(number(&told["replayed"]) > 1.0 && told["published"].is_null(), "{told}");
        let sweep = ["lab", "sweep", "--experiment", &path, "--length", "1..16:4"];
        let told = run(&sweep).ok().text();
        let head = format!("{board}:one-byte on {board}, simulated, ");
        assert!(told.contains(&head) && told.contains(": us"), "{told}");
    }
    let told = run(&["lab", "new", "-", "--board", "imx8mp"]).ok().text();
    assert!(told.contains("refill_bytes") && told.starts_with("# An experiment"), "{told}");
    let path = dir.path("x.toml");
    run(&["lab", "new", &path, "--board", "zynq"]).misused("whose kernel driver is not in the lab");
    run(&["lab", "new", &path, "--kernel", "7.0"]).misused("the lab knows Linux 3.14 to 6.12");
    run(&["lab", "new", "x.txt"]).misused("call it FILE.toml");
    assert!(!Path::new(&path).exists());
}

#[test]
fn a_board_of_ones_own_is_a_file_beside_the_experiment() {
    let (dir, path) = file(&PI.replace("rpi3", "board.toml"));
    let board = "like = \"rpi3\"\n[controller]\nreference_hz = 250_000_000\n[[cs]]\ngpio = 22\n";
    fs::write(dir.path("board.toml"), board).expect("written");
    let own = run(&["lab", "run", &path, "--json"]).ok().json();
    fs::write(&path, PI).expect("written");
    let shipped = run(&["lab", "run", &path, "--json"]).ok().json();
    // 250 MHz by 84 is 2.976 MHz, 400 MHz by 134 is 2.985 MHz: nine clocks a byte, the last without its rest.
    for (outcome, hz) in [(&own, 250e6 / 84.0), (&shipped, 400e6 / 134.0)] {
        let clocks = number(&figure(outcome, "read", "clocks")["simulated"]["used"]);
        assert!((clocks - 26e6 / hz).abs() < 0.02, "{clocks} {hz}");
    }
    fs::write(&path, PI.replace("rpi3", "none.toml")).expect("written");
    run(&["lab", "run", &path])
        .fails(1, "mine.toml: line 1, column 9: cannot read the board's file");
}

#[test]
fn what_is_published_is_compared_and_fitted_and_the_costs_are_taken() {
    let (dir, path) = file(&format!("{PI}published.rate = 50_000\n"));
    let mine = &*path;
    let before = run(&["lab", "run", mine, "--json"]).ok().json();
    let rate = figure(&before, "read", "rate");
    assert_eq!(number(&rate["published"]), 50_000.0);
    let (used, error) = (number(&rate["simulated"]["used"]), number(&rate["error"]));
    assert!((used / 50_000.0 - 1.0 - error).abs() < 1e-9 && error > 0.1, "{rate}");
    let told = run(&["lab", "list", "--figures", "--experiment", mine]).ok().text();
    assert!(told.contains("mine:read:rate"), "{told}");
    let costs = dir.path("costs.toml");
    let json = dir.path("costs.json");
    let fit = ["lab", "fit", "--experiment", mine];
    let fitted = run(&[&fit[..], &["--json", "--out", &costs]].concat()).ok().json();
    assert!(number(&fitted["residuals"][0]["error"]).abs() < 0.05, "{}", fitted["residuals"]);
    fs::write(&json, fitted.to_string()).expect("written");
    let of_fit = number(&fitted["residuals"][0]["replayed"]);
    for file in [&costs, &json] {
        let after = run(&["lab", "run", mine, "--json", "--costs", file]).ok().json();
        let rate = &figure(&after, "read", "rate")["simulated"];
        assert!((number(&rate["used"]) / of_fit - 1.0).abs() < 1e-6, "{rate} {of_fit}");
        assert!(number(&rate["low"]) < number(&rate["used"]), "{rate}");
        let name = format!("{mine}:read:rate");
        let told = run(&["lab", "explain", &name, "--json", "--costs", file]).ok().json();
        assert!((number(&told["replayed"]) / of_fit - 1.0).abs() < 1e-6, "{told}");
    }
    let sweep =
        ["lab", "sweep", "--experiment", mine, "--figure", "rate", "--length", "2..3:2", "--json"];
    let own = run(&[&sweep[..], &["--costs", &costs]].concat()).ok().json();
    let row = own["rows"].as_array().expect("rows").last().expect("a row")[1][0].clone();
    assert!((number(&row) / of_fit - 1.0).abs() < 1e-6, "{own}");
    run(&["lab", "fit", "--experiment", mine, "--out", mine]).misused("would overwrite");
    for (content, told) in [
        (
            "[[cost]]\nname = \"spidv\"\nvalue = 1.0\nlow = 1.0\nhigh = 2.0\n",
            "there is no cost \"spidv\": did you mean \"spidev\"?",
        ),
        (
            "[[cost]]\nname = \"spidev\"\nvalue = 0.0\nlow = 0.0\nhigh = 2.0\n",
            "a cost is above 0 and in its own range",
        ),
        ("[[cost]]\nname = \"spidev\"\n", "missing field"),
        ("{}", "missing field"),
        ("", "missing field"),
    ] {
        fs::write(&costs, content).expect("written");
        run(&["lab", "run", mine, "--costs", &costs]).fails(1, told);
    }
}

#[test]
fn a_message_is_taken_apart_and_swept_over_kernels() {
    let (dir, path) = file(PI);
    let (name, svg) = (format!("{path}:read"), dir.path("a.svg"));
    let told = run(&["lab", "explain", &name, "--svg", &svg]).ok().text();
    assert!(
        told.starts_with("mine:read:call: simulated ") && told.contains("one occurrence"),
        "{told}"
    );
    assert!(fs::read_to_string(&svg).expect("it was made").starts_with("<svg"));
    let told = run(&["lab", "explain", &name, "--without", "statistics"]).ok().text();
    assert!(told.contains("without statistics: ") && told.contains("instead of"), "{told}");
    run(&["lab", "explain", &name, "--svg", &path]).misused("would overwrite");
    run(&["lab", "explain", &format!("{name}:rat")]).misused("did you mean \"rate\"?");
    run(&["lab", "explain", &format!("{path}:raed")]).misused("did you mean \"read\"?");
    let sweep = ["lab", "sweep", "--experiment", &path, "--kernels", "4.9,6.12"];
    let told = run(&[&sweep[..], &["--clock", "1M..8M:4"]].concat()).ok().text();
    told.has(&["Linux 4.9", "Linux 6.12", "barewire"]);
    run(&[&sweep[..], &["--irq-latency", "1us..2us"]].concat()).misused("parameter of a message");
    run(&[&sweep[..], &["--length", "1..2", "--path", "spidev-4.4"]].concat()).misused("--path");
    run(&["lab", "sweep", "--length", "1..2"]).misused("--path");
    run(&["lab", "sweep", "--experiment", &path, "--length", "1..2", "--svg", &path])
        .misused("would overwrite");
}

#[test]
fn what_is_wrong_in_an_experiment_is_told_with_its_line() {
    let (_dir, path) = file("");
    for (from, to, told) in [
        (
            "rpi3",
            "rpi33",
            "mine.toml: line 1, column 9: there is no simulated board \"rpi33\": did you mean \"rpi3\"?",
        ),
        (
            "4.9",
            "2.6",
            "mine.toml: line 2, column 10: the kernel is \"2.6\": the lab knows Linux 3.14 to 6.12",
        ),
        (
            "3_000_000",
            "0",
            "mine.toml: line 3, column 12: it is 0: the lab takes 10000 to 200000000 Hz",
        ),
        ("[3]", "[0]", "mine.toml: line 7, column 11: a transfer has at least 1 byte"),
        ("[3]", "\"3\"", "mine.toml: line 7, column 11: invalid type"),
        ("lengths", "length", "mine.toml: line 7, column 1: unknown field `length`"),
        (
            "[3]\n",
            "[3]\n[[message]]\nname = \"read\"\nlengths = [1]\n",
            "mine.toml: line 9, column 8: \"read\" is there already",
        ),
        (
            "[3]\n",
            "[3]\npublished.cs-toggle = 5.0\n",
            "mine.toml: read: published has cs-toggle, which this message has not",
        ),
    ] {
        fs::write(&path, PI.replacen(from, to, 1)).expect("written");
        run(&["lab", "run", &path]).fails(1, told);
    }
    fs::write(&path, "name = 'x'\ntitle = 'x'\nboard = 'rpi3'\nworkload = 'spidev'\n")
        .expect("written");
    run(&["lab", "run", &path]).misused("give it by --experiment");
    run(&["lab", "run", "none.toml"]).fails(1, "none.toml");
    fs::write(&path, PI).expect("written");
    run(&["lab", "run", &path, "--thread", "ellis"]).misused("--thread");
}

#[test]
fn figures_not_seen_before_stand_apart_and_the_page_has_the_users_experiments() {
    if is_too_slow() {
        return;
    }
    let (dir, path) = file(PI);
    let whole = run(&["lab", "run", "--json", "--experiment", &path]).ok().json();
    assert_eq!(whole["figures"].as_array().map(Vec::len), Some(95));
    assert_eq!(whole["own"][0]["messages"][0]["name"], "read");
    let held_out = whole["held_out"].as_array().expect("a list");
    assert_eq!(held_out.len(), 20);
    let expressed: Vec<&Value> =
        held_out.iter().filter(|one| one["simulated"].is_object()).collect();
    assert_eq!(whole["held_out_score"]["expressed"], expressed.len());
    assert!(
        held_out.iter().all(|one| one["simulated"].is_object() != one["not_expressed"].is_string())
    );
    let told = run(&["lab", "run"]).ok().text();
    for one in held_out {
        assert!(told.contains(one["id"].as_str().expect("an id")), "{one}\n{told}");
    }
    let page = dir.path("lab.html");
    run(&["lab", "report", "--experiment", &path, "--out", &page]).ok();
    let page = fs::read_to_string(&page).expect("it was made");
    for part in
        ["id=\"own-mine\"", "id=\"held-out\"", "pi3-spidev-3B-3M", "a call: timeline and steps"]
    {
        assert!(page.contains(part), "{part}");
    }
}
