//! Wakers that panic, free their task, poll it at once, or use the bus when they are dropped.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake, Waker};
use std::thread;

use barewire::bus::{Device, Platform, Pump};
use barewire::spi::Transfer;

use crate::nested::Task;
use crate::ops::{Client, Op, Operation, judge};
use crate::platform::{PLATFORMS, name_of};
use crate::threads::{lock, within};
use crate::{
    LIMIT, Message, Wired, assert_serves, kept, message, on_each_bus, on_each_platform, opened,
    panics, plain, poll, sent_so_far, wired,
};

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Panicking;

impl Wake for Panicking {
    fn wake(self: Arc<Self>) {
        panic!("the waker panics")
    }
}

#[test]
fn a_waker_that_panics_costs_no_message() {
    on_each_bus(&[1, 2], |bus, device| {
        let (mut first, mut second) = (message(device, 1), message(device, 2));
        let lock = bus.lock();
        let mut running = Box::pin(first.as_mut().run());
        assert!(poll(&mut running, &Arc::new(Panicking).into()).is_pending());
        second.as_mut().submit().expect("is free");
        assert!(panics(|| drop(lock)), "the panic arrives at the caller who ran the waker");
        assert_eq!(second.as_mut().result(), Some(Ok(1)), "served before the panic arrived");
        assert_eq!(
            poll(&mut running, Waker::noop()),
            Poll::Ready(Ok(1)),
            "its result is that of its run"
        );
    });
}

#[test]
fn a_waker_that_panics_costs_no_borrowed_message() {
    on_each_platform(|platform| {
        let (bus, sent) = plain(platform);
        let device = opened(&bus);
        let (mut message_one, mut two) = ([Transfer::write(&[1])], message(&device, 2));
        let lock = bus.lock();
        let mut future = Box::pin(device.transact(&mut message_one));
        assert!(poll(&mut future, &Arc::new(Panicking).into()).is_pending());
        two.as_mut().submit().expect("is free");
        assert!(panics(|| drop(lock)), "the panic arrives at the caller who ran the waker");
        assert_eq!(two.as_mut().result(), Some(Ok(1)), "served before the panic arrived");
        assert_eq!(poll(&mut future, Waker::noop()), Poll::Ready(Ok(1)));
        let mut sent = sent_so_far(&sent);
        sent.sort_unstable();
        assert_eq!(sent, [1, 2]);
        assert_serves(&bus);
    });
}

/// A task that ends, as an executor's may, inside its waker, which then panics.
struct Freeing(Mutex<Option<Boxed>>);

impl Wake for Freeing {
    fn wake(self: Arc<Self>) {
        let future = lock(&self.0).take();
        drop(future.expect("is woken once"));
        panic!("the waker panics")
    }
}

/// Under Miri this sees whether the bus touches what the waker freed.
#[test]
fn a_waker_may_free_its_message_and_panic() {
    on_each_platform(|platform| {
        for borrowed in [false, true] {
            let (bus, _) = plain(platform);
            let bus = kept(bus);
            let device = opened(bus);
            let mut after = message(&device, 2);
            let mut future: Boxed = Box::pin(async move {
                if borrowed {
                    let _ = device.transact(&mut [Transfer::write(&[1])]).await;
                } else {
                    let _ = message(&device, 1).as_mut().run().await;
                }
            });
            let lock = bus.lock();
            let task = Arc::new(Freeing(Mutex::new(None)));
            assert!(poll(&mut future, &task.clone().into()).is_pending());
            *task.0.lock().expect("no panic yet") = Some(future);
            after.as_mut().submit().expect("is free");
            assert!(panics(|| drop(lock)), "the panic arrives at the caller who ran the waker");
            assert_eq!(after.as_mut().wait(), Some(Ok(1)));
            assert_serves(bus);
        }
    });
}

/// A waker that is never woken, and whose last handle owns another message.
struct Owning(#[allow(dead_code, reason = "dropped")] Mutex<Message<'static>>);

impl Wake for Owning {
    fn wake(self: Arc<Self>) {}
}

/// The owner of a cancelled message drops its waker. A message that the waker owns leaves the queue
/// too.
#[test]
fn a_waker_may_own_another_message_of_the_queue() {
    on_each_platform(|platform| {
        for borrowed in [false, true] {
            let (bus, sent) = plain(platform);
            let bus = kept(bus);
            let device = opened(bus);
            let mut owned = message(&device, 1);
            let lock = bus.lock();
            owned.as_mut().submit().expect("is free");
            let waker = Waker::from(Arc::new(Owning(Mutex::new(owned))));
            let (mut queued, mut transfers) = (message(&device, 2), [Transfer::write(&[2])]);
            let mut future: Pin<Box<dyn Future<Output = _>>> = match borrowed {
                true => Box::pin(device.transact(&mut transfers)),
                false => Box::pin(queued.as_mut().run()),
            };
            assert!(poll(&mut future, &waker).is_pending());
            drop(waker);
            drop(future);
            drop(lock);
            assert_eq!(sent_so_far(&sent), [], "both left the queue");
            assert_serves(bus);
        }
    });
}

/// A waker whose drop uses the bus.
struct Using(Device<'static, Wired>);

impl Wake for Using {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Using {
    fn drop(&mut self) {
        let ran = self.0.sync(&mut [Transfer::write(&[1])]);
        assert!(ran.is_ok(), "no right of the bus is held here: {ran:?}");
    }
}

/// Afterwards the queue has the last handle of the waker, if the future waits.
fn poll_and_drop(future: impl Future, device: Device<'static, Wired>) {
    let mut future = Box::pin(future);
    let waker = Waker::from(Arc::new(Using(device)));
    let _ = poll(&mut future, &waker);
    drop(waker);
}

/// Threads that find each other's cancelled messages in the queue do not drop their wakers there.
#[test]
fn a_waker_s_drop_may_use_the_bus_while_others_do() {
    on_each_platform(|platform| {
        let rounds = if cfg!(miri) { 8 } else { 3_000 };
        let bus = kept(plain(platform).0);
        let device = opened(bus);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        let (mut queued, mut transfers) =
                            (message(&device, 2), [Transfer::write(&[3])]);
                        poll_and_drop(queued.as_mut().run(), device);
                        poll_and_drop(device.transact(&mut transfers), device);
                    }
                });
            }
        });
        assert_serves(bus);
    });
}

/// Tasks of these operations begin while the bus is locked; all run when it is unlocked. They are
/// polled inside their wakers, as an executor in an interrupt does, and as tasks of higher real-time
/// priority on the same core are.
fn nested(platform: &'static dyn Platform, pump: Pump, tasks: &[&[Op]]) {
    let (bus, sent) = wired(platform, pump, |_| {});
    let bus = kept(bus);
    let devices = [opened(bus); 2];
    let ended = Arc::new(Mutex::new(Vec::new()));
    let locked = bus.lock();
    for (number, ops) in (1..).zip(tasks) {
        let mut client = Client::new(0x10 * number, ops, devices);
        client.plan(|_| None);
        let ended = ended.clone();
        let task = Task::new(async move {
            let records = client.run().await.records(Operation::times);
            lock(&ended).push(records.expect("each ran"));
        });
        task.wake();
    }
    assert!(lock(&ended).is_empty(), "the bus is locked");
    drop(locked);
    // Runs what a worker would run, if anything is left.
    while bus.pump() > 0 {}
    let ended = lock(&ended);
    assert_eq!(ended.len(), tasks.len(), "each ran inside its waker");
    assert_eq!(judge(&ended, &sent_so_far(&sent)), Ok(()));
    assert_serves(bus);
}

fn nested_everywhere(tasks: &'static [&'static [Op]]) {
    for platform in PLATFORMS {
        for pump in [Pump::Caller, Pump::Worker, Pump::Interrupt] {
            if pump != Pump::Interrupt || platform.inheritance().is_none() {
                within(LIMIT, &format!("{} {pump:?} {tasks:?}", name_of(platform)), move || {
                    nested(platform, pump, tasks);
                });
            }
        }
    }
}

#[test]
fn a_transact_polled_inside_its_waker_runs_there() {
    nested_everywhere(&[&[Op::Transact]]);
}

#[test]
fn a_queued_future_polled_inside_its_waker_ends_there() {
    nested_everywhere(&[&[Op::Await]]);
}

#[test]
fn a_task_polled_inside_its_waker_may_wait_for_the_bus() {
    nested_everywhere(&[&[Op::Await, Op::Sync]]);
    nested_everywhere(&[&[Op::Transact, Op::Lock]]);
}

#[test]
fn tasks_polled_inside_their_wakers_mix_all_paths() {
    nested_everywhere(&[
        &[Op::Transact, Op::Sync, Op::Await],
        &[Op::Await, Op::Transact, Op::Lock, Op::Transact],
        &[Op::Transact, Op::Transact, Op::Sync],
        &[Op::Await, Op::Sync, Op::Transact],
    ]);
}
