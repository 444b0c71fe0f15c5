//! The controller, its tracer and the platforms, all of whose methods are hooks.

use std::sync::atomic::AtomicU32;
use std::task::Poll;

use barewire::bus::platform::Inheritance;
use barewire::bus::{Bus, Platform, Pump};
use barewire::controller::null::Null;
use barewire::controller::{
    Controller, Limits, Plan, Preset, Progress, Stepped, Stopped, Unfinished, Wire, resume_message,
    run_message, start_message,
};
use barewire::middleware::Tracer;
use barewire::spi::{Data, Effective, Error, MessageError, Settings, Transfer};
use barewire::time::Timer;
use barewire::trace::Event;

use crate::fuse::{self, Hook, at, run};
use crate::threads::{Park, ParkInheriting, Spinning};

/// What every device here is.
pub(crate) type Any = dyn Controller + Send;

/// A device of this chip select has the controller plan each message.
pub(crate) const ASKING: Settings = Settings::new(1, 1_000_000);
/// A device whose messages are planned without the controller.
pub(crate) const PLAIN: Settings = Settings::new(0, 1_000_000);

/// Interrupts that a message takes.
const INTERRUPTS: u8 = 2;

/// A controller of messages of one byte, which it returns inverted.
struct Hooked {
    /// Messages are begun, and gone on with by interrupt.
    flies: bool,
    progress: Progress,
    interrupts_left: u8,
    byte: u8,
}

fn first_byte(data: &Data<'_>) -> u8 {
    data.tx().and_then(|tx| tx.first().copied()).unwrap_or_default()
}

fn transfer(data: &mut Data<'_>) {
    let byte = first_byte(data);
    run().send(byte);
    if let Some(first) = data.rx_mut().and_then(<[u8]>::first_mut) {
        *first = !byte;
    }
}

impl Wire for Hooked {
    fn select(&mut self, _: &Preset) {
        run().select();
    }

    fn deselect(&mut self, _: &Preset) {
        run().deselect();
    }

    fn exchange(&mut self, _: &Preset, _: &Plan, data: &mut Data<'_>) -> Result<(), Stopped> {
        at(Hook::Run, first_byte(data));
        transfer(data);
        Ok(())
    }

    fn recover(&mut self) {}

    fn wait_ticks(&mut self, _: u32) {}
}

impl Stepped for Hooked {
    fn progress(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn begin(&mut self, _: &Preset, _: &Plan, data: &mut Data<'_>) {
        self.byte = first_byte(data);
        self.interrupts_left = INTERRUPTS;
        at(Hook::Start, self.byte);
    }

    fn advance(&mut self, _: &Preset, _: &Plan, data: &mut Data<'_>) -> Poll<Result<(), Stopped>> {
        at(Hook::Resume, self.byte);
        self.interrupts_left -= 1;
        if self.interrupts_left > 0 {
            return Poll::Pending;
        }
        transfer(data);
        Poll::Ready(Ok(()))
    }
}

impl Controller for Hooked {
    fn limits(&self) -> Limits {
        Null::new().limits()
    }

    fn configure(&self, settings: &Settings) -> Result<(Preset, Effective), Error> {
        let (preset, effective) = Null::new().configure(settings)?;
        let plan = preset.plan.with_interrupt(self.flies);
        Ok((Preset { plan, asks: *settings == ASKING, ..preset }, effective))
    }

    fn plan(&self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        at(Hook::Plan, message.first().map_or(0, |transfer| first_byte(transfer.data())));
        Null::new().plan(preset, message)
    }

    fn run(&mut self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<usize, Unfinished> {
        run_message(self, preset, message)
    }

    fn start(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        start_message(self, preset, message)
    }

    fn resume(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        resume_message(self, preset, message)
    }

    fn arm(&mut self) {
        at(Hook::Arm, self.byte);
    }

    fn reclaim(&mut self) {
        run().deselect();
    }
}

/// The tracer's clock, which stands still.
struct Still;

impl Timer for Still {
    fn frequency_hz(&self) -> u32 {
        1
    }

    fn now_ticks(&mut self) -> u64 {
        0
    }
}

/// A bus whose every hook is fused. Under a tracer whole messages are run, so a bus pumped by
/// interrupts has none.
pub(crate) fn hooked_bus(platform: &'static dyn Platform, pump: Pump) -> Box<Bus<Any>> {
    let flies = pump == Pump::Interrupt;
    let hooked = Hooked { flies, progress: Progress::default(), interrupts_left: 0, byte: 0 };
    if flies {
        return Box::new(Bus::with_platform(hooked, platform).with_pump(pump));
    }
    // Which message it is a tracer is not told at its beginning.
    let sink = |_: &Event<'_>| at(Hook::Sink, 0);
    let traced = Tracer::new(hooked, Still, sink);
    Box::new(Bus::with_platform(traced, platform).with_pump(pump))
}

/// A platform whose wait and wake are hooks, and which tells when the second thread waits.
pub(crate) struct HookedPlatform<P>(P);

pub(crate) static SPINNING: HookedPlatform<Spinning> = HookedPlatform(Spinning);
pub(crate) static PARKING: HookedPlatform<Park> = HookedPlatform(Park);
pub(crate) static INHERITING: HookedPlatform<ParkInheriting> = HookedPlatform(ParkInheriting);

impl<P: Platform> Platform for HookedPlatform<P> {
    fn context(&self) -> usize {
        self.0.context()
    }

    fn relax(&self) {
        fuse::waits();
        self.0.relax();
    }

    fn spins(&self) -> u32 {
        self.0.spins()
    }

    fn wait(&self, word: &AtomicU32, expected: u32) {
        fuse::waits();
        at(Hook::PlatformWait, 0);
        self.0.wait(word, expected);
    }

    fn wake(&self, word: *const AtomicU32) {
        at(Hook::PlatformWake, 0);
        self.0.wake(word);
    }

    fn inheritance(&self) -> Option<&dyn Inheritance> {
        self.0.inheritance().map(|_| self as &dyn Inheritance)
    }
}

impl<P: Platform> HookedPlatform<P> {
    fn lender(&self) -> &dyn Inheritance {
        self.0.inheritance().expect("asked only if there is one")
    }
}

impl<P: Platform> Inheritance for HookedPlatform<P> {
    fn id(&self) -> u32 {
        self.lender().id()
    }

    fn lock(&self, word: &AtomicU32) {
        fuse::waits();
        self.lender().lock(word);
    }

    fn unlock(&self, word: &AtomicU32) {
        self.lender().unlock(word);
    }
}
