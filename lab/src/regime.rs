//! One physics for both sides: what a program's step costs, whoever wrote the program.
//!
//! *Read first*: [`crate::cost`], the costs named below.
//!
//! # How it works
//! An instruction takes its clocks, and in code that did not run a moment ago `cold` longer. A kernel's path asks for
//! that step by step ([`crate::machine`]). barewire's programs run on the bench, which charges them by the board's
//! profile; [`Costs::process`] makes a profile of the same costs: instructions by the same clocks, cold or not, threads
//! woken and switched by the same instructions, registers and interrupts by the same factors. What is left of the
//! board's own profile is what the kernel's path on that board uses too.

use std::fmt;

use barewire_sim::profile::Profile;
use serde::{Deserialize, Serialize};

use crate::cost::Costs;

/// The system calls of barewire's programs, besides what `syscall` costs: a UIO node read, written or polled, a futex.
const SHORT_CALL: &str = "short-call";

/// What a program's code did a moment before it is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Regime {
    /// Nothing: an interrupt starts it, and its instructions are `cold`.
    #[serde(rename = "after idle")]
    AfterIdle,
    /// The same: its instructions cost their clocks alone.
    #[default]
    #[serde(rename = "in a loop")]
    InALoop,
}

impl fmt::Display for Regime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::AfterIdle => "after idle",
            Self::InALoop => "in a loop",
        })
    }
}

impl Costs {
    /// The time of an instruction on a board, in picoseconds.
    pub(crate) fn instruction_ps(&self, profile: &Profile, regime: Regime) -> f64 {
        let rate = profile.cpu_hz.value as f64 * profile.ipc_milli.value as f64 / 1e3;
        let cold_ps = match regime {
            Regime::AfterIdle => self.get("cold") * 1e3,
            Regime::InALoop => 0.0,
        };
        self.get("clocks") / rate * 1e12 + cold_ps
    }

    /// The profile of a board on which a program costs what a kernel's path costs by this table.
    #[must_use]
    pub fn process(&self, of: &Profile, regime: Regime) -> Profile {
        let mut profile = self.profile(of);
        let instruction_ps = self.instruction_ps(&profile, regime);
        let warm_ps = self.instruction_ps(&profile, Regime::InALoop);
        let call = self.get("syscall") + self.get(SHORT_CALL);
        for (figure, ps) in [
            // The scheduler is never cold: see the costs of threads of [`crate::machine::Machine`].
            (&mut profile.context_switch_ps, self.get("context-switch") * warm_ps),
            (&mut profile.wake_call_ps, self.get("wake") * warm_ps),
            (&mut profile.wake_ps, self.get("wake-other") * 1e3),
            (&mut profile.futex_call_ps, call * instruction_ps),
        ] {
            figure.value = (ps.round() as u64).max(1);
        }
        // One instruction a clock, of a clock that is as long as an instruction takes.
        profile.cpu_hz.value = ((1e12 / instruction_ps).round() as u64).max(1);
        profile.ipc_milli.value = 1_000;
        profile
    }
}

#[cfg(test)]
mod tests {
    use barewire_sim::engine::Thread;
    use barewire_sim::{Board, BoardOptions, BoardSpec};
    use std::rc::Rc;

    use super::*;
    use crate::machine::Machine;

    /// What `body` takes on a machine with `profile`, whose kernel is as warm as `regime` says.
    fn taken(costs: &Costs, profile: Profile, regime: Regime, body: impl Fn(&Machine)) -> u64 {
        let spec = BoardSpec::find("imx8mp").expect("a board");
        let board =
            Board::new(spec, BoardOptions { profile: Some(profile), ..BoardOptions::default() });
        let machine = Machine::new(board, Rc::new(costs.fresh()), Rc::default());
        machine.set_cold(regime == Regime::AfterIdle);
        let board = machine.board();
        let before = board.engine().now_ps();
        board.engine().run(vec![Thread::new("one", || body(&machine)).on(0, 1)]);
        board.engine().now_ps() - before
    }

    #[test]
    fn the_same_instructions_take_a_program_as_long_as_a_kernel() {
        for costs in [Costs::assumed(), Costs::fitted()] {
            for regime in [Regime::AfterIdle, Regime::InALoop] {
                let of = &BoardSpec::find("imx8mp").expect("a board").profile;
                // 570 instructions, charged as a step of a kernel and as work of a program.
                let count = costs.get("regmap");
                let kernel = taken(&costs, costs.profile(of), regime, |machine| {
                    machine.charge("regmap", &["regmap"]);
                });
                let program = costs.process(of, regime).instructions_ps(count.round() as u64);
                let apart = kernel.abs_diff(program) as f64 / kernel as f64;
                assert!(apart < 0.002, "{regime}: {kernel} {program}");
                let threads = Machine::new(
                    Board::new(
                        BoardSpec::find("imx8mp").expect("a board"),
                        BoardOptions {
                            profile: Some(costs.profile(of)),
                            ..BoardOptions::default()
                        },
                    ),
                    Rc::new(costs.fresh()),
                    Rc::default(),
                );
                threads.set_cold(regime == Regime::AfterIdle);
                let (kernel, program) =
                    (threads.threads(), costs.process(of, regime).thread_costs());
                assert_eq!(kernel.context_switch_ps, program.context_switch_ps);
                assert_eq!(kernel.wake_call_ps, program.wake_call_ps);
                assert_eq!(kernel.wake_ps, program.wake_ps);
                assert_eq!(kernel.irq_thread_ps, program.irq_thread_ps);
                assert_eq!(kernel.interrupt_latency_ps, program.interrupt_latency_ps);
            }
        }
    }

    #[test]
    fn cold_code_is_dearer_and_registers_are_not() {
        let costs = Costs::fitted();
        let of = &BoardSpec::find("imx8mp").expect("a board").profile;
        let [cold, warm] =
            [Regime::AfterIdle, Regime::InALoop].map(|regime| costs.process(of, regime));
        assert!(cold.instructions_ps(1_000) > 3 * warm.instructions_ps(1_000));
        assert!(cold.futex_call_ps.value > 3 * warm.futex_call_ps.value);
        assert_eq!(cold.context_switch_ps, warm.context_switch_ps);
        assert_eq!(cold.register_read_ps, warm.register_read_ps);
    }
}
