//! `barewire run --map-gpio`: programs that know nothing of barewire, on a simulated board's pins.

use std::fs;
use std::path::Path;

use super::command::{run, text, vcd_code};
use super::run::{GONE, client, hidden_or_refused, kills_its_server, served};

const MAP: &str = "/dev/gpiochip7=sim:rpi3";

#[test]
fn the_character_devices_cases_are_the_kernels() {
    let (_dir, abi) = client("gpio_abi.c", &["-D_FORTIFY_SOURCE=2"]);
    let maps = ["--map-gpio", "/dev/gpiochip7=sim:imx8mp", "--map", "/dev/spidev3.2=sim:imx8mp"];
    served(&maps, &[&text(&abi), "/dev/gpiochip7", "/dev/spidev3.2"])
        .prints("221 checks, 0 failed\n");
}

#[test]
fn what_programs_look_at_is_there() {
    let script = "ls -l /dev/gpiochip7 | cut -c1-10; ls /dev | grep gpiochip7; echo /dev/gpiochip7*; \
         ls /sys/bus/gpio/devices | grep 7; cat /sys/bus/gpio/devices/gpiochip7/dev; \
         readlink -f /sys/dev/char/254:0/subsystem; cat /sys/dev/char/254:0/uevent; \
         od -An -tx1 /proc/device-tree/system/linux,revision; \
         test -c /dev/gpiochip7 && test -w /dev/gpiochip7 && echo yes";
    let ran = served(&["--map-gpio", MAP], &["sh", "-c", script]);
    let expected = "crw-rw----\ngpiochip7\n/dev/gpiochip7\ngpiochip7\n254:0\n/sys/bus/gpio\n\
                    MAJOR=254\nMINOR=0\nDEVNAME=gpiochip7\n 00 a0 20 82\nyes\n";
    assert_eq!(ran.ok().text(), expected);
}

/// The level of one signal at each rise of another.
fn sampled(vcd: &str, signal: &str, at_rises_of: &str) -> Vec<bool> {
    let (signal, clock) = (vcd_code(vcd, signal), vcd_code(vcd, at_rises_of));
    let (mut level, mut levels, mut high) = (false, Vec::new(), false);
    for line in vcd.lines() {
        let Some((value @ ("0" | "1"), name)) = line.split_at_checked(1) else { continue };
        if name == signal {
            level = value == "1";
        } else if name == clock {
            let rises = value == "1" && !high;
            high = value == "1";
            if rises {
                levels.push(level);
            }
        }
    }
    levels
}

#[test]
fn a_level_that_is_set_before_a_message_is_on_the_pin_in_it() {
    let (dir, display) = client("gpio_display.c", &[]);
    let vcd = dir.path().join("wire.vcd");
    for (board, [dc, reset], names, cs) in [
        ("sim:rpi3", ["24", "25"], ["GPIO24", "GPIO25"], 0),
        ("sim:imx8mp", ["20", "21"], ["GPIO5_IO20", "GPIO5_IO21"], 1),
        ("sim:rpi5", ["23", "24"], ["GPIO23", "GPIO24"], 1),
    ] {
        let chip = format!("/dev/gpiochip7={board}");
        let spi = format!("/dev/spidev7.{cs}={board}");
        let maps = ["--map-gpio", &chip, "--map", &spi, "--vcd", &text(&vcd)];
        let node = format!("/dev/spidev7.{cs}");
        served(&maps, &[&text(&display), "/dev/gpiochip7", dc, reset, &node]).ok();
        let vcd = fs::read_to_string(&vcd).expect("recorded");
        let message = [[false; 16].as_slice(), &[true; 24]].concat();
        assert_eq!(sampled(&vcd, names[0], "sck"), message.repeat(50), "{board}");
        assert_eq!(sampled(&vcd, names[1], "sck"), vec![true; 50 * 40], "{board}");
    }
}

#[test]
fn a_display_shows_what_is_drawn_by_dc_and_reset() {
    let (dir, oled) = client("gpio_oled.c", &[]);
    let picture = dir.path().join("seen.pbm");
    let board = format!("sim:rpi5,oled=0:23:24:{}", picture.display());
    let (chip, spi) = (format!("/dev/gpiochip7={board}"), format!("/dev/spidev7.0={board}"));
    let maps = ["--map-gpio", &chip, "--map", &spi, "--speed-hz", "8M"];
    let draw = |dc: &str, reset: &str| {
        served(&maps, &[&text(&oled), "/dev/gpiochip7", dc, reset, "/dev/spidev7.0"]).ok()
    };
    let ran = draw("23", "24");
    assert!(!ran.stderr.contains("RULES OF THE WIRE BROKEN"), "{}", ran.stderr);
    let mut expected = b"P4\n128 64\n".to_vec();
    for y in 0..64_u32 {
        for eight in 0..16 {
            let lit = |x: u32| (37 * (y / 8) + x) >> (y % 8) & 1;
            let byte = (0..8).fold(0, |byte, bit| byte << 1 | lit(8 * eight + bit));
            expected.push(u8::try_from(byte).expect("eight bits"));
        }
    }
    assert!(fs::read(&picture).expect("kept") == expected, "another picture");
    // D/C and RESET confused: the display complains, and shows nothing.
    let ran = draw("24", "23");
    assert!(ran.stderr.contains("SSD1306"), "{}", ran.stderr);
    let dark = [b"P4\n128 64\n".as_slice(), &[0; 1024]].concat();
    assert!(fs::read(&picture).expect("kept") == dark, "lit");
}

#[test]
fn lines_are_free_when_their_program_has_ended() {
    let (_dir, display) = client("gpio_display.c", &[]);
    let program = format!("{} /dev/gpiochip7 24 25 /dev/spidev7.0", display.display());
    let maps = ["--map-gpio", MAP, "--map", "/dev/spidev7.0=sim:rpi3"];
    let script = format!("for i in 1 2 3 4 5; do {program} || exit; done");
    served(&maps, &["sh", "-c", &script]).ok();
    // The chip select's line is the board's.
    let script = format!("exec {} /dev/gpiochip7 8 25 /dev/spidev7.0", display.display());
    let ran = served(&[&["--verbose"], &maps[..]].concat(), &["sh", "-c", &script]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let why =
        "/dev/gpiochip7: Device or resource busy (os error 16): line 8 is used as \"spi0 CS0\"";
    assert_eq!(ran.stderr.matches(why).count(), 1, "{ran:?}");
}

#[test]
fn what_is_out_of_reach_is_told_once() {
    let script = "for i in 1 2; do exec 3</dev/gpiomem; done; exec 3</dev/mem; exec 3>/sys/class/gpio/export; \
                  exec 3</dev/gpiomem0; exec 3</dev/null && echo open";
    let ran = served(&["--map-gpio", MAP], &["bash", "-c", script]).ok();
    assert_eq!(ran.text(), "open\n");
    assert_eq!(ran.stderr.matches("Operation not permitted").count(), 5, "{}", ran.stderr);
    let told =
        "this program opens /dev/gpiomem for its pins: that is out of reach of `barewire run`";
    assert_eq!(ran.stderr.matches("out of reach").count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    // If neither a GPIO chip is mapped nor a board is told, these files are not touched.
    let script = "cat /dev/gpiomem; cat /dev/memory";
    let ran = served(&["--map", "/dev/spidev7.1=sim:zynq"], &["sh", "-c", script]);
    assert!(!ran.stderr.contains("out of reach") && !ran.stderr.contains("permitted"), "{ran:?}");
}

#[test]
fn wrong_maps_are_told() {
    for (map, part) in [
        ("/dev/gpiochip0", "CHIP=BUS"),
        ("/dev/gpiomem=sim:rpi3", "no GPIO chip"),
        ("/dev/gpiochip0=mem:0x3f204000,cs=native0", "no simulated board"),
        ("/dev/gpiochip0=qemu:sabrelite", "no simulated board"),
        ("/dev/gpiochip0=sim:rpi4", "did you mean \"rpi5\""),
    ] {
        let ran = served(&["--map-gpio", map], &["true"]);
        assert_eq!(ran.code, Some(2), "{map}: {ran:?}");
        assert!(ran.stderr.contains(part), "{map}: {ran:?}");
    }
    let twice = ["--map-gpio", MAP, "--map-gpio", "/dev/gpiochip7=sim:imx8mp"];
    served(&twice, &["true"]).fails(2, "mapped twice");
    let owners = ["--map-gpio", MAP, "--map-gpio", "/dev/gpiochip8=sim:rpi3"];
    served(&owners, &["true"]).fails(2, "are /dev/gpiochip7 already");
    let boards = ["--map-gpio", MAP, "--map", "/dev/spidev7.0=sim:rpi3,seed=1", "--vcd", "x"];
    served(&boards, &["true"]).fails(2, "--vcd records one board");
    run(&["run", "--", "true"]).misused("--map");
    let oled = ["--map-gpio", MAP, "--map", "/dev/spidev7.0=sim:rpi3,oled=0:24:25"];
    let ran = served(&oled, &["true"]).ok();
    assert!(ran.stderr.contains("another board than sim:rpi3,oled=0:24:25"), "{ran:?}");
    for (oled, part) in [
        ("oled=0:8:25", "bit 8 of GPIO block 0 is a chip select"),
        ("oled=0:24:60", "has no bit 60 of GPIO block 0"),
        ("oled=9:24:25", "has no chip select 9"),
        ("oled=1:24:25", "chip select 1 has the board's flash"),
        ("oled=0:24:25:/nosuch/file", "/nosuch/file"),
    ] {
        let map = format!("/dev/spidev7.0=sim:rpi3,{oled}");
        served(&["--map", &map], &["true"]).fails(1, part);
    }
}

#[test]
fn a_chip_that_exists_is_hidden_or_refused() {
    hidden_or_refused(Path::new("/dev/gpiochip31999"), "--map-gpio", "sim:rpi3");
}

#[test]
fn a_server_that_is_killed_is_an_errno_and_a_sentence() {
    let text = kills_its_server("gpio_orphan.c", "/dev/gpiochip7", "--map-gpio");
    let expected = "before: 0\npolled: 1\nread: GONE\nvalues: GONE\nlines: GONE\nopen: GONE\n";
    assert_eq!(text, expected.replace("GONE", GONE));
}
