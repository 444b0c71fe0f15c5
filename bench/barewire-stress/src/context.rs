//! One context: messages on every path and device, mixed at random.
//!
//! # How it works
//! A context has a few [slots](super::slot) whose messages stay submitted while it does other
//! things. From time to time it polls them, waits for them or cancels them. A message gets its
//! number immediately before it is handed to the bus. So the judge numbers messages in the order in
//! which the bus receives them.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::rc::Rc;

use barewire::bus::{Bus, Device, Prepared};
use barewire::controller::Controller;
use barewire::spi::{Error, MessageError, Settings};
use barewire_sim::Board;
use indicatif::ProgressBar;

use super::account::{Account, Does, Path};
use super::frame::LEN_MIN;
use super::judge::{Judge, Outcome};
use super::message::{Message, Random, sign};
use super::platform::{BoxedFuture, found_idle, goes_on, join};
use super::slot::{Ran, Slot, slot};

/// The longest pause, in instructions: while all contexts crowd the bus, and while the bus is often
/// idle.
const PAUSE: usize = 12_000;
const PAUSE_IDLE: usize = 1_500_000;
/// Messages until the load changes from one to the other.
const PHASE: u64 = 512;

/// State shared by all contexts.
pub(super) struct Floor<'f> {
    pub(super) bus: &'f Bus<dyn Controller>,
    pub(super) board: &'f Board,
    /// The chip selects of the devices: a GPIO, and one that the controller may drive itself.
    pub(super) lines: [u8; 2],
    pub(super) judge: Rc<RefCell<Judge>>,
    pub(super) account: RefCell<Account>,
    pub(super) counts: RefCell<Counts>,
    pub(super) progress: &'f ProgressBar,
    pub(super) shown: Cell<u64>,
    /// The bus has priority inheritance: each waiter runs its own message, so every sync call is
    /// counted as immediate.
    pub(super) inherits: bool,
}

/// Messages given, by path.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub(super) struct Counts {
    pub(super) prepared: u64,
    pub(super) prepared_message: u64,
    pub(super) sync: u64,
    pub(super) submitted: u64,
    pub(super) enqueued: u64,
    pub(super) future: u64,
    pub(super) transact: u64,
    pub(super) locked: u64,
    pub(super) r#try: u64,
    pub(super) called_back: u64,
}

/// Devices of a stress run: which of the floor's lines, clock, priority.
const DEVICES: [(u8, u32, u8); 4] =
    [(0, 20_000_000, 0), (0, 5_000_000, 2), (1, 40_000_000, 0), (1, 10_000_000, 1)];
/// The chip select that the controller drives itself, where one is in use.
const PULSES: u8 = 1;

type AnyDevice<'f> = Device<'f, dyn Controller>;

/// A slot and the number of its message, while it is given and not settled.
struct Place<'f> {
    slot: Box<dyn Slot + 'f>,
    number: Option<u32>,
    called: (u64, u64),
}

/// A running context: see the module.
pub(super) struct Context<'f> {
    floor: &'f Floor<'f>,
    index: usize,
    left: u64,
    random: Random,
    devices: Vec<AnyDevice<'f>>,
    short: Vec<Prepared<'f, dyn Controller, 12>>,
    long: Prepared<'f, dyn Controller, 40>,
    places: Vec<Place<'f>>,
    message: Message,
}

impl<'f> Context<'f> {
    /// Context `index`, which will give `messages`.
    pub(super) fn new(
        floor: &'f Floor<'f>,
        index: usize,
        messages: u64,
        seed: u64,
    ) -> Result<Self, Error> {
        let open = |&(line, speed_hz, priority): &(u8, u32, u8)| {
            let settings = Settings::new(floor.lines[usize::from(line)], speed_hz);
            Ok(floor.bus.device(&settings)?.with_priority(priority))
        };
        let devices: Vec<AnyDevice<'f>> = DEVICES.iter().map(open).collect::<Result<_, Error>>()?;
        let mut short = Vec::new();
        for device in &devices {
            short.push(device.prepare([0; 12])?);
        }
        let long = devices[0].prepare([0; 40])?;
        let slots = [
            slot::<_, 9>(&devices[2], false)?,
            slot::<_, 12>(&devices[0], true)?,
            slot::<_, 20>(&devices[1], false)?,
            slot::<_, 33>(&devices[3], true)?,
            slot::<_, 70>(&devices[0], false)?,
        ];
        let place = |slot| Place { slot, number: None, called: (0, 0) };
        let places = slots.into_iter().map(place).collect();
        let mut seeds = Random::new(seed ^ (index as u64) << 32);
        let random = Random::new(seeds.next());
        let message = Message::default();
        Ok(Self { floor, index, left: messages, random, devices, short, long, places, message })
    }

    /// Gives all its messages, and waits for the last.
    pub(super) fn run(&mut self) {
        while self.left > 0 && !super::asked_to_stop() {
            match self.random.below(20) {
                0..5 => self.prepared(),
                5..9 => self.sync(),
                9..14 => self.submit(),
                14..16 => self.futures(),
                16 => self.lock(),
                _ => self.try_one(),
            }
            if self.random.one_in(3) {
                self.look_after();
            }
            if self.random.one_in(2) {
                self.pause();
            }
            self.show();
        }
        for at in 0..self.places.len() {
            if self.places[at].number.is_some() {
                let ran = self.places[at].slot.wait();
                self.fetched(at, ran.map_or(Outcome::NotRun, outcome));
            }
        }
    }

    fn pause(&mut self) {
        let crowded = (self.floor.judge.borrow().given() / PHASE).is_multiple_of(2);
        let most = if crowded { PAUSE } else { PAUSE_IDLE };
        self.floor.board.cpu_work(self.random.below(most) as u64);
    }

    fn show(&self) {
        let given = self.floor.judge.borrow().given();
        if given >= self.floor.shown.get() + 256 {
            self.floor.shown.set(given);
            self.floor.progress.set_position(given);
        }
    }

    fn counts(&self, count: impl FnOnce(&mut Counts)) {
        count(&mut self.floor.counts.borrow_mut());
    }

    fn give(&mut self, priority: u8) -> u32 {
        self.left = self.left.saturating_sub(1);
        self.floor.judge.borrow_mut().give(self.index, priority)
    }

    /// Reports the outcome of a message of `len` bytes to the judge and the account.
    fn settle(
        &self,
        number: u32,
        path: Path,
        transfers: impl Iterator<Item = (usize, Does)>,
        len: usize,
        outcome: Outcome,
        received_well: bool,
    ) {
        goes_on();
        self.floor.judge.borrow_mut().settle(self.index, number, outcome);
        let mut account = self.floor.account.borrow_mut();
        account.settle(path, transfers, outcome);
        let wrong = match outcome {
            Outcome::Done(actual) => actual != len || !received_well,
            _ => false,
        };
        account.wrong_results += u64::from(wrong);
    }

    fn settle_one(&self, number: u32, path: Path, len: usize, outcome: Outcome, well: bool) {
        let transfers = std::iter::once((len, Does::Exchanges));
        self.settle(number, path, transfers, len, outcome, well);
    }

    fn settle_message(&self, number: u32, path: Path, outcome: Outcome) {
        let (len, well) = (self.message.len(), self.message.received_well());
        self.settle(number, path, self.message.does(), len, outcome, well);
    }

    fn path(&self, idle: bool) -> Path {
        if idle || self.floor.inherits { Path::Immediate } else { Path::Waited }
    }

    fn prepared(&mut self) {
        self.counts(|counts| counts.prepared += 1);
        if self.random.one_in(4) {
            let number = self.give(self.devices[0].priority());
            let access = &mut self.long;
            let (outcome, idle, well) = run_prepared(access, self.index, number, false);
            let path = self.path(idle);
            self.settle_one(number, path, 40, outcome, well);
        } else {
            let at = self.random.below(self.short.len());
            let number = self.give(self.devices[at].priority());
            let access = &mut self.short[at];
            let (outcome, idle, well) = run_prepared(access, self.index, number, false);
            let path = self.path(idle);
            self.settle_one(number, path, 12, outcome, well);
        }
    }

    /// A random message for a random device, not yet given.
    fn make_up(&mut self) -> AnyDevice<'f> {
        let device = self.devices[self.random.below(self.devices.len())];
        let pulses = device.settings().chip_select == PULSES;
        self.message.make_up(&mut self.random, pulses);
        device
    }

    fn sync(&mut self) {
        let device = self.make_up();
        if self.random.one_in(4) {
            self.prepared_message(&device);
            return;
        }
        self.counts(|counts| counts.sync += 1);
        let number = self.give(device.priority());
        self.message.sign(self.index, number);
        let mut message = self.message.transfers();
        let (ran, idle) = found_idle(|| device.sync(&mut message));
        drop(message);
        let path = self.path(idle);
        self.settle_message(number, path, outcome(ran));
    }

    /// Preparing waits for a turn of its own, before the message is handed over.
    fn prepared_message(&mut self, device: &AnyDevice<'f>) {
        self.counts(|counts| counts.prepared_message += 1);
        // The message is signed first, because preparing it lends the buffers out. No other message
        // of this context comes in between.
        let number = self.give(device.priority());
        self.message.sign(self.index, number);
        let mut message = self.message.transfers();
        let mut prepared = device.prepare_message(&mut message).expect("a good message");
        self.floor.judge.borrow_mut().hands_over(self.index, number);
        let (ran, idle) = found_idle(|| prepared.run());
        drop(message);
        let path = self.path(idle);
        self.settle_message(number, path, outcome(ran));
    }

    /// Submits messages from some of the free slots.
    fn submit(&mut self) {
        for at in 0..self.places.len() {
            if self.left == 0 || self.places[at].number.is_some() || self.random.one_in(2) {
                continue;
            }
            self.give_place(at);
            if self.random.one_in(2) {
                self.counts(|counts| counts.submitted += 1);
                self.places[at].slot.submit();
            } else {
                self.counts(|counts| counts.enqueued += 1);
                self.places[at].slot.enqueue();
            }
        }
        // Sometimes a sync call follows messages that are queued and not yet run.
        if self.left > 0 && self.random.one_in(4) {
            self.sync();
        }
    }

    fn give_place(&mut self, at: usize) {
        let number = self.give(self.places[at].slot.priority());
        let place = &mut self.places[at];
        place.number = Some(number);
        place.called = place.slot.called_back().unwrap_or_default();
        sign(place.slot.tx(), self.index, number);
    }

    /// Polls, awaits or cancels submitted messages.
    fn look_after(&mut self) {
        for at in 0..self.places.len() {
            if self.places[at].number.is_none() {
                continue;
            }
            match self.random.below(6) {
                0 | 1 => {
                    if let Some(ran) = self.places[at].slot.result() {
                        self.fetched(at, outcome(ran));
                    }
                }
                2 => {
                    let ran = self.places[at].slot.wait();
                    self.fetched(at, ran.map_or(Outcome::NotRun, outcome));
                }
                3 => self.cancel(at),
                4 => {
                    self.floor.bus.pump();
                }
                _ => {}
            }
        }
    }

    fn cancel(&mut self, at: usize) {
        let place = &mut self.places[at];
        let ran = if place.slot.cancel() { None } else { place.slot.result() };
        self.floor.account.borrow_mut().cancelled += u64::from(ran.is_none());
        self.fetched(at, ran.map_or(Outcome::NotRun, outcome));
    }

    /// The slot's message is settled.
    fn fetched(&mut self, at: usize, outcome: Outcome) {
        let place = &mut self.places[at];
        let Some(number) = place.number.take() else { return };
        let (len, well) = (place.slot.len(), place.slot.received_well());
        if let Some((done, failed)) = place.slot.called_back() {
            let called = (done - place.called.0, failed - place.called.1);
            // The callback must have been called once, with the same result, before the owner got
            // it.
            let wanted = match outcome {
                Outcome::Done(_) => (1, 0),
                Outcome::Failed(_) => (0, 1),
                Outcome::NotRun => (0, 0),
            };
            self.floor.account.borrow_mut().wrong_results += u64::from(called != wanted);
            self.counts(|counts| counts.called_back += called.0 + called.1);
        }
        self.settle_one(number, Path::Async, len, outcome, well);
    }

    /// Some messages as futures, and one over borrowed buffers, awaited together; sometimes given
    /// up before they are ready.
    fn futures(&mut self) {
        let free = |place: &Place<'_>| place.number.is_none();
        let mut wanted: Vec<usize> =
            (0..self.places.len()).filter(|&at| free(&self.places[at])).collect();
        wanted.truncate(self.random.below(3).min(self.left as usize));
        let transact = (wanted.len() as u64) < self.left && !self.random.one_in(3);
        let device = self.make_up();
        for &at in &wanted {
            self.counts(|counts| counts.future += 1);
            self.give_place(at);
        }
        let transact = transact.then(|| {
            self.counts(|counts| counts.transact += 1);
            let number = self.give(device.priority());
            self.message.sign(self.index, number);
            number
        });
        let patience = if self.random.one_in(4) { self.random.below(2) as u32 } else { u32::MAX };
        let mut message = self.message.transfers();
        let mut futures: Vec<BoxedFuture<'_, Ran>> = Vec::new();
        let (judge, index) = (&*self.floor.judge, self.index);
        for (at, place) in self.places.iter_mut().enumerate() {
            if wanted.contains(&at) {
                let number = place.number.expect("it was given");
                futures.push(handed_over(judge, index, number, place.slot.run()));
            }
        }
        if let Some(number) = transact {
            let mut future = Box::pin(device.transact(&mut message));
            // Each poll submits it anew: between two polls it has no place that others could take.
            futures.push(Box::pin(poll_fn(move |cx| {
                judge.borrow_mut().hands_over(index, number);
                future.as_mut().poll(cx)
            })));
        }
        let mut results = join(futures, patience);
        drop(message);
        if let Some(number) = transact {
            let ran = results.pop().flatten();
            self.floor.account.borrow_mut().cancelled += u64::from(ran.is_none());
            let outcome = ran.map_or(Outcome::NotRun, outcome);
            // The future waits for its turn, and then holds the bus.
            self.settle_message(number, Path::Immediate, outcome);
        }
        for (at, ran) in wanted.into_iter().zip(results) {
            match ran {
                Some(ran) => self.fetched(at, outcome(ran)),
                // Given up: taken back, or on the wire already.
                None => self.cancel(at),
            }
        }
    }

    fn lock(&mut self) {
        let wanted = (2 + self.random.below(3)).min(self.left as usize);
        let try_it = self.random.one_in(3);
        let bus = self.floor.bus;
        let locked = if try_it { bus.try_lock() } else { Some(bus.lock()) };
        let Some(mut locked) = locked else { return };
        self.floor.judge.borrow_mut().locks(self.index);
        for _ in 0..wanted {
            self.counts(|counts| counts.locked += 1);
            if self.random.one_in(2) {
                let at = self.random.below(self.short.len());
                let number = self.give(self.devices[at].priority());
                let access = &mut self.short[at];
                sign(access.tx_mut(), self.index, number);
                let outcome = outcome(locked.run(access).map(|rx| rx.len()));
                let rx = *access.rx();
                let well = rx[1..] == access.tx_mut()[..11];
                self.settle_one(number, Path::Immediate, 12, outcome, well);
            } else {
                let device = self.make_up();
                let number = self.give(device.priority());
                self.message.sign(self.index, number);
                let mut message = self.message.transfers();
                let ran = locked.sync(&device, &mut message);
                drop(message);
                self.settle_message(number, Path::Immediate, outcome(ran));
            }
            if self.random.one_in(3) {
                self.floor.board.cpu_work(self.random.below(PAUSE / 4) as u64);
            }
        }
        self.floor.judge.borrow_mut().unlocks();
    }

    fn try_one(&mut self) {
        self.counts(|counts| counts.r#try += 1);
        if self.random.one_in(2) {
            let at = self.random.below(self.short.len());
            let number = self.give(self.devices[at].priority());
            let access = &mut self.short[at];
            let (outcome, idle, well) = run_prepared(access, self.index, number, true);
            let path = self.path(idle);
            self.floor.account.borrow_mut().busy += u64::from(outcome == Outcome::NotRun);
            self.settle_one(number, path, 12, outcome, well);
        } else {
            let device = self.make_up();
            let number = self.give(device.priority());
            self.message.sign(self.index, number);
            let mut message = self.message.transfers();
            let outcome = outcome(device.try_sync(&mut message));
            drop(message);
            self.floor.account.borrow_mut().busy += u64::from(outcome == Outcome::NotRun);
            self.settle_message(number, Path::Immediate, outcome);
        }
    }
}

/// Runs a prepared access, waiting or not.
fn run_prepared<const N: usize>(
    access: &mut Prepared<'_, dyn Controller, N>,
    context: usize,
    number: u32,
    try_it: bool,
) -> (Outcome, bool, bool) {
    const { assert!(N >= LEN_MIN, "a message has room for its head") };
    sign(access.tx_mut(), context, number);
    let (outcome, idle) = found_idle(|| {
        let ran = if try_it { access.try_run() } else { access.run() };
        outcome(ran.map(|rx| rx.len()))
    });
    let rx = *access.rx();
    let well = rx[0] == 0 && rx[1..] == access.tx_mut()[..N - 1];
    (outcome, idle, well)
}

/// The future, which tells the judge when it is first polled.
fn handed_over<'f>(
    judge: &'f RefCell<Judge>,
    context: usize,
    number: u32,
    future: BoxedFuture<'f, Ran>,
) -> BoxedFuture<'f, Ran> {
    Box::pin(async move {
        judge.borrow_mut().hands_over(context, number);
        future.await
    })
}

fn outcome(ran: Result<usize, MessageError>) -> Outcome {
    match ran {
        Ok(len) => Outcome::Done(len),
        Err(MessageError { error: Error::Busy, .. }) => Outcome::NotRun,
        Err(error) => Outcome::Failed(error),
    }
}
