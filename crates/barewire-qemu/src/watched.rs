//! A controller whose messages fail once QEMU is gone.
//!
//! Registers that answer 0 look like a block that has finished and received zeros: the driver
//! polls XCH until it *clears*. So after a lost connection a message could succeed with zeros for
//! data. This wrapper asks the connection after each message.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::controller::{Controller, Limits, Program, TimedOut, Unfinished};
use barewire::spi::{Effective, Error, MessageError, Settings, Transfer};

use crate::qtest::Link;

/// A controller on QEMU's registers: no message succeeds on a lost connection.
///
/// The error is a timeout of 0 µs, since a controller has no better one; the reason is
/// [`QemuBoard::lost`](crate::QemuBoard::lost)'s.
#[derive(Debug)]
pub struct Watched<C> {
    inner: C,
    link: Rc<RefCell<Link>>,
}

impl<C> Watched<C> {
    pub(crate) fn new(inner: C, link: Rc<RefCell<Link>>) -> Self {
        Self { inner, link }
    }

    /// The controller back.
    pub fn into_inner(self) -> C {
        self.inner
    }
}

impl<C: Controller> Controller for Watched<C> {
    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn configure(&self, settings: &Settings) -> Result<(Program, Effective), Error> {
        self.inner.configure(settings)
    }

    fn plan(&self, program: &Program, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.inner.plan(program, message)
    }

    fn run(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        let ran = self.inner.run(program, message);
        if ran.is_ok() && self.link.borrow().error().is_some() {
            // Nobody knows how far it came, so no transfer counts as done.
            return Err(Unfinished::timed_out(0, TimedOut { timeout_us: 0 }));
        }
        ran
    }
}
