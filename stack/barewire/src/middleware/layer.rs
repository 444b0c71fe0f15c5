//! What a controller that wraps another has to say: which, and what it does to a message.

use core::task::Poll;

use crate::controller::{Controller, Limits, Program, Unfinished};
use crate::spi::{Effective, Error, MessageError, Settings, Transfer};

/// A wrapper of a controller. Whatever is not running a message is the wrapped one's affair.
pub trait Layer {
    /// What is wrapped.
    type Inner: Controller + ?Sized;

    /// The wrapped controller.
    fn inner(&self) -> &Self::Inner;

    /// The wrapped controller, to change.
    fn inner_mut(&mut self) -> &mut Self::Inner;

    /// Runs a planned message, as [`Controller::run`].
    ///
    /// # Errors
    /// The wrapped controller's, and the layer's own.
    fn run_layer(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished>;

    /// Begins a planned message, as [`Controller::start`]. A layer that does not say otherwise
    /// sees whole messages only: it runs it, to its end.
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
