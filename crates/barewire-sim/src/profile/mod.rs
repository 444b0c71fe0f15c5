//! What a board costs: time per register access and per instruction, each figure with its source.
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
//! # Not supported
//! Caches, pipelining of accesses (each posted write takes its full time), interconnect load.

mod calxeda;
mod imx;
mod rpi;
mod sam;

use crate::chip::Ps;
use crate::engine::Costs;

const PS_PER_S: u64 = 1_000_000_000_000;

/// Where a figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The field of [`Profile`] it stands for.
    pub field: &'static str,
    /// The figure.
    pub value: u64,
    /// Its unit.
    pub unit: &'static str,
    /// The document or measurement it was taken from; an assumption begins with that word.
    pub source: &'static str,
}

/// What one figure is and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The figure, in the unit its field's name ends with.
    pub value: u64,
    /// Its source; an assumption begins with that word.
    pub source: &'static str,
}

const fn figure(value: u64, source: &'static str) -> Figure {
    Figure { value, source }
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
const EXIT_ASSUMED: &str = "assumption: a posted register write's time to end the interrupt at the \
    GIC, 100 instructions to restore registers; to be replaced by a measurement on silicon";
const LOOP_COUNTED: &str = "counted: load or store of the datum, step, compare, branch";

const ACK_ASSUMED: &str = "assumption: DSB waits until a posted write is acknowledged, as late as \
    a read's data would have come: register_read_ps less register_write_ps; to be replaced by a \
    measurement on silicon";

impl Profile {
    /// All figures with unit and source, to print.
    #[must_use]
    pub fn sources(&self) -> [Source; 18] {
        let row = |field, unit, figure: Figure| {
            let Figure { value, source } = figure;
            Source { field, value, unit, source }
        };
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

    /// What simulated threads cost.
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
        // A rate of zero would be a profile that the tests refuse; time still must not divide by it.
        let rate = (u128::from(self.cpu_hz.value) * u128::from(self.ipc_milli.value)).max(1);
        let ps = (u128::from(instructions) * u128::from(PS_PER_S) * 1_000).div_ceil(rate);
        Ps::try_from(ps).unwrap_or(Ps::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::spec::BOARDS;

    #[test]
    fn every_cost_is_above_zero_and_has_a_unit_and_a_source() {
        for profile in BOARDS.iter().map(|board| &board.profile) {
            for row in profile.sources() {
                assert!(row.value > 0, "{} {}", profile.name, row.field);
                assert!(!row.unit.is_empty() && row.source.len() > 20, "{row:?}");
            }
            assert!(profile.instructions_ps(1) > 0);
        }
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
