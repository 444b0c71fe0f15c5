//! Costs of boards with Xilinx' Zynq-7000.
//!
//! *Read first*: the `Source` of every figure below.
//!
//! No measurement of a register access on this SoC was found. Register accesses are scaled by the clock of the bus
//! they go through, the core by its own.

use super::{
    ACK_ASSUMED, ACK_HIGH, ACK_LOW, ENTRY_HIGH, ENTRY_LOW, EXIT_ASSUMED, EXIT_HIGH, EXIT_LOW,
    IPC_HALF, IPC_ISSUE_WIDTH, IRQ_PUBLISHED, LOOP_COUNTED, Profile, WAKE_PUBLISHED, figure,
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
        register_read_ps: figure(89_189, SCALED_ACCESS)
            .from(44_595, SCALED_LOW)
            .to(265_189, SCALED_HIGH),
        register_write_ps: figure(54_703, SCALED_ACCESS)
            .from(27_351, SCALED_LOW)
            .to(165_892, SCALED_HIGH),
        gpio_read_ps: figure(89_189, SCALED_ACCESS)
            .from(44_595, SCALED_LOW)
            .to(265_189, SCALED_HIGH),
        gpio_write_ps: figure(54_703, SCALED_ACCESS)
            .from(27_351, SCALED_LOW)
            .to(165_892, SCALED_HIGH),
        write_ack_ps: figure(34_486, ACK_ASSUMED).from(17_244, ACK_LOW).to(99_297, ACK_HIGH),
        instructions_per_access: figure(4, LOOP_COUNTED),
        timer_read_ps: figure(
            90_000,
            "assumption: the Cortex-A9's global timer, beside the core: three reads (upper, lower, \
             upper half) of 20 clocks of 667 MHz; to be replaced by a measurement on silicon",
        )
        .from(45_000, "assumption: the same three reads, 10 clocks each")
        .to(267_567, "assumption: the same three reads, each as dear as a register behind the bus"),
        timer_frequency_hz: figure(
            333_333_333,
            "the global timer counts CPU_3x2x, half of the core's clock (UG585, 8.1)",
        ),
        reference_hz: figure(
            166_666_666,
            "SPI_Ref_Clk at its maximum, the IO PLL's 1,000 MHz / 6 (UG585, 17.4; DS187)",
        ),
        context_switch_ps: figure(4_200_000, SCALED_THREADS)
            .from(3_568_800, SCALED_THREADS_LOW)
            .to(6_999_000, SCALED_THREADS_HIGH),
        wake_ps: figure(7_560_000, SCALED_THREADS)
            .from(6_427_200, SCALED_THREADS_LOW)
            .to(25_000_000, WAKE_PUBLISHED),
        wake_call_ps: figure(6_720_000, SCALED_THREADS)
            .from(5_712_000, SCALED_THREADS_LOW)
            .to(11_200_500, SCALED_THREADS_HIGH),
        futex_call_ps: figure(2_100_000, SCALED_THREADS)
            .from(1_785_600, SCALED_THREADS_LOW)
            .to(3_499_500, SCALED_THREADS_HIGH),
        irq_thread_ps: figure(13_560_000, SCALED_THREADS)
            .from(11_529_600, SCALED_THREADS_LOW)
            .to(38_000_000, IRQ_PUBLISHED),
        interrupt_latency_ps: figure(
            389_189,
            "assumption: 100 clocks to the handler (a best case published for the Cortex-A9: \
             jblopen.com/arm-cortex-a-interrupt-latency), a register read's time to acknowledge at \
             the GIC, 100 instructions to save registers and find the handler; to be replaced by a \
             measurement on silicon",
        )
        .from(269_595, ENTRY_LOW)
        .to(3_232_189, ENTRY_HIGH),
        interrupt_exit_ps: figure(204_703, EXIT_ASSUMED)
            .from(102_351, EXIT_LOW)
            .to(465_892, EXIT_HIGH),
    };
}
