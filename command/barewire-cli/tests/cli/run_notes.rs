//! What `barewire run` says beside its program, and what it leaves to `--quiet`; a recording that is full.

use std::fs;

use super::command::{Ran, text, vcd_code};
use super::run::served;

const NODE: &str = "/dev/spidev7.0";

/// `barewire run` with these arguments, and a shell's text that is about the node, on a simulated Raspberry Pi 3's
/// converter.
fn shell(arguments: &[&str], script: &str) -> Ran {
    let map = format!("{NODE}=sim:rpi3");
    served(&[&["--map", &map], arguments].concat(), &["sh", "-c", script])
}

/// A shell's text that writes that many blocks of 4096 bytes, a message each.
fn write(blocks: u32) -> String {
    format!("dd if=/dev/zero of={NODE} bs=4096 count={blocks} conv=nocreat,notrunc status=none")
}

/// How often SCK rises in a recording.
fn clocks(vcd: &str) -> usize {
    let code = vcd_code(vcd, "sck");
    vcd.lines().filter(|line| line.strip_prefix('1') == Some(code)).count()
}

#[test]
fn a_picture_of_320_by_240_dots_is_recorded_whole() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let vcd = text(&dir.path().join("wire.vcd"));
    let ran = shell(&["--quiet", "--vcd", &vcd], &write(38)).ok();
    assert_eq!(ran.stderr, "");
    let vcd = fs::read_to_string(&vcd).expect("recorded");
    assert_eq!(clocks(&vcd), 38 * 4096 * 8, "more than 320 × 240 × 16");
    assert!(!vcd.contains("$comment cut"));
}

#[test]
fn a_full_recording_is_no_failure_of_the_program() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = text(&dir.path().join("wire.vcd"));
    let limited = ["--vcd", &file, "--vcd-limit", "1000"];
    // The first message's 4096 words, CS and SCK fill it.
    let told = "the recording was full: the VCD file has the first 1,000 words and level changes";
    for (script, code) in [(write(2), 0), (format!("{}; exit 7", write(2)), 7)] {
        let ran = shell(&limited, &script);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert_eq!(ran.stderr.matches(told).count(), 1, "{ran:?}");
        assert!(ran.stderr.contains("are missing; --vcd-limit N records more"), "{ran:?}");
        let vcd = fs::read_to_string(&file).expect("recorded");
        let clocked = clocks(&vcd);
        assert!((990 * 8..=1000 * 8).contains(&clocked), "{clocked}");
        let last = vcd.lines().last().expect("a last line");
        assert!(last.starts_with("$comment cut: ") && last.ends_with(" $end"), "{last}");

        let ran = shell(&[&["-q"], &limited[..]].concat(), &script);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(code), ""));
    }
}

#[test]
fn quiet_leaves_only_errors() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let flash = text(&dir.path().join("chip.bin"));
    let map = format!("/dev/spidev7.1=sim:rpi3,flash={flash}");
    for option in [&["-q"][..], &["-q", "--stats"]] {
        let ran = shell(option, &write(1)).ok();
        assert_eq!(ran.stderr, "", "{option:?}");
        let ran = served(&[option, &["--map", &map]].concat(), &["true"]).ok();
        assert_eq!(ran.stderr, "", "a file was made for the flash: {option:?}");
        fs::remove_file(&flash).expect("made");
    }
    let ran = shell(&["--stats"], &write(1)).ok();
    assert!(ran.stderr.contains("is simulated: without flash=FILE"), "{ran:?}");
    assert!(
        ran.stderr.contains("simulated, profile rpi3") && ran.stderr.contains("messages"),
        "{ran:?}"
    );
}

#[test]
fn rules_that_a_program_breaks_are_told_once_for_a_chip() {
    // A display's clock is too fast for the converter.
    let script = format!("for i in $(seq 103); do printf abc > {NODE}; done");
    let broken = |ran: &Ran| {
        let told = "RULES OF THE WIRE BROKEN: 206";
        assert_eq!(ran.stderr.matches(told).count(), 1, "{ran:?}");
        let lines: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("  ")).collect();
        let [setup, clock, rest @ ..] = &lines[..] else { panic!("two rules: {ran:?}") };
        for (line, rule) in [(setup, "cs_setup on cs0"), (clock, "max_clock on cs0")] {
            assert!(line.contains(rule) && line.ends_with(", and 102 times more"), "{line}");
        }
        rest.iter().map(|&line| line.to_owned()).collect::<Vec<String>>()
    };
    let ran = shell(&["--speed-hz", "16M"], &script).ok();
    let remedy = "  cs0 of sim:rpi3 has the MCP3008. If the program is for another chip, change the map: \
                  oled=0:DC:RES puts an SSD1306 display there";
    assert_eq!(broken(&ran), [remedy]);
    // They are no notes: the data is not to be trusted.
    let ran = shell(&["--speed-hz", "16M", "--quiet"], &script).ok();
    assert_eq!(broken(&ran), [""; 0]);
}
