//! The controller's interrupt comes between any two register accesses of the code it interrupts: on
//! one processor, from a line that is a level, one run for each place.
//!
//! A run puts off one register access until everything that is on the wire is over. The line is up
//! by then, so the handler runs before the access does, unless interrupts are masked there; then it
//! runs as soon as they no longer are. Accesses of the handler itself are delayed too, so that the
//! next interrupt is due before the handler returns.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};

use barewire::bus::{Bus, Device};
use barewire::spi::{Error, Settings, Transfer};
use barewire_sim::board::shipped::kinds_without;
use barewire_sim::bring_up::{AnyController, Charged, handled_bus};
use barewire_sim::engine::Thread;
use barewire_sim::model::echo::Echo;
use barewire_sim::{Board, BoardOptions, BoardSpec, Rule};

const SETTINGS: Settings = Settings::new(0, 20_000_000);
/// Longer than any message takes, so that the message on the wire ends within it.
const STALL_PS: u64 = 300_000_000;
/// When a run hangs. The longest takes 3 ms.
const LIMIT_PS: u64 = 20_000_000_000;
/// How often in a row the handler may find nothing to do: a level that stays up enters it for ever.
const IDLE_ENTRIES_MAX: u32 = 100;

type Controller = Charged<AnyController>;

struct Bench {
    board: Board,
    chip: Rc<RefCell<Echo>>,
    bus: Bus<Controller>,
    /// The bytes that the chip must receive.
    expected: RefCell<Vec<u8>>,
    entries: Cell<u64>,
    ended: Cell<bool>,
    /// A message was taken down on the wire: its chip was deselected while the clock ran.
    cut: Cell<bool>,
    /// The word that a thread of higher priority waits on.
    high_goes: AtomicU32,
}

/// The thread of higher priority is to sync, or to end.
const GO: u32 = 1;
const END: u32 = 2;

/// A message with unique bytes.
fn bytes<const N: usize>(number: u8) -> [u8; N] {
    std::array::from_fn(|index| number << 5 | (index & 31) as u8)
}

impl Bench {
    /// Every queued message waits by interrupt; a sync call polls the wire.
    fn new(board: &'static str) -> Self {
        // A waiter looks seldom: each look would be some places more.
        let options = BoardOptions { relax_ps: 2_000_000, ..BoardOptions::default() };
        let board = Board::new(BoardSpec::find(board).expect("a board"), options);
        let chip = Rc::new(RefCell::new(Echo::default()));
        board.attach(0, chip.clone());
        let bus = handled_bus(&board, 0);
        let (expected, entries) = (RefCell::default(), Cell::new(0));
        let (ended, cut) = (Cell::new(false), Cell::new(false));
        let high_goes = AtomicU32::new(0);
        Self { board, chip, bus, expected, entries, ended, cut, high_goes }
    }

    fn device(&self) -> Device<'_, Controller> {
        self.bus.device(&SETTINGS).expect("opens")
    }

    fn expect(&self, bytes: &[u8]) {
        self.expected.borrow_mut().extend_from_slice(bytes);
    }

    /// Runs a message in the call.
    fn sync(&self, device: &Device<'_, Controller>, number: u8) {
        let tx = bytes::<4>(number);
        self.expect(&tx);
        let mut rx = [0; 4];
        assert_eq!(device.sync(&mut [Transfer::exchange(&tx, &mut rx)]), Ok(4));
        assert_eq!(rx[1..], tx[..3]);
    }

    /// Runs `scenario` and delays the register access that comes after `place` others. Returns
    /// whether there was such an access.
    fn run(&self, (name, scenario): Scenario, place: u64) -> bool {
        // Told at once: of a thread that hangs not every stack can be unwound.
        let at = format!("{}, {name}, before register access {place}", self.board.spec().name);
        let app = Thread::new("app", || {
            scenario(self);
            self.ended.set(true);
            if self.high_goes.swap(END, Relaxed) == 0 {
                self.board.engine().wake(&self.high_goes);
            }
        });
        let high = Thread::new("high", || {
            while self.high_goes.load(Relaxed) == 0 {
                self.board.engine().wait(&self.high_goes, 0);
            }
            if self.high_goes.load(Relaxed) == GO {
                let device = self.device();
                for number in [3, 4] {
                    self.sync(&device, number);
                }
            }
        });
        let handler = Thread::new("handler", || {
            let mut idle = 0;
            while self.board.wait_interrupt(None) {
                self.entries.set(self.entries.get() + 1);
                idle = if self.bus.interrupt() { 0 } else { idle + 1 };
                assert!(idle <= IDLE_ENTRIES_MAX, "livelock, the handler entered for ever: {at}");
            }
        });
        let watchdog = Thread::new("watchdog", || {
            self.board.engine().sleep_until(LIMIT_PS);
            assert!(self.ended.get(), "a hang: {at}");
        });
        self.board.stall_after(place, STALL_PS);
        self.board.engine().run(vec![app.on(0, 1), high.on(0, 2), handler.interrupt(0), watchdog]);
        assert_eq!(self.chip.borrow().received(), *self.expected.borrow(), "the wire: {at}");
        let mut violations = self.board.violations();
        // A late processor stops the clock within a burst, which costs time and no data.
        violations.retain(|violation| violation.rule.harms());
        if self.cut.get() {
            let cut = [Rule::MidWord, Rule::SckIdle, Rule::ClockWithoutCs];
            violations.retain(|violation| !cut.contains(&violation.rule));
        }
        assert!(violations.is_empty(), "{at}: {violations:#?}");
        !self.board.is_stall_to_come()
    }
}

/// Makes a queued message and expects its bytes on the wire next. Planning asks the controller, so
/// this may wait for the bus; submitting does not.
macro_rules! plan {
    ($bench:expr, $device:expr, $number:expr) => {{
        let tx = bytes::<N>($number);
        $bench.expect(&tx);
        Box::pin($device.queued(tx).expect("plans"))
    }};
}

macro_rules! submit {
    ($($queued:expr),*) => { $($queued.as_mut().submit().expect("is free");)* };
}

macro_rules! assert_ran {
    ($queued:expr, $result:expr) => {{
        assert_eq!($result, Some(Ok(N)));
        assert_eq!($queued.as_mut().result(), None, "it ran once");
        assert_eq!($queued.as_mut().tx_mut().expect("is free").len(), N);
        let tx = *$queued.as_mut().tx_mut().expect("is free");
        assert_eq!($queued.as_ref().rx().expect("is free")[1..], tx[..N - 1]);
    }};
}

fn sync_while_a_message_flies<const N: usize>(bench: &Bench) {
    let device = bench.device();
    let mut first = plan!(bench, device, 1);
    submit!(first);
    bench.sync(&device, 2);
    assert_ran!(first, first.as_mut().result());
}

fn wait_for_a_message_that_flies<const N: usize>(bench: &Bench) {
    let device = bench.device();
    let mut first = plan!(bench, device, 1);
    submit!(first);
    assert_ran!(first, first.as_mut().wait());
    let mut second = plan!(bench, device, 2);
    submit!(second);
    assert_ran!(second, second.as_mut().wait());
}

/// Planning another takes the bus, too.
fn plan_while_a_message_flies<const N: usize>(bench: &Bench) {
    let device = bench.device();
    let mut first = plan!(bench, device, 1);
    submit!(first);
    let mut second = plan!(bench, device, 2);
    assert_ran!(first, first.as_mut().result());
    submit!(second);
    assert_ran!(second, second.as_mut().wait());
}

fn cancel_a_message_that_flies<const N: usize>(bench: &Bench) {
    let device = bench.device();
    let mut first = plan!(bench, device, 1);
    submit!(first);
    assert!(!first.as_mut().cancel(), "it was on the wire");
    assert_ran!(first, first.as_mut().result());
    let mut dropped = plan!(bench, device, 2);
    submit!(dropped);
    drop(dropped);
    bench.sync(&device, 3);
}

fn cancel_a_message_behind_one_that_flies<const N: usize>(bench: &Bench) {
    let device = bench.device();
    let mut first = plan!(bench, device, 1);
    let behind = bytes::<N>(2);
    let mut second = Box::pin(device.queued(behind).expect("plans"));
    submit!(first, second);
    if !second.as_mut().cancel() {
        bench.expect(&behind);
    }
    bench.sync(&device, 3);
    assert_ran!(first, first.as_mut().result());
}

fn lock_while_a_message_flies<const N: usize>(bench: &Bench) {
    let device = bench.device();
    let mut first = plan!(bench, device, 1);
    submit!(first);
    {
        let mut locked = bench.bus.lock();
        assert_ran!(first, first.as_mut().result());
        for number in [2, 3] {
            let tx = bytes::<4>(number);
            bench.expect(&tx);
            assert_eq!(locked.sync(&device, &mut [Transfer::write(&tx)]), Ok(4));
        }
    }
    let mut last = plan!(bench, device, 4);
    submit!(last);
    assert_ran!(last, last.as_mut().wait());
}

fn submit_behind_a_lock<const N: usize>(bench: &Bench) {
    let device = bench.device();
    let tx = bytes::<4>(1);
    bench.expect(&tx);
    let mut behind = plan!(bench, device, 2);
    let mut last = plan!(bench, device, 3);
    let mut locked = bench.bus.lock();
    submit!(behind, last);
    assert_eq!(locked.sync(&device, &mut [Transfer::write(&tx)]), Ok(4));
    drop(locked);
    assert_ran!(last, last.as_mut().wait());
    assert_ran!(behind, behind.as_mut().result());
}

fn several_messages_queue<const N: usize>(bench: &Bench) {
    let device = bench.device();
    let mut first = plan!(bench, device, 1);
    let mut second = plan!(bench, device, 2);
    let mut third = plan!(bench, device, 3);
    submit!(first, second, third);
    assert_ran!(third, third.as_mut().wait());
    assert_ran!(first, first.as_mut().result());
    assert_ran!(second, second.as_mut().result());
}

fn messages_are_looked_for<const N: usize>(bench: &Bench) {
    let device = bench.device();
    let mut first = plan!(bench, device, 1);
    let mut second = plan!(bench, device, 2);
    submit!(first, second);
    let mut results = (None, None);
    while results.0.is_none() || results.1.is_none() {
        bench.board.cpu_work(500);
        results.0 = results.0.or_else(|| first.as_mut().result());
        results.1 = results.1.or_else(|| second.as_mut().result());
    }
    assert_ran!(first, results.0);
    assert_ran!(second, results.1);
}

fn futures_are_polled<const N: usize>(bench: &Bench) {
    let device = bench.device();
    let mut first = plan!(bench, device, 1);
    let mut second = plan!(bench, device, 2);
    let tx = bytes::<4>(3);
    bench.expect(&tx);
    let mut cx = Context::from_waker(Waker::noop());
    {
        let mut running = pin!(first.as_mut().run());
        while running.as_mut().poll(&mut cx).is_pending() {
            bench.board.cpu_work(500);
        }
    }
    submit!(second);
    let mut message = [Transfer::write(&tx)];
    let mut transact = pin!(device.transact(&mut message));
    loop {
        match transact.as_mut().poll(&mut cx) {
            Poll::Ready(ran) => break assert_eq!(ran, Ok(4)),
            Poll::Pending => bench.board.cpu_work(500),
        }
    }
    assert_ran!(second, second.as_mut().result());
}

/// A future whose message is in flight is dropped, after one poll and after two.
fn a_future_is_dropped_in_flight<const N: usize>(bench: &Bench) {
    let (device, tx) = (bench.device(), bytes::<N>(1));
    for polls in [1, 2] {
        let before = bench.chip.borrow().received().len();
        let mut message = [Transfer::write(&tx)];
        let mut future = Box::pin(device.transact(&mut message));
        for _ in 0..polls {
            let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            bench.board.cpu_work(500);
        }
        bench.cut.set(true);
        drop(future);
        let sent = bench.chip.borrow().received()[before..].to_vec();
        assert!(tx.starts_with(&sent), "others than its bytes");
        bench.expect(&sent);
        bench.sync(&device, 1 + polls);
    }
}

fn try_sync_while_a_message_flies<const N: usize>(bench: &Bench) {
    let device = bench.device();
    let mut first = plan!(bench, device, 1);
    let tx = bytes::<4>(2);
    bench.expect(&tx);
    submit!(first);
    loop {
        match device.try_sync(&mut [Transfer::write(&tx)]) {
            Ok(len) => break assert_eq!(len, 4),
            Err(refused) => assert_eq!(refused.error, Error::Busy),
        }
        bench.board.cpu_work(500);
    }
    assert_ran!(first, first.as_mut().result());
}

/// A thread that waits for its message is interrupted by one of higher priority, which syncs.
fn a_higher_thread_syncs<const N: usize>(bench: &Bench) {
    let device = bench.device();
    let mut first = plan!(bench, device, 1);
    let mut second = plan!(bench, device, 2);
    submit!(first, second);
    bench.high_goes.store(GO, Relaxed);
    bench.board.engine().wake(&bench.high_goes);
    assert_ran!(second, second.as_mut().wait());
    assert_ran!(first, first.as_mut().result());
}

type Scenario = (&'static str, fn(&Bench));

fn scenarios<const N: usize>() -> [Scenario; 13] {
    macro_rules! named {
        ($($scenario:ident),*) => { [$((stringify!($scenario), $scenario::<N>)),*] };
    }
    named![
        sync_while_a_message_flies,
        wait_for_a_message_that_flies,
        plan_while_a_message_flies,
        cancel_a_message_that_flies,
        cancel_a_message_behind_one_that_flies,
        lock_while_a_message_flies,
        submit_behind_a_lock,
        several_messages_queue,
        messages_are_looked_for,
        futures_are_polled,
        a_future_is_dropped_in_flight,
        try_sync_while_a_message_flies,
        a_higher_thread_syncs
    ]
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked")
}

/// The places of a scenario, and how often handlers were entered; the first place that fails and
/// what happened there.
fn everywhere(board: &'static str, scenario: Scenario) -> Result<(u64, u64), String> {
    let mut entries = 0;
    for place in 0.. {
        let bench = Bench::new(board);
        let ran = catch_unwind(AssertUnwindSafe(|| bench.run(scenario, place)));
        entries += bench.entries.get();
        match ran {
            Ok(true) => {}
            Ok(false) => {
                assert!(entries > 0, "{board}, {}: no interrupts", scenario.0);
                return Ok((place, entries));
            }
            Err(panic) => {
                let (name, what) = (scenario.0, text(&*panic));
                return Err(format!("{board}, {name}, place {place}: {what}"));
            }
        }
    }
    unreachable!("a run has an end")
}

#[test]
fn an_interrupt_between_any_two_register_accesses_loses_nothing() {
    // Messages that take more than one interrupt: longer than the block's FIFO.
    let boards = [
        ("beaglebone", scenarios::<72>()),
        ("imx8mp", scenarios::<260>()),
        ("rpi3", scenarios::<72>()),
        ("rpi5", scenarios::<260>()),
        ("highbank", scenarios::<20>()),
        ("sama5d36", scenarios::<6>()),
        ("unleashed", scenarios::<20>()),
        ("zynq", scenarios::<260>()),
    ];
    let names = boards.each_ref().map(|(name, _)| *name);
    assert_eq!(kinds_without(&names), [""; 0], "add a board, with messages longer than its FIFO");
    let (mut count, mut places, mut entries) = (0, 0, 0);
    let mut failures = Vec::new();
    for (board, scenarios) in boards {
        for scenario in scenarios {
            count += 1;
            match everywhere(board, scenario) {
                Ok(all) => (places, entries) = (places + all.0, entries + all.1),
                Err(failure) => failures.push(failure),
            }
        }
    }
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
    println!(
        "FIGURE: interrupts anywhere: {count} scenarios on {} controllers, {places} places, \
         {entries} interrupts handled",
        boards.len()
    );
}
