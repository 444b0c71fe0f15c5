//! `barewire run`: no byte goes to the wrong side, whatever a program does with its descriptors. Judged by the recorded
//! wire and by the program's own output.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use super::command::{Ran, barewire, text};
use super::run::{client, library};

const NODE: &str = "/dev/spidev0.0";

/// The bytes that the recorded MOSI carried while a chip was selected: 8 bits each, sampled at the rising edge of SCK.
fn mosi(vcd: &str) -> Vec<Vec<u8>> {
    let code = |name: &str| {
        let mut lines = vcd.lines().filter(|line| line.starts_with("$var"));
        let line = lines.find(|line| line.split_whitespace().nth(4) == Some(name));
        line.and_then(|line| line.split_whitespace().nth(3)).unwrap_or_else(|| panic!("no {name}"))
    };
    let [sck, mosi, cs] = ["sck", "mosi", "cs1"].map(code);
    let (mut level, mut selected) = (false, false);
    let (mut bits, mut messages) = (Vec::<bool>::new(), Vec::new());
    let ended = |bits: &mut Vec<bool>| {
        let bits = std::mem::take(bits);
        assert_eq!(bits.len() % 8, 0, "whole bytes");
        let byte = |bits: &[bool]| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
        bits.chunks(8).map(byte).collect::<Vec<u8>>()
    };
    for line in vcd.lines() {
        let Some((value @ ("0" | "1"), signal)) = line.split_at_checked(1) else { continue };
        let high = value == "1";
        if signal == mosi {
            level = high;
        } else if signal == sck && high && selected {
            bits.push(level);
        } else if signal == cs {
            if selected && high {
                messages.push(ended(&mut bits));
            }
            selected = !high;
        }
    }
    messages.retain(|message| !message.is_empty());
    messages
}

/// `barewire run` with "input" on standard input; returns its result and the messages on the wire.
fn recorded(command: &[&str]) -> (Ran, Vec<Vec<u8>>) {
    library();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let vcd = dir.path().join("wire.vcd");
    let map = format!("{NODE}=sim:rpi3,cs=1");
    let arguments = ["run", "-q", "--map", &map, "--vcd", &text(&vcd), "--"];
    let mut child = barewire(&[&arguments, command].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"input\n").expect("written");
    drop(input);
    let ran = child.wait_with_output().expect("it ends").into();
    (ran, mosi(&fs::read_to_string(&vcd).expect("recorded")))
}

#[test]
fn copies_children_and_raw_calls_send_no_byte_to_the_wrong_side() {
    let (_dir, program) = client("wrong_wire.c", &[]);
    let (ran, wire) = recorded(&[&text(&program), NODE]);
    let expected = "opened: 3\nafter vfork, standard input: 6\nthe node in its parent: 0\nafter clone: 0\nfork: 0\n\
        _Fork: 0\nclone by system call: 0\ncopied raw: 4\ncame: 4\na message to a pipe: 25\ntoo much: 90\nread: 2\n\
        too much, around the library: 70000\ndone: 0\n";
    assert_eq!((ran.text().as_str(), ran.code), (expected, Some(0)), "{ran:?}");
    let marks = [0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7].map(|mark| vec![mark]);
    // What is read sends zeros.
    let expected = [&marks[..], &[vec![0, 0], vec![0xa8], vec![0xa9]]].concat();
    assert_eq!(wire, expected, "only the marks are sent");
    assert!(ran.stderr.contains("70000 bytes were written around"), "{ran:?}");
}

#[test]
fn pythons_subprocess_leaves_its_parents_output_alone() {
    let script = "import os, subprocess, sys\n\
        fd = os.open(sys.argv[1], os.O_RDWR)\n\
        for program in ['true'], [sys.executable, '-c', 'import os; os.write(1, bytes([0xb1]))']:\n\
        \x20   subprocess.run(program, stdin=fd, stdout=fd, check=True)\n\
        print(repr(sys.stdin.readline()), flush=True)\n\
        os.write(fd, bytes([0xb2]))\n";
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        println!("SKIPPED: python3 is not installed");
        return;
    }
    let (ran, wire) = recorded(&["python3", "-c", script, NODE]);
    assert_eq!((ran.text().as_str(), ran.code), ("'input\\n'\n", Some(0)), "{ran:?}");
    assert_eq!(wire, [[0xb1], [0xb2]]);
}
