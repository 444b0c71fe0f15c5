//! Costs of Calxeda's Highbank.
//!
//! *Read first*: the `Source` of every figure below.
//!
//! No measurement on this SoC is published. Register accesses are scaled by
//! the clock of the bus they go through, the core by its own.

use super::{
    ACK, ENTRY_HIGH, ENTRY_LOW, EXIT, IPC_HALF, IPC_ISSUE_WIDTH, IRQ_PUBLISHED, LOOP_COUNTED,
    Profile, Sources, WAKE_PUBLISHED, figure, ranged,
};

const SCALED_ACCESS: &str = "assumption: as on imx8mp, x 66 / 150 for the bus clock: the bridge, \
    not the core, sets the cost, and is taken to need as many clocks of pclk (150 MHz in Linux \
    ecx-common.dtsi) as AIPS needs of 66 MHz; to be replaced by a measurement on silicon";

const SCALED_THREADS: &str = "assumption: as on sabrelite, / 1.4 for the clock of the same \
    Cortex-A9; to be replaced by a measurement on silicon";

const SCALED_LOW: &str = "assumption: as on imx8mp, x 66 / 150, its low end";
const SCALED_HIGH: &str = "assumption: as on imx8mp, x 66 / 150, its high end";
const SCALED_THREADS_LOW: &str = "assumption: as on sabrelite, / 1.4, its low end";
const SCALED_THREADS_HIGH: &str = "assumption: as on sabrelite, / 1.4, its high end";

const ACCESSES: Sources = [SCALED_LOW, SCALED_ACCESS, SCALED_HIGH];
const THREADS: Sources = [SCALED_THREADS_LOW, SCALED_THREADS, SCALED_THREADS_HIGH];
const WAKES: Sources = [SCALED_THREADS_LOW, SCALED_THREADS, WAKE_PUBLISHED];
const IRQ_THREADS: Sources = [SCALED_THREADS_LOW, SCALED_THREADS, IRQ_PUBLISHED];

impl Profile {
    /// Calxeda Highbank, ECX-1000: four Cortex-A9.
    pub const HIGHBANK: Self = Self {
        name: "highbank",
        cpu_hz: figure(
            1_400_000_000,
            "Calxeda EnergyCore ECX-1000 technical specifications: Cortex-A9, 1.1 to 1.4 GHz; the \
             fastest",
        ),
        ipc_milli: figure(
            1_000,
            "assumption: the Cortex-A9 sustains one instruction a clock on driver code; to be \
             replaced by a count on silicon",
        )
        .from(500, IPC_HALF)
        .to(2_000, IPC_ISSUE_WIDTH),
        register_read_ps: ranged([33_000, 196_240, 392_480], ACCESSES),
        register_write_ps: ranged([20_240, 122_760, 245_520], ACCESSES),
        gpio_read_ps: ranged([33_000, 196_240, 392_480], ACCESSES),
        gpio_write_ps: ranged([20_240, 122_760, 245_520], ACCESSES),
        write_ack_ps: ranged([12_760, 73_480, 146_960], ACK),
        instructions_per_access: figure(4, LOOP_COUNTED),
        timer_read_ps: figure(
            196_240,
            "assumption: the SP804's counter is a register behind the same bridge: a register read",
        )
        .from(33_000, SCALED_LOW)
        .to(392_480, SCALED_HIGH),
        timer_frequency_hz: figure(
            150_000_000,
            "Linux ecx-common.dtsi: the SP804, its clock source, is clocked by pclk, 150 MHz",
        ),
        reference_hz: figure(
            150_000_000,
            "assumption: SSPCLK is pclk, 150 MHz in Linux ecx-common.dtsi, as it is for the other \
             PrimeCells there; no document of Calxeda's says so",
        ),
        context_switch_ps: ranged([1_699_000, 2_000_000, 3_333_000], THREADS),
        wake_ps: ranged([3_061_000, 3_600_000, 25_000_000], WAKES),
        wake_call_ps: ranged([2_720_000, 3_200_000, 5_334_000], THREADS),
        futex_call_ps: ranged([850_000, 1_000_000, 1_666_000], THREADS),
        irq_thread_ps: ranged([5_490_000, 6_457_000, 38_000_000], IRQ_THREADS),
        interrupt_latency_ps: figure(
            339_240,
            "assumption: 100 clocks to the handler (a best case published for the Cortex-A9: \
             jblopen.com/arm-cortex-a-interrupt-latency), a register read's time to acknowledge at \
             the GIC, 100 instructions to save registers and find the handler; to be replaced by a \
             measurement on silicon",
        )
        .from(140_143, ENTRY_LOW)
        .to(1_805_337, ENTRY_HIGH),
        interrupt_exit_ps: ranged([55_955, 194_260, 388_378], EXIT),
    };
}
