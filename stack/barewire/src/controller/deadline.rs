//! Waiting for a block by polling it, and when to give up.

use super::Stopped;
use crate::time::{Timer, div_ceil, ticks_at_least};

/// How many times the hardware is polled before the timer is read.
const FREE_POLLS: u32 = 64;
/// The margin that a timeout adds to twice the wire time, in nanoseconds.
const TIMEOUT_MARGIN_NS: u64 = 1_000_000;

/// How long after its deadline a transfer is one that nobody will continue, in nanoseconds: longer than a task waits for a
/// busy executor.
const OVERDUE_NS: u64 = 100_000_000;

/// A block with a timer.
pub(super) trait HasTimer {
    /// The timer.
    type Timer: Timer;

    /// The timer.
    fn timer(&mut self) -> &mut Self::Timer;
}

/// The time at which to give up.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Deadline {
    begun: u64,
    ticks: u64,
    timeout_us: u32,
}

impl Deadline {
    /// A deadline of twice `wire_ns` plus a millisecond from now.
    #[cold]
    pub(super) fn new(timer: &mut impl Timer, wire_ns: u64) -> Self {
        let timeout_ns = wire_ns.saturating_mul(2).saturating_add(TIMEOUT_MARGIN_NS);
        Self {
            begun: timer.now_ticks(),
            ticks: ticks_at_least(timeout_ns, timer.frequency_hz()),
            timeout_us: u32::try_from(div_ceil(timeout_ns, 1_000)).unwrap_or(u32::MAX),
        }
    }

    /// Whether it has passed.
    pub(super) fn passed(&self, timer: &mut impl Timer) -> bool {
        timer.now_ticks().wrapping_sub(self.begun) > self.ticks
    }

    /// Whether it passed more than [`OVERDUE_NS`] ago.
    pub(super) fn is_overdue(&self, timer: &mut impl Timer) -> bool {
        let ticks = self.ticks.saturating_add(ticks_at_least(OVERDUE_NS, timer.frequency_hz()));
        timer.now_ticks().wrapping_sub(self.begun) > ticks
    }

    /// The error of a missed deadline.
    pub(super) fn error(&self) -> Stopped {
        Stopped::TimedOut { timeout_us: self.timeout_us }
    }

    /// How long to sleep, in microseconds, until the deadline has certainly passed.
    pub(super) fn sleep_us(&self) -> u32 {
        self.timeout_us.saturating_add(1)
    }
}

/// Waits until `block` is `done`, which takes about `wire_ns` nanoseconds.
///
/// The timer is read *before* the block is polled: a thread that was preempted between the two
/// still sees that the hardware finished.
///
/// # Errors
/// [`Stopped::TimedOut`].
#[inline(always)]
pub(super) fn poll<B: HasTimer + ?Sized>(
    block: &mut B,
    wire_ns: impl FnOnce(&B) -> u64,
    mut done: impl FnMut(&mut B) -> bool,
) -> Result<(), Stopped> {
    for _ in 0..FREE_POLLS {
        if done(block) {
            return Ok(());
        }
    }
    let wire_ns = wire_ns(block);
    poll_longer(block, wire_ns, done)
}

#[cold]
#[inline(never)]
fn poll_longer<B: HasTimer + ?Sized>(
    block: &mut B,
    wire_ns: u64,
    mut done: impl FnMut(&mut B) -> bool,
) -> Result<(), Stopped> {
    let deadline = Deadline::new(block.timer(), wire_ns);
    loop {
        let late = deadline.passed(block.timer());
        if done(block) {
            return Ok(());
        }
        if late {
            return Err(deadline.error());
        }
    }
}

/// Patience with a block that delivers piece by piece: the timer is read only after [`FREE_POLLS`]
/// polls without result.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Patience {
    looks: u32,
    deadline: Option<Deadline>,
}

impl Patience {
    /// Whether the deadline has passed. Called before each poll.
    pub(super) fn late(&self, timer: &mut impl Timer) -> bool {
        match &self.deadline {
            Some(deadline) => deadline.passed(timer),
            None => false,
        }
    }

    /// Something was received: starts again.
    pub(super) fn renew(&mut self) {
        *self = Self::default();
    }

    /// To be called if a poll received nothing. `late` is the value of [`Patience::late`] before
    /// the poll.
    ///
    /// # Errors
    /// [`Stopped::TimedOut`].
    pub(super) fn look_in_vain(
        &mut self,
        late: bool,
        deadline: impl FnOnce() -> Deadline,
    ) -> Result<(), Stopped> {
        if let (true, Some(deadline)) = (late, &self.deadline) {
            return Err(deadline.error());
        }
        self.looks += 1;
        if self.looks == FREE_POLLS {
            self.deadline = Some(deadline());
        }
        Ok(())
    }
}
