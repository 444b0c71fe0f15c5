//! What a self-test puts between the bus and its controller.

use barewire::bus::{Bus, Platform};
use barewire::controller::{Controller, Program, Stopped, Unfinished};
use barewire::middleware::{Fault, FaultInjector, Layer, When};
use barewire::spi::Transfer;
use barewire::time::Timer;
use barewire_sim::model::can::BitTimes;

use super::measure::{self, Latencies};
use crate::shared::interrupt;

/// What is to go wrong on the bus, and when.
pub(crate) type Injected = (Fault, When);

/// What a self-test requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selftest {
    /// What is to go wrong.
    pub(crate) fault: Option<Injected>,
    /// MISO is connected to MOSI.
    pub(crate) wired: bool,
}

/// What is put around a controller.
#[derive(Clone, Debug)]
pub(super) struct Around {
    pub(super) selftest: Option<Selftest>,
    pub(super) latencies: Option<Latencies>,
    pub(super) linux_process: bool,
    pub(super) can: BitTimes,
}

/// A bus on `controller`, for a self-test if that is asked, and timed by `clock` if that is.
pub(super) fn bus(
    controller: impl Controller + 'static,
    around: Around,
    clock: impl Timer + 'static,
    platform: &'static dyn Platform,
) -> Box<Bus<dyn Controller>> {
    let Around { selftest, latencies, .. } = around;
    let Some(Selftest { fault, .. }) = selftest else {
        return measure::bus(controller, latencies, clock, platform);
    };
    let (fault, when) = fault.unwrap_or((Fault::Timeout, When::Never));
    let stoppable = Stoppable(FaultInjector::new(controller, fault, when));
    measure::bus(stoppable, latencies, clock, platform)
}

/// Fails every message after Ctrl-C, which ends the suite soon: it cannot be stopped otherwise.
struct Stoppable<C>(C);

impl<C: Controller> Layer for Stoppable<C> {
    type Inner = C;

    fn inner(&self) -> &C {
        &self.0
    }

    fn inner_mut(&mut self) -> &mut C {
        &mut self.0
    }

    fn run_layer(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        if interrupt::asked() {
            return Err(Unfinished::stopped(0, Stopped::TimedOut { timeout_us: 0 }));
        }
        self.0.run(program, message)
    }
}
