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

/// Threads that sleep, and panic once if they ask for it. Each test has its own: `panicked` is set
/// then.
struct Panics {
    panicked: AtomicBool,
}

type Panicking = Threads<Panics>;

const fn panicking() -> Panicking {
    Threads::parking(Panics { panicked: AtomicBool::new(false) })
}

impl Panics {
    fn panic_if(&self, asked: bool) {
        if asked {
            self.panicked.store(true, Ordering::Release);
            panic!("the platform panics");
        }
    }
}

impl Interpose for Panics {
    fn sleeps(&self) -> bool {
        self.panic_if(WAIT_PANICS.take());
        true
    }

    fn wakes(&self) {
        self.panic_if(WAKE_PANICS.take());
    }
}

/// A message is on the wire, another thread drops it and has to wait, and the platform panics then:
/// its bytes must not go before the wire is done with them.
#[test]
fn a_message_on_the_wire_is_not_freed_by_a_wait_that_panics() {
    static PLATFORM: Panicking = panicking();
    static ON_THE_WIRE: AtomicBool = AtomicBool::new(false);
    static OFF_THE_WIRE: AtomicBool = AtomicBool::new(false);
    within(LIMIT, "it", || {
        let (bus, sent) = wired(&PLATFORM, Pump::Worker, |bytes| {
            if bytes == [1] {
                ON_THE_WIRE.store(true, Ordering::Release);
                wait_until(|| PLATFORM.interposed.panicked.load(Ordering::Acquire));
                // Long enough for the other thread to free it, if it does.
                (0..100).for_each(|_| thread::yield_now());
                OFF_THE_WIRE.store(true, Ordering::Release);
            }
        });
        let device = opened(&bus);
        let mut queued = message(&device, 1);
        queued.as_mut().submit().expect("is free");
        thread::scope(|scope| {
            let bus = &bus;
            scope.spawn(move || bus.pump());
            wait_until(|| ON_THE_WIRE.load(Ordering::Acquire));
            WAIT_PANICS.set(true);
            assert!(panics(|| drop(queued)), "the platform's panic is not swallowed");
            assert!(OFF_THE_WIRE.load(Ordering::Acquire), "freed while on the wire");
        });
        assert_eq!(sent_so_far(&sent), [1]);
        wait_until(|| bus.try_lock().is_some());
        assert_serves(&bus);
    });
}

/// While another message is on the wire a thread drops its own that is queued behind, and the
/// platform panics if asked to wait. Whether it is asked is the bus's affair.
fn queued_behind_the_wire_and_dropped(
    platform: &'static Panicking,
    on_the_wire: &'static AtomicBool,
    dropped: &'static AtomicBool,
    borrowed: bool,
) {
    let (bus, sent) = wired(platform, Pump::Caller, move |bytes| {
        if bytes == [1] {
            on_the_wire.store(true, Ordering::Release);
            wait_until(|| {
                dropped.load(Ordering::Acquire)
                    || platform.interposed.panicked.load(Ordering::Acquire)
            });
            (0..100).for_each(|_| thread::yield_now());
        }
    });
    let device = opened(&bus);
    thread::scope(|scope| {
        let holder = scope.spawn(move || device.sync(&mut [Transfer::write(&[1])]));
        wait_until(|| on_the_wire.load(Ordering::Acquire));
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
        dropped.store(true, Ordering::Release);
        assert_eq!(holder.join().expect("nothing of it panics"), Ok(1));
    });
    assert_eq!(sent_so_far(&sent), [1], "what was dropped did not run");
    assert_serves(&bus);
}

/// Under Miri this sees whether the holder touches what was freed.
#[test]
fn a_queued_message_dropped_by_a_wait_that_panics_is_out_of_the_queue() {
    static PLATFORM: Panicking = panicking();
    static ON_THE_WIRE: AtomicBool = AtomicBool::new(false);
    static DROPPED: AtomicBool = AtomicBool::new(false);
    within(LIMIT, "it", || {
        queued_behind_the_wire_and_dropped(&PLATFORM, &ON_THE_WIRE, &DROPPED, false);
    });
}

/// Under Miri this sees whether the holder touches what was freed.
#[test]
fn a_pending_transact_dropped_by_a_wait_that_panics_is_out_of_the_queue() {
    static PLATFORM: Panicking = panicking();
    static ON_THE_WIRE: AtomicBool = AtomicBool::new(false);
    static DROPPED: AtomicBool = AtomicBool::new(false);
    within(LIMIT, "it", || {
        queued_behind_the_wire_and_dropped(&PLATFORM, &ON_THE_WIRE, &DROPPED, true);
    });
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
    static ASLEEP: AtomicBool = AtomicBool::new(false);
    struct Telling;
    impl Interpose for Telling {
        fn sleeps(&self) -> bool {
            ASLEEP.store(true, Ordering::Release);
            true
        }
        fn wakes(&self) {
            assert!(!WAKE_PANICS.take(), "the platform panics");
        }
    }
    static PLATFORM: Threads<Telling> = Threads::parking(Telling);
    within(LIMIT, "it", || {
        let (bus, sent) = wired(&PLATFORM, Pump::Caller, |_| {});
        let device = opened(&bus);
        let mut after = message(&device, 2);
        let lock = bus.lock();
        thread::scope(|scope| {
            let waiter = scope.spawn(move || device.sync(&mut [Transfer::write(&[1])]));
            wait_until(|| ASLEEP.load(Ordering::Acquire));
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
