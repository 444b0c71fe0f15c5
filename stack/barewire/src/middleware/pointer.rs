//! A controller behind a pointer.

use core::fmt;
use core::ops::DerefMut;
use core::task::Poll;

use super::Layer;
use crate::controller::{Controller, Preset, Unfinished};
use crate::spi::Transfer;

/// A controller behind a pointer, as `Box<dyn Controller>` where the type is known only when the program runs. It passes
/// everything on as it is, a message in flight included.
pub struct Pointer<P>(pub P);

impl<P> fmt::Debug for Pointer<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pointer").finish_non_exhaustive()
    }
}

impl<P: DerefMut<Target: Controller>> Layer for Pointer<P> {
    crate::wrapped_controller!(0: P::Target);

    fn run_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        self.0.run(preset, message)
    }

    fn run_exchange_layer(
        &mut self,
        preset: &Preset,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        self.0.run_exchange(preset, tx, rx)
    }

    fn start_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        self.0.start(preset, message)
    }
}
