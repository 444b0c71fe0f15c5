//! The trait that a wrapper of a controller implements.

use core::task::Poll;

use crate::controller::{Controller, Limits, Preset, Unfinished};
use crate::spi::{Effective, Error, MessageError, Settings, Transfer};

/// A wrapper of a controller. Everything but running a message goes to the wrapped controller.
pub trait Layer {
    /// The type of the wrapped controller.
    type Inner: Controller + ?Sized;

    /// The wrapped controller.
    fn inner(&self) -> &Self::Inner;

    /// The wrapped controller, mutable.
    fn inner_mut(&mut self) -> &mut Self::Inner;

    /// As [`Controller::may_use_its_bus`]. A layer that calls nothing but the wrapped controller answers
    /// as that does.
    fn may_use_its_bus_layer(&self) -> bool {
        true
    }

    /// Runs a planned message, as [`Controller::run`].
    ///
    /// # Errors
    /// The errors of the wrapped controller and of the layer.
    fn run_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished>;

    /// Runs one planned exchange, as [`Controller::run_exchange`]. The provided method runs it as a
    /// message. A layer that only lets messages pass overrides it, to keep the driver's shorter path.
    ///
    /// # Errors
    /// As [`Layer::run_layer`].
    #[inline]
    fn run_exchange_layer(
        &mut self,
        preset: &Preset,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        self.run_layer(preset, &mut [Transfer::of_plan(tx, rx, preset.plan)])
    }

    /// Begins a planned message, as [`Controller::start`]. The provided method runs the whole
    /// message, so a layer that does not override it handles whole messages only.
    fn start_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        Poll::Ready(self.run_layer(preset, message))
    }

    /// Continues a message that the wrapped controller began, as [`Controller::resume`].
    ///
    /// # Errors
    /// The errors of the wrapped controller and of the layer.
    fn resume_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        self.inner_mut().resume(preset, message)
    }

    /// As [`Controller::set_waiting`].
    fn set_waiting_layer(&mut self, waits: bool) {
        self.inner_mut().set_waiting(waits);
    }

    /// Brings the block to idle, as [`Controller::reclaim`].
    fn reclaim_layer(&mut self) {
        self.inner_mut().reclaim();
    }
}

/// The methods of a [`Layer`](crate::middleware::Layer) that name the wrapped controller, by the field that has it. The
/// layer must call no code of the user's: its
/// [`may_use_its_bus_layer`](crate::middleware::Layer::may_use_its_bus_layer) is the wrapped controller's answer.
///
/// ```
/// use barewire::controller::{Controller, Preset, Unfinished};
/// use barewire::middleware::Layer;
/// use barewire::spi::Transfer;
///
/// struct Counter<C> {
///     inner: C,
///     messages: u64,
/// }
///
/// impl<C: Controller> Layer for Counter<C> {
///     barewire::wrapped_controller!(inner: C);
///
///     fn run_layer(&mut self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<usize, Unfinished> {
///         self.messages += 1;
///         self.inner.run(preset, message)
///     }
/// }
/// ```
#[macro_export]
macro_rules! wrapped_controller {
    ($field:tt: $inner:ty) => {
        type Inner = $inner;

        fn inner(&self) -> &$inner {
            &self.$field
        }

        fn inner_mut(&mut self) -> &mut $inner {
            &mut self.$field
        }

        fn may_use_its_bus_layer(&self) -> bool {
            $crate::controller::Controller::may_use_its_bus($crate::middleware::Layer::inner(self))
        }
    };
}

/// Each method is one call, which is compiled into its caller.
impl<L: Layer + ?Sized> Controller for L {
    fn limits(&self) -> Limits {
        self.inner().limits()
    }

    fn may_use_its_bus(&self) -> bool {
        self.may_use_its_bus_layer()
    }

    fn set_waiting(&mut self, waits: bool) {
        self.set_waiting_layer(waits);
    }

    fn configure(&self, settings: &Settings) -> Result<(Preset, Effective), Error> {
        self.inner().configure(settings)
    }

    fn plan(&self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.inner().plan(preset, message)
    }

    #[inline(always)]
    fn run(&mut self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<usize, Unfinished> {
        self.run_layer(preset, message)
    }

    #[inline(always)]
    fn run_exchange(
        &mut self,
        preset: &Preset,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        self.run_exchange_layer(preset, tx, rx)
    }

    fn start(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        self.start_layer(preset, message)
    }

    fn resume(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        self.resume_layer(preset, message)
    }

    fn arm(&mut self) {
        self.inner_mut().arm();
    }

    fn silence(&mut self) {
        self.inner_mut().silence();
    }

    fn is_overdue(&mut self) -> bool {
        self.inner_mut().is_overdue()
    }

    fn reclaim(&mut self) {
        self.reclaim_layer();
    }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::*;
    use crate::bus::Bus;
    use crate::controller::null::Null;
    use crate::spi::Settings;

    /// Notes which of its methods were called.
    struct Noting(Null, Vec<&'static str>);

    impl Layer for Noting {
        type Inner = Null;

        fn inner(&self) -> &Null {
            &self.0
        }

        fn inner_mut(&mut self) -> &mut Null {
            &mut self.0
        }

        fn run_layer(
            &mut self,
            preset: &Preset,
            message: &mut [Transfer<'_>],
        ) -> Result<usize, Unfinished> {
            self.1.push("run");
            self.0.run(preset, message)
        }

        fn run_exchange_layer(
            &mut self,
            preset: &Preset,
            tx: &[u8],
            rx: &mut [u8],
        ) -> Result<usize, Unfinished> {
            self.1.push("exchange");
            self.0.run_exchange(preset, tx, rx)
        }

        fn reclaim_layer(&mut self) {
            self.1.push("reclaim");
        }
    }

    #[test]
    fn a_layer_may_let_an_exchange_pass_as_one() {
        let mut bus = Bus::new(Noting(Null::new(), vec![]));
        let device = bus.device(&Settings::new(0, 1_000)).expect("opens");
        assert_eq!(device.prepare([1, 2]).expect("plans").run(), Ok(&[0, 0]));
        device.sync(&mut [Transfer::write(&[1])]).expect("runs");
        bus.get_mut().reclaim();
        assert_eq!(bus.into_inner().1, ["exchange", "run", "reclaim"]);
    }
}
