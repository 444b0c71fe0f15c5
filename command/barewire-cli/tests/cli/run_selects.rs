//! `barewire run` with programs that drive their own pins: chip selects, a jumper, a wire between two pins.

use std::fs;
use std::path::Path;

use super::command::{text, vcd_code};
use super::run::{client, served};

/// `SPI_NO_CS`, and no flag.
const NO_CS: &str = "40";
const OWN: &str = "0";

/// The levels of a signal in a recording, each for the rises of SCK under it: `(level, clocks)`.
fn clocks_at_levels(vcd: &Path, signal: &str) -> Vec<(bool, usize)> {
    let vcd = fs::read_to_string(vcd).expect("recorded");
    let (signal, sck) = (vcd_code(&vcd, signal), vcd_code(&vcd, "sck"));
    let (mut levels, mut high) = (Vec::<(bool, usize)>::new(), false);
    for line in vcd.lines() {
        let Some((value @ ("0" | "1"), name)) = line.split_at_checked(1) else { continue };
        let level = value == "1";
        if name == signal && levels.last().is_none_or(|(before, _)| *before != level) {
            levels.push((level, 0));
        } else if name == sck {
            if let Some((_, clocks)) = levels.last_mut().filter(|_| level && !high) {
                *clocks += 1;
            }
            high = level;
        }
    }
    levels
}

#[test]
fn a_chip_hears_the_program_that_holds_its_select_over_several_messages() {
    let (dir, program) = client("gpio_select.c", &[]);
    let (vcd, flash) = (dir.path().join("wire.vcd"), dir.path().join("chip.bin"));
    for (board, size, options, cs, line, mode) in [
        // The node's own select leads to nothing.
        ("rpi3", 4, "select=1:25", 1, "25", NO_CS),
        ("rpi3", 4, "select=1:25", 1, "25", OWN),
        ("rpi5", 4, "select=2:23", 2, "23", OWN),
        ("sabrelite", 2, "select=0:5", 0, "5", OWN),
        // The line that the board's controller has otherwise.
        ("rpi3", 4, "no-cs", 1, "7", NO_CS),
        ("rpi3", 4, "no-cs", 1, "7", OWN),
        ("rpi5", 4, "no-cs", 2, "25", OWN),
        ("imx8mp", 32, "select=0:9", 0, "9", NO_CS),
        ("zynq", 4, "no-cs", 1, "13", NO_CS),
    ] {
        let what = format!("{board},{options}, mode {mode}");
        let mut content = vec![0xff; size << 20];
        content[0x1_0203..0x1_0213].copy_from_slice(&(0..16).collect::<Vec<u8>>());
        fs::write(&flash, content).expect("written");
        let bus = format!("sim:{board},{options},flash={}", flash.display());
        let (chip, spi) = (format!("/dev/gpiochip7={bus}"), format!("/dev/spidev7.{cs}={bus}"));
        let maps = ["--map-gpio", &chip, "--map", &spi, "--vcd", &text(&vcd)];
        let node = format!("/dev/spidev7.{cs}");
        let ran =
            served(&maps, &[&text(&program), "read", "/dev/gpiochip7", line, &node, mode]).ok();
        let said = ran.text();
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[0].starts_with("id ") && lines[0] != "id ff ff ff", "{what}: {said}");
        assert_eq!(lines[1], "data 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f", "{what}");
        assert_eq!(lines[2], "high ff ff ff", "{what}: no chip was selected");
        assert!(!ran.stderr.contains("RULES OF THE WIRE BROKEN"), "{what}: {}", ran.stderr);
        // One selection for each operation of two messages, and clocks while none is selected.
        let expected = [(true, 0), (false, 32), (true, 0), (false, 160), (true, 32)];
        assert_eq!(clocks_at_levels(&vcd, &format!("cs{cs}")), expected, "{what}");
    }
}

#[test]
fn a_line_of_the_controllers_is_busy_and_the_remedy_is_told_once() {
    let (_dir, program) = client("gpio_select.c", &[]);
    let read = |bus: &str, line: &str, quiet: &[&str]| {
        let command = format!("{} read /dev/gpiochip7 {line} /dev/spidev7.0 0", program.display());
        let (chip, spi) = (format!("/dev/gpiochip7={bus}"), format!("/dev/spidev7.0={bus},cs=1"));
        let maps = [quiet, &["--map-gpio", &chip, "--map", &spi]].concat();
        served(&maps, &["sh", "-c", &format!("{command}; {command}")])
    };
    for (line, cs) in [("7", "1"), ("8", "0")] {
        let ran = read("sim:rpi3", line, &[]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let busy = format!("line {line} is busy: the SPI controller has it as chip select {cs}");
        assert_eq!(ran.stderr.matches(&busy).count(), 1, "{ran:?}");
        for remedy in [format!("select={cs}:PIN"), format!("select={cs}:{line}"), "no-cs".into()] {
            assert!(ran.stderr.contains(&remedy), "{ran:?}");
        }
        assert!(!read("sim:rpi3", line, &["--quiet"]).stderr.contains("is busy"));
    }
    for (bus, line) in
        [("sim:rpi3,select=1:25", "25"), ("sim:rpi3,select=1:7", "7"), ("sim:rpi3,no-cs", "7")]
    {
        let ran = read(bus, line, &[]).ok();
        assert_eq!(ran.text().matches("id ef 40 16\n").count(), 2, "{ran:?}");
    }
}

#[test]
fn a_jumper_returns_what_is_sent() {
    let (_dir, program) = client("gpio_select.c", &[]);
    for (bus, mode, back) in [
        ("sim:rpi3,jumper=0", OWN, "the same 05 2a 4f 74\n"),
        ("sim:rpi3,jumper=0", NO_CS, "the same 05 2a 4f 74\n"),
        ("sim:sabrelite,jumper=0", "3", "the same 05 2a 4f 74\n"),
        ("sim:rpi3,no-cs,jumper=0", OWN, "the same 05 2a 4f 74\n"),
        ("sim:imx6dl,cs=1", OWN, "other ff ff ff ff\n"),
    ] {
        let map = format!("/dev/spidev7.0={bus}");
        let ran = served(&["--map", &map], &[&text(&program), "loop", "/dev/spidev7.0", mode]).ok();
        assert_eq!(ran.text(), back, "{bus}, mode {mode}");
        assert!(!ran.stderr.contains("RULES OF THE WIRE BROKEN"), "{bus}: {}", ran.stderr);
    }
}

#[test]
fn a_pin_follows_the_one_that_it_is_wired_to() {
    let (_dir, program) = client("gpio_select.c", &[]);
    for board in ["rpi3", "rpi5", "imx8mp", "zynq"] {
        let map = format!("/dev/gpiochip7=sim:{board},wire=20:21");
        let ran =
            served(&["--map-gpio", &map], &[&text(&program), "wire", "/dev/gpiochip7", "20", "21"]);
        assert_eq!(ran.ok().text(), "00- 11+ 00- 11+ 00- 11+ \n", "{board}");
    }
}

#[test]
fn wrong_wiring_is_told_with_its_remedy() {
    for (options, code, part) in [
        ("select=1:8", 1, "pin 8 is the controller's line of chip select 0: use a free pin"),
        ("select=9:25", 1, "sim:rpi3 has no chip select 9: it has 0 to 1"),
        ("select=1:40", 2, "a GPIO chip has the pins 0 to 31"),
        ("select=0:25+1:25", 2, "pin 25 is given twice"),
        ("select=1:24+1:25", 2, "chip select 1 is given twice"),
        ("oled=0:24:25,select=1:25", 1, "pin 25 is wired to something else already"),
        ("select=1:25,wire=20:25", 1, "pin 25 selects a chip already"),
        ("wire=20:8", 1, "pin 8 is the controller's line"),
        ("wire=20:21+21:22", 2, "a wire has two ends"),
        ("jumper=9", 1, "has no chip select 9"),
        ("jumper=1,flash=x", 2, "jumper=1 is in the place of the flash: leave flash= out"),
        ("no-cs=1", 2, "it takes no value"),
    ] {
        let map = format!("/dev/spidev7.0=sim:rpi3,{options}");
        served(&["--map", &map], &["true"]).fails(code, part);
    }
    for (bus, part) in [
        ("sim:sabrelite,select=1:5", "chip select 1 of sim:sabrelite has no chip to be selected"),
        ("sim:unleashed,no-cs", "chip select 1 is a line of the controller alone"),
        ("sim:imx8mp,select=0:12", "pin 12 is wired to something else already"),
        ("sim:highbank,select=0:9", "sim:highbank has no pin 9: its pins are 0 to 7"),
    ] {
        served(&["--map", &format!("/dev/spidev7.0={bus}")], &["true"]).fails(1, part);
    }
}
