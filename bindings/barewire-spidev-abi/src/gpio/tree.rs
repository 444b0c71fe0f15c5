//! The files of GPIO chips that programs look at beside their nodes, in the directory that stands in for `/`
//! ([`tree`](crate::tree)).
//!
//! libgpiod takes a node for a chip if `/sys/bus/gpio/devices` has its name, with the node's numbers in
//! `dev` (version 1), or if `subsystem` of its numbers in `/sys/dev/char` leads to `/sys/bus/gpio` (version 2).

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::ChipName;

/// The major number of the nodes; the kernel takes any that is free.
pub const MAJOR: u32 = 254;

/// The directory of a chip below the tree.
#[must_use]
pub fn device(chip: ChipName) -> String {
    format!("sys/devices/platform/barewire-gpio/{}", chip.name())
}

/// Adds these chips to the tree in `tree`, a directory that exists. A node's minor number is its index.
///
/// # Errors
/// A file or directory cannot be made.
pub fn make(tree: &Path, chips: &[ChipName]) -> io::Result<()> {
    let file = |path: &str, text: &str| {
        let path = tree.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, text)
    };
    let link = |path: String, target: String| {
        let path = tree.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        symlink(target, path)
    };
    for (minor, chip) in chips.iter().enumerate() {
        let name = chip.name();
        let dev = format!("{MAJOR}:{minor}");
        let device = device(*chip);
        let below = device.trim_start_matches("sys/");
        file(&format!("dev/{name}"), &dev)?;
        file(&format!("{device}/dev"), &format!("{dev}\n"))?;
        let uevent = format!("MAJOR={MAJOR}\nMINOR={minor}\nDEVNAME={name}\n");
        file(&format!("{device}/uevent"), &uevent)?;
        link(format!("{device}/subsystem"), "../../../../bus/gpio".into())?;
        link(format!("sys/bus/gpio/devices/{name}"), format!("../../../{below}"))?;
        link(format!("sys/dev/char/{dev}"), format!("../../{below}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_leads_to_a_file() {
        let dir = std::env::temp_dir().join(format!("barewire-gpio-tree-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        make(&dir, &[ChipName(0), ChipName(7)]).expect("made");
        let text = |path: &str| {
            fs::read_to_string(dir.join(path)).unwrap_or_else(|error| format!("{path}: {error}"))
        };
        assert_eq!(text("dev/gpiochip7"), "254:1");
        assert_eq!(text("sys/bus/gpio/devices/gpiochip0/dev"), "254:0\n");
        assert_eq!(text("sys/dev/char/254:1/subsystem/devices/gpiochip0/dev"), "254:0\n");
        let bus = fs::canonicalize(dir.join("sys/dev/char/254:0/subsystem")).expect("leads there");
        assert_eq!(bus, fs::canonicalize(&dir).expect("exists").join("sys/bus/gpio"));
        fs::remove_dir_all(&dir).expect("removed");
    }
}
