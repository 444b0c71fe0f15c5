//! The bus at its worst moments: each test does one thing at the moment at which it does most harm.
//!
//! Each of these once hung, lost a message or freed what was still queued. `wakers` has tasks that
//! panic or poll inside their waker, `futures` tasks that are woken and not polled, `platforms`
//! a platform that panics, `callbacks` callbacks that do, `interrupts` a level-triggered interrupt
//! on one core, `holders` a context that holds the bus and asks for it again, and `inside` code of users
//! that the bus calls and that uses the bus.
#![cfg(not(any(loom, shuttle)))]

mod callbacks;
mod futures;
mod holders;
mod inside;
mod interrupts;
#[path = "../shuttle/nested.rs"]
mod nested;
#[path = "../ops/mod.rs"]
mod ops;
#[path = "../platform/mod.rs"]
mod platform;
mod platforms;
#[path = "../threads/sleep.rs"]
mod sleep;
#[path = "../threads/mod.rs"]
mod threads;
mod wakers;
#[path = "../wire/mod.rs"]
mod wire;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use barewire::bus::queued::{Completed, Exchange};
use barewire::bus::{Bus, Device, Platform, Pump, Queued, Then};
use barewire::spi::Transfer;
use platform::{PLATFORMS, name_of};
use threads::{lock, within};
use wire::{PLAIN, Script, ScriptedController};

/// Far longer than any of these takes.
const LIMIT: Duration = Duration::from_secs(60);

type Sent = Arc<Mutex<Vec<u8>>>;
type Hook = Box<dyn FnMut(&[u8]) + Send>;
type Message<'b> = Pin<Box<Queued<'b, Wired, Exchange<1>>>>;

/// Runs a hook, and then records the sent bytes.
struct Keeper {
    sent: Sent,
    hook: Hook,
}

type Wired = ScriptedController<Keeper>;

impl Script for Keeper {
    fn may_use_its_bus(&self) -> bool {
        true
    }

    fn send(&mut self, bytes: &[u8]) {
        (self.hook)(bytes);
        lock(&self.sent).extend(bytes);
    }
}

/// A bus of [`Wired`], and what is sent on it.
fn wired(
    platform: &'static dyn Platform,
    pump: Pump,
    hook: impl FnMut(&[u8]) + Send + 'static,
) -> (Bus<Wired>, Sent) {
    let sent = Sent::default();
    let wired = Wired::new(Keeper { sent: sent.clone(), hook: Box::new(hook) });
    (Bus::with_platform(wired, platform).with_pump(pump), sent)
}

fn plain(platform: &'static dyn Platform) -> (Bus<Wired>, Sent) {
    wired(platform, Pump::Caller, |_| {})
}

/// A bus for tasks, which are `'static`.
fn kept(bus: Bus<Wired>) -> &'static Bus<Wired> {
    // Reachable from here, so that Miri does not call it leaked.
    static KEPT: Mutex<Vec<&Bus<Wired>>> = Mutex::new(Vec::new());
    let bus: &'static Bus<Wired> = Box::leak(Box::new(bus));
    lock(&KEPT).push(bus);
    bus
}

fn opened<'b>(bus: &'b Bus<Wired>) -> Device<'b, Wired> {
    bus.device(&PLAIN).expect("opens")
}

fn message<'b>(device: &Device<'b, Wired>, byte: u8) -> Message<'b> {
    Box::pin(device.queued([byte]).expect("plans"))
}

fn panicking<'b>(device: &Device<'b, Wired>, byte: u8) -> Message<'b> {
    fn panics(_: &mut Completed<'_>) -> Then {
        panic!("the callback panics")
    }
    Box::pin(device.queued([byte]).expect("plans").with_callback(&panics))
}

fn sent_so_far(sent: &Sent) -> Vec<u8> {
    lock(sent).clone()
}

fn poll<F: Future + ?Sized>(future: &mut Pin<Box<F>>, waker: &Waker) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(waker))
}

/// Whether `f` panics.
fn panics(f: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

/// Runs `body` once on each platform, and fails if it hangs.
fn on_each_platform(body: fn(&'static dyn Platform)) {
    for platform in PLATFORMS {
        within(LIMIT, name_of(platform), move || body(platform));
    }
}

/// Runs `body` once on a bus of each platform, with a device. Then the bus has sent these bytes, and
/// serves.
fn on_each_bus(expected: &'static [u8], body: for<'b> fn(&'b Bus<Wired>, &'b Device<'b, Wired>)) {
    for platform in PLATFORMS {
        within(LIMIT, name_of(platform), move || {
            let (bus, sent) = plain(platform);
            body(&bus, &opened(&bus));
            assert_eq!(sent_so_far(&sent), expected);
            assert_serves(&bus);
        });
    }
}

/// The bus is idle, and serves a message of each path.
fn assert_serves(bus: &Bus<Wired>) {
    assert!(bus.try_lock().is_some(), "the bus is idle");
    let device = opened(bus);
    assert_eq!(device.sync(&mut [Transfer::write(&[0xf0])]), Ok(1));
    assert!(device.prepare([0xf1]).expect("plans").run().is_ok());
    let mut submitted = message(&device, 0xf2);
    submitted.as_mut().submit().expect("is free");
    // The worker's part, where there should be one.
    bus.pump();
    assert_eq!(submitted.as_mut().wait(), Some(Ok(1)));
    let mut borrowed = [Transfer::write(&[0xf3])];
    let mut future = Box::pin(device.transact(&mut borrowed));
    assert_eq!(poll(&mut future, Waker::noop()), Poll::Ready(Ok(1)));
    drop(bus.lock());
    assert!(bus.try_lock().is_some(), "the bus is idle again");
}
