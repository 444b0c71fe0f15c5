//! How long to look for an answer.

/// Time, as far as a driver needs it: when to stop looking.
///
/// ```
/// use std::time::{Duration, Instant};
/// use barewire_iommu::smmu::Patience;
///
/// /// A tenth of a second, by the clock.
/// struct Clock(Instant);
///
/// impl Patience for Clock {
///     fn start(&self) -> u64 {
///         self.0.elapsed().as_nanos() as u64
///     }
///
///     fn more(&self, started: u64, _looks: u32) -> bool {
///         std::hint::spin_loop();
///         self.start() - started < Duration::from_millis(100).as_nanos() as u64
///     }
/// }
/// ```
pub trait Patience {
    /// A wait begins; what this returns comes back in `more`.
    fn start(&self) -> u64 {
        0
    }

    /// Whether to look again after `looks` looks in vain (1, 2, …). The place to relax the processor.
    fn more(&self, started: u64, looks: u32) -> bool;
}

impl<W: Patience + ?Sized> Patience for &W {
    fn start(&self) -> u64 {
        (**self).start()
    }

    fn more(&self, started: u64, looks: u32) -> bool {
        (**self).more(started, looks)
    }
}

/// That many looks, whatever time they take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Polls(pub u32);

impl Default for Polls {
    /// A million: a second where a register read takes a microsecond.
    fn default() -> Self {
        Self(1_000_000)
    }
}

impl Patience for Polls {
    fn more(&self, _started: u64, looks: u32) -> bool {
        core::hint::spin_loop();
        looks < self.0
    }
}

/// Looks until there is an answer; `None` if patience ends before.
pub(crate) fn wait_for<T>(
    patience: &impl Patience,
    mut look: impl FnMut() -> Option<T>,
) -> Option<T> {
    if let Some(answer) = look() {
        return Some(answer);
    }
    let started = patience.start();
    let mut looks = 1;
    while patience.more(started, looks) {
        if let Some(answer) = look() {
            return Some(answer);
        }
        looks = looks.saturating_add(1);
    }
    None
}
