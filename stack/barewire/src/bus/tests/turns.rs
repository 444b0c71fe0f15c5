//! Locks and borrowed futures, threads that wait, priorities, and panics among them.

use std::boxed::Box;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::thread::ThreadId;
use std::vec::Vec;

use super::park::{Park, ParkInheriting};
use super::queued::waker;
use super::{SETTINGS, wired};
use crate::bus::platform::{AtomicU32, Inheritance, Spin, WAITERS, WaitWord};
use crate::bus::queued::Completed;
use crate::bus::{Platform, Pump, Then};
use crate::spi::{Error, MessageError, Settings, Transfer};

#[test]
fn a_lock_spans_several_messages() {
    let rounds = if cfg!(miri) { 5 } else { 200 };
    for platform in [&Park as &dyn Platform, &ParkInheriting] {
        let bus = wired(platform, |_| Ok(()));
        std::thread::scope(|scope| {
            for number in 1..=3_u8 {
                let bus = &bus;
                scope.spawn(move || {
                    let device = bus.device(&SETTINGS).expect("opens");
                    let mut register = device.prepare([number]).expect("plans");
                    for _ in 0..rounds {
                        let mut lock = bus.lock();
                        lock.sync(&device, &mut [Transfer::write(&[number])]).expect("runs");
                        std::thread::yield_now();
                        lock.run(&mut register).expect("runs");
                        drop(lock);
                        device.sync(&mut [Transfer::write(&[number + 10])]).expect("runs");
                    }
                });
            }
        });
        let sent = bus.into_inner().sent;
        assert_eq!(sent.len(), 3 * rounds * 3);
        let mut rest = &sent[..];
        while let Some((&first, others)) = rest.split_first() {
            rest = others;
            if first < 10 {
                assert_eq!(others.first(), Some(&first), "a lock was broken into: {sent:?}");
                rest = &others[1..];
            }
        }
    }
}

/// A handler that interrupted its thread there could not lock the queue to release the bus.
#[test]
fn a_try_call_of_a_thread_that_has_the_queue_is_refused() {
    let bus = wired(&ParkInheriting, |_| Ok(()));
    let device = bus.device(&SETTINGS).expect("opens");
    bus.queue_owner.store(ParkInheriting.id(), Ordering::Relaxed);
    assert!(bus.try_lock().is_none());
    let busy = MessageError::refused(Error::Busy, 0);
    assert_eq!(device.try_sync(&mut [Transfer::write(&[1])]), Err(busy));
    assert_eq!(bus.wire_owner.load(Ordering::Relaxed), 0, "and touches nothing");
    bus.queue_owner.store(ParkInheriting.id() ^ 2 | WAITERS, Ordering::Relaxed);
    assert!(bus.try_lock().is_some(), "another thread has the queue for some steps only");
    bus.queue_owner.store(0, Ordering::Relaxed);
    assert_eq!(bus.into_inner().sent, []);
}

#[test]
fn the_controller_is_reached_between_messages_by_one_thread() {
    for platform in [&Park as &dyn Platform, &ParkInheriting] {
        let bus = wired(platform, |_| Ok(()));
        let device = bus.device(&SETTINGS).expect("opens");
        device.sync(&mut [Transfer::write(&[7])]).expect("runs");
        let nested = bus.with_controller(|wired| {
            assert_eq!(wired.sent, [7]);
            wired.sent.clear();
            bus.with_controller(|_| ())
        });
        assert_eq!(nested, Ok(Err(Error::WouldDeadlock)));
        let panicked = catch_unwind(AssertUnwindSafe(|| bus.with_controller(|_| panic!("ours"))));
        assert!(panicked.is_err());
        device.sync(&mut [Transfer::write(&[8])]).expect("the bus is free");
        assert_eq!(bus.into_inner().sent, [8]);
    }
}

#[test]
fn try_finds_a_locked_bus_busy() {
    for platform in [&Spin as &dyn Platform, &ParkInheriting] {
        let bus = wired(platform, |_| Ok(()));
        let device = bus.device(&SETTINGS).expect("opens");
        let lock = bus.try_lock().expect("is free");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(bus.try_lock().is_none());
                let error = device.try_sync(&mut [Transfer::write(&[1])]).expect_err("is taken");
                assert_eq!(error.error, Error::Busy);
            });
        });
        drop(lock);
        device.try_sync(&mut [Transfer::write(&[1])]).expect("is free");
    }
}

#[test]
fn a_lock_opens_devices_without_giving_the_bus_away() {
    for platform in [&Spin as &dyn Platform, &ParkInheriting] {
        let bus = wired(platform, |_| Ok(()));
        let mut lock = bus.lock();
        let device = lock.device(&SETTINGS).expect("opens");
        assert_eq!(lock.sync(&device, &mut [Transfer::write(&[1])]), Ok(1));
        let refused = lock.device(&Settings { speed_hz: 0, ..SETTINGS }).expect_err("no clock");
        assert_eq!(refused, Error::SpeedZero);
        drop(lock);
        assert_eq!(device.sync(&mut [Transfer::write(&[2])]), Ok(1), "it outlives the lock");
    }
}

#[test]
#[should_panic(expected = "another bus than the lock")]
fn a_lock_is_of_one_bus() {
    let (one, other) = (wired(&Spin, |_| Ok(())), wired(&Spin, |_| Ok(())));
    let device = other.device(&SETTINGS).expect("opens");
    let _ = one.lock().sync(&device, &mut [Transfer::write(&[1])]);
}

#[test]
fn a_borrowed_future_waits_its_turn_and_transfers_inside_poll() {
    for platform in [&Spin as &dyn Platform, &Park, &ParkInheriting] {
        let bus = wired(platform, |_| Ok(()));
        {
            let device = bus.device(&SETTINGS).expect("opens");
            let (woken, waker) = waker();
            let mut cx = Context::from_waker(&waker);
            let lock = bus.lock();
            let mut rx = [0; 2];
            let mut message = [Transfer::write(&[1]), Transfer::exchange(&[2, 3], &mut rx)];
            {
                let mut future = pin!(device.transact(&mut message));
                assert!(future.as_mut().poll(&mut cx).is_pending());
                assert!(future.as_mut().poll(&mut cx).is_pending());
                drop(lock);
                assert_eq!(woken.0.load(Ordering::Relaxed), 1);
                // The future was woken but not polled: the bus is idle.
                device.try_sync(&mut [Transfer::write(&[9])]).expect("is free");
                assert_eq!(future.as_mut().poll(&mut cx), Poll::Ready(Ok(3)));
            }
            assert_eq!(rx, [!2, !3]);
            // A future that was woken and then dropped leaves nothing behind.
            let lock = bus.lock();
            let mut message = [Transfer::write(&[4])];
            let mut future = Box::pin(device.transact(&mut message));
            assert!(future.as_mut().poll(&mut cx).is_pending());
            drop(lock);
            drop(future);
            device.try_sync(&mut [Transfer::write(&[5])]).expect("is free");
        }
        assert_eq!(bus.into_inner().sent, [9, 1, 2, 3, 5]);
    }
}

#[test]
fn a_future_that_was_woken_and_not_polled_delays_nobody() {
    for platform in [&Spin as &dyn Platform, &Park, &ParkInheriting] {
        for pump in [Pump::Caller, Pump::Worker] {
            let bus = wired(platform, |_| Ok(())).with_pump(pump);
            let device = bus.device(&SETTINGS).expect("opens");
            let (woken, waker) = waker();
            let mut cx = Context::from_waker(&waker);
            let lock = bus.lock();
            let mut messages = [[1], [2], [3]];
            let [one, two, three] = messages.each_mut().map(|bytes| [Transfer::in_place(bytes)]);
            let (mut one, mut two, mut three) = (one, two, three);
            let mut first = Box::pin(device.transact(&mut one));
            let mut second = Box::pin(device.transact(&mut two));
            let mut third = Box::pin(device.transact(&mut three));
            for future in [&mut first, &mut second, &mut third] {
                assert!(future.as_mut().poll(&mut cx).is_pending());
            }
            drop(second);
            drop(lock);
            assert_eq!(woken.0.load(Ordering::Relaxed), 2, "each remaining waiter is woken once");
            device.sync(&mut [Transfer::write(&[4])]).expect("runs");
            drop(bus.lock());
            // In whatever order they are polled.
            assert_eq!(third.as_mut().poll(&mut cx), Poll::Ready(Ok(1)));
            device.try_sync(&mut [Transfer::write(&[5])]).expect("is free");
            assert_eq!(first.as_mut().poll(&mut cx), Poll::Ready(Ok(1)));
            drop((first, third));
            assert_eq!(bus.into_inner().sent, [4, 3, 5, 1]);
        }
    }
}

#[test]
fn the_urgent_goes_first_among_those_who_wait() {
    let bus = wired(&Park, |_| Ok(()));
    let waiting = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let device = bus.device(&SETTINGS).expect("opens");
        let lock = bus.lock();
        for (number, priority) in [(1_u8, 0), (2, 0), (3, 5), (4, 1)] {
            let waiting = &waiting;
            let device = device.with_priority(priority);
            scope.spawn(move || {
                while waiting.load(Ordering::Acquire) != usize::from(number) - 1 {
                    std::thread::yield_now();
                }
                let mut queued = pin!(device.queued([number]).expect("plans"));
                queued.as_mut().submit().expect("is free");
                waiting.fetch_add(1, Ordering::Release);
                assert_eq!(queued.as_mut().wait(), Some(Ok(1)));
            });
        }
        while waiting.load(Ordering::Acquire) < 4 {
            std::thread::yield_now();
        }
        drop(lock);
    });
    assert_eq!(bus.into_inner().sent, [3, 4, 1, 2]);
}

#[test]
fn a_panic_of_whoever_runs_others_messages_loses_none_of_them() {
    let panics = AtomicBool::new(true);
    let waiting = AtomicBool::new(false);
    let bus = wired(&Park, |len| {
        assert!(!(len == 2 && panics.swap(false, Ordering::Relaxed)), "the hook panics");
        Ok(())
    });
    std::thread::scope(|scope| {
        let device = bus.device(&SETTINGS).expect("opens");
        let mut unlucky = Box::pin(device.queued([1, 2]).expect("plans"));
        let mut after = Box::pin(device.queued([3]).expect("plans"));
        let lock = bus.lock();
        unlucky.as_mut().enqueue().expect("is free");
        after.as_mut().enqueue().expect("is free");
        let waiting = &waiting;
        let waiter = scope.spawn(move || {
            waiting.store(true, Ordering::Release);
            device.sync(&mut [Transfer::write(&[4])])
        });
        while !waiting.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        // Long enough, as a rule, for the waiter to be in the queue; if not, it comes after.
        (0..100).for_each(|_| std::thread::yield_now());
        let unwound = catch_unwind(AssertUnwindSafe(|| drop(lock)));
        assert!(unwound.is_err(), "the callback runs in whoever gives the bus back");
        let error = unlucky.as_mut().wait().expect("was submitted").expect_err("and aborted");
        assert_eq!(error.error, Error::Aborted);
        assert_eq!(waiter.join().expect("no panic"), Ok(1));
        assert_eq!(after.as_mut().wait(), Some(Ok(1)));
    });
    let wire = bus.into_inner();
    assert_eq!(wire.sent, [3, 4]);
    assert!(!wire.selected, "CS was released");
}

#[test]
fn a_holder_hands_the_queue_to_a_thread_that_waits() {
    static BY_OTHERS: AtomicUsize = AtomicUsize::new(0);
    static MAIN: OnceLock<ThreadId> = OnceLock::new();
    fn count(_: &mut Completed<'_>) -> Then {
        let by_other = MAIN.get() != Some(&std::thread::current().id());
        BY_OTHERS.fetch_add(usize::from(by_other), Ordering::Relaxed);
        Then::Done
    }
    MAIN.set(std::thread::current().id()).expect("set once");
    let bus = wired(&Park, |_| Ok(()));
    std::thread::scope(|scope| {
        let device = bus.device(&SETTINGS).expect("opens");
        let message = |_| Box::pin(device.queued([1]).expect("plans").with_callback(&count));
        let mut messages: Vec<_> = (0..100).map(message).collect();
        let lock = bus.lock();
        for message in &mut messages {
            message.as_mut().enqueue().expect("is free");
        }
        let pushed = bus.word.load(Ordering::Relaxed);
        let waiter = scope.spawn(move || device.sync(&mut [Transfer::write(&[2])]));
        while bus.word.load(Ordering::Relaxed) == pushed {
            std::thread::yield_now();
        }
        drop(lock);
        assert_eq!(waiter.join().expect("no panic"), Ok(1));
        assert_eq!(BY_OTHERS.load(Ordering::Relaxed), 100 - 16, "a holder serves 16 at most");
    });
}

#[test]
fn a_holder_leaves_a_stream_without_end_to_the_worker() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    static STOP: AtomicBool = AtomicBool::new(false);
    fn endless(_: &mut Completed<'_>) -> Then {
        let runs = RUNS.fetch_add(1, Ordering::Relaxed);
        assert!(runs < 1_000, "the holder serves without end");
        if STOP.load(Ordering::Relaxed) { Then::Done } else { Then::Again }
    }
    let bus = wired(&Park, |_| Ok(())).with_pump(Pump::Worker);
    let device = bus.device(&SETTINGS).expect("opens");
    let mut queued = Box::pin(device.queued([1]).expect("plans").with_callback(&endless));
    let lock = bus.lock();
    queued.as_mut().enqueue().expect("is free");
    drop(lock);
    assert_eq!(RUNS.load(Ordering::Relaxed), 16);
    // The bus is free; a caller is served in its turn.
    assert_eq!(device.sync(&mut [Transfer::write(&[2])]), Ok(1));
    STOP.store(true, Ordering::Relaxed);
    bus.pump();
    assert_eq!(queued.as_mut().result(), Some(Ok(1)));
}

/// Sleeps as on a futex, except for one thread, whose first sleep panics.
struct Panicking;

std::thread_local! {
    static PANICS: core::cell::Cell<bool> = const { core::cell::Cell::new(false) };
}

impl Platform for Panicking {
    fn spins(&self) -> u32 {
        0
    }

    fn wait(&self, word: WaitWord<'_>, expected: u32) {
        assert!(!PANICS.replace(false), "the platform panics");
        Park.wait(word, expected);
    }

    fn wake(&self, word: *const AtomicU32) {
        Park.wake(word);
    }
}

#[test]
fn a_platform_that_panics_leaves_nothing_in_the_queue() {
    let bus = wired(&Panicking, |_| Ok(()));
    std::thread::scope(|scope| {
        let device = bus.device(&SETTINGS).expect("opens");
        let mut lock = bus.lock();
        let unlucky = scope.spawn(move || {
            PANICS.set(true);
            device.sync(&mut [Transfer::write(&[1])])
        });
        while !unlucky.is_finished() {
            // Removes cancelled nodes from the queue, as a lock does between its messages.
            lock.sync(&device, &mut [Transfer::write(&[2])]).expect("runs");
            std::thread::yield_now();
        }
        assert!(unlucky.join().is_err());
        drop(lock);
        device.try_sync(&mut [Transfer::write(&[3])]).expect("is free, and nothing waits");
    });
    assert!(!bus.into_inner().sent.contains(&1));
}
