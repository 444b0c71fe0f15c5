//! The files that programs look at beside the node, as a directory that stands in for `/`.
//!
//! # How it works
//! The server makes `TREE/dev/spidevB.C`, and what a kernel with such nodes has under `/sys`. The node is an ordinary
//! file that holds its device numbers; the library says that it is a character device. The library opens `TREE` +
//! path if that exists, else the path itself. A listing shows the entries of both.
//!
//! Links inside are relative, so they lead to the same place in the tree as in a real `/sys`.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::NodeName;

/// The major number of spidev's nodes.
pub const MAJOR: u32 = 153;

/// Makes the tree of these nodes in `tree`, a directory that exists. A node's minor number is its index.
///
/// # Errors
/// A file or directory cannot be made.
pub fn make(tree: &Path, nodes: &[NodeName], bufsiz: u32) -> io::Result<()> {
    let write = |path: String, text: &str| {
        let path = tree.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, text)
    };
    let link = |path: String, target: &str| {
        let path = tree.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        // Two nodes of a bus share its links.
        match symlink(target, path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    };
    write("sys/module/spidev/parameters/bufsiz".into(), &format!("{bufsiz}\n"))?;
    write("sys/bus/spi/drivers/spidev/uevent".into(), "")?;
    for (minor, node) in nodes.iter().enumerate() {
        let NodeName { bus, chip_select } = *node;
        let (spi, name) = (format!("spi{bus}.{chip_select}"), format!("spidev{bus}.{chip_select}"));
        let device = format!("sys/devices/platform/barewire/spi_master/spi{bus}/{spi}");
        write(format!("{device}/modalias"), "spi:spidev\n")?;
        write(format!("{device}/uevent"), "DRIVER=spidev\nMODALIAS=spi:spidev\n")?;
        let dev = format!("{MAJOR}:{minor}");
        write(format!("dev/{name}"), &dev)?;
        write(format!("{device}/spidev/{name}/dev"), &format!("{dev}\n"))?;
        let uevent = format!("MAJOR={MAJOR}\nMINOR={minor}\nDEVNAME={name}\n");
        write(format!("{device}/spidev/{name}/uevent"), &uevent)?;
        link(format!("{device}/driver"), "../../../../../../bus/spi/drivers/spidev")?;
        link(format!("{device}/subsystem"), "../../../../../../bus/spi")?;
        link(format!("{device}/spidev/{name}/device"), &format!("../../../{spi}"))?;
        link(format!("{device}/spidev/{name}/subsystem"), "../../../../../../../../class/spidev")?;
        let below = device.trim_start_matches("sys/").to_owned();
        link(format!("sys/bus/spi/devices/{spi}"), &format!("../../../{below}"))?;
        link(format!("sys/bus/spi/drivers/spidev/{spi}"), &format!("../../../../{below}"))?;
        link(format!("sys/class/spidev/{name}"), &format!("../../{below}/spidev/{name}"))?;
        link(format!("sys/dev/char/{dev}"), &format!("../../{below}/spidev/{name}"))?;
        link(
            format!("sys/class/spi_master/spi{bus}"),
            &format!("../../devices/platform/barewire/spi_master/spi{bus}"),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_leads_to_a_file() {
        let dir = std::env::temp_dir().join(format!("barewire-tree-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let nodes =
            [(0, 0), (0, 1), (3, 2)].map(|(bus, chip_select)| NodeName { bus, chip_select });
        make(&dir, &nodes, 8192).expect("made");
        let text = |path: &str| {
            fs::read_to_string(dir.join(path)).unwrap_or_else(|error| format!("{path}: {error}"))
        };
        assert_eq!(text("sys/module/spidev/parameters/bufsiz"), "8192\n");
        assert_eq!(text("sys/bus/spi/devices/spi0.1/modalias"), "spi:spidev\n");
        assert_eq!(text("sys/bus/spi/devices/spi0.1/driver/spi3.2/modalias"), "spi:spidev\n");
        assert_eq!(
            text("sys/bus/spi/devices/spi0.1/subsystem/devices/spi0.0/modalias"),
            "spi:spidev\n"
        );
        assert_eq!(text("sys/class/spidev/spidev3.2/dev"), "153:2\n");
        assert_eq!(text("sys/class/spidev/spidev3.2/device/modalias"), "spi:spidev\n");
        assert_eq!(text("sys/class/spidev/spidev3.2/subsystem/spidev0.0/dev"), "153:0\n");
        assert_eq!(text("sys/dev/char/153:1/uevent"), "MAJOR=153\nMINOR=1\nDEVNAME=spidev0.1\n");
        assert_eq!(text("sys/class/spi_master/spi3/spi3.2/modalias"), "spi:spidev\n");
        assert_eq!(text("dev/spidev3.2"), "153:2");
        fs::remove_dir_all(&dir).expect("removed");
    }
}
