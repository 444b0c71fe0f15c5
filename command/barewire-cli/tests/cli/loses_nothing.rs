//! The command overwrites nothing that it was not told to, and calls nothing a success that did nothing.

use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::command::{Bench, IMX8MP_SIZE, barewire, noise, run, text};

#[test]
fn an_output_is_no_other_file_of_the_command() {
    let bench = Bench::new("imx8mp");
    let input = bench.file("in", &noise(300, 1));
    bench.flash("write", "", &[&input]).ok();
    let (chip, before) = (text(&bench.chip), bench.content());
    std::os::unix::fs::symlink(&bench.chip, bench.path("link")).expect("links");
    let link = text(&bench.path("link"));
    for out in [&chip, &link] {
        bench.flash("read", "", &[out]).fails(2, "would overwrite the file of flash=");
        bench.flash("id", "", &["--vcd", out]).fails(2, "would overwrite the file of flash=");
    }
    bench.flash("write", "", &["--vcd", &input, &input]).fails(2, "would overwrite the file of IN");
    bench.flash("verify", "", &["--vcd", &input, &input]).fails(2, "the file of IN");
    let out = text(&bench.path("out"));
    bench.flash("read", "", &["--vcd", &out, &out]).fails(2, "would overwrite the file of OUT");
    // Where nothing is there yet: the chip's file would be made, and then replaced.
    let new = text(&bench.path("new.bin"));
    let bus = format!("sim:imx8mp,flash={new}");
    run(&["flash", "read", "--bus", &bus, &new]).fails(2, "the file of flash=");
    let log = bench.file("log", b"(1.000000) can0 123#00\n");
    let can = ["can", "dump", "--bus", "sim:imx8mp", "--replay", &log];
    run(&[&can[..], &["-o", &log]].concat()).fails(2, "would overwrite the file of --replay");
    run(&[&can[..], &["--vcd", &log]].concat()).fails(2, "would overwrite the file of --replay");
    assert!(bench.content() == before);
    assert_eq!(fs::read(&log).expect("is there"), b"(1.000000) can0 123#00\n");
    assert_eq!(bench.names(), ["chip.bin", "in", "link", "log"]);
    run(&["flash", "id", "--bus", "sim:imx8mp", "--vcd", "/dev/null"]).ok();
}

#[test]
fn what_does_a_job_on_a_chip_has_no_default_bus() {
    let bench = Bench::new("imx8mp");
    let input = bench.file("in", &noise(300, 1));
    let erased = bench.file("ff", &[0xff; 300]);
    let out = text(&bench.path("out"));
    for command in [
        // Of a simulated chip, which is erased, this is true.
        &["flash", "verify", &erased][..],
        &["flash", "verify", "--quiet", &erased],
        &["flash", "verify", "--json", &erased],
        &["flash", "id"],
        &["flash", "read", "--length", "16", &out],
        &["flash", "write", &input],
        &["flash", "erase", "--all"],
        &["adc", "read"],
        &["adc", "read", "--probe"],
        &["adc", "stream", "--samples", "100"],
        &["can", "dump", "-n", "1"],
        &["can", "gen", "-n", "1"],
        &["can", "echo", "--frames", "10"],
        &["can", "bridge", "--iface", "vcan0", "--duration-ms", "10"],
        &["regs", "read", "--chip", "mcp2518fd", "OSC"],
        &["regs", "write", "--chip", "mcp2518fd", "C1CON.REQOP=4"],
        &["regs", "dump", "--chip", "mcp2518fd"],
        &["xfer", "9f000000"],
        &["selftest", "--max-len", "64"],
        &["serve", "--serprog", "127.0.0.1:0"],
    ] {
        let ran = run(command);
        for part in ["--bus <BUS>", "`barewire doctor`", "--bus sim:imx8mp", "BAREWIRE_BUS"] {
            assert!(ran.stderr.contains(part), "{command:?}: {part:?} is not in {ran:?}");
        }
        assert!((ran.code, ran.stdout.is_empty()) == (Some(2), true), "{command:?}: {ran:?}");
    }
    assert_eq!(bench.names(), ["ff", "in"]);
    // Another argument that is missing has no such advice.
    let other = run(&["flash", "verify", "--bus", "sim:imx8mp"]);
    assert!(other.code == Some(2) && !other.stderr.contains("doctor"), "{other:?}");
}

#[test]
fn what_is_on_no_board_needs_no_bus() {
    run(&["demo"]).ok();
    run(&["list"]).ok();
    run(&["lab", "list"]).ok();
    run(&["bench", "--rounds", "1", "--no-instructions"]).ok();
}

#[test]
fn the_environment_names_a_bus_and_the_option_is_stronger() {
    let bench = Bench::new("imx8mp");
    let input = bench.file("in", &noise(300, 1));
    let mut by_name = barewire(&["flash", "write", &input]);
    let ran = by_name.env("BAREWIRE_BUS", &bench.bus).output().expect("starts");
    assert!(ran.status.success(), "{ran:?}");
    assert!(bench.content()[..300] == noise(300, 1));
    let mut both = barewire(&["flash", "id", "--bus", "sim:sabrelite", "--json"]);
    let ran = both.env("BAREWIRE_BUS", &bench.bus).output().expect("starts");
    assert!(String::from_utf8_lossy(&ran.stdout).contains("SST25VF016B"), "{ran:?}");
}

#[test]
fn what_is_thrown_away_and_what_is_made_is_told_even_where_it_is_quiet() {
    let bench = Bench::new("imx8mp");
    let input = bench.file("in", &noise(300, 1));
    let quiet = run(&["flash", "write", "-q", "--bus", "sim:imx8mp", &input]).ok();
    assert!(quiet.stderr.contains("sim:imx8mp is simulated: without flash=FILE"), "{quiet:?}");
    let quiet = bench.flash("write", "", &["-q", &input]).ok();
    assert!(
        quiet.stderr.contains("chip.bin did not exist: made, an erased W25Q256JV"),
        "{quiet:?}"
    );
    assert_eq!(bench.flash("write", "", &["-q", &input]).ok().stderr, "");
}

#[test]
fn a_killed_write_leaves_a_mixture_as_a_chip_does() {
    let bench = Bench::new("imx8mp");
    let data = noise(IMX8MP_SIZE, 1);
    let input = bench.file("in", &data);
    let all = ["flash", "write", "--bus", &bench.bus, &input];
    let mut command = barewire(&all);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    let begun = Instant::now();
    // Waits for the first sectors in the file, which are there long before the last.
    while fs::read(&bench.chip).map_or(true, |content| content.get(..8192) != Some(&data[..8192])) {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing was written");
        assert!(child.try_wait().expect("is there").is_none(), "it ended before it was killed");
        sleep(Duration::from_millis(1));
    }
    child.kill().expect("kills");
    child.wait().expect("ends");
    let content = bench.content();
    let equal = content.iter().zip(&data).take_while(|(one, other)| one == other).count();
    assert!((8192..IMX8MP_SIZE).contains(&equal), "{equal}");
    // Behind the sector that was being written, the chip is unchanged.
    assert!(content[(equal / 4096 + 1) * 4096..].iter().all(|&byte| byte == 0xff));
}

#[test]
fn an_endless_input_is_refused() {
    for command in [
        &["can", "dump", "--bus", "sim:imx8mp", "--replay", "/dev/zero"][..],
        &["can", "gen", "--bus", "sim:imx8mp", "--replay", "/dev/zero"],
        &["adc", "read", "--bus", "sim:rpi3,input=0:file:/dev/zero:1000"],
    ] {
        run(command).fails(1, "has more than");
    }
}

#[test]
fn nothing_done_is_no_success() {
    let bench = Bench::new("imx8mp");
    let (empty, out) = (bench.file("empty", b""), bench.file("out", b"kept"));
    bench.flash("verify", "", &[&empty]).fails(1, "nothing to verify");
    bench.flash("read", "", &["--offset", "32M", &out]).fails(1, "nothing to read");
    bench.flash("erase", "", &["--length", "0"]).fails(1, "nothing to erase");
    assert_eq!(fs::read(&out).expect("is there"), b"kept");
    run(&["can", "gen", "--bus", "sim:imx8mp", "--replay", &empty]).fails(1, "no frame in it");
    let late = ["--max-len", "64", "--fault", "timeout", "--fault-at", "9000000"];
    run(&[&["selftest", "--bus", "sim:imx8mp"], &late[..]].concat())
        .fails(1, "the fault went unnoticed");
    let input = bench.file("in", &noise(300, 1));
    bench
        .flash("write", ",fault=power-loss-program:9", &[&input])
        .fails(1, "the loss of power did not come: the chip programmed 2 times and erased 0 times");
}

#[test]
fn a_recording_that_is_not_whole_is_an_error() {
    let bench = Bench::new("imx8mp");
    let vcd = text(&bench.path("wire.vcd"));
    let out = text(&bench.path("out"));
    bench
        .flash("read", "", &["--length", "1M", "--vcd", &vcd, "--vcd-limit", "10000", &out])
        .fails(1, "recording was full");
    assert!(fs::metadata(&vcd).expect("what there is was written").len() > 100_000);
}

#[test]
fn numbers_mean_one_thing_and_what_is_none_is_told_in_words() {
    for command in [
        &["flash", "id", "--cs", "x"][..],
        &["xfer", "--bits", "x", "9f"],
        &["xfer", "--cs-setup-ns", "-", "9f"],
        &["adc", "stream", "--samples", "x"],
        &["can", "gen", "-n", "x"],
        &["can", "gen", "--seed", "x"],
        &["can", "dump", "-T", "x"],
        &["regs", "read", "--chip", "mcp2518fd", "--cs", "x", "OSC"],
        &["selftest", "--fault", "timeout", "--fault-at", "x"],
        &["bench", "--rounds", "x"],
        &["bench", "--board", "sim:imx8mp", "--speed-hz", "x"],
    ] {
        let ran = run(command);
        assert!(!ran.stderr.contains("digit found"), "{ran:?}");
        ran.misused("not a number: write ");
    }
    run(&["can", "gen", "-n", "0"]).misused("at least 1");
    run(&["flash", "id", "--cs", "256"]).misused("256 is too large");
    let stream = ["adc", "stream", "--bus", "sim:rpi3", "--samples", "1k", "--json"];
    let rows = run(&stream).ok().json();
    assert_eq!(rows["rows"][0]["samples"], serde_json::json!(1_000), "{rows}");
}
