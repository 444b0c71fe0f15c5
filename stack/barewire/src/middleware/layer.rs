//! The trait that a wrapper of a controller implements.

use core::task::Poll;

use crate::controller::{Controller, Limits, Program, Unfinished};
use crate::spi::{Effective, Error, MessageError, Settings, Transfer};

/// A wrapper of a controller. Everything but running a message goes to the wrapped controller.
pub trait Layer {
    /// The type of the wrapped controller.
    type Inner: Controller + ?Sized;

    /// The wrapped controller.
    fn inner(&self) -> &Self::Inner;

    /// The wrapped controller, mutable.
    fn inner_mut(&mut self) -> &mut Self::Inner;

    /// Runs a planned message, as [`Controller::run`].
    ///
    /// # Errors
    /// The errors of the wrapped controller and of the layer.
    fn run_layer(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished>;

    /// Begins a planned message, as [`Controller::start`]. The provided method runs the whole
    /// message, so a layer that does not override it handles whole messages only.
    fn start_layer(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        Poll::Ready(self.run_layer(program, message))
    }
}

impl<L: Layer + ?Sized> Controller for L {
    fn limits(&self) -> Limits {
        self.inner().limits()
    }

    fn configure(&self, settings: &Settings) -> Result<(Program, Effective), Error> {
        self.inner().configure(settings)
    }

    fn plan(&self, program: &Program, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.inner().plan(program, message)
    }

    fn run(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        self.run_layer(program, message)
    }

    fn start(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        self.start_layer(program, message)
    }

    fn resume(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        self.inner_mut().resume(program, message)
    }

    fn arm(&mut self) {
        self.inner_mut().arm();
    }

    fn reclaim(&mut self) {
        self.inner_mut().reclaim();
    }
}
