//! Futures whose message is in flight: the handler wakes the task, and only its polls move bytes.

use std::boxed::Box;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::vec;
use std::vec::Vec;

use super::SETTINGS;
use super::park::Park;
use crate::bus::platform::Spin;
use crate::bus::{Bus, Platform, Pump};
use crate::controller::null::Null;
use crate::controller::{Controller, Limits, Preset, Stopped, Unfinished};
use crate::spi::{Effective, Error, MessageError, Settings, Transfer};

/// What a test sees of the controller, and tells it, while the bus has it.
#[derive(Default)]
struct Board {
    log: Mutex<Vec<&'static str>>,
    /// The byte on the wire has arrived.
    arrived: AtomicBool,
    overdue: AtomicBool,
    /// Panics in the resume of this number, counted from 1.
    fatal: AtomicUsize,
    /// Fails in the resume of this number.
    failing: AtomicUsize,
}

impl Board {
    fn note(&self, what: &'static str) {
        self.log.lock().expect("no panic").push(what);
    }

    fn noted(&self) -> Vec<&'static str> {
        core::mem::take(&mut self.log.lock().expect("no panic"))
    }
}

/// Exchanges a byte with each resume, inverted, and is polled for messages of one byte.
struct ByteByByte {
    board: Arc<Board>,
    next: Option<usize>,
    resumes: usize,
}

impl Controller for ByteByByte {
    fn limits(&self) -> Limits {
        Null::new().limits()
    }
    fn configure(&self, settings: &Settings) -> Result<(Preset, Effective), Error> {
        let (preset, effective) = Null::new().configure(settings)?;
        Ok((Preset { poll_bytes_max: 1, ..preset }, effective))
    }
    fn plan(&self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        Null::new().plan(preset, message)?;
        for transfer in message {
            transfer.plan = transfer.plan.with_interrupt(transfer.data().len() > 1);
        }
        Ok(())
    }
    fn run(&mut self, _: &Preset, message: &mut [Transfer<'_>]) -> Result<usize, Unfinished> {
        assert_eq!(self.next, None, "one message inside another");
        self.board.note("run");
        Ok(message.iter().map(|transfer| transfer.data().len()).sum())
    }
    fn start(&mut self, _: &Preset, _: &mut [Transfer<'_>]) -> Poll<Result<usize, Unfinished>> {
        assert_eq!(self.next.replace(0), None, "one message inside another");
        self.resumes = 0;
        self.board.note("start");
        Poll::Pending
    }
    fn resume(
        &mut self,
        _: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        if !self.board.arrived.swap(false, Ordering::Relaxed) {
            return Poll::Pending;
        }
        self.resumes += 1;
        assert_ne!(self.resumes, self.board.fatal.load(Ordering::Relaxed), "as planned");
        let at = self.next.expect("a message is in flight");
        if self.resumes == self.board.failing.load(Ordering::Relaxed) {
            self.next = None;
            let stopped = Stopped::TimedOut { timeout_us: 7 };
            return Poll::Ready(Err(Unfinished::stopped(0, stopped)));
        }
        let byte = message[0].data().tx().map_or(0, |tx| tx[at]);
        if let Some(rx) = message[0].data.rx_mut() {
            rx[at] = !byte;
        }
        let len = message[0].data().len();
        self.next = (at + 1 < len).then_some(at + 1);
        if self.next.is_some() { Poll::Pending } else { Poll::Ready(Ok(len)) }
    }
    fn silence(&mut self) {
        self.board.note("silence");
    }
    fn is_overdue(&mut self) -> bool {
        self.board.overdue.load(Ordering::Relaxed)
    }
    fn reclaim(&mut self) {
        self.board.note("reclaim");
        self.next = None;
    }
}

fn bus(platform: &'static dyn Platform) -> (Bus<ByteByByte>, Arc<Board>) {
    let board = Arc::new(Board::default());
    let controller = ByteByByte { board: board.clone(), next: None, resumes: 0 };
    (Bus::with_platform(controller, platform).with_pump(Pump::Interrupt), board)
}

/// The byte on the wire arrives, and the block interrupts.
fn arrive(bus: &Bus<ByteByByte>, board: &Board) {
    board.arrived.store(true, Ordering::Relaxed);
    assert!(bus.interrupt());
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn poll<F: Future>(future: Pin<&mut F>, wakes: &Arc<Count>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(&Waker::from(wakes.clone())))
}

#[test]
fn a_future_is_pending_while_its_message_is_in_flight() {
    let (bus, board) = bus(&Spin);
    bus.set_counting(true);
    let (wakes, mut rx) = (Arc::default(), [0; 3]);
    let device = bus.device(&SETTINGS).expect("opens");
    {
        let mut message = [Transfer::exchange(&[1, 2, 3], &mut rx)];
        let mut future = pin!(device.transact(&mut message));
        assert_eq!(poll(future.as_mut(), &wakes), Poll::Pending);
        for interrupt in 1..=3 {
            let busy = device.try_sync(&mut [Transfer::write(&[9])]).expect_err("on the wire");
            assert_eq!(busy.error, Error::Busy);
            assert_eq!(wakes.0.load(Ordering::Relaxed), interrupt - 1);
            arrive(&bus, &board);
            assert_eq!(wakes.0.load(Ordering::Relaxed), interrupt);
            assert!(bus.interrupt(), "a timer's interrupt wakes nobody again");
            assert_eq!(wakes.0.load(Ordering::Relaxed), interrupt);
            let polled = poll(future.as_mut(), &wakes);
            assert_eq!(polled, if interrupt < 3 { Poll::Pending } else { Poll::Ready(Ok(3)) });
        }
        assert!(!bus.interrupt(), "nothing flies");
        device.try_sync(&mut [Transfer::write(&[4])]).expect("is free");
    }
    assert_eq!(rx, [!1, !2, !3]);
    let pair = ["silence", "silence"];
    assert_eq!(board.noted(), [&["start"], &pair[..], &pair, &pair, &["run"]].concat());
    let statistics = bus.statistics();
    assert_eq!((statistics.messages, statistics.errors), (2, 0));
}

#[test]
fn a_short_message_runs_inside_the_poll() {
    let (bus, board) = bus(&Spin);
    let device = bus.device(&SETTINGS).expect("opens");
    let mut message = [Transfer::write(&[1])];
    assert_eq!(poll(pin!(device.transact(&mut message)), &Arc::default()), Poll::Ready(Ok(1)));
    assert_eq!(board.noted(), ["run"]);
}

#[test]
fn a_message_that_fails_in_flight_says_so_and_frees_the_bus() {
    let (bus, board) = bus(&Spin);
    let device = bus.device(&SETTINGS).expect("opens");
    board.failing.store(2, Ordering::Relaxed);
    let (mut message, wakes) = ([Transfer::write(&[1, 2, 3])], Arc::default());
    let mut future = pin!(device.transact(&mut message));
    for _ in 0..2 {
        assert_eq!(poll(future.as_mut(), &wakes), Poll::Pending);
        arrive(&bus, &board);
    }
    let Poll::Ready(Err(error)) = poll(future.as_mut(), &wakes) else { panic!("it failed") };
    assert_eq!(error.error, Error::Timeout { timeout_us: 7 });
    device.try_sync(&mut [Transfer::write(&[4])]).expect("is free");
}

#[test]
fn a_future_dropped_in_flight_ends_its_message_first() {
    for polls in 1..=3 {
        for interrupted in [false, true] {
            let (bus, board) = bus(&Spin);
            bus.set_counting(true);
            let device = bus.device(&SETTINGS).expect("opens");
            let (mut message, wakes) = ([Transfer::write(&[1, 2, 3])], Arc::<Count>::default());
            let mut other = Box::pin(device.queued([7]).expect("plans"));
            {
                let mut future = Box::pin(device.transact(&mut message));
                for poll_number in 1..=polls {
                    assert_eq!(poll(future.as_mut(), &wakes), Poll::Pending);
                    if poll_number < polls || interrupted {
                        arrive(&bus, &board);
                    }
                }
                other.as_mut().submit().expect("is free");
            }
            let log = board.noted();
            // The queue behind it goes on at once: what it starts comes after.
            assert_eq!(log[log.len() - 2..], ["reclaim", "start"], "{polls} {interrupted}");
            assert_eq!(Arc::strong_count(&wakes), 1, "the waker is dropped");
            arrive(&bus, &board);
            assert_eq!(other.as_mut().wait(), Some(Ok(1)));
            device.try_sync(&mut [Transfer::write(&[4])]).expect("is free");
            let statistics = bus.statistics();
            assert_eq!((statistics.messages, statistics.errors), (3, 1));
        }
    }
}

/// Leaves a message in flight whose future nobody polls again, and whose buffer is somebody else's.
fn forget(bus: &Bus<ByteByByte>, rx: &mut [u8; 3], wakes: &Arc<Count>) {
    /// A leak checker finds them here.
    static FORGOTTEN: Mutex<Vec<AtomicPtr<()>>> = Mutex::new(Vec::new());
    let device = bus.device(&SETTINGS).expect("opens");
    let mut message = vec![Transfer::read(rx)];
    let mut future = Box::pin(device.transact(&mut message));
    assert_eq!(poll(future.as_mut(), wakes), Poll::Pending);
    let forgotten = Box::into_raw(Box::new(future)).cast();
    FORGOTTEN.lock().expect("no panic").push(AtomicPtr::new(forgotten));
}

#[test]
fn a_forgotten_future_loses_nobodys_bytes_and_not_the_bus() {
    for timer in [false, true] {
        let (bus, board) = bus(&Spin);
        let (mut rx, wakes) = ([5; 3], Arc::<Count>::default());
        forget(&bus, &mut rx, &wakes);
        rx = [6; 3];
        assert!(bus.interrupt());
        assert!(bus.interrupt());
        board.overdue.store(true, Ordering::Relaxed);
        if timer {
            assert!(bus.interrupt(), "takes it down");
            assert!(!bus.interrupt());
        }
        let device = bus.device(&SETTINGS).expect("opens");
        assert_eq!(device.sync(&mut [Transfer::write(&[4])]), Ok(1));
        assert_eq!(board.noted(), ["start", "silence", "silence", "reclaim", "run"]);
        assert_eq!(rx, [6; 3]);
    }
}

#[test]
fn who_waits_sleeps_while_only_the_future_can_go_on() {
    let (bus, board) = bus(&Park);
    let device = bus.device(&SETTINGS).expect("opens");
    let (mut message, wakes) = ([Transfer::write(&[1, 2, 3])], Arc::default());
    let mut future = Box::pin(device.transact(&mut message));
    assert_eq!(poll(future.as_mut(), &wakes), Poll::Pending);
    let waits = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let (bus, waits) = (&bus, &waits);
        scope.spawn(move || {
            let device = bus.device(&SETTINGS).expect("opens");
            assert_eq!(device.sync(&mut [Transfer::write(&[4])]), Ok(1));
            waits.store(false, Ordering::Relaxed);
        });
        loop {
            assert!(waits.load(Ordering::Relaxed), "before the message has ended");
            // Any waiter may look at the flight at this moment.
            board.arrived.store(true, Ordering::Relaxed);
            bus.interrupt();
            if poll(future.as_mut(), &wakes).is_ready() {
                break;
            }
            std::thread::yield_now();
        }
    });
    assert!(!waits.load(Ordering::Relaxed));
}

#[test]
fn a_panic_while_a_message_is_continued_frees_the_bus() {
    let (bus, board) = bus(&Spin);
    board.fatal.store(2, Ordering::Relaxed);
    let device = bus.device(&SETTINGS).expect("opens");
    let (mut message, wakes) = ([Transfer::write(&[1, 2, 3])], Arc::default());
    let mut future = Box::pin(device.transact(&mut message));
    for _ in 0..2 {
        assert_eq!(poll(future.as_mut(), &wakes), Poll::Pending);
        arrive(&bus, &board);
    }
    let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = poll(future.as_mut(), &wakes);
    }));
    assert!(died.is_err());
    drop(future);
    assert_eq!(board.noted().last(), Some(&"reclaim"));
    device.try_sync(&mut [Transfer::write(&[4])]).expect("is free");
}

type Pinned = Pin<Box<dyn Future<Output = Result<usize, MessageError>> + Send>>;

#[test]
fn a_waker_may_poll_its_future_in_the_handler() {
    /// Polls its future whenever it is woken, wherever that is.
    #[derive(Default)]
    struct Polls(Mutex<Option<Pinned>>, AtomicUsize);

    impl Wake for Polls {
        fn wake(self: Arc<Self>) {
            let mut future = self.0.lock().expect("not polled inside its own poll");
            let Some(pinned) = future.as_mut() else { return };
            let waker = Waker::from(self.clone());
            if pinned.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                *future = None;
            }
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    static BUS: OnceLock<Bus<ByteByByte>> = OnceLock::new();
    let (bus, board) = bus(&Spin);
    let bus = BUS.get_or_init(|| bus);
    let device = bus.device(&SETTINGS).expect("opens");
    let polls = Arc::new(Polls::default());
    *polls.0.lock().expect("no panic") = Some(Box::pin(async move {
        let mut bytes = [0; 3];
        device.transact(&mut [Transfer::read(&mut bytes)]).await
    }));
    polls.clone().wake();
    for _ in 0..3 {
        assert!(polls.0.lock().expect("no panic").is_some());
        arrive(bus, &board);
    }
    assert!(polls.0.lock().expect("no panic").is_none());
    assert_eq!(polls.1.load(Ordering::Relaxed), 4);
}
