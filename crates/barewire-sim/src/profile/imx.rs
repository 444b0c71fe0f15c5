//! Boards with an i.MX of NXP: 6DualLite, 6Quad and 8M Plus.
//!
//! *Read first*: the module page of [`super`].

use super::{ACK_ASSUMED, EXIT_ASSUMED, IPC_ASSUMED_A53, LOOP_COUNTED, Profile, figure};

const WRITE_MEASURED: &str = "measured on i.MX RT1166 (a GPIO DR_TOGGLE loop runs at 5.43 MHz: \
    184 ns a period, two writes; qcentlabs.com/posts/fast_gpio), through the same AIPS bridge";
const READ_ASSUMED: &str = "assumption: a read waits for the round trip, taken as about 1.6 x the \
    measured posted write; to be replaced by a measurement on silicon";

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
        write_ack_ps: figure(58_000, ACK_ASSUMED),
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
        write_ack_ps: figure(58_000, ACK_ASSUMED),
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

    /// A board with NXP i.MX 6DualLite: two Cortex-A9. The core, its clock, the bridge and the clocks
    /// of ECSPI and GPT are those of i.MX 6Quad.
    pub const IMX6DL: Self = Self {
        name: "imx6dl",
        cpu_hz: figure(1_000_000_000, "IMX6SDLCEC data sheet: Cortex-A9, 1.0 GHz"),
        timer_frequency_hz: figure(3_000_000, "Linux timer-imx-gpt on i.MX 6DualLite: 24 MHz / 8"),
        reference_hz: figure(
            60_000_000,
            "i.MX 6Solo/6DualLite reference manual, CCM: ECSPI_CLK_ROOT is PLL3 480 MHz / 8",
        ),
        ..Self::SABRELITE
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_costs_what_the_quad_costs() {
        let values = |profile: Profile| profile.sources().map(|row| row.value);
        assert_eq!(values(Profile::IMX6DL), values(Profile::SABRELITE));
    }
}
