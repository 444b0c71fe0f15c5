//! An SPI controller: its driver, clock, pins, chip selects, and its other users.

use super::child::{Child, RefusedChip};
use super::cs_gpios;
use super::line::{SelectAt, SharedLine};
use super::refusal::{Fault, Rules};
use super::supplier;
use crate::iomem;
use crate::map::Block;
use crate::map::Uio;
use crate::map::clock::{self, Clock};
use crate::map::device::{PlatformDevice, bus_number, devices_in, spi_controllers};
use crate::map::door;
use crate::node;
use crate::root::{Root, number};
use crate::spidev;

use super::rights::Access;

/// A controller of the SoC.
#[derive(Clone, Debug)]
pub struct Controller {
    /// Its device, and the driver bound to it.
    pub device: PlatformDevice,
    /// The kernel's number of its bus.
    pub bus: Option<u32>,
    /// Its path in the device tree, as `/soc/spi@7e204000`; empty if unknown.
    pub node: String,
    /// The address of its registers as its own bus numbers it, which manuals may use.
    pub bus_address: Option<u64>,
    /// Its clock, for a block that barewire drives. No register was read for it.
    pub clock: Option<Clock>,
    /// Runtime power management: `active`, `suspended`, `unsupported`.
    pub runtime_status: Option<String>,
    /// The devices that must have drivers before it can have one, as far as they have none.
    pub awaits: Vec<String>,
    /// Why it cannot be offered at all.
    pub fault: Option<Fault>,
    /// Its chip selects, by number; none if it has a fault.
    pub selects: Vec<Select>,
    /// Lines of its chip selects that other controllers have too.
    pub shared: Vec<SharedLine>,
    /// The chips on its bus.
    pub children: Vec<Child>,
    /// Nodes of chips that are refused.
    pub refused: Vec<RefusedChip>,
    /// Its nodes of spidev.
    pub spidev: Vec<Access>,
    /// Whether its node names an interrupt.
    pub has_interrupt: bool,
    /// Its pins.
    pub pins: Pins,
    /// The owners of claims on its registers, by `/proc/iomem`.
    pub claimed_by: Vec<String>,
    /// Other devices with registers in the same pages. A mapping covers whole pages, so a user who
    /// may map the controller can drive them too.
    pub neighbours: Vec<String>,
    /// The kernel module's device, if its driver `barewire-user` has the controller.
    pub door: Option<Access>,
    /// The UIO device with its registers.
    pub uio: Option<UioNode>,
    /// Processes that have its registers mapped, by UIO or `/dev/mem`, as far as can be seen.
    pub mapped_by: Vec<u32>,
}

/// A controller's pins, by debugfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pins {
    /// This process may not look, or there is no debugfs.
    Unknown,
    /// No pin belongs to the device.
    None,
    /// These lines of `pinmux-pins` name the device.
    Owned(Vec<String>),
}

/// A chip select.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    /// Where its line is.
    pub at: SelectAt,
    /// Whether it is active high.
    pub active_high: bool,
}

/// A UIO device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UioNode {
    /// Its node.
    pub access: Access,
    /// Whether its parent keeps the clocks on while it is open.
    pub keeps_clock: bool,
    /// How many interrupts it has counted.
    pub events: Option<u64>,
}

impl Controller {
    /// All of them.
    pub(super) fn all(root: &Root, version: (u64, u64)) -> Vec<Self> {
        let mappings = mappings(root);
        let of = |device| Self::of(root, device, version, &mappings);
        let mut all: Vec<Self> = spi_controllers(root).into_iter().map(of).collect();
        let shared: Vec<_> = all.iter().map(|it| shared_lines(it, &all)).collect();
        all.iter_mut().zip(shared).for_each(|(controller, shared)| controller.shared = shared);
        all
    }

    fn of(
        root: &Root,
        device: PlatformDevice,
        version: (u64, u64),
        mappings: &[(u32, String)],
    ) -> Self {
        let directory = device.directory();
        let of_node = format!("{directory}/of_node");
        let bus = bus_number(root, &device);
        let base = device.base();
        let uio = base.and_then(|address| UioNode::at(root, address));
        let clock = device.block.map(|block| {
            let name = uio.as_ref().map(UioNode::name);
            clock::examine(root, block, device.address, None, name)
        });
        let (lines, fault) = match cs_gpios::lines(root, &of_node) {
            _ if node::is_target(root, &of_node) => (vec![], Some(Fault::Target)),
            Ok(lines) => (lines, None),
            Err(fault) => (vec![], Some(fault)),
        };
        let rules = Rules::of(root, &of_node, device.block, &lines, version);
        let (children, refused) = Child::all(root, &of_node, bus, &rules);
        let selects = if fault.is_none() { selects(lines, &children) } else { vec![] };
        let prefix = bus.map(|bus| format!("/dev/spidev{bus}."));
        let nodes = spidev::nodes(root).into_iter();
        let own = |path: &String| prefix.as_ref().is_some_and(|prefix| path.starts_with(prefix));
        Self {
            bus,
            node: tree_path(root, &of_node),
            bus_address: node::bus_address(root, &of_node),
            clock,
            runtime_status: root.text(format!("{directory}/power/runtime_status")).ok(),
            awaits: supplier::awaited(root, &directory, &device.name),
            fault,
            selects,
            shared: Vec::new(),
            children,
            refused,
            spidev: nodes.filter(own).filter_map(|path| Access::of(root, &path)).collect(),
            has_interrupt: ["interrupts", "interrupts-extended"]
                .iter()
                .any(|name| root.path(format!("{of_node}/{name}")).exists()),
            pins: Pins::of(root, &device.name),
            claimed_by: base
                .map(|_| iomem::claims(root, device.range().0, device.registers_len()))
                .unwrap_or_default(),
            neighbours: base.map(|_| neighbours(root, &device)).unwrap_or_default(),
            mapped_by: base
                .map(|address| {
                    let node = uio.as_ref().map(|uio| uio.access.path.clone());
                    let node = node.or_else(|| door::at(root, address));
                    mapped_by(mappings, device.range(), node.as_deref())
                })
                .unwrap_or_default(),
            door: base.and_then(|address| door_at(root, address)),
            uio,
            device,
        }
    }

    /// The block, if barewire drives it.
    #[must_use]
    pub fn block(&self) -> Option<Block> {
        self.device.block
    }

    /// The chip behind a chip select, if the tree or the kernel knows one.
    #[must_use]
    pub fn child(&self, chip_select: usize) -> Option<&Child> {
        self.children.iter().find(|child| usize::from(child.chip_select) == chip_select)
    }

    /// The chips, and the kernel's devices of refused nodes.
    pub fn devices(&self) -> impl Iterator<Item = &Child> {
        self.children.iter().chain(self.refused.iter().filter_map(|it| it.device.as_ref()))
    }

    /// The chips that a driver other than spidev has.
    pub fn rivals(&self) -> impl Iterator<Item = &Child> {
        self.devices().filter(|child| child.rival().is_some())
    }
}

/// The path in the device tree of the node that a link leads to.
fn tree_path(root: &Root, of_node: &str) -> String {
    let real = std::fs::canonicalize(root.path(of_node)).unwrap_or_default();
    let real = real.to_string_lossy();
    let below = real.split_once("/devicetree/base").map(|(_, path)| path.to_owned());
    below.unwrap_or_default()
}

impl Pins {
    fn of(root: &Root, device: &str) -> Self {
        const DEBUGFS: &str = "/sys/kernel/debug/pinctrl";
        let mut texts = root
            .names(DEBUGFS)
            .into_iter()
            .filter_map(|name| root.text(format!("{DEBUGFS}/{name}/pinmux-pins")).ok())
            .peekable();
        if texts.peek().is_none() {
            return Self::Unknown;
        }
        let mut owned = Vec::new();
        for text in texts {
            let lines = text.lines().filter(|line| {
                line.starts_with("pin ") && line.split_whitespace().any(|word| word == device)
            });
            owned.extend(lines.map(str::to_owned));
        }
        if owned.is_empty() { Self::None } else { Self::Owned(owned) }
    }
}

fn door_at(root: &Root, address: u64) -> Option<Access> {
    let path = door::at(root, address)?;
    Some(Access::of(root, &path).unwrap_or(Access { path, allowed: false, group: None }))
}

impl UioNode {
    fn at(root: &Root, address: u64) -> Option<Self> {
        let path = Uio::find(root, address)?;
        let name = path.strip_prefix("/dev/").unwrap_or(&path).to_owned();
        let events = root.text(format!("/sys/class/uio/{name}/event")).ok();
        Some(Self {
            keeps_clock: clock::holds_while_open(root, &name),
            events: events.and_then(|text| number(&text)),
            access: Access::of(root, &path).unwrap_or(Access { path, allowed: false, group: None }),
        })
    }

    /// Its name, as `uio0`.
    #[must_use]
    pub fn name(&self) -> &str {
        let path = self.access.path.as_str();
        path.strip_prefix("/dev/").unwrap_or(path)
    }
}

/// The chip selects of a controller: `cs-gpios`, and for a chip or an entry without one the native line.
fn selects(mut lines: Vec<Option<SelectAt>>, children: &[Child]) -> Vec<Select> {
    let of_children = children.iter().map(|child| usize::from(child.chip_select) + 1).max();
    let wanted = lines.len().max(of_children.unwrap_or(0)).max(usize::from(lines.is_empty()));
    lines.resize(wanted, None);
    (0..=u8::MAX)
        .zip(lines)
        .map(|(channel, line)| {
            let child = children.iter().find(|child| child.chip_select == channel);
            let active_high = child.is_some_and(|child| child.active_high);
            Select { at: line.unwrap_or(SelectAt::Native { channel }), active_high }
        })
        .collect()
}

/// The lines that a controller shares with others. Lines beyond the SoC are not compared: the names of their chips may
/// repeat.
fn shared_lines(controller: &Controller, all: &[Controller]) -> Vec<SharedLine> {
    let line = |at: &SelectAt| match at {
        SelectAt::Gpio { address, offset, .. } => Some((*address, *offset)),
        SelectAt::Native { .. } | SelectAt::Elsewhere { .. } => None,
    };
    let lines = |controller: &Controller| -> Vec<_> {
        let selects = controller.selects.iter().enumerate();
        selects.filter_map(|(number, select)| Some((number, line(&select.at)?))).collect()
    };
    let mut shared = Vec::new();
    for other in all.iter().filter(|other| other.device.name != controller.device.name) {
        for (chip_select, at) in lines(controller) {
            let same = lines(other).into_iter().filter(|(_, there)| *there == at);
            shared.extend(same.map(|(other_chip_select, _)| SharedLine {
                chip_select,
                other: other.device.name.clone(),
                other_chip_select,
                held_by: other.device.rival().map(str::to_owned),
            }));
        }
    }
    shared
}

/// The other devices in the pages of a device's registers.
fn neighbours(root: &Root, device: &PlatformDevice) -> Vec<String> {
    let page = crate::sys::page_size() as u64;
    let (first, last) = device.range();
    let begin = first - first % page;
    let len = u32::try_from(last - last % page + page - begin).unwrap_or(u32::MAX);
    let others = devices_in(root, begin, len).into_iter().map(|other| other.name);
    others.filter(|name| *name != device.name).collect()
}

/// The mappings of device nodes in all processes: the process, and the line of its `maps`. Of other users'
/// processes only root sees them.
fn mappings(root: &Root) -> Vec<(u32, String)> {
    let processes = root.names("/proc").into_iter().filter_map(|name| name.parse::<u32>().ok());
    let of_process = |process| {
        let maps = root.text(format!("/proc/{process}/maps")).unwrap_or_default();
        let devices = maps.lines().filter(|line| line.contains(" /dev/")).map(str::to_owned);
        devices.map(move |line| (process, line)).collect::<Vec<_>>()
    };
    processes.flat_map(of_process).collect()
}

/// The processes that have the range mapped, each once.
fn mapped_by(
    mappings: &[(u32, String)],
    (first, last): (u64, u64),
    node: Option<&str>,
) -> Vec<u32> {
    let maps = mappings.iter().filter(|(_, line)| maps_range(line, first, last, node));
    let mut processes: Vec<u32> = maps.map(|(process, _)| *process).collect();
    processes.dedup();
    processes
}

/// Whether a line of `/proc/PID/maps` maps the range of `/dev/mem`, or the node of the controller alone.
fn maps_range(line: &str, first: u64, last: u64, node: Option<&str>) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [range, _, offset, _, _, path] = words[..] else { return false };
    if node == Some(path) {
        return true;
    }
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let Some((begin, end)) = range.split_once('-') else { return false };
    let (Some(begin), Some(end), Some(offset)) = (hex(begin), hex(end), hex(offset)) else {
        return false;
    };
    let length = end.saturating_sub(begin);
    path == "/dev/mem" && offset <= last && first < offset.saturating_add(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_the_registers_are_known_by_their_offset() {
        let line = "ffff9000-ffffa000 rw-s 30820000 00:05 87 /dev/mem";
        assert!(maps_range(line, 0x3082_0000, 0x3082_ffff, None));
        assert!(!maps_range(line, 0x3083_0000, 0x3083_ffff, None));
        assert!(!maps_range("ffff9000-ffffa000 rw-p 00000000 00:00 0", 0, u64::MAX, None));
        let line = "ffff9000-ffffa000 rw-s 00000000 00:05 9 /dev/uio0";
        assert!(maps_range(line, 0x3082_0000, 0x3082_ffff, Some("/dev/uio0")));
        assert!(!maps_range(line, 0x3082_0000, 0x3082_ffff, None));
    }
}
