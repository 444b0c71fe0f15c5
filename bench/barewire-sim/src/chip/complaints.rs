//! A chip's complaints about a driver's mistakes, kept until they are taken.
//!
//! ```
//! use barewire_sim::chip::Complaints;
//!
//! let mut complaints = Complaints::<2>::default();
//! for byte in [0xde_u8, 0xad, 0xbe] {
//!     complaints.add(|| format!("no such command: {byte:#04x}"));
//! }
//! // `Chip::take_complaint` returns `complaints.take()`.
//! assert_eq!(complaints.take().as_deref(), Some("no such command: 0xde"));
//! assert_eq!(complaints.take().as_deref(), Some("no such command: 0xad"));
//! assert_eq!(complaints.take(), None, "there was no room for a third");
//! ```

use std::collections::VecDeque;

/// The oldest complaints, at most `MAX`: a repeated mistake need not be reported more often.
#[derive(Clone, Debug, Default)]
pub struct Complaints<const MAX: usize>(VecDeque<String>);

impl<const MAX: usize> Complaints<MAX> {
    /// Adds a complaint. It is formatted only if there is room.
    #[cold]
    pub fn add(&mut self, what: impl FnOnce() -> String) {
        if self.0.len() < MAX {
            self.0.push_back(what());
        }
    }

    /// Removes and returns the oldest complaint; `None` if there is none.
    pub fn take(&mut self) -> Option<String> {
        self.0.pop_front()
    }
}
