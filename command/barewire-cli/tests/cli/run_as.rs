//! `barewire run --as`: which board programs are told, whatever is mapped.

use std::process::Command;

use super::command::{Dir, Ran, run, text};
use super::qemu::qemu;
use super::run::{client, served};

/// A bus without a board.
const NULL: [&str; 2] = ["--map", "/dev/spidev7.1=null:"];

/// What the libraries' own ways to look a board up find, in a program of C.
fn lookups(options: &[&str], chip: &[&str]) -> Ran {
    let (_dir, program) = client("board_lookups.c", &["-D_FORTIFY_SOURCE=2"]);
    served(options, &[&[text(&program).as_str()], chip].concat())
}

/// The lines that [`lookups`] prints without a chip.
fn found(revision: &str, compatible: &str, registers: &str, driver: u8, model: &str) -> String {
    format!(
        "revision {revision} {revision} compatible {compatible}\nregisters {registers} driver {driver}\n\
         gpiomem EPERM mem EPERM vcio EPERM\nModel\t\t: {model}\n"
    )
}

#[test]
fn libraries_find_the_raspberry_pi_that_was_asked_for() {
    for (board, revision, compatible, registers, driver, model) in [
        ("pi3", "a02082", "3-model-b", "3f000000", 1, "3 Model B Rev 1.2"),
        ("pi4", "c03114", "4-model-b", "fe000000", 1, "4 Model B Rev 1.4"),
        ("pi5", "c04170", "5-model-b", "0", 0, "5 Model B Rev 1.0"),
        ("pi-zero-2w", "902120", "model-zero-2-w", "3f000000", 1, "Zero 2 W Rev 1.0"),
    ] {
        let compatible = format!("raspberrypi,{compatible}");
        let model = format!("Raspberry Pi {model}");
        let expected = found(revision, &compatible, registers, driver, &model);
        let ran = lookups(&[&NULL[..], &["--as", board]].concat(), &[]).ok();
        assert_eq!(ran.text(), expected, "{board}");
    }
}

#[test]
fn other_boards_are_told_by_their_names() {
    let script = "tr '\\0' '\\n' < /proc/device-tree/model; tr '\\0' '\\n' < /proc/device-tree/compatible; \
                  grep -E '^(Hardware|Revision)' /proc/cpuinfo; cat /sys/bus/nvmem/devices/0-0050*/nvmem | tail -c 12";
    for (board, expected) in [
        ("imx8mp-evk", "NXP i.MX8MPlus EVK board\nfsl,imx8mp-evk\nfsl,imx8mp\n"),
        (
            "sabrelite",
            "Freescale i.MX6 Quad SABRE Lite Board\nfsl,imx6q-sabrelite\nfsl,imx6q\n\
             Hardware\t: Freescale i.MX6 Quad/DualLite (Device Tree)\nRevision\t: 0000\n",
        ),
        (
            "beaglebone",
            "TI AM335x BeagleBone Black\nti,am335x-bone-black\nti,am335x-bone\nti,am33xx\n\
             Hardware\t: Generic AM33XX (Flattened Device Tree)\nRevision\t: 0000\nA335BNLT00C0",
        ),
    ] {
        let options = [&NULL[..], &["--as", board]].concat();
        assert_eq!(served(&options, &["sh", "-c", script]).text(), expected, "{board}");
    }
}

/// `--as` outweighs the boards of both kinds of map. The first GPIO chip is the header's of the board that is told.
#[test]
fn the_board_that_was_asked_for_outweighs_the_mapped_ones() {
    let expected = found(
        "c03114",
        "raspberrypi,4-model-b",
        "fe000000",
        1,
        "Raspberry Pi 4 Model B Rev 1.4",
    ) + "chip \"pinctrl-bcm2711\" with 58 lines\nline 2 told \"GPIO2\" taken\nline 24 told \"GPIO24\" taken\n\
         line 27 told \"GPIO27\" taken\nline 32 told \"\" EBUSY\nline 53 told \"\" EBUSY\nline 57 told \"\" EBUSY\n\
         line 58 untold \"\" EINVAL\n";
    let dir = Dir::new();
    let own = dir.file("mine.toml", "like = \"rpi5\"\n[[cs]]\nprogram = 5\n");
    let own = format!("sim:{own}");
    for mapped in ["sim:rpi3", "sim:rpi5,no-cs", "sim:imx8mp", &own] {
        let (spi, gpio) = ("/dev/spidev7.1=sim:beaglebone", format!("/dev/gpiochip7={mapped}"));
        let options = ["--map", spi, "--map-gpio", &gpio, "--as", "pi4", "--verbose"];
        let ran = lookups(&options, &["/dev/gpiochip7"]).ok();
        assert_eq!(ran.text(), expected, "{mapped}");
        assert!(ran.stderr.contains("line 53 has no pin on the mapped board"), "{}", ran.stderr);
    }
    // A Raspberry Pi 3 calls some of its lines by their use; a Raspberry Pi 5's are another chip's.
    for (board, chip, lines) in
        [("pi3", "pinctrl-bcm2835", "SDA1"), ("pi5", "pinctrl-rp1", "GPIO2")]
    {
        let options = ["--map-gpio", "/dev/gpiochip7=sim:rpi3", "--as", board];
        let ran = lookups(&options, &["/dev/gpiochip7"]).ok();
        let chip = format!("chip \"{chip}\" with 54 lines\nline 2 told \"{lines}\" taken\n");
        assert!(ran.text().contains(&chip), "{board}: {ran:?}");
        assert!(ran.text().ends_with("line 57 untold \"\" EINVAL\nline 58 untold \"\" EINVAL\n"));
    }
    // A board of another kind says nothing of the chip: it stays the mapped board's. So does a second chip.
    let options = ["--map-gpio", "/dev/gpiochip7=sim:rpi3", "--as", "imx8mp-evk"];
    let ran = lookups(&options, &["/dev/gpiochip7"]).ok();
    assert!(ran.text().contains("chip \"pinctrl-bcm2835\" with 32 lines\n"), "{ran:?}");
    let second = ["--map-gpio", "/dev/gpiochip8=sim:imx8mp"];
    let options = [&options[..2], &second, &["--as", "pi4"]].concat();
    let ran = lookups(&options, &["/dev/gpiochip8"]).ok();
    assert!(ran.text().contains("chip \"30240000.gpio\" with 32 lines\n"), "{ran:?}");
}

#[test]
fn no_board_is_told_if_none_was_asked_for() {
    let script = "grep -c Raspberry /proc/cpuinfo; ls -d /sys/bus/platform/drivers/gpiomem-bcm2835; \
                  ls -d /proc/device-tree";
    let ran = served(&["--map", "/dev/spidev7.1=sim:rpi3", "--as", "none"], &["sh", "-c", script]);
    let machine = Command::new("sh").args(["-c", script]).output().expect("a shell");
    assert_eq!(ran.text(), String::from_utf8_lossy(&machine.stdout), "the machine's own files");
}

/// gpiozero's own pins follow the device tree to their registers. rpi-lgpio and Blinka look for the header's chip by its
/// node; PlatformDetect reads its fields without regard to case.
#[test]
fn python_libraries_follow_the_nodes_of_the_board() {
    if !Command::new("python3").arg("--version").output().is_ok_and(|ran| ran.status.success()) {
        println!("SKIPPED: no python3");
        return;
    }
    let script = "import re, struct, subprocess\n\
         from pathlib import Path\n\
         tree = Path('/proc/device-tree')\n\
         cells = lambda path: struct.unpack('>%dL' % (path.stat().st_size // 4), path.read_bytes())\n\
         alias = tree / 'aliases/gpio'\n\
         if alias.exists():\n\
         \x20   node = tree / alias.read_bytes().split(b'\\0')[0].decode().lstrip('/')\n\
         \x20   base, size = cells(node / 'reg')\n\
         \x20   parent = cells(tree / '#address-cells')[0]\n\
         \x20   child, *to, length = cells(node.parent / 'ranges')[:2 + parent]\n\
         \x20   print(hex(base - child + to[-1]), hex(size))\n\
         for chip in Path('/sys/bus/gpio/devices').glob('gpiochip*'):\n\
         \x20   if (chip / 'of_node/compatible').is_file():\n\
         \x20       print(chip.name, (chip / 'of_node/compatible').read_text().split('\\0')[0])\n\
         fields = [re.search(r'^revision\\s+:\\s+(.*)$', line, re.I) for line in open('/proc/cpuinfo').read().split('\\n')]\n\
         print([field.group(1) for field in fields if field])\n\
         print(subprocess.run('cat /proc/cpuinfo | grep Raspberry', shell=True, stdout=subprocess.PIPE, text=True).stdout)\n";
    let chip = ["--map-gpio", "/dev/gpiochip4=sim:rpi5"];
    for (told_as, expected) in [
        (
            &["--as", "pi4"][..],
            "0xfe200000 0xb4\ngpiochip4 brcm,bcm2711-gpio\n['c03114']\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n\n",
        ),
        (
            &["--as", "pi-zero-2w"],
            "0x3f200000 0xb4\ngpiochip4 brcm,bcm2835-gpio\n['902120']\nModel\t\t: Raspberry Pi Zero 2 W Rev 1.0\n\n",
        ),
        (
            &[],
            "gpiochip4 raspberrypi,rp1-gpio\n['c04170']\nModel\t\t: Raspberry Pi 5 Model B Rev 1.0\n\n",
        ),
    ] {
        let ran = served(&[&chip[..], told_as].concat(), &["python3", "-c", script]).ok();
        assert_eq!(ran.text(), expected, "{told_as:?}");
    }
    // The chip is not that of the board which is told.
    let others = ["--map-gpio", "/dev/gpiochip4=sim:zynq", "--map", "/dev/spidev7.1=sim:rpi3"];
    let script = "import os; print(os.path.exists('/sys/bus/gpio/devices/gpiochip4/of_node'))";
    assert_eq!(served(&others, &["python3", "-c", script]).ok().text(), "False\n");
}

#[test]
fn a_board_of_qemu_is_told_as_another_too() {
    if !qemu() {
        return;
    }
    let script = "tr '\\0' '\\n' < /proc/device-tree/model; test -c /dev/spidev7.0 && echo there";
    let options = ["--map", "/dev/spidev7.0=qemu:sabrelite", "--as", "pi4"];
    let ran = served(&options, &["sh", "-c", script]).ok();
    assert_eq!(ran.text(), "Raspberry Pi 4 Model B Rev 1.4\nthere\n");
}

/// A child whose environment is its parent's is told too, also behind another program.
#[test]
fn children_are_told() {
    let script = "exec env FIRST=1 sh -c 'cat /proc/cpuinfo | grep Raspberry; exec cat /proc/device-tree/model'";
    let ran = served(&[&NULL[..], &["--as", "pi4"]].concat(), &["sh", "-c", script]).ok();
    let model = "Raspberry Pi 4 Model B Rev 1.4";
    assert_eq!(ran.text(), format!("Model\t\t: {model}\n{model}\0"));
}

#[test]
fn a_wrong_name_is_told_with_the_nearest_and_all() {
    let all =
        "[possible values: pi3, pi4, pi5, pi-zero-2w, imx8mp-evk, sabrelite, beaglebone, none]";
    for (name, nearest) in [
        ("rpi4", "a similar value exists: 'pi4'"),
        ("pi-zero-2", "a similar value exists: 'pi-zero-2w'"),
        ("imx8mp", "a similar value exists: 'imx8mp-evk'"),
        ("", "'--as <BOARD>'"),
    ] {
        let ran = served(&[&NULL[..], &["--as", name]].concat(), &["true"]);
        assert_eq!(ran.code, Some(2), "{name}: {ran:?}");
        // Lines are broken at the terminal's width.
        let told = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(nearest) && told.contains(all), "{name}: {told}");
    }
    run(&["run", "--as", "pi4", "--", "true"]).misused("--map");
}

#[test]
fn the_help_lists_the_boards() {
    let help = run(&["run", "--help"]).ok().text();
    for board in ["pi3:", "pi4:", "pi5:", "pi-zero-2w:", "imx8mp-evk:", "beaglebone:", "none:"] {
        assert!(help.contains(&format!("- {board}")), "{board} is not in\n{help}");
    }
    let completions = run(&["completions", "bash"]).ok().text();
    assert!(completions.contains("pi3 pi4 pi5 pi-zero-2w"), "no values");
}
