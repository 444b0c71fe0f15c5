//! The block's interrupt, as a caller waits for it who has nothing else to do.
//!
//! A controller with an [`Interrupt`] blocks in [`Controller::run`](super::Controller::run) where a
//! plan says so. One without polls there, and may still finish by its handler
//! ([`Controller::start`](super::Controller::start)).

/// A way to sleep until a block interrupts.
pub trait Interrupt {
    /// Whether there is one. Without, a controller polls, and nothing here is called.
    const PRESENT: bool = true;

    /// Lets the interrupt come once more: an operating system masks it each time it does. Called
    /// while the block is silent.
    fn enable(&mut self);

    /// Sleeps until the interrupt has come, for at most `timeout_us` microseconds; returns whether
    /// it has. The block is looked at in both cases, so coming back early costs time alone.
    fn wait(&mut self, timeout_us: u32) -> bool;
}

/// No interrupt: transfers are polled, or finish by a handler.
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
