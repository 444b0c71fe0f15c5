//! What programs look at to learn which board they run on, made for the mapped board.
//!
//! Read first: Raspberry Pi's documentation, "Raspberry Pi hardware", on revision codes and on how to find out the model;
//! Linux's `Documentation/devicetree/usage-model.rst`.
//!
//! # How it works
//! In the directory that stands in for `/`, the root of a device tree is made, with the properties that tell the
//! board, and the link to it in `/proc`. For a Raspberry Pi, the machine's `/proc/cpuinfo` is copied there, and
//! the four lines that Raspberry Pi's kernels print are put at its end. The processors in it stay the machine's, since
//! the program runs on them.
//!
//! Who reads what: Adafruit-PlatformDetect (Blinka) `compatible`, then `Revision` of `cpuinfo`; rppal `Hardware` and
//! `Revision` of `cpuinfo`, then `compatible`; rpi_ws281x `Revision` of `cpuinfo`, or `linux,revision` on
//! 64-bit Arm; diozero `Hardware`, `Revision` and `Model`, and `compatible`; Waveshare's e-Paper examples `Model`;
//! gpiozero and rpi-lgpio `linux,revision`.
//!
//! # Not supported
//! The nodes below the root, such as `soc` and `cpus`: a program that follows them looks for registers, which are out
//! of its reach.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

/// A board as it names itself.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    /// The buses of the board.
    buses: &'static [&'static str],
    model: &'static str,
    compatible: &'static [&'static str],
    raspberry_pi: Option<RaspberryPi>,
}

/// What the firmware of a Raspberry Pi adds.
#[derive(Debug, PartialEq, Eq)]
struct RaspberryPi {
    revision: u32,
    /// Made up: all simulated boards of a kind have the same.
    serial: u64,
}

/// The boards whose identity programs can read. The properties of the root are those of Linux's device-tree sources; a
/// Raspberry Pi's firmware puts the full name in the place of `model`. The revision codes are those of Raspberry Pi's
/// documentation, "Raspberry Pi revision codes", "New-style revision codes in use".
const IDENTITIES: &[Identity] = &[
    Identity {
        buses: &["sim:rpi3", "qemu:raspi3b"],
        model: "Raspberry Pi 3 Model B Rev 1.2",
        // arch/arm/boot/dts/broadcom/bcm2837-rpi-3-b.dts.
        compatible: &["raspberrypi,3-model-b", "brcm,bcm2837"],
        // a02082: 3B, 1.2, 1 GB, Sony UK.
        raspberry_pi: Some(RaspberryPi { revision: 0x00a0_2082, serial: 0x0000_0000_ba4e_0003 }),
    },
    Identity {
        buses: &["sim:rpi5"],
        model: "Raspberry Pi 5 Model B Rev 1.0",
        // arch/arm64/boot/dts/broadcom/bcm2712-rpi-5-b.dts.
        compatible: &["raspberrypi,5-model-b", "brcm,bcm2712"],
        // c04170: 5, 1.0, 4 GB, Sony UK.
        raspberry_pi: Some(RaspberryPi { revision: 0x00c0_4170, serial: 0x1000_0000_ba4e_0005 }),
    },
    Identity {
        buses: &["sim:imx8mp"],
        model: "NXP i.MX8MPlus EVK board",
        // arch/arm64/boot/dts/freescale/imx8mp-evk.dts.
        compatible: &["fsl,imx8mp-evk", "fsl,imx8mp"],
        raspberry_pi: None,
    },
    Identity {
        buses: &["sim:sabrelite", "qemu:sabrelite"],
        model: "Freescale i.MX6 Quad SABRE Lite Board",
        // arch/arm/boot/dts/nxp/imx/imx6q-sabrelite.dts.
        compatible: &["fsl,imx6q-sabrelite", "fsl,imx6q"],
        raspberry_pi: None,
    },
    Identity {
        buses: &["sim:beaglebone"],
        model: "TI AM335x BeagleBone Black",
        // arch/arm/boot/dts/ti/omap/am335x-boneblack.dts.
        compatible: &["ti,am335x-bone-black", "ti,am335x-bone", "ti,am33xx"],
        raspberry_pi: None,
    },
];

/// What a Raspberry Pi's kernel says of any SoC: the string is fixed there (github.com/raspberrypi/bookworm-feedback,
/// issue 129).
const HARDWARE: &str = "BCM2835";

/// Adds the files that identify a board to `tree`, which stands in for `/`: those of the first of
/// the `buses` whose board has an identity.
///
/// # Errors
/// A file or directory cannot be made.
pub(super) fn make(tree: &Path, mut buses: impl Iterator<Item = String>) -> io::Result<()> {
    let of_bus =
        |bus: String| IDENTITIES.iter().find(|identity| identity.buses.contains(&bus.as_str()));
    let Some(Identity { model, compatible, raspberry_pi, .. }) = buses.find_map(of_bus) else {
        return Ok(());
    };
    let root = tree.join("sys/firmware/devicetree/base");
    write(&root.join("model"), &strings(&[model]))?;
    write(&root.join("compatible"), &strings(compatible))?;
    let proc = tree.join("proc");
    fs::create_dir_all(&proc)?;
    // The kernel's is absolute. This one leads to the same place in the tree.
    symlink("../sys/firmware/devicetree/base", proc.join("device-tree"))?;
    let Some(RaspberryPi { revision, serial }) = raspberry_pi else { return Ok(()) };
    write(&root.join("serial-number"), &strings(&[&format!("{serial:016x}")]))?;
    write(&root.join("system/linux,revision"), &revision.to_be_bytes())?;
    write(&root.join("system/linux,serial"), &serial.to_be_bytes())?;
    let machine = fs::read("/proc/cpuinfo").unwrap_or_default();
    let machine = String::from_utf8_lossy(&machine);
    let lines = format!(
        "Hardware\t: {HARDWARE}\nRevision\t: {revision:06x}\nSerial\t\t: {serial:016x}\nModel\t\t: {model}\n"
    );
    write(&proc.join("cpuinfo"), cpuinfo(&machine, &lines).as_bytes())
}

/// A property of strings: each ends in a zero byte.
fn strings(strings: &[&str]) -> Vec<u8> {
    strings.iter().flat_map(|text| text.bytes().chain([0])).collect()
}

/// The machine's `cpuinfo` with `lines` about the board in the place of its own, if it has any.
fn cpuinfo(machine: &str, lines: &str) -> String {
    let of_a_board = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default().trim_end();
        matches!(name, "Hardware" | "Revision" | "Serial" | "Model")
    };
    let processors: Vec<&str> = machine.lines().filter(|line| !of_a_board(line)).collect();
    let processors = processors.join("\n");
    let processors = processors.trim_end();
    let gap = if processors.is_empty() { "" } else { "\n\n" };
    format!("{processors}{gap}{lines}")
}

/// Writes a file that nobody may write, like the kernel's.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(path, bytes)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o444))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpuinfo_has_the_machines_processors_and_the_boards_lines() {
        let lines = "Hardware\t: H\nModel\t\t: M\n";
        let machine = "processor\t: 0\nmodel\t\t: 85\nmodel name\t: CPU\n\nprocessor\t: 1\n\n";
        let kept = "processor\t: 0\nmodel\t\t: 85\nmodel name\t: CPU\n\nprocessor\t: 1\n\n";
        assert_eq!(cpuinfo(machine, lines), format!("{kept}{lines}"));
        let pi = format!(
            "{machine}Hardware\t: BCM2835\nRevision\t: d03115\nSerial\t\t: 1\nModel\t\t: Four\n"
        );
        assert_eq!(cpuinfo(&pi, lines), format!("{kept}{lines}"), "its own lines are replaced");
        let arm = "CPU revision\t: 4\n\n";
        assert_eq!(cpuinfo(arm, lines), format!("{arm}{lines}"));
        assert_eq!(cpuinfo("", lines), lines);
    }

    #[test]
    fn a_bus_is_one_board() {
        let buses: Vec<_> = IDENTITIES.iter().flat_map(|identity| identity.buses).collect();
        for (index, bus) in buses.iter().enumerate() {
            assert!(!buses[..index].contains(bus), "{bus}");
            assert!(bus.starts_with("sim:") || bus.starts_with("qemu:"), "{bus}");
        }
    }

    #[test]
    fn a_property_ends_each_string() {
        assert_eq!(strings(&["a,b", "c"]), b"a,b\0c\0");
    }
}
