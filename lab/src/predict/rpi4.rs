//! The costs of a Raspberry Pi 4: the Raspberry Pi 3's, with what is known of BCM2711 in their place.
//!
//! *Read first*: [`barewire_sim::profile`]. This is no board of the simulator's: it exists to be compared with a report.

use barewire_sim::profile::{Figure, Profile};

/// A figure with its range and one source for all of it.
const fn ranged([low, value, high]: [u64; 3], source: &'static str) -> Figure {
    Figure { value, low, high, source, low_source: source, high_source: source }
}

const READ: &str = "assumption: the middle of two read rates of GPIO that are published for a Raspberry Pi 4, as SPI0 is on the same bus: \
    5.7 million a second with the processor at 600 MHz (github.com/rsta2/circle/issues/140, October 2020), 120 ns a read under \
    Linux (github.com/google/periph/pull/445, June 2020); low: the first, shorter by the ratio that issue 86 there has between 600 \
    and 1,400 MHz; high: half as much again as the first";
const WRITE: &str = "published for GPIO of a Raspberry Pi 4: pairs of writes that clear and set a pin make a square wave of 52 MHz, \
    four writes a period (github.com/hzeller/rpi-gpio-dma-demo/issues/4, October 2020); high, assumption: a register read's \
    time, if the block takes no posted writes";
const ACK: &str = "assumption: register_read_ps less register_write_ps, as on the other boards";
const CLOCK: &str = "arm_freq=1500, the default of the Pi 4B up to revision 1.3 (raspberrypi/documentation, overclocking.adoc)";
const CORE: &str = "core_freq=500, the default of the Pi 4B (raspberrypi/documentation, overclocking.adoc); the kernel may lower it";
const IPC: &str = "assumption: the out-of-order Cortex-A72 sustains half as many instructions again as the Cortex-A53; low: as many; high: \
    the three that it decodes";
const COUNTER: &str = "54 MHz, the crystal's rate, as on the Raspberry Pi 5";
const TIMER: &str = "assumption: 40 clocks of 1.5 GHz; low: 10; high: 100";
const INTERRUPT: &str =
    "assumption: as on the Raspberry Pi 3, x 1200 / 1500 for the clock; high: unscaled";

/// The profile.
pub(super) fn profile() -> Profile {
    let of = Profile::RPI3;
    let scaled = |figure: Figure| {
        let faster = |ps: u64| ps * 1_200 / 1_500;
        ranged([faster(figure.low), faster(figure.value), figure.high], INTERRUPT)
    };
    let read = ranged([97_000, 148_000, 263_000], READ);
    let write = ranged([4_800, 4_800, 148_000], WRITE);
    Profile {
        name: "rpi4",
        cpu_hz: ranged([1_500_000_000; 3], CLOCK),
        ipc_milli: ranged([1_000, 1_500, 3_000], IPC),
        register_read_ps: read,
        register_write_ps: write,
        gpio_read_ps: read,
        gpio_write_ps: write,
        write_ack_ps: ranged([92_200, 143_200, 258_200], ACK),
        timer_read_ps: ranged([6_667, 26_667, 66_667], TIMER),
        timer_frequency_hz: ranged([54_000_000; 3], COUNTER),
        reference_hz: ranged([500_000_000; 3], CORE),
        irq_thread_ps: scaled(of.irq_thread_ps),
        interrupt_latency_ps: scaled(of.interrupt_latency_ps),
        interrupt_exit_ps: scaled(of.interrupt_exit_ps),
        // Threads are charged by counted instructions, see `Costs::process`.
        ..of
    }
}
