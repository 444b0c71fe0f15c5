//! Wakers that panic, free their task, or poll it at once.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use barewire::bus::{Bus, Device, Platform, Pump};
use barewire::spi::Transfer;

use crate::threads::{PLATFORMS, name_of, within};
use crate::{
    LIMIT, Sent, Wired, assert_serves, kept, message, on_each_platform, opened, panics, plain,
    poll, sent_so_far, wired,
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
    on_each_platform(|platform| {
        let (bus, sent) = plain(platform);
        let device = opened(&bus);
        let (mut first, mut second) = (message(&device, 1), message(&device, 2));
        let lock = bus.lock();
        let mut running = Box::pin(first.as_mut().run());
        assert!(poll(&mut running, &Arc::new(Panicking).into()).is_pending());
        second.as_mut().submit().expect("is free");
        assert!(panics(|| drop(lock)), "the panic arrives at the caller who ran the waker");
        assert_eq!(second.as_mut().result(), Some(Ok(1)), "served before the panic arrived");
        assert_eq!(poll(&mut running, Waker::noop()), Poll::Ready(Ok(1)), "settled as it ran");
        assert_eq!(sent_so_far(&sent), [1, 2]);
        assert_serves(&bus);
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
        let future = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
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

/// A task that is polled inside its waker, as an executor in an interrupt does, and as a task of
/// higher real-time priority on the same core is.
struct Nested {
    future: Mutex<Option<Boxed>>,
    woken: AtomicBool,
}

impl Nested {
    fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        let future = Mutex::new(Some(Box::pin(future) as Boxed));
        let task = Arc::new(Self { future, woken: AtomicBool::new(true) });
        task.run();
        task
    }

    fn run(self: &Arc<Self>) {
        let waker = self.clone().into();
        while self.woken.load(Ordering::Acquire) {
            // Being polled already: that call looks at `woken` again.
            let Ok(mut slot) = self.future.try_lock() else { return };
            self.woken.store(false, Ordering::Release);
            if let Some(future) = slot.as_mut()
                && future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
            {
                *slot = None;
            }
        }
    }

    fn is_done(&self) -> bool {
        self.future.try_lock().is_ok_and(|slot| slot.is_none())
    }
}

impl Wake for Nested {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.run();
    }
}

/// What a nested task does, one after the other.
#[derive(Clone, Copy, Debug)]
enum Step {
    Transact,
    Queued,
    Sync,
    Lock,
}

async fn take(device: Device<'static, Wired>, first: u8, steps: &'static [Step]) {
    for (step, byte) in steps.iter().zip(first..) {
        let bytes = [byte];
        let mut transfers = [Transfer::write(&bytes)];
        let ran = match step {
            Step::Transact => device.transact(&mut transfers).await,
            Step::Queued => message(&device, byte).as_mut().run().await,
            Step::Sync => device.sync(&mut transfers),
            Step::Lock => device.bus().lock().sync(&device, &mut transfers),
        };
        assert_eq!(ran, Ok(1), "{step:?}");
    }
}

fn served(bus: &Bus<Wired>, tasks: &[Arc<Nested>], sent: &Sent, expected: &[u8]) {
    // A worker's part, or nothing.
    while bus.pump() > 0 {}
    assert!(tasks.iter().all(|task| task.is_done()), "each ran inside its waker");
    let mut sent = sent_so_far(sent);
    sent.sort_unstable();
    assert_eq!(sent, expected, "each message once");
    assert_serves(bus);
}

/// Tasks of these steps begin while the bus is locked; all run when it is unlocked.
fn nested(platform: &'static dyn Platform, pump: Pump, tasks: &[&'static [Step]]) {
    let (bus, sent) = wired(platform, pump, |_| {});
    let bus = kept(bus);
    let device = opened(bus);
    let lock = bus.lock();
    let tasks = || (1..).map(|number| 0x10 * number).zip(tasks.iter().copied());
    let spawned: Vec<_> =
        tasks().map(|(first, steps)| Nested::spawn(take(device, first, steps))).collect();
    assert!(spawned.iter().all(|task| !task.is_done()), "the bus is locked");
    drop(lock);
    let all = tasks().flat_map(|(first, steps)| (first..).take(steps.len()));
    served(bus, &spawned, &sent, &all.collect::<Vec<_>>());
}

fn nested_everywhere(tasks: &'static [&'static [Step]]) {
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
    nested_everywhere(&[&[Step::Transact]]);
}

#[test]
fn a_queued_future_polled_inside_its_waker_ends_there() {
    nested_everywhere(&[&[Step::Queued]]);
}

#[test]
fn a_task_polled_inside_its_waker_may_wait_for_the_bus() {
    nested_everywhere(&[&[Step::Queued, Step::Sync]]);
    nested_everywhere(&[&[Step::Transact, Step::Lock]]);
}

#[test]
fn tasks_polled_inside_their_wakers_mix_all_paths() {
    nested_everywhere(&[
        &[Step::Transact, Step::Sync, Step::Queued],
        &[Step::Queued, Step::Transact, Step::Lock, Step::Transact],
        &[Step::Transact, Step::Transact, Step::Sync],
        &[Step::Queued, Step::Sync, Step::Transact],
    ]);
}
