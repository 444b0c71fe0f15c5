//! The kernel's information about a controller's clocks: names, counts and rates.
//!
//! [`clock`](super::clock) describes this evidence. The debugfs name of a clock is found by the SoC
//! and the controller's address (i.MX), by the block (a Raspberry Pi's SPI0), or by the
//! controller's device-tree node: `clocks` names a provider by phandle, and cells.
//!
//! | provider | clock |
//! |---|---|
//! | `fixed-clock` | never off; its rate is in the device tree |
//! | a provider without cells | by `clock-output-names`, else by the node's own name |
//! | Atmel's PMC, two cells: 2 and the peripheral's number | by a table |
//!
//! The names are those of directories in debugfs, `/sys/kernel/debug/clk`, which only root may
//! read.

use super::Block;
use super::clock_state::{Family, KernelClock, Rate};
use super::device::{Kind, devices_at};
use crate::node;
use crate::root::{Root, number};

const DEBUGFS: &str = "/sys/kernel/debug/clk";

/// Names, in `clock-names`, of the clock that a block divides.
const FUNCTIONAL: [&str; 3] = ["per", "sspclk", "SSPCLK"];

/// The SPI controllers' peripheral numbers on Atmel's SoCs: SPI0's, then SPI1's.
const ATMEL_SPI: [(&str, &[u32]); 7] = [
    ("atmel,at91sam9260-pmc", &[12, 13]),
    ("atmel,at91sam9g45-pmc", &[14, 15]),
    ("atmel,at91sam9n12-pmc", &[13, 14]),
    ("atmel,at91sam9rl-pmc", &[13]),
    ("atmel,at91sam9x5-pmc", &[13, 14]),
    ("atmel,sama5d2-pmc", &[33, 34]),
    ("atmel,sama5d3-pmc", &[24, 25]),
];
/// The first cell of a PMC's peripheral clock.
const PMC_TYPE_PERIPHERAL: u32 = 2;

/// One of a controller's clocks, as far as it is known.
#[derive(Clone, Debug)]
pub(super) struct TreeClock {
    name: String,
    fixed: bool,
    enable_count: Option<u64>,
    hz: Option<u64>,
    /// Whether the block divides this clock.
    functional: bool,
}

impl TreeClock {
    /// The clock with that name in debugfs.
    fn in_debugfs(root: &Root, name: &str) -> Self {
        let file = |file: &str| {
            let text = root.text(format!("{DEBUGFS}/{name}/{file}")).ok()?;
            number(&text)
        };
        Self {
            name: name.to_owned(),
            fixed: false,
            enable_count: file("clk_enable_count"),
            hz: file("clk_rate"),
            functional: true,
        }
    }
}

/// The clocks of the `block` at `address`. Empty if at least one of them is unknown.
pub(super) fn of(root: &Root, block: Block, address: u64) -> Vec<TreeClock> {
    let family = Family::detect(root);
    if let Some((family, ecspi)) = family.and_then(|it| Some((it, it.ecspi(address)?))) {
        let name = match family {
            Family::Imx7 | Family::Imx8M => format!("ecspi{ecspi}_root_clk"),
            Family::Imx6Q | Family::Imx6Sx | Family::Imx6 => format!("ecspi{ecspi}"),
        };
        return vec![TreeClock::in_debugfs(root, &name)];
    }
    if let Some(name) = block.facts().kernel_clock {
        return vec![TreeClock::in_debugfs(root, name)];
    }
    let mut devices = devices_at(root, address).into_iter();
    let device = devices.find(|device| device.is(Kind::Spi));
    device
        .map(|device| of_node(root, &format!("{}/of_node", device.directory())))
        .unwrap_or_default()
}

/// The clocks that a node names. Empty if one of them cannot be identified.
fn of_node(root: &Root, path: &str) -> Vec<TreeClock> {
    let names = node::strings(root, &format!("{path}/clock-names"));
    let functional = names.iter().position(|name| FUNCTIONAL.contains(&name.as_str()));
    let clocks = node::clocks(root, path).unwrap_or_default().into_iter().enumerate();
    let found = clocks.map(|(index, clock)| {
        let functional = index == functional.unwrap_or(0);
        Some(TreeClock { functional, ..of_clock(root, &clock)? })
    });
    found.collect::<Option<_>>().unwrap_or_default()
}

fn of_clock(root: &Root, clock: &node::Clock) -> Option<TreeClock> {
    let node::Clock { provider, specifier, .. } = clock;
    match *specifier.as_slice() {
        [] => {
            let own = provider.rsplit('/').next()?;
            let own = own.split_once('@').map_or(own, |(name, _)| name).to_owned();
            let outputs = node::strings(root, &format!("{provider}/clock-output-names"));
            let name = outputs.into_iter().next().unwrap_or(own);
            if !clock.is_fixed(root) {
                return Some(TreeClock::in_debugfs(root, &name));
            }
            let hz = node::cells(root, &format!("{provider}/clock-frequency"));
            let hz = hz.first().map(|&hz| hz.into());
            Some(TreeClock { name, fixed: true, enable_count: None, hz, functional: true })
        }
        [PMC_TYPE_PERIPHERAL, id] => {
            let compatible = node::strings(root, &format!("{provider}/compatible"));
            let (_, spi) =
                ATMEL_SPI.iter().find(|(pmc, _)| compatible.iter().any(|is| is == pmc))?;
            let index = spi.iter().position(|&number| number == id)?;
            Some(TreeClock::in_debugfs(root, &format!("spi{index}_clk")))
        }
        _ => None,
    }
}

/// The rate of the clock that the block divides.
pub(super) fn rate(clocks: &[TreeClock]) -> Option<Rate> {
    let clock = clocks.iter().find(|clock| clock.functional)?;
    // The kernel reports 0 for an unknown rate.
    let hz = clock.hz.filter(|&hz| hz > 0)?;
    Some(Rate { name: clock.name.clone(), hz })
}

/// Whether none of them can be off.
pub(super) fn are_fixed(clocks: &[TreeClock]) -> bool {
    !clocks.is_empty() && clocks.iter().all(|clock| clock.fixed)
}

/// A clock that is off.
pub(super) fn off(clocks: &[TreeClock]) -> Option<KernelClock> {
    let off = clocks.iter().find(|clock| clock.enable_count == Some(0))?;
    Some(KernelClock { name: off.name.clone(), enable_count: 0 })
}

/// The clock that the block divides, if all are on.
pub(super) fn on(clocks: &[TreeClock]) -> Option<KernelClock> {
    if clocks.iter().any(|clock| !clock.fixed && clock.enable_count.is_none_or(|count| count == 0))
    {
        return None;
    }
    let clock = clocks.iter().find(|clock| clock.functional)?;
    let enable_count = clock.enable_count.unwrap_or(1);
    Some(KernelClock { name: clock.name.clone(), enable_count })
}
