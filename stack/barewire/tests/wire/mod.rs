//! The controller of the tests of the bus: a test says what happens at each of its calls.
//!
//! Messages have one byte, which is returned inverted. Settings and plans are the null controller's,
//! so a device's messages are planned without the bus, except a device of [`ASKING`].
#![allow(dead_code, reason = "each test file uses some of it")]

use std::task::Poll;

use barewire::controller::null::Null;
use barewire::controller::{
    Controller, Limits, Plan, Preset, Progress, Stepped, Stopped, Unfinished, Wire, resume_message,
    run_message, start_message,
};
use barewire::spi::{Data, Effective, Error, MessageError, Settings, Transfer};

/// A device whose messages are planned without the controller.
pub(crate) const PLAIN: Settings = Settings::new(0, 1_000_000);
/// A device of this chip select has the controller plan each message.
pub(crate) const ASKING: Settings = Settings::new(1, 1_000_000);

/// User code that the bus calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    /// `Controller::plan`.
    Plan,
    /// `Controller::run`, with the chip selected.
    Run,
    /// `Controller::start`, likewise.
    Start,
    /// `Controller::resume`, likewise.
    Resume,
    /// `Controller::arm`: the bus has to reclaim the controller, which left the chip selected.
    Arm,
    /// A message's callback.
    Callback,
    /// A waker's `wake`.
    Waker,
    /// `Platform::wake`.
    PlatformWake,
    /// `Platform::wait`.
    PlatformWait,
    /// What a tracer tells.
    Sink,
}

/// What a test's controller does.
pub(crate) trait Script {
    /// The controller is called about the message of this byte.
    fn at(&self, _hook: Hook, _byte: u8) {}

    /// As [`Controller::may_use_its_bus`].
    fn may_use_its_bus(&self) -> bool {
        false
    }

    /// CS becomes active or inactive.
    fn select(&mut self, _active: bool) {}

    /// These bytes are on the wire.
    fn send(&mut self, bytes: &[u8]);

    /// How many interrupts a message takes, on a bus that interrupts pump. A message without any is
    /// polled.
    fn interrupts(&self, _byte: u8) -> u8 {
        0
    }

    /// Begins a transfer that an interrupt will end.
    fn begin(&mut self) {}

    /// Whether the begun transfer has ended.
    fn is_done(&self) -> bool {
        true
    }

    /// The block's interrupt is masked.
    fn silence(&mut self) {}

    fn reclaim(&mut self) {}
}

/// A controller that follows a script.
pub(crate) struct ScriptedController<S> {
    pub(crate) script: S,
    progress: Progress,
    interrupts_left: u8,
    /// The message in flight.
    byte: u8,
}

fn first_byte(data: &Data<'_>) -> u8 {
    data.tx().and_then(|tx| tx.first().copied()).unwrap_or_default()
}

fn byte_of(message: &[Transfer<'_>]) -> u8 {
    message.first().map_or(0, |transfer| first_byte(transfer.data()))
}

impl<S: Script> ScriptedController<S> {
    pub(crate) fn new(script: S) -> Self {
        Self { script, progress: Progress::default(), interrupts_left: 0, byte: 0 }
    }

    fn transfer(&mut self, data: &mut Data<'_>) {
        self.script.send(data.tx().unwrap_or_default());
        let byte = first_byte(data);
        if let Some(first) = data.rx_mut().and_then(<[u8]>::first_mut) {
            *first = !byte;
        }
    }
}

impl<S: Script> Wire for ScriptedController<S> {
    fn select(&mut self, _: &Preset) {
        self.script.select(true);
    }

    fn deselect(&mut self, _: &Preset) {
        self.script.select(false);
    }

    fn exchange(&mut self, _: &Preset, _: &Plan, data: &mut Data<'_>) -> Result<(), Stopped> {
        self.script.at(Hook::Run, first_byte(data));
        self.transfer(data);
        Ok(())
    }

    fn recover(&mut self) {}

    fn wait_ticks(&mut self, _: u32) {}
}

impl<S: Script> Stepped for ScriptedController<S> {
    fn progress(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn begin(&mut self, _: &Preset, _: &Plan, data: &mut Data<'_>) {
        self.byte = first_byte(data);
        self.interrupts_left = self.script.interrupts(self.byte);
        self.script.at(Hook::Start, self.byte);
        self.script.begin();
    }

    fn advance(&mut self, _: &Preset, _: &Plan, data: &mut Data<'_>) -> Poll<Result<(), Stopped>> {
        self.script.at(Hook::Resume, self.byte);
        if !self.script.is_done() {
            return Poll::Pending;
        }
        self.interrupts_left -= 1;
        if self.interrupts_left > 0 {
            self.script.begin();
            return Poll::Pending;
        }
        self.transfer(data);
        Poll::Ready(Ok(()))
    }
}

impl<S: Script> Controller for ScriptedController<S> {
    fn limits(&self) -> Limits {
        Null::new().limits()
    }

    fn may_use_its_bus(&self) -> bool {
        self.script.may_use_its_bus()
    }

    fn configure(&self, settings: &Settings) -> Result<(Preset, Effective), Error> {
        let (preset, effective) = Null::new().configure(settings)?;
        let plan = preset.plan.with_interrupt(true);
        Ok((Preset { plan, asks: *settings == ASKING, ..preset }, effective))
    }

    fn plan(&self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.script.at(Hook::Plan, byte_of(message));
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
        if self.script.interrupts(byte_of(message)) == 0 {
            return Poll::Ready(self.run(preset, message));
        }
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
        self.script.at(Hook::Arm, self.byte);
    }

    fn silence(&mut self) {
        self.script.silence();
    }

    fn reclaim(&mut self) {
        self.script.reclaim();
    }
}
