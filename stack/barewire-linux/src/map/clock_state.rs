//! The place of a controller's clock gate, and the meaning of its value.
//!
//! # Sources
//! Facts only, from Linux's clock drivers (`drivers/clk/imx`) and device trees, and from public
//! headers that number the gates; not verified on silicon.
//!
//! * i.MX 6: CCM at 0x020C4000, CCGR1 at 0x6C; CG0 to CG3 are ECSPI1 to ECSPI4, CG4 is ECSPI5 on
//!   6Dual/6Quad and 6SoloX (I2C4 on 6Solo/6DualLite). `clk-imx6q.c`, `clk-imx6sx.c`,
//!   `clk-imx6sl.c`, `clk-imx6sll.c`, `clk-imx6ul.c`: gates at `base + 0x6c`, shifts 0, 2, 4, 6, 8.
//!   ECSPI5 at 0x02018000: `imx6q.dtsi`; at 0x0228C000: headers with `MX6SX_ECSPI5_BASE`.
//! * i.MX 7: CCM at 0x30380000, CCGRn at 0x4000 + 16 n; ECSPI1 to ECSPI4 are n = 120 to 123
//!   (headers with `IMX7_CCM_CCGR_ECSPI1`). `clk-imx7d.c`: ECSPI1's gate at 0x4780. `imx7s.dtsi`.
//! * i.MX 8M (Mini, Nano, Plus, Quad): CCGRn at 0x30384000 + 16 n; ECSPI1 to ECSPI3 are n = 7, 8,
//!   9 (headers with `IMX_CCM_CCGR_ECSPI1`). `clk-imx8mm.c`, `clk-imx8mn.c`, `clk-imx8mp.c`,
//!   `clk-imx8mq.c`: gates at 0x4070, 0x4080, 0x4090.
//!
//! * Root slices, enable bit 28: i.MX 7 at 0x3038B300, B380, B400, B480 (`ecspi1_cg` to `ecspi4_cg` of
//!   `clk-imx7d.c`); i.MX 8M at 0x3038B280, B300, C180 (`clk-imx8mp.c`, and `ecspi1_cg` to `ecspi3_cg`
//!   of earlier versions of `clk-imx8mm.c` and `clk-imx8mq.c`).

use std::fmt;

use crate::root::Root;

/// A family of SoCs with known clock gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// i.MX 6Dual, 6Quad and their Plus.
    Imx6Q,
    /// i.MX 6SoloX.
    Imx6Sx,
    /// The other i.MX 6, with four ECSPI.
    Imx6,
    /// i.MX 7Solo and 7Dual.
    Imx7,
    /// i.MX 8M Mini, Nano, Plus and Quad.
    Imx8M,
}

impl Family {
    /// The family of this machine, from its device tree.
    #[must_use]
    pub fn detect(root: &Root) -> Option<Self> {
        let compatible = root.text("/proc/device-tree/compatible").ok()?;
        Self::of_compatible(&compatible)
    }

    /// The family of a root node with this `compatible` (zero-terminated strings).
    #[must_use]
    pub fn of_compatible(compatible: &str) -> Option<Self> {
        compatible.split('\0').find_map(|name| match name.strip_prefix("fsl,")? {
            "imx6q" | "imx6qp" => Some(Self::Imx6Q),
            "imx6sx" => Some(Self::Imx6Sx),
            "imx6dl" | "imx6sl" | "imx6sll" | "imx6ul" | "imx6ull" => Some(Self::Imx6),
            "imx7d" | "imx7s" => Some(Self::Imx7),
            "imx8mm" | "imx8mn" | "imx8mp" | "imx8mq" => Some(Self::Imx8M),
            _ => None,
        })
    }

    /// The number of the ECSPI at `address`, from 1.
    #[must_use]
    pub fn ecspi(self, address: u64) -> Option<u8> {
        match (self, address) {
            (Self::Imx6Q | Self::Imx6Sx | Self::Imx6, 0x0200_8000) => Some(1),
            (Self::Imx6Q | Self::Imx6Sx | Self::Imx6, 0x0200_c000) => Some(2),
            (Self::Imx6Q | Self::Imx6Sx | Self::Imx6, 0x0201_0000) => Some(3),
            (Self::Imx6Q | Self::Imx6Sx | Self::Imx6, 0x0201_4000) => Some(4),
            (Self::Imx6Q, 0x0201_8000) | (Self::Imx6Sx, 0x0228_c000) => Some(5),
            (Self::Imx7 | Self::Imx8M, 0x3082_0000) => Some(1),
            (Self::Imx7 | Self::Imx8M, 0x3083_0000) => Some(2),
            (Self::Imx7 | Self::Imx8M, 0x3084_0000) => Some(3),
            (Self::Imx7, 0x3063_0000) => Some(4),
            _ => None,
        }
    }

    /// The gate of the ECSPI at `address`.
    #[must_use]
    pub fn gate(self, address: u64) -> Option<Gate> {
        let index = self.ecspi(address)? - 1;
        let of_ccgr = |number: u8| Gate {
            register: 0x3038_4000 + 16 * u64::from(number),
            number,
            shift: 0,
            domains: 4,
        };
        Some(match self {
            Self::Imx6Q | Self::Imx6Sx | Self::Imx6 => {
                Gate { register: 0x020c_406c, number: 1, shift: 2 * index, domains: 1 }
            }
            Self::Imx7 => of_ccgr(120 + index),
            Self::Imx8M => of_ccgr(7 + index),
        })
    }

    /// The root slice of the ECSPI at `address`, on SoCs whose root clocks can be switched off.
    #[must_use]
    pub fn root_slice(self, address: u64) -> Option<RootSlice> {
        let registers: &[u64] = match self {
            Self::Imx6Q | Self::Imx6Sx | Self::Imx6 => &[],
            Self::Imx7 => &[0x3038_b300, 0x3038_b380, 0x3038_b400, 0x3038_b480],
            Self::Imx8M => &[0x3038_b280, 0x3038_b300, 0x3038_c180],
        };
        let index = usize::from(self.ecspi(address)?) - 1;
        registers.get(index).map(|&register| RootSlice { register })
    }
}

/// A root clock's slice: a CCM_TARGET_ROOT register with a multiplexer, dividers and an enable bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootSlice {
    /// The register's address.
    pub register: u64,
}

impl RootSlice {
    /// Whether a register value of `value` means that the root clock is on.
    #[must_use]
    pub fn decode(&self, value: u32) -> bool {
        value & 1 << 28 != 0
    }
}

impl fmt::Display for RootSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CCM_TARGET_ROOT at {:#010x}, ENABLE", self.register)
    }
}

/// A clock gate: a field of a CCM_CCGR register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The register's address.
    pub register: u64,
    /// Its number among the CCGRs.
    pub number: u8,
    /// The lowest bit of its field.
    shift: u8,
    /// How many fields the gate has: one per domain, four bits apart. The first is the CPU's.
    domains: u8,
}

impl Gate {
    /// The state of the clock, while the CPU runs, that a register value of `value` means.
    #[must_use]
    pub fn decode(&self, value: u32) -> ClockState {
        let field = |domain: u8| value >> (self.shift + 4 * domain) & 3;
        match field(0) {
            0 if (1..self.domains).all(|domain| field(domain) == 0) => ClockState::Gated(*self),
            // Another core's domain keeps it on if that core is awake and assigned, which is
            // unknown here.
            0 => ClockState::Unknown,
            // Value 2 is reserved on i.MX 6, and means "on in run and wait" on i.MX 7 and 8M.
            2 if self.domains == 1 => ClockState::Unknown,
            _ => ClockState::Running(*self),
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CCM_CCGR{}", self.number)?;
        if self.domains == 1 {
            write!(f, " CG{}", self.shift / 2)?;
        }
        write!(f, " at {:#010x}", self.register)
    }
}

/// The state of a controller's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClockState {
    /// Its gate is open, and its root slice, if there is one, is on.
    Running(Gate),
    /// Its gate is closed: do not access its registers.
    Gated(Gate),
    /// The root clock above its gate is off: do not access its registers.
    RootOff(RootSlice),
    /// The kernel counts a user of the clock.
    Enabled(KernelClock),
    /// The kernel counts no user of the clock: do not access the registers.
    Disabled(KernelClock),
    /// The bus above the UIO device keeps it on, or the kernel module.
    Held,
    /// The bus above the UIO device keeps other clocks on than the controller's: do not access the registers.
    OtherHeld,
    /// It cannot be gated.
    Always,
    /// There is no evidence.
    Unknown,
}

impl ClockState {
    /// Whether it is known to be off, or that nothing keeps it on.
    #[must_use]
    pub fn is_off(&self) -> bool {
        matches!(self, Self::Gated(_) | Self::RootOff(_) | Self::Disabled(_) | Self::OtherHeld)
    }

    /// The warning to print before the controller's registers are accessed.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        if self.is_off() {
            return Some(format!(
                "the controller's clock is off ({self}): touching its registers ends in a bus error or hangs the machine; {KEEP}"
            ));
        }
        (*self == Self::Unknown).then(|| format!(
            "whether the controller's clock runs cannot be checked here; without its kernel driver it may be off, and touching its registers may then hang the machine; {KEEP}"
        ))
    }
}

/// The remedy for a clock that is off.
pub(super) const KEEP: &str =
    "keep the clock by a device-tree overlay (`barewire doctor` prints one)";

/// The evidence, as text.
impl fmt::Display for ClockState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running(gate) | Self::Gated(gate) => gate.fmt(f),
            Self::RootOff(slice) => slice.fmt(f),
            Self::Enabled(clock) | Self::Disabled(clock) => clock.fmt(f),
            Self::Held => f.write_str("the UIO device's parent"),
            Self::OtherHeld => f.write_str(
                "the bus above its UIO device keeps other clocks on than those of the controller's node",
            ),
            Self::Always => f.write_str("never gated"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// A clock of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelClock {
    /// Its name in debugfs.
    pub name: String,
    /// How many users have switched it on.
    pub enable_count: u64,
}

impl fmt::Display for KernelClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "clk_enable_count of {} is {}", self.name, self.enable_count)
    }
}

/// The rate of a controller's reference clock, and the clock's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The clock's name.
    pub name: String,
    /// Its rate, in hertz.
    pub hz: u64,
}

/// One part in a thousand: rates that are rounded to kilohertz differ by less.
const TOLERANCE: u64 = 1_000;

impl Rate {
    /// Whether `reference_hz` is this rate, within a thousandth.
    #[must_use]
    pub fn is(&self, reference_hz: u32) -> bool {
        self.hz.abs_diff(reference_hz.into()) <= self.hz / TOLERANCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socs_are_known_by_their_compatible() {
        for (compatible, family) in [
            ("fsl,imx8mp-evk\0fsl,imx8mp", Some(Family::Imx8M)),
            ("fsl,imx8mp-evk\0fsl,imx8mp\0", Some(Family::Imx8M)),
            ("fsl,imx6q-sabrelite\0fsl,imx6q", Some(Family::Imx6Q)),
            ("kontron,bl\0fsl,imx6ul", Some(Family::Imx6)),
            ("fsl,imx6sx-sdb\0fsl,imx6sx", Some(Family::Imx6Sx)),
            ("toradex,colibri-imx7d\0fsl,imx7d", Some(Family::Imx7)),
            ("raspberrypi,4-model-b\0brcm,bcm2711", None),
            ("", None),
        ] {
            assert_eq!(Family::of_compatible(compatible), family, "{compatible:?}");
        }
    }

    #[test]
    fn each_controller_has_its_gate() {
        let gate =
            |family: Family, address| family.gate(address).map(|gate| (gate.register, gate.shift));
        let ccgr1 = 0x020c_406c;
        assert_eq!(gate(Family::Imx6Q, 0x0200_8000), Some((ccgr1, 0)));
        assert_eq!(gate(Family::Imx6Q, 0x0201_8000), Some((ccgr1, 8)));
        assert_eq!(gate(Family::Imx6, 0x0201_4000), Some((ccgr1, 6)));
        assert_eq!(gate(Family::Imx6, 0x0201_8000), None, "CG4 is I2C4 there");
        assert_eq!(gate(Family::Imx6Sx, 0x0228_c000), Some((ccgr1, 8)));
        assert_eq!(gate(Family::Imx8M, 0x3082_0000), Some((0x3038_4070, 0)));
        assert_eq!(gate(Family::Imx8M, 0x3083_0000), Some((0x3038_4080, 0)));
        assert_eq!(gate(Family::Imx8M, 0x3084_0000), Some((0x3038_4090, 0)));
        assert_eq!(gate(Family::Imx7, 0x3082_0000), Some((0x3038_4780, 0)));
        assert_eq!(gate(Family::Imx7, 0x3063_0000), Some((0x3038_47b0, 0)));
        assert_eq!(gate(Family::Imx8M, 0x3082_0004), None);
        assert_eq!(gate(Family::Imx8M, 0x3063_0000), None, "no ECSPI4 there");
    }

    #[test]
    fn root_slices_are_where_root_clocks_can_be_off() {
        let slice =
            |family: Family, address| family.root_slice(address).map(|slice| slice.register);
        assert_eq!(slice(Family::Imx8M, 0x3082_0000), Some(0x3038_b280));
        assert_eq!(slice(Family::Imx8M, 0x3084_0000), Some(0x3038_c180));
        assert_eq!(slice(Family::Imx7, 0x3082_0000), Some(0x3038_b300));
        assert_eq!(slice(Family::Imx7, 0x3063_0000), Some(0x3038_b480));
        assert_eq!(slice(Family::Imx6Q, 0x0200_8000), None);
        let slice = RootSlice { register: 0x3038_b280 };
        assert!(slice.decode(0x1000_0000) && !slice.decode(!0x1000_0000));
    }

    #[test]
    fn rates_are_equal_to_a_thousandth() {
        let rate = |hz| Rate { name: "clk".into(), hz };
        assert!(rate(80_000_000).is(80_000_000));
        assert!(rate(66_666_666).is(66_667_000) && rate(66_666_667).is(66_600_001));
        assert!(!rate(66_666_667).is(66_000_000) && !rate(24_000_000).is(80_000_000));
        assert!(!rate(0).is(1));
    }

    #[test]
    fn a_gates_value_is_running_gated_or_unknown() {
        let gate = Family::Imx6Q.gate(0x0200_c000).expect("ECSPI2");
        assert_eq!(gate.to_string(), "CCM_CCGR1 CG1 at 0x020c406c");
        assert_eq!(gate.decode(0b11 << 2), ClockState::Running(gate));
        assert_eq!(gate.decode(0b01 << 2), ClockState::Running(gate));
        assert_eq!(gate.decode(0b10 << 2), ClockState::Unknown, "reserved");
        assert_eq!(gate.decode(!(0b11 << 2)), ClockState::Gated(gate), "the neighbours run");

        let gate = Family::Imx8M.gate(0x3082_0000).expect("ECSPI1");
        assert_eq!(gate.to_string(), "CCM_CCGR7 at 0x30384070");
        for value in [0b01, 0b10, 0b11, 0x3333] {
            assert_eq!(gate.decode(value), ClockState::Running(gate));
        }
        assert_eq!(gate.decode(0), ClockState::Gated(gate));
        assert_eq!(gate.decode(0xcccc), ClockState::Gated(gate), "bits between the fields");
        assert_eq!(gate.decode(0x0030), ClockState::Unknown, "another core's domain");
    }

    #[test]
    fn only_a_clock_that_may_be_off_needs_a_warning() {
        let gate = Family::Imx8M.gate(0x3082_0000).expect("ECSPI1");
        assert_eq!(ClockState::Running(gate).warning(), None);
        assert_eq!(ClockState::Always.warning(), None);
        assert_eq!(ClockState::Held.warning(), None);
        let warning = ClockState::Gated(gate).warning().expect("a warning");
        assert!(warning.contains("CCM_CCGR7 at 0x30384070"), "{warning}");
        assert!(ClockState::Unknown.warning().is_some());
    }
}
