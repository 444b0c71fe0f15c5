//! Futures that are woken and not polled, or are dropped then.

use std::thread;

use std::task::{Poll, Waker};

use barewire::bus::{Bus, Device, Platform, Pump};
use barewire::spi::Transfer;

use crate::platform::{PLATFORMS, name_of};
use crate::threads::{Woken, within};
use crate::{LIMIT, Wired, assert_serves, message, opened, poll, sent_so_far, wired};

/// A future waits for its turn behind a lock, its turn comes, and `meanwhile` runs before it is
/// polled.
fn unpolled(
    platform: &'static dyn Platform,
    pump: Pump,
    meanwhile: fn(&Bus<Wired>, &Device<'_, Wired>),
) {
    let (bus, sent) = wired(platform, pump, |_| {});
    let device = opened(&bus);
    let mut transfers = [Transfer::write(&[1])];
    let (woken, waker) = Woken::new();
    let lock = bus.lock();
    let mut future = Box::pin(device.transact(&mut transfers));
    assert!(poll(&mut future, &waker).is_pending());
    drop(lock);
    assert_eq!(woken.times(), 1, "its turn has come");
    meanwhile(&bus, &device);
    assert_eq!(poll(&mut future, &waker), Poll::Ready(Ok(1)));
    drop(future);
    assert_eq!(sent_so_far(&sent).iter().filter(|&&byte| byte == 1).count(), 1);
    assert_serves(&bus);
}

fn unpolled_everywhere(meanwhile: fn(&Bus<Wired>, &Device<'_, Wired>)) {
    for platform in PLATFORMS {
        within(LIMIT, name_of(platform), move || unpolled(platform, Pump::Caller, meanwhile));
        if platform.inheritance().is_none() {
            within(LIMIT, name_of(platform), move || {
                unpolled(platform, Pump::Interrupt, meanwhile)
            });
        }
    }
}

#[test]
fn a_sync_call_does_not_wait_for_a_future_of_its_thread_to_be_polled() {
    unpolled_everywhere(|_, device| {
        assert_eq!(device.sync(&mut [Transfer::write(&[2])]), Ok(1));
    });
}

#[test]
fn a_prepared_access_does_not_wait_for_a_future_of_its_thread_to_be_polled() {
    unpolled_everywhere(|_, device| {
        assert!(device.prepare([2]).expect("plans").run().is_ok());
    });
}

#[test]
fn a_lock_does_not_wait_for_a_future_of_its_thread_to_be_polled() {
    unpolled_everywhere(|bus, device| {
        assert_eq!(bus.lock().sync(device, &mut [Transfer::write(&[2])]), Ok(1));
    });
}

#[test]
fn a_try_call_does_not_find_a_bus_busy_with_a_future_that_is_not_polled() {
    unpolled_everywhere(|_, device| {
        assert_eq!(device.try_sync(&mut [Transfer::write(&[2])]), Ok(1));
    });
}

#[test]
fn a_submitted_message_does_not_wait_for_a_future_to_be_polled() {
    unpolled_everywhere(|_, device| {
        let mut submitted = message(device, 2);
        submitted.as_mut().submit().expect("is free");
        assert_eq!(submitted.as_mut().wait(), Some(Ok(1)));
    });
}

#[test]
fn a_future_does_not_wait_for_another_to_be_polled() {
    unpolled_everywhere(|_, device| {
        let mut transfers = [Transfer::write(&[2])];
        let mut future = Box::pin(device.transact(&mut transfers));
        assert_eq!(poll(&mut future, Waker::noop()), Poll::Ready(Ok(1)));
    });
}

#[test]
fn another_thread_does_not_wait_for_a_future_to_be_polled() {
    unpolled_everywhere(|bus, device| {
        thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(device.sync(&mut [Transfer::write(&[2])]), Ok(1));
                assert_eq!(bus.lock().sync(device, &mut [Transfer::write(&[3])]), Ok(1));
            });
        });
    });
}

#[test]
fn futures_that_are_woken_and_dropped_leave_an_idle_bus() {
    for platform in PLATFORMS {
        within(LIMIT, name_of(platform), move || {
            let (bus, sent) = wired(platform, Pump::Caller, |_| {});
            let device = opened(&bus);
            let (mut one, mut two) = ([Transfer::write(&[1])], [Transfer::write(&[2])]);
            let lock = bus.lock();
            let mut first = Box::pin(device.transact(&mut one));
            let mut second = Box::pin(device.transact(&mut two));
            let (_, waker) = Woken::new();
            assert!(poll(&mut first, &waker).is_pending());
            assert!(poll(&mut second, &waker).is_pending());
            drop(lock);
            drop(second);
            assert_eq!(device.sync(&mut [Transfer::write(&[3])]), Ok(1));
            drop(first);
            assert_eq!(sent_so_far(&sent), [3]);
            assert_serves(&bus);
        });
    }
}
