//! How long to poll for an answer.

/// Decides when to stop polling.
///
/// ```
/// use std::time::{Duration, Instant};
/// use barewire_iommu::smmu::Patience;
///
/// /// Polls for a tenth of a second.
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
    /// Called when a wait begins. The value is passed to `more`.
    fn start(&self) -> u64 {
        0
    }

    /// Whether to poll again after `looks` polls without an answer (1, 2, …). Relax the processor
    /// here.
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

/// A fixed number of polls, whatever time they take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Polls(pub u32);

impl Default for Polls {
    /// A million polls: a second if a register read takes a microsecond.
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

/// Polls until there is an answer. `None` if patience ends first.
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
