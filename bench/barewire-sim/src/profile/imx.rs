//! Boards with an i.MX of NXP: 6DualLite, 6Quad and 8M Plus.
//!
//! *Read first*: the module page of [`super`].

use super::{
    ACK, ENTRY_HIGH, ENTRY_LOW, EXIT, IPC_ASSUMED_A53, IPC_HALF, IPC_ISSUE_WIDTH, IRQ_PUBLISHED,
    LOOP_COUNTED, Profile, Sources, WAKE_PUBLISHED, figure, ranged,
};

const WRITE_ASSUMED: &str = "assumption: 18.4 clocks of the bus, 66 MHz, as measured on i.MX RT1166 \
    through the same AIPS bridge (a GPIO DR_TOGGLE loop runs at 5.43 MHz: 184 ns a period, two writes, \
    at about 200 MHz; qcentlabs.com/posts/fast_gpio); to be replaced by a measurement on silicon";
const WRITE_LOW: &str = "assumption: three clocks of 66 MHz, one to come into the bridge's clock and \
    two of a transfer without wait states";
const WRITE_HIGH: &str = "assumption: twice the figure used, for another master on the bridge, or one more \
    bridge in the way";
const READ_ASSUMED: &str = "assumption: a read waits for the round trip, taken as about 1.6 x the \
    posted write; to be replaced by a measurement on silicon";
const READ_LOW: &str = "assumption: about 1.6 x the posted write's low end";
const READ_HIGH: &str = "assumption: about 1.6 x the posted write's high end";
const TIMER_LOW: &str = "assumption: 10 clocks of 1.6 GHz, an ISB that finds nothing to wait for";
const TIMER_HIGH: &str =
    "assumption: a register read's time, as where the counter is behind the bridge";
const THREADS_LOW: &str = "the same published median scaled by the clock alone, x 0.51: a Cortex-A53 \
    taken to need no more clocks than a Cortex-A55";
const THREADS_HIGH: &str = "the same published median, unscaled, as if the time were the memory's and \
    not the core's";

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

const READS: Sources = [READ_LOW, READ_ASSUMED, READ_HIGH];
const WRITES: Sources = [WRITE_LOW, WRITE_ASSUMED, WRITE_HIGH];
const SCALED_READS: Sources = [SCALED_LOW, SCALED_READ, SCALED_HIGH];
const SCALED_WRITES: Sources = [SCALED_LOW, SCALED_WRITE, SCALED_HIGH];
const THREADS: Sources = [SCALED_THREADS_LOW, SCALED_THREADS, SCALED_THREADS_HIGH];
const WAKES: Sources = [SCALED_THREADS_LOW, SCALED_THREADS, WAKE_PUBLISHED];
const IRQ_THREADS: Sources = [SCALED_THREADS_LOW, SCALED_THREADS, IRQ_PUBLISHED];

impl Profile {
    /// NXP i.MX 8M Plus EVK: four Cortex-A53.
    pub const IMX8MP: Self = Self {
        name: "imx8mp",
        cpu_hz: figure(1_600_000_000, "IMX8MPCEC data sheet: Cortex-A53, nominal mode, 1.6 GHz"),
        ipc_milli: figure(1_000, IPC_ASSUMED_A53).from(500, IPC_HALF).to(2_000, IPC_ISSUE_WIDTH),
        register_read_ps: ranged([75_000, 446_000, 892_000], READS),
        register_write_ps: ranged([46_000, 279_000, 558_000], WRITES),
        gpio_read_ps: ranged([75_000, 446_000, 892_000], READS),
        gpio_write_ps: ranged([46_000, 279_000, 558_000], WRITES),
        write_ack_ps: ranged([29_000, 167_000, 334_000], ACK),
        instructions_per_access: figure(4, LOOP_COUNTED),
        timer_read_ps: figure(
            25_000,
            "assumption: ISB and MRS CNTVCT_EL0, taken as 40 clocks of 1.6 GHz; to be replaced by \
             a measurement on silicon",
        )
        .from(6_250, TIMER_LOW)
        .to(446_000, TIMER_HIGH),
        timer_frequency_hz: figure(
            8_000_000,
            "i.MX 8M reference manuals, system counter: 24 MHz / 3, 125 ns a tick",
        ),
        reference_hz: figure(
            80_000_000,
            "Linux imx8mp-evk.dts: assigned-clock-rates of ecspi 80 MHz from SYS_PLL1_800M",
        ),
        context_switch_ps: figure(1_750_000, threads_a53!("sched_yield to another, 2,916 ns"))
            .from(1_487_000, THREADS_LOW)
            .to(2_916_000, THREADS_HIGH),
        wake_ps: figure(3_150_000, threads_a53!("futex hand-off to another core, 5,250 ns more"))
            .from(2_678_000, THREADS_LOW)
            .to(25_000_000, WAKE_PUBLISHED),
        wake_call_ps: figure(
            2_800_000,
            threads_a53!("futex hand-off on one core, 7,583 ns, less the switch's 2,916"),
        )
        .from(2_380_000, THREADS_LOW)
        .to(4_667_000, THREADS_HIGH),
        futex_call_ps: figure(875_000, threads_a53!("futex wait on a changed word, 1,458 ns"))
            .from(744_000, THREADS_LOW)
            .to(1_458_000, THREADS_HIGH),
        irq_thread_ps: figure(
            5_650_000,
            threads_a53!("timer to its thread on one core, 12,336 ns, less the switch's 2,916"),
        )
        .from(4_804_000, THREADS_LOW)
        .to(38_000_000, IRQ_PUBLISHED),
        interrupt_latency_ps: figure(
            571_000,
            "assumption: 100 clocks to the handler (a best case published for the Cortex-A9: \
             jblopen.com/arm-cortex-a-interrupt-latency), a register read's time to acknowledge at \
             the GIC, 100 instructions to save registers and find the handler; to be replaced by a \
             measurement on silicon",
        )
        .from(168_750, ENTRY_LOW)
        .to(2_128_250, ENTRY_HIGH),
        interrupt_exit_ps: ranged([77_250, 341_500, 683_000], EXIT),
    };

    /// Boundary Devices SABRE Lite: i.MX 6Quad, four Cortex-A9.
    pub const SABRELITE: Self = Self {
        name: "sabrelite",
        cpu_hz: figure(1_000_000_000, "IMX6DQCEC data sheet: Cortex-A9, 1.0 GHz"),
        ipc_milli: figure(
            1_000,
            "assumption: the Cortex-A9 sustains one instruction a clock on driver code; to be \
             replaced by a count on silicon",
        ).from(500, IPC_HALF).to(2_000, IPC_ISSUE_WIDTH),
        register_read_ps: ranged([75_000, 446_000, 892_000], SCALED_READS),
        register_write_ps: ranged([46_000, 279_000, 558_000], SCALED_WRITES),
        gpio_read_ps: ranged([75_000, 446_000, 892_000], SCALED_READS),
        gpio_write_ps: ranged([46_000, 279_000, 558_000], SCALED_WRITES),
        write_ack_ps: ranged([29_000, 167_000, 334_000], ACK),
        instructions_per_access: figure(4, LOOP_COUNTED),
        timer_read_ps: figure(
            446_000,
            "assumption: the GPT counter is a register behind the same AIPS bridge: a register read",
        ).from(75_000, SCALED_LOW).to(892_000, SCALED_HIGH),
        timer_frequency_hz: figure(3_000_000, "Linux timer-imx-gpt on i.MX 6Quad: 24 MHz / 8"),
        reference_hz: figure(
            60_000_000,
            "i.MX 6Dual/Quad reference manual, CCM: ECSPI_CLK_ROOT is PLL3 480 MHz / 8",
        ),
        context_switch_ps: ranged([2_379_200, 2_800_000, 4_666_000], THREADS),
        wake_ps: ranged([4_284_800, 5_040_000, 25_000_000], WAKES),
        wake_call_ps: ranged([3_808_000, 4_480_000, 7_467_000], THREADS),
        futex_call_ps: ranged([1_190_400, 1_400_000, 2_333_000], THREADS),
        irq_thread_ps: ranged([7_686_400, 9_040_000, 38_000_000], IRQ_THREADS),
        interrupt_latency_ps: figure(
            646_000,
            "assumption: 100 clocks to the handler (published as a best case: \
             jblopen.com/arm-cortex-a-interrupt-latency), a register read's time to acknowledge at \
             the GIC, 100 instructions to save registers and find the handler; to be replaced by a \
             measurement on silicon",
        ).from(225_000, ENTRY_LOW).to(2_870_000, ENTRY_HIGH),
        interrupt_exit_ps: ranged([96_000, 379_000, 758_000], EXIT),
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

const SCALED_WRITE: &str = "assumption: as on imx8mp, factor 1: both SoCs clock the AIPS bridge at 66 MHz (ipg \
    clock, half of 132/133 MHz AHB), and the bridge, not the core, sets the cost; to be replaced \
    by a measurement on silicon";
const SCALED_READ: &str = "assumption: as on imx8mp, factor 1: both SoCs clock the AIPS bridge at \
    66 MHz (ipg clock), and the bridge, not the core, sets the cost; to be replaced by a \
    measurement on silicon";

const SCALED_LOW: &str = "assumption: as on imx8mp, factor 1, its low end";
const SCALED_HIGH: &str = "assumption: as on imx8mp, factor 1, its high end";

const SCALED_THREADS: &str = "assumption: as on imx8mp, x 1.6 for the clock: the Cortex-A9 at \
    1.0 GHz taken to need as many clocks as the Cortex-A53; to be replaced by a measurement on \
    silicon";
const SCALED_THREADS_LOW: &str = "assumption: as on imx8mp, x 1.6 for the clock, its low end";
const SCALED_THREADS_HIGH: &str = "assumption: as on imx8mp, x 1.6 for the clock, its high end";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_costs_what_the_quad_costs() {
        let values = |profile: Profile| {
            profile.sources().map(|row| [row.figure.low, row.figure.value, row.figure.high])
        };
        assert_eq!(values(Profile::IMX6DL), values(Profile::SABRELITE));
    }
}
