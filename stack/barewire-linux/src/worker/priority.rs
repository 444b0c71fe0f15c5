//! A real-time priority.

/// A priority of SCHED_FIFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FifoPriority(u8);

impl FifoPriority {
    /// `priority`, if it is 1 to 99. Interrupt threads of a real-time kernel have 50.
    #[must_use]
    pub const fn new(priority: u8) -> Option<Self> {
        match priority {
            1..=99 => Some(Self(priority)),
            _ => None,
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}
