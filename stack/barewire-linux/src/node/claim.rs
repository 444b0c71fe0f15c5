//! The nodes of the device tree that claim an address of the processor.
//!
//! # How it works
//! 1. The tree is walked from its root, with what the processor sees of each bus ([`View`]).
//! 2. A node whose `reg` overlaps the range claims it, whatever its `status`.
//! 3. A node with `ranges` is a bus; the walk goes on below it if the processor sees any of the range there. Below a node
//!    without `ranges`, addresses are not the processor's (section 2.3.8).
//!
//! So of most nodes two properties are read, and of most buses none of the children.
//!
//! # Not supported
//! Buses deeper than [`DEPTH_MAX`]: what is below is not found.

use super::ranges::{Cells, View};
use super::{TREES, is_available, is_target, numbers, strings};
use crate::root::Root;

/// The deepest bus that is looked into. Real trees have four.
const DEPTH_MAX: usize = 16;

/// A node that claims a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Its path in the tree, as `/soc/spi@7e204000`.
    pub(crate) path: String,
    /// Its directory.
    pub(crate) node: String,
    /// Where its first register is.
    pub(crate) first: u64,
    pub(crate) compatible: Vec<String>,
    /// Whether it and the buses above it are enabled.
    pub(crate) enabled: bool,
    /// Whether it is a target: another host drives its bus.
    pub(crate) target: bool,
}

/// The files of a tree.
trait Files {
    /// A property's cells; `None` if the node does not have it.
    fn cells(&self, path: &str) -> Option<Vec<u32>>;
    /// The names of the nodes below a node.
    fn children(&self, path: &str) -> Vec<String>;
}

impl Files for Root {
    fn cells(&self, path: &str) -> Option<Vec<u32>> {
        self.bytes(path).ok().map(|bytes| numbers(&bytes))
    }

    fn children(&self, path: &str) -> Vec<String> {
        self.directories(path)
    }
}

/// The nodes that claim any of `len` bytes at `address`, the deepest last. `None` if the tree describes no device's
/// registers, as on a machine with ACPI.
pub(crate) fn claims(root: &Root, address: u64, len: u32) -> Option<Vec<Claim>> {
    let wanted = (address, address.saturating_add(u64::from(len).saturating_sub(1)));
    let (tree, found) = TREES.iter().find_map(|tree| Some((tree, found(root, tree, wanted)?)))?;
    let claim = |ClaimedNode { path: node, first }: ClaimedNode| {
        let path = node[tree.len()..].to_owned();
        let above = path.match_indices('/').map(|(end, _)| format!("{tree}{}", &path[..end]));
        Claim {
            first,
            compatible: strings(root, &format!("{node}/compatible")),
            enabled: above.chain([node.clone()]).all(|node| is_available(root, &node)),
            target: is_target(root, &node),
            node,
            path,
        }
    };
    Some(found.into_iter().map(claim).collect())
}

struct ClaimedNode {
    path: String,
    first: u64,
}

struct Bus {
    path: String,
    view: View,
    cells: Cells,
}

impl Bus {
    /// The bus at `path`; the counts have defaults (section 2.3.5).
    fn at(files: &impl Files, path: String, view: View) -> Self {
        let count = |name, default| {
            let cells = files.cells(&format!("{path}/{name}")).unwrap_or_default();
            cells.first().map_or(default, |&count| count as usize)
        };
        let cells = Cells { address: count("#address-cells", 2), size: count("#size-cells", 1) };
        Self { path, view, cells }
    }
}

/// Walks the tree. `None` if nothing in it has an address.
fn found(files: &impl Files, tree: &str, wanted: (u64, u64)) -> Option<Vec<ClaimedNode>> {
    let mut described = false;
    let mut found = Vec::new();
    let mut level = vec![Bus::at(files, tree.to_owned(), View::root())];
    for _ in 0..DEPTH_MAX {
        let mut below = Vec::new();
        for bus in &level {
            for name in files.children(&bus.path) {
                let path = format!("{}/{name}", bus.path);
                let reg = files.cells(&format!("{path}/reg")).unwrap_or_default();
                let reg = bus.view.reg(&reg, bus.cells);
                let ranges = files.cells(&format!("{path}/ranges"));
                described |= !reg.is_empty() || ranges.is_some();
                if reg.iter().any(|&(first, last)| first <= wanted.1 && wanted.0 <= last) {
                    found.push(ClaimedNode { path: path.clone(), first: reg[0].0 });
                }
                let Some(ranges) = ranges else { continue };
                let mut inner = Bus::at(files, path, View::root());
                inner.view = bus.view.below(&ranges, inner.cells, bus.cells);
                if inner.view.overlaps(wanted) {
                    below.push(inner);
                }
            }
        }
        level = below;
    }
    described.then_some(found)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeMap;

    use super::*;

    /// A tree in memory that counts what is read of it.
    #[derive(Default)]
    struct Fake {
        properties: BTreeMap<String, Vec<u32>>,
        reads: Cell<usize>,
    }

    impl Fake {
        fn of(properties: &[(&str, &[u32])]) -> Self {
            let owned = |&(path, cells): &(&str, &[u32])| (path.to_owned(), cells.to_vec());
            Self { properties: properties.iter().map(owned).collect(), ..Self::default() }
        }

        fn at(&self, first: u64, len: u64) -> Option<Vec<String>> {
            let found = found(self, "", (first, first + len - 1))?;
            Some(found.into_iter().map(|it| it.path).collect())
        }
    }

    impl Files for Fake {
        fn cells(&self, path: &str) -> Option<Vec<u32>> {
            self.reads.set(self.reads.get() + 1);
            self.properties.get(path).cloned()
        }

        fn children(&self, path: &str) -> Vec<String> {
            self.reads.set(self.reads.get() + 1);
            let below = format!("{path}/");
            let names = self.properties.keys().filter_map(|key| key.strip_prefix(&below));
            let nodes = names.filter_map(|rest| Some(rest.split_once('/')?.0.to_owned()));
            let mut nodes: Vec<_> = nodes.collect();
            nodes.dedup();
            nodes
        }
    }

    const ONE: &[u32] = &[1];

    /// The shape of a Raspberry Pi 3's tree.
    const PI3: &[(&str, &[u32])] = &[
        ("/#address-cells", ONE),
        ("/#size-cells", ONE),
        ("/memory@0/reg", &[0, 0x3c00_0000]),
        ("/cpus/#size-cells", &[0]),
        ("/cpus/cpu@0/reg", &[0x3f20_4000]),
        ("/soc/#address-cells", ONE),
        ("/soc/#size-cells", ONE),
        ("/soc/ranges", &[0x7e00_0000, 0x3f00_0000, 0x100_0000, 0x4000_0000, 0x4000_0000, 0x1000]),
        ("/soc/gpio@7e200000/reg", &[0x7e20_0000, 0xb4]),
        ("/soc/i2s@7e203000/reg", &[0x7e20_3000, 0x24]),
        ("/soc/spi@7e204000/reg", &[0x7e20_4000, 0x200]),
        ("/soc/spi@7e204000/flash@0/reg", &[0]),
        ("/soc/local_intc@40000000/reg", &[0x4000_0000, 0x100]),
    ];

    #[test]
    fn an_address_is_of_the_node_whose_registers_are_there() {
        let tree = Fake::of(PI3);
        for (address, node) in [
            (0x3f20_4000, Some("/soc/spi@7e204000")),
            (0x3f20_41fc, Some("/soc/spi@7e204000")),
            (0x3f20_3000, Some("/soc/i2s@7e203000")),
            (0x4000_0040, Some("/soc/local_intc@40000000")),
            (0x0010_0000, Some("/memory@0")),
            (0x3f20_4200, None),
            (0x3d00_0000, None),
            (0x7e20_4000, None),
            (0x5000_0000, None),
        ] {
            let found = tree.at(address, 4).expect("described");
            assert_eq!(found, Vec::from_iter(node.map(str::to_owned)), "{address:#x}");
        }
    }

    #[test]
    fn a_tree_without_addresses_describes_nothing() {
        assert_eq!(Fake::default().at(0, 4), None, "no tree");
        let acpi = Fake::of(&[("/chosen/linux,initrd-start", &[0, 1]), ("/#size-cells", &[2])]);
        assert_eq!(acpi.at(0x1000, 4), None);
        let cpus = [("/cpus/#size-cells", [0_u32].as_slice()), ("/cpus/cpu@0/reg", &[0])];
        assert_eq!(Fake::of(&cpus).at(0, 4), None, "a processor's number is no address");
    }

    #[test]
    fn below_a_node_without_ranges_is_no_address_of_the_processor() {
        let cells: [(&str, &[u32]); 5] = [
            ("/#address-cells", ONE),
            ("/i2c@1000/reg", &[0x1000, 0x100]),
            ("/i2c@1000/#address-cells", ONE),
            ("/i2c@1000/#size-cells", ONE),
            ("/i2c@1000/eeprom@50/reg", &[0x50, 4]),
        ];
        assert_eq!(Fake::of(&cells).at(0x50, 4), Some(vec![]));
    }

    #[test]
    fn the_deepest_node_is_last_and_a_bottomless_tree_ends() {
        let mut tree = Fake::of(&[("/#address-cells", ONE)]);
        let mut path = String::new();
        for _ in 0..200 {
            path += "/bus";
            tree.properties.insert(format!("{path}/#address-cells"), ONE.to_vec());
            tree.properties.insert(format!("{path}/ranges"), vec![]);
            tree.properties.insert(format!("{path}/reg"), vec![0x1000, 0x1000]);
        }
        let found = tree.at(0x1000, 4).expect("described");
        assert_eq!(found.len(), DEPTH_MAX);
        assert!(found.is_sorted_by_key(String::len), "{found:?}");
    }

    /// 300 devices on buses of which one is the address's.
    #[test]
    fn two_properties_of_a_node_are_read_and_none_on_another_s_bus() {
        let mut tree = Fake::of(&[("/#address-cells", ONE)]);
        for bus in 0..4_u32 {
            let path = format!("/bus@{bus}");
            tree.properties.insert(format!("{path}/#address-cells"), ONE.to_vec());
            tree.properties.insert(format!("{path}/ranges"), vec![0, bus << 28, 1 << 28]);
            for device in 0..75_u32 {
                let reg = vec![device << 12, 0x1000];
                tree.properties.insert(format!("{path}/device@{device:x}/reg"), reg);
            }
        }
        assert_eq!(tree.at(0x2000_3000, 4), Some(vec!["/bus@2/device@3".into()]));
        // The root 3, each bus 4, the children of one bus and two of each.
        assert_eq!(tree.reads.get(), 3 + 4 * 4 + 1 + 2 * 75);
    }
}
