//! A level-triggered interrupt on one core that comes at the worst moment.
//!
//! The core is a flag: while it is masked, or in the handler, the interrupt is not delivered. The
//! line is another: it stays up until the controller silences the block. Wherever the model says
//! that the interrupt may come, the handler is called until the line is down; a handler that never
//! gets it down is a livelock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::task::Poll;

use barewire::bus::{Bus, Platform, Pump};
use barewire::controller::null::Null;
use barewire::controller::{Controller, Limits, Preset, Unfinished};
use barewire::spi::{Effective, Error, MessageError, Settings, Transfer};

use crate::threads::{Park, within};
use crate::{LIMIT, SETTINGS};

/// When the block raises its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Raises {
    /// As soon as it may: within [`Controller::arm`].
    Armed,
    /// When [`Controller::resume`] was called, before its first register access.
    Resumed,
}

/// One core and one interrupt line.
struct Core {
    bus: OnceLock<&'static Bus<Level>>,
    masked: AtomicBool,
    in_handler: AtomicBool,
    line_up: AtomicBool,
    livelock: AtomicBool,
    handled: AtomicUsize,
}

impl Core {
    const fn new() -> Self {
        Self {
            bus: OnceLock::new(),
            masked: AtomicBool::new(false),
            in_handler: AtomicBool::new(false),
            line_up: AtomicBool::new(false),
            livelock: AtomicBool::new(false),
            handled: AtomicUsize::new(0),
        }
    }

    /// The interrupt comes here, if it may and its line is up.
    fn deliver(&self) {
        let kept_out = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        if kept_out(&self.masked) || kept_out(&self.in_handler) || kept_out(&self.livelock) {
            return;
        }
        let Some(bus) = self.bus.get() else { return };
        for _ in 0..1_000 {
            if !self.line_up.load(Ordering::Relaxed) {
                return;
            }
            self.in_handler.store(true, Ordering::Relaxed);
            bus.interrupt();
            self.in_handler.store(false, Ordering::Relaxed);
            self.handled.fetch_add(1, Ordering::Relaxed);
        }
        // The line is put down, so that the test ends and says so.
        self.livelock.store(true, Ordering::Relaxed);
    }
}

impl Platform for Core {
    fn context(&self) -> usize {
        Park.context()
    }

    fn spins(&self) -> u32 {
        0
    }

    fn relax(&self) {
        self.deliver();
    }

    fn wait(&self, _word: &AtomicU32, _expected: u32) {
        self.deliver();
    }

    fn wake(&self, _word: *const AtomicU32) {}

    fn masked(&self, f: &mut dyn FnMut()) {
        let was = self.masked.swap(true, Ordering::Relaxed);
        f();
        self.masked.store(was, Ordering::Relaxed);
        self.deliver();
    }
}

/// A block that needs two interrupts for a message.
struct Level {
    core: &'static Core,
    raises: Raises,
    left: usize,
}

impl Controller for Level {
    fn limits(&self) -> Limits {
        Null::new().limits()
    }

    fn configure(&self, settings: &Settings) -> Result<(Preset, Effective), Error> {
        Null::new().configure(settings)
    }

    fn plan(&self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        Null::new().plan(preset, message)
    }

    fn run(&mut self, _: &Preset, message: &mut [Transfer<'_>]) -> Result<usize, Unfinished> {
        Ok(message.iter().map(|transfer| transfer.data().len()).sum())
    }

    fn start(&mut self, _: &Preset, _: &mut [Transfer<'_>]) -> Poll<Result<usize, Unfinished>> {
        self.left = 2;
        Poll::Pending
    }

    fn resume(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        let core = self.core;
        if self.raises == Raises::Resumed {
            core.line_up.store(true, Ordering::Relaxed);
        }
        core.deliver();
        // The first register access silences the block.
        core.line_up.store(false, Ordering::Relaxed);
        self.left -= 1;
        if self.left == 0 { Poll::Ready(self.run(preset, message)) } else { Poll::Pending }
    }

    fn arm(&mut self) {
        if self.raises == Raises::Armed {
            self.core.line_up.store(true, Ordering::Relaxed);
            self.core.deliver();
        }
    }

    fn reclaim(&mut self) {
        self.core.line_up.store(false, Ordering::Relaxed);
    }
}

/// A message flies, and then the caller waits for the bus in one way or another.
fn a_flight_and_then(
    core: &'static Core,
    bus: &'static OnceLock<Bus<Level>>,
    raises: Raises,
    waits: impl FnOnce(&'static Bus<Level>) + Send + 'static,
) {
    within(LIMIT, "it", move || {
        let level = Level { core, raises, left: 0 };
        let bus = bus.get_or_init(|| Bus::with_platform(level, core).with_pump(Pump::Interrupt));
        core.bus.set(bus).expect("each test has its own");
        let device = bus.device(&SETTINGS).expect("opens");
        let mut flying = Box::pin(device.queued([1]).expect("plans"));
        flying.as_mut().submit().expect("is free");
        waits(bus);
        assert_eq!(flying.as_mut().wait(), Some(Ok(1)));
        assert!(!core.livelock.load(Ordering::Relaxed), "the line stays up, whatever is handled");
        assert!(bus.try_lock().is_some(), "the bus is idle");
    });
}

macro_rules! on_one_core {
    ($($name:ident: $raises:expr, $waits:expr;)*) => {$(
        #[test]
        fn $name() {
            static CORE: Core = Core::new();
            static BUS: OnceLock<Bus<Level>> = OnceLock::new();
            a_flight_and_then(&CORE, &BUS, $raises, $waits);
        }
    )*};
}

on_one_core! {
    an_interrupt_may_come_as_a_waiter_attends_to_its_message:
        Raises::Resumed, |_| {};
    an_interrupt_may_come_as_a_sync_call_attends_to_a_flight:
        Raises::Resumed, |bus| {
            let device = bus.device(&SETTINGS).expect("opens");
            assert_eq!(device.sync(&mut [Transfer::write(&[2])]), Ok(1));
        };
    an_interrupt_may_come_as_a_lock_attends_to_a_flight:
        Raises::Resumed, |bus| drop(bus.lock());
    an_interrupt_may_come_as_a_cancel_attends_to_a_flight:
        Raises::Resumed, |bus| {
            let device = bus.device(&SETTINGS).expect("opens");
            let mut flies = Box::pin(device.queued([2]).expect("plans"));
            flies.as_mut().submit().expect("is free");
            assert!(!flies.as_mut().cancel(), "one on the wire is waited for");
            assert_eq!(flies.as_mut().result(), Some(Ok(1)));
        };
    an_interrupt_may_come_as_a_flying_message_is_dropped:
        Raises::Resumed, |bus| {
            let device = bus.device(&SETTINGS).expect("opens");
            let mut flies = Box::pin(device.queued([2]).expect("plans"));
            flies.as_mut().submit().expect("is free");
        };
    an_interrupt_may_come_as_soon_as_it_is_armed:
        Raises::Armed, |bus| {
            let device = bus.device(&SETTINGS).expect("opens");
            assert_eq!(device.sync(&mut [Transfer::write(&[2])]), Ok(1));
        };
}
