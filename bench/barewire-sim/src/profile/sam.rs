//! Costs of boards with Atmel's SAM.
//!
//! *Read first*: the `Source` of every figure below.
//!
//! The Cortex-A5 has neither the timer of later cores nor a private one here. Its tick counter is
//! a channel of a timer counter block (TC), 32 bits wide in SAMA5D3: what Linux takes as its clock
//! source, what bare metal would take, and what a process that maps registers can read.

use super::{
    ACK, ENTRY_HIGH, ENTRY_LOW, EXIT_HIGH, EXIT_LOW, LOOP_COUNTED, Profile, Sources, figure, ranged,
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

const ACCESSES: Sources = [SCALED_LOW, SCALED_ACCESS, SCALED_HIGH];
const THREADS: Sources = [SCALED_THREADS_LOW, SCALED_THREADS, SCALED_THREADS_HIGH];
const WAKES: Sources = [SCALED_THREADS_LOW, SCALED_THREADS, WAKE_SCALED];
const IRQ_THREADS: Sources = [SCALED_THREADS_LOW, SCALED_THREADS, IRQ_SCALED];

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
        register_read_ps: ranged([37_500, 223_000, 446_000], ACCESSES),
        register_write_ps: ranged([23_000, 139_500, 279_000], ACCESSES),
        gpio_read_ps: ranged([37_500, 223_000, 446_000], ACCESSES),
        gpio_write_ps: ranged([23_000, 139_500, 279_000], ACCESSES),
        write_ack_ps: ranged([14_500, 83_500, 167_000], ACK),
        instructions_per_access: figure(4, LOOP_COUNTED),
        timer_read_ps: figure(
            223_000,
            "assumption: TC_CV is a register behind the same bridge: a register read",
        )
        .from(37_500, SCALED_LOW)
        .to(446_000, SCALED_HIGH),
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
        context_switch_ps: ranged([6_580_000, 7_770_000, 12_900_000], THREADS),
        wake_ps: ranged([11_850_000, 13_980_000, 42_614_000], WAKES),
        wake_call_ps: ranged([10_530_000, 12_430_000, 20_650_000], THREADS),
        futex_call_ps: ranged([3_290_000, 3_880_000, 6_450_000], THREADS),
        irq_thread_ps: ranged([21_250_000, 25_080_000, 64_773_000], IRQ_THREADS),
        interrupt_latency_ps: figure(
            690_000,
            "assumption: 100 clocks to the handler (a best case published for the Cortex-A9: \
             jblopen.com/arm-cortex-a-interrupt-latency), a register read's time to acknowledge at \
             the AIC, 100 instructions to save registers and find the handler; to be replaced by a \
             measurement on silicon",
        )
        .from(416_288, ENTRY_LOW)
        .to(4_368_830, ENTRY_HIGH),
        interrupt_exit_ps: figure(
            416_500,
            "assumption: a posted register write's time to end the interrupt at the AIC, 100 \
             instructions to restore registers; to be replaced by a measurement on silicon",
        )
        .from(212_394, EXIT_LOW)
        .to(834_409, EXIT_HIGH),
    };
}
