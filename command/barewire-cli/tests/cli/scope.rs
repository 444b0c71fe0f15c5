//! `scope`: the simulator's own recordings, whose truth is known, and how captures are refused.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::command::{Dir, Has, Ran, array, barewire, example, interrupted, run};
use super::lab::{browser, number, opened};

/// A directory, and in it the recording of a command.
fn recorded(arguments: &[&str]) -> (Dir, String, Ran) {
    let dir = Dir::new();
    let vcd = dir.path("wire.vcd");
    let ran = run(&[arguments, &["--vcd", &vcd]].concat()).ok();
    (dir, vcd, ran)
}

#[test]
fn a_recorded_message_has_the_times_that_were_asked_for() {
    let xfer = "xfer --bus sim:imx8mp --json --mode 3 --cs-change 9f000000 0500 --speed-hz 10M \
                --cs-setup-ns 5000 --cs-hold-ns 3000 --cs-inactive-ns 9000";
    let (_dir, vcd, ran) = recorded(&xfer.split_whitespace().collect::<Vec<_>>());
    let truth = ran.json();
    let (messages, report) =
        run(&["scope", &vcd, "--messages", "--json", "--sck", "10M"]).ok().json_lines();
    for (message, transfer) in messages.iter().zip(array(&truth, "transfers")) {
        assert_eq!([&message["mosi"], &message["miso"]], [&transfer["tx"], &transfer["rx"]]);
    }
    assert_eq!((messages.len(), &report["wires"]["mode"]), (2, &json!(3)));
    let (sck, asked) = (number(&messages[0]["sck_hz"]), number(&truth["effective_speed_hz"]));
    assert!((sck / asked - 1.0).abs() < 0.005, "{sck} {asked}");
    // Delays are never shorter than the hardware makes them, and software adds to them.
    for (figure, setting) in [("lead_ns", "cs_setup_ns"), ("lag_ns", "cs_hold_ns")] {
        let (seen, made) =
            (number(&messages[0][figure]), number(&truth[&format!("effective_{setting}")]));
        assert!(made <= seen + 1.0 && seen < made + 5_000.0, "{figure}: {seen}, {made}");
    }
    assert!(number(&messages[1]["cs_inactive_ns"]) >= number(&truth["effective_cs_inactive_ns"]));
    let words = messages.iter().map(|message| number(&message["words"])).sum::<f64>();
    assert_eq!(8.0 * words, number(&truth["bits"]));
}

#[test]
fn chips_commands_have_names() {
    let (_dir, vcd, _) = recorded(&["flash", "id", "--bus", "sim:imx8mp", "-q"]);
    let (messages, report) =
        run(&["scope", &vcd, "--chip", "cs0=nor", "--messages", "--json"]).ok().json_lines();
    let id = messages.iter().find(|message| message["kind"] == "RDID, 3 bytes").expect("is read");
    assert_eq!(id["detail"], "ef4019");
    let kinds = array(&report, "kinds");
    assert!(kinds.iter().any(|kind| kind["kind"] == "RDSFDP, 8 bytes"), "{report}");
    let table = run(&["scope", &vcd, "--chip", "nor"]).ok().text();
    assert!(table.contains("\ncs0  RDID, 3 bytes: 1 message, 4 words, "), "{table}");
    let csv = run(&["scope", &vcd, "--chip", "nor", "--messages", "--csv"]).ok().text();
    assert!(csv.starts_with("message,select,start_ns,"), "{csv}");
    csv.has(&[",\"RDID, 3 bytes\",ef4019,9f000000,ffef4019\n"]);
    assert_eq!(csv.lines().count(), 1 + messages.len());
    let csv = run(&["scope", &vcd, "--csv"]).ok().text();
    let head = "select,kind,messages,cut,words,bus_use,figure,count,p50,p99,max\ncs0,";
    assert!(csv.starts_with(head), "{csv}");
}

/// The capture of the page and of the repository's examples is what the simulator records.
#[test]
fn the_example_is_a_recording() {
    let example = example("adc.vcd");
    let (_dir, vcd, _) =
        recorded(&["adc", "read", "--bus", "sim:rpi3", "--channel", "0,1,2", "-q"]);
    let recording = fs::read_to_string(&vcd).expect("it was made");
    if std::env::var_os("BAREWIRE_BLESS").is_some() {
        fs::write(&example, &recording).expect("written");
    }
    assert_eq!(fs::read_to_string(&example).expect("an example"), recording);
    let (messages, _) =
        run(&["scope", &vcd, "--chip", "mcp3008", "--messages", "--json"]).ok().json_lines();
    let codes: Vec<_> = messages.iter().map(|message| &message["detail"]).collect();
    let read =
        run(&["adc", "read", "--bus", "sim:rpi3", "--channel", "0,1,2", "--json"]).ok().json();
    let expected = array(&read, "readings").iter();
    let expected: Vec<_> =
        expected.map(|reading| Value::from(reading["code"].to_string())).collect();
    assert_eq!(codes, expected.iter().collect::<Vec<_>>());
}

#[test]
fn what_is_no_capture_is_refused_by_name() {
    let dir = Dir::new();
    let path = dir.path("notes.txt");
    run(&["scope", &path]).fails(1, "notes.txt: No such file");
    for (content, said) in [
        ("", "notes.txt: it is empty"),
        ("Dear all,\n", "it begins with \"Dear all,"),
        ("Time [s],A\n0.0,0\n", "no channel clocks: A has 0 edges"),
    ] {
        fs::write(&path, content).expect("written");
        run(&["scope", &path]).fails(1, said);
    }
    run(&["scope", &dir.whole()]).fails(1, "a directory without files of Saleae's binary export");
    run(&["scope", &path, "--glitch", "20"]).misused("a time has a unit");
    run(&["scope", &path, "--chip", "nand"]).misused("nand");
    run(&["scope", &path, "--json", "--csv"]).misused("cannot be used with");
    run(&["scope", &path, "--mode", "4"]).misused("0..=3");
    run(&["scope"]).misused("<FILE>");
}

/// A VCD of messages of a byte each, a microsecond apart, that of number `slow` held 200 ns longer.
fn bytes(messages: u64, slow: u64) -> String {
    let mut vcd = String::from(
        "$timescale 1 ns $end $var wire 1 s cs $end $var wire 1 c clk $end $enddefinitions $end\n#0 1s 0c\n",
    );
    for message in 0..messages {
        let _ = write!(vcd, "#{} 0s", 1_000 * message + 1);
        for edge in 0..16 {
            let _ = write!(vcd, " #{} {}c", 1_000 * message + 10 * edge + 9, 1 - edge % 2);
        }
        let end = 1_000 * message + if message == slow { 500 } else { 300 };
        let _ = writeln!(vcd, " #{end} 1s");
    }
    vcd
}

#[test]
fn ctrl_c_prints_what_was_read() {
    let vcd = bytes(150_000, u64::MAX);
    let dir = Dir::new();
    let path = dir.file("long.vcd", vcd);
    let ran = interrupted(barewire(&["scope", &path]), 300);
    let ran = ran.fails(130, "stopped as asked, after ");
    assert!(ran.stderr.contains(" bytes"), "{ran:?}");
    let whole = run(&["scope", &path, "--json"]).ok().json();
    assert_eq!([&whole["messages"], &whole["kinds"][0]["words"]], [150_000; 2]);
}

#[test]
fn a_message_is_drawn_by_its_number() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let draw = |nth: &str, locale: &str| -> Ran {
        let mut command =
            barewire(&["scope", "examples/adc.vcd", "--chip", "mcp3008", "--draw", nth]);
        command.current_dir(&root).env("LC_ALL", locale).output().expect("it starts").into()
    };
    let drawn = draw("2", "C.UTF-8").ok().text();
    drawn.has(&["single-ended 2 528", "          a0          "]);
    let plain = draw("2", "C").ok().text();
    assert!(plain.is_ascii() && plain.contains("          a0          "), "{plain}");
    draw("3", "C").fails(1, "adc.vcd has 3 messages: --draw takes 0 to 2");
    run(&["scope", "x", "--draw", "0", "--json"]).misused("cannot be used with");
}

/// Conversions at two clocks: what is slower is found with its size, and nothing in equal captures.
#[test]
fn a_slower_clock_is_found_with_its_size() {
    let [three, fast, slow] = ["adc.vcd", "adc-3.6MHz.vcd", "adc-2MHz.vcd"].map(example);
    for (speed, example) in [("3.6M", &fast), ("2M", &slow)] {
        let stream =
            ["adc", "stream", "--bus", "sim:rpi3", "--samples", "16", "-q", "--speed-hz", speed];
        let (_dir, vcd, _) = recorded(&stream);
        let recording = fs::read_to_string(&vcd).expect("it was made");
        if std::env::var_os("BAREWIRE_BLESS").is_some() {
            fs::write(example, &recording).expect("written");
        }
        assert_eq!(fs::read_to_string(example).expect("an example"), recording);
    }
    let diff = ["diff", &fast, &slow, "--chip", "mcp3008"];
    let report = run(&[&diff[..], &["--json"]].concat()).ok().json();
    let kind = &report["kinds"][0];
    assert_eq!((&kind["kind"], &kind["messages"]), (&json!("single-ended 0"), &json!([17, 17])));
    let figures = array(kind, "figures");
    let found = |name: &str| {
        figures.iter().find(|figure| figure["figure"] == name).unwrap_or_else(|| panic!("{name}"))
    };
    let clock = found("sck_hz");
    // The simulator divides 400 MHz by 112 and by 200.
    assert_eq!([&clock["a"], &clock["b"]], [&json!(3_571_429.0), &json!(2e6)]);
    let (low, high) = (clock["low"].as_f64(), clock["high"].as_f64());
    assert_eq!(clock["found"], "changed");
    assert!(low < Some(-1_571_429.0) && high > Some(-1_571_429.0), "{clock}");
    // By hand, from `--messages`: of 16 pauses ten are 592 ns before, and ten are 601 ns after.
    assert_eq!(found("cs_inactive_ns")["difference"], 9.0);
    assert_eq!((&report["changed"], &report["intervals"]), (&json!(6), &json!(6)));
    let table = run(&diff).ok().text();
    table.has(&["-1.571 MHz, -44.0 % (", "6 of 6 figures differ\n"]);
    run(&[&diff[..], &["--exit-code"]].concat()).fails(1, "6 of 6 figures differ");
    let same = run(&["diff", &fast, &fast, "--exit-code"]).ok().text();
    assert!(same.ends_with("no difference seen in 6 figures\n"), "{same}");
    let few = run(&["diff", &three, &fast, "--chip", "mcp3008"]).ok().text();
    few.has(&["single-ended 0: 1 and 17 messages, too few to tell, of 8 needed"]);
    let end = "only in A\n  cs0  single-ended 1: 1 message\n  cs0  single-ended 2: 1 message\n\n\
               no figure has values enough to compare; 2 kinds are only in A\n";
    assert!(few.ends_with(end), "{few}");
    run(&["diff", &fast, "--exit-code"]).misused("<B>");
    run(&["diff", &fast, "nowhere.vcd"]).fails(1, "nowhere.vcd: No such file");
}

#[test]
fn a_message_is_an_svg() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let dir = Dir::new();
    let example = "examples/adc.vcd";
    let (svg, html) = (dir.path("one.svg"), dir.path("one.html"));
    let draw = ["scope", example, "--chip", "mcp3008", "--draw", "1", "-o"];
    let mut command = barewire(&[&draw[..], &[&svg]].concat());
    let ran = Ran::from(command.current_dir(&root).output().expect("it starts")).ok();
    assert!(ran.stderr.contains("written: ") && ran.stdout.is_empty(), "{ran:?}");
    let drawn = fs::read_to_string(&svg).expect("it was written");
    // The page's picture.
    let pages = root.join("docs/message.svg");
    if std::env::var_os("BAREWIRE_BLESS").is_some() {
        fs::write(&pages, &drawn).expect("written");
    }
    assert_eq!(fs::read_to_string(&pages).expect("it is there"), drawn);
    assert_eq!(drawn.matches("<polyline").count(), 4, "{drawn}");
    let parts = [
        "message 1: cs0 single-ended 1 518",
        ">90<",
        ">06<",
        ">clocked 7.14 us<",
        ">lead 205 ns<",
        ">2 us<",
    ];
    drawn.has(&parts);
    // Of three bytes: 48 edges of SCK, each drawn as two points.
    let sck = drawn.split("<polyline").nth(2).expect("SCK");
    let points =
        sck.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("points");
    assert_eq!(points.split(' ').count(), 2 + 2 * 48);
    run(&[&draw[..], &[&html]].concat()).misused("it has more than one message");
    run(&["scope", example, "-o", &svg]).misused("name it with --draw N");
    run(&["scope", example, "-o", "picture.png"]).misused("name a .html");
    run(&["scope", &svg, "--draw", "0", "-o", &svg]).misused("would overwrite");
}

#[test]
fn the_page_opens_in_a_browser_and_zooms() {
    const SLOW: u64 = 3_333;
    let dir = Dir::new();
    let (vcd, page) = (dir.path("many.vcd"), dir.path("scope.html"));
    fs::write(&vcd, bytes(6_000, SLOW)).expect("written");
    let table = run(&["scope", &vcd, "-o", &page]).ok().text();
    assert!(table.contains("6,000 messages"), "{table}");
    let html = fs::read_to_string(&page).expect("it was written");
    for part in ["src=", "url(", "@import", "<link rel=\"stylesheet", "http://127", "https:"] {
        assert!(!html.contains(part), "{part}: the page needs something else");
    }
    let last = table.lines().last().expect("a line");
    html.has(&["prefers-color-scheme:dark", last, "a point is the slowest of 2 messages"]);
    html.has(&["the first 8, the 24 that lasted longest"]);
    let Some(browser) = browser() else { return };
    // What a user does: the wheel over the middle, three times, then a click on the slow message's point.
    let user = format!(
        "<script>const box = document.getElementById('wave'), seen = document.body.dataset;\
         seen.whole = box.dataset.to - box.dataset.from;\
         const frame = box.firstElementChild.getBoundingClientRect();\
         for (let turn = 0; turn < 3; turn++) box.dispatchEvent(new WheelEvent('wheel', {{deltaY: -100, clientX: \
         frame.left + frame.width / 2, cancelable: true}}));\
         seen.zoomed = box.dataset.to - box.dataset.from;\
         const points = [...document.querySelectorAll('#timeline rect')];\
         points.find(point => point.textContent.startsWith('message {SLOW}:')).dispatchEvent(new Event('click', {{bubbles: true}}));\
         seen.nth = box.dataset.nth;</script></body>"
    );
    let used = dir.file("used.html", html.replace("</body>", &user));
    let (dom, console) = opened(browser, &used, &dir.path("profile"));
    assert!(console.is_empty(), "{console:?}");
    let body = dom.split("<body").nth(1).and_then(|rest| rest.split('>').next()).expect("a body");
    let seen = |name: &str| {
        let value =
            body.split(&format!(" data-{name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
        value
            .and_then(|value| value.parse::<f64>().ok())
            .unwrap_or_else(|| panic!("no {name}: {body}"))
    };
    let dom = dom.split("<script").next().expect("a page");
    let share = seen("zoomed") / seen("whole");
    assert!((share - 0.8_f64.powi(3)).abs() < 1e-6, "{share}");
    assert_eq!(seen("nth"), SLOW as f64);
    for id in [
        "message",
        "timeline",
        "use",
        "hist-0-cs-inactive",
        "hist-0-lead",
        "hist-0-clocked",
        "hist-0-lag",
        "hist-0-sck",
    ] {
        assert_eq!(dom.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
    }
    let chart = |id: &str| {
        let found = dom.split(&format!("id=\"{id}\"")).nth(1);
        found.and_then(|rest| rest.split("</svg>").next()).expect("a chart")
    };
    assert_eq!(chart("timeline").matches("<rect").count(), 3_000);
    assert_eq!(chart("message").matches("<path class=\"series").count(), 2, "cs and clk");
}
