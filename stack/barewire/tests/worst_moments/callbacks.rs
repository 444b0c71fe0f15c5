//! Callbacks that panic: each panic reaches the caller that ran the callback, and nothing else is
//! lost.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Mutex;
use std::task::{Poll, Waker};

use barewire::bus::queued::Completed;
use barewire::bus::{Device, Pump, Then};
use barewire::spi::Transfer;

use crate::platform::{INHERITING, PLATFORMS, name_of};
use crate::threads::{Woken, lock, within};
use crate::{
    LIMIT, Wired, assert_serves, kept, message, on_each_bus, on_each_platform, opened, panicking,
    panics, plain, poll, sent_so_far, wired,
};

#[test]
fn a_callback_that_panics_inside_another_s_wait_loses_neither_message() {
    on_each_bus(&[1, 2, 3], |_, device| {
        let (mut bad, mut waited, mut after) =
            (panicking(device, 1), message(device, 2), message(device, 3));
        for message in [&mut bad, &mut waited, &mut after] {
            message.as_mut().enqueue().expect("is free");
        }
        assert!(panics(|| {
            let _ = waited.as_mut().wait();
        }));
        assert_eq!(waited.as_mut().wait(), Some(Ok(1)));
        assert_eq!(bad.as_mut().wait(), Some(Ok(1)), "the message keeps its result");
        assert_eq!(after.as_mut().wait(), Some(Ok(1)));
    });
}

#[test]
fn futures_queued_behind_a_callback_that_panics_are_woken() {
    on_each_bus(&[1, 2, 3], |bus, device| {
        let (mut bad, mut queued) = (panicking(device, 1), message(device, 2));
        let mut transfers = [Transfer::write(&[3])];
        let lock = bus.lock();
        bad.as_mut().submit().expect("is free");
        let mut running = Box::pin(queued.as_mut().run());
        let mut borrowed = Box::pin(device.transact(&mut transfers));
        let ((ended, running_waker), (turn, borrowed_waker)) = (Woken::new(), Woken::new());
        assert!(poll(&mut running, &running_waker).is_pending());
        assert!(poll(&mut borrowed, &borrowed_waker).is_pending());
        assert!(panics(|| drop(lock)));
        assert_eq!((ended.times(), turn.times()), (1, 1), "woken before the panic arrived");
        assert_eq!(poll(&mut running, &running_waker), Poll::Ready(Ok(1)));
        assert_eq!(poll(&mut borrowed, &borrowed_waker), Poll::Ready(Ok(1)));
        assert_eq!(bad.as_mut().result(), Some(Ok(1)));
        drop((running, borrowed));
    });
}

#[test]
fn what_is_queued_behind_a_callback_that_panics_can_be_dropped() {
    on_each_platform(|platform| {
        let (bus, _) = plain(platform);
        let device = opened(&bus);
        let (mut bad, mut queued) = (panicking(&device, 1), message(&device, 2));
        let mut transfers = [Transfer::write(&[3])];
        let lock = bus.lock();
        bad.as_mut().submit().expect("is free");
        let mut running = Box::pin(queued.as_mut().run());
        let mut borrowed = Box::pin(device.transact(&mut transfers));
        assert!(poll(&mut running, Waker::noop()).is_pending());
        assert!(poll(&mut borrowed, Waker::noop()).is_pending());
        assert!(panics(|| drop(lock)));
        drop(borrowed);
        drop(running);
        drop((queued, bad));
        assert_serves(&bus);
    });
}

/// On a bus that a handler pumps, the thread or handler that ends the flight runs the callback.
#[test]
fn a_callback_that_panics_on_a_bus_pumped_by_interrupts_leaves_the_bus_idle() {
    for platform in PLATFORMS.into_iter().filter(|platform| platform.inheritance().is_none()) {
        within(LIMIT, name_of(platform), move || {
            let (bus, sent) = wired(platform, Pump::Interrupt, |_| {});
            let device = opened(&bus);
            let (mut bad, mut after) = (panicking(&device, 1), message(&device, 2));
            assert!(panics(|| bad.as_mut().submit().expect("is free")));
            assert_eq!(bad.as_mut().result(), Some(Ok(1)));
            let lock = bus.lock();
            bad.as_mut().submit().expect("is free");
            after.as_mut().submit().expect("is free");
            assert!(panics(|| drop(lock)));
            assert_eq!(bad.as_mut().result(), Some(Ok(1)));
            assert_eq!(after.as_mut().result(), Some(Ok(1)), "served before the panic arrived");
            assert_eq!(sent_so_far(&sent), [1, 1, 2]);
            assert_serves(&bus);
        });
    }
}

#[test]
fn a_bus_that_lends_priorities_runs_submitted_messages_after_a_callback_panicked() {
    within(LIMIT, "it", || {
        let (bus, sent) = plain(&INHERITING);
        let device = opened(&bus);
        let (mut bad, mut after) = (panicking(&device, 1), message(&device, 2));
        assert!(panics(|| bad.as_mut().submit().expect("is free")));
        assert_eq!(bad.as_mut().result(), Some(Ok(1)));
        after.as_mut().submit().expect("is free");
        assert_eq!(after.as_mut().result(), Some(Ok(1)), "its submitter runs it, as always");
        // Also inside a sync call, which first runs the messages that its context submitted before.
        bad.as_mut().enqueue().expect("is free");
        assert!(panics(|| {
            let _ = device.sync(&mut [Transfer::write(&[3])]);
        }));
        assert_eq!(bad.as_mut().result(), Some(Ok(1)));
        assert_eq!(device.sync(&mut [Transfer::write(&[4])]), Ok(1));
        let sent = sent_so_far(&sent);
        assert_eq!(
            sent.iter().copied().filter(|&byte| byte != 3).collect::<Vec<_>>(),
            [1, 2, 1, 4]
        );
        assert_serves(&bus);
    });
}

#[test]
fn several_callbacks_that_panic_in_one_release_lose_nothing() {
    on_each_bus(&[1, 2, 3, 4], |bus, device| {
        let mut bad: Vec<_> = (1..=3).map(|byte| panicking(device, byte)).collect();
        let mut after = message(device, 4);
        let lock = bus.lock();
        for message in bad.iter_mut().chain([&mut after]) {
            message.as_mut().submit().expect("is free");
        }
        assert!(panics(|| drop(lock)));
        for message in bad.iter_mut().chain([&mut after]) {
            assert_eq!(message.as_mut().result(), Some(Ok(1)));
        }
    });
}

/// A panic payload that panics when it is dropped. Without a size, so that leaking it is not
/// reported as a leak.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic_any(());
    }
}

#[test]
fn what_later_panics_carry_may_panic_when_it_is_dropped() {
    on_each_bus(&[1, 2, 3], |bus, device| {
        let throws = |byte| {
            let message = device.queued([byte]).expect("plans");
            Box::pin(message.with_callback(&|_| panic_any(Bomb)))
        };
        let mut bad = [throws(1), throws(2), throws(3)];
        let lock = bus.lock();
        for message in &mut bad {
            message.as_mut().submit().expect("is free");
        }
        let raised = catch_unwind(AssertUnwindSafe(|| drop(lock))).expect_err("the first panic");
        assert!(raised.is::<Bomb>());
        std::mem::forget(raised);
    });
}

/// A panic payload that uses the bus when it is dropped.
struct Using(Device<'static, Wired>);

impl Drop for Using {
    fn drop(&mut self) {
        let ran = self.0.sync(&mut [Transfer::write(&[9])]);
        assert!(ran.is_ok(), "no right of the bus is held here: {ran:?}");
    }
}

#[test]
fn what_later_panics_carry_may_use_the_bus_when_it_is_dropped() {
    static DEVICE: Mutex<Option<Device<'static, Wired>>> = Mutex::new(None);
    fn throws(_: &mut Completed<'_>) -> Then {
        panic_any(Using(lock(&DEVICE).expect("is set")))
    }
    on_each_platform(|platform| {
        let (bus, sent) = plain(platform);
        let bus = kept(bus);
        let device = opened(bus);
        *lock(&DEVICE) = Some(device);
        let throwing =
            |byte| Box::pin(device.queued([byte]).expect("plans").with_callback(&throws));
        let mut bad = [throwing(1), throwing(2), throwing(3)];
        let locked = bus.lock();
        for message in &mut bad {
            message.as_mut().submit().expect("is free");
        }
        let raised = catch_unwind(AssertUnwindSafe(|| drop(locked))).expect_err("the first panic");
        drop(raised);
        let mut sent = sent_so_far(&sent);
        sent.sort_unstable();
        assert_eq!(sent, [1, 2, 3, 9, 9, 9]);
        assert_serves(bus);
    });
}
