//! Costs of boards with Xilinx' Zynq-7000.
//!
//! *Read first*: the `Source` of every figure below.
//!
//! No measurement of a register access on this SoC was found. Register accesses are scaled by the clock of the bus
//! they go through, the core by its own.

use super::{
    ACK, ENTRY_HIGH, ENTRY_LOW, EXIT, IPC_HALF, IPC_ISSUE_WIDTH, IRQ_PUBLISHED, LOOP_COUNTED,
    Profile, Sources, WAKE_PUBLISHED, figure, ranged,
};

const SCALED_ACCESS: &str = "assumption: as on imx8mp, x 66 / 111 for the bus clock: the bridge, not the core, \
    sets the cost, and is taken to need as many clocks of CPU_1x (a sixth of the core's clock, UG585, 25.3) as \
    AIPS needs of 66 MHz; to be replaced by a measurement on silicon";
const SCALED_LOW: &str = "assumption: as on imx8mp, x 66 / 111, its low end";
const SCALED_HIGH: &str = "assumption: as on imx8mp, x 66 / 111, its high end";
const SCALED_THREADS: &str = "assumption: as on sabrelite, x 1.5 for the clock of the same Cortex-A9; to be \
    replaced by a measurement on silicon";
const SCALED_THREADS_LOW: &str = "assumption: as on sabrelite, x 1.5, its low end";
const SCALED_THREADS_HIGH: &str = "assumption: as on sabrelite, x 1.5, its high end";

const ACCESSES: Sources = [SCALED_LOW, SCALED_ACCESS, SCALED_HIGH];
const THREADS: Sources = [SCALED_THREADS_LOW, SCALED_THREADS, SCALED_THREADS_HIGH];
const WAKES: Sources = [SCALED_THREADS_LOW, SCALED_THREADS, WAKE_PUBLISHED];
const IRQ_THREADS: Sources = [SCALED_THREADS_LOW, SCALED_THREADS, IRQ_PUBLISHED];

impl Profile {
    /// Avnet ZedBoard: Zynq-7020, two Cortex-A9.
    pub const ZYNQ: Self = Self {
        name: "zynq",
        cpu_hz: figure(
            666_666_666,
            "Zynq-7000 data sheet DS187, speed grade -1: 667 MHz; the ARM PLL's 1,333 MHz / 2 \
             (Linux zynq-7000.dtsi)",
        ),
        ipc_milli: figure(
            1_000,
            "assumption: the Cortex-A9 sustains one instruction a clock on driver code; to be \
             replaced by a count on silicon",
        )
        .from(500, IPC_HALF)
        .to(2_000, IPC_ISSUE_WIDTH),
        register_read_ps: ranged([44_595, 265_189, 530_378], ACCESSES),
        register_write_ps: ranged([27_351, 165_892, 331_784], ACCESSES),
        gpio_read_ps: ranged([44_595, 265_189, 530_378], ACCESSES),
        gpio_write_ps: ranged([27_351, 165_892, 331_784], ACCESSES),
        write_ack_ps: ranged([17_244, 99_297, 198_594], ACK),
        instructions_per_access: figure(4, LOOP_COUNTED),
        timer_read_ps: figure(
            90_000,
            "assumption: the Cortex-A9's global timer, beside the core: three reads (upper, lower, \
             upper half) of 20 clocks of 667 MHz; to be replaced by a measurement on silicon",
        )
        .from(45_000, "assumption: the same three reads, 10 clocks each")
        .to(795_567, "assumption: the same three reads, each as dear as a register behind the bus"),
        timer_frequency_hz: figure(
            333_333_333,
            "the global timer counts CPU_3x2x, half of the core's clock (UG585, 8.1)",
        ),
        reference_hz: figure(
            166_666_666,
            "SPI_Ref_Clk at its maximum, the IO PLL's 1,000 MHz / 6 (UG585, 17.4; DS187)",
        ),
        context_switch_ps: ranged([3_568_800, 4_200_000, 6_999_000], THREADS),
        wake_ps: ranged([6_427_200, 7_560_000, 25_000_000], WAKES),
        wake_call_ps: ranged([5_712_000, 6_720_000, 11_200_500], THREADS),
        futex_call_ps: ranged([1_785_600, 2_100_000, 3_499_500], THREADS),
        irq_thread_ps: ranged([11_529_600, 13_560_000, 38_000_000], IRQ_THREADS),
        interrupt_latency_ps: figure(
            565_189,
            "assumption: 100 clocks to the handler (a best case published for the Cortex-A9: \
             jblopen.com/arm-cortex-a-interrupt-latency), a register read's time to acknowledge at \
             the GIC, 100 instructions to save registers and find the handler; to be replaced by a \
             measurement on silicon",
        )
        .from(269_595, ENTRY_LOW)
        .to(3_497_378, ENTRY_HIGH),
        interrupt_exit_ps: ranged([102_351, 315_892, 631_784], EXIT),
    };
}
