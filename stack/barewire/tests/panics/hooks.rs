//! The hooks: the controller, its tracer, the platforms, a waker and the callbacks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

use barewire::bus::queued::{Callback, Completed};
use barewire::bus::{Bus, Platform, Pump, Then};
use barewire::controller::Controller;
use barewire::middleware::Tracer;
use barewire::time::Timer;
use barewire::trace::Event;

use crate::fuse::{self, at, run};
use crate::ops::Op;
use crate::platform::{Interpose, Threads};
use crate::wire::{Hook, Script, ScriptedController};

/// The settings of every device in these tests.
pub(crate) type Any = dyn Controller + Send;

/// A controller and platforms, any of whose calls may panic.
pub(crate) struct Hooks;

impl Script for Hooks {
    fn at(&self, hook: Hook, byte: u8) {
        at(hook, byte);
    }

    fn select(&mut self, active: bool) {
        let run = run();
        let mut log = run.log();
        log.interleaved |= active && log.selected;
        log.selected = active;
    }

    fn send(&mut self, bytes: &[u8]) {
        run().log().sent.extend(bytes);
    }

    fn interrupts(&self, _: u8) -> u8 {
        2
    }

    fn reclaim(&mut self) {
        run().log().selected = false;
    }
}

impl Interpose for Hooks {
    fn waits(&self) {
        fuse::waits();
    }

    fn sleeps(&self) -> bool {
        at(Hook::PlatformWait, 0);
        true
    }

    fn wakes(&self) {
        at(Hook::PlatformWake, 0);
    }
}

pub(crate) static SPINNING: Threads<Hooks> = Threads::spinning(Hooks);
pub(crate) static PARKING: Threads<Hooks> = Threads::parking(Hooks);
pub(crate) static INHERITING: Threads<Hooks> = Threads::inheriting(Hooks);

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

/// A bus, any of whose hooks may panic. Under a tracer whole messages are run, so a bus pumped by
/// interrupts has none.
pub(crate) fn hooked_bus(platform: &'static dyn Platform, pump: Pump) -> Box<Bus<Any>> {
    let fused = ScriptedController::new(Hooks);
    if pump == Pump::Interrupt {
        return Box::new(Bus::with_platform(fused, platform).with_pump(pump));
    }
    // At the beginning of a message a tracer is not told which one it is.
    let sink = |_: &Event<'_>| at(Hook::Sink, 0);
    let traced = Tracer::new(fused, Still, sink);
    Box::new(Bus::with_platform(traced, platform).with_pump(pump))
}

/// A task that only notes its wake-ups.
#[derive(Default)]
pub(crate) struct Signal(AtomicBool);

impl Signal {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether it was woken since the last call.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.set();
        at(Hook::Waker, 0);
    }
}

/// Returns how often it was called back before, and whether the message ran.
fn call_back(completed: &Completed<'_>) -> (usize, bool) {
    let good = completed.result().is_ok();
    let byte = completed.rx(0).and_then(|rx| rx.first().copied()).map_or(0, |rx| !rx);
    // The received bytes of an aborted message are not defined.
    let byte = if good { byte } else { 0 };
    let run = run();
    let before = run.log().times_called_back(byte);
    run.log().called_back.push(byte);
    at(Hook::Callback, byte);
    (before, good)
}

fn done(completed: &mut Completed<'_>) -> Then {
    call_back(completed);
    Then::Done
}

fn again(completed: &mut Completed<'_>) -> Then {
    if call_back(completed) == (0, true) { Then::Again } else { Then::Done }
}

pub(crate) fn callback_of(op: Op) -> Option<Callback> {
    match op {
        Op::Callback => Some(&done),
        Op::Again => Some(&again),
        _ => None,
    }
}
