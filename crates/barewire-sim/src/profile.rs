//! What a board costs: time per register access and per instruction, each figure with its source.
//!
//! *Read first*: the `Source` of every figure below. Where a figure is an assumption it says so,
//! and by what it is to be replaced.
//!
//! # How it works
//! A [`Profile`] is data. The simulated board charges every register access its time plus the few
//! instructions of the loop around it, and CPU work as instructions over rate. No cost is zero:
//! a free access would let a driver poll without being seen.
//!
//! # Not supported
//! Caches, pipelining of accesses (each posted write takes its full time), interconnect load.

use crate::chip::Ps;

const PS_PER_S: u64 = 1_000_000_000_000;

/// Where a figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The field of [`Profile`] it stands for.
    pub field: &'static str,
    /// The figure.
    pub value: u64,
    /// Its unit.
    pub unit: &'static str,
    /// The document or measurement it was taken from; an assumption begins with that word.
    pub source: &'static str,
}

/// What one figure is and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The figure, in the unit its field's name ends with.
    pub value: u64,
    /// Its source; an assumption begins with that word.
    pub source: &'static str,
}

const fn figure(value: u64, source: &'static str) -> Figure {
    Figure { value, source }
}

/// The costs of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The board's name.
    pub name: &'static str,
    /// The processor's clock.
    pub cpu_hz: Figure,
    /// Instructions per clock, in thousandths.
    pub ipc_milli: Figure,
    /// A register read of the controller, from the load to its data.
    pub register_read_ps: Figure,
    /// A register write of the controller, posted, in a row of such writes.
    pub register_write_ps: Figure,
    /// A register read of a GPIO block.
    pub gpio_read_ps: Figure,
    /// A register write of a GPIO block, posted, in a row of such writes.
    pub gpio_write_ps: Figure,
    /// Instructions of the loop around one register access.
    pub instructions_per_access: Figure,
    /// A read of the tick counter.
    pub timer_read_ps: Figure,
    /// The tick counter's rate.
    pub timer_frequency_hz: Figure,
    /// The ECSPI's reference clock, before its own dividers.
    pub ecspi_reference_hz: Figure,
}

const WRITE_MEASURED: &str = "measured on i.MX RT1166 (a GPIO DR_TOGGLE loop runs at 5.43 MHz: \
    184 ns a period, two writes; qcentlabs.com/posts/fast_gpio), through the same AIPS bridge";
const READ_ASSUMED: &str = "assumption: a read waits for the round trip, taken as about 1.6 x the \
    measured posted write; to be replaced by a measurement on silicon";
const IPC_ASSUMED_A53: &str = "assumption: the in-order dual-issue Cortex-A53 sustains one \
    instruction a clock on driver code; to be replaced by a count on silicon";
const LOOP_COUNTED: &str = "counted: load or store of the datum, step, compare, branch";

impl Profile {
    /// NXP i.MX 8M Plus EVK: four Cortex-A53.
    pub const IMX8MP: Self = Self {
        name: "imx8mp",
        cpu_hz: figure(1_600_000_000, "IMX8MPCEC data sheet: Cortex-A53, nominal mode, 1.6 GHz"),
        ipc_milli: figure(1_000, IPC_ASSUMED_A53),
        register_read_ps: figure(150_000, READ_ASSUMED),
        register_write_ps: figure(92_000, WRITE_MEASURED),
        gpio_read_ps: figure(150_000, READ_ASSUMED),
        gpio_write_ps: figure(92_000, WRITE_MEASURED),
        instructions_per_access: figure(4, LOOP_COUNTED),
        timer_read_ps: figure(
            25_000,
            "assumption: ISB and MRS CNTVCT_EL0, taken as 40 clocks of 1.6 GHz; to be replaced by \
             a measurement on silicon",
        ),
        timer_frequency_hz: figure(
            8_000_000,
            "i.MX 8M reference manuals, system counter: 24 MHz / 3, 125 ns a tick",
        ),
        ecspi_reference_hz: figure(
            80_000_000,
            "Linux imx8mp-evk.dts: assigned-clock-rates of ecspi 80 MHz from SYS_PLL1_800M",
        ),
    };

    /// Boundary Devices SABRE Lite: i.MX 6Quad, four Cortex-A9.
    pub const SABRELITE: Self = Self {
        name: "sabrelite",
        cpu_hz: figure(1_000_000_000, "IMX6DQCEC data sheet: Cortex-A9, 1.0 GHz"),
        ipc_milli: figure(
            1_000,
            "assumption: the Cortex-A9 sustains one instruction a clock on driver code; to be \
             replaced by a count on silicon",
        ),
        register_read_ps: figure(150_000, SCALED_READ),
        register_write_ps: figure(92_000, SCALED_WRITE),
        gpio_read_ps: figure(150_000, SCALED_READ),
        gpio_write_ps: figure(92_000, SCALED_WRITE),
        instructions_per_access: figure(4, LOOP_COUNTED),
        timer_read_ps: figure(
            150_000,
            "assumption: the GPT counter is a register behind the same AIPS bridge: a register read",
        ),
        timer_frequency_hz: figure(3_000_000, "Linux timer-imx-gpt on i.MX 6Quad: 24 MHz / 8"),
        ecspi_reference_hz: figure(
            60_000_000,
            "i.MX 6Dual/Quad reference manual, CCM: ECSPI_CLK_ROOT is PLL3 480 MHz / 8",
        ),
    };

    /// All figures with unit and source, to print.
    #[must_use]
    pub fn sources(&self) -> [Source; 10] {
        let row = |field, unit, figure: Figure| {
            let Figure { value, source } = figure;
            Source { field, value, unit, source }
        };
        [
            row("cpu_hz", "Hz", self.cpu_hz),
            row("ipc_milli", "instructions/1000 clocks", self.ipc_milli),
            row("register_read_ps", "ps", self.register_read_ps),
            row("register_write_ps", "ps", self.register_write_ps),
            row("gpio_read_ps", "ps", self.gpio_read_ps),
            row("gpio_write_ps", "ps", self.gpio_write_ps),
            row("instructions_per_access", "instructions", self.instructions_per_access),
            row("timer_read_ps", "ps", self.timer_read_ps),
            row("timer_frequency_hz", "Hz", self.timer_frequency_hz),
            row("ecspi_reference_hz", "Hz", self.ecspi_reference_hz),
        ]
    }

    /// How long `instructions` take, rounded up; saturates.
    #[must_use]
    pub fn instructions_ps(&self, instructions: u64) -> Ps {
        // A rate of zero would be a profile that the tests refuse; time still must not divide by it.
        let rate = (u128::from(self.cpu_hz.value) * u128::from(self.ipc_milli.value)).max(1);
        let ps = (u128::from(instructions) * u128::from(PS_PER_S) * 1_000).div_ceil(rate);
        Ps::try_from(ps).unwrap_or(Ps::MAX)
    }
}

const SCALED_WRITE: &str = "as on imx8mp, factor 1: both SoCs clock the AIPS bridge at 66 MHz (ipg \
    clock, half of 132/133 MHz AHB), and the bridge, not the core, sets the cost; to be replaced \
    by a measurement on silicon";
const SCALED_READ: &str = "assumption: as on imx8mp, factor 1: both SoCs clock the AIPS bridge at \
    66 MHz (ipg clock), and the bridge, not the core, sets the cost; to be replaced by a \
    measurement on silicon";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cost_is_above_zero_and_has_a_unit_and_a_source() {
        for profile in [Profile::IMX8MP, Profile::SABRELITE] {
            for row in profile.sources() {
                assert!(row.value > 0, "{} {}", profile.name, row.field);
                assert!(!row.unit.is_empty() && row.source.len() > 20, "{row:?}");
            }
            assert!(profile.instructions_ps(1) > 0);
        }
    }

    #[test]
    fn an_instruction_takes_its_time_rounded_up() {
        assert_eq!(Profile::IMX8MP.instructions_ps(1), 625);
        assert_eq!(Profile::IMX8MP.instructions_ps(0), 0);
        assert_eq!(Profile::IMX8MP.instructions_ps(1_600_000_000), PS_PER_S);
        assert_eq!(Profile::SABRELITE.instructions_ps(3), 3_000);
        assert_eq!(Profile::SABRELITE.instructions_ps(u64::MAX), Ps::MAX);
        let mut odd = Profile::IMX8MP;
        odd.cpu_hz.value = 3_000_000_000;
        assert_eq!(odd.instructions_ps(1), 334);
    }
}
