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

mod calxeda;
mod imx6dl;
mod sam;

use crate::chip::Ps;
use crate::engine::Costs;

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
    /// The controller's reference clock, before its own dividers.
    pub reference_hz: Figure,
    /// [`Costs::context_switch_ps`].
    pub context_switch_ps: Figure,
    /// [`Costs::wake_ps`].
    pub wake_ps: Figure,
    /// [`Costs::wake_call_ps`].
    pub wake_call_ps: Figure,
    /// [`Costs::futex_call_ps`].
    pub futex_call_ps: Figure,
    /// [`Costs::irq_thread_ps`].
    pub irq_thread_ps: Figure,
    /// [`Costs::interrupt_latency_ps`].
    pub interrupt_latency_ps: Figure,
    /// [`Costs::interrupt_exit_ps`].
    pub interrupt_exit_ps: Figure,
}

const WRITE_MEASURED: &str = "measured on i.MX RT1166 (a GPIO DR_TOGGLE loop runs at 5.43 MHz: \
    184 ns a period, two writes; qcentlabs.com/posts/fast_gpio), through the same AIPS bridge";
const READ_ASSUMED: &str = "assumption: a read waits for the round trip, taken as about 1.6 x the \
    measured posted write; to be replaced by a measurement on silicon";
const IPC_ASSUMED_A53: &str = "assumption: the in-order dual-issue Cortex-A53 sustains one \
    instruction a clock on driver code; to be replaced by a count on silicon";

/// Linux's thread figures, measured on a core that is near the Cortex-A53.
macro_rules! threads_a53 {
    ($figure:literal) => {
        concat!(
            "assumption: x 0.6 of a published median, ",
            $figure,
            ": RK3588's Cortex-A55 at 816 MHz, Linux PREEMPT_RT, SCHED_FIFO, cpuidle off, the \
             clock's own 875 ns taken off (github.com/rcore-os/tgoskits issue 2308, pull request \
             2435); scaled to 1.6 GHz, a Cortex-A53 taken to need 1.18 x the clocks; to be \
             replaced by a measurement on silicon",
        )
    };
}

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
        reference_hz: figure(
            80_000_000,
            "Linux imx8mp-evk.dts: assigned-clock-rates of ecspi 80 MHz from SYS_PLL1_800M",
        ),
        context_switch_ps: figure(1_750_000, threads_a53!("sched_yield to another, 2,916 ns")),
        wake_ps: figure(3_150_000, threads_a53!("futex hand-off to another core, 5,250 ns more")),
        wake_call_ps: figure(
            2_800_000,
            threads_a53!("futex hand-off on one core, 7,583 ns, less the switch's 2,916"),
        ),
        futex_call_ps: figure(875_000, threads_a53!("futex wait on a changed word, 1,458 ns")),
        irq_thread_ps: figure(
            5_650_000,
            threads_a53!("timer to its thread on one core, 12,336 ns, less the switch's 2,916"),
        ),
        interrupt_latency_ps: figure(
            275_000,
            "assumption: 100 clocks to the handler (a best case published for the Cortex-A9: \
             jblopen.com/arm-cortex-a-interrupt-latency), a register read's time to acknowledge at \
             the GIC, 100 instructions to save registers and find the handler; to be replaced by a \
             measurement on silicon",
        ),
        interrupt_exit_ps: figure(154_500, EXIT_ASSUMED),
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
        reference_hz: figure(
            60_000_000,
            "i.MX 6Dual/Quad reference manual, CCM: ECSPI_CLK_ROOT is PLL3 480 MHz / 8",
        ),
        context_switch_ps: figure(2_800_000, SCALED_THREADS),
        wake_ps: figure(5_040_000, SCALED_THREADS),
        wake_call_ps: figure(4_480_000, SCALED_THREADS),
        futex_call_ps: figure(1_400_000, SCALED_THREADS),
        irq_thread_ps: figure(9_040_000, SCALED_THREADS),
        interrupt_latency_ps: figure(
            350_000,
            "assumption: 100 clocks to the handler (published as a best case: \
             jblopen.com/arm-cortex-a-interrupt-latency), a register read's time to acknowledge at \
             the GIC, 100 instructions to save registers and find the handler; to be replaced by a \
             measurement on silicon",
        ),
        interrupt_exit_ps: figure(192_000, EXIT_ASSUMED),
    };

    /// All figures with unit and source, to print.
    #[must_use]
    pub fn sources(&self) -> [Source; 17] {
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
            row("reference_hz", "Hz", self.reference_hz),
            row("context_switch_ps", "ps", self.context_switch_ps),
            row("wake_ps", "ps", self.wake_ps),
            row("wake_call_ps", "ps", self.wake_call_ps),
            row("futex_call_ps", "ps", self.futex_call_ps),
            row("irq_thread_ps", "ps", self.irq_thread_ps),
            row("interrupt_latency_ps", "ps", self.interrupt_latency_ps),
            row("interrupt_exit_ps", "ps", self.interrupt_exit_ps),
        ]
    }

    /// What simulated threads cost.
    #[must_use]
    pub fn thread_costs(&self) -> Costs {
        Costs {
            context_switch_ps: self.context_switch_ps.value,
            wake_ps: self.wake_ps.value,
            wake_call_ps: self.wake_call_ps.value,
            futex_call_ps: self.futex_call_ps.value,
            interrupt_latency_ps: self.interrupt_latency_ps.value,
            interrupt_exit_ps: self.interrupt_exit_ps.value,
            irq_thread_ps: self.irq_thread_ps.value,
        }
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

const SCALED_THREADS: &str = "assumption: as on imx8mp, x 1.6 for the clock: the Cortex-A9 at \
    1.0 GHz taken to need as many clocks as the Cortex-A53; to be replaced by a measurement on \
    silicon";
const EXIT_ASSUMED: &str = "assumption: a posted register write's time to end the interrupt at the \
    GIC, 100 instructions to restore registers; to be replaced by a measurement on silicon";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cost_is_above_zero_and_has_a_unit_and_a_source() {
        for profile in [
            Profile::HIGHBANK,
            Profile::IMX6DL,
            Profile::IMX8MP,
            Profile::SABRELITE,
            Profile::SAMA5D36,
        ] {
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
