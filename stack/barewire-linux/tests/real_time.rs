//! Threads of SCHED_FIFO on one processor. A thread of priority 20 runs whenever it can, even in
//! the middle of work of a thread of priority 10. If the higher thread spins until the lower one
//! makes progress, it spins for ever here.
//!
//! If a test hangs, a thread of priority 30 ends the process after [`HANG`]. Nothing runs where the
//! caller has no right to real-time priorities.

use std::future::Future;
use std::io::Write as _;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Scope, Thread};
use std::time::Duration;

use barewire::bus::{Bus, Device, Platform};
use barewire::controller::null::Null;
use barewire::controller::{Controller, Preset, Unfinished};
use barewire::middleware::Layer;
use barewire::spi::{Settings, Transfer};
use barewire_linux::platform::{FUTEX, FUTEX_PI};
use barewire_linux::worker::{FifoPriority, Worker, WorkerOptions, spawn_scoped};
use rustix::thread::sched_getaffinity;

/// A test that takes longer than this is taken to hang.
const HANG: Duration = Duration::from_secs(60);
/// Priorities of the lower thread, of the higher one, and of the thread that watches both.
const LOW: u8 = 10;
const HIGH: u8 = 20;
const WATCHDOG: u8 = 30;

fn fifo(priority: u8) -> WorkerOptions {
    WorkerOptions { scheduler: FifoPriority::new(priority), ..WorkerOptions::default() }
}

/// One test at a time has the processor, and a watchdog.
struct Floor {
    processor: usize,
    _ended: Sender<()>,
    _alone: MutexGuard<'static, ()>,
}

impl Floor {
    /// `None`, with a message, if the caller has no right to real-time priorities.
    fn new(test: &'static str) -> Option<Self> {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (ended, hear) = mpsc::channel::<()>();
        let watchdog = Worker::spawn(&fifo(WATCHDOG), move |_| {
            if hear.recv_timeout(HANG) == Err(RecvTimeoutError::Timeout) {
                // Written directly, because a test harness would keep it to itself.
                let _ = writeln!(std::io::stderr(), "{test}: it hangs, and the process ends here");
                std::process::abort();
            }
        });
        if let Err(error) = watchdog {
            println!("SKIPPED: no right to real-time priorities here: {error}");
            return None;
        }
        let allowed = sched_getaffinity(None).expect("Linux");
        let processor = (0..).find(|&processor| allowed.is_set(processor)).expect("one of them");
        Some(Self { processor, _ended: ended, _alone: alone })
    }

    fn spawn<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        priority: u8,
        body: impl FnOnce() + Send + 'scope,
    ) -> Worker<'scope> {
        let options = WorkerOptions { affinity: Some(vec![self.processor]), ..fifo(priority) };
        spawn_scoped(scope, &options, |_| body()).expect("spawns, as the watchdog did")
    }

    /// Runs both until they have ended.
    fn run(&self, low: impl FnOnce() + Send, high: impl FnOnce() + Send) {
        thread::scope(|scope| {
            let low = self.spawn(scope, LOW, low);
            let high = self.spawn(scope, HIGH, high);
            low.join().expect("the lower thread does not panic");
            high.join().expect("the higher thread does not panic");
        });
    }
}

/// A bus whose controller calls back in the middle of every message.
struct HookedController {
    null: Null,
    hook: Box<dyn FnMut() + Send>,
}

impl Layer for HookedController {
    type Inner = Null;

    fn inner(&self) -> &Null {
        &self.null
    }

    fn inner_mut(&mut self) -> &mut Null {
        &mut self.null
    }

    fn run_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        (self.hook)();
        self.null.run(preset, message)
    }
}

fn bus(
    platform: &'static dyn Platform,
    hook: impl FnMut() + Send + 'static,
) -> Bus<HookedController> {
    Bus::with_platform(HookedController { null: Null::new(), hook: Box::new(hook) }, platform)
}

fn device(bus: &Bus<HookedController>) -> Device<'_, HookedController> {
    bus.device(&Settings::new(0, 1_000_000)).expect("opens")
}

fn sync(device: &Device<'_, HookedController>) {
    assert_eq!(device.sync(&mut [Transfer::write(&[1, 2, 3, 4])]), Ok(4));
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future in the calling thread, which sleeps between two polls. `pending` is called after
/// each poll that found nothing.
fn block_on<F: Future>(future: F, mut pending: impl FnMut()) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => {
                pending();
                thread::park();
            }
        }
    }
}

const PLATFORMS: [(&str, &dyn Platform); 2] = [("FUTEX", &FUTEX), ("FUTEX_PI", &FUTEX_PI)];

/// The waker runs in the holder's thread, and the task it wakes preempts that at once.
#[test]
fn a_future_of_higher_priority_than_the_holder_gets_its_turn() {
    let Some(floor) = Floor::new("a_future_of_higher_priority_than_the_holder_gets_its_turn")
    else {
        return;
    };
    for (_, platform) in PLATFORMS {
        // The holder is in its first message when the task polls, and is preempted there.
        let (begun, begins) = mpsc::sync_channel(0);
        let mut begun = Some(begun);
        let bus = bus(platform, move || {
            if let Some(begun) = begun.take() {
                begun.send(()).expect("the task listens");
            }
        });
        let (device, pendings) = (&device(&bus), &AtomicU32::new(0));
        floor.run(
            move || sync(device),
            move || {
                begins.recv().expect("the holder begins");
                let mut message = [Transfer::write(&[5])];
                let ran = block_on(device.transact(&mut message), || {
                    pendings.fetch_add(1, Ordering::Relaxed);
                });
                assert_eq!(ran, Ok(1));
            },
        );
        assert!(pendings.load(Ordering::Relaxed) > 0, "it found the bus taken");
        assert_eq!(bus.into_inner().null.bytes(), 5);
    }
}

struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// The future's task has priority 10 and gets no time to poll the future. The thread of priority 20
/// finds the bus free, and does not wait for that poll.
#[test]
fn a_future_that_was_woken_and_not_polled_delays_no_higher_thread() {
    let Some(floor) = Floor::new("a_future_that_was_woken_and_not_polled_delays_no_higher_thread")
    else {
        return;
    };
    for (_, platform) in PLATFORMS {
        let owned = bus(platform, || ());
        let (bus, device) = (&owned, &device(&owned));
        let ((locked, is_locked), (polled, is_polled), (done, is_done)) =
            (mpsc::channel(), mpsc::channel(), mpsc::channel());
        floor.run(
            move || {
                is_locked.recv().expect("the higher thread locks");
                let told = Arc::new(WakeFlag(AtomicBool::new(false)));
                let waker = Waker::from(Arc::clone(&told));
                let mut cx = Context::from_waker(&waker);
                let mut message = [Transfer::write(&[5])];
                let mut future = Box::pin(device.transact(&mut message));
                assert!(Pin::as_mut(&mut future).poll(&mut cx).is_pending());
                polled.send(()).expect("the higher thread waits");
                is_done.recv().expect("the higher thread goes on");
                assert!(told.0.load(Ordering::Acquire), "it was woken when the lock was dropped");
                assert_eq!(future.as_mut().poll(&mut cx), Poll::Ready(Ok(1)));
            },
            move || {
                let lock = bus.lock();
                locked.send(()).expect("the lower thread waits");
                is_polled.recv().expect("the lower thread polls");
                drop(lock);
                sync(device);
                let mut lock = bus.lock();
                assert_eq!(lock.sync(device, &mut [Transfer::write(&[6])]), Ok(1));
                drop(lock);
                sync(device);
                done.send(()).expect("the lower thread waits");
            },
        );
        assert_eq!(owned.into_inner().null.bytes(), 4 + 1 + 4 + 1);
    }
}

/// The lock's owner waits for the thread of priority 20, which so must not wait for the lock.
#[test]
fn a_queued_message_is_taken_back_from_behind_an_idle_lock() {
    let Some(floor) = Floor::new("a_queued_message_is_taken_back_from_behind_an_idle_lock") else {
        return;
    };
    for (_, platform) in PLATFORMS {
        let owned = bus(platform, || ());
        let (bus, device) = (&owned, &device(&owned));
        let ((locked, is_locked), (done, is_done)) = (mpsc::channel(), mpsc::channel());
        floor.run(
            move || {
                let mut lock = bus.lock();
                locked.send(()).expect("the higher thread waits");
                is_done.recv().expect("the higher thread goes on");
                assert_eq!(lock.sync(device, &mut [Transfer::write(&[6])]), Ok(1));
                drop(lock);
                sync(device);
            },
            move || {
                is_locked.recv().expect("the lower thread locks");
                let mut cancelled = Box::pin(device.queued([7; 8]).expect("plans"));
                let mut dropped = Box::pin(device.queued([8; 8]).expect("plans"));
                cancelled.as_mut().enqueue().expect("is free");
                dropped.as_mut().enqueue().expect("is free");
                assert!(cancelled.as_mut().cancel(), "the message had not run");
                drop(dropped);
                done.send(()).expect("the lower thread waits");
            },
        );
        assert_eq!(owned.into_inner().null.bytes(), 1 + 4);
    }
}

/// A stream of messages of priority 10, preempted anywhere by syncs of priority 20.
#[test]
fn a_stream_beside_syncs_of_higher_priority_comes_to_its_end() {
    const SYNCS: u32 = 2_000;
    let Some(floor) = Floor::new("a_stream_beside_syncs_of_higher_priority_comes_to_its_end")
    else {
        return;
    };
    for (name, platform) in PLATFORMS {
        let bus = bus(platform, || ());
        let (device, over) = (device(&bus), AtomicBool::new(false));
        let ran = AtomicU32::new(0);
        floor.run(
            || {
                let mut queued = Box::pin(device.queued([1; 4]).expect("plans"));
                let mut message = [Transfer::write(&[1, 2, 3, 4])];
                while !over.load(Ordering::Relaxed) {
                    sync(&device);
                    queued.as_mut().submit().expect("is free");
                    assert_eq!(queued.as_mut().wait(), Some(Ok(4)));
                    assert_eq!(block_on(device.transact(&mut message), || ()), Ok(4));
                    queued.as_mut().enqueue().expect("is free");
                    drop(bus.lock());
                    assert_eq!(queued.as_mut().wait(), Some(Ok(4)));
                    ran.fetch_add(4, Ordering::Relaxed);
                }
            },
            || {
                for _ in 0..SYNCS {
                    // Not in step with the stream: wherever the timer's interrupt finds it.
                    thread::sleep(Duration::from_micros(20));
                    sync(&device);
                }
                over.store(true, Ordering::Relaxed);
            },
        );
        let ran = ran.into_inner();
        assert!(ran > 0, "{name}: the stream ran, too");
        assert_eq!(bus.into_inner().null.bytes(), 4 * u64::from(ran + SYNCS));
    }
}
