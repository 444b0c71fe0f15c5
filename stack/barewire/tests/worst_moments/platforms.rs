//! A platform whose `wait` or `wake` panics.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::thread;

use barewire::bus::Pump;
use barewire::spi::Transfer;

use crate::platform::{Interpose, Threads};
use crate::threads::{wait_until, within};
use crate::{LIMIT, assert_serves, message, opened, panics, poll, sent_so_far, wired};

std::thread_local! {
    /// This thread's next wait panics.
    static WAIT_PANICS: Cell<bool> = const { Cell::new(false) };
    /// This thread's next wake panics.
    static WAKE_PANICS: Cell<bool> = const { Cell::new(false) };
}

/// A moment that has come, or not.
struct Moment(AtomicBool);

impl Moment {
    const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    fn comes(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn has_come(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The moments of a test: each has its own platform. Its threads sleep, and panic if they ask for it.
struct Moments {
    asleep: Moment,
    panicked: Moment,
    on_the_wire: Moment,
    off_the_wire: Moment,
    dropped: Moment,
}

type Panicking = Threads<Moments>;

const fn panicking() -> Panicking {
    Threads::parking(Moments {
        asleep: Moment::new(),
        panicked: Moment::new(),
        on_the_wire: Moment::new(),
        off_the_wire: Moment::new(),
        dropped: Moment::new(),
    })
}

impl Moments {
    fn panic_if(&self, asked: bool) {
        if asked {
            self.panicked.comes();
            panic!("the platform panics");
        }
    }
}

impl Interpose for Moments {
    fn sleeps(&self) -> bool {
        self.asleep.comes();
        self.panic_if(WAIT_PANICS.take());
        true
    }

    fn wakes(&self) {
        self.panic_if(WAKE_PANICS.take());
    }
}

/// A message is on the wire, another thread drops it and has to wait, and the platform panics then:
/// its bytes must not be freed before the wire has sent them.
#[test]
fn a_message_on_the_wire_is_not_freed_by_a_wait_that_panics() {
    static PLATFORM: Panicking = panicking();
    within(LIMIT, "it", || {
        let at = &PLATFORM.interposed;
        let (bus, sent) = wired(&PLATFORM, Pump::Worker, |bytes| {
            if bytes == [1] {
                at.on_the_wire.comes();
                wait_until(|| at.panicked.has_come());
                // Long enough for the other thread to free it, if it does.
                (0..100).for_each(|_| thread::yield_now());
                at.off_the_wire.comes();
            }
        });
        let device = opened(&bus);
        let mut queued = message(&device, 1);
        queued.as_mut().submit().expect("is free");
        thread::scope(|scope| {
            let bus = &bus;
            scope.spawn(move || bus.pump());
            wait_until(|| at.on_the_wire.has_come());
            WAIT_PANICS.set(true);
            assert!(panics(|| drop(queued)), "the platform's panic is not swallowed");
            assert!(at.off_the_wire.has_come(), "freed while on the wire");
        });
        assert_eq!(sent_so_far(&sent), [1]);
        wait_until(|| bus.try_lock().is_some());
        assert_serves(&bus);
    });
}

/// While another message is on the wire a thread drops its own that is queued behind, and the
/// platform panics if asked to wait. The bus may or may not call it.
fn queued_behind_the_wire_and_dropped(platform: &'static Panicking, borrowed: bool) {
    let at = &platform.interposed;
    let (bus, sent) = wired(platform, Pump::Caller, |bytes| {
        if bytes == [1] {
            at.on_the_wire.comes();
            wait_until(|| at.dropped.has_come() || at.panicked.has_come());
            (0..100).for_each(|_| thread::yield_now());
        }
    });
    let device = opened(&bus);
    thread::scope(|scope| {
        let holder = scope.spawn(move || device.sync(&mut [Transfer::write(&[1])]));
        wait_until(|| at.on_the_wire.has_come());
        let mut transfers = [Transfer::write(&[2])];
        let mut queued = message(&device, 2);
        let mut future = Box::pin(device.transact(&mut transfers));
        if borrowed {
            assert!(poll(&mut future, Waker::noop()).is_pending());
        } else {
            queued.as_mut().submit().expect("is free");
        }
        WAIT_PANICS.set(true);
        let _ = panics(|| drop(future));
        let _ = panics(|| drop(queued));
        WAIT_PANICS.set(false);
        at.dropped.comes();
        assert_eq!(holder.join().expect("nothing of it panics"), Ok(1));
    });
    assert_eq!(sent_so_far(&sent), [1], "what was dropped did not run");
    assert_serves(&bus);
}

/// Under Miri this sees whether the holder touches what was freed.
#[test]
fn a_queued_message_dropped_by_a_wait_that_panics_is_out_of_the_queue() {
    static PLATFORM: Panicking = panicking();
    within(LIMIT, "it", || queued_behind_the_wire_and_dropped(&PLATFORM, false));
}

/// Under Miri this sees whether the holder touches what was freed.
#[test]
fn a_pending_transact_dropped_by_a_wait_that_panics_is_out_of_the_queue() {
    static PLATFORM: Panicking = panicking();
    within(LIMIT, "it", || queued_behind_the_wire_and_dropped(&PLATFORM, true));
}

#[test]
fn a_wait_that_panics_inside_a_sync_call_takes_its_message_out() {
    static PLATFORM: Panicking = panicking();
    within(LIMIT, "it", || {
        let (bus, sent) = wired(&PLATFORM, Pump::Caller, |_| {});
        let device = opened(&bus);
        let lock = bus.lock();
        thread::scope(|scope| {
            let unlucky = scope.spawn(move || {
                WAIT_PANICS.set(true);
                device.sync(&mut [Transfer::write(&[1])])
            });
            // The lock is idle meanwhile: leaving the queue does not wait for it.
            wait_until(|| unlucky.is_finished());
            assert!(unlucky.join().is_err());
        });
        drop(lock);
        assert_eq!(sent_so_far(&sent), []);
        assert_serves(&bus);
    });
}

/// A wake that panics is called again, or the thread would sleep for ever.
#[test]
fn a_wake_that_panics_forgets_no_thread() {
    static PLATFORM: Panicking = panicking();
    within(LIMIT, "it", || {
        let (bus, sent) = wired(&PLATFORM, Pump::Caller, |_| {});
        let device = opened(&bus);
        let mut after = message(&device, 2);
        let lock = bus.lock();
        thread::scope(|scope| {
            let waiter = scope.spawn(move || device.sync(&mut [Transfer::write(&[1])]));
            wait_until(|| PLATFORM.interposed.asleep.has_come());
            after.as_mut().submit().expect("is free");
            WAKE_PANICS.set(true);
            let raised = panics(|| drop(lock));
            // It was not called if the waiter woke up just then by itself.
            assert_eq!(raised, !WAKE_PANICS.take(), "the platform's panic is not swallowed");
            assert_eq!(waiter.join().expect("nothing of it panics"), Ok(1));
            assert_eq!(after.as_mut().wait(), Some(Ok(1)));
        });
        assert_eq!(sent_so_far(&sent), [1, 2]);
        assert_serves(&bus);
    });
}
