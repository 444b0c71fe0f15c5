//! What threads and interrupts cost.

use crate::chip::{PS_PER_NS, Ps};

/// What threads and interrupts cost. A board's come from its
/// [profile](crate::profile::Profile::thread_costs).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Switching a processor to another thread, charged to that one.
    pub context_switch_ps: Ps,
    /// From the end of a wake to the sleeper being ready, where that is on another processor.
    pub wake_ps: Ps,
    /// What waking somebody takes of the waker's time.
    pub wake_call_ps: Ps,
    /// A wake that finds nobody, or a wait until it sleeps or finds the word changed.
    pub futex_call_ps: Ps,
    /// From the line's rise to the handler's first instruction. The processor is busy with it.
    pub interrupt_latency_ps: Ps,
    /// From the handler's last instruction to the interrupted thread's next.
    pub interrupt_exit_ps: Ps,
    /// From the line's rise, or a timer's deadline, to the waiting thread being ready: a kernel's
    /// handler and wake-up.
    pub irq_thread_ps: Ps,
}

impl Default for Costs {
    /// A nanosecond each: for what asks for an order and not for times.
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
