//! Costs of boards with TI's Sitara.
//!
//! *Read first*: the `Source` of every figure below.
//!
//! The Cortex-A8 has no timer of its own. Its tick counter is DMTIMER2: what Linux takes as its clock source,
//! what bare metal would take, and what a process that maps registers can read.

use super::{
    ACK, ENTRY_HIGH, ENTRY_LOW, EXIT_HIGH, EXIT_LOW, IPC_HALF, IPC_ISSUE_WIDTH, IRQ_PUBLISHED,
    LOOP_COUNTED, Profile, Sources, WAKE_PUBLISHED, figure, ranged,
};

const WRITE: &str = "assumption: as published for this board's GPIO through /dev/mem: a square wave of 2.8 \
    MHz, 357 ns a period, two writes (hackaday.com/2013/12/07/speeding-up-beaglebone-black-gpio-a-thousand-times); \
    that is 17.9 clocks of L4_PER (100 MHz), where i.MX RT1166's bridge has 18.4 of its own; to be \
    replaced by a measurement of the controller's registers";
const READ: &str = "assumption: a read waits for the round trip, taken as about 1.6 x the posted write; to be \
    replaced by a measurement on silicon";
const ACCESS_LOW: &str = "assumption: as on imx8mp, x 66 / 100, its low end";
const ACCESS_HIGH: &str =
    "assumption: twice the figure used, for another master on the interconnect";
const SCALED_THREADS: &str = "assumption: as on imx8mp, x 1.6 for the clock (1.6 GHz to 1 GHz) and \
    x 1.15 for the core (as for ipc_milli); to be replaced by a measurement on silicon";
const SCALED_THREADS_LOW: &str = "assumption: as on imx8mp, x 1.6 x 1.15, its low end";
const SCALED_THREADS_HIGH: &str = "assumption: as on imx8mp, x 1.6 x 1.15, its high end";

const READS: Sources = [ACCESS_LOW, READ, ACCESS_HIGH];
const WRITES: Sources = [ACCESS_LOW, WRITE, ACCESS_HIGH];
const THREADS: Sources = [SCALED_THREADS_LOW, SCALED_THREADS, SCALED_THREADS_HIGH];
const WAKES: Sources = [SCALED_THREADS_LOW, SCALED_THREADS, WAKE_PUBLISHED];
const IRQ_THREADS: Sources = [SCALED_THREADS_LOW, SCALED_THREADS, IRQ_PUBLISHED];

impl Profile {
    /// BeagleBone Black: AM3358, one Cortex-A8.
    pub const BEAGLEBONE: Self = Self {
        name: "beaglebone",
        cpu_hz: figure(1_000_000_000, "AM335x data sheet (SPRS717): Cortex-A8, Nitro mode, 1 GHz"),
        ipc_milli: figure(
            870,
            "assumption: the dual-issue Cortex-A8 against the Cortex-A53's one instruction a clock as \
             their Dhrystone figures stand, 2.0 to the 2.3 DMIPS/MHz commonly given for the A53; to \
             be replaced by a count on silicon",
        )
        .from(435, IPC_HALF)
        .to(2_000, IPC_ISSUE_WIDTH),
        register_read_ps: ranged([49_500, 286_000, 572_000], READS),
        register_write_ps: ranged([30_500, 178_500, 357_000], WRITES),
        gpio_read_ps: ranged([49_500, 286_000, 572_000], READS),
        gpio_write_ps: ranged([30_500, 178_500, 357_000], WRITES),
        write_ack_ps: ranged([19_000, 107_500, 215_000], ACK),
        instructions_per_access: figure(4, LOOP_COUNTED),
        timer_read_ps: figure(
            286_000,
            "assumption: TCRR of DMTIMER2 is a register behind the same interconnect: a register read",
        )
        .from(49_500, ACCESS_LOW)
        .to(572_000, ACCESS_HIGH),
        timer_frequency_hz: figure(
            24_000_000,
            "Linux am33xx.dtsi: DMTIMER2 counts sys_clkin_ck, the boards' crystal of 24 MHz",
        ),
        reference_hz: figure(
            48_000_000,
            "AM335x manual (SPRUH73), 24.2, clocks of McSPI: PER_CLKOUTM2 / 4, 48 MHz",
        ),
        context_switch_ps: ranged([2_736_000, 3_220_000, 5_365_000], THREADS),
        wake_ps: ranged([4_928_000, 5_796_000, 25_000_000], WAKES),
        wake_call_ps: ranged([4_379_000, 5_152_000, 8_587_000], THREADS),
        futex_call_ps: ranged([1_369_000, 1_610_000, 2_683_000], THREADS),
        irq_thread_ps: ranged([8_839_000, 10_396_000, 38_000_000], IRQ_THREADS),
        interrupt_latency_ps: figure(
            501_000,
            "assumption: 100 clocks to the handler (a best case published for the Cortex-A9: \
             jblopen.com/arm-cortex-a-interrupt-latency), a register read's time to ask INTC, 100 \
             instructions to save registers and find the handler; to be replaced by a measurement on \
             silicon",
        )
        .from(199_500, ENTRY_LOW)
        .to(2_580_000, ENTRY_HIGH),
        interrupt_exit_ps: figure(
            293_500,
            "assumption: a posted register write's time to end the interrupt at INTC, 100 \
             instructions to restore registers; to be replaced by a measurement on silicon",
        )
        .from(80_500, EXIT_LOW)
        .to(587_000, EXIT_HIGH),
    };
}
