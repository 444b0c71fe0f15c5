//! Whether a controller's clock runs, and at what rate, as far as that can be determined.
//!
//! A clock for which there is no evidence counts as off, and opening the controller fails: an
//! access to a block whose clock is gated hangs the machine, so a warning would come too late.
//!
//! Read first: the reference manuals' chapter *Clock Controller Module*, registers CCM_CCGRn and
//! CCM_TARGET_ROOTn; the kernel's `Documentation/driver-api/clk.rst`, on debugfs.
//!
//! There are four kinds of evidence, examined in this order. If any of them says *off*, the clock
//! is off.
//!
//! 1. **The block, or the SoC.** A Raspberry Pi's core clock is never off, and Calxeda's Highbank
//!    gates no peripheral's clock.
//! 2. **The gate's register** of i.MX 6, 7 and 8M, and on 7 and 8M the root slice above it. The
//!    device tree's first `compatible` strings name the SoC. The SoC and the controller's address
//!    determine the field of a clock gate register, and the field's two bits say whether the gate
//!    is open. [`Gate::decode`] and [`RootSlice::decode`] are pure functions of numbers; reading
//!    the registers needs `/dev/mem`.
//! 3. **The kernel's count** of a clock's users, `clk_enable_count` in debugfs, readable by root
//!    only. That directory also has the clock's rate. The SoC, or the node's `clocks`, says which
//!    clocks are the controller's. A `fixed-clock` has its rate in the device tree and is never
//!    off.
//! 4. **The UIO device's parent**, for other users: since Linux 6.3 a `simple-pm-bus` with `clocks`
//!    keeps them on while the device is open. Which clocks the controller needs is what the nodes at its address say, such as
//!    the one of the kernel's driver that an overlay has disabled. Every one of them that is not a `fixed-clock` must be
//!    the bus's, by phandle and specifier; a bus that keeps others says that the clock is off.
//!
//! # Sources
//! Facts only; those of gates and root slices are in `map/clock_state.rs`.
//!
//! * Names of clocks: Linux's `drivers/clk/imx`; `clk-bcm2835.c` (`vpu`, index 20, critical); `drivers/clk/at91`
//!   (tables `*_periphck`).
//! * Highbank: `highbank.dts` and `ecx-common.dtsi`, where every PrimeCell has the `fixed-clock`
//!   `pclk`.
//! * Liu Ying, *drivers: bus: simple-pm-bus: Use clocks*, linux-kernel, 26 December 2022,
//!   <https://lore.kernel.org/r/20221226031417.1056745-1-victor.liu@nxp.com> (for Linux 6.3).
//!
//! # Not supported
//! Power domains: the clock of a block without power is irrelevant. Gate registers of i.MX 93 and
//! 8QuadMax, whose clocks are controlled by other blocks, and of other SoCs, including SAMA5D3's
//! PMC: there the kernel's count is the only evidence.

use barewire::reg::Registers;

pub use super::clock_state::{ClockState, Family, Gate, Rate, RootSlice};
use super::kernel_clock;
use super::uio::maps;
use super::{Block, DevMem};
use crate::node;
use crate::release;
use crate::root::Root;

/// The known facts about a controller's clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Whether they run.
    pub state: ClockState,
    /// The rate of the clock that the block divides, if known.
    pub rate: Option<Rate>,
}

/// Reads the gate, and the root slice, of the controller at `address`, if possible: on a known SoC,
/// with `/dev/mem`.
#[must_use]
pub fn check(root: &Root, address: u64, memory: Option<&DevMem>) -> ClockState {
    let family = Family::detect(root);
    let gate = family.and_then(|family| family.gate(address));
    let Some((gate, memory)) = gate.zip(memory) else {
        return ClockState::Unknown;
    };
    let read = |register| memory.map_shared(register, 4).map(|mut mapped| mapped.read(0));
    let state = read(gate.register).map_or(ClockState::Unknown, |value| gate.decode(value));
    match family.and_then(|family| family.root_slice(address)) {
        Some(slice) if !state.is_off() => match read(slice.register) {
            Ok(value) if slice.decode(value) => state,
            Ok(_) => ClockState::RootOff(slice),
            Err(_) => ClockState::Unknown,
        },
        _ => state,
    }
}

/// Examines all evidence about the clocks of the `block` at `address`. `uio` is the UIO device
/// through which it was opened, as `uio0`.
#[must_use]
pub fn examine(
    root: &Root,
    block: Block,
    address: u64,
    memory: Option<&DevMem>,
    uio: Option<&str>,
) -> Clock {
    let kernel = kernel_clock::of(root, block, address);
    let rate = kernel_clock::rate(&kernel);
    if block.facts().always_clocked || kernel_clock::are_fixed(&kernel) || is_ungated(root) {
        return Clock { state: ClockState::Always, rate };
    }
    let register = check(root, address, memory);
    let state = if register.is_off() {
        register
    } else if let Some(off) = kernel_clock::off(&kernel) {
        ClockState::Disabled(off)
    } else if register != ClockState::Unknown {
        register
    } else if let Some(on) = kernel_clock::on(&kernel) {
        ClockState::Enabled(on)
    } else {
        match uio.and_then(|uio| Some((uio, keeps_own(root, uio)?))) {
            Some((uio, true)) if is_awake(root, uio) => ClockState::Held,
            Some((_, false)) => ClockState::OtherHeld,
            _ => ClockState::Unknown,
        }
    };
    Clock { state, rate }
}

/// SoCs that never gate a controller's clock. On BCM2712, RP1's controllers run by its system
/// clock.
const UNGATED: [&str; 3] = ["calxeda,highbank", "calxeda,ecx-2000", "brcm,bcm2712"];

fn is_ungated(root: &Root) -> bool {
    let compatible = root.text("/proc/device-tree/compatible").unwrap_or_default();
    compatible.split('\0').any(|name| UNGATED.contains(&name))
}

/// Whether the parent of UIO device `uio` is in use now.
fn is_awake(root: &Root, uio: &str) -> bool {
    let status = format!("/sys/class/uio/{uio}/device/../power/runtime_status");
    root.text(status).is_ok_and(|is| is == "active")
}

/// Whether the parent of UIO device `uio`, as `uio0`, keeps the clocks of the device's first block on whenever the device is open: a
/// `simple-pm-bus` with these `clocks`, on Linux 6.3 or later.
#[must_use]
pub fn holds_while_open(root: &Root, uio: &str) -> bool {
    keeps_own(root, uio) == Some(true)
}

/// Whether the clocks that the parent of UIO device `uio` keeps on are those that the block needs. `None` if it keeps none, or if
/// it is unknown which the block needs.
fn keeps_own(root: &Root, uio: &str) -> Option<bool> {
    let bus = format!("/sys/class/uio/{uio}/device/../of_node");
    let is_bus = node::strings(root, &format!("{bus}/compatible")).iter().any(|it| it == BUS);
    let kept = node::clocks(root, &bus).filter(|kept| is_bus && !kept.is_empty())?;
    if release::version(root) < (6, 3) {
        return None;
    }
    let address = maps(root, uio).ok()?.first()?.registers_at();
    let nodes = node::claims(root, address, 1)?.into_iter().filter(|claim| claim.first == address);
    let mut needed = Vec::new();
    for claim in nodes {
        needed.extend(node::clocks(root, &claim.node)?);
    }
    needed.retain(|clock| !clock.is_fixed(root));
    (!needed.is_empty()).then(|| needed.iter().all(|clock| kept.contains(clock)))
}

/// The bus that keeps clocks.
const BUS: &str = "simple-pm-bus";
