//! A tree in a temporary directory: files, links and FIFOs where a machine has devices.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::path::PathBuf;

use barewire_linux::Root;
use barewire_linux::bus_text::parse_mem;
use barewire_linux::map::{MapError, MapSpec, Mapped};
use tempfile::TempDir;

/// The same bus for one process alone: it can be started without a lock.
pub(crate) fn alone(spec: MapSpec) -> MapSpec {
    MapSpec { exclusive: true, ..spec }
}

/// Opens the bus `mem:text` of `tree` for this process alone.
pub(crate) fn open_alone(tree: &Tree, text: &str) -> Result<Mapped, MapError> {
    Mapped::open(&tree.root(), &alone(parse_mem(text).expect("reads")))
}

/// A tree, removed when dropped.
pub(crate) struct Tree(TempDir);

impl Tree {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a scratch directory"))
            .directory("/sys/bus")
            .directory("/run/lock")
    }

    pub(crate) fn root(&self) -> Root {
        Root::at(self.0.path())
    }

    fn make_way(&self, path: &str) -> PathBuf {
        let path = self.root().path(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("directories");
        path
    }

    /// A file with `text`.
    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        fs::write(self.make_way(path), text).expect("written");
        self
    }

    /// A file of `len` zeros, most of them holes.
    pub(crate) fn sparse(self, path: &str, len: u64) -> Self {
        let file = File::create(self.make_way(path)).expect("created");
        file.set_len(len).expect("grown");
        self
    }

    /// A symbolic link.
    pub(crate) fn link(self, path: &str, target: &str) -> Self {
        symlink(target, self.make_way(path)).expect("linked");
        self
    }

    /// A directory.
    pub(crate) fn directory(self, path: &str) -> Self {
        fs::create_dir_all(self.root().path(path)).expect("created");
        self
    }

    /// A FIFO.
    pub(crate) fn fifo(self, path: &str) -> Self {
        let path = self.make_way(path);
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).expect("a FIFO");
        self
    }

    /// A platform device and the driver that has it.
    pub(crate) fn platform(self, name: &str, driver: Option<&str>) -> Self {
        self.device("platform", name, driver)
    }

    /// A PrimeCell and the driver that has it.
    pub(crate) fn amba(self, name: &str, driver: Option<&str>) -> Self {
        self.device("amba", name, driver)
    }

    fn device(self, bus: &str, name: &str, driver: Option<&str>) -> Self {
        let device = format!("/sys/bus/{bus}/devices/{name}");
        let tree = self.directory(&device);
        match driver {
            Some(driver) => {
                let target = format!("../../../../bus/{bus}/drivers/{driver}");
                tree.link(&format!("{device}/driver"), &target)
            }
            None => tree,
        }
    }

    /// A GPIO chip of a platform device, with its driver and its node.
    pub(crate) fn gpio_chip(self, device: &str, driver: &str, name: &str) -> Self {
        self.platform(device, Some(driver))
            .directory(&format!("/sys/bus/platform/devices/{device}/{name}"))
            .directory(&format!("/sys/bus/gpio/devices/{name}"))
            .file(&format!("/dev/{name}"), "")
    }

    /// What the device tree says of a device.
    pub(crate) fn compatible(self, bus: &str, name: &str, compatible: &str) -> Self {
        self.file(&format!("/sys/bus/{bus}/devices/{name}/of_node/compatible"), compatible)
    }

    /// The `reg` of a device's node: 32-bit cells, one of address and one of size.
    pub(crate) fn reg(self, bus: &str, name: &str, cells: &[u32]) -> Self {
        let devices = self.root().path(format!("/sys/bus/{bus}/devices"));
        let node = format!("/sys/bus/{bus}/devices/{name}/of_node");
        let tree = self.cells(&format!("{node}/reg"), cells);
        // The node's parent, as the path says it: the device's own directory.
        let parent = devices.join(name);
        for property in ["#address-cells", "#size-cells"] {
            fs::write(parent.join(property), 1_u32.to_be_bytes()).expect("written");
        }
        tree
    }

    /// A property of 32-bit cells.
    pub(crate) fn cells(self, path: &str, cells: &[u32]) -> Self {
        let bytes: Vec<u8> = cells.iter().flat_map(|cell| cell.to_be_bytes()).collect();
        fs::write(self.make_way(path), bytes).expect("written");
        self
    }

    /// A node of the device tree: its `compatible` and `reg`.
    pub(crate) fn node(self, path: &str, compatible: &str, reg: &[u32]) -> Self {
        let node = format!("/proc/device-tree{path}");
        self.file(&format!("{node}/compatible"), compatible).cells(&format!("{node}/reg"), reg)
    }

    /// A bus of the device tree: its cells of address and size, and its `ranges`.
    pub(crate) fn bus(self, path: &str, [address, size]: [u32; 2], ranges: Option<&[u32]>) -> Self {
        let node = format!("/proc/device-tree{path}");
        let tree = self
            .cells(&format!("{node}/#address-cells"), &[address])
            .cells(&format!("{node}/#size-cells"), &[size]);
        match ranges {
            Some(ranges) => tree.cells(&format!("{node}/ranges"), ranges),
            None => tree,
        }
    }

    /// A clock of the kernel, as debugfs has it.
    pub(crate) fn clock(self, name: &str, enable_count: &str, rate: &str) -> Self {
        let directory = format!("/sys/kernel/debug/clk/{name}");
        self.file(&format!("{directory}/clk_enable_count"), enable_count)
            .file(&format!("{directory}/clk_rate"), rate)
    }

    /// A block of a UIO device, as sysfs has it.
    pub(crate) fn uio_map(self, uio: &str, index: u32, fields: [&str; 3]) -> Self {
        let map = format!("/sys/class/uio/{uio}/maps/map{index}");
        let [addr, size, offset] = fields;
        self.file(&format!("{map}/addr"), addr)
            .file(&format!("{map}/size"), size)
            .file(&format!("{map}/offset"), offset)
            .file(&format!("{map}/name"), "spi@30820000\n")
    }
}

/// The file of a device node, as its registers.
pub(crate) struct Registers(File);

impl Registers {
    pub(crate) fn of(tree: &Tree, node: &str) -> Self {
        let file = File::options().read(true).write(true).open(tree.root().path(node));
        Self(file.expect("opened"))
    }

    pub(crate) fn get(&self, at: u64) -> u32 {
        let mut bytes = [0; 4];
        self.0.read_exact_at(&mut bytes, at).expect("read");
        u32::from_ne_bytes(bytes)
    }

    pub(crate) fn set(&self, at: u64, value: u32) {
        self.0.write_all_at(&value.to_ne_bytes(), at).expect("written");
    }

    /// Everything that is not zero in the pages of `blocks`.
    pub(crate) fn nonzero(&self, blocks: &[u64]) -> Vec<(u64, u32)> {
        let words = blocks.iter().flat_map(|&block| (block..block + 0x1000).step_by(4));
        words.map(|at| (at, self.get(at))).filter(|&(_, value)| value != 0).collect()
    }
}
