//! `qemu:`: the command on QEMU's models of registers and chips.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;

use super::command::{
    Bench, Has, Ran, SABRELITE_SIZE, barewire, has_fields, noise, run, text, works_for,
};

const BUS: &str = "qemu:sabrelite";
/// Names another QEMU.
const VARIABLE: &str = "BAREWIRE_QEMU_ARM";
const LEN: usize = 64 << 10;

/// Whether there is a QEMU; says so if not.
pub(super) fn qemu() -> bool {
    let there = Command::new("qemu-system-arm").arg("--version").output().is_ok();
    if !there {
        println!("SKIPPED: qemu-system-arm is not installed");
    }
    there
}

/// A directory for the chip's file, the program's temporary files, and results.
fn bench() -> Bench {
    bench_of(BUS)
}

fn bench_of(bus: &str) -> Bench {
    let mut bench = Bench::new("sabrelite");
    bench.bus = format!("{bus},flash={}", bench.chip.display());
    fs::create_dir(bench.path("tmp")).expect("a directory");
    bench
}

/// `flash VERB`, its temporary files on the bench.
fn flash(bench: &Bench, verb: &str, arguments: &[&str]) -> Command {
    let mut command = barewire(&[&["flash", verb, "--bus", &bench.bus], arguments].concat());
    command.env("TMPDIR", bench.path("tmp"));
    command
}

fn ran(mut command: Command) -> Ran {
    command.output().expect("the command starts").into()
}

/// The processes whose command line names a file on the bench.
fn processes(bench: &Bench) -> Vec<u32> {
    let needle = text(bench.dir.path());
    let entries = fs::read_dir("/proc").expect("/proc is there").flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&needle)
        })
        .collect()
}

#[track_caller]
fn assert_nothing_left(bench: &Bench) {
    assert_eq!(processes(bench), [0_u32; 0], "left running");
    let left = fs::read_dir(bench.path("tmp")).expect("it is there").count();
    assert_eq!(left, 0, "temporary files left");
}

#[test]
fn flash_id_names_the_chip_of_another_house() {
    if !qemu() {
        return;
    }
    let id = run(&["flash", "id", "--bus", BUS, "--json"]).ok();
    assert!(id.stderr.contains("QEMU's own model of the board"), "{id:?}");
    let id = id.json();
    has_fields(&id, &json!({"jedec_id": "bf2541", "simulated": false, "programming": "aai-word"}));
    assert_eq!(id["emulator"], "qemu-system-arm");
    assert!(id["virtual_ns"].is_null(), "QEMU has no virtual time: {id}");
    assert_eq!(run(&["flash", "id", "-q", "--bus", BUS]).ok().stderr, "");
    assert_eq!(run(&["xfer", "-q", "--bus", BUS, "9f000000"]).ok().text(), "00 bf 25 41\n");
    let complained = run(&["xfer", "--bus", BUS, "9e000000"]).ok();
    assert!(complained.stderr.contains("QEMU'S MODELS COMPLAIN: 1"), "{complained:?}");
}

#[test]
fn what_is_written_is_in_qemus_own_file() {
    // On sifive_u above 16 MiB, where addresses have four bytes.
    for (bus, size, offset) in [
        (BUS, SABRELITE_SIZE, 4_001),
        ("qemu:sifive_u", 32 << 20, 0x180_0fa1),
        ("qemu:zynq", 16 << 20, 0xfe_0fa1),
    ] {
        if usable(bus) {
            a_write_is_in_the_file(&bench_of(bus), size, offset);
        }
    }
}

/// Writes, reads and verifies at `offset`, which is not aligned, over a sector's border.
fn a_write_is_in_the_file(bench: &Bench, size: usize, offset: usize) {
    let data = noise(LEN + 13, 1);
    let (input, length) = (bench.file("in", &data), data.len().to_string());
    let (at, next) = (offset.to_string(), (offset + 1).to_string());
    let wrote = ran(flash(bench, "write", &["--offset", &at, "--json", &input])).ok().json();
    assert_eq!([&wrote["bytes"], &wrote["verified"]], [&json!(data.len()), &json!(true)]);
    let mut expected = vec![0xff; size];
    expected[offset..offset + data.len()].copy_from_slice(&data);
    assert!(bench.content() == expected, "QEMU's backing file has the bytes and nothing else");
    let out = text(&bench.path("out"));
    ran(flash(bench, "read", &["--offset", &at, "--length", &length, &out])).ok();
    assert!(fs::read(&out).expect("read made it") == data);
    ran(flash(bench, "verify", &["--offset", &at, &input])).ok();
    ran(flash(bench, "verify", &["--offset", &next, &input])).fails(1, "the chip holds");
    assert_nothing_left(bench);
    assert_eq!(bench.names(), ["chip.bin", "in", "out", "tmp"]);
}

/// Whether QEMU is there and new enough for a board; says so if not.
fn usable(bus: &str) -> bool {
    let usable = entry(&run(&["list", "--json", "--versions"]).ok().json(), bus)["usable"] == true;
    if !usable {
        println!("SKIPPED: {bus}: its program is missing, or too old");
    }
    usable
}

#[test]
fn bytes_are_exchanged_on_every_board() {
    let xfer = |bus: &str, more: &[&str]| run(&[&["xfer", "--bus", bus], more].concat()).ok();
    for bus in ["qemu:lm3s6965evb", "qemu:sifive_u_sd"] {
        if usable(bus) {
            let cmd0 = ["-q", "--speed-hz", "400k", "400000000095", "ffffff"];
            assert_eq!(xfer(bus, &cmd0).text(), "ff ff ff ff ff ff\nff 01 ff\n");
        }
    }
    if usable("qemu:highbank") {
        let looped = xfer("qemu:highbank", &["--loop", "0102", "03"]);
        assert!(looped.stderr.contains("no chip select: none is driven"), "{looped:?}");
        assert_eq!(looped.text(), "01 02\n03\n");
        assert_eq!(xfer("qemu:highbank", &["-q", "a5"]).text(), "00\n");
        run(&["xfer", "--bus", "qemu:highbank", "--cs", "1", "a5"]).fails(1, "no chip select 1");
    }
    if usable("qemu:raspi3b") {
        assert_eq!(xfer("qemu:raspi3b", &["-q", "--cs", "1", "a55a"]).text(), "00 00\n");
        run(&["xfer", "--bus", "qemu:raspi3b", "--loop", "a5"]).fails(1, "");
    }
}

#[test]
fn what_is_not_on_the_board_is_refused_before_it_is_started() {
    let bench = bench();
    let card = text(&bench.path("card"));
    let on_card = format!("qemu:lm3s6965evb,flash={card}");
    let elsewhere = "an SD card; a flash chip is on qemu:sabrelite, qemu:sifive_u, qemu:zynq";
    run(&["flash", "id", "--bus", &on_card]).fails(1, elsewhere);
    run(&["flash", "read", "--bus", "qemu:highbank", &card]).fails(1, "nothing is on the bus");
    run(&["flash", "erase", "--all", "--bus", "qemu:raspi3b"]).fails(1, "nothing is on the bus");
    run(&["adc", "read", "--bus", BUS]).fails(1, "no board of QEMU's has a converter");
    assert_eq!(bench.names(), ["tmp"], "neither output nor card");
}

#[test]
fn the_self_test_passes_where_the_controller_loops_back() {
    for bus in ["qemu:highbank", "qemu:lm3s6965evb"] {
        if !usable(bus) {
            continue;
        }
        let arguments = ["selftest", "--bus", bus, "--max-len", "64", "--json"];
        let ran = run(&arguments).ok().json();
        assert_eq!([&ran["passed"], &ran["failed"]], [&json!(true), &json!(0)]);
        assert_eq!([&ran["bus"], &ran["emulator"]], [&json!(bus), &json!("qemu-system-arm")]);
        run(&[&arguments[..], &["--fault", "bit-flip"]].concat()).fails(1, "iterations failed");
    }
    for bus in [BUS, "qemu:raspi3b", "qemu:sifive_u", "qemu:zynq"] {
        let elsewhere = "no loopback; that of qemu:highbank, qemu:lm3s6965evb has";
        run(&["selftest", "--bus", bus]).fails(1, elsewhere);
    }
}

#[test]
fn a_missing_qemu_a_wrong_file_and_an_unknown_board_are_refused() {
    let bench = bench();
    let out = text(&bench.path("out"));
    let read = || flash(&bench, "read", &["--length", "16", &out]);
    let mut missing = read();
    missing.env(VARIABLE, "/nonexistent/qemu-system-arm");
    let missing = ran(missing).fails(1, "cannot run /nonexistent/qemu-system-arm");
    assert!(missing.stderr.contains("apt-get install qemu-system-arm"), "{missing:?}");
    let mut other = read();
    other.env(VARIABLE, "/bin/echo");
    ran(other).fails(1, "does not answer as QEMU does");
    let mut old = read();
    old.env(
        VARIABLE,
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../iommu/barewire-qtest/tests/fake/too_old.sh"),
    );
    ran(old).fails(1, "is QEMU 6.2, the board needs 7.2 or later");
    let bus = "qemu:sabrelight";
    run(&["flash", "id", "--bus", bus]).fails(2, "did you mean \"sabrelite\"?");
    run(&["flash", "id", "--bus", BUS, "--vcd", &out]).fails(2, "--vcd records the wire of sim");
    assert_nothing_left(&bench);
    assert_eq!(bench.names(), ["tmp"], "neither output nor chip file");
    if !qemu() {
        return;
    }
    fs::write(&bench.chip, [1; 1000]).expect("a file");
    ran(read()).fails(1, "has 1000 bytes, the board's SST25VF016B has 2097152");
    assert_nothing_left(&bench);
    assert_eq!(bench.names(), ["chip.bin", "tmp"]);
    assert_eq!(bench.content(), [1; 1000]);
}

/// The entry of a board in a list.
fn entry(list: &serde_json::Value, bus: &str) -> serde_json::Value {
    let buses = list["buses"].as_array().expect("a list");
    buses.iter().find(|entry| entry["bus"] == bus).expect("it is listed").clone()
}

#[test]
fn a_board_that_is_too_new_for_its_qemu_is_listed_with_the_remedy() {
    let old =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../iommu/barewire-qtest/tests/fake/too_old.sh");
    let mut command = barewire(&["list", "--versions"]);
    command.env("BAREWIRE_QEMU_AARCH64", old);
    let text = ran(command).ok().text();
    let entry = text.split("\n\n").find(|entry| entry.starts_with("qemu:raspi3b"));
    let entry = entry.expect("it is listed");
    entry.has(&["BCM2835 SPI0 at 0x3f204000", "needs 10.0 or later", "-t bookworm-backports"]);
}

#[test]
fn a_list_starts_no_program() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (program, mark) = (dir.path().join("qemu"), dir.path().join("started"));
    let script = format!("#!/bin/sh\ntouch {}\necho QEMU emulator version 99.1\n", mark.display());
    fs::write(&program, script).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
    let list = |arguments: &[&str]| {
        let mut command = barewire(arguments);
        command.env(VARIABLE, &program);
        entry(&ran(command).ok().json(), BUS)
    };
    assert_eq!(list(&["list", "--json"])["installed"], true);
    assert!(!mark.exists(), "QEMU was asked for its version: half a second");
    let board = list(&["list", "--json", "--versions"]);
    assert_eq!((&board["version"], &board["usable"]), (&json!("99.1"), &json!(true)));
}

#[test]
fn a_missing_program_is_listed_with_its_package() {
    let list = |arguments: &[&str]| {
        let mut command = barewire(arguments);
        command.env(VARIABLE, "/nonexistent/qemu-system-arm");
        ran(command).ok()
    };
    let board = entry(&list(&["list", "--json"]).json(), BUS);
    assert_eq!(board["installed"], false);
    assert!(board["version"].is_null());
    let text = list(&["list"]).text();
    assert!(text.contains("sudo apt-get install qemu-system-arm"), "{text}");
    if qemu() {
        let board = entry(&run(&["list", "--json"]).ok().json(), BUS);
        assert_eq!(board["installed"], true);
        assert!(board["version"].is_null() && board["usable"].is_null(), "not asked for");
        let board = entry(&run(&["list", "--json", "--versions"]).ok().json(), BUS);
        assert_eq!([&board["installed"], &board["usable"]], [true, true]);
        assert!(board["version"].is_string());
    }
}

/// Starts a command and sends `signal` once its QEMU is at work: to the command, or to QEMU.
fn signalled(bench: &Bench, mut command: Command, signal: &str, qemu_itself: bool) -> Ran {
    let child = command
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let drive = format!("file={}", bench.chip.display());
    let begun = Instant::now();
    let qemu = loop {
        let found = processes(bench).into_iter().find(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.starts_with(b"qemu-system-arm") && String::from_utf8_lossy(&line).contains(&drive)
        });
        match found {
            Some(pid) => break pid,
            None => assert!(begun.elapsed() < Duration::from_secs(60), "no QEMU was started"),
        }
        sleep(Duration::from_millis(5));
    };
    // While it waits for QEMU it sleeps.
    works_for(&child.id().to_string(), 150);
    let pid = if qemu_itself { qemu } else { child.id() };
    let status = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(status.expect("kill is there").success());
    child.wait_with_output().expect("it ends").into()
}

#[test]
fn a_qemu_that_dies_is_the_error_and_leaves_no_output() {
    if !qemu() {
        return;
    }
    let bench = bench();
    let out = text(&bench.path("out"));
    // The whole chip: seconds.
    let died = signalled(&bench, flash(&bench, "read", &[&out]), "-KILL", true);
    died.fails(1, "QEMU ended (signal: 9");
    assert_nothing_left(&bench);
    assert_eq!(bench.names(), ["chip.bin", "tmp"]);
}

#[test]
fn ctrl_c_ends_qemu_and_keeps_the_file() {
    if !qemu() {
        return;
    }
    let bench = bench();
    let data = noise(128 << 10, 1);
    let input = bench.file("in", &data);
    let ran = signalled(&bench, flash(&bench, "write", &[&input]), "-INT", false);
    let ran = ran.fails(130, "stopped as asked after");
    assert!(!ran.stderr.contains("LEFT") && ran.stdout.is_empty(), "{ran:?}");
    assert_nothing_left(&bench);
    let content = bench.content();
    assert_eq!(content.len(), SABRELITE_SIZE);
    let equal = content.iter().zip(&data).take_while(|(one, other)| one == other).count();
    let done = equal / 4096 * 4096;
    assert!(done < data.len(), "it was interrupted");
    assert!(content[done..].iter().all(|&byte| byte == 0xff), "whole sectors only");
}
