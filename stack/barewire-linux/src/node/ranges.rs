//! `reg` and `ranges` as addresses of the processor: pure functions of cells.
//!
//! Read first: Devicetree Specification, sections 2.3.5, 2.3.6 and 2.3.8; for buses with three address cells
//! "PCI Bus Binding to Open Firmware" 2.1, section 2.2.1.1.
//!
//! A bus's `ranges` maps its children's addresses to addresses of its parent. Followed from the root down, it
//! gives the list of windows through which the processor sees the bus.
//!
//! # Not supported
//! More than 64 address bits: such a bus has no windows, so nothing below it has an address.

/// How many cells an address and a size take on a bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cells {
    pub(crate) address: usize,
    pub(crate) size: usize,
}

/// The most windows of a bus; real ones have less than ten.
const WINDOWS_MAX: usize = 256;

/// A range of a bus's addresses that the processor sees.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Window {
    /// The address space of the bus, if it has several; the root's window has them all.
    space: Option<u32>,
    /// The first address on the bus, and as the processor sees it.
    bus: u64,
    cpu: u64,
    /// The last address's distance from the first.
    last: u64,
}

/// The windows through which the processor sees a bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View(Vec<Window>);

/// An address on a bus: its space and its number.
fn address(cells: &[u32]) -> Option<(u32, u64)> {
    let wide = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    match *cells {
        [low] => Some((0, low.into())),
        [high, low] => Some((0, wide(high, low))),
        // Of PCI's spaces 2 and 3 are memory, by 32 or 64 bits. Others keep the whole cell.
        [space, high, low] => {
            let memory = space >> 24 & 3 >= 2;
            Some((if memory { u32::MAX } else { space }, wide(high, low)))
        }
        _ => None,
    }
}

/// The complete entries of a property; each has as many cells as `parts` add up to. There are none if the first
/// part, an address, cannot be read.
fn entries<const N: usize>(cells: &[u32], parts: [usize; N]) -> impl Iterator<Item = [&[u32]; N]> {
    let readable = parts.iter().all(|&part| part <= 3) && parts[0] > 0;
    let width = if readable { parts.iter().sum() } else { usize::MAX };
    cells.chunks_exact(width).map(move |mut entry| {
        parts.map(|part| {
            let (cells, rest) = entry.split_at(part);
            entry = rest;
            cells
        })
    })
}

/// The last address's distance from the first, by the cells of a size. `None` if that is 0.
fn last_of(size: &[u32]) -> Option<u64> {
    address(size).filter(|_| size.len() < 3)?.1.checked_sub(1)
}

impl View {
    /// The root's: its addresses are the processor's.
    pub(crate) fn root() -> Self {
        Self(vec![Window { space: None, bus: 0, cpu: 0, last: u64::MAX }])
    }

    /// The view of a bus below this one, by its `ranges`. `own` are the cells of the lower bus, `parent` the cells of
    /// this one.
    pub(crate) fn below(&self, ranges: &[u32], own: Cells, parent: Cells) -> Self {
        if ranges.is_empty() {
            return self.clone();
        }
        let mut windows = Vec::new();
        for [child, to, size] in entries(ranges, [own.address, parent.address, own.size]) {
            let (Some((space, bus)), Some(to), Some(last)) =
                (address(child), address(to), last_of(size))
            else {
                continue;
            };
            let seen = self.parts(to, last).map(|(skip, cpu, last)| {
                let bus = bus.saturating_add(skip);
                Window { space: Some(space), bus, cpu, last }
            });
            windows.extend(seen);
            windows.truncate(WINDOWS_MAX);
        }
        Self(windows)
    }

    /// The register ranges of a node on this bus, in the order of its `reg`: the first and last byte of each as the processor sees
    /// them. A range whose first address the processor does not see is left out.
    pub(crate) fn reg(&self, reg: &[u32], cells: Cells) -> Vec<(u64, u64)> {
        let range = |[begin, size]: [&[u32]; 2]| {
            let mut parts = self.parts(address(begin)?, last_of(size)?);
            let (_, cpu, last) = parts.find(|(skip, ..)| *skip == 0)?;
            Some((cpu, cpu.saturating_add(last)))
        };
        entries(reg, [cells.address, cells.size]).filter_map(range).collect()
    }

    /// Whether the processor sees any of `first` to `last` on this bus.
    pub(crate) fn overlaps(&self, (first, last): (u64, u64)) -> bool {
        self.0.iter().any(|it| it.cpu <= last && first <= it.cpu.saturating_add(it.last))
    }

    /// The parts of a range of this bus that the processor sees: how far from its beginning each is, where the processor sees
    /// it, and its last address's distance from its first.
    fn parts(
        &self,
        (space, begin): (u32, u64),
        last: u64,
    ) -> impl Iterator<Item = (u64, u64, u64)> {
        let end = begin.saturating_add(last);
        let of = |window: &Window| window.bus.saturating_add(window.last);
        let windows = self.0.iter().filter(move |it| it.space.is_none_or(|own| own == space));
        let seen = windows.filter(move |it| it.bus <= end && begin <= of(it));
        seen.map(move |it| {
            let first = begin.max(it.bus);
            let cpu = it.cpu.saturating_add(first - it.bus);
            (first - begin, cpu, end.min(of(it)) - first)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ONE: Cells = Cells { address: 1, size: 1 };
    const TWO: Cells = Cells { address: 2, size: 2 };

    #[test]
    fn a_raspberry_pi_s_bus_is_seen_elsewhere() {
        let ranges = [0x7e00_0000, 0x3f00_0000, 0x100_0000, 0x4000_0000, 0x4000_0000, 0x1000];
        let soc = View::root().below(&ranges, ONE, ONE);
        let reg = |cells: &[u32]| soc.reg(cells, ONE);
        assert_eq!(reg(&[0x7e20_4000, 0x200]), [(0x3f20_4000, 0x3f20_41ff)]);
        assert_eq!(reg(&[0x4000_0000, 0x100]), [(0x4000_0000, 0x4000_00ff)]);
        assert_eq!(reg(&[0x7eff_f000, 0x2000]), [(0x3fff_f000, 0x3fff_ffff)], "cut to the window");
        assert_eq!(reg(&[0x2000_0000, 0x1000]), [], "not seen");
        let two = [0x7e20_0000, 0xb4, 0x2000_0000, 4, 0x7e00_3000, 0x1000, 0x7e00_3000];
        assert_eq!(reg(&two), [(0x3f20_0000, 0x3f20_00b3), (0x3f00_3000, 0x3f00_3fff)]);
        assert!(soc.overlaps((0x4000_0fff, 0x4000_0fff)));
        assert!(!soc.overlaps((0x4000_1000, u64::MAX)));
        assert!(!soc.overlaps((0, 0x3eff_ffff)));
    }

    #[test]
    fn empty_ranges_are_the_parent_s_and_cells_are_the_bus_s_own() {
        // i.MX 8M: 64-bit cells at the root, 32-bit ones below; the inner bus of the blocks changes
        // nothing.
        let ranges = [0, 0, 0, 0x3e00_0000, 0x2800_0000, 0, 0x2800_0000, 0x1000_0000];
        let soc = View::root().below(&ranges, ONE, TWO);
        let aips = soc.below(&[], ONE, ONE);
        assert_eq!(aips, soc);
        assert_eq!(aips.reg(&[0x3082_0000, 0x1_0000], ONE), [(0x3082_0000, 0x3082_ffff)]);
        assert_eq!(
            View::root().reg(&[0, 0x4000_0000, 1, 0], TWO),
            [(0x4000_0000, 0x1_3fff_ffff)],
            "memory"
        );
    }

    #[test]
    fn rp1_is_behind_pci() {
        let axi = [0, 0, 0, 0, 0x10, 0, 0x1c, 0, 0x1c, 0, 4, 0];
        let axi = View::root().below(&axi, TWO, TWO);
        let three = Cells { address: 3, size: 2 };
        let pcie = [0x200_0000, 0, 0, 0x1f, 0, 0, 0xffff_fffc, 0x4300_0000, 4, 0, 0x1c, 0, 3, 0];
        let pcie = axi.below(&pcie, three, TWO);
        assert_eq!(pcie.reg(&[0x1_0000, 0, 0, 0, 0x1000], three), [], "configuration space");
        let rp1 = [0xc0, 0x4000_0000, 0x200_0000, 0, 0, 0, 0x40_0000];
        let rp1 = pcie.below(&rp1, TWO, three);
        let spi0 = rp1.reg(&[0xc0, 0x4005_0000, 0, 0x130], TWO);
        assert_eq!(spi0, [(0x1f_0005_0000, 0x1f_0005_012f)]);
    }

    #[test]
    fn a_range_over_several_windows_is_seen_in_parts() {
        let two = View::root().below(&[0, 0x1000, 0x10, 0x10, 0x5000, 0x10], ONE, ONE);
        let inner = two.below(&[0x100, 0x8, 0x10], ONE, ONE);
        assert_eq!(inner.reg(&[0x100, 4, 0x108, 4], ONE), [(0x1008, 0x100b), (0x5000, 0x5003)]);
    }

    #[test]
    fn what_has_no_size_or_too_many_cells_has_no_address() {
        let root = View::root();
        for (address, size) in [(1, 0), (0, 1), (0, 0), (4, 1), (1, 3), (usize::MAX, usize::MAX)] {
            assert_eq!(root.reg(&[1; 16], Cells { address, size }), [], "{address}, {size}");
        }
        assert_eq!(root.reg(&[1, 0], ONE), [], "nothing long");
        assert!(!root.below(&[1, 2], ONE, ONE).overlaps((0, u64::MAX)), "cut off");
    }

    fn cells() -> impl Strategy<Value = Cells> {
        (0..5_usize, 0..4_usize).prop_map(|(address, size)| Cells { address, size })
    }

    proptest! {
        /// For any tree, nothing panics, and every address lies in a window of the bus above.
        #[test]
        fn any_cells_stay_within_the_windows(
            outer in prop::collection::vec(any::<u32>(), 0..20),
            inner in prop::collection::vec(prop_oneof![Just(0), 0..4_u32, any::<u32>()], 0..20),
            reg in prop::collection::vec(prop_oneof![Just(0), 0..4_u32, any::<u32>()], 0..20),
            [root, bus, own] in [cells(), cells(), cells()],
        ) {
            let bus_view = View::root().below(&outer, bus, root);
            let view = bus_view.below(&inner, own, bus);
            for range in view.reg(&reg, own) {
                prop_assert!(range.0 <= range.1);
                prop_assert!(view.overlaps(range) && bus_view.overlaps(range));
            }
        }
    }
}
