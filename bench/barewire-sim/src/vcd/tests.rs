//! Checks the file's text, and its decoding by sigrok.

use std::cell::RefCell;
use std::io::ErrorKind;
use std::process::Command;
use std::rc::Rc;

use super::*;
use crate::check::Faults;
use crate::chip::Clocking;
use crate::model::echo::Echo;
use crate::wire::{Driver, Wire};

const PERIOD: Ps = 50_000;

/// Records two selections in `mode`: 1 byte and 5 bytes to an echo.
fn capture(mode: u8, period: Ps, max_events: usize) -> Capture {
    let mut wire = Wire::new(Faults::default());
    let cs = wire.add_line(Driver::Native(0), false);
    wire.attach(cs, Rc::new(RefCell::new(Echo::default())));
    wire.set_sck(mode & 2 != 0, 0);
    wire.start_recording(500, max_events);
    let mut at = 1_000_000;
    for words in [&[(8, 0xa5)][..], &[(8, 0x9f), (32, 0x0123_4567)]] {
        wire.set_line(cs, false, at);
        at += period / 2 * u64::from(mode & 1);
        for &(bits, mosi) in words {
            let clocking = Clocking { at, period };
            wire.begin_run(Run { clocking, mode, bits, mosi, loopback: false });
            wire.end_run();
            at += u64::from(bits) * period;
        }
        at += period / 2;
        wire.set_line(cs, true, at);
        at += 1_000_000;
    }
    assert!(wire.violations(at).kept().is_empty());
    wire.take_recording().unwrap().into_capture()
}

#[test]
fn a_byte_as_a_file() {
    let text = String::from_utf8(capture(0, PERIOD, 4).vcd).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let expected = [
        "$timescale 1 ns $end",
        "$var wire 1 ! sck $end",
        "$var wire 1 # miso $end",
        "$var wire 1 $ cs0 $end",
        "$enddefinitions $end",
        "$comment cut: 3 events lost beyond the limit of 4 $end",
    ];
    for line in expected {
        assert!(lines.contains(&line), "{line} in\n{text}");
    }
    // CS falls with MOSI already at the first bit (1). SCK rises half a period later, and falls at
    // the end of the cell, where the second bit (0) begins.
    let at = |time: &str| {
        let begin = lines.iter().position(|&line| line == time).expect(time);
        let count = lines[begin + 1..].iter().take_while(|line| !line.starts_with('#')).count();
        &lines[begin + 1..=begin + count]
    };
    assert_eq!(at("#999"), ["0$", "0#"]);
    assert_eq!(at("#1024"), ["1!"]);
    assert_eq!(at("#1049"), ["0!", "0\""]);
    assert_eq!(at("#1424"), ["1$", "1#"], "MISO is pulled up again");
}

#[test]
fn the_unit_tells_edges_apart() {
    for (period, unit) in [(10_000, "1 ns"), (9_998, "100 ps"), (998, "1 ps")] {
        let text = String::from_utf8(capture(3, period, 100).vcd).unwrap();
        assert!(text.contains(&format!("$timescale {unit} $end")), "{period}");
    }
}

#[test]
fn a_full_recorder_counts_what_it_loses() {
    assert_eq!(capture(0, PERIOD, 7).lost_events, 0);
    assert_eq!(capture(0, PERIOD, 5).lost_events, 2);
    assert_eq!(capture(0, PERIOD, 0).lost_events, 7);
}

#[test]
fn sigrok_decodes_every_mode() {
    for mode in 0..4_u8 {
        let Capture { vcd, lost_events } = capture(mode, PERIOD, 100);
        assert_eq!(lost_events, 0);
        let path = std::env::temp_dir().join(format!("barewire-{}-{mode}.vcd", std::process::id()));
        std::fs::write(&path, vcd).unwrap();
        let options = format!("cpol={}:cpha={}", mode >> 1, mode & 1);
        let output = Command::new("sigrok-cli")
            .arg("-i")
            .arg(&path)
            .args(["-I", "vcd", "-P"])
            .arg(format!("spi:clk=sck:mosi=mosi:miso=miso:cs=cs0:{options}"))
            .args(["-A", "spi=mosi-data:miso-data"])
            .output();
        let _ = std::fs::remove_file(&path);
        let output = match output {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                eprintln!("SKIPPED: sigrok-cli is not installed: VCD not decoded");
                return;
            }
            output => output.unwrap(),
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let mut data: Vec<&str> = text.lines().filter_map(|line| line.split(' ').nth(1)).collect();
        // The decoder prints both directions of a byte together, in either order.
        data.chunks_mut(2).for_each(<[&str]>::sort_unstable);
        let expected =
            [["00", "A5"], ["9F", "A5"], ["01", "9F"], ["01", "23"], ["23", "45"], ["45", "67"]];
        assert_eq!(data, expected.as_flattened(), "mode {mode}: {text}{output:?}");
    }
}
