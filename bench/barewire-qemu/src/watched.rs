//! A controller whose messages fail once QEMU is gone.
//!
//! Registers that read 0 look like a block that has finished and received zeros: the driver polls
//! XCH until it *clears*. So without this wrapper a message could succeed with zeros for data after
//! the connection is lost. The wrapper checks the connection after each message.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::controller::{Controller, Preset, Unfinished};
use barewire::middleware::Layer;
use barewire::spi::Transfer;
use barewire_qtest::Link;

/// Broken pipe, as in errno(3).
const EPIPE: i32 = 32;

/// A controller on QEMU's registers. No message succeeds on a lost connection.
///
/// The error is the errno for a broken pipe. [`QemuBoard::lost`](crate::QemuBoard::lost) has the
/// reason.
#[derive(Debug)]
pub struct WatchedController<C> {
    inner: C,
    link: Rc<RefCell<Link>>,
}

impl<C> WatchedController<C> {
    pub(crate) fn new(inner: C, link: Rc<RefCell<Link>>) -> Self {
        Self { inner, link }
    }

    /// Returns the wrapped controller.
    pub fn into_inner(self) -> C {
        self.inner
    }
}

impl<C: Controller> Layer for WatchedController<C> {
    barewire::wrapped_controller!(inner: C);

    fn run_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        let ran = self.inner.run(preset, message);
        if ran.is_ok() && self.link.borrow().error().is_some() {
            // How far the message came is unknown, so no transfer counts as done.
            return Err(Unfinished::os(0, EPIPE));
        }
        ran
    }
}
