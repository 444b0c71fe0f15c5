//! A level-triggered interrupt on one core that comes at the worst moment.
//!
//! The core is a flag: while it is masked, or in the handler, the interrupt is not delivered. The
//! line is another: it stays up until the controller silences the block. Wherever the model says
//! that the interrupt may come, the handler is called until the line is down; a handler that never
//! gets it down is a livelock.
//!
//! And a core that breaks its promise: it runs the function that must run with the interrupt masked
//! twice, or not at all. Under Miri this shows that a safe platform cannot break memory.

use std::future::Future;
use std::pin::pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use barewire::bus::platform::WaitWord;
use barewire::bus::{Bus, Platform, Pump};
use barewire::spi::Transfer;

use crate::LIMIT;
use crate::sleep::me;
use crate::threads::within;
use crate::wire::{Hook, PLAIN, Script, ScriptedController};

/// When the block raises its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Raises {
    /// As soon as it may: within `Controller::arm`.
    Armed,
    /// When `Controller::resume` was called, before its first register access.
    Resumed,
}

/// One core and one interrupt line.
struct Core {
    /// How often it calls the function that must run once with the interrupt masked.
    calls: usize,
    bus: OnceLock<&'static Bus<Block>>,
    masked: AtomicBool,
    in_handler: AtomicBool,
    line_up: AtomicBool,
    livelock: AtomicBool,
    handled: AtomicUsize,
}

impl Core {
    const fn new() -> Self {
        Self::calling(1)
    }

    const fn calling(calls: usize) -> Self {
        Self {
            calls,
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
        me()
    }

    fn spins(&self) -> u32 {
        0
    }

    fn relax(&self) {
        self.deliver();
    }

    fn wait(&self, _word: WaitWord<'_>, _expected: u32) {
        self.deliver();
    }

    fn wake(&self, _word: *const AtomicU32) {}

    fn masked(&self, f: &mut dyn FnMut()) {
        let was = self.masked.swap(true, Ordering::Relaxed);
        (0..self.calls).for_each(|_| f());
        self.masked.store(was, Ordering::Relaxed);
        self.deliver();
    }
}

/// A block that needs two interrupts for a message.
struct Level {
    core: &'static Core,
    raises: Raises,
}

type Block = ScriptedController<Level>;

impl Script for Level {
    fn at(&self, hook: Hook, _: u8) {
        let raises = match hook {
            Hook::Arm => self.raises == Raises::Armed,
            Hook::Resume => self.raises == Raises::Resumed,
            _ => return,
        };
        if raises {
            self.core.line_up.store(true, Ordering::Relaxed);
        }
        self.core.deliver();
        if hook == Hook::Resume {
            // The first register access silences the block.
            self.core.line_up.store(false, Ordering::Relaxed);
        }
    }

    fn send(&mut self, _: &[u8]) {}

    fn interrupts(&self, _: u8) -> u8 {
        2
    }

    fn silence(&mut self) {
        self.core.deliver();
        self.core.line_up.store(false, Ordering::Relaxed);
    }

    fn reclaim(&mut self) {
        self.core.line_up.store(false, Ordering::Relaxed);
    }
}

/// Polls a future until it is ready. Between the polls the interrupt may come.
fn polled_to_its_end<F: Future>(core: &Core, future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => return output,
            Poll::Pending => core.deliver(),
        }
    }
}

/// A message flies, and then the caller waits for the bus in one way or another.
fn a_flight_and_then(
    core: &'static Core,
    bus: &'static OnceLock<Bus<Block>>,
    raises: Raises,
    waits: impl FnOnce(&'static Bus<Block>, &'static Core) + Send + 'static,
) {
    within(LIMIT, "it", move || {
        let level = Block::new(Level { core, raises });
        let bus = bus.get_or_init(|| Bus::with_platform(level, core).with_pump(Pump::Interrupt));
        core.bus.set(bus).expect("each test has its own");
        let device = bus.device(&PLAIN).expect("opens");
        let mut flying = Box::pin(device.queued([1]).expect("plans"));
        flying.as_mut().submit().expect("is free");
        waits(bus, core);
        assert_eq!(flying.as_mut().wait(), Some(Ok(1)));
        // If a platform does not mask, the handler runs, finds nothing to do, and the line stays
        // high.
        let livelock = core.livelock.load(Ordering::Relaxed);
        assert!(!livelock || core.calls == 0, "the line stays up, whatever is handled");
        assert!(bus.try_lock().is_some(), "the bus is idle");
    });
}

macro_rules! on_one_core {
    ($($name:ident: $raises:expr, $waits:expr;)*) => {
        on_one_core!{ $($name: Core::new(), $raises, $waits;)* }
    };
    ($($name:ident: $core:expr, $raises:expr, $waits:expr;)*) => {$(
        #[test]
        fn $name() {
            static CORE: Core = $core;
            static BUS: OnceLock<Bus<Block>> = OnceLock::new();
            a_flight_and_then(&CORE, &BUS, $raises, $waits);
        }
    )*};
}

on_one_core! {
    an_interrupt_may_come_as_a_waiter_attends_to_its_message:
        Raises::Resumed, |_, _| {};
    an_interrupt_may_come_as_a_sync_call_attends_to_a_flight:
        Raises::Resumed, |bus, _| {
            let device = bus.device(&PLAIN).expect("opens");
            assert_eq!(device.sync(&mut [Transfer::write(&[2])]), Ok(1));
        };
    an_interrupt_may_come_as_a_lock_attends_to_a_flight:
        Raises::Resumed, |bus, _| drop(bus.lock());
    an_interrupt_may_come_as_a_cancel_attends_to_a_flight:
        Raises::Resumed, |bus, _| {
            let device = bus.device(&PLAIN).expect("opens");
            let mut flies = Box::pin(device.queued([2]).expect("plans"));
            flies.as_mut().submit().expect("is free");
            assert!(!flies.as_mut().cancel(), "a message on the wire cannot be cancelled");
            assert_eq!(flies.as_mut().result(), Some(Ok(1)));
        };
    an_interrupt_may_come_as_a_flying_message_is_dropped:
        Raises::Resumed, |bus, _| {
            let device = bus.device(&PLAIN).expect("opens");
            let mut flies = Box::pin(device.queued([2]).expect("plans"));
            flies.as_mut().submit().expect("is free");
        };
    an_interrupt_may_come_as_a_future_goes_on_with_its_message:
        Raises::Resumed, |bus, core| {
            let device = bus.device(&PLAIN).expect("opens");
            assert_eq!(polled_to_its_end(core, device.transact(&mut [Transfer::write(&[2])])), Ok(1));
        };
    an_interrupt_may_come_as_soon_as_a_future_has_started_its_message:
        Raises::Armed, |bus, core| {
            let device = bus.device(&PLAIN).expect("opens");
            assert_eq!(polled_to_its_end(core, device.transact(&mut [Transfer::write(&[2])])), Ok(1));
        };
    an_interrupt_may_come_as_a_future_in_flight_is_dropped:
        Raises::Resumed, |bus, _| {
            let device = bus.device(&PLAIN).expect("opens");
            let mut message = [Transfer::write(&[2])];
            let mut future = Box::pin(device.transact(&mut message));
            while bus.try_lock().is_none() {
                let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            }
            let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending());
        };
    an_interrupt_may_come_as_soon_as_it_is_armed:
        Raises::Armed, |bus, _| {
            let device = bus.device(&PLAIN).expect("opens");
            assert_eq!(device.sync(&mut [Transfer::write(&[2])]), Ok(1));
        };
}

on_one_core! {
    what_is_called_twice_is_done_once:
        Core::calling(2), Raises::Resumed, |bus, _| drop(bus.lock());
    what_is_not_called_is_done:
        Core::calling(0), Raises::Resumed, |bus, _| drop(bus.lock());
}
