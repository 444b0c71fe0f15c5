//! Files that are wrong end in an error that names the file and what was found.

use std::fs;

use barewire_scope::Options;
use barewire_scope::find::Hints;

use crate::read;
use crate::wave::{CS, Shape, Wave, Zip, metadata, sigrok};

const NAMES: [&str; 4] = ["SCK", "MOSI", "MISO", "CS"];

fn wave() -> Wave {
    let mut wave = Wave::new(1 << CS);
    wave.message(&Shape::USUAL, &[0x9f, 0, 0, 0], &[0xff, 0xc2, 0x20, 0x15]);
    wave
}

#[track_caller]
fn fails(content: &[u8], options: Options, said: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("capture.x");
    fs::write(&path, content).expect("written");
    let error = read(&path, options).expect_err(said).to_string();
    assert!(error.contains("capture.x: ") && error.contains(said), "{said:?} is not in {error:?}");
}

fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = Zip::new(Vec::new());
    members.iter().for_each(|(name, content)| zip.add(name, content, true));
    zip.finish()
}

#[test]
fn each_mistake_is_named() {
    let wave = wave();
    let samples = wave.samples(1, wave.at + 9);
    let meta = |unit: usize, rate: &str| metadata(&NAMES, unit, rate).into_bytes();
    let vcd = wave.vcd(&NAMES, wave.at);
    let csv = wave.saleae_csv(&NAMES, 0);
    let binary = wave.saleae_binary(0, 0, wave.at);
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (Vec::new(), "it is empty"),
        (b"#!/bin/sh\necho\n".to_vec(), "it begins with \"#!/bin/sh"),
        (b"# tracer: nop\n".to_vec(), "a kernel's trace"),
        // sigrok's.
        (b"PK\x03\x04".to_vec(), "the file is cut"),
        (zip(&[("a", b"b")]), "without sigrok's member `metadata`"),
        (zip(&[("meta.json", b"{}")]), "Logic 2; export it"),
        (zip(&[("metadata", b"[device 1]\n")]), "no capturefile"),
        (zip(&[("metadata", &meta(1, "1 MHz"))]), "the archive has no such member"),
        (zip(&[("metadata", &meta(1, "0 Hz")), ("logic-1-1", &samples)]), "--samplerate"),
        (
            zip(&[("metadata", &meta(1, "very fast")), ("logic-1-1", &samples)]),
            "samplerate=very fast",
        ),
        (zip(&[("metadata", &meta(9, "1 MHz")), ("logic-1-1", &samples)]), "unitsize=9"),
        (
            zip(&[("metadata", &meta(2, "1 MHz")), ("logic-1-1", &[1, 2, 3])]),
            "end 1 bytes into one of 2",
        ),
        (zip(&[("metadata", &meta(1, "1 MHz")), ("logic-1-2", &samples)]), "logic-1-1 are missing"),
        (zip(&[("metadata", &meta(1, "1 MHz")), ("logic-1", b"")]), "it has no samples"),
        (
            zip(&[("metadata", &meta(1, "1 MHz")), ("logic-1", &[8; 100])]),
            "no channel clocks: SCK has 0 edges",
        ),
        // VCD.
        (vcd.replace("$timescale 1 ns $end", "").into_bytes(), "without $timescale"),
        (vcd.replace("1 ns", "3 weeks").into_bytes(), "$timescale 3weeks"),
        (vcd.replace("$enddefinitions", "$comment").into_bytes(), "stands in a VCD's header"),
        (b"$timescale 1 ns".to_vec(), "no $end follows"),
        (vcd.replace("wire 1 !", "wire one !").into_bytes(), "$var wire one"),
        ((vcd.clone() + "#1\n").into_bytes(), "time #1 stands behind a later one"),
        ((vcd.clone() + "1?\n").into_bytes(), "a value of \"?\""),
        ((vcd.clone() + "hello\n").into_bytes(), "\"hello\" is no change"),
        (b"$timescale 1 ns $end $enddefinitions $end".to_vec(), "without variables"),
        // Saleae's.
        (csv.replace(",0", ",2").into_bytes(), "line 2: \"2\" is no level"),
        (csv.replace("Time [s]", "Time of day").into_bytes(), "\"Time of day\""),
        ((csv.clone() + "0.5,1\n").into_bytes(), "1 levels, and the first line names 4"),
        ((csv.clone() + "0.0,1,1,1,1\n").into_bytes(), "is before the line's above"),
        ((csv.clone() + "soon,1,1,1,1\n").into_bytes(), "\"soon\" is no time"),
        (b"Time [s],A\n".to_vec(), "a CSV without rows"),
        (binary[..binary.len() - 3].to_vec(), "the file is cut"),
        ([&binary[..12], &1_i32.to_le_bytes(), &binary[16..]].concat(), "analog samples"),
        ([&binary[..8], &7_i32.to_le_bytes(), &binary[12..]].concat(), "version 7"),
        ([&binary[..44], &f64::NAN.to_le_bytes(), &binary[52..]].concat(), "NaN is no time"),
    ];
    for (content, said) in cases {
        fails(&content, Options::default(), said);
    }
    fails(
        vcd.as_bytes(),
        Options { samplerate: Some(1), ..Options::default() },
        "--samplerate is for sigrok's",
    );
}

#[test]
fn a_damaged_archive_is_told() {
    let wave = wave();
    let whole = sigrok(&NAMES, 1, "1 MHz", &wave.samples(1, wave.at + 9), 100);
    for len in [30, whole.len() / 2, whole.len() - 8] {
        fails(&whole[..len], Options::default(), "cut");
    }
    // A byte of samples. Of the first ones, which are deflated, the decoder or the checksum finds it; of the second, which are
    // stored, only the checksum can.
    for (member, said) in
        [("logic-1-1", "member logic-1-1: "), ("logic-1-2", "its checksum is wrong")]
    {
        let at =
            whole.windows(9).position(|name| name == member.as_bytes()).expect("a member") + 12;
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        fails(&damaged, Options::default(), said);
    }
}

#[test]
fn wires_that_are_not_there_are_named() {
    let vcd = wave().vcd(&NAMES, 9_000);
    let named = |name: &str| Some(name.to_owned());
    let cases = [
        (
            Hints { clk: named("D9"), ..Hints::default() },
            "no channel \"D9\" (--clk); it has SCK, MOSI, MISO, CS",
        ),
        (
            Hints { clk: named("MOSI"), mosi: named("MOSI"), ..Hints::default() },
            "channel MOSI is given two roles",
        ),
        (Hints { cs: Some(vec!["cs7".into()]), ..Hints::default() }, "no channel \"cs7\" (--cs)"),
    ];
    for (hints, said) in cases {
        fails(vcd.as_bytes(), Options { hints, ..Options::default() }, said);
    }
}
