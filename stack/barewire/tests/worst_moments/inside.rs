//! Code of users that runs while their own context has the bus (a controller, a callback), and uses the
//! bus there.

use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Waker;

use barewire::bus::queued::{Callback, Completed};
use barewire::bus::{Bus, Device, Platform, Pump, Then};
use barewire::spi::{Error, MessageError, Transfer};

use crate::platform::{PARKING, PLATFORMS, name_of};
use crate::threads::{lock, within};
use crate::wire::PLAIN;
use crate::{
    LIMIT, Message, Wired, assert_serves, kept, message, opened, panics, poll, sent_so_far, wired,
};

type StaticDevice = Device<'static, Wired>;

/// A bus whose controller calls `inside` for a message of 1, before it sends that.
fn calling_inside(
    platform: &'static dyn Platform,
    pump: Pump,
    inside: impl Fn(StaticDevice) + Send + 'static,
) -> (&'static Bus<Wired>, crate::Sent) {
    let device: Arc<OnceLock<StaticDevice>> = Arc::default();
    let its = Arc::clone(&device);
    let (bus, sent) = wired(platform, pump, move |bytes| {
        if let ([1], Some(&device)) = (bytes, its.get()) {
            inside(device);
        }
    });
    let bus = kept(bus);
    let _ = device.set(opened(bus));
    (bus, sent)
}

/// Runs a message of 1 by each path; `expected` bytes are sent each time.
fn by_each_path(bus: &'static Bus<Wired>, sent: &crate::Sent, expected: &[u8]) {
    let device = opened(bus);
    let runs: [(&str, &dyn Fn()); 6] = [
        ("sync", &|| assert_eq!(device.sync(&mut [Transfer::write(&[1])]), Ok(1))),
        ("prepared", &|| assert!(device.prepare([1]).expect("plans").run().is_ok())),
        ("try", &|| assert_eq!(device.try_sync(&mut [Transfer::write(&[1])]), Ok(1))),
        ("queued", &|| {
            let mut queued = message(&device, 1);
            queued.as_mut().submit().expect("is free");
            bus.pump();
            assert_eq!(queued.as_mut().wait(), Some(Ok(1)));
        }),
        ("future", &|| {
            let mut transfers = [Transfer::write(&[1])];
            let mut future = Box::pin(device.transact(&mut transfers));
            assert!(poll(&mut future, Waker::noop()).is_ready());
        }),
        ("lock", &|| {
            let mut lock = bus.lock();
            assert_eq!(lock.sync(&device, &mut [Transfer::write(&[1])]), Ok(1));
        }),
    ];
    for (path, run) in runs {
        lock(sent).clear();
        run();
        assert_eq!(sent_so_far(sent), expected, "{path}");
        assert!(bus.try_lock().is_some(), "{path}: the bus is idle");
    }
}

/// A call to its own bus by a controller, or by a tracer that it calls, is refused; it does not
/// wait.
#[test]
fn a_controller_is_refused_what_would_wait_for_its_own_bus() {
    for platform in PLATFORMS {
        within(LIMIT, name_of(platform), move || {
            let (bus, sent) = calling_inside(platform, Pump::Caller, |device| {
                let refused = Err(MessageError::refused(Error::WouldDeadlock, 0));
                assert_eq!(device.sync(&mut [Transfer::write(&[8])]), refused);
                let run = device.prepare([8]).expect("plans").run().map(|rx| rx.len());
                assert_eq!(run, refused);
                assert_eq!(device.bus().device(&PLAIN).err(), Some(Error::WouldDeadlock));
                assert!(panics(|| drop(device.bus().lock())));
                let mut queued = message(&device, 8);
                queued.as_mut().enqueue().expect("is free");
                assert_eq!(queued.as_mut().wait(), Some(refused));
            });
            by_each_path(bus, &sent, &[1]);
            assert_serves(bus);
        });
    }
}

/// The queue that such code changes is served by the holder around it.
#[test]
fn a_controller_may_submit_cancel_and_drop_messages_of_its_own_bus() {
    for platform in PLATFORMS {
        within(LIMIT, name_of(platform), move || {
            let left: Arc<Mutex<Vec<Message<'static>>>> = Arc::default();
            let its = Arc::clone(&left);
            let (bus, sent) = calling_inside(platform, Pump::Caller, move |device| {
                let [mut cancelled, dropped, mut kept] = [2, 3, 4].map(|byte| {
                    let mut queued = message(&device, byte);
                    queued.as_mut().submit().expect("is free");
                    queued
                });
                assert!(cancelled.as_mut().cancel(), "it did not run");
                drop(dropped);
                let mut transfers = [Transfer::write(&[5])];
                let mut future = Box::pin(device.transact(&mut transfers));
                assert!(poll(&mut future, Waker::noop()).is_pending());
                drop(future);
                assert_eq!(kept.as_mut().result(), None);
                lock(&its).push(kept);
            });
            by_each_path(bus, &sent, &[1, 4]);
            for mut kept in lock(&left).drain(..) {
                assert_eq!(kept.as_mut().result(), Some(Ok(1)));
            }
            assert_serves(bus);
        });
    }
}

static OTHERS: Mutex<Vec<Message<'static>>> = Mutex::new(Vec::new());

#[test]
fn a_callback_may_cancel_and_drop_other_messages() {
    fn takes_out(_: &mut Completed<'_>) -> Then {
        let mut others = lock(&OTHERS);
        assert!(others[0].as_mut().cancel(), "it did not run");
        others.truncate(1);
        Then::Done
    }
    let callback: Callback = &takes_out;
    for platform in PLATFORMS {
        within(LIMIT, name_of(platform), move || {
            let (bus, sent) = wired(platform, Pump::Caller, |_| {});
            let bus = kept(bus);
            let device = opened(bus);
            let mut first = Box::pin(device.queued([1]).expect("plans").with_callback(callback));
            let mut last = message(&device, 4);
            let held = bus.lock();
            first.as_mut().submit().expect("is free");
            for byte in [2, 3] {
                let mut other = message(&device, byte);
                other.as_mut().submit().expect("is free");
                lock(&OTHERS).push(other);
            }
            last.as_mut().submit().expect("is free");
            drop(held);
            assert_eq!(first.as_mut().result(), Some(Ok(1)));
            assert_eq!(last.as_mut().result(), Some(Ok(1)));
            assert_eq!(sent_so_far(&sent), [1, 4]);
            lock(&OTHERS).clear();
            assert_serves(bus);
        });
    }
}

/// The message of a callback is in use until the callback returns. Freeing it earlier ends the
/// program with an error message. It would wait for ever, or go on with freed bytes.
#[test]
#[cfg_attr(miri, ignore = "it starts a program")]
fn a_message_dropped_in_its_own_callback_ends_the_program() {
    const ITSELF: &str = "BAREWIRE_DROPS_ITS_OWN";
    fn drops(_: &mut Completed<'_>) -> Then {
        lock(&OTHERS).clear();
        Then::Done
    }
    if std::env::var_os(ITSELF).is_some() {
        let (bus, _) = wired(&PARKING, Pump::Caller, |_| {});
        let device = opened(kept(bus));
        let mut queued = Box::pin(device.queued([1]).expect("plans").with_callback(&drops));
        queued.as_mut().enqueue().expect("is free");
        lock(&OTHERS).push(queued);
        device.bus().pump();
        unreachable!("the program has ended");
    }
    within(LIMIT, "it", || {
        let name = "inside::a_message_dropped_in_its_own_callback_ends_the_program";
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        let ended = command.args([name, "--exact", "--nocapture"]).env(ITSELF, "1").output();
        let ended = ended.expect("starts");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(!ended.status.success());
        assert!(said.contains("dropped in its own callback"), "{said}");
        assert!(!said.contains("unreachable"), "{said}");
    });
}
