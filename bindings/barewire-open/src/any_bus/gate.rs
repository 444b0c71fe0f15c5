//! A controller that can be closed while others still have its bus.
//!
//! How it works: [`Gate::run`] finds the flag set, drops the controller, and fails this message and all
//! later ones with `ESHUTDOWN`. Whoever sets the flag sends a message of its own, on a device that is
//! configured without the controller, so that the controller is dropped at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use barewire::controller::null::Null;
use barewire::controller::{Controller, Limits, Plan, Program, Unfinished};
use barewire::spi::{Effective, Error, MessageError, Mode, Settings, Transfer};

/// What a message on a closed bus ends with.
pub(crate) const CLOSED: Error = Error::Os { errno: libc::ESHUTDOWN };

/// The settings of the device that closes.
pub(super) const CLOSING: Settings = Settings::new(u8::MAX, 1_000_000).with_mode(Mode::NO_CS);

pub(super) struct Gate<C> {
    inner: Option<C>,
    /// What it could do, also once it is closed.
    limits: Limits,
    closed: Arc<AtomicBool>,
}

impl<C: Controller> Gate<C> {
    pub(super) fn new(inner: C, closed: Arc<AtomicBool>) -> Self {
        let limits = inner.limits();
        Self { inner: Some(inner), limits, closed }
    }

    #[inline]
    fn open(&mut self) -> Result<&mut C, Unfinished> {
        if self.closed.load(Ordering::Acquire) {
            self.inner = None;
        }
        self.inner.as_mut().ok_or(Unfinished::os(0, libc::ESHUTDOWN))
    }

    fn opened(&self) -> Result<&C, Error> {
        self.inner.as_ref().ok_or(CLOSED)
    }
}

impl<C: Controller> Controller for Gate<C> {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn configure(&self, settings: &Settings) -> Result<(Program, Effective), Error> {
        match *settings == CLOSING {
            true => Null::new().configure(settings),
            false => self.opened()?.configure(settings),
        }
    }

    fn plan(&self, program: &Program, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        let refused = |error| MessageError::refused(error, 0);
        self.opened().map_err(refused)?.plan(program, message)
    }

    fn run(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        self.open()?.run(program, message)
    }

    #[inline]
    fn run_exchange(
        &mut self,
        program: &Program,
        plan: &Plan,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        self.open()?.run_exchange(program, plan, tx, rx)
    }

    fn reclaim(&mut self) {
        if let Some(inner) = &mut self.inner {
            inner.reclaim();
        }
    }
}
