//! What programs look at to learn which board they run on, made for the mapped board or for the one of `--as`.
//!
//! Read first: Raspberry Pi's documentation, "Raspberry Pi hardware", on revision codes and on how to find out the model;
//! Linux's `Documentation/devicetree/usage-model.rst`.
//!
//! # How it works
//! In the directory that stands in for `/`, the root of a device tree is made, with the properties that tell the
//! [board](boards), and the link to it in `/proc`. Where the board's kernel prints the board in `/proc/cpuinfo`, the machine's
//! is copied, and the lines are put at its end. The processors in it stay the machine's, since the program runs on
//! them.
//!
//! # Who reads what
//! By their sources, in the versions that `cargo xtask clients` runs and the newest at PyPI:
//!
//! | program | what it reads |
//! |---|---|
//! | Adafruit-PlatformDetect (Blinka) | `compatible`; `Revision` of `cpuinfo`, else `linux,revision`; on a BeagleBone `Hardware` and the EEPROM |
//! | Blinka's pins | the label and number of lines of each GPIO chip: one chip alone may have a Raspberry Pi's label |
//! | rppal | `Revision` of `cpuinfo`, else `compatible`, else `model` |
//! | rpi_ws281x | `Revision` of `cpuinfo`, on 64-bit Arm `linux,revision`; then `/dev/gpiomem` (SPI) or `/dev/mem` and `/dev/vcio` |
//! | RPi.GPIO, bcm_host | `linux,revision`, else `cpuinfo`; `soc/ranges`; `/dev/gpiomem`, else `/dev/mem` |
//! | gpiozero, rpi-lgpio | `linux,revision`; gpiozero's own pins also `aliases/gpio` and the ranges of its node |
//! | rpi-lgpio, Blinka by lgpio | `of_node/compatible` of each GPIO chip: `raspberrypi,rp1-gpio` is the header's |
//! | Waveshare's e-Paper code | a line of `cpuinfo` with `Raspberry`, by a shell; older versions `/sys/bus/platform/drivers/gpiomem-bcm2835` |
//! | diozero | `Hardware`, `Revision` and `Model`, and `compatible` |
//!
//! None of them looks at `/etc/rpi-issue` or runs `vcgencmd`, so nothing is made for these.
//!
//! # Not supported
//! Other nodes below the root, such as `cpus` and `chosen`: they are missing.

mod boards;

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use barewire_spidev_abi::gpio::{ChipName, tree as chip_tree};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use boards::{IDENTITIES, Property};
pub(crate) use boards::{Identity, ToldChip};

/// The device tree below `/sys`.
const IN_SYS: &str = "firmware/devicetree/base";
/// The same from the root.
const DEVICE_TREE: &str = "sys/firmware/devicetree/base";

/// What `--as` says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ToldAs {
    /// Programs see the machine's own files.
    Nothing,
    Board(&'static Identity),
}

impl ToldAs {
    /// Its names and what they mean.
    fn all() -> impl Iterator<Item = (&'static str, &'static str, Self)> {
        let boards = IDENTITIES.iter().map(|board| (board.name, board.model, Self::Board(board)));
        boards.chain([(NOTHING, "The machine's own files", Self::Nothing)])
    }

    /// Takes one of the names.
    pub(crate) fn parser() -> impl TypedValueParser<Value = Self> {
        let values = Self::all().map(|(name, about, _)| PossibleValue::new(name).help(about));
        PossibleValuesParser::new(values).map(|name| {
            let named = Self::all().find(|(own, ..)| *own == name);
            named.map_or(Self::Nothing, |(.., told)| told)
        })
    }
}

/// The value of `--as` for [`ToldAs::Nothing`].
const NOTHING: &str = "none";

/// The board that programs are told: that of `--as`, else the first of the `buses` that has a name to be told.
pub(super) fn told(
    told_as: Option<ToldAs>,
    mut buses: impl Iterator<Item = String>,
) -> Option<&'static Identity> {
    match told_as {
        Some(ToldAs::Nothing) => None,
        Some(ToldAs::Board(identity)) => Some(identity),
        None => buses.find_map(|bus| IDENTITIES.iter().find(|board| board.is(&bus))),
    }
}

impl Identity {
    /// The chip of the board's header as its kernel has it.
    pub(super) fn chip(&self) -> Option<&ToldChip> {
        self.raspberry_pi.as_ref().map(|pi| &pi.gpio)
    }

    /// Whether that bus is this board.
    pub(super) fn is(&self, bus: &str) -> bool {
        self.buses.contains(&bus)
    }

    /// Adds to the tree in `tree`, which stands in for `/`, what tells the board. `chip` is the GPIO chip that is its
    /// header's.
    ///
    /// # Errors
    /// A file or directory cannot be made.
    pub(super) fn make(&self, tree: &Path, chip: Option<ChipName>) -> io::Result<()> {
        let root = tree.join(DEVICE_TREE);
        write(&root.join("model"), &strings(&[self.model]))?;
        write(&root.join("compatible"), &strings(self.compatible))?;
        let proc = tree.join("proc");
        fs::create_dir_all(&proc)?;
        // The kernel's is absolute. This one leads to the same place in the tree.
        symlink(Path::new("..").join(DEVICE_TREE), proc.join("device-tree"))?;
        for (path, bytes) in self.files {
            write(&tree.join(path), bytes)?;
        }
        if let Some(hardware) = self.hardware {
            let machine = fs::read("/proc/cpuinfo").unwrap_or_default();
            let machine = String::from_utf8_lossy(&machine);
            let lines = self.cpuinfo_lines(hardware);
            write(&proc.join("cpuinfo"), cpuinfo(&machine, &lines).as_bytes())?;
        }
        let Some(pi) = &self.raspberry_pi else { return Ok(()) };
        write(&root.join("serial-number"), &strings(&[&format!("{:016x}", pi.serial)]))?;
        write(&root.join("system/linux,revision"), &pi.revision.to_be_bytes())?;
        write(&root.join("system/linux,serial"), &pi.serial.to_be_bytes())?;
        for (path, property) in pi.properties {
            write(&root.join(path), &property.bytes())?;
        }
        if pi.gpiomem_driver {
            fs::create_dir_all(tree.join("sys/bus/platform/drivers/gpiomem-bcm2835"))?;
        }
        if let Some(chip) = chip {
            let device = tree.join(chip_tree::device(chip));
            symlink(
                Path::new("../../../..").join(IN_SYS).join(pi.gpio.node),
                device.join("of_node"),
            )?;
        }
        Ok(())
    }

    /// The lines at the end of `/proc/cpuinfo`. A kernel for 32-bit Arm prints zeros where it was not told better.
    fn cpuinfo_lines(&self, hardware: &str) -> String {
        let pi = self.raspberry_pi.as_ref();
        let (revision, serial) = pi.map_or((0, 0), |pi| (pi.revision, pi.serial));
        let model = pi.map_or_else(String::new, |_| format!("Model\t\t: {}\n", self.model));
        format!(
            "Hardware\t: {hardware}\nRevision\t: {revision:04x}\nSerial\t\t: {serial:016x}\n{model}"
        )
    }
}

impl Property {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Cells(cells) => cells.iter().flat_map(|cell| cell.to_be_bytes()).collect(),
            Self::Strings(texts) => strings(texts),
        }
    }
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
    use super::boards::RaspberryPi;
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
    fn a_bus_is_one_board_and_a_name_too() {
        let buses: Vec<_> = IDENTITIES.iter().flat_map(|identity| identity.buses).collect();
        for (index, bus) in buses.iter().enumerate() {
            assert!(!buses[..index].contains(bus), "{bus}");
            assert!(bus.starts_with("sim:") || bus.starts_with("qemu:"), "{bus}");
        }
        let names: Vec<_> = ToldAs::all().map(|(name, ..)| name).collect();
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name}");
        }
    }

    /// Raspberry Pi's documentation, "New-style revision codes": the type in bits 4 to 11, the processor in 12 to 15.
    #[test]
    fn a_revision_code_is_that_of_the_model() {
        for Identity { name, model, compatible, raspberry_pi, .. } in IDENTITIES {
            let Some(RaspberryPi { revision, gpio, properties, .. }) = raspberry_pi else {
                continue;
            };
            let (kind, processor) = match revision >> 4 & 0xff {
                0x08 => ("3 Model B", "brcm,bcm2837"),
                0x11 => ("4 Model B", "brcm,bcm2711"),
                0x12 => ("Zero 2 W", "brcm,bcm2837"),
                0x17 => ("5 Model B", "brcm,bcm2712"),
                other => panic!("{name}: type {other:#x}"),
            };
            assert_eq!(*model, format!("Raspberry Pi {kind} Rev 1.{}", revision & 0xf), "{name}");
            assert_eq!(compatible[1], processor, "{name}");
            let number =
                ["brcm,bcm2835", "brcm,bcm2836", "brcm,bcm2837", "brcm,bcm2711", "brcm,bcm2712"];
            assert_eq!(number[(revision >> 12 & 0xf) as usize], processor, "{name}");
            assert_eq!(revision >> 23, 1, "{name}: a new code");
            let node = format!("{}/compatible", gpio.node);
            assert!(properties.iter().any(|(path, _)| *path == node), "{name}: {node}");
        }
    }

    #[test]
    fn what_is_asked_for_wins() {
        let name = |told_as, buses: &[&str]| {
            told(told_as, buses.iter().map(|bus| (*bus).to_owned())).map(|board| board.name)
        };
        assert_eq!(name(None, &["null:", "sim:rpi5", "sim:rpi3"]), Some("pi5"));
        assert_eq!(name(None, &["null:", "sim:zynq"]), None);
        let named =
            |wanted| ToldAs::all().find(|(name, ..)| *name == wanted).map(|(.., told)| told);
        assert_eq!(name(named("pi4"), &["sim:rpi5"]), Some("pi4"));
        assert_eq!(name(named("none"), &["sim:rpi5"]), None);
    }

    #[test]
    fn a_property_ends_each_string() {
        assert_eq!(strings(&["a,b", "c"]), b"a,b\0c\0");
    }
}
