//! Raspberry Pis.
//!
//! *Read first*: the module page of [`super`].

use super::{
    ACK, ACK_HIGH, EXIT, EXIT_HIGH, EXIT_LOW, IPC_ASSUMED_A53, IPC_HALF, IPC_ISSUE_WIDTH,
    IRQ_PUBLISHED, LOOP_COUNTED, Profile, Sources, WAKE_PUBLISHED, figure, ranged,
};

const THREADS: Sources = [SCALED_THREADS_LOW, SCALED_THREADS, SCALED_THREADS_HIGH];
const WAKES: Sources = [SCALED_THREADS_LOW, SCALED_THREADS, WAKE_PUBLISHED];
const IRQ_THREADS: Sources = [SCALED_THREADS_LOW, SCALED_THREADS, IRQ_PUBLISHED];

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
        write_ack_ps: ranged([47_956, 53_400, 92_400], ACK),
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
        context_switch_ps: ranged([1_983_000, 2_333_334, 3_888_000], THREADS),
        wake_ps: ranged([3_571_000, 4_200_000, 25_000_000], WAKES),
        wake_call_ps: ranged([3_173_000, 3_733_334, 6_223_000], THREADS),
        futex_call_ps: ranged([992_000, 1_166_667, 1_944_000], THREADS),
        irq_thread_ps: ranged([6_405_000, 7_533_334, 38_000_000], IRQ_THREADS),
        interrupt_latency_ps: figure(
            3_375_000,
            "assumption: the middle of 4 us to 5 us to the code of an interrupt, published for a Raspberry Pi 2 \
             (900 MHz Cortex-A7; msperl/spi-bcm2835 issue 11), x 900 / 1200 for the clock; to be replaced by a \
             measurement on silicon",
        ).from(
            236_113,
            "assumption: 100 clocks to the handler (a best case published for the Cortex-A9: \
             jblopen.com/arm-cortex-a-interrupt-latency), two register reads to find the source, at \
             the core's controller and at the one behind it, 100 instructions to save registers \
             and find the handler, all at their cheap ends",
        ).to(5_000_000, "the longest of the same source, unscaled"),
        interrupt_exit_ps: figure(
            83_334,
            "assumption: 100 instructions to restore registers; BCM2837's interrupt controllers \
             wait for no end of interrupt; to be replaced by a measurement on silicon",
        ).from(41_667, EXIT_LOW).to(166_667, EXIT_HIGH),
    };

    /// Raspberry Pi 5: BCM2712, four Cortex-A76; its SPI and GPIO blocks are in RP1, behind PCIe.
    ///
    /// A read waits for its answer to cross the link twice; a write is posted. The two differ by a
    /// factor of 40, so the number of reads decides what a message costs here.
    pub const RPI5: Self = Self {
        name: "rpi5",
        cpu_hz: figure(
            2_400_000_000,
            "Raspberry Pi Ltd, Raspberry Pi 5 product brief: quad-core Cortex-A76 at 2.4 GHz",
        ),
        ipc_milli: figure(
            2_000,
            "assumption: the out-of-order Cortex-A76 sustains two instructions a clock on driver \
             code; to be replaced by a count on silicon",
        ).from(1_000, "assumption: as the in-order Cortex-A53, where each access waits for the last")
        .to(4_000, "four instructions a clock are the most this core decodes"),
        register_read_ps: figure(1_500_000, RP1_READ).from(400_000, RP1_READ_LOW).to(2_000_000, RP1_READ_HIGH),
        register_write_ps: figure(
            25_000,
            "assumption: as a GPIO write: both blocks are behind the same link; to be replaced by a \
             measurement on silicon",
        ).from(14_000, RP1_WRITE_LOW).to(32_500, RP1_WRITE_HIGH),
        gpio_read_ps: figure(1_500_000, RP1_READ).from(400_000, RP1_READ_LOW).to(2_000_000, RP1_READ_HIGH),
        gpio_write_ps: figure(
            25_000,
            "measured on a Raspberry Pi 5 (192 million writes that set and clear a pin make a square \
             wave of 20 MHz: 50 ns a period, two writes; mstroh76, Pi 5 / RP1 bad performance if \
             read and write operations are alternating, January 2025, \
             github.com/WiringPi/WiringPi/issues/305)",
        ),
        write_ack_ps: figure(
            100_000,
            "assumption: the root complex acknowledges a posted write before it is sent, so that a \
             barrier delays it by a small, variable amount (P33M, pinctrl: rp1: jump through hoops \
             to avoid PCIe latency issues, July 2024, github.com/raspberrypi/linux/pull/6279), \
             taken as four writes; to be replaced by a measurement on silicon",
        ).from(25_000, "assumption: one write's time").to(
            1_967_500,
            ACK_HIGH,
        ),
        instructions_per_access: figure(4, LOOP_COUNTED),
        timer_read_ps: figure(
            16_667,
            "assumption: ISB and MRS CNTVCT_EL0, taken as 40 clocks of 2.4 GHz; to be replaced by \
             a measurement on silicon",
        ).from(4_167, "assumption: 10 clocks of 2.4 GHz, an ISB that finds nothing to wait for")
        .to(41_667, "assumption: 100 clocks of 2.4 GHz, an ISB that drains a full pipeline"),
        timer_frequency_hz: figure(
            54_000_000,
            "Linux's boot log on a Pi 5, arch_timer: cp15 timer(s) running at 54.00MHz: the \
             crystal's rate",
        ),
        reference_hz: figure(
            200_000_000,
            "RP1_CLK_SYS in Raspberry Pi's device tree rp1.dtsi (assigned-clock-rates), which \
             clocks SPI0 (ssi_clk)",
        ),
        context_switch_ps: figure(1_166_667, RPI5_THREADS).from(991_500, RPI5_THREADS_LOW).to(1_944_000, RPI5_THREADS_HIGH),
        wake_ps: figure(2_100_000, RPI5_THREADS).from(1_785_500, RPI5_THREADS_LOW).to(25_000_000, WAKE_PUBLISHED),
        wake_call_ps: figure(1_866_667, RPI5_THREADS).from(1_586_500, RPI5_THREADS_LOW).to(3_111_500, RPI5_THREADS_HIGH),
        futex_call_ps: figure(583_334, RPI5_THREADS).from(496_000, RPI5_THREADS_LOW).to(972_000, RPI5_THREADS_HIGH),
        irq_thread_ps: figure(3_766_667, RPI5_THREADS).from(3_202_500, RPI5_THREADS_LOW).to(38_000_000, IRQ_PUBLISHED),
        interrupt_latency_ps: figure(
            13_500_000,
            "assumption: the middle of 7 us to 20 us, by which the handler of a pin's interrupt is late on an \
             idle Raspberry Pi 5 (James Clark, September 2026, github.com/jclark/satpulse/issues/460); to be \
             replaced by a measurement on silicon",
        ).from(
            252_084,
            "assumption: RP1's message crosses the link in half of a register read's low end; 100 clocks \
             to the handler (a best case published for the Cortex-A9: \
             jblopen.com/arm-cortex-a-interrupt-latency), 100 instructions at the dearer rate to save \
             registers and find the handler",
        ).to(20_000_000, "the longest of the same source"),
        interrupt_exit_ps: ranged([24_417, 45_834, 74_167], EXIT),
    };
}

const SCALED_THREADS: &str = "assumption: as on imx8mp, x 4/3 for the clock: the same core at 1.2 \
    instead of 1.6 GHz; to be replaced by a measurement on silicon";
const SCALED_THREADS_LOW: &str = "assumption: as on imx8mp, x 4/3 for the clock, its low end";
const SCALED_THREADS_HIGH: &str = "assumption: as on imx8mp, x 4/3 for the clock, its high end";

const RPI5_THREADS: &str = "assumption: as on imx8mp, x 2/3 for the clock, 2.4 instead of 1.6 GHz, \
    though the core is another; to be replaced by a measurement on silicon";
const RPI5_THREADS_LOW: &str = "assumption: as on imx8mp, x 2/3 for the clock, its low end";
const RPI5_THREADS_HIGH: &str = "assumption: as on imx8mp, x 2/3 for the clock, its high end";

const RP1_READ: &str = "assumption: the middle of three that are published: about 1 us, which a program \
    that polls RP1's pins asks for (github.com/jclark/satpulse/issues/460), about 1.5 us, which it then has \
    between two reads (pull request 462 there, James Clark, September 2026), and about 1.6 us for a round trip \
    (P33M, February 2025, github.com/raspberrypi/linux/pull/6649); to be replaced by a measurement on silicon";
const RP1_READ_LOW: &str = "assumption: the time published for a change of a pin's mode, 19.2 million \
    in 7.68 s (mstroh76, January 2025, github.com/WiringPi/WiringPi/issues/305)";
const RP1_READ_HIGH: &str = "assumption: as far above as a link needs that other traffic keeps busy; \
    one that has to leave its power-saving state first takes longer still";
const RP1_WRITE_LOW: &str = "assumption: the link's own time: 28 bytes of a posted write, header and \
    framing included, at the 2 GB/s of PCIe 2.0 on four lanes";
const RP1_WRITE_HIGH: &str = "half of 65 ns, the time published for a pin that is set and cleared by \
    another library (rafael2k, GPIOLIB much slower than WiringPi on Pi 5, March 2024, \
    github.com/raspberrypi/utils/issues/73)";

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
