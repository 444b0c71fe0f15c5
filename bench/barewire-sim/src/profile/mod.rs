//! The costs of a board: time per register access and per instruction, each figure with its source.
//!
//! *Read first*: the `Source` of every figure below. Where a figure is an assumption it says so,
//! and by what it is to be replaced.
//!
//! # How it works
//! A [`Profile`] is data. The simulated board charges every register access its time plus the few
//! instructions of the loop around it, and CPU work as instructions over rate. No cost is zero:
//! a free access would let a driver poll without being seen. The boards' own stand in one file for
//! each family of SoCs.
//!
//! An assumed figure is a range: the figure used, and the lowest and the highest that its sources
//! allow. [`Profile::at`] charges one end of all ranges at once, which bounds what all assumptions
//! together can do to a simulated time.
//!
//! # Not supported
//! Combinations of low and high ends, whose errors partly cancel: [`Profile::at`] takes all low
//! ends or all high ends. Caches, pipelining of accesses (each posted write takes its full
//! time), interconnect load.

mod calxeda;
mod cost_file;
mod imx;
mod rpi;
mod sam;
mod sifive;
mod ti;
mod zynq;

pub use cost_file::{CostFile, FileCost};

use crate::chip::{PS_PER_S, Ps};
use crate::engine::Costs;

/// One row of [`Profile::sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The field of [`Profile`] it stands for.
    pub field: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The figure, its range and where they come from.
    pub figure: Figure,
}

/// Which end of each figure's range a board charges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CostLevel {
    /// The cheapest that the sources allow.
    Low,
    /// The figure that all tables use.
    #[default]
    Used,
    /// The dearest that the sources allow.
    High,
}

impl CostLevel {
    /// All three, cheapest first.
    pub const ALL: [Self; 3] = [Self::Low, Self::Used, Self::High];

    /// The level at which a rate costs what a time costs at this one: a high rate is cheap.
    const fn of_a_rate(self) -> Self {
        match self {
            Self::Low => Self::High,
            Self::Used => Self::Used,
            Self::High => Self::Low,
        }
    }
}

/// A figure, how far it can be trusted, and where it comes from. All values are in the unit that the
/// field's name ends with; `0 < low <= value <= high`. A figure that was counted, or that a data
/// sheet states, has no range: both ends are the figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The value charged.
    pub value: u64,
    /// The lowest value that the sources allow.
    pub low: u64,
    /// The highest value that the sources allow.
    pub high: u64,
    /// The source of the value; an assumption begins with that word.
    pub source: &'static str,
    /// The source of the low end.
    pub low_source: &'static str,
    /// The source of the high end.
    pub high_source: &'static str,
}

impl Figure {
    /// The value at `level`.
    #[must_use]
    pub const fn at(&self, level: CostLevel) -> u64 {
        match level {
            CostLevel::Low => self.low,
            CostLevel::Used => self.value,
            CostLevel::High => self.high,
        }
    }

    /// Sets the lower end of the range, with its source.
    const fn from(self, low: u64, low_source: &'static str) -> Self {
        Self { low, low_source, ..self }
    }

    /// Sets the upper end of the range, with its source.
    const fn to(self, high: u64, high_source: &'static str) -> Self {
        Self { high, high_source, ..self }
    }
}

/// A figure without a range.
pub(crate) const fn figure(value: u64, source: &'static str) -> Figure {
    Figure { value, low: value, high: value, source, low_source: source, high_source: source }
}

/// The sources of a figure's low end, value and high end.
type Sources = [&'static str; 3];

/// A figure with its range: low end, value, high end.
const fn ranged(
    [low, value, high]: [u64; 3],
    [low_source, source, high_source]: Sources,
) -> Figure {
    Figure { value, low, high, source, low_source, high_source }
}

/// The costs of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The board's name.
    pub name: &'static str,
    /// The processor's clock.
    pub cpu_hz: Figure,
    /// Instructions per clock, in thousandths.
    pub ipc_milli: Figure,
    /// A register read of the controller, from the load to its data.
    pub register_read_ps: Figure,
    /// A register write of the controller, posted, in a row of such writes.
    pub register_write_ps: Figure,
    /// A register read of a GPIO block.
    pub gpio_read_ps: Figure,
    /// A register write of a GPIO block, posted, in a row of such writes.
    pub gpio_write_ps: Figure,
    /// From a posted write's arrival to its acknowledgement: what a barrier after it waits for.
    pub write_ack_ps: Figure,
    /// Instructions of the loop around one register access.
    pub instructions_per_access: Figure,
    /// A read of the tick counter.
    pub timer_read_ps: Figure,
    /// The tick counter's rate.
    pub timer_frequency_hz: Figure,
    /// The controller's reference clock, before its own dividers.
    pub reference_hz: Figure,
    /// [`Costs::context_switch_ps`].
    pub context_switch_ps: Figure,
    /// [`Costs::wake_ps`].
    pub wake_ps: Figure,
    /// [`Costs::wake_call_ps`].
    pub wake_call_ps: Figure,
    /// [`Costs::futex_call_ps`].
    pub futex_call_ps: Figure,
    /// [`Costs::irq_thread_ps`].
    pub irq_thread_ps: Figure,
    /// [`Costs::interrupt_latency_ps`].
    pub interrupt_latency_ps: Figure,
    /// [`Costs::interrupt_exit_ps`].
    pub interrupt_exit_ps: Figure,
}

const IPC_ASSUMED_A53: &str = "assumption: the in-order dual-issue Cortex-A53 sustains one \
    instruction a clock on driver code; to be replaced by a count on silicon";
const IPC_ISSUE_WIDTH: &str = "two instructions a clock are the most this core issues";
const IPC_HALF: &str = "assumption: as far below one instruction a clock as the issue width is \
    above, for cache misses and dependent loads; it has to contain too what separates the counts of \
    instructions, of x86-64, from those of the board's own";

const IRQ_PUBLISHED: &str = "published for a Raspberry Pi 2 (900 MHz Cortex-A7), at most: 5 us \
    until the interrupt's code runs, 8 us of it, 25 us (19 at least) until the woken worker runs; \
    taken unscaled (msperl/spi-bcm2835 issue 11, Martin Sperl, 28 February 2015, \
    github.com/msperl/spi-bcm2835/issues/11)";
const WAKE_PUBLISHED: &str = "published for a Raspberry Pi 2 (900 MHz Cortex-A7): 19 to 25 us until \
    a woken worker runs; the longest, taken unscaled (msperl/spi-bcm2835 issue 11, Martin Sperl, \
    28 February 2015, github.com/msperl/spi-bcm2835/issues/11)";
const ENTRY_LOW: &str = "assumption: the same parts, the register read and the rate of instructions \
    at their cheap ends";
const ENTRY_HIGH: &str = "assumption: the same parts, the register read and the rate of instructions \
    at their dear ends, and instead of 100 clocks to the handler 1,778, the largest of 2 million \
    published for a Cortex-A9 whose caches other work fills, taken as clocks of the core \
    (jblopen.com/improving-interrupt-latency-on-the-cortex-a9)";
const EXIT_LOW: &str = "assumption: the same parts at their cheap ends";
const EXIT_HIGH: &str = "assumption: the same parts at their dear ends";
const EXIT_ASSUMED: &str = "assumption: a posted register write's time to end the interrupt at the \
    GIC, 100 instructions to restore registers; to be replaced by a measurement on silicon";
const EXIT: Sources = [EXIT_LOW, EXIT_ASSUMED, EXIT_HIGH];
const LOOP_COUNTED: &str = "counted: load or store of the datum, step, compare, branch";

const ACK_ASSUMED: &str = "assumption: DSB waits until a posted write is acknowledged, as late as \
    a read's data would have come: register_read_ps less register_write_ps; to be replaced by a \
    measurement on silicon";
const ACK_LOW: &str = "assumption: the low ends of register_read_ps and register_write_ps, one less \
    the other";
const ACK_HIGH: &str = "assumption: the high ends of register_read_ps and register_write_ps, one \
    less the other";
const ACK: Sources = [ACK_LOW, ACK_ASSUMED, ACK_HIGH];

/// All profiles, in the order of their names.
static ALL: [Profile; 10] = [
    Profile::BEAGLEBONE,
    Profile::HIGHBANK,
    Profile::IMX6DL,
    Profile::IMX8MP,
    Profile::RPI3,
    Profile::RPI5,
    Profile::SABRELITE,
    Profile::SAMA5D36,
    Profile::UNLEASHED,
    Profile::ZYNQ,
];

impl Profile {
    /// All profiles' names, in the order of the alphabet.
    #[must_use]
    pub fn names() -> [&'static str; ALL.len()] {
        ALL.each_ref().map(|profile| profile.name)
    }

    /// The profile called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|profile| profile.name == name)
    }

    /// All figures with unit and source, to print.
    #[must_use]
    pub fn sources(&self) -> [Source; 18] {
        let row = |field, unit, figure| Source { field, unit, figure };
        [
            row("cpu_hz", "Hz", self.cpu_hz),
            row("ipc_milli", "instructions/1000 clocks", self.ipc_milli),
            row("register_read_ps", "ps", self.register_read_ps),
            row("register_write_ps", "ps", self.register_write_ps),
            row("gpio_read_ps", "ps", self.gpio_read_ps),
            row("gpio_write_ps", "ps", self.gpio_write_ps),
            row("write_ack_ps", "ps", self.write_ack_ps),
            row("instructions_per_access", "instructions", self.instructions_per_access),
            row("timer_read_ps", "ps", self.timer_read_ps),
            row("timer_frequency_hz", "Hz", self.timer_frequency_hz),
            row("reference_hz", "Hz", self.reference_hz),
            row("context_switch_ps", "ps", self.context_switch_ps),
            row("wake_ps", "ps", self.wake_ps),
            row("wake_call_ps", "ps", self.wake_call_ps),
            row("futex_call_ps", "ps", self.futex_call_ps),
            row("irq_thread_ps", "ps", self.irq_thread_ps),
            row("interrupt_latency_ps", "ps", self.interrupt_latency_ps),
            row("interrupt_exit_ps", "ps", self.interrupt_exit_ps),
        ]
    }

    /// The figure of a field of [`Profile::sources`]; `None` if there is no such field.
    fn figure_mut(&mut self, field: &str) -> Option<&mut Figure> {
        Some(match field {
            "cpu_hz" => &mut self.cpu_hz,
            "ipc_milli" => &mut self.ipc_milli,
            "register_read_ps" => &mut self.register_read_ps,
            "register_write_ps" => &mut self.register_write_ps,
            "gpio_read_ps" => &mut self.gpio_read_ps,
            "gpio_write_ps" => &mut self.gpio_write_ps,
            "write_ack_ps" => &mut self.write_ack_ps,
            "instructions_per_access" => &mut self.instructions_per_access,
            "timer_read_ps" => &mut self.timer_read_ps,
            "timer_frequency_hz" => &mut self.timer_frequency_hz,
            "reference_hz" => &mut self.reference_hz,
            "context_switch_ps" => &mut self.context_switch_ps,
            "wake_ps" => &mut self.wake_ps,
            "wake_call_ps" => &mut self.wake_call_ps,
            "futex_call_ps" => &mut self.futex_call_ps,
            "irq_thread_ps" => &mut self.irq_thread_ps,
            "interrupt_latency_ps" => &mut self.interrupt_latency_ps,
            "interrupt_exit_ps" => &mut self.interrupt_exit_ps,
            _ => return None,
        })
    }

    /// A copy of the board with every figure at one end of its range: times at `level`, rates at
    /// the opposite end, because work costs more on a slower processor.
    #[must_use]
    pub fn at(&self, level: CostLevel) -> Self {
        let mut at = self.clone();
        // Every field is named: a new one must say which it is.
        let Self {
            name: _,
            cpu_hz,
            ipc_milli,
            register_read_ps,
            register_write_ps,
            gpio_read_ps,
            gpio_write_ps,
            write_ack_ps,
            instructions_per_access,
            timer_read_ps,
            timer_frequency_hz,
            reference_hz,
            context_switch_ps,
            wake_ps,
            wake_call_ps,
            futex_call_ps,
            irq_thread_ps,
            interrupt_latency_ps,
            interrupt_exit_ps,
        } = &mut at;
        for cost in [
            register_read_ps,
            register_write_ps,
            gpio_read_ps,
            gpio_write_ps,
            write_ack_ps,
            instructions_per_access,
            timer_read_ps,
            context_switch_ps,
            wake_ps,
            wake_call_ps,
            futex_call_ps,
            irq_thread_ps,
            interrupt_latency_ps,
            interrupt_exit_ps,
        ] {
            cost.value = cost.at(level);
        }
        for rate in [cpu_hz, ipc_milli, timer_frequency_hz, reference_hz] {
            rate.value = rate.at(level.of_a_rate());
        }
        at
    }

    /// The costs of simulated threads.
    #[must_use]
    pub fn thread_costs(&self) -> Costs {
        Costs {
            context_switch_ps: self.context_switch_ps.value,
            wake_ps: self.wake_ps.value,
            wake_call_ps: self.wake_call_ps.value,
            futex_call_ps: self.futex_call_ps.value,
            interrupt_latency_ps: self.interrupt_latency_ps.value,
            interrupt_exit_ps: self.interrupt_exit_ps.value,
            irq_thread_ps: self.irq_thread_ps.value,
        }
    }

    /// How long `instructions` take, rounded up; saturates.
    #[must_use]
    pub fn instructions_ps(&self, instructions: u64) -> Ps {
        // The tests refuse a profile with a rate of zero. Other code must still not divide by it.
        let rate = (u128::from(self.cpu_hz.value) * u128::from(self.ipc_milli.value)).max(1);
        let ps = (u128::from(instructions) * u128::from(PS_PER_S) * 1_000).div_ceil(rate);
        Ps::try_from(ps).unwrap_or(Ps::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::boards;

    #[test]
    fn every_cost_is_above_zero_and_has_a_unit_and_a_source() {
        for profile in boards().map(|board| &board.profile) {
            for Source { field, unit, figure } in profile.sources() {
                let Figure { value, low, high, source, low_source, high_source } = figure;
                assert!(0 < low && low <= value && value <= high, "{} {field}", profile.name);
                let sources = [source, low_source, high_source];
                assert!(!unit.is_empty() && sources.iter().all(|text| text.len() > 20), "{field}");
            }
            assert!(profile.instructions_ps(1) > 0);
        }
    }

    #[test]
    fn every_assumed_cost_is_a_range_and_each_end_has_a_source_of_its_own() {
        for profile in boards().map(|board| &board.profile) {
            for Source { field, figure, .. } in profile.sources() {
                let Figure { value, low, high, source, low_source, high_source } = figure;
                let name = profile.name;
                // Another reference clock is another clock on the wire, not another cost.
                if source.starts_with("assumption") && field != "reference_hz" {
                    assert!(low < value && value < high, "{name} {field}: {low} {value} {high}");
                }
                assert_eq!(low == value, low_source == source, "{name} {field}");
                assert_eq!(high == value, high_source == source, "{name} {field}");
            }
        }
    }

    #[test]
    fn low_costs_are_lower_and_high_ones_higher_whether_times_or_rates() {
        for profile in boards().map(|board| &board.profile) {
            assert_eq!(profile.at(CostLevel::Used), *profile);
            let [low, used, high] = CostLevel::ALL.map(|level| profile.at(level));
            let instructions = [&low, &used, &high].map(|profile| profile.instructions_ps(1_000));
            assert!(instructions.is_sorted() && instructions[0] < instructions[2]);
            let reads = [&low, &used, &high].map(|profile| profile.register_read_ps.value);
            assert!(reads.is_sorted() && reads[0] < reads[2], "{reads:?}");
            let irqs = [&low, &used, &high].map(|profile| profile.thread_costs().irq_thread_ps);
            assert!(irqs.is_sorted() && irqs[0] < irqs[2], "{irqs:?}");
        }
    }

    #[test]
    fn the_ranges_contain_what_is_published() {
        let Profile { register_read_ps, register_write_ps, irq_thread_ps, .. } = Profile::IMX8MP;
        // 92 ns at a bus clock of 200 MHz become 279 ns at 66 MHz; a read takes about 1.6 times
        // that.
        assert!(register_write_ps.high >= 92_000 * 200 / 66);
        assert!(register_read_ps.high >= 446_000);
        // Entry, handler and wake-up of a worker on a Raspberry Pi 2, at most.
        assert!(irq_thread_ps.high >= (5 + 8 + 25) * 1_000_000);
    }

    /// The price list of guests (docs/priced.md) charges what simulated boards charge.
    #[test]
    fn the_price_list_of_guests_has_these_prices() {
        let mut seen = 0;
        for line in include_str!("../../../../guests/prices.txt").lines() {
            let Some((_, named)) = line.split_once(" as in the simulator's profile ") else {
                continue;
            };
            let (profile, field) = named.split_once(": ").expect("a profile and a figure");
            let row =
                |profile: &Profile| profile.sources().into_iter().find(|row| row.field == field);
            let figure = Profile::named(profile).and_then(row).expect(line).figure;
            let words: Vec<&str> = line.split_whitespace().skip(2).take(3).collect();
            let own = [figure.low, figure.value, figure.high].map(|value| value.to_string());
            assert_eq!(words, own, "{line}");
            seen += 1;
        }
        assert_eq!(seen, 10);
    }

    #[test]
    fn an_instruction_takes_its_time_rounded_up() {
        assert_eq!(Profile::IMX8MP.instructions_ps(1), 625);
        assert_eq!(Profile::IMX8MP.instructions_ps(0), 0);
        assert_eq!(Profile::IMX8MP.instructions_ps(1_600_000_000), PS_PER_S);
        assert_eq!(Profile::SABRELITE.instructions_ps(3), 3_000);
        assert_eq!(Profile::SABRELITE.instructions_ps(u64::MAX), Ps::MAX);
        let mut odd = Profile::IMX8MP;
        odd.cpu_hz.value = 3_000_000_000;
        assert_eq!(odd.instructions_ps(1), 334);
    }
}
