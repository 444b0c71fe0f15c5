//! Costs of boards with Atmel's SAM.
//!
//! *Read first*: the `Source` of every figure below.
//!
//! The Cortex-A5 has neither the timer of later cores nor a private one here. Its tick counter is
//! a channel of a timer counter block (TC), 32 bits wide in SAMA5D3: what Linux takes as its clock
//! source, what bare metal would take, and what a process that maps registers can read.

use super::{
    ACK_ASSUMED, ACK_HIGH, ACK_LOW, ENTRY_HIGH, ENTRY_LOW, EXIT_HIGH, EXIT_LOW, LOOP_COUNTED,
    Profile, figure,
};

const SCALED_ACCESS: &str = "assumption: as on imx8mp, x 66 / 132 for the bus clock: the bridge, \
    not the core, sets the cost, and is taken to need as many clocks of MCK (132 MHz) as AIPS \
    needs of 66 MHz; to be replaced by a measurement on silicon";

const SCALED_THREADS: &str = "assumption: as on imx8mp, x 3.03 for the clock (1.6 GHz to 528 MHz) \
    and x 1.46 for the core (as for ipc_milli); to be replaced by a measurement on silicon";

const CLOCKS: &str = "SAMA5D3 Series data sheet: Cortex-A5, up to 536 MHz; 528 MHz is what the \
    boards' boot code makes of their 12 MHz crystal (NuttX sama5d3x-ek, board_528mhz.h: x 44)";

const SCALED_LOW: &str = "assumption: as on imx8mp, x 66 / 132, its low end";
const SCALED_HIGH: &str = "assumption: as on imx8mp, x 66 / 132, its high end";
const SCALED_THREADS_LOW: &str = "assumption: as on imx8mp, x 3.03 x 1.46, its low end";
const SCALED_THREADS_HIGH: &str = "assumption: as on imx8mp, x 3.03 x 1.46, its high end";
const WAKE_SCALED: &str = "assumption: 25 us until a woken worker runs, published for a Raspberry Pi 2 \
    (msperl/spi-bcm2835 issue 11), x 900 / 528 for the clock";
const IRQ_SCALED: &str = "assumption: 5 + 8 + 25 us from an interrupt to the woken worker, published for \
    a Raspberry Pi 2 (msperl/spi-bcm2835 issue 11), x 900 / 528 for the clock";
const IPC_LOW: &str = "assumption: half the figure used, for cache misses and dependent loads";
const IPC_HIGH: &str = "one instruction a clock is the most this core issues";

impl Profile {
    /// Atmel SAMA5D36-EK: one Cortex-A5.
    pub const SAMA5D36: Self = Self {
        name: "sama5d36",
        cpu_hz: figure(528_000_000, CLOCKS),
        ipc_milli: figure(
            683,
            "assumption: the single-issue Cortex-A5 against the Cortex-A53's one instruction a \
             clock as their Dhrystone figures stand, 1.57 to the 2.3 DMIPS/MHz commonly given for \
             the A53; to be replaced by a count on silicon",
        )
        .from(341, IPC_LOW)
        .to(1_000, IPC_HIGH),
        register_read_ps: figure(75_000, SCALED_ACCESS)
            .from(37_500, SCALED_LOW)
            .to(223_000, SCALED_HIGH),
        register_write_ps: figure(46_000, SCALED_ACCESS)
            .from(23_000, SCALED_LOW)
            .to(139_500, SCALED_HIGH),
        gpio_read_ps: figure(75_000, SCALED_ACCESS)
            .from(37_500, SCALED_LOW)
            .to(223_000, SCALED_HIGH),
        gpio_write_ps: figure(46_000, SCALED_ACCESS)
            .from(23_000, SCALED_LOW)
            .to(139_500, SCALED_HIGH),
        write_ack_ps: figure(29_000, ACK_ASSUMED).from(14_500, ACK_LOW).to(83_500, ACK_HIGH),
        instructions_per_access: figure(4, LOOP_COUNTED),
        timer_read_ps: figure(
            75_000,
            "assumption: TC_CV is a register behind the same bridge: a register read",
        )
        .from(37_500, SCALED_LOW)
        .to(223_000, SCALED_HIGH),
        timer_frequency_hz: figure(
            16_500_000,
            "Linux timer-atmel-tcb takes the largest of the dividers 2, 8, 32 and 128 that leaves \
             5 MHz: 132 MHz / 8",
        ),
        reference_hz: figure(
            132_000_000,
            "MCK, 528 MHz / 4 (NuttX sama5d3x-ek, board_528mhz.h), undivided: Linux sama5d3.dtsi \
             allows SPI1 up to 133 MHz",
        ),
        context_switch_ps: figure(7_770_000, SCALED_THREADS)
            .from(6_580_000, SCALED_THREADS_LOW)
            .to(12_900_000, SCALED_THREADS_HIGH),
        wake_ps: figure(13_980_000, SCALED_THREADS)
            .from(11_850_000, SCALED_THREADS_LOW)
            .to(42_614_000, WAKE_SCALED),
        wake_call_ps: figure(12_430_000, SCALED_THREADS)
            .from(10_530_000, SCALED_THREADS_LOW)
            .to(20_650_000, SCALED_THREADS_HIGH),
        futex_call_ps: figure(3_880_000, SCALED_THREADS)
            .from(3_290_000, SCALED_THREADS_LOW)
            .to(6_450_000, SCALED_THREADS_HIGH),
        irq_thread_ps: figure(25_080_000, SCALED_THREADS)
            .from(21_250_000, SCALED_THREADS_LOW)
            .to(64_773_000, IRQ_SCALED),
        interrupt_latency_ps: figure(
            542_000,
            "assumption: 100 clocks to the handler (a best case published for the Cortex-A9: \
             jblopen.com/arm-cortex-a-interrupt-latency), a register read's time to acknowledge at \
             the AIC, 100 instructions to save registers and find the handler; to be replaced by a \
             measurement on silicon",
        )
        .from(416_288, ENTRY_LOW)
        .to(4_145_830, ENTRY_HIGH),
        interrupt_exit_ps: figure(
            323_000,
            "assumption: a posted register write's time to end the interrupt at the AIC, 100 \
             instructions to restore registers; to be replaced by a measurement on silicon",
        )
        .from(212_394, EXIT_LOW)
        .to(694_909, EXIT_HIGH),
    };
}
