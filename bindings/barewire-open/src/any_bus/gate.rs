//! A controller that can be closed while others still have its bus.
//!
//! How it works: closing sets a flag, which fails every message from then on, and then drops the controller between two
//! messages. If the closing thread itself holds the bus, the controller is dropped with the bus.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use barewire::controller::{Controller, Limits, Preset, Unfinished};
use barewire::middleware::Layer;
use barewire::spi::{Effective, Error, MessageError, Settings, Transfer};

/// The controller of an open bus, of any kind.
pub struct DynController {
    inner: Box<dyn Controller + Send>,
    closed: Arc<AtomicBool>,
}

impl fmt::Debug for DynController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynController").field("closed", &self.closed).finish_non_exhaustive()
    }
}

impl DynController {
    /// `inner`, open until `closed` is set.
    pub(super) fn new(inner: Box<dyn Controller + Send>, closed: Arc<AtomicBool>) -> Self {
        Self { inner, closed }
    }

    /// Drops the controller.
    pub(super) fn close(&mut self) {
        self.inner = Box::new(ClosedController);
    }

    #[inline]
    fn pass(&mut self) -> Result<&mut (dyn Controller + Send), Unfinished> {
        match self.closed.load(Ordering::Acquire) {
            false => Ok(&mut *self.inner),
            true => Err(GONE),
        }
    }
}

impl Layer for DynController {
    type Inner = dyn Controller + Send;

    fn inner(&self) -> &Self::Inner {
        match self.closed.load(Ordering::Acquire) {
            false => &*self.inner,
            true => &ClosedController,
        }
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        &mut *self.inner
    }

    fn may_use_its_bus_layer(&self) -> bool {
        self.inner().may_use_its_bus()
    }

    #[inline]
    fn run_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        self.pass()?.run(preset, message)
    }

    #[inline]
    fn run_exchange_layer(
        &mut self,
        preset: &Preset,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        self.pass()?.run_exchange(preset, tx, rx)
    }
}

/// Stands in for a controller whose bus is closed: every call fails with `ESHUTDOWN`.
pub(super) struct ClosedController;

const CLOSED: Error = Error::Os { errno: libc::ESHUTDOWN };
const GONE: Unfinished = Unfinished::os(0, libc::ESHUTDOWN);

impl Controller for ClosedController {
    fn limits(&self) -> Limits {
        Limits::new(0, 0, 0, 1)
    }

    fn may_use_its_bus(&self) -> bool {
        false
    }

    fn configure(&self, _: &Settings) -> Result<(Preset, Effective), Error> {
        Err(CLOSED)
    }

    fn plan(&self, _: &Preset, _: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        Err(MessageError::refused(CLOSED, 0))
    }

    fn run(&mut self, _: &Preset, _: &mut [Transfer<'_>]) -> Result<usize, Unfinished> {
        Err(GONE)
    }

    fn reclaim(&mut self) {}
}
