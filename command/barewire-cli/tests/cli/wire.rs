//! `xfer`, and the recording of the wire as an independent decoder reads it.

use std::fs;
use std::process::Command;

use serde_json::json;

use super::command::{Ran, barewire, run, text};

fn xfer(arguments: &[&str]) -> Ran {
    run(&[&["xfer", "--bus", "sim:imx8mp"], arguments].concat())
}

#[test]
fn xfer_prints_what_came_in_for_each_transfer() {
    assert_eq!(xfer(&["9f000000"]).ok().text(), "ff ef 40 19\n");
    assert_eq!(xfer(&["0x9f", "00:00 00"]).ok().text(), "ff\nef 40 19\n");
    for bits in ["16", "32"] {
        let ran = xfer(&["--bits", bits, "9f000000"]).ok();
        assert_eq!(ran.text(), "ff ef 40 19\n", "hex is in wire order whatever the word");
    }
    assert_eq!(xfer(&["--cs-change", "06", "0500"]).ok().text(), "ff\nff 02\n");
    assert_eq!(xfer(&["--cs", "1", "--loop", "123456"]).ok().text(), "12 34 56\n");
}

#[test]
fn xfer_reports_what_the_hardware_makes_of_settings() {
    let ran = xfer(&["--json", "--speed-hz", "13M", "--cs-setup-ns", "1", "9f000000"]).ok();
    let line = ran.json();
    assert_eq!(line["transfers"], json!([{"tx": "9f000000", "rx": "ffef4019"}]));
    assert_eq!([&line["speed_hz"], &line["effective_speed_hz"]], [13_000_000, 11_428_571]);
    assert_eq!([&line["cs_setup_ns"], &line["effective_cs_setup_ns"]], [1, 125]);
    let ran = xfer(&["--speed-hz", "13M", "--cs-setup-ns", "1", "9f000000"]).ok();
    assert!(ran.stderr.contains("13 MHz asked: the controller makes 11,428,571 Hz"), "{ran:?}");
    assert!(ran.stderr.contains("cs-setup of 1 ns asked: 125 ns made"), "{ran:?}");
}

#[test]
fn quiet_is_quiet() {
    let ran = xfer(&["--quiet", "9f000000"]).ok();
    assert_eq!(ran.stderr, "");
    assert_eq!(run(&["flash", "id", "--bus", "sim:imx8mp", "-q"]).ok().stderr, "");
}

#[test]
fn a_recorded_jedec_read_decodes_to_the_same_bytes() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let vcd = text(&dir.path().join("x.vcd"));
    let ran = xfer(&["--vcd", &vcd, "9f000000"]).ok();
    assert_eq!(ran.text(), "ff ef 40 19\n");
    assert!(fs::read_to_string(&vcd).expect("it was made").contains("$enddefinitions"));
    let decoder = "spi:clk=sck:mosi=mosi:miso=miso:cs=cs0";
    let decoded = Command::new("sigrok-cli")
        .args(["-i", &vcd, "-I", "vcd", "-P", decoder, "-A", "spi=mosi-data:miso-data"])
        .output();
    let Ok(decoded) = decoded else {
        println!("SKIPPED: sigrok-cli is not installed");
        return;
    };
    let text = String::from_utf8(decoded.stdout).expect("UTF-8");
    let bytes: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("spi-1: ")).collect();
    // MISO and MOSI of a byte in turn.
    assert_eq!(bytes, ["FF", "9F", "EF", "00", "40", "00", "19", "00"], "{text}");
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let shell = format!(
        "{} flash read --bus sim:imx8mp --length 1M --quiet - | head -c 4 >/dev/null; echo ${{PIPESTATUS[0]}}",
        barewire(&[]).get_program().to_str().expect("UTF-8")
    );
    let ran = Command::new("bash").args(["-c", &shell]).output().expect("bash is there");
    assert_eq!((ran.stdout.as_slice(), ran.stderr.as_slice()), (&b"0\n"[..], &b""[..]));
}

#[test]
fn a_full_stderr_does_not_stop_the_work() {
    let full = std::fs::File::create("/dev/full").expect("/dev/full is there");
    let ran = barewire(&["xfer", "--bus", "sim:imx8mp", "9f000000"])
        .stderr(full)
        .output()
        .expect("starts");
    assert_eq!((ran.status.code(), ran.stdout.as_slice()), (Some(0), &b"ff ef 40 19\n"[..]));
}
