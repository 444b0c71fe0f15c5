//! The board and its kernel: their names and versions, and which of the kernel's drivers are there.

use crate::map::door;
use crate::release;
use crate::root::Root;

/// The board and its kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The board's name, from the device tree; empty without one.
    pub model: String,
    /// The board's and the SoC's names for programs, the most specific first.
    pub compatible: Vec<String>,
    /// The kernel's release, as `uname -r` prints it.
    pub release: String,
    /// Its version, as (major, minor).
    pub version: (u64, u64),
    /// Whether the kernel was started with `iomem=relaxed`.
    pub iomem_relaxed: bool,
    /// The driver of device-tree nodes for UIO.
    pub uio: Driver,
    /// The devices that it has. Its parameter `of_id`, the `compatible` that it takes, cannot be read.
    pub uio_devices: Vec<String>,
    /// This project's kernel module.
    pub module: Driver,
    /// The devices that it gives to programs, as `barewire0`.
    pub doors: Vec<String>,
    /// The driver of `/dev/spidevB.C`.
    pub spidev: Driver,
    /// Bytes of spidev's buffers, if the driver is there.
    pub bufsiz: Option<u64>,
    /// Whether debugfs is mounted, so that root can see clocks and pins.
    pub debugfs: bool,
    /// Whether an overlay can be applied while the kernel runs, through configfs.
    pub live_overlays: bool,
}

/// How a driver of the kernel is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// It is there.
    Loaded,
    /// `modprobe` loads it.
    Module,
    /// It is neither loaded nor among the modules of the running kernel.
    Missing,
}

impl Driver {
    /// The driver that is `directory` once it is there, and whose module is `module`.
    fn of(root: &Root, directory: &str, module: &str) -> Self {
        if root.path(directory).exists() {
            return Self::Loaded;
        }
        let release = release::text(root);
        let lists = ["modules.dep", "modules.builtin"].into_iter();
        let known = lists
            .filter_map(|list| root.text(format!("/lib/modules/{release}/{list}")).ok())
            .any(|text| text.lines().any(|line| is_module(line, module)));
        if known { Self::Module } else { Self::Missing }
    }
}

/// UIO's driver of device-tree nodes.
const UIO_DRIVER: &str = "/sys/bus/platform/drivers/uio_pdrv_genirq";

/// The devices that UIO's driver has: the links in its directory that are devices.
fn uio_devices(root: &Root) -> Vec<String> {
    let mut names = root.names(UIO_DRIVER);
    names.retain(|name| root.path(format!("/sys/bus/platform/devices/{name}")).exists());
    names
}

/// Whether a line of `modules.dep` or `modules.builtin` is about `module`. The file may be compressed.
fn is_module(line: &str, module: &str) -> bool {
    let path = line.split(':').next().unwrap_or_default();
    let file = path.rsplit('/').next().unwrap_or_default();
    // The file's name may have hyphens where the module's has underscores.
    file.split_once(".ko").is_some_and(|(name, _)| name.replace('-', "_") == module)
}

impl Machine {
    pub(super) fn of(root: &Root) -> Self {
        let text = |path: &str| root.text(path).unwrap_or_default();
        let bufsiz = root.text("/sys/module/spidev/parameters/bufsiz").ok();
        Self {
            model: text("/proc/device-tree/model").trim_end_matches('\0').to_owned(),
            compatible: crate::node::strings(root, "/proc/device-tree/compatible"),
            release: release::text(root),
            version: release::version(root),
            iomem_relaxed: text("/proc/cmdline").split_whitespace().any(|it| it == "iomem=relaxed"),
            uio: Driver::of(root, UIO_DRIVER, "uio_pdrv_genirq"),
            uio_devices: uio_devices(root),
            module: Driver::of(root, "/sys/module/barewire", "barewire"),
            doors: root.names(door::CLASS),
            spidev: Driver::of(root, "/sys/bus/spi/drivers/spidev", "spidev"),
            bufsiz: bufsiz.and_then(|text| crate::root::number(&text)),
            debugfs: !root.names("/sys/kernel/debug").is_empty(),
            live_overlays: root.path("/sys/kernel/config/device-tree/overlays").exists(),
        }
    }
}

/// The value of `option` (`CONFIG_…`) in the text of a kernel's configuration: `y`, `m`, a number or a
/// string. `None` if it is not set.
#[must_use]
pub fn config_value<'t>(config: &'t str, option: &str) -> Option<&'t str> {
    config.lines().find_map(|line| line.strip_prefix(option)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_known_by_their_files() {
        let dep = "kernel/drivers/uio/uio_pdrv_genirq.ko.xz: kernel/drivers/uio/uio.ko.xz";
        assert!(is_module(dep, "uio_pdrv_genirq"));
        assert!(!is_module(dep, "uio"), "its dependency is another module");
        assert!(is_module("kernel/drivers/spi/spi-imx.ko", "spi_imx"));
        assert!(!is_module("", "spidev"));
    }

    #[test]
    fn options_are_read_and_not_what_begins_like_them() {
        let config =
            "CONFIG_UIO=m\n# CONFIG_UIO_PDRV_GENIRQ is not set\nCONFIG_IO_STRICT_DEVMEM=y\n";
        assert_eq!(config_value(config, "CONFIG_UIO"), Some("m"));
        assert_eq!(config_value(config, "CONFIG_UIO_PDRV_GENIRQ"), None);
        assert_eq!(config_value(config, "CONFIG_IO_STRICT_DEVMEM"), Some("y"));
        assert_eq!(config_value(config, "CONFIG_IO"), None);
    }
}
