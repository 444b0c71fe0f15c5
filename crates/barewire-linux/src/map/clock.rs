//! Whether a controller's clock runs, where that can be known: i.MX 6, 7 and 8M.
//!
//! Read first: the reference manuals' chapter *Clock Controller Module*, registers CCM_CCGRn.
//!
//! How it works: the device tree's first `compatible` strings name the SoC, the SoC and the
//! controller's address name the field of a clock gate register, and the field's two bits say
//! whether the gate is open. [`Gate::decode`] is a function of numbers alone; reading the register
//! needs `/dev/mem`, so through UIO the answer is [`ClockState::Unknown`].
//!
//! # Sources
//! Facts only, read in Linux's clock drivers (`drivers/clk/imx`) and device trees, and in public
//! headers that number the gates; not checked against silicon.
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
//! # Not supported
//! The root clock above the gate (its divider, its own enable bit), and power domains: a gate that
//! is open is not yet a clock. i.MX 93 and 8QuadMax, whose clocks are behind other blocks; other
//! SoCs, SAMA5D3's PMC among them.

use std::fmt;

use barewire::reg::Registers;

use super::DevMem;
use crate::root::Root;

/// A family of SoCs whose clock gates are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// i.MX 6Dual, 6Quad and their Plus.
    Imx6Q,
    /// i.MX 6SoloX.
    Imx6Sx,
    /// The other i.MX 6: four ECSPI.
    Imx6,
    /// i.MX 7Solo and 7Dual.
    Imx7,
    /// i.MX 8M Mini, Nano, Plus and Quad.
    Imx8M,
}

impl Family {
    /// The family of this machine, by its device tree.
    #[must_use]
    pub fn detect(root: &Root) -> Option<Self> {
        let compatible = root.text("/proc/device-tree/compatible").ok()?;
        Self::of_compatible(&compatible)
    }

    /// The family by the root node's `compatible`: strings that end in zeros.
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

    /// The gate of the ECSPI at `address`.
    #[must_use]
    pub fn gate(self, address: u64) -> Option<Gate> {
        let of_imx6 =
            |field: u8| Gate { register: 0x020c_406c, number: 1, shift: 2 * field, domains: 1 };
        let of_ccgr = |number: u8| Gate {
            register: 0x3038_4000 + 16 * u64::from(number),
            number,
            shift: 0,
            domains: 4,
        };
        match (self, address) {
            (Self::Imx6Q | Self::Imx6Sx | Self::Imx6, 0x0200_8000) => Some(of_imx6(0)),
            (Self::Imx6Q | Self::Imx6Sx | Self::Imx6, 0x0200_c000) => Some(of_imx6(1)),
            (Self::Imx6Q | Self::Imx6Sx | Self::Imx6, 0x0201_0000) => Some(of_imx6(2)),
            (Self::Imx6Q | Self::Imx6Sx | Self::Imx6, 0x0201_4000) => Some(of_imx6(3)),
            (Self::Imx6Q, 0x0201_8000) | (Self::Imx6Sx, 0x0228_c000) => Some(of_imx6(4)),
            (Self::Imx7, 0x3082_0000) => Some(of_ccgr(120)),
            (Self::Imx7, 0x3083_0000) => Some(of_ccgr(121)),
            (Self::Imx7, 0x3084_0000) => Some(of_ccgr(122)),
            (Self::Imx7, 0x3063_0000) => Some(of_ccgr(123)),
            (Self::Imx8M, 0x3082_0000) => Some(of_ccgr(7)),
            (Self::Imx8M, 0x3083_0000) => Some(of_ccgr(8)),
            (Self::Imx8M, 0x3084_0000) => Some(of_ccgr(9)),
            _ => None,
        }
    }
}

/// A clock gate: a field of a CCM_CCGR register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The register's address.
    pub register: u64,
    /// Its number among the CCGRs.
    pub number: u8,
    /// Where its field begins.
    shift: u8,
    /// Fields of the same gate, one for each domain, four bits apart. The first is the CPU's.
    domains: u8,
}

impl Gate {
    /// What `value` of the register says of the clock while the CPU runs.
    #[must_use]
    pub fn decode(&self, value: u32) -> ClockState {
        let field = |domain: u8| value >> (self.shift + 4 * domain) & 3;
        match field(0) {
            0 if (1..self.domains).all(|domain| field(domain) == 0) => ClockState::Gated(*self),
            // Another core's domain keeps it, if it is awake and assigned; that is not ours to say.
            0 => ClockState::Unknown,
            // i.MX 6 reserves 2; i.MX 7 and 8M have it for "in run and wait".
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

/// What is known of a controller's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockState {
    /// Its gate is open.
    Running(Gate),
    /// Its gate is closed: do not touch its registers.
    Gated(Gate),
    /// There is no gate that anybody closes: the block is clocked with the chip's buses.
    Always,
    /// Nobody here can say.
    Unknown,
}

impl ClockState {
    /// What to tell the user before the controller's registers are touched.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        const KEEP: &str = "keep the clock by a device-tree overlay (README of barewire-linux)";
        match self {
            Self::Running(_) | Self::Always => None,
            Self::Gated(gate) => Some(format!(
                "the controller's clock is off ({gate}): touching its registers ends in a bus error or hangs the machine; {KEEP}"
            )),
            Self::Unknown => Some(format!(
                "whether the controller's clock runs cannot be checked here; without its kernel driver it may be off, and touching its registers may then hang the machine; {KEEP}"
            )),
        }
    }
}

/// Looks whether the clock of the controller at `address` runs, where that can be known: on a
/// known SoC, with `/dev/mem`.
#[must_use]
pub fn check(root: &Root, address: u64, memory: Option<&DevMem>) -> ClockState {
    let gate = Family::detect(root).and_then(|family| family.gate(address));
    let Some((gate, memory)) = gate.zip(memory) else {
        return ClockState::Unknown;
    };
    match memory.map_shared(gate.register, 4) {
        Ok(mut ccgr) => gate.decode(ccgr.read(0)),
        Err(_) => ClockState::Unknown,
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
    fn only_a_running_clock_needs_no_warning() {
        let gate = Family::Imx8M.gate(0x3082_0000).expect("ECSPI1");
        assert_eq!(ClockState::Running(gate).warning(), None);
        assert_eq!(ClockState::Always.warning(), None);
        let warning = ClockState::Gated(gate).warning().expect("a warning");
        assert!(warning.contains("CCM_CCGR7 at 0x30384070"), "{warning}");
        assert!(ClockState::Unknown.warning().is_some());
    }
}
