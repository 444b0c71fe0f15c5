//! Waiting for the block's interrupt in a thread that has nothing else to do.
//!
//! With an [`Interrupt`], a controller blocks in [`Controller::run`](super::Controller::run) where
//! a plan says so. Without one it polls there, and its messages may still be finished by a handler
//! ([`Controller::start`](super::Controller::start)).

/// Sleeps until a block interrupts.
pub trait Interrupt {
    /// Whether an interrupt exists. If not, the controller polls and calls nothing of this trait.
    const PRESENT: bool = true;
    /// Whether a message may be left in flight: for a thread that sleeps, or for a bus of
    /// [`Pump::Interrupt`](crate::bus::Pump::Interrupt). If not, every transfer is polled, whatever its length.
    const FLIGHTS: bool = true;

    /// Unmasks the interrupt for one occurrence: an operating system masks it each time it comes.
    /// Called while the block is silent.
    fn enable(&mut self);

    /// Sleeps until the interrupt came, for at most `timeout_us` microseconds. Returns whether it
    /// came. The driver polls the block in both cases, so an early return only costs time.
    fn wait(&mut self, timeout_us: u32) -> bool;
}

/// No interrupt: transfers are polled, or a handler finishes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NoInterrupt;

impl Interrupt for NoInterrupt {
    const PRESENT: bool = false;

    fn enable(&mut self) {}

    fn wait(&mut self, _timeout_us: u32) -> bool {
        true
    }
}

/// Every transfer is polled: the code that leaves a message in flight is not in the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PollOnly;

impl Interrupt for PollOnly {
    const PRESENT: bool = false;
    const FLIGHTS: bool = false;

    fn enable(&mut self) {}

    fn wait(&mut self, _timeout_us: u32) -> bool {
        true
    }
}
