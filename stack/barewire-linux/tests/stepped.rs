//! A signal after every instruction of the bus, in the thread that runs it. The handler makes `try_` calls on the
//! same bus: each returns at once, and no later call finds the bus taken without a holder.
//!
//! The processor's trap flag raises SIGTRAP after each instruction. On x86-64 alone: no other processor lets a
//! program set such a flag.
#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code, reason = "the trap flag and a signal handler have no safe interface")]

use std::arch::asm;
use std::mem;
use std::pin::{Pin, pin};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use barewire::bus::{Bus, Device, Platform, Pump};
use barewire::controller::null::Null;
use barewire::spi::{Error, Settings, Transfer};
use barewire_linux::platform::{FUTEX, FUTEX_PI};

const SETTINGS: Settings = Settings::new(0, 1_000_000);

/// The handler's bus, and the results that it got.
struct HandlerState {
    device: Device<'static, Null>,
    traps: AtomicU64,
    ran: AtomicU64,
    busy: AtomicU64,
}

static INTERRUPTED: AtomicPtr<HandlerState> = AtomicPtr::new(ptr::null_mut());

/// A panic in here ends the process.
extern "C" fn on_trap(_: libc::c_int) {
    // SAFETY: set before the trap flag is, and kept until it is cleared.
    let Some(interrupted) = (unsafe { INTERRUPTED.load(Ordering::Relaxed).as_ref() }) else {
        return;
    };
    let count = |ran: bool| {
        let counter = if ran { &interrupted.ran } else { &interrupted.busy };
        counter.fetch_add(1, Ordering::Relaxed);
    };
    interrupted.traps.fetch_add(1, Ordering::Relaxed);
    match interrupted.device.try_sync(&mut [Transfer::write(&[0x55])]) {
        Ok(_) => count(true),
        Err(failed) if failed.error == Error::Busy => count(false),
        Err(failed) => panic!("{failed:?}"),
    }
    count(interrupted.device.bus().try_lock().is_some());
}

/// Runs `work` with a trap after each of its instructions.
fn stepped(work: impl FnOnce()) {
    // SAFETY: changes one flag; the stack is used as the compiler knows.
    unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
    work();
    // SAFETY: likewise.
    unsafe { asm!("pushfq", "and qword ptr [rsp], -0x101", "popfq") };
}

/// Each way onto the bus, once.
fn every_path(bus: &'static Bus<Null>, device: &Device<'static, Null>) {
    device.sync(&mut [Transfer::write(&[1])]).expect("runs");
    device.prepare([2]).expect("plans").run().expect("runs");
    let mut queued = pin!(device.queued([3]).expect("plans"));
    queued.as_mut().submit().expect("is free");
    assert_eq!(queued.as_mut().wait(), Some(Ok(1)));
    let mut lock = bus.lock();
    lock.sync(device, &mut [Transfer::write(&[4])]).expect("runs");
    let mut cancelled = Box::pin(device.queued([5]).expect("plans"));
    poll_once(cancelled.as_mut().run());
    let mut borrowed = [Transfer::write(&[6])];
    poll_once(device.transact(&mut borrowed));
    queued.as_mut().submit().expect("is free");
    drop(lock);
    assert_eq!(queued.as_mut().wait(), Some(Ok(1)));
    poll_once(device.transact(&mut borrowed));
    bus.pump();
}

/// Polls a future and drops it: the bus takes its message out.
fn poll_once(future: impl Future) {
    let mut future = pin!(future);
    let _ = Pin::as_mut(&mut future).poll(&mut Context::from_waker(Waker::noop()));
}

/// `beside`: other threads that use the bus meanwhile.
fn interrupted_everywhere(platform: &'static dyn Platform, pump: Pump, beside: usize) {
    // One handler at a time.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let bus: &'static Bus<Null> =
        Box::leak(Box::new(Bus::with_platform(Null::new(), platform).with_pump(pump)));
    let device = bus.device(&SETTINGS).expect("opens");
    let (traps, ran, busy) = Default::default();
    let mut interrupted = HandlerState { device, traps, ran, busy };
    INTERRUPTED.store(&raw mut interrupted, Ordering::Relaxed);
    // SAFETY: all zeros is a sigaction.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = on_trap as extern "C" fn(libc::c_int) as usize;
    // SAFETY: the handler may run at any time.
    assert_eq!(unsafe { libc::sigaction(libc::SIGTRAP, &raw const action, ptr::null_mut()) }, 0);
    let stop = AtomicBool::new(false);
    let contend = || {
        let mut queued = pin!(device.queued([7]).expect("plans"));
        // A limited number: the stepped thread also runs others' messages, and is slower than they
        // submit.
        for _ in 0..200 {
            device.sync(&mut [Transfer::write(&[8])]).expect("runs");
            queued.as_mut().submit().expect("is free");
            assert_eq!(queued.as_mut().wait(), Some(Ok(1)));
            drop(bus.lock());
            thread::sleep(Duration::from_millis(1));
        }
    };
    thread::scope(|scope| {
        if pump == Pump::Worker {
            scope.spawn(|| bus.serve(&stop));
        }
        let others: Vec<_> = (0..beside).map(|_| scope.spawn(contend)).collect();
        stepped(|| every_path(bus, &device));
        others.into_iter().for_each(|other| other.join().expect("no panic"));
        // The others' messages needed the worker.
        stop.store(true, Ordering::Relaxed);
        bus.ring();
    });
    let [traps, ran, busy] = [&interrupted.traps, &interrupted.ran, &interrupted.busy]
        .map(|c| c.load(Ordering::Relaxed));
    println!("FIGURE: stepped: {traps} instructions, {ran} calls ran, {busy} were refused");
    assert!(traps > 10_000 && ran > 1_000 && busy > 1_000, "{traps} {ran} {busy}");
    assert!(bus.try_lock().is_some(), "the bus is idle again");
}

fn alone_and_contended(platform: &'static dyn Platform) {
    for pump in [Pump::Caller, Pump::Worker] {
        for beside in [0, 2] {
            interrupted_everywhere(platform, pump, beside);
        }
    }
}

#[test]
fn a_handler_may_try_after_any_instruction() {
    alone_and_contended(&FUTEX);
}

#[test]
fn a_handler_may_try_after_any_instruction_of_an_inheriting_bus() {
    alone_and_contended(&FUTEX_PI);
}
