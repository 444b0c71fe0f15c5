//! The layers between a bus and its controller: a tracer, a stop, and injected faults.

use std::fmt;

use barewire::controller::{Controller, Preset, Stopped, Unfinished};
use barewire::middleware::{Fault, FaultInjector, Layer, Pointer, Tracer, When};
use barewire::spi::Transfer;
use barewire::time::Timer;
use barewire::trace::Event;

/// Gets the events of messages, with times in nanoseconds of the bus's time. It must not use the bus, because it
/// would wait for the message that it reports.
pub type TraceSink = Box<dyn FnMut(&Event<'_>) + Send>;

/// The layers around a bus's controller. By default there are none.
///
/// With any of them, messages are run whole: none waits for the controller's interrupt.
#[derive(Default)]
pub struct Layers {
    /// The fault that is injected, and into which transfers.
    pub fault: Option<(Fault, When)>,
    /// Fails every message from the moment on at which this returns true.
    pub stop: Option<fn() -> bool>,
    /// Gets the events of messages. On a simulated board reading the time costs none.
    pub trace: Option<TraceSink>,
}

impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layers").field("fault", &self.fault).finish_non_exhaustive()
    }
}

/// Puts each layer that is asked for around a boxed controller. The others are left out, so that they do not show in a
/// tracer's times. It is a macro, because the box's type says whether any thread may use it.
macro_rules! around {
    ($layers:expr, $controller:expr, $clock:expr) => {{
        let Layers { fault, stop, trace } = $layers;
        let mut controller = $controller;
        if let Some((fault, when)) = fault {
            controller = Box::new(FaultInjector::new(Pointer(controller), fault, when));
        }
        if let Some(stop) = stop {
            controller = Box::new(Stoppable { inner: Pointer(controller), stop });
        }
        if let Some(trace) = trace {
            controller = Box::new(Tracer::new(Pointer(controller), $clock, trace));
        }
        controller
    }};
}

impl Layers {
    /// Puts the layers around `controller`, which any thread may use; a tracer's times are of `clock`.
    pub(crate) fn around(
        self,
        controller: impl Controller + Send + 'static,
        clock: impl Timer + Send + 'static,
    ) -> Box<dyn Controller + Send> {
        let controller: Box<dyn Controller + Send> = Box::new(controller);
        around!(self, controller, clock)
    }

    /// [`Layers::around`] for a controller of one thread.
    pub(crate) fn around_local(
        self,
        controller: impl Controller + 'static,
        clock: impl Timer + 'static,
    ) -> Box<dyn Controller> {
        let controller: Box<dyn Controller> = Box::new(controller);
        around!(self, controller, clock)
    }
}

/// Fails every message once it is asked to stop.
struct Stoppable<C> {
    inner: C,
    stop: fn() -> bool,
}

impl<C: Controller> Layer for Stoppable<C> {
    barewire::wrapped_controller!(inner: C);

    fn run_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        if (self.stop)() {
            return Err(Unfinished::stopped(0, Stopped::TimedOut { timeout_us: 0 }));
        }
        self.inner.run(preset, message)
    }
}
