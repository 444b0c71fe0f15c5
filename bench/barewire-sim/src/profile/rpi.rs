//! Raspberry Pis.
//!
//! *Read first*: the module page of [`super`].

use super::{
    ACK_ASSUMED, ACK_HIGH, ACK_LOW, ENTRY_HIGH, ENTRY_LOW, EXIT_HIGH, EXIT_LOW, IPC_ASSUMED_A53,
    IPC_HALF, IPC_ISSUE_WIDTH, IRQ_PUBLISHED, LOOP_COUNTED, Profile, WAKE_PUBLISHED, figure,
};

impl Profile {
    /// Raspberry Pi 3 Model B: BCM2837, four Cortex-A53.
    ///
    /// The core clock, which the SPI block divides, is a setting of the firmware. The figure here is
    /// that of a Pi 3 left to itself; for another, say 250 MHz, change `reference_hz` of a copy.
    pub const RPI3: Self = Self {
        name: "rpi3",
        cpu_hz: figure(
            1_200_000_000,
            "vcgencmd get_config: arm_freq=1200 (Ellis, Analyzing SPI driver performance on the \
             Raspberry Pi, 2017)",
        ),
        ipc_milli: figure(1_000, IPC_ASSUMED_A53).from(500, IPC_HALF).to(2_000, IPC_ISSUE_WIDTH),
        register_read_ps: figure(
            61_000,
            "assumption: as a GPIO read: both blocks are on the same peripheral bus; to be replaced \
             by a measurement on silicon",
        ).from(55_556, READ_LOW).to(100_000, READ_HIGH),
        register_write_ps: figure(
            7_600,
            "assumption: as a GPIO write: both blocks are on the same peripheral bus; to be \
             replaced by a measurement on silicon",
        ).from(5_000, WRITE_LOW).to(61_000, WRITE_HIGH),
        gpio_read_ps: figure(
            61_000,
            "assumption: between two read rates published for the 3B+, 10 million a second at 600 \
             MHz and 18 million at 1,400 MHz (github.com/rsta2/circle issue 86), by a constant and \
             a part that goes with the processor's clock, 22 ns and 47 clocks; to be replaced by a \
             measurement on silicon",
        ).from(55_556, READ_LOW).to(100_000, READ_HIGH),
        gpio_write_ps: figure(
            7_600,
            "measured on a Raspberry Pi 3 (a loop of GPSET and GPCLR through /dev/mem makes a square \
             wave of 65.8 MHz: 15.2 ns a period, two writes; github.com/hzeller/rpi-gpio-dma-demo)",
        ),
        write_ack_ps: figure(53_400, ACK_ASSUMED).from(47_956, ACK_LOW).to(92_400, ACK_HIGH),
        instructions_per_access: figure(4, LOOP_COUNTED),
        timer_read_ps: figure(
            33_334,
            "assumption: ISB and MRS CNTVCT_EL0, taken as 40 clocks of 1.2 GHz; to be replaced by \
             a measurement on silicon",
        ).from(8_334, TIMER_LOW).to(61_000, TIMER_HIGH),
        timer_frequency_hz: figure(
            19_200_000,
            "Linux's boot log on a Pi 3, arch_timer: cp15 timer(s) running at 19.20MHz: the \
             crystal's rate",
        ),
        reference_hz: figure(
            400_000_000,
            "vcgencmd get_config: core_freq=400 (Ellis, Analyzing SPI driver performance on the \
             Raspberry Pi, 2017)",
        ),
        context_switch_ps: figure(2_333_334, SCALED_THREADS).from(1_983_000, SCALED_THREADS_LOW).to(3_888_000, SCALED_THREADS_HIGH),
        wake_ps: figure(4_200_000, SCALED_THREADS).from(3_571_000, SCALED_THREADS_LOW).to(25_000_000, WAKE_PUBLISHED),
        wake_call_ps: figure(3_733_334, SCALED_THREADS).from(3_173_000, SCALED_THREADS_LOW).to(6_223_000, SCALED_THREADS_HIGH),
        futex_call_ps: figure(1_166_667, SCALED_THREADS).from(992_000, SCALED_THREADS_LOW).to(1_944_000, SCALED_THREADS_HIGH),
        irq_thread_ps: figure(7_533_334, SCALED_THREADS).from(6_405_000, SCALED_THREADS_LOW).to(38_000_000, IRQ_PUBLISHED),
        interrupt_latency_ps: figure(
            289_000,
            "assumption: 100 clocks to the handler (a best case published for the Cortex-A9: \
             jblopen.com/arm-cortex-a-interrupt-latency), two register reads to find the source, at \
             the core's controller and at the one behind it, 100 instructions to save registers \
             and find the handler; to be replaced by a measurement on silicon",
        ).from(236_113, ENTRY_LOW).to(1_848_334, ENTRY_HIGH),
        interrupt_exit_ps: figure(
            83_334,
            "assumption: 100 instructions to restore registers; BCM2837's interrupt controllers \
             wait for no end of interrupt; to be replaced by a measurement on silicon",
        ).from(41_667, EXIT_LOW).to(166_667, EXIT_HIGH),
    };
}

const SCALED_THREADS: &str = "assumption: as on imx8mp, x 4/3 for the clock: the same core at 1.2 \
    instead of 1.6 GHz; to be replaced by a measurement on silicon";
const SCALED_THREADS_LOW: &str = "assumption: as on imx8mp, x 4/3 for the clock, its low end";
const SCALED_THREADS_HIGH: &str = "assumption: as on imx8mp, x 4/3 for the clock, its high end";

const READ_LOW: &str = "the faster of the two published read rates: 18 million a second on a 3B+ at \
    1,400 MHz (github.com/rsta2/circle issue 86)";
const READ_HIGH: &str = "the slower of the two published read rates: 10 million a second on a 3B+ at \
    600 MHz (github.com/rsta2/circle issue 86)";
const WRITE_LOW: &str = "assumption: two clocks of the peripheral bus, 400 MHz as the core clock is, \
    the fewest of a transfer";
const WRITE_HIGH: &str = "assumption: a register read's time, if the block takes no posted writes";
const TIMER_LOW: &str = "assumption: 10 clocks of 1.2 GHz, an ISB that finds nothing to wait for";
const TIMER_HIGH: &str =
    "assumption: a register read's time, as where the counter is behind a bridge";
