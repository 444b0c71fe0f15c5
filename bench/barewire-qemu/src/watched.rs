//! A controller whose messages fail once QEMU is gone.
//!
//! Registers that answer 0 look like a block that has finished and received zeros: the driver
//! polls XCH until it *clears*. So after a lost connection a message could succeed with zeros for
//! data. This wrapper asks the connection after each message.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::controller::{Controller, Program, Unfinished};
use barewire::middleware::Layer;
use barewire::spi::Transfer;

use crate::qtest::Link;

/// Broken pipe, as in errno(3).
const EPIPE: i32 = 32;

/// A controller on QEMU's registers: no message succeeds on a lost connection.
///
/// The error is the errno of a broken pipe; the whole reason is
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

impl<C: Controller> Layer for Watched<C> {
    type Inner = C;

    fn inner(&self) -> &C {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut C {
        &mut self.inner
    }

    fn run_layer(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        let ran = self.inner.run(program, message);
        if ran.is_ok() && self.link.borrow().error().is_some() {
            // Nobody knows how far it came, so no transfer counts as done.
            return Err(Unfinished::os(0, EPIPE));
        }
        ran
    }
}
