//! Nodes of the device tree: their numbers and strings, the node of a phandle, the nodes at an address.
//!
//! Read first: Devicetree Specification, sections 2.2.4 and 2.3 (`reg`, `#address-cells`, `phandle`).
//!
//! A property is a file of big-endian 32-bit cells, in `/proc/device-tree` and in the directory to
//! which a device's link `of_node` points.

mod claim;
mod ranges;

pub(crate) use claim::{Claim, claims};

use crate::root::Root;

/// The root of the tree. A container may hide the first, which is a link to the other.
const TREES: [&str; 2] = ["/proc/device-tree", "/sys/firmware/devicetree/base"];

/// The cells of a property; empty if it does not exist.
pub(crate) fn cells(root: &Root, path: &str) -> Vec<u32> {
    numbers(&root.bytes(path).unwrap_or_default())
}

/// Bytes as cells, without a last one that is cut off.
fn numbers(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks_exact(4)
        .map(|cell| u32::from_be_bytes([cell[0], cell[1], cell[2], cell[3]]))
        .collect()
}

/// The strings of a property.
pub(crate) fn strings(root: &Root, path: &str) -> Vec<String> {
    let bytes = root.bytes(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.split('\0').filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

/// Whether a node is enabled: it has no `status`, or an okay one.
pub(crate) fn is_available(root: &Root, path: &str) -> bool {
    let status = strings(root, &format!("{path}/status"));
    status.first().is_none_or(|status| status == "okay" || status == "ok")
}

/// Whether a controller's node is that of a target (`spi-slave`): another host drives its bus.
pub(crate) fn is_target(root: &Root, path: &str) -> bool {
    root.path(format!("{path}/spi-slave")).exists()
}

/// The number of cells in property `name` of a node, else `default`.
fn cell_count(root: &Root, path: &str, default: usize) -> usize {
    cells(root, path).first().map_or(default, |&count| count as usize)
}

/// Cells as one number.
fn number(cells: &[u32]) -> u64 {
    cells.iter().fold(0, |high, &cell| high << 32 | u64::from(cell))
}

/// The address of the node's first register as its own bus numbers it, which is the manual's number
/// where that bus is the one of the manual: 0x7e204000 on a Raspberry Pi.
pub(crate) fn bus_address(root: &Root, path: &str) -> Option<u64> {
    let of_address = cell_count(root, &format!("{path}/../#address-cells"), 2);
    let reg = cells(root, &format!("{path}/reg"));
    (1..=2).contains(&of_address).then(|| reg.get(..of_address).map(number)).flatten()
}

/// The register ranges of the node at `path`: first and last byte of each. The first begins at
/// `address`, the processor's view of an address that the node's bus may number differently.
pub(crate) fn reg(root: &Root, path: &str, address: u64) -> Vec<(u64, u64)> {
    let of_address = cell_count(root, &format!("{path}/../#address-cells"), 2);
    let of_size = cell_count(root, &format!("{path}/../#size-cells"), 1);
    if !(1..=2).contains(&of_address) || !(1..=2).contains(&of_size) {
        return Vec::new();
    }
    let reg = cells(root, &format!("{path}/reg"));
    let entries: Vec<_> = reg
        .chunks_exact(of_address + of_size)
        .map(|entry| (number(&entry[..of_address]), number(&entry[of_address..])))
        .collect();
    let Some(&(begin, _)) = entries.first() else { return Vec::new() };
    let range = |&(at, size): &(u64, u64)| {
        let first = address.checked_add(at.checked_sub(begin)?)?;
        Some((first, first.checked_add(size.checked_sub(1)?)?))
    };
    entries.iter().filter_map(range).collect()
}

/// A clock that a node names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    phandle: u32,
    /// The cells behind the phandle.
    pub(crate) specifier: Vec<u32>,
    /// The path of the node with the phandle.
    pub(crate) provider: String,
}

impl Clock {
    /// Whether it is a `fixed-clock`, which is never off.
    pub(crate) fn is_fixed(&self, root: &Root) -> bool {
        strings(root, &format!("{}/compatible", self.provider)).iter().any(|it| it == "fixed-clock")
    }
}

/// A node's `clocks`; none without the property. `None` if one of them cannot be followed.
pub(crate) fn clocks(root: &Root, path: &str) -> Option<Vec<Clock>> {
    let cells = cells(root, &format!("{path}/clocks"));
    let mut clocks: Vec<Clock> = Vec::new();
    let mut rest = cells.as_slice();
    while let [phandle, after @ ..] = rest {
        // Most clocks of a node are one provider's, and to find it takes a walk through the tree.
        let known = clocks.iter().find(|clock| clock.phandle == *phandle);
        let known = known.map(|clock| clock.provider.clone());
        let provider = known.or_else(|| of_phandle(root, *phandle))?;
        let count = cell_count(root, &format!("{provider}/#clock-cells"), 0);
        let (specifier, after) = after.split_at_checked(count)?;
        clocks.push(Clock { phandle: *phandle, specifier: specifier.to_vec(), provider });
        rest = after;
    }
    Some(clocks)
}

/// The path of the node with that `phandle`.
pub(crate) fn of_phandle(root: &Root, phandle: u32) -> Option<String> {
    let mut paths: Vec<String> = TREES.iter().rev().map(|&tree| tree.to_owned()).collect();
    while let Some(path) = paths.pop() {
        if cells(root, &format!("{path}/phandle")).first() == Some(&phandle) {
            return Some(path);
        }
        let below = root.directories(&path).into_iter();
        paths.extend(below.map(|name| format!("{path}/{name}")));
    }
    None
}
