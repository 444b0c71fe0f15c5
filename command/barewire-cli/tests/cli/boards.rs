//! Boards of the user's own: `sim:FILE.toml`, `barewire list FILE` and `barewire board`.

use std::fs;
use std::path::Path;

use barewire_sim::board::board_names;
use serde_json::Value;

use super::command::{Dir, noise, run, text};
use super::run::{client, served};

/// A folder with `mine.toml`, and that file's path.
fn board(file: &str) -> (Dir, String) {
    let dir = Dir::new();
    let path = dir.file("mine.toml", file);
    (dir, path)
}

/// What a board's entry of the list says, without what names it.
fn listed(board: &str) -> Value {
    let mut entry = run(&["list", "--json", board]).ok().json();
    let names = ["bus", "title"].map(|field| entry[field].take());
    assert!(names.iter().all(Value::is_string), "{names:?}");
    entry
}

#[test]
fn each_shipped_board_is_its_file() {
    for name in board_names() {
        let shown = run(&["board", "show", name]).ok().text();
        let (dir, path) = board(&shown);
        assert_eq!(listed(name), listed(&path), "{name}");
        let input = dir.file("in.bin", noise(5_000, 7));
        let recorded = |bus: &str, to: &str| {
            let vcd = dir.path(to);
            let write =
                ["flash", "write", "--json", "--unprotect", "--offset", "100", "--bus", bus];
            let mut report = run(&[&write[..], &["--vcd", &vcd, &input]].concat()).ok().json();
            report["bus"].take();
            (report, fs::read_to_string(vcd).expect("recorded"))
        };
        let shipped = recorded(&format!("sim:{name}"), "shipped.vcd");
        let own = recorded(&format!("sim:{path}"), "own.vcd");
        assert!(shipped.1.len() > 10_000, "{name}: something was on the wire");
        assert!(shipped == own, "{name}: the traces differ");
    }
}

#[test]
fn a_wrong_file_is_told_with_its_line_and_column() {
    let (dir, path) = board("like = \"rpi3\"\n\n[[chip]]\npart = \"MCP3008\"\n  cs = 2\n");
    let bus = format!("sim:{path}");
    let place = format!("{path}: line 5, column 8: there is no chip select 2");
    for arguments in [
        &["list", &path][..],
        &["list", &bus],
        &["xfer", "--bus", &bus, "00"],
        &["flash", "id", "--bus", &bus],
        &["adc", "read", "--bus", &bus],
        &["can", "echo", "--bus", &bus],
        &["selftest", "--bus", &bus],
        &["serve", "--serprog", "127.0.0.1:0", "--bus", &bus],
        &["bound", "--bus", &bus, "nothing.toml"],
    ] {
        run(arguments).misused(&place);
    }
    served(&["--map", &format!("/dev/spidev7.0={bus}")], &["true"]).misused(&place);
    for (content, what) in [
        (&b"like = \"rpi3\"\n# \xff\n"[..], "line 2 is no text"),
        (&vec![b'#'; (1 << 20) + 1], "it has more than 1 MiB"),
    ] {
        fs::write(&path, content).expect("written");
        run(&["list", &path]).misused(what);
    }
    run(&["list", &dir.whole()]).misused("it is not a file");
    run(&["list", &format!("{path}.toml")]).misused("No such file or directory");
    run(&["list", "rpi4"]).misused("there is no simulated board \"rpi4\"");
}

/// Two flashes, two converters, a display and a wire.
const MANY: &str = r#"
title = "many chips"
like = "zynq"
[[cs]]
gpio = 0
[[cs]]
native = 0
[[cs]]
native = 1
[[cs]]
gpio = "MIO20"
[[chip]]
part = "MCP3208"
cs = 0
supply_mv = 5000
inputs = ["constant:1000", "constant:2000"]
[[chip]]
part = "MX25R6435F"
cs = 1
file = "first.bin"
[[chip]]
part = "W25Q32JV"
cs = 2
file = "second.bin"
[[chip]]
part = "MCP3004"
cs = 3
supply_mv = 5000
inputs = ["constant:2500"]
"#;

#[test]
fn chips_are_found_where_the_file_has_them() {
    let (dir, path) = board(MANY);
    let bus = format!("sim:{path}");
    let list = run(&["list", &path]).ok().text();
    assert!(list.contains("--cs 3        MIO20 (gpio): MCP3004, 4 channels"), "{list}");
    let id = |cs: &[&str]| run(&[&["flash", "id", "--json", "--bus", &bus], cs].concat());
    // No command that only reads makes a file.
    id(&[]).fails(1, "first.bin does not exist");
    let input = dir.file("in.bin", noise(300, 3));
    for (cs, file, size) in
        [(&[][..], "first.bin", 8 << 20), (&["--cs", "2"], "second.bin", 4 << 20)]
    {
        let write = ["flash", "write", "--json", "--offset", "0x1000", "--bus", &bus, &input];
        run(&[&write[..], cs].concat()).ok();
        let kept = fs::read(dir.path(file)).expect("made beside the board's file");
        assert_eq!((kept.len(), &kept[0x1000..0x1000 + 300]), (size, &noise(300, 3)[..]), "{file}");
    }
    assert_eq!(id(&[]).ok().json()["jedec_id"], "c22817");
    assert_eq!(id(&["--cs", "2"]).ok().json()["jedec_id"], "ef4016");
    let code_on = |bus: &str, more: &[&str]| {
        let read = ["adc", "read", "--json", "--channel", "0", "--bus", bus];
        let report = run(&[&read[..], more].concat()).ok().json();
        report["readings"][0]["code"].as_u64().unwrap_or_else(|| panic!("{report}"))
    };
    let code = |more: &[&str]| code_on(&bus, more);
    assert_eq!(code(&["--chip", "mcp3208"]), 4096 / 5);
    assert_eq!(code(&["--chip", "mcp3004", "--cs", "3"]), 512);
    run(&["adc", "read", "--bus", &bus]).fails(1, "is an MCP3208; read as an MCP3008");
    // The name's options are about the first.
    assert_eq!(code_on(&format!("{bus},input=0:constant:0"), &["--chip", "mcp3208"]), 0);
}

#[test]
fn what_a_chip_needs_is_taken_from_the_board() {
    let file = "costs = \"highbank\"\n[controller]\nkind = \"pl022\"\nbase = 0x1000\n[gpio]\nbase = 0x2000\n\
                [[cs]]\ngpio = 0\n[[cs]]\ngpio = 1\nactive_high = true\n[[cs]]\ngpio = 2\nactive_high = true\n\
                [[chip]]\npart = \"MCP2517FD\"\ncs = 0\noscillator_hz = 20_000_000\n\
                [[chip]]\npart = \"MCP2518FD\"\ncs = 1\nint = 5\n[[chip]]\npart = \"W25Q32JV\"\ncs = 2\n";
    let (_dir, path) = board(file);
    let bus = format!("sim:{path}");
    // The oscillator, the clock that goes with it, and the select's polarity.
    for (cs, chip, hz) in [("0", "MCP2517FD", 8_500_000), ("1", "MCP2518FD", 16_000_000)] {
        let dump = ["can", "dump", "--json", "--bus", &bus, "--cs", cs, "-n", "5", "-g", "1"];
        let report = run(&dump).ok().last_json();
        assert_eq!((&report["chip"], &report["speed_hz"]), (&chip.into(), &hz.into()), "{report}");
    }
    let echo = run(&["can", "echo", "--json", "--bus", &bus, "--frames", "20"]).ok().json();
    assert_eq!(echo["speed_hz"], 8_500_000, "{echo}");
    let read =
        |chip: &str| run(&["regs", "read", "--bus", &bus, "--chip", chip, "OSC"]).ok().text();
    assert!(
        read("mcp2517fd").contains("OSC at 0xe00") && read("mcp2518fd").contains("OSC at 0xe00")
    );
    assert_eq!(run(&["flash", "id", "--json", "--bus", &bus]).ok().json()["jedec_id"], "ef4016");
}

#[test]
fn a_board_without_a_flash_says_so() {
    let (_dir, path) = board("like = \"rpi3\"\n");
    let bus = format!("sim:{path}");
    run(&["flash", "id", "--bus", &bus])
        .fails(1, &format!("{bus} has no flash: `barewire list {path}`"));
    for option in ["flash=x.bin", "flash-part=w25q32jv", "protect=all"] {
        run(&["xfer", "--bus", &format!("{bus},{option}"), "00"]).misused("has no flash: leave");
    }
    run(&["can", "dump", "--bus", &bus]).fails(1, "has no CAN controller");
    // Nothing answers, and nothing is wrong.
    assert_eq!(run(&["xfer", "--bus", &bus, "9f000000"]).ok().text().trim(), "ff ff ff ff");
}

#[test]
fn a_display_alone_on_a_board_breaks_no_rule() {
    let (dir, path) = board(
        "like = \"rpi3\"\n[[chip]]\npart = \"SSD1306\"\ncs = 0\ndc = 24\nreset = 25\npicture = \"p.pbm\"\n",
    );
    let (_program_dir, program) = client("gpio_oled.c", &[]);
    let bus = format!("sim:{path}");
    let (chip, node) = (format!("/dev/gpiochip7={bus}"), format!("/dev/spidev7.0={bus}"));
    let maps = ["--map-gpio", &chip, "--map", &node];
    let ran =
        served(&maps, &[&text(&program), "/dev/gpiochip7", "24", "25", "/dev/spidev7.0"]).ok();
    assert!(!ran.stderr.contains("RULES OF THE WIRE BROKEN"), "{}", ran.stderr);
    let picture = fs::read(dir.path("p.pbm")).expect("beside the board's file");
    assert!(picture.starts_with(b"P4\n128 64\n") && picture[10..].iter().any(|byte| *byte != 0));
}

#[test]
fn a_program_drives_the_select_that_the_file_gives_it() {
    let file = "like = \"rpi3\"\n[[cs]]\ngpio = 8\n[[cs]]\nprogram = 5\n[[cs]]\nnative = 1\n\
                [[chip]]\npart = \"W25Q32JV\"\ncs = 1\nfile = \"chip.bin\"\n";
    let (dir, path) = board(file);
    let mut content = vec![0xff; 4 << 20];
    content[0x1_0203..0x1_0213].copy_from_slice(&(0..16).collect::<Vec<u8>>());
    fs::write(dir.path("chip.bin"), content).expect("written");
    let (_program_dir, program) = client("gpio_select.c", &[]);
    let bus = format!("sim:{path}");
    for (cs, mode) in [(0, "0"), (1, "0"), (1, "40"), (2, "0")] {
        let node = format!("/dev/spidev7.{cs}");
        let (chip, spi) = (format!("/dev/gpiochip7={bus}"), format!("{node}={bus},cs={cs}"));
        let read = [&text(&program), "read", "/dev/gpiochip7", "5", &node, mode];
        let ran = served(&["--map-gpio", &chip, "--map", &spi], &read).ok();
        let said = ran.text();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[0], "id ef 40 16", "node {cs}, mode {mode}: {said}");
        assert_eq!(lines[1], "data 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f");
        assert!(!ran.stderr.contains("RULES OF THE WIRE BROKEN"), "{}", ran.stderr);
    }
}

#[test]
fn a_board_like_a_raspberry_pi_tells_that_it_is_one() {
    let (_dir, path) = board("like = \"rpi3\"\n[[chip]]\npart = \"jumper\"\ncs = 0\n");
    let script = "tr '\\0' '\\n' < /proc/device-tree/model";
    let map = format!("/dev/spidev7.1=sim:{path}");
    let told = served(&["--map", &map], &["sh", "-c", script]).ok().text();
    assert_eq!(told, "Raspberry Pi 3 Model B Rev 1.2\n");
}

#[test]
fn a_new_board_is_there_once() {
    let dir = Dir::new();
    let path = dir.path("new.toml");
    let report = run(&["board", "new", "--json", &path, "--like", "sim:imx8mp"]).ok().json();
    assert_eq!((&report["file"], &report["like"]), (&path.as_str().into(), &"imx8mp".into()));
    assert_eq!(listed(&path), listed("imx8mp"));
    let written = fs::read_to_string(&path).expect("written");
    let id = run(&["flash", "id", "--json", "--bus", &format!("sim:{path}")]).ok().json();
    assert_eq!(id["jedec_id"], "ef4019");
    run(&["board", "new", &path]).fails(1, "is there already: name another file");
    assert_eq!(fs::read_to_string(&path).expect("there"), written, "nothing is lost");
    assert_eq!(run(&["board", "new", "-", "--like", "imx8mp"]).ok().text(), written);
    let other = dir.path("other");
    assert!(run(&["board", "new", &other]).ok().text().contains("barewire list"));
    run(&["board", "new", "board"]).misused("call it FILE.toml");
    run(&["board", "new", "a,b.toml"]).misused("without a comma");
    run(&["board", "new", &path, "--like", "rpi"]).misused("there is no simulated board \"rpi\"");
    run(&["board", "show", &path]).misused("is a file already: `barewire list");
    assert!(!Path::new("board").exists() && !Path::new("a,b.toml").exists());
}
