//! `barewire can echo`: nothing lost, every field there, better than what was published.

use serde_json::{Value, json};

use super::command::{
    Has, Ran, barewire, has_fields, interrupted, interrupted_without_growth, run,
};

fn echo(options: &str) -> Ran {
    let words: Vec<&str> = ["can", "echo"].into_iter().chain(options.split_whitespace()).collect();
    run(&words)
}

fn json_of(options: &str) -> Value {
    echo(&format!("--bus sim:imx8mp {options} --json")).ok().json()
}

#[track_caller]
fn number(value: &Value, path: &str) -> f64 {
    let found = path.split('.').fold(value, |value, name| &value[name]);
    found.as_f64().unwrap_or_else(|| panic!("no {path} in {value}"))
}

#[test]
fn single_frames_are_echoed_sooner_than_the_fastest_kernel_did() {
    let line = json_of("--frames 100 --gap-ms 10");
    assert_eq!((&line["by"], &line["simulated"]), (&json!("process"), &json!(true)));
    let rows = line["rows"].as_array().expect("rows");
    let names: Vec<_> = rows.iter().map(|row| row["by"].as_str().expect("a name")).collect();
    assert_eq!(names, ["process", "sockets", "interrupt"]);
    for row in rows.iter().chain([&line]) {
        for (name, kernel_c) in [
            ("rx_eof_to_tx_sof_us", 152.0),
            ("irq_low_us", 55.0),
            ("cs_to_clock_us", 2.6),
            ("cs_high_gap_us", 5.0),
        ] {
            let [p50, max] = ["p50", "max"].map(|part| number(row, &format!("{name}.{part}")));
            let range = name.trim_end_matches("_us");
            for (part, value) in [("p50", p50), ("max", max)] {
                let range = format!("ranges.{range}_{part}_us");
                let [same, low, high] =
                    ["value", "low", "high"].map(|end| number(row, &format!("{range}.{end}")));
                assert_eq!(same, value, "{row}");
                assert!(low < value && value < high, "{range} in {row}");
            }
            assert!(0.0 < p50 && p50 < kernel_c && p50 <= max, "{name} {p50} {max} in {row}");
        }
        let expected = json!({
            "frames_sent": 100, "frames_echoed": 100, "frames_lost": 0, "frames_reordered": 0,
            "frames_unasked": 0,
        });
        has_fields(row, &expected);
        // A frame and its echo each 10 ms, and nothing else to do.
        assert!(number(row, "idle_percent") > 99.0, "{row}");
    }
}

/// A run at one end of all ranges shows that end, and no ranges.
#[test]
fn costs_are_chosen_and_the_ranges_are_what_that_gives() {
    let frames = "--frames 20 --by process";
    let ranged = json_of(frames);
    assert_eq!((&ranged["costs"], &ranged["rows"][0]["costs"]), (&json!("used"), &Value::Null));
    for costs in ["low", "used", "high"] {
        let line = json_of(&format!("{frames} --costs {costs}"));
        assert_eq!(line["costs"], json!(costs));
        assert!(line["rows"][0].get("ranges").is_none(), "{line}");
        let end = if costs == "used" { "value" } else { costs };
        let range = format!("ranges.irq_low_p50_us.{end}");
        assert_eq!(number(&line, "irq_low_us.p50"), number(&ranged, &range), "{costs}");
    }
    let text = echo(&format!("--bus sim:imx8mp {frames} --costs high")).ok().text();
    assert!(text.contains("imx8mp at its highest costs") && !text.contains('–'), "{text}");
    let text = echo(&format!("--bus sim:imx8mp {frames}")).ok().text();
    assert!(
        text.contains("–")
            && text.contains("Like beside like")
            && text.contains("highest costs make of it"),
        "{text}"
    );
}

#[test]
fn at_full_load_the_shares_add_up() {
    let line = json_of("--full-load --frames 500");
    assert_eq!(line["full_load"], json!(true));
    for row in line["rows"].as_array().expect("rows") {
        assert_eq!(row["frames_echoed"], json!(500), "{row}");
        let [cpu, wire, idle, receive, receive_wire] = [
            "cpu_percent",
            "wire_percent",
            "idle_percent",
            "receive_cpu_percent",
            "receive_wire_percent",
        ]
        .map(|name| number(row, name));
        assert!((cpu + idle - 100.0).abs() < 0.01, "{row}");
        assert!(0.0 < receive_wire && receive_wire < receive && receive < cpu, "{row}");
        assert!(receive_wire < wire && wire < cpu, "{row}");
        assert_eq!(number(row, "receive_spi_accesses_per_frame"), 3.0);
        assert!((5.0..5.2).contains(&number(row, "spi_accesses_per_frame")), "{row}");
    }
}

#[test]
fn any_frames_can_be_echoed() {
    for options in [
        "-n 50 -g 1 -I i -L r -D i --by process",
        "-n 50 -g 3 -e -I r -R --by interrupt --crc",
        "-n 50 -g 4 --fd -b -I 123 -L 64 --by sockets",
        "-n 30 -g 5 --fd -m --bitrate 500k --by process",
    ] {
        let line = json_of(options);
        assert_eq!(line["frames_lost"], json!(0), "{options}: {line}");
        assert_eq!(line["frames_sent"], line["frames_echoed"], "{options}: {line}");
        assert_eq!(line["rows"].as_array().expect("rows").len(), 1);
    }
}

#[test]
fn the_table_has_what_was_published_of_the_same_load_only() {
    let text = echo("--bus sim:imx8mp -n 20").ok().text();
    text.has(&["simulated (cost profile imx8mp)", "20 frames, one every 10 ms", "152", "Jander"]);
    assert!(!text.contains("13.3"), "{text}");
    let text = echo("--bus sim:imx8mp -n 20 --full-load").ok().text();
    assert!(text.contains("13.3") && text.contains("Jander") && !text.contains(" 152 "), "{text}");
    // With other loads nothing is compared with the published figures.
    for other in ["-g 5", "--bitrate 1M", "-L 4", "--full-load --bitrate 500k", "-R"] {
        let text = echo(&format!("--bus sim:imx8mp -n 20 {other}")).ok().text();
        assert!(!text.contains("Jander") && !text.contains(" 152 "), "{other}: {text}");
    }
}

#[test]
fn what_cannot_be_echoed_is_refused() {
    for (options, code, part) in [
        ("--bus sim:rpi3", 1, "no CAN controller"),
        ("--bus spidev:/dev/spidev0.0", 2, "far node"),
        ("--bus sim:imx8mp --cs 0", 2, "behind chip select 2"),
        ("--bus sim:imx8mp --stats", 2, "not for can echo"),
        ("--bus sim:imx8mp --speed-hz 20M", 1, "17"),
        ("--bus sim:imx8mp --oscillator-hz 41M", 1, "1 to 40 MHz (--oscillator-hz)"),
        ("--bus sim:imx8mp -p 5", 2, "-p: not for can echo"),
        ("--bus sim:imx8mp --no-interrupt", 2, "--no-interrupt: not for can echo"),
        ("--bus sim:imx8mp,fault=no-chip", 1, "no CAN controller answers"),
        ("--bus sim:imx8mp,fault=stuck-low", 1, "no CAN controller answers"),
    ] {
        assert!(echo(options).fails(code, part).stdout.is_empty(), "{options}");
    }
    echo("--bus sim:imx8mp --speed-hz 0").misused("0 Hz is no clock");
}

/// Its times in a column each, whatever they are.
#[test]
fn on_a_full_bus_an_echo_with_a_higher_identifier_starves_and_that_is_told() {
    for (options, why) in [
        ("-n 100 -I r", "an echo comes through"),
        ("-n 5000 -I r", "destroyed on the bus"),
        ("-n 100 -I 0", "an echo comes through"),
    ] {
        let ran = echo(&format!("--bus sim:imx8mp --full-load {options}"));
        let text = ran.fails(1, "frames were lost").fails(1, why).text();
        let times = text.lines().find(|line| line.starts_with("RX EOF")).expect("a line");
        // A figure each, or a figure and its range.
        let columns = times.split_whitespace().skip(6);
        let values = columns.filter(|column| !column.starts_with('('));
        assert_eq!(values.count(), 3, "{options}: {times}");
    }
}

#[test]
fn a_far_node_that_is_not_understood_ends_it() {
    // The board's crystal is of 40 MHz: the chip's bits are ten times as short, and errors go on for ever.
    let ran = echo(&format!("--bus sim:imx8mp -n {} --oscillator-hz 4M --speed-hz 1M", u64::MAX));
    ran.fails(1, "process: 0 frames of 18446744073709551615 that the far node was to send");
}

#[test]
fn ctrl_c_ends_it_while_no_frame_comes_and_nothing_is_called_lost() {
    for options in ["-g 86400000 -n 1000000", "--full-load -n 10000000"] {
        let words = ["can", "echo", "--bus", "sim:imx8mp", "--json"];
        let words: Vec<&str> = words.into_iter().chain(options.split(' ')).collect();
        let ran = interrupted(barewire(&words), 400);
        let line = ran.json();
        assert_eq!((&line["interrupted"], &line["frames_lost"]), (&json!(true), &json!(0)));
        ran.fails(130, "stopped as asked");
    }
}

/// A run that kept a record of each frame took about 1 kB a frame.
#[test]
fn its_memory_does_not_grow_with_the_frames() {
    let words = "can echo --bus sim:imx8mp --json --by process --costs used -n 10000000";
    let words: Vec<&str> = words.split(' ').collect();
    let line = interrupted_without_growth(barewire(&words)).json();
    assert!(number(&line, "frames_echoed") > 1_000.0, "{line}");
    assert_eq!(line["frames_lost"], json!(0), "{line}");
}

#[test]
fn jitter_reaches_the_board() {
    let max = |bus: &str| {
        let line = echo(&format!("--bus {bus} -n 20 --by process --json")).ok().json();
        number(&line, "rx_eof_to_tx_sof_us.p50")
    };
    assert!(max("sim:imx8mp,jitter-ns=1000") > max("sim:imx8mp") + 5.0);
}
