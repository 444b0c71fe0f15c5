//! `barewire adc`: samples, the parts of their time, and refusals.

use std::fs;

use serde_json::{Value, json};

use super::command::{Dir, Has, array, run, run_line};

const STREAM: [&str; 7] = ["adc", "stream", "--bus", "sim:rpi3", "--channel", "0", "--json"];

const ON_RPI3: [&str; 4] = ["adc", "stream", "--bus", "sim:rpi3"];

fn stream(more: &[&str]) -> Value {
    run(&[&STREAM[..], more].concat()).ok().json()
}

#[track_caller]
pub(super) fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("no {name} in {value}"))
}

#[test]
fn rows_are_fast_and_add_up() {
    let line = stream(&["--chip", "mcp3008", "--samples", "2000", "--batch", "1,10,100,500"]);
    assert_eq!(line["effective_speed_hz"], json!(3_571_428));
    assert_eq!(line["simulated"], json!(true));
    let rows = array(&line, "rows");
    let batches = rows.iter().map(|row| row["batch"].as_u64());
    assert_eq!(batches.collect::<Vec<_>>(), [1, 10, 100, 500].map(Some));
    for row in rows {
        let rate = number(row, "samples_per_s");
        assert!(rate >= if row["batch"] == 1 { 115_000.0 } else { 120_000.0 }, "{row}");
        let names = ["clocks_us", "lead_us", "lag_us", "gap_us", "software_us"];
        let sum: f64 = names.map(|name| number(row, name)).iter().sum();
        assert!((sum - 1e6 / rate).abs() < 0.01, "{row}");
        assert!((number(row, "clocks_us") - 26.0 * 0.28).abs() < 0.001, "{row}");
        // tCSH is kept, whether by the gap or by software.
        assert!(number(row, "gap_us") + number(row, "software_us") > 0.27, "{row}");
        assert_eq!(row["missed"], json!(0));
        let range = |name: &str| {
            let range = &row["ranges"][name];
            ["low", "value", "high"].map(|end| number(range, end))
        };
        let rates = range("samples_per_s");
        assert_eq!(rates[1], rate, "{row}");
        // A rate falls as costs rise.
        assert!(rates[0] > rate && rate > rates[2], "{row}");
        let sums = range("sum_us");
        assert!(sums[0] < sums[1] && sums[1] < sums[2], "{row}");
    }
    assert_eq!(rows[2]["published_stock_samples_per_s"], json!(51_200.0));
    assert_eq!(rows[2]["published_patched_samples_per_s"], json!(105_200.0));
    let lab = number(&rows[2]["lab_samples_per_s"], "used");
    assert!(lab > 105_200.0, "{lab}");
    let ceiling = &line["ceiling"];
    assert_eq!(number(ceiling, "samples_per_s_min").floor(), 126_103.0);
    assert_eq!(number(ceiling, "samples_per_s_max").floor(), 130_718.0);
}

#[test]
fn costs_are_chosen_and_the_ranges_are_what_that_gives() {
    let samples = ["--samples", "500"];
    let ranged = stream(&samples);
    assert_eq!(ranged["costs"], json!("used"));
    for costs in ["low", "high"] {
        let line = stream(&[&samples[..], &["--costs", costs]].concat());
        assert_eq!(line["costs"], json!(costs));
        let row = &line["rows"][0];
        assert!(row.get("ranges").is_none(), "{row}");
        assert_eq!(row["samples_per_s"], ranged["rows"][0]["ranges"]["samples_per_s"][costs]);
    }
    // A rate that is possible at the costs used, but not at the highest: samples keep it, and late
    // ones at high costs are reported.
    let held = stream(&["--samples", "500", "--rate", "117000"]);
    let missed = &held["rows"][0]["ranges"]["missed"];
    assert_eq!(missed["value"], json!(0.0), "{held}");
    assert!(number(missed, "high") > 0.0, "{missed}");
    for bus in ["spidev:/dev/spidev0.0", "qemu:sabrelite"] {
        let refused = run(&["xfer", "--bus", bus, "--costs", "high", "9f"]);
        refused.fails(2, "--costs is for simulated boards (sim:BOARD)");
    }
}

#[test]
fn a_sine_comes_back() {
    let bus = "sim:rpi3,input=3:sine:1234.5:1500:2000";
    let line = format!("adc stream --bus {bus} --channel 3 --samples 5000 --batch 50 --json");
    let line = run_line(&line).ok().json();
    let signal = &line["signals"][0];
    assert_eq!(signal["input"], json!("3"));
    assert!((number(signal, "frequency_hz") - 1234.5).abs() < 0.1, "{signal}");
    assert!((number(signal, "amplitude_v") - 1.5).abs() < 0.005, "{signal}");
    // Codes are rounded down: half a step of 4.9 mV.
    assert!((number(signal, "offset_v") - 2.0).abs() < 0.005, "{signal}");
    assert!((number(signal, "max_v") - 3.5).abs() < 0.01, "{signal}");
}

#[test]
fn a_rate_is_held_on_its_grid() {
    let line = stream(&["--samples", "500", "--rate", "10000", "--batch", "1,5"]);
    for (row, batch) in array(&line, "rows").iter().zip([1, 5]) {
        assert!((number(row, "samples_per_s") - 10_000.0).abs() < 1.0, "{row}");
        let interval = &row["interval"];
        let [min, max] = ["min_ns", "max_ns"].map(|name| number(interval, name));
        match batch {
            // Two ticks of 52 ns, the bus path, and one kernel tick with its interrupt.
            1 => assert!(min > 92_000.0 && max < 108_000.0, "{interval}"),
            _ => assert!(min < 9_000.0 && max > 460_000.0, "{interval}"),
        }
        let buckets = array(interval, "histogram").iter();
        assert_eq!(buckets.map(|bucket| number(bucket, "count")).sum::<f64>(), 499.0);
    }
}

#[test]
fn several_channels_and_pairs_are_one_scan() {
    let bus = "sim:rpi3,input=0:constant:1250+1:constant:2500+5:ramp:1:5000:0";
    let read = |more: &[&str]| {
        run(&[&["adc", "read", "--bus", bus, "--json"], more].concat()).ok().json()["readings"]
            .clone()
    };
    let readings = read(&["--channel", "0,1", "--differential", "1-0,0-1"]);
    let codes: Vec<_> = (0..4).map(|index| readings[index]["code"].clone()).collect();
    assert_eq!(codes, [256, 512, 256, 0].map(|code| json!(code)));
    assert_eq!(readings[2]["input"], json!("1-0"));
    assert_eq!(readings[1]["volts"], json!(2.5));
    // The volts follow from the reference.
    assert_eq!(read(&["--vref", "2.5"])[0]["volts"], json!(0.625));
    let line = format!("adc stream --bus {bus} --channel 0,1 --samples 100 --batch 4 --json");
    let line = run_line(&line).ok().json();
    let row = &line["rows"][0];
    assert!((number(row, "conversions_per_s") / number(row, "samples_per_s") - 2.0).abs() < 1e-9);
    assert_eq!([0, 1].map(|input| number(&line["signals"][input], "mean_v")), [1.25, 2.5]);
    // Figures are published for one channel.
    assert!(row["published_stock_samples_per_s"].is_null(), "{row}");
}

#[test]
fn a_file_is_a_signal_and_samples_are_csv() {
    let dir = Dir::new();
    let file = dir.file("signal.txt", "# volts\n1.0\n2.0\n");
    let bus = format!("sim:rpi3,input=0:file:{file}:1000");
    let arguments = ["adc", "stream", "--bus", &bus, "--samples", "300", "--csv", "--quiet"];
    let csv = run(&arguments).ok().text();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines.len(), lines[0]), (301, "seconds,volts_0"));
    assert!(lines[1].starts_with("0.000000000,0.99") && lines[300].ends_with(",1.997070"), "{csv}");
    fs::write(&file, "1.0\ntwo\n").expect("written");
    run(&arguments).fails(1, "line 2 is not a number");
}

#[test]
fn the_table_and_the_plot_are_for_people() {
    let text = run(&[&ON_RPI3[..], &["--samples", "1000", "--batch", "1,10", "--plot"]].concat())
        .ok()
        .text();
    text.has(&["MCP3008 on sim:rpi3, simulated", "126,103 to 130,718", "52,500, 98,300"]);
    text.has(&["10 transfers = (", "V|"]);
    let read = run(&["adc", "read", "--bus", "sim:rpi3"]).ok();
    assert!(read.text().starts_with("input   code     volts\n0 "));
}

#[test]
fn what_cannot_be_is_refused_with_the_remedy() {
    for (arguments, part) in [
        (&["--speed-hz", "3600001"][..], "limit of 3600000 Hz at a supply of 5000 mV"),
        (&["--vdd", "3.3", "--speed-hz", "1000001"], "limit of 1000000 Hz at a supply of 3300 mV"),
        (&["--vdd", "1.8"], "2700 to 5500 (--vdd)"),
        (&["--channel", "8"], "no channel 8: it has 0 to 7 (--channel)"),
        (&["--chip", "mcp3004", "--channel", "4"], "it has 0 to 3"),
        (&["--differential", "1-2"], "1 and 2 are no pair"),
        (&["--cs", "7"], "no chip select 7"),
    ] {
        run(&[&["adc", "read", "--bus", "sim:rpi3"], arguments].concat()).fails(1, part);
    }
    for (bus, part) in [
        ("sim:rpi3,fault=no-chip", "no converter answers (received ff ff ff"),
        ("sim:imx8mp", "no converter answers"),
        ("sim:rpi3,input=8:constant:1", "the MCP3008 has no channel 8"),
        ("sim:imx8mp,input=0:constant:1", "sim:imx8mp has no converter"),
    ] {
        run(&["adc", "read", "--bus", bus]).fails(1, part);
    }
    for (arguments, part) in [
        (["--rate", "200000"], "the highest rate here is 118331"),
        (
            ["--rate", "130000"],
            "130000 conversions a second cannot be held: the highest rate here is",
        ),
    ] {
        run(&[&ON_RPI3[..], &["--samples", "100"], &arguments].concat()).fails(1, part);
    }
    // The advised rate holds.
    run(&[&ON_RPI3[..], &["--rate", "118331"]].concat()).ok();
    run(&[&ON_RPI3[..], &["--rate", "0"]].concat()).misused("0 Hz is no clock");
    for arguments in [
        &["adc", "stream", "--batch", "0"][..],
        &["adc", "stream", "--samples", "0"],
        &["adc", "read", "--chip", "mcp3001"],
        &["adc", "read", "--vdd", "five"],
        &["adc", "read", "--differential", "0"],
        &["adc", "stream", "--csv", "--json"],
    ] {
        assert_eq!(run(arguments).code, Some(2), "{arguments:?}");
    }
    let near = run(&["adc", "read", "--chip", "mcp3080"]);
    assert!(near.stderr.contains("did you mean"), "{near:?}");
    let signal = run(&["adc", "read", "--bus", "sim:rpi3,input=0:sin:1:2:3"]);
    assert!(signal.stderr.contains("did you mean \"sine\""), "{signal:?}");
}

#[test]
fn a_simulated_board_refuses_a_part_that_it_does_not_have() {
    let read = ["adc", "read", "--bus", "sim:rpi3,input=0:constant:1250", "--quiet"];
    for chip in ["mcp3208", "mcp3204", "mcp3004", "mcp3002"] {
        for verb in ["read", "stream"] {
            let ran = run(&["adc", verb, "--bus", "sim:rpi3", "--chip", chip]);
            let ran = ran.fails(1, "the converter of sim:rpi3 is an MCP3008; read as an MCP3");
            assert!(ran.stdout.is_empty(), "{ran:?}");
        }
    }
    run(&[&read[..], &["--chip", "MCP3008"]].concat()).ok();
    // A chip select without a converter gives the same error as before.
    let flash = run(&["adc", "read", "--bus", "sim:rpi3", "--cs", "1", "--chip", "mcp3208"]);
    flash.fails(1, "no converter answers");
}

#[test]
fn a_probe_tells_which_part_answers_or_that_it_cannot() {
    // A channel that is not named has a sine.
    let inputs: Vec<String> = (0..7).map(|channel| format!("{channel}:constant:0")).collect();
    let [ground, bus] =
        ["0", "1250"].map(|last| format!("sim:rpi3,input={}+7:constant:{last}", inputs.join("+")));
    let [ground, bus] = [&ground[..], &bus];
    let read = run(&["adc", "read", "--bus", bus, "--probe", "--json"]).ok().json();
    assert_eq!(read["probed"], json!(["MCP3004", "MCP3008"]), "{read}");
    assert_eq!(read["readings"][0]["code"], json!(0));
    let told = run(&["adc", "read", "--bus", bus, "--probe"]).ok().stderr;
    assert!(told.contains("--probe: MCP3004 or MCP3008, which answer alike\n"), "{told}");
    let streamed = run(&["adc", "stream", "--bus", bus, "--probe", "--samples", "100"]).ok().stderr;
    assert_eq!(streamed.matches("--probe: ").count(), 1, "{streamed}");

    let told = run(&["adc", "read", "--bus", ground, "--probe"]).ok().stderr;
    assert!(told.contains("the part cannot be told: every code is 0"), "{told}");
    let read = run(&["adc", "read", "--bus", ground, "--probe", "--json"]).ok().json();
    assert_eq!(read["probed"], json!([]), "{read}");
    let plain = run(&["adc", "read", "--bus", "sim:rpi3", "--json"]).ok().json();
    assert!(plain.get("probed").is_none(), "{plain}");

    let missing = run(&["adc", "read", "--bus", "sim:rpi3,fault=no-chip", "--probe"]);
    missing.fails(1, "no converter of this family answers (received ff ff ff ff)");
    // Its converter is on another chip select.
    run(&["adc", "read", "--bus", "sim:rpi3", "--cs", "1", "--probe"])
        .fails(1, "no converter of this");
    // A clock below every part's limit is used as given.
    let slow = ["adc", "read", "--bus", bus, "--probe", "--speed-hz", "100k"];
    run(&slow).ok();
}

#[test]
fn a_raspberry_pi_5_reads_its_converter_too() {
    let bus = "sim:rpi5,input=0:constant:1250+1:constant:2500";
    let text = run(&["adc", "read", "--bus", bus, "--channel", "0,1"]).ok().text();
    text.has(&["0        256    1.2500", "1        512    2.5000"]);
}

#[test]
fn published_rates_stand_beside_rows_of_their_own_settings_only() {
    let rows = |options: &[&str]| {
        let samples = ["--json", "--samples", "200"];
        let line = run(&[&ON_RPI3[..], &samples, options].concat()).ok();
        let rows = line.json()["rows"].as_array().expect("rows").clone();
        rows.iter()
            .filter(|row| row.get("published_stock_samples_per_s").is_some_and(|it| !it.is_null()))
            .count()
    };
    assert!(rows(&[]) > 0, "as published: one channel of an MCP3008, as fast as it goes");
    for other in [&["--rate", "1000"][..], &["--channel", "0,1"], &["--speed-hz", "1M"]] {
        assert_eq!(rows(other), 0, "{other:?}");
    }
}

#[test]
fn a_histogram_of_jitter_has_several_rows() {
    let line = run_line("adc stream --bus sim:rpi3,jitter-ns=2000 --json --samples 500 --batch 1");
    let line = line.ok().json();
    let buckets = line["rows"][0]["interval"]["histogram"].as_array().expect("buckets").clone();
    assert!(buckets.len() > 3, "{buckets:?}");
    let width = |bucket: &serde_json::Value| {
        bucket["to_ns"].as_u64().zip(bucket["from_ns"].as_u64()).map(|(to, from)| to - from)
    };
    assert!(buckets.iter().all(|bucket| width(bucket) == width(&buckets[0])), "{buckets:?}");
}

#[test]
fn channels_are_told_by_range() {
    let bus = "sim:rpi3";
    let inputs = |channels: &str| {
        let read = run(&["adc", "read", "--bus", bus, "--channel", channels, "--json"]).ok().json();
        array(&read, "readings").iter().map(|one| one["input"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(inputs("0-7"), ["0", "1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(inputs("6,1-3"), ["6", "1", "2", "3"]);
    for wrong in ["3-1", "-", "1-", "x", "0x1", "256", ""] {
        let ran = run(&["adc", "read", "--bus", bus, "--channel", wrong]);
        ran.misused("write channels as in 3, 0,2,5 or 0-7");
    }
}
