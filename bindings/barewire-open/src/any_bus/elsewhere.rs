//! A controller in a confined graph, as one that any thread may use.

use std::sync::Arc;

use barewire::controller::{Controller, Limits, Plan, Program, Unfinished};
use barewire::spi::{Effective, Error, MessageError, Settings, Transfer};

use crate::confined::Confined;

/// What a controller whose board is closed ends with. The gate is shut before, so no message does.
const GONE: i32 = libc::ESHUTDOWN;

/// A graph with a controller in it.
pub(super) trait World {
    type Controller: Controller + ?Sized;

    /// The controller; none once the board is closed.
    fn controller(&mut self) -> Option<&mut Self::Controller>;

    /// Called before and after a message.
    fn keep_time(&mut self, _after: bool) {}
}

/// The controller in a graph.
pub(super) struct Elsewhere<W>(pub(super) Arc<Confined<W>>);

impl<W: World> Elsewhere<W> {
    /// Runs a message.
    fn message(
        &self,
        run: impl FnOnce(&mut W::Controller) -> Result<usize, Unfinished> + Send,
    ) -> Result<usize, Unfinished> {
        self.0.with(|world| {
            world.keep_time(false);
            let ran = world.controller().map(run);
            world.keep_time(true);
            ran.unwrap_or(Err(Unfinished::os(0, GONE)))
        })
    }
}

impl<W: World> Controller for Elsewhere<W> {
    fn limits(&self) -> Limits {
        let limits = self.0.with(|world| world.controller().map(|controller| controller.limits()));
        limits.unwrap_or(Limits::new(0, 0, 0, 1))
    }

    fn configure(&self, settings: &Settings) -> Result<(Program, Effective), Error> {
        let gone = Error::Os { errno: GONE };
        self.0.with(|world| world.controller().ok_or(gone)?.configure(settings))
    }

    fn plan(&self, program: &Program, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        let gone = MessageError::refused(Error::Os { errno: GONE }, 0);
        self.0.with(|world| world.controller().ok_or(gone)?.plan(program, message))
    }

    fn run(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        self.message(|controller| controller.run(program, message))
    }

    fn run_exchange(
        &mut self,
        program: &Program,
        plan: &Plan,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        self.message(|controller| controller.run_exchange(program, plan, tx, rx))
    }

    fn reclaim(&mut self) {
        self.0.with(|world| {
            if let Some(controller) = world.controller() {
                controller.reclaim();
            }
        });
    }
}
