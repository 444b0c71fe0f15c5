//! `barewire run`: which board programs take themselves to run on.

use std::fs;
use std::process::Command;

use super::command::text;
use super::run::{client, served};

const RPI3: &str = "/dev/spidev7.1=sim:rpi3";

/// What a shell prints that runs with that map.
fn told(map: [&str; 2], script: &str) -> String {
    served(&map, &["sh", "-c", script]).ok().text()
}

#[test]
fn a_shell_finds_a_raspberry_pi() {
    let script = "test -d /proc/device-tree && test -e /sys/firmware/devicetree/base/model && echo there; \
         tr '\\0' '\\n' < /proc/device-tree/model; cat /proc/device-tree/compatible | tr '\\0' '\\n'; \
         od -An -tx1 /proc/device-tree/system/linux,revision; grep -E '^(Hardware|Revision|Model)' /proc/cpuinfo; \
         ls /proc/device-tree | grep -xE 'compatible|model|serial-number|system'; ls /proc | grep device-tree; ls /sys/firmware | grep devicetree; \
         readlink -f /proc/device-tree; cd /proc/device-tree/system && ls && tr '\\0' '\\n' < ../model; \
         find /proc/device-tree/ -type f -name model";
    for (bus, model, compatible, revision) in [
        ("rpi3", "Raspberry Pi 3 Model B Rev 1.2", "raspberrypi,3-model-b\nbrcm,bcm2837", "a02082"),
        ("rpi5", "Raspberry Pi 5 Model B Rev 1.0", "raspberrypi,5-model-b\nbrcm,bcm2712", "c04170"),
    ] {
        let bytes: Vec<&str> = (0..3).map(|byte| &revision[byte * 2..][..2]).collect();
        let expected = format!(
            "there\n{model}\n{compatible}\n 00 {}\nHardware\t: BCM2835\nRevision\t: {revision}\nModel\t\t: {model}\n\
             compatible\nmodel\nserial-number\nsystem\ndevice-tree\ndevicetree\n\
             /sys/firmware/devicetree/base\nlinux,revision\nlinux,serial\n{model}\n/proc/device-tree/model\n",
            bytes.join(" ")
        );
        // By a node alone, by a GPIO chip alone, and with options.
        assert_eq!(told(["--map", &format!("/dev/spidev7.1=sim:{bus}")], script), expected);
        assert_eq!(
            told(["--map-gpio", &format!("/dev/gpiochip7=sim:{bus},seed=1")], script),
            expected
        );
    }
}

#[test]
fn the_processors_are_the_machines() {
    let machine = fs::read_to_string("/proc/cpuinfo").expect("there");
    let processors = machine.lines().filter(|line| line.starts_with("processor")).count();
    let script = "grep -c ^processor /proc/cpuinfo; tail -n 5 /proc/cpuinfo | cut -d: -f1 | tr -d '\\t'; \
                  cat /proc/device-tree/serial-number | wc -c";
    let expected = format!("{processors}\n\nHardware\nRevision\nSerial\nModel\n17\n");
    assert_eq!(told(["--map", RPI3], script), expected);
}

#[test]
fn a_c_program_finds_a_raspberry_pi() {
    let (_dir, program) = client("board_identity.c", &["-D_FORTIFY_SOURCE=2"]);
    let ran = served(&["--map", RPI3], &[&text(&program)]);
    let expected = "/proc/device-tree/model: 31 bytes: \"Raspberry Pi 3 Model B Rev 1.2\"\n\
         /proc/device-tree/compatible: 35 bytes: \"raspberrypi,3-model-b\" \"brcm,bcm2837\"\n\
         /sys/firmware/devicetree/base/serial-number: 17 bytes: \"00000000ba4e0003\"\n\
         /proc/device-tree/soc/dma-ranges: none\n\
         directory 1\nlink 1\nthere 1\nlisted 2\n\
         Hardware\t: BCM2835\nRevision\t: a02082\nSerial\t\t: 00000000ba4e0003\n\
         Model\t\t: Raspberry Pi 3 Model B Rev 1.2\n\
         changed 0\nhere /sys/firmware/devicetree/base/system\nrelative 1\n\
         up 1\nhere /sys\n";
    assert_eq!(ran.ok().text(), expected);
}

#[test]
fn a_python_program_finds_a_raspberry_pi() {
    if !Command::new("python3").arg("--version").output().is_ok_and(|ran| ran.status.success()) {
        println!("SKIPPED: no python3");
        return;
    }
    let script = "import os, re, pathlib\n\
         print(os.path.exists('/proc/device-tree'), os.path.isdir('/proc/device-tree'))\n\
         print(open('/proc/device-tree/model').read().rstrip('\\0'))\n\
         print(pathlib.Path('/proc/device-tree/compatible').read_bytes())\n\
         print(sorted(os.listdir('/sys/firmware/devicetree/base/system')), os.path.realpath('/proc/device-tree'))\n\
         print(re.search(r'^Model\\s*:\\s*Raspberry Pi', open('/proc/cpuinfo').read(), flags=re.M) is not None)\n\
         print([e.name for e in os.scandir('/proc') if e.name == 'device-tree'])\n\
         print(os.path.exists('/proc/device-tree/cpus'))\n";
    let ran = served(&["--map", RPI3], &["python3", "-c", script]);
    let expected = "True True\nRaspberry Pi 3 Model B Rev 1.2\nb'raspberrypi,3-model-b\\x00brcm,bcm2837\\x00'\n\
         ['linux,revision', 'linux,serial'] /sys/firmware/devicetree/base\nTrue\n\
         ['device-tree']\nFalse\n";
    assert_eq!(ran.ok().text(), expected);
}

#[test]
fn other_boards_have_their_names_and_no_revision() {
    let script = "tr '\\0' '\\n' < /proc/device-tree/model; tr '\\0' '\\n' < /proc/device-tree/compatible; \
                  test ! -e /proc/device-tree/system && grep -c Raspberry /proc/cpuinfo";
    let ran = served(&["--map", "/dev/spidev7.1=sim:imx8mp"], &["sh", "-c", script]);
    assert_eq!(ran.text(), "NXP i.MX8MPlus EVK board\nfsl,imx8mp-evk\nfsl,imx8mp\n0\n", "{ran:?}");
    // A board without an identity: the machine's files.
    let ran =
        served(&["--map", "/dev/spidev7.1=sim:zynq"], &["sh", "-c", "ls -d /proc/device-tree"]);
    let there = fs::exists("/proc/device-tree").expect("can be asked");
    assert_eq!(ran.code == Some(0), there, "{ran:?}");
}

/// The board whose pins are mapped is told.
#[test]
fn of_two_boards_the_one_with_the_pins_is_told() {
    let maps = ["--map", "/dev/spidev7.1=sim:rpi3", "--map-gpio", "/dev/gpiochip7=sim:rpi5"];
    let ran = served(&maps, &["grep", "Revision", "/proc/cpuinfo"]).ok();
    assert_eq!(ran.text(), "Revision\t: c04170\n");
}

#[test]
fn registers_of_the_told_board_are_refused() {
    let script = "for file in /dev/mem /dev/gpiomem /dev/gpiomem0; do exec 3<$file; done";
    let ran = served(&["--map", RPI3], &["bash", "-c", script]);
    assert_eq!(ran.stderr.matches("Operation not permitted").count(), 3, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("Map it with --map-gpio").count(), 1, "{}", ran.stderr);
    let script = "cat /sys/class/gpio/export";
    let ran = served(&["--map", RPI3], &["sh", "-c", script]);
    assert!(!ran.stderr.contains("out of reach"), "{ran:?}");
}
