//! `barewire can`: frames that come and go, their formats, and refusals.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use super::adc::number;
use super::command::{
    GROWTH_MAX_KB, Ran, barewire, has_fields, interrupted, interrupted_without_growth, resident_kb,
    run, run_line, runs_whole,
};

fn can(verb: &str, options: &str) -> Ran {
    run_line(&format!("can {verb} {options}"))
}

fn json_of(verb: &str, options: &str) -> Value {
    can(verb, &format!("{options} --bus sim:imx8mp --json")).ok().last_json()
}

#[test]
fn frames_come_as_candump_prints_them() {
    let ran = can("dump", "--bus sim:imx8mp -q -g 10 -n 3 -I 123 -D 1122334455667788 -t z").ok();
    let expected = [0, 10_000, 20_000]
        .map(|us| format!(" (000.{us:06})  can0  123   [8]  11 22 33 44 55 66 77 88\n"))
        .concat();
    assert_eq!(ran.text(), expected);
    let ran = can("dump", "--bus sim:imx8mp -q -g 1 -n 2 -e -I 12345678 -R -L 4 -t d").ok();
    let line = "can0  12345678   [4]  remote request\n";
    assert_eq!(ran.text(), format!(" (000.000000)  {line} (000.001000)  {line}"));
    let ran = can("dump", "--bus sim:imx8mp -q -n 1 -I 7 -D AA").ok();
    assert_eq!(ran.text(), "  can0  007   [1]  AA\n");
}

#[test]
fn a_log_goes_out_as_it_came_in() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("log").display().to_string();
    let options = "--bus sim:imx8mp -q --fd -g 0.7 -n 40 -m --seed 3";
    assert!(can("dump", &format!("{options} -l -o {path}")).ok().stdout.is_empty());
    let log = fs::read_to_string(&path).expect("a log");
    assert_eq!(log.lines().count(), 40);
    assert_eq!(can("dump", &format!("{options} -l")).ok().text(), log);
    let frames = |log: &str| -> Vec<String> {
        log.lines().map(|line| line.rsplit(' ').next().expect("a frame").into()).collect()
    };
    for kind in ["#R", "##0", "##1"] {
        assert!(frames(&log).iter().any(|frame| frame.contains(kind)), "{kind}: {log}");
    }
    let again = can("dump", &format!("--bus sim:imx8mp -q --fd -l --replay {path}")).ok().text();
    assert_eq!(frames(&again), frames(&log));
    let line = json_of("gen", &format!("--fd --replay {path}"));
    assert_eq!(line["frames_received"], json!(40));
    // Bad lines are named, and nothing is sent.
    let bad = log.replacen("can0", "", 1);
    fs::write(&path, bad).expect("written");
    let ran = can("gen", &format!("--bus sim:imx8mp --fd --replay {path}"));
    assert!(ran.fails(1, "line 1: ").stdout.is_empty());
}

#[test]
fn at_full_load_every_frame_comes_and_goes() {
    let line = json_of("gen", "-g 0 -n 600 -I i -L 8");
    let expected = json!({
        "frames_sent": 600, "frames_received": 600, "frames_lost": 0, "frames_reordered": 0,
        "transmit_errors": 0,
    });
    has_fields(&line, &expected);
    assert!(number(&line, "bus_load_percent") > 99.5, "{line}");
    assert!(number(&line, "bus_load_percent") < 100.1, "{line}");
    // The far node is there for the first one too.
    let line = json_of("gen", "-n 1");
    assert_eq!((&line["frames_sent"], &line["transmit_errors"]), (&json!(1), &json!(0)));
    let line = json_of("gen", "-g 10 -n 20 -I 7 -D 00");
    // 8 bits of data: 55 bits and stuff bits, 3 of intermission, of 2,500 bits a gap.
    let load = number(&line, "bus_load_percent");
    assert!((2.4..3.2).contains(&load), "{line}");
    let line = json_of("dump", "--full-load -n 600 -o /dev/null");
    let expected = json!({
        "frames_sent": 600, "frames_received": 600, "frames_lost": 0, "errors": 0,
    });
    has_fields(&line, &expected);
    assert!(number(&line, "spi_accesses_per_frame") <= 3.05, "{line}");
    assert_eq!(line.get("log"), None);
}

#[test]
fn a_chip_that_is_asked_instead_of_interrupting_loses_nothing_either() {
    let line = json_of("dump", "--no-interrupt --full-load -n 300 -o /dev/null");
    assert_eq!((&line["frames_received"], &line["frames_lost"]), (&json!(300), &json!(0)));
    // Without an interrupt the chip is also polled when it has nothing, and the timeout still ends
    // the command.
    assert!(number(&line, "spi_accesses_per_frame") > 3.05, "{line}");
    let line = json_of("dump", "--no-interrupt -g 100 -T 30");
    assert_eq!((&line["timed_out"], &line["frames_received"]), (&json!(true), &json!(1)));
    let line = json_of("gen", "--no-interrupt -g 0 -n 300");
    assert_eq!((&line["frames_received"], &line["frames_lost"]), (&json!(300), &json!(0)));
}

#[test]
fn a_bus_faster_than_spi_loses_no_confirmation() {
    let line = json_of("gen", "--bitrate 1M --speed-hz 1M -g 0 -n 100");
    assert_eq!((&line["frames_sent"], &line["frames_lost"]), (&json!(100), &json!(0)));
    assert!(number(&line, "bus_load_percent") < 50.0, "{line}");
}

#[test]
fn what_is_lost_is_counted_and_why_a_sender_gave_up_is_said() {
    let slow = "--bus sim:imx8mp -q --bitrate 1M --speed-hz 1M -g 0";
    let ran = can("dump", &format!("{slow} -n 500"));
    let received = ran.text().lines().filter(|line| !line.contains("ERRORFRAME")).count();
    ran.fails(1, &format!("{} frames were lost", 500 - received)).fails(1, "--speed-hz");
    can("gen", "--bus sim:imx8mp -q -g 0 -n 100 -p 0").fails(1, "is -p shorter than a frame?");
}

#[test]
fn filters_are_in_the_chip() {
    let log = |filter: &str| -> Vec<String> {
        let options = format!("--bus sim:imx8mp -g 1 -n 40 -I i -D 00 --filter {filter} --json");
        let (lines, line) = can("dump", &options).ok().json_lines();
        assert_eq!((&line["frames_sent"], &line["frames_lost"]), (&json!(40), &json!(0)));
        let frame = |line: &Value| line["log"].as_str()?.rsplit(' ').next().map(String::from);
        lines.iter().map(|line| frame(line).expect("a frame")).collect()
    };
    assert_eq!(log("007:7FF"), ["007#00"]);
    assert_eq!(log("010:7FC"), ["010#00", "011#00", "012#00", "013#00"]);
    assert_eq!(log("003:7FF,005:7FF"), ["003#00", "005#00"]);
    // Frames of 29 bits alone.
    assert_eq!(log("00000007:9FFFFFFF"), [""; 0]);
}

#[test]
fn what_differs_from_the_defaults_reaches_the_chip() {
    let line = json_of(
        "gen",
        "--bitrate 1M --sample-point 0.8 --fd --dbitrate 5M --crc -b -L 64 -g 0 -n 50",
    );
    assert_eq!(line["bitrate_hz"], json!(1_000_000));
    assert_eq!(line["sample_point_permille"], json!(800));
    assert_eq!(line["dbitrate_hz"], json!(5_000_000));
    assert_eq!((&line["frames_received"], &line["frames_lost"]), (&json!(50), &json!(0)));
    // 64 bytes at 5 Mbit/s and the rest at 1: the classic bit rate alone would be 1,500.
    assert!(number(&line, "frames_per_s") > 5_000.0, "{line}");
}

#[test]
fn errors_are_told_by_what_they_are() {
    let sim = "--bus sim:imx8mp -q -n 5";
    for verb in ["dump", "gen"] {
        let with = |more: &str| can(verb, &format!("{sim} {more}"));
        with("--speed-hz 18M").fails(1, "17000000 Hz: lower the clock (--speed-hz)");
        with("--bitrate 1").fails(1, "--bitrate");
        with("--oscillator-hz 1").fails(1, "1 to 40 MHz (--oscillator-hz)");
        with("-g 1e12").misused("at most 86400000");
        with("--fd --dbitrate 30M").fails(1, "--dbitrate");
        with("-f").fails(2, "--fd");
        can(verb, "--bus sim:imx8mp --replay /nowhere").fails(1, "cannot read /nowhere");
        let bus = "--bus sim:imx8mp,fault=no-chip -n 5";
        can(verb, bus).fails(1, "no CAN controller answers");
        can(verb, "--bus sim:rpi3 -n 5").fails(1, "sim:rpi3 has no CAN controller");
        can(verb, "--bus sim:imx8mp --cs 0 -n 5").fails(1, "no CAN controller answers");
    }
    for option in ["-g 1", "-I 7", "--seed 1", "--replay x"] {
        let ran = can("dump", &format!("--bus spidev:/dev/spidev99.9 {option}"));
        ran.fails(2, "far node of a simulated board");
    }
    can("dump", "--bus spidev:/dev/spidev99.9 -n 1").fails(1, "/dev/spidev99.9");
    can("dump", "--bus sim:imx8mp --filter 1000:80001000").fails(2, "no identifier can pass");
    can("dump", "--bus sim:imx8mp --filter 123~7FF").misused("ID:MASK only");
}

#[test]
fn a_dump_ends_when_nothing_comes() {
    let line = json_of("dump", "-g 100 -T 30");
    assert_eq!((&line["timed_out"], &line["frames_received"]), (&json!(true), &json!(1)));
}

#[test]
fn ctrl_c_ends_it_with_a_summary() {
    for verb in ["dump", "gen"] {
        let command = barewire(
            &["can", verb, "--bus", "sim:imx8mp", "--json", "-o", "/dev/null"]
                [..if verb == "dump" { 7 } else { 5 }],
        );
        let ran = interrupted(command, 300);
        let line = ran.json();
        assert_eq!(line["interrupted"], json!(true));
        assert_eq!((&line["frames_lost"], &line["error_state"]), (&json!(0), &json!("active")));
        ran.fails(130, "stopped as asked");
    }
}

/// Under each command on the page stands what the command prints, with notes after the result.
#[test]
fn the_page_shows_what_is_printed() {
    let page = include_str!("../../../../docs/can.md");
    let blocks =
        page.split("```\n").skip(1).step_by(2).filter(|block| block.starts_with("$ barewire "));
    let mut shown = 0;
    for example in blocks.flat_map(|block| block.split("\n\n$ ")) {
        let (command, text) = example.split_once('\n').expect("a command and its output");
        let command = command.trim_start_matches("$ ").strip_prefix("barewire ").expect("ours");
        shown += 1;
        let arguments: Vec<&str> = command.split(' ').collect();
        let ran = run(&arguments).ok();
        let all = ran.text() + &ran.stderr;
        assert!(all.starts_with(text.trim_end()), "{command}:\n{all}");
    }
    assert_eq!(shown, 3, "{page}");
}

#[test]
fn a_bridge_without_an_interface_says_how_to_make_one() {
    let ran = can("bridge", "--bus sim:imx8mp --iface bw-none9");
    let ran = ran.fails(1, "ip link add dev bw-none9 type vcan");
    assert!(ran.stdout.is_empty(), "{ran:?}");
    run(&["can", "bridge", "--iface", ""]).misused("--iface");
    let ran = can("bridge", "--bus sim:imx8mp");
    assert!(ran.code == Some(2) && ran.stderr.contains("--iface"), "{ran:?}");
    // The interface exists, and is not one of CAN's.
    let ran = can("bridge", "--bus sim:imx8mp --iface lo");
    assert!(ran.code == Some(1) && ran.stderr.contains("type vcan"), "{ran:?}");
}

/// A vcan interface of the test's own, taken away when dropped.
struct Vcan(String);

impl Vcan {
    fn new() -> Result<Self, String> {
        let name = format!("bwt{}", std::process::id() % 100_000);
        let ip = |arguments: &str| {
            let words = arguments.split_whitespace();
            let output = std::process::Command::new("ip").args(words).output();
            let output = output.map_err(|error| format!("no `ip` here: {error}"))?;
            match output.status.success() {
                true => Ok(()),
                false => Err(String::from_utf8_lossy(&output.stderr).trim().to_string()),
            }
        };
        ip(&format!("link add dev {name} type vcan"))?;
        let vcan = Self(name);
        ip(&format!("link set {} mtu 72 up", vcan.0))?;
        Ok(vcan)
    }
}

impl Drop for Vcan {
    fn drop(&mut self) {
        let arguments = ["link", "del", "dev", &self.0];
        let _ = std::process::Command::new("ip").args(arguments).status();
    }
}

/// A chip that kept the time of each interrupt took 24 bytes a frame.
#[test]
fn a_dump_takes_no_memory_for_the_frames_that_it_printed() {
    let frames = if runs_whole() { 200_000 } else { 60_000 };
    let mut command = barewire(&["can", "dump", "--bus", "sim:imx8mp", "-q", "-g", "0"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("starts");
    let id = child.id().to_string();
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut pass = |frames| {
        let passed = lines.by_ref().take(frames).filter(Result::is_ok).count();
        (passed, resident_kb(&id))
    };
    let ((_, before_kb), (passed, after_kb)) = (pass(10_000), pass(frames));
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert_eq!(passed, frames, "it ended");
    assert!(after_kb <= before_kb + GROWTH_MAX_KB, "{before_kb} kB, then {after_kb} kB");
}

/// A comparison of all frames at the end took about 180 bytes a frame.
#[test]
fn the_memory_of_gen_does_not_grow_with_the_frames() {
    let words = "can gen --bus sim:imx8mp --json -g 0 -n 10000000".split(' ').collect::<Vec<_>>();
    let line = interrupted_without_growth(barewire(&words)).json();
    assert!(number(&line, "frames_received") > 1_000.0, "{line}");
    assert_eq!((&line["frames_lost"], &line["frames_reordered"]), (&json!(0), &json!(0)), "{line}");
}

#[test]
fn a_bridge_carries_frames_to_a_vcan_and_back() {
    use socketcan::{CanAnyFrame, CanDataFrame, CanFdSocket, EmbeddedFrame, Socket, StandardId};

    let vcan = match Vcan::new() {
        Ok(vcan) => vcan,
        Err(why) => {
            println!("SKIPPED: no vcan can be made here: {why}");
            return;
        }
    };
    let socket = CanFdSocket::open(&vcan.0).expect("a socket");
    socket.set_read_timeout(Duration::from_secs(60)).expect("a timeout");
    let options = "--bus sim:imx8mp --json --duration-ms 10000 -g 20 -n 10 -I i -D 55";
    let words = ["can", "bridge", "--iface", &vcan.0].into_iter().chain(options.split(' '));
    let child =
        barewire(&words.collect::<Vec<_>>()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("starts");
    for id in 0..10_u16 {
        let frame = socket.read_frame().expect("a frame");
        let CanAnyFrame::Normal(frame) = frame else { panic!("{frame:?}") };
        let expected = StandardId::new(id).expect("11 bits");
        assert_eq!((frame.id(), frame.data()), (expected.into(), &[0x55][..]));
    }
    for id in 0x700..0x705_u16 {
        let id = StandardId::new(id).expect("11 bits");
        let frame = CanDataFrame::new(id, &[1, 2, 3]).expect("a frame");
        socket.write_frame(&CanAnyFrame::from(frame)).expect("written");
    }
    let ran: Ran = child.wait_with_output().expect("it ends").into();
    let line = ran.ok().json();
    has_fields(&line, &json!({"frames_to_socket": 10, "frames_to_bus": 5, "transmit_errors": 0}));
}
