//! What a chip has to say of a driver's mistakes, until somebody asks.

use std::collections::VecDeque;

/// The oldest complaints, `MAX` at most: a mistake that is made all the time is told often enough.
#[derive(Clone, Debug, Default)]
pub(super) struct Complaints<const MAX: usize>(VecDeque<String>);

impl<const MAX: usize> Complaints<MAX> {
    /// One more, which is only put into words where there is room.
    #[cold]
    pub(super) fn add(&mut self, what: impl FnOnce() -> String) {
        if self.0.len() < MAX {
            self.0.push_back(what());
        }
    }

    /// The oldest.
    pub(super) fn take(&mut self) -> Option<String> {
        self.0.pop_front()
    }
}
