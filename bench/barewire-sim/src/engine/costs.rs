//! The costs of threads and interrupts.

use crate::chip::{PS_PER_NS, Ps};

/// The costs of threads and interrupts. A board takes them from its
/// [profile](crate::profile::Profile::thread_costs).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A switch of a processor to another thread, charged to that thread.
    pub context_switch_ps: Ps,
    /// From the end of a wake call until a sleeper on another processor is ready.
    pub wake_ps: Ps,
    /// The waker's time to wake a sleeper.
    pub wake_call_ps: Ps,
    /// A wake call without a sleeper, or a wait call until it sleeps or finds the word changed.
    pub futex_call_ps: Ps,
    /// From the rise of the line to the handler's first instruction. The processor is busy
    /// meanwhile.
    pub interrupt_latency_ps: Ps,
    /// From the handler's last instruction to the next one of the interrupted thread.
    pub interrupt_exit_ps: Ps,
    /// From the rise of the line, or a timer's deadline, until the waiting thread is ready: a
    /// kernel's handler and wake-up.
    pub irq_thread_ps: Ps,
}

impl Default for Costs {
    /// A nanosecond each, for tests that depend on order and not on times.
    fn default() -> Self {
        let ps = PS_PER_NS;
        Self {
            context_switch_ps: ps,
            wake_ps: ps,
            wake_call_ps: ps,
            futex_call_ps: ps,
            interrupt_latency_ps: ps,
            interrupt_exit_ps: ps,
            irq_thread_ps: ps,
        }
    }
}
