//! A chip's complaints about a driver's mistakes, kept until they are taken.

use std::collections::VecDeque;

/// The oldest complaints, at most `MAX`: a repeated mistake need not be reported more often.
#[derive(Clone, Debug, Default)]
pub(super) struct Complaints<const MAX: usize>(VecDeque<String>);

impl<const MAX: usize> Complaints<MAX> {
    /// Adds a complaint. It is formatted only if there is room.
    #[cold]
    pub(super) fn add(&mut self, what: impl FnOnce() -> String) {
        if self.0.len() < MAX {
            self.0.push_back(what());
        }
    }

    /// Removes the oldest complaint.
    pub(super) fn take(&mut self) -> Option<String> {
        self.0.pop_front()
    }
}
