//! A device's interrupt line: a chip's INT pin at the processor's interrupt controller.
//!
//! *Read first*: [`crate::engine`], *Interrupts*.
//!
//! # How it works
//! The line is a level. A test or a model raises it, at once or at a later time. The reader that
//! drains the device lowers it. While it is high, waiting for it returns at once. A line with a
//! chip's own pin ([`Source`]) takes its level from the pin at each look.
//!
//! ```
//! use barewire_sim::engine::Thread;
//! use barewire_sim::{Board, BoardOptions, BoardSpec};
//!
//! let board = Board::new(BoardSpec::find("imx8mp")?, BoardOptions::default());
//! let line = board.line();
//! line.raise_at(5_000_000);
//! let handler = Thread::new("handler", || {
//!     while line.wait(None) {
//!         let latency_ps = board.engine().now_ps() - line.risen_at().unwrap();
//!         assert_eq!(latency_ps, board.profile().interrupt_latency_ps.value);
//!         line.lower();
//!     }
//! });
//! board.engine().run(vec![handler.interrupt(0)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::rc::{Rc, Weak};

use crate::chip::Ps;
pub use crate::chip::pin::Source;
use crate::engine::{Engine, Line, Look};

/// Changes lines, as their holders do: a board, whose chips may drive them.
pub(crate) trait World {
    /// Runs everything that is due until `now`. Returns the time of the next event, [`Ps::MAX`] for
    /// never.
    fn settle(&self, now: Ps) -> Ps;
}

/// An interrupt line: a handle, all clones one line.
#[derive(Clone)]
pub struct IntLine {
    engine: Engine,
    pin: Rc<Pin>,
}

struct Pin {
    high: Cell<bool>,
    risen_at: Cell<Option<Ps>>,
    rises: RefCell<BTreeSet<Ps>>,
    world: Option<Weak<dyn World>>,
    /// The chip's pin, where there is one: then only the pin moves the line.
    source: Option<Rc<dyn Source>>,
}

impl Pin {
    /// Brings the wire and the chip up to `now`, takes the pin's level over, and returns when it
    /// may change next.
    fn follow(&self, source: &dyn Source, now: Ps) -> Ps {
        let world = self.world.as_ref().and_then(Weak::upgrade);
        let world_due = world.map_or(Ps::MAX, |world| world.settle(now));
        let due = source.settle(now).min(world_due);
        let since = source.asserted_since();
        if !self.high.replace(since.is_some()) && since.is_some() {
            self.risen_at.set(since);
        }
        due
    }

    /// Carries out everything due by `now`.
    fn catch_up(&self, now: Ps) {
        if let Some(source) = &self.source {
            self.follow(&**source, now);
            return;
        }
        let mut rises = self.rises.borrow_mut();
        while rises.first().is_some_and(|&at| at <= now) {
            let at = rises.pop_first();
            if !self.high.replace(true) {
                self.risen_at.set(at);
            }
        }
    }
}

impl Line for Pin {
    fn look(&self, now: Ps) -> Look {
        if let Some(source) = &self.source {
            let due = self.follow(&**source, now);
            return match self.high.get() {
                true => Look::High,
                false if due == Ps::MAX => Look::Never,
                false => Look::Due(due),
            };
        }
        let world = self.world.as_ref().and_then(Weak::upgrade);
        let world_due = world.map_or(Ps::MAX, |world| world.settle(now));
        self.catch_up(now);
        if self.high.get() {
            return Look::High;
        }
        match self.rises.borrow().first().map_or(world_due, |&at| at.min(world_due)) {
            Ps::MAX => Look::Never,
            at => Look::Due(at),
        }
    }
}

impl IntLine {
    /// A line of `engine`, low, moved by its holders.
    #[must_use]
    pub fn new(engine: &Engine) -> Self {
        Self::with_world(engine, None, None)
    }

    pub(crate) fn with_world(
        engine: &Engine,
        world: Option<Weak<dyn World>>,
        source: Option<Rc<dyn Source>>,
    ) -> Self {
        let pin = Pin {
            high: Cell::new(false),
            risen_at: Cell::new(None),
            rises: RefCell::default(),
            world,
            source,
        };
        Self { engine: engine.clone(), pin: Rc::new(pin) }
    }

    /// Raises the line at `at`, or at once if `at` has passed. Has no effect on a chip's pin, which
    /// only the chip drives.
    pub fn raise_at(&self, at: Ps) {
        self.pin.rises.borrow_mut().insert(at);
        self.engine.look_again();
    }

    /// Raises it.
    pub fn raise(&self) {
        self.raise_at(self.engine.now_ps());
    }

    /// Lowers it. Scheduled rises stay. Does nothing to a line that a chip's pin moves.
    pub fn lower(&self) {
        self.pin.catch_up(self.engine.now_ps());
        if self.pin.source.is_none() {
            self.pin.high.set(false);
        }
    }

    /// Whether it is high.
    #[must_use]
    pub fn is_high(&self) -> bool {
        self.pin.catch_up(self.engine.now_ps());
        self.pin.high.get()
    }

    /// Its level now, and the time of its next change if nothing acts on it; `None` for never. Words on
    /// the wire come first. As an interrupt controller looks: it costs no access and no time.
    #[must_use]
    pub fn look(&self) -> (bool, Option<Ps>) {
        let now = self.engine.now_ps();
        let world = self.pin.world.as_ref().and_then(Weak::upgrade);
        let world_due = world.map_or(Ps::MAX, |world| world.settle(now));
        let due = match &self.pin.source {
            Some(source) => self.pin.follow(&**source, now),
            None => {
                self.pin.catch_up(now);
                self.pin.rises.borrow().first().map_or(world_due, |&at| at.min(world_due))
            }
        };
        (self.pin.high.get(), (due != Ps::MAX).then_some(due))
    }

    /// The time of its last rise.
    #[must_use]
    pub fn risen_at(&self) -> Option<Ps> {
        self.pin.catch_up(self.engine.now_ps());
        self.pin.risen_at.get()
    }

    /// Sleeps until it is high; false if `timeout_ps` passed before, or, in an
    /// [interrupt thread](crate::engine::Thread::interrupt), if all other threads have ended.
    ///
    /// The costs are those of [`Board::wait_interrupt`](crate::Board::wait_interrupt).
    ///
    /// # Panics
    /// Outside any simulated thread if nothing will raise it and there is no timeout.
    pub fn wait(&self, timeout_ps: Option<Ps>) -> bool {
        self.engine.wait_line(self.pin.clone(), timeout_ps)
    }
}

impl fmt::Debug for IntLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntLine")
            .field("high", &self.pin.high.get())
            .field("risen_at", &self.pin.risen_at.get())
            .finish_non_exhaustive()
    }
}
