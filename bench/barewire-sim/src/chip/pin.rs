//! A chip's pins besides SCK, MOSI, MISO and CS.
//!
//! # How it works
//! An input pin (D/C, RESET) is a name. The board tells the chip its level by
//! [`Chip::set_pin`](super::Chip::set_pin).
//!
//! An output pin (INT, BUSY) is a name and a [`Source`], which the board asks for its level when a
//! program reads the pad or waits for the line. A model may implement [`Source`] itself or share an
//! [`OutputPin`] with the board.
//!
//! ```
//! use barewire_sim::chip::{OutputPin, Source};
//!
//! let busy = OutputPin::new();
//! // A command that takes 5 µs begins at 1 µs.
//! busy.set_at(true, 1_000_000);
//! busy.set_at(false, 6_000_000);
//! assert_eq!(busy.settle(2_000_000), 6_000_000, "the next change");
//! assert_eq!(busy.asserted_since(), Some(1_000_000));
//! busy.settle(6_000_000);
//! assert_eq!(busy.asserted_since(), None);
//! ```

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use crate::chip::Ps;

/// A chip's pin that moves a line: a level that its chip decides, asserted when the line is high.
pub trait Source {
    /// Processes the chip's events up to `now`. Returns the time of its next event of its own accord;
    /// [`Ps::MAX`] for never.
    fn settle(&self, now: Ps) -> Ps;

    /// Since when it is asserted, if it is.
    fn asserted_since(&self) -> Option<Ps>;

    /// Keeps `changed`, to be called whenever what [`Source::settle`] returned no longer holds because
    /// the test or another chip acted on this one. A pin that only the wire and time move needs none,
    /// so by default nothing is kept.
    fn on_change(&self, changed: Rc<dyn Fn()>) {
        drop(changed);
    }
}

/// A pin that a board may connect.
#[derive(Clone)]
pub enum Pin {
    /// The board drives it: D/C, RESET.
    Input(&'static str),
    /// The chip drives it low while it is asserted and high otherwise: INT, PENIRQ.
    ActiveLow(&'static str, Rc<dyn Source>),
    /// The chip drives it high while it is asserted and low otherwise: BUSY.
    ActiveHigh(&'static str, Rc<dyn Source>),
}

impl Pin {
    /// Its name, as the datasheet writes it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let (Self::Input(name) | Self::ActiveLow(name, _) | Self::ActiveHigh(name, _)) = self;
        name
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(name) => write!(f, "Input({name})"),
            Self::ActiveLow(name, _) => write!(f, "ActiveLow({name})"),
            Self::ActiveHigh(name, _) => write!(f, "ActiveHigh({name})"),
        }
    }
}

/// An output pin whose changes the model knows in advance.
///
/// The model and the board share it in an `Rc`. It starts deasserted.
#[derive(Default)]
pub struct OutputPin {
    /// Changes to come, by time.
    changes: RefCell<VecDeque<(Ps, bool)>>,
    since: Cell<Option<Ps>>,
    on_change: RefCell<Vec<Rc<dyn Fn()>>>,
}

impl OutputPin {
    /// A deasserted pin.
    #[must_use]
    pub fn new() -> Rc<Self> {
        Rc::default()
    }

    /// Asserts or deasserts the pin at `at`. Changes set earlier for `at` or later are dropped.
    pub fn set_at(&self, asserted: bool, at: Ps) {
        let mut changes = self.changes.borrow_mut();
        changes.retain(|&(due, _)| due < at);
        changes.push_back((at, asserted));
        drop(changes);
        // Cloned, because the callback may call this pin again.
        let callbacks = self.on_change.borrow().clone();
        callbacks.iter().for_each(|changed| changed());
    }
}

impl Source for OutputPin {
    fn settle(&self, now: Ps) -> Ps {
        let mut changes = self.changes.borrow_mut();
        while let Some(&(at, asserted)) = changes.front() {
            if at > now {
                return at;
            }
            changes.pop_front();
            let since = self.since.get().unwrap_or(at);
            self.since.set(asserted.then_some(since));
        }
        Ps::MAX
    }

    fn asserted_since(&self) -> Option<Ps> {
        self.since.get()
    }

    fn on_change(&self, changed: Rc<dyn Fn()>) {
        self.on_change.borrow_mut().push(changed);
    }
}

impl fmt::Debug for OutputPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputPin").field("since", &self.since.get()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_decision_replaces_what_was_due() {
        let pin = OutputPin::new();
        pin.set_at(true, 10);
        pin.set_at(false, 50);
        pin.set_at(false, 30);
        assert_eq!(pin.settle(9), 10);
        assert_eq!(pin.asserted_since(), None);
        assert_eq!(pin.settle(10), 30);
        pin.set_at(true, 20);
        assert_eq!(pin.settle(40), Ps::MAX, "the changes at 30 and 50 were dropped");
        assert_eq!(pin.asserted_since(), Some(10), "asserted twice, it rose once");
    }

    #[test]
    fn who_watches_is_told() {
        let (pin, told) = (OutputPin::new(), Rc::new(Cell::new(0)));
        let counted = told.clone();
        pin.on_change(Rc::new(move || counted.set(counted.get() + 1)));
        pin.set_at(true, 5);
        assert_eq!(told.get(), 1);
    }
}
