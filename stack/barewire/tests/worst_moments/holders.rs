//! A context that holds the bus and asks for it again, and locks that go elsewhere.

use std::marker::PhantomData;
use std::sync::{Mutex, OnceLock};
use std::task::{Poll, Waker};
use std::thread;

use barewire::bus::queued::Completed;
use barewire::bus::{Bus, Device, Locked, Platform, Then};
use barewire::controller::null::Null;
use barewire::hal::{HalBus, HalDevice};
use barewire::spi::{Error, MessageError, Transfer};
use embedded_hal::spi::{SpiBus, SpiDevice};

use crate::platform::{PARKING, PLATFORMS, name_of};
use crate::threads::within;
use crate::wire::PLAIN;
use crate::{
    LIMIT, Wired, assert_serves, kept, message, on_each_bus, opened, panics, plain, poll,
    sent_so_far,
};

// Whether a type is `Send`: the inherent function wins where its bound holds.

struct Is<T>(PhantomData<T>);

impl<T: Send> Is<T> {
    fn send() -> bool {
        true
    }
}

trait Otherwise {
    fn send() -> bool {
        false
    }
}

impl<T> Otherwise for Is<T> {}

/// The lock of a bus that lends priorities belongs to its thread.
#[test]
fn a_lock_does_not_go_to_another_thread() {
    assert!(Is::<Bus<Null>>::send() && !Is::<*const u8>::send(), "it can tell");
    assert!(!Is::<Locked<'static, Null>>::send());
    assert!(!Is::<HalBus<'static, Null>>::send());
}

/// Runs `body` while a message is queued behind an idle lock, of this thread or of another.
fn behind_a_lock(platform: &'static dyn Platform, own: bool, body: fn(&Device<'_, Wired>)) {
    let (bus, sent) = plain(platform);
    let device = opened(&bus);
    let lock = bus.lock();
    if own {
        body(&device);
    } else {
        thread::scope(|scope| {
            // The lock is dropped when this has ended.
            scope.spawn(|| body(&device)).join().expect("no panic");
        });
    }
    drop(lock);
    assert_eq!(sent_so_far(&sent), [], "it was taken out");
    assert_serves(&bus);
}

fn behind_locks(body: fn(&Device<'_, Wired>)) {
    for platform in PLATFORMS {
        for own in [true, false] {
            within(LIMIT, name_of(platform), move || behind_a_lock(platform, own, body));
        }
    }
}

#[test]
fn cancelling_behind_an_idle_lock_does_not_wait_for_it() {
    behind_locks(|device| {
        let mut queued = message(device, 1);
        queued.as_mut().submit().expect("is free");
        assert!(queued.as_mut().cancel(), "it did not run");
        assert_eq!(queued.as_mut().result(), None);
        // And once more, to see that it can be queued again.
        queued.as_mut().submit().expect("is free");
        assert!(queued.as_mut().cancel());
    });
}

#[test]
fn dropping_a_message_behind_an_idle_lock_does_not_wait_for_it() {
    behind_locks(|device| {
        let mut queued = message(device, 1);
        queued.as_mut().enqueue().expect("is free");
    });
}

#[test]
fn dropping_a_future_behind_an_idle_lock_does_not_wait_for_it() {
    behind_locks(|device| {
        let mut queued = message(device, 1);
        let mut running = Box::pin(queued.as_mut().run());
        assert!(poll(&mut running, Waker::noop()).is_pending());
        drop(running);
        let mut transfers = [Transfer::write(&[2])];
        let mut borrowed = Box::pin(device.transact(&mut transfers));
        assert!(poll(&mut borrowed, Waker::noop()).is_pending());
    });
}

/// Cancelling a message in the middle of the queue does not move its neighbours.
#[test]
fn cancelling_behind_an_idle_lock_leaves_the_others_queued() {
    on_each_bus(&[1, 3], |bus, device| {
        let mut messages: Vec<_> = (1..=4).map(|byte| message(device, byte)).collect();
        let lock = bus.lock();
        for message in &mut messages {
            message.as_mut().submit().expect("is free");
        }
        assert!(messages[1].as_mut().cancel());
        drop(messages.pop());
        drop(lock);
        assert_eq!(messages[0].as_mut().result(), Some(Ok(1)));
        assert_eq!(messages[1].as_mut().result(), None);
        assert_eq!(messages[2].as_mut().result(), Some(Ok(1)));
    });
}

/// A driver on a shared bus, beside one of the same thread that has the bus to itself.
#[test]
fn a_hal_device_beside_the_hal_bus_of_its_thread_is_refused() {
    on_each_bus(&[1, 3, 4], |bus, device| {
        let mut other = HalDevice::new(*device);
        let mut hal_bus = HalBus::new(bus.lock(), &PLAIN).expect("opens");
        SpiBus::write(&mut hal_bus, &[1]).expect("runs");
        assert!(SpiDevice::write(&mut other, &[2]).is_err());
        SpiBus::write(&mut hal_bus, &[3]).expect("runs");
        drop(hal_bus);
        SpiDevice::write(&mut other, &[4]).expect("runs");
    });
}

#[test]
fn who_has_locked_the_bus_is_refused_what_would_wait_for_it() {
    on_each_bus(&[5, 3], |bus, device| {
        let mut prepared = device.prepare([1]).expect("plans");
        let mut transfers = [Transfer::write(&[2])];
        let mut prepared_message = device.prepare_message(&mut transfers).expect("plans");
        let mut submitted = message(device, 3);
        let mut lock = bus.lock();
        submitted.as_mut().submit().expect("is free");
        assert!(device.sync(&mut [Transfer::write(&[4])]).is_err());
        assert!(prepared.run().is_err());
        assert!(prepared_message.run().is_err());
        assert!(bus.device(&PLAIN).is_err());
        assert!(panics(|| drop(bus.lock())), "a lock panics: it cannot return an error");
        assert!(bus.try_lock().is_none(), "it was not given back");
        assert!(matches!(submitted.as_mut().wait(), Some(Err(_))));
        assert_eq!(lock.sync(device, &mut [Transfer::write(&[5])]), Ok(1));
        drop(lock);
        assert_eq!(submitted.as_mut().wait(), Some(Ok(1)), "it stayed submitted");
    });
}

/// A future is not refused: it waits, and its thread may go on.
#[test]
fn who_has_locked_the_bus_may_poll_a_future() {
    on_each_bus(&[1], |bus, device| {
        let mut transfers = [Transfer::write(&[1])];
        let lock = bus.lock();
        let mut future = Box::pin(device.transact(&mut transfers));
        assert!(poll(&mut future, Waker::noop()).is_pending());
        drop(lock);
        assert_eq!(poll(&mut future, Waker::noop()), Poll::Ready(Ok(1)));
    });
}

#[test]
fn a_callback_is_refused_what_would_wait_for_the_bus_and_may_submit() {
    static DEVICE: OnceLock<Device<'static, Wired>> = OnceLock::new();
    static REFUSED: Mutex<Vec<bool>> = Mutex::new(Vec::new());
    fn waits(_: &mut Completed<'_>) -> Then {
        let device = DEVICE.get().expect("is set");
        let refused = [
            device.sync(&mut [Transfer::write(&[8])]).is_err(),
            device.bus().device(&PLAIN).is_err(),
            panics(|| drop(device.bus().lock())),
        ];
        REFUSED.lock().expect("no panic while locked").extend(refused);
        Then::Done
    }
    within(LIMIT, "it", || {
        let (bus, sent) = plain(&PARKING);
        let bus = kept(bus);
        let device = *DEVICE.get_or_init(|| opened(bus));
        let queued = device.queued([1]).expect("plans").with_callback(&waits);
        let mut queued = Box::pin(queued);
        queued.as_mut().submit().expect("is free");
        assert_eq!(queued.as_mut().result(), Some(Ok(1)));
        assert_eq!(*REFUSED.lock().expect("no panic while locked"), [true; 3]);
        assert_eq!(sent_so_far(&sent), [1]);
        assert_serves(bus);
    });
}

/// It would run others' messages, however long they are, and wait for the wire before each.
#[test]
fn a_try_call_that_fails_runs_nobody_s_message() {
    on_each_bus(&[1], |bus, device| {
        let mut queued = message(device, 1);
        queued.as_mut().enqueue().expect("is free");
        let busy = MessageError::refused(Error::Busy, 0);
        assert!(bus.try_lock().is_none());
        assert_eq!(device.try_sync(&mut [Transfer::write(&[2])]), Err(busy));
        let mut prepared = device.prepare([3]).expect("plans");
        assert_eq!(prepared.try_run().err(), Some(busy));
        assert_eq!(queued.as_mut().result(), None, "it did not run");
        bus.pump();
        assert_eq!(queued.as_mut().result(), Some(Ok(1)));
    });
}
