//! Waiting for a block by looking at it, and when to give up.

use super::Stopped;
use crate::time::{Timer, ticks_at_least};

/// How often the hardware is asked before the timer is.
const FREE_POLLS: u32 = 64;
/// What a timeout adds to twice the wire time.
const TIMEOUT_MARGIN_NS: u64 = 1_000_000;

/// A block that a timer stands beside.
pub(super) trait Timed {
    /// The timer.
    type Timer: Timer;

    /// The timer.
    fn timer(&mut self) -> &mut Self::Timer;
}

/// When to give up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deadline {
    begun: u64,
    ticks: u64,
    timeout_us: u32,
}

impl Deadline {
    /// From now on twice `wire_ns` and a millisecond.
    #[cold]
    pub(super) fn new(timer: &mut impl Timer, wire_ns: u64) -> Self {
        let timeout_ns = wire_ns.saturating_mul(2).saturating_add(TIMEOUT_MARGIN_NS);
        Self {
            begun: timer.now_ticks(),
            ticks: ticks_at_least(timeout_ns, timer.frequency_hz()),
            timeout_us: u32::try_from(timeout_ns.div_ceil(1_000)).unwrap_or(u32::MAX),
        }
    }

    /// Whether it has passed.
    pub(super) fn passed(&self, timer: &mut impl Timer) -> bool {
        timer.now_ticks().wrapping_sub(self.begun) > self.ticks
    }

    /// What to say then.
    pub(super) fn error(&self) -> Stopped {
        Stopped::TimedOut { timeout_us: self.timeout_us }
    }

    /// How long to sleep until it has certainly passed, in microseconds.
    pub(super) fn sleep_us(&self) -> u32 {
        self.timeout_us.saturating_add(1)
    }
}

/// Waits until `block` is `done`, which takes some `wire_ns` nanoseconds.
///
/// The clock is read *before* the block is asked: a thread put to sleep between the two still sees
/// the hardware's success.
///
/// # Errors
/// [`Stopped::TimedOut`].
#[inline(always)]
pub(super) fn poll<B: Timed + ?Sized>(
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
fn poll_longer<B: Timed + ?Sized>(
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

/// Patience with a block that gives piece after piece: the timer is asked only after
/// [`FREE_POLLS`] looks in vain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Patience {
    looks: u32,
    deadline: Option<Deadline>,
}

impl Patience {
    /// Whether it is at its end; asked before each look.
    pub(super) fn late(&self, timer: &mut impl Timer) -> bool {
        match &self.deadline {
            Some(deadline) => deadline.passed(timer),
            None => false,
        }
    }

    /// Something came.
    pub(super) fn renew(&mut self) {
        *self = Self::default();
    }

    /// Nothing came; `late` is what [`Patience::late`] said before the look.
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
