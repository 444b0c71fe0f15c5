//! Costs of boards with SiFive's FU540-C000.
//!
//! *Read first*: the `Source` of every figure below.
//!
//! No measurement of a register access on this chip was found: the figures of accesses are counts of
//! bus clocks that are assumed, with wide ranges.

use super::{
    ACK, ENTRY_HIGH, ENTRY_LOW, EXIT_HIGH, EXIT_LOW, IRQ_PUBLISHED, LOOP_COUNTED, Profile, Sources,
    WAKE_PUBLISHED, figure, ranged,
};

const READ: &str = "assumption: 20 clocks of tlclk, 500 MHz, there and back through the core's, the \
    system's and the peripheral crossbar; to be replaced by a measurement on silicon";
const READ_LOW: &str = "assumption: 10 clocks of tlclk";
const READ_HIGH: &str = "assumption: 100 clocks of tlclk, other traffic on the way";
const WRITE: &str = "assumption: 10 clocks of tlclk, 500 MHz, one way of a read; to be replaced by a \
    measurement on silicon";
const WRITE_LOW: &str = "assumption: two clocks of tlclk, the fewest of a transfer";
const WRITE_HIGH: &str = "assumption: 50 clocks of tlclk, other traffic on the way";
const SCALED_THREADS: &str = "assumption: as on imx8mp, x 1.6 for the clock (1.6 GHz to 1 GHz) and \
    x 1.353 for the core (as for ipc_milli); to be replaced by a measurement on silicon";
const SCALED_THREADS_LOW: &str = "assumption: as on imx8mp, x 1.6 x 1.353, its low end";
const SCALED_THREADS_HIGH: &str = "assumption: as on imx8mp, x 1.6 x 1.353, its high end";

const READS: Sources = [READ_LOW, READ, READ_HIGH];
const WRITES: Sources = [WRITE_LOW, WRITE, WRITE_HIGH];
const THREADS: Sources = [SCALED_THREADS_LOW, SCALED_THREADS, SCALED_THREADS_HIGH];
const WAKES: Sources = [SCALED_THREADS_LOW, SCALED_THREADS, WAKE_PUBLISHED];
const IRQ_THREADS: Sources = [SCALED_THREADS_LOW, SCALED_THREADS, IRQ_PUBLISHED];

impl Profile {
    /// SiFive HiFive Unleashed: FU540-C000, four U54 cores.
    pub const UNLEASHED: Self = Self {
        name: "unleashed",
        cpu_hz: figure(
            1_000_000_000,
            "the board's boot code sets corepll to 1 GHz (SiFive, freedom-u540-c000-bootloader, fsbl)",
        ),
        ipc_milli: figure(
            739,
            "assumption: the single-issue U54 against the Cortex-A53's one instruction a clock as \
             their Dhrystone figures stand, 1.7 to the 2.3 DMIPS/MHz commonly given for the A53; to \
             be replaced by a count on silicon",
        )
        .from(370, "assumption: half the figure used, for cache misses and dependent loads")
        .to(1_000, "one instruction a clock is the most this core issues"),
        register_read_ps: ranged([20_000, 40_000, 200_000], READS),
        register_write_ps: ranged([4_000, 20_000, 100_000], WRITES),
        gpio_read_ps: ranged([20_000, 40_000, 200_000], READS),
        gpio_write_ps: ranged([4_000, 20_000, 100_000], WRITES),
        write_ack_ps: ranged([16_000, 20_000, 100_000], ACK),
        instructions_per_access: figure(4, LOOP_COUNTED),
        timer_read_ps: figure(
            5_000,
            "assumption: 5 clocks of 1 GHz for a read of the CSR cycle and a fence before it; to be \
             replaced by a measurement on silicon",
        )
        .from(3_000, "assumption: 3 clocks of 1 GHz, a fence that finds nothing to wait for")
        .to(40_000, "assumption: a register read's time, as of a fence that waits for one"),
        timer_frequency_hz: figure(1_000_000_000, "the CSR cycle counts clocks of the core"),
        reference_hz: figure(
            500_000_000,
            "tlclk, which clocks SPI: half of corepll (SiFive FU540-C000 Manual, chapter \"Clocking \
             and Reset\")",
        ),
        context_switch_ps: ranged([3_219_000, 3_789_000, 6_313_000], THREADS),
        wake_ps: ranged([5_798_000, 6_820_000, 25_000_000], WAKES),
        wake_call_ps: ranged([5_153_000, 6_062_000, 10_104_000], THREADS),
        futex_call_ps: ranged([1_611_000, 1_894_000, 3_157_000], THREADS),
        irq_thread_ps: ranged([10_401_000, 12_232_000, 38_000_000], IRQ_THREADS),
        interrupt_latency_ps: figure(
            275_000,
            "assumption: 100 clocks to the handler (a best case published for the Cortex-A9: \
             jblopen.com/arm-cortex-a-interrupt-latency), a register read's time to claim at the \
             PLIC, 100 instructions to save registers and find the handler; to be replaced by a \
             measurement on silicon",
        )
        .from(220_000, ENTRY_LOW)
        .to(2_248_000, ENTRY_HIGH),
        interrupt_exit_ps: figure(
            155_000,
            "assumption: a posted register write's time to complete the interrupt at the PLIC, 100 \
             instructions to restore registers; to be replaced by a measurement on silicon",
        )
        .from(104_000, EXIT_LOW)
        .to(370_000, EXIT_HIGH),
    };
}
