//! Submitted messages: in order, by callback, poll and future; cancelled, dropped and forgotten.

use std::boxed::Box;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::vec::Vec;

use super::park::{Park, ParkInheriting};
use super::{SETTINGS, Wired, wired};
use crate::bus::platform::Spin;
use crate::bus::queued::Completed;
use crate::bus::{Bus, Platform, Pump, Queued, Then};
use crate::controller::Stopped;
use crate::spi::{Error, Transfer};

const PLATFORMS: [&dyn Platform; 3] = [&Spin, &Park, &ParkInheriting];

/// Counts how many times it was woken.
#[derive(Default)]
pub(super) struct Woken(pub(super) AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

pub(super) fn waker() -> (Arc<Woken>, Waker) {
    let woken = Arc::new(Woken::default());
    (woken.clone(), woken.into())
}

fn sent(bus: Bus<Wired<'_>>) -> Vec<u8> {
    bus.into_inner().sent
}

#[test]
fn a_context_s_messages_run_in_its_order_whatever_paths_it_mixes() {
    for platform in PLATFORMS {
        let bus = wired(platform, |_| Ok(()));
        {
            let device = bus.device(&SETTINGS).expect("opens");
            let mut first = pin!(device.queued([1]).expect("plans"));
            let mut second = pin!(device.queued([2]).expect("plans"));
            let mut third = pin!(device.queued([4]).expect("plans"));
            let mut prepared = device.prepare([3]).expect("plans");
            first.as_mut().enqueue().expect("is free");
            second.as_mut().enqueue().expect("is free");
            assert_eq!(first.as_mut().enqueue(), Err(Error::Busy), "once at a time");
            assert_eq!(first.as_mut().tx_mut(), Err(Error::Busy));
            assert_eq!(prepared.try_run(), Err(crate::spi::MessageError::refused(Error::Busy, 0)));
            prepared.run().expect("runs");
            assert_eq!(second.as_mut().result(), Some(Ok(1)));
            third.as_mut().enqueue().expect("is free");
            device.sync(&mut [Transfer::write(&[5])]).expect("runs");
            assert_eq!(first.as_mut().result(), Some(Ok(1)));
            assert_eq!(first.as_mut().result(), None, "a result is given once");
            *first.as_mut().tx_mut().expect("is free") = [6];
            first.as_mut().submit().expect("is free");
            assert_eq!(first.as_mut().wait(), Some(Ok(1)));
            assert_eq!(first.as_mut().wait(), None);
        }
        assert_eq!(sent(bus), [1, 2, 3, 4, 5, 6]);
    }
}

#[test]
fn a_message_brings_what_came_in_and_runs_again() {
    let bus = wired(&Spin, |_| Ok(()));
    let device = bus.device(&SETTINGS).expect("opens");
    let mut queued = pin!(device.queued([7, 8]).expect("plans"));
    for _ in 0..2 {
        queued.as_mut().submit().expect("is free");
        assert_eq!(queued.as_mut().result(), Some(Ok(2)));
        assert_eq!(
            queued.as_ref().rx(),
            Ok([!7, !8]),
            "the wire sends back what it gets, inverted"
        );
    }
}

#[test]
fn a_message_over_static_buffers_may_have_many_transfers() {
    let bus = wired(&Spin, |_| Ok(()));
    {
        let device = bus.device(&SETTINGS).expect("opens");
        let message = [Transfer::write(&[1]).with_cs_change(), Transfer::write(&[2, 3])];
        let mut queued = pin!(device.queued_message(message).expect("plans"));
        queued.as_mut().submit().expect("is free");
        assert_eq!(queued.as_mut().wait(), Some(Ok(3)));
        assert_eq!(
            device.queued_message([Transfer::write(&[1]).with_cs_change()]).err().map(|e| e.error),
            Some(Error::CsChangeOnLast)
        );
    }
    assert_eq!(sent(bus), [1, 2, 3]);
}

#[test]
fn a_callback_sees_the_bytes_and_may_have_the_message_run_again() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    fn again(completed: &mut Completed<'_>) -> Then {
        assert_eq!(completed.result(), Ok(1));
        assert_eq!(completed.rx(0), Some(&[!9][..]));
        if CALLS.fetch_add(1, Ordering::Relaxed) < 2 { Then::Again } else { Then::Done }
    }
    let bus = wired(&Spin, |_| Ok(()));
    {
        let device = bus.device(&SETTINGS).expect("opens");
        let mut queued = pin!(device.queued([9]).expect("plans").with_callback(&again));
        let mut other = pin!(device.queued([1]).expect("plans"));
        queued.as_mut().enqueue().expect("is free");
        other.as_mut().enqueue().expect("is free");
        assert_eq!(bus.pump(), 4);
        assert_eq!(queued.as_mut().result(), Some(Ok(1)));
    }
    assert_eq!(CALLS.load(Ordering::Relaxed), 3);
    assert_eq!(sent(bus), [9, 1, 9, 9], "a repeated message runs after those in the queue");
}

#[test]
fn an_error_reaches_whoever_submitted_the_message() {
    let bus = wired(&Spin, |len| match len {
        2 => Err(Stopped::TimedOut { timeout_us: 3 }),
        _ => Ok(()),
    });
    let device = bus.device(&SETTINGS).expect("opens");
    let mut bad = pin!(device.queued([1, 2]).expect("plans"));
    let mut good = pin!(device.queued([1]).expect("plans"));
    bad.as_mut().enqueue().expect("is free");
    good.as_mut().enqueue().expect("is free");
    bus.pump();
    let error = bad.as_mut().result().expect("it ran").expect_err("and failed");
    assert_eq!(error.error, Error::Timeout { timeout_us: 3 });
    assert_eq!(good.as_mut().result(), Some(Ok(1)));
}

#[test]
fn a_cancelled_message_is_taken_out_and_can_be_submitted_again() {
    for platform in PLATFORMS {
        let bus = wired(platform, |_| Ok(()));
        {
            let device = bus.device(&SETTINGS).expect("opens");
            let mut messages: Vec<_> =
                (1..=3_u8).map(|n| Box::pin(device.queued([n]).expect("plans"))).collect();
            for message in &mut messages {
                message.as_mut().enqueue().expect("is free");
            }
            assert!(messages[1].as_mut().cancel());
            assert!(!messages[1].as_mut().cancel(), "it is not queued any more");
            drop(messages.pop());
            bus.pump();
            assert_eq!(messages[0].as_mut().result(), Some(Ok(1)));
            assert_eq!(messages[1].as_mut().result(), None);
            messages[1].as_mut().submit().expect("is free");
            assert_eq!(messages[1].as_mut().wait(), Some(Ok(1)));
            assert!(!messages[1].as_mut().cancel(), "too late");
        }
        assert_eq!(sent(bus), [1, 2]);
    }
}

#[test]
fn dropping_a_message_on_the_wire_waits_for_it() {
    // The wire waits until the other thread is about to drop the message it is in.
    let dropping = Arc::new(AtomicUsize::new(0));
    let seen = dropping.clone();
    let bus = wired(&Park, move |_| {
        seen.fetch_add(1, Ordering::Release);
        while seen.load(Ordering::Acquire) < 2 {
            std::thread::yield_now();
        }
        for _ in 0..20 {
            std::thread::yield_now();
        }
        Ok(())
    })
    .with_pump(Pump::Worker);
    std::thread::scope(|scope| {
        let device = bus.device(&SETTINGS).expect("opens");
        let mut queued = Box::pin(device.queued([5]).expect("plans"));
        queued.as_mut().submit().expect("is free");
        let bus = &bus;
        scope.spawn(move || bus.pump());
        while dropping.load(Ordering::Acquire) < 1 {
            std::thread::yield_now();
        }
        dropping.fetch_add(1, Ordering::Release);
        drop(queued);
        // The message is over: the bus keeps no reference to it.
        device.sync(&mut [Transfer::write(&[6])]).expect("runs");
    });
    assert_eq!(sent(bus), [5, 6]);
}

#[test]
fn a_forgotten_future_or_message_is_run_without_harm() {
    for platform in [&Spin as &dyn Platform, &Park] {
        let bus = wired(platform, |_| Ok(()));
        {
            let device = bus.device(&SETTINGS).expect("opens");
            let (_, waker) = waker();
            let mut cx = Context::from_waker(&waker);
            // The bus is taken, so the message stays queued.
            let lock = bus.lock();
            let mut queued = ManuallyDrop::new(Box::pin(device.queued([1, 2, 3]).expect("plans")));
            let mut running = ManuallyDrop::new(Box::pin(queued.as_mut().run()));
            assert!(running.as_mut().poll(&mut cx).is_pending());
            // From here on only the queue refers to them.
            drop(lock);
            device.sync(&mut [Transfer::write(&[4])]).expect("runs");
            // Dropped after all, so that nothing leaks.
            drop(ManuallyDrop::into_inner(running));
            drop(ManuallyDrop::into_inner(queued));
        }
        assert_eq!(sent(bus), [1, 2, 3, 4]);
    }
}

fn poll<F: Future>(future: &mut Pin<Box<F>>, waker: &Waker) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(waker))
}

#[test]
fn a_future_is_woken_by_the_waker_given_last_and_dropping_it_takes_the_message_out() {
    for platform in PLATFORMS {
        let bus = wired(platform, |_| Ok(()));
        {
            let device = bus.device(&SETTINGS).expect("opens");
            let ((first, first_waker), (second, second_waker)) = (waker(), waker());
            let mut queued = Box::pin(device.queued([1]).expect("plans"));
            let mut dropped = Box::pin(device.queued([2]).expect("plans"));
            let lock = bus.lock();
            let mut running = Box::pin(queued.as_mut().run());
            assert!(poll(&mut running, &first_waker).is_pending());
            assert!(poll(&mut running, &second_waker).is_pending());
            assert!(poll(&mut running, &second_waker).is_pending());
            let mut gone = Box::pin(dropped.as_mut().run());
            assert!(poll(&mut gone, Waker::noop()).is_pending());
            // The lock is idle: it owns the wire, not the queue.
            drop(gone);
            drop(lock);
            assert_eq!(poll(&mut running, &first_waker), Poll::Ready(Ok(1)));
            drop(running);
            assert_eq!(queued.as_mut().result(), None, "the future took the result");
            assert_eq!(dropped.as_mut().result(), None, "it was taken out");
            assert_eq!(first.0.load(Ordering::Relaxed), 0);
            assert_eq!(second.0.load(Ordering::Relaxed), 1);
        }
        assert_eq!(sent(bus), [1]);
    }
}

#[test]
fn a_worker_serves_what_is_submitted_and_sleeps_between() {
    use std::sync::atomic::AtomicBool;
    let rounds = if cfg!(miri) { 5 } else { 300 };
    for platform in [&Park as &dyn Platform, &ParkInheriting] {
        let bus = wired(platform, |_| Ok(())).with_pump(Pump::Worker);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| bus.serve(&stop));
            let device = bus.device(&SETTINGS).expect("opens");
            let mut one = pin!(device.queued([1]).expect("plans"));
            let mut two = pin!(device.queued([2]).expect("plans"));
            for _ in 0..rounds {
                one.as_mut().submit().expect("is free");
                two.as_mut().submit().expect("is free");
                device.sync(&mut [Transfer::write(&[3])]).expect("runs");
                assert_eq!(one.as_mut().result(), Some(Ok(1)));
                assert_eq!(two.as_mut().wait(), Some(Ok(1)));
            }
            one.as_mut().submit().expect("is free");
            assert_eq!(one.as_mut().wait(), Some(Ok(1)));
            stop.store(true, Ordering::Relaxed);
            bus.ring();
            assert!(worker.join().expect("no panic") >= 1, "the last one at least");
        });
        let sent = sent(bus);
        assert_eq!(sent.len(), 3 * rounds + 1);
        assert!(sent[..3 * rounds].chunks(3).all(|round| round == [1, 2, 3]), "{sent:?}");
    }
}

/// Compiles only if queued messages may be sent to other threads.
#[test]
fn queued_messages_are_send() {
    fn is_send<T: Send>(_: &T) {}
    let bus = wired(&Spin, |_| Ok(()));
    let device = bus.device(&SETTINGS).expect("opens");
    let queued: Queued<'_, _, _> = device.queued([1]).expect("plans");
    is_send(&queued);
    let bytes = [1];
    let mut message = [Transfer::write(&bytes)];
    is_send(&device.transact(&mut message));
}
