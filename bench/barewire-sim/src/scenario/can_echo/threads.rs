//! The code that receives and sends: a handler, a process, or two processes.
//!
//! # How it works
//! A service is: the interrupt, looks at the chip while its pin is low, sleep. A process sleeps in a
//! poll, reads UIO's node, and writes to it to let the interrupt come again before it sleeps: three
//! system calls. With sockets, a second thread of the same priority sends the frames that come back
//! from the other process, whose priority is lower.
//!
//! The lowest thread gets the remaining time; its begin and end delimit the measurement.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use barewire::chip::mcp251xfd::{
    CanError, ExtendedId, Found, Frame, Id, Mcp251xfd, Received, StandardId,
};
use barewire::controller::Controller;
use barewire::regmap::OnDevice;

use super::account::{Account, RunFigures, Usage};
use super::socket::Socket;
use super::{INSTRUCTIONS_PER_RECEIVED, INSTRUCTIONS_PER_SENT, Who};
use crate::chip::Ps;
use crate::engine::Thread;
use crate::model::can::CanBus;
use crate::model::mcp2518fd::Mcp2518Fd;
use crate::{Board, IntLine, SimTimer};

type Driver<'b, C> = Mcp251xfd<OnDevice<'b, C, 6>, SimTimer>;
/// Where a received frame goes.
type Forward<'f, 'b, C> = dyn Fn(&mut Driver<'b, C>, Frame) -> Result<(), CanError> + 'f;

/// The quantum of the lowest thread. Code that takes its processor runs between two quanta.
const IDLE_QUANTUM_PS: Ps = 100_000_000;
/// Quanta after which the caller is asked whether to carry on.
const QUANTA_TO_ASK: u64 = 100;
/// An uncontended lock and unlock, for two threads that share a driver. Assumption: the difference
/// that a compare-and-swap and an exchange make in `barewire bench` (its row `floor` less its row
/// `bare`).
const INSTRUCTIONS_PER_LOCK: u64 = 10;
/// Priorities of the service and of the other process.
const SERVICE: u8 = 9;
const OTHER: u8 = 5;

/// The equipment of a run, and its times.
pub(super) struct Bench<'a> {
    pub(super) board: &'a Board,
    pub(super) can: &'a CanBus,
    pub(super) chip: &'a Rc<RefCell<Mcp2518Fd>>,
    pub(super) line: &'a IntLine,
    /// The time at which the first frame is ready to be sent.
    pub(super) start_ps: Ps,
    /// If no frame arrives for this long, no more are expected.
    pub(super) stall_ps: Ps,
    /// The time that the last echoes have to leave.
    pub(super) last_ps: Ps,
}

impl Bench<'_> {
    /// Adds to the account what happened since the last call.
    pub(super) fn add_to(&self, account: &RefCell<Account>) {
        let selections = self.board.drain_selections();
        let int_lows = self.chip.borrow().take_int_lows();
        let records = self.can.take_records();
        let mut account = account.borrow_mut();
        selections.iter().for_each(|one| account.selection(one));
        int_lows.into_iter().for_each(|low| account.int_low(low));
        records.iter().for_each(|record| account.frame(record));
    }
}

/// The echo, as all threads have it.
struct Echo<'a, 'd, 'b, C: ?Sized> {
    bench: &'a Bench<'a>,
    account: &'a RefCell<Account>,
    driver: RefCell<&'d mut Driver<'b, C>>,
    carry_on: RefCell<&'a mut dyn FnMut(u64) -> bool>,
    ran: RefCell<RunFigures>,
    wanted: u64,
    received: Cell<u64>,
    handled: Cell<u64>,
    last_seen_ps: Cell<Ps>,
    done: Cell<bool>,
    failed: Cell<Option<CanError>>,
}

/// The identifier minus 1; 0 wraps to the largest.
fn before(id: Id) -> Id {
    match id {
        Id::Standard(id) => {
            let raw = id.as_raw().checked_sub(1);
            raw.and_then(StandardId::new).unwrap_or(StandardId::MAX).into()
        }
        Id::Extended(id) => {
            let raw = id.as_raw().checked_sub(1);
            raw.and_then(ExtendedId::new).unwrap_or(ExtendedId::MAX).into()
        }
    }
}

impl<'b, C: Controller + ?Sized> Echo<'_, '_, 'b, C> {
    fn used(&self) -> Usage {
        let board = self.bench.board;
        Usage {
            time_ps: board.engine().now_ps(),
            wire_ps: board.wire_use().clock_ps,
            accesses: self.bench.chip.borrow().instructions(),
        }
    }

    /// The interrupt pin, read at its GPIO block.
    fn pin_is_low(&self) -> bool {
        let Bench { board, line, .. } = *self.bench;
        board.engine().spend_ps(board.profile().gpio_read_ps.value);
        board.cpu_work(board.profile().instructions_per_access.value);
        line.is_high()
    }

    /// One service of the interrupt; its frames go to `forward`.
    fn serve(&self, forward: &Forward<'_, 'b, C>) {
        self.bench.board.cpu_work(INSTRUCTIONS_PER_LOCK);
        let since = self.used();
        self.bench.add_to(self.account);
        self.account.borrow_mut().service(since.time_ps);
        let handle = |driver: &mut Driver<'b, C>, received: &Received, found: &Found| {
            if *found != (Found { frame: true, ..Found::default() }) {
                self.ran.borrow_mut().strange += 1;
            }
            if !found.frame {
                return Ok(());
            }
            self.bench.board.cpu_work(INSTRUCTIONS_PER_RECEIVED);
            self.received.set(self.received.get() + 1);
            // Only a frame restarts the stall timer, because errors may repeat for ever.
            self.last_seen_ps.set(self.bench.board.engine().now_ps());
            self.ask_to_carry_on();
            forward(driver, received.frame)
        };
        let served = self.driver.borrow_mut().serve(|| self.pin_is_low(), handle);
        if let Err(error) = served {
            self.fail(error);
        }
        let now = self.used();
        self.ran.borrow_mut().serving.add(since, Usage { time_ps: since.time_ps, ..now });
    }

    /// Ends it if the caller wants no more.
    fn ask_to_carry_on(&self) {
        if !(self.carry_on.borrow_mut())(self.received.get()) {
            self.ran.borrow_mut().interrupted = true;
            self.done.set(true);
        }
    }

    fn fail(&self, error: CanError) {
        self.failed.set(Some(error));
        self.done.set(true);
    }

    /// Sends the echo of `frame`.
    fn send(&self, driver: &mut Driver<'b, C>, frame: &Frame) -> Result<(), CanError> {
        self.bench.board.cpu_work(INSTRUCTIONS_PER_SENT);
        match driver.transmit(&frame.with_id(before(frame.id()))) {
            Err(CanError::TxFull) => self.ran.borrow_mut().dropped += 1,
            sent => drop(sent?),
        }
        self.handled.set(self.handled.get() + 1);
        if self.handled.get() == self.wanted {
            self.done.set(true);
        }
        Ok(())
    }

    /// A service sends the frame that it received.
    fn echo_at_once(&self, driver: &mut Driver<'b, C>, frame: Frame) -> Result<(), CanError> {
        let since = self.used();
        let sent = self.send(driver, &frame);
        self.ran.borrow_mut().sending.add(since, self.used());
        sent
    }

    /// The hard interrupt.
    fn handler(&self) {
        let Bench { board, line, .. } = *self.bench;
        let profile = board.profile();
        let around_ps = profile.interrupt_latency_ps.value + profile.interrupt_exit_ps.value;
        while !self.done.get() && line.wait(None) {
            let woken_ps = board.engine().now_ps();
            self.serve(&|driver, frame| self.echo_at_once(driver, frame));
            let took_ps = board.engine().now_ps() - woken_ps;
            self.ran.borrow_mut().serving.time_ps += took_ps + around_ps;
        }
    }

    /// The thread that UIO wakes.
    fn process(&self, forward: &Forward<'_, 'b, C>) {
        let Bench { board, line, stall_ps, .. } = *self.bench;
        let engine = board.engine();
        let profile = board.profile();
        let call_ps = profile.futex_call_ps.value;
        // The kernel's part, the switch to here, the poll that sleeps, and the switch away.
        let around_ps = profile.irq_thread_ps.value + 2 * profile.context_switch_ps.value + call_ps;
        while !self.done.get() {
            if !line.wait(Some(stall_ps)) {
                continue;
            }
            let woken_ps = engine.now_ps();
            // The read.
            engine.spend_ps(call_ps);
            self.serve(forward);
            // The write.
            engine.spend_ps(call_ps);
            let took_ps = engine.now_ps() - woken_ps;
            self.ran.borrow_mut().serving.time_ps += took_ps + around_ps;
        }
    }

    /// The thread that sends the frames that come back.
    fn sender(&self, back: &Socket) {
        let board = self.bench.board;
        while let Some(frame) = back.receive(board, self.bench.stall_ps) {
            board.cpu_work(INSTRUCTIONS_PER_LOCK);
            let since = self.used();
            let sent = self.send(&mut self.driver.borrow_mut(), &frame);
            self.ran.borrow_mut().others.add(since, self.used());
            if let Err(error) = sent {
                self.fail(error);
            }
            if self.done.get() {
                break;
            }
        }
    }

    /// Runs when no other thread needs the processor.
    fn idle(&self) {
        let Bench { board, start_ps, stall_ps, last_ps, .. } = *self.bench;
        let engine = board.engine();
        engine.spend_ps(start_ps.saturating_sub(engine.now_ps()));
        let begun_ps = engine.now_ps();
        let (mut idle_ps, mut quanta) = (0, 0_u64);
        self.last_seen_ps.set(begun_ps);
        while !self.done.get() {
            engine.spend_ps(IDLE_QUANTUM_PS);
            idle_ps += IDLE_QUANTUM_PS;
            // Frames may be a day apart, or not come at all.
            quanta += 1;
            if quanta % QUANTA_TO_ASK == 0 {
                self.ask_to_carry_on();
                // Errors on the bus need no service, and go on as long as a frame is not acknowledged.
                self.bench.add_to(self.account);
            }
            if engine.now_ps() - self.last_seen_ps.get() > stall_ps {
                self.done.set(true);
            }
        }
        let mut ran = self.ran.borrow_mut();
        (ran.idle_ps, ran.elapsed_ps) = (idle_ps, engine.now_ps() - begun_ps);
        drop(ran);
        engine.spend_ps(last_ps);
    }
}

/// Echoes until all is done.
pub(super) fn run<C: Controller + ?Sized>(
    bench: &Bench<'_>,
    who: Who,
    frames: u64,
    account: &RefCell<Account>,
    driver: &mut Driver<'_, C>,
    carry_on: &mut dyn FnMut(u64) -> bool,
) -> Result<RunFigures, CanError> {
    let echo = Echo {
        bench,
        account,
        driver: RefCell::new(driver),
        carry_on: RefCell::new(carry_on),
        ran: RefCell::default(),
        wanted: frames,
        received: Cell::new(0),
        handled: Cell::new(0),
        last_seen_ps: Cell::new(0),
        done: Cell::new(false),
        failed: Cell::new(None),
    };
    let (board, engine) = (bench.board, bench.board.engine());
    let idle = Thread::new("idle", || echo.idle()).on(0, 0);
    let (there, back) = (Socket::default(), Socket::default());
    board.start_selections();
    match who {
        Who::HardInterrupt => {
            let handler = Thread::new("handler", || echo.handler()).interrupt(0);
            engine.run(vec![idle, handler]);
        }
        Who::Process => {
            let process = || echo.process(&|driver, frame| echo.echo_at_once(driver, frame));
            engine.run(vec![idle, Thread::new("process", process).on(0, SERVICE)]);
        }
        Who::Sockets => {
            let pass_on = |_: &mut Driver<'_, C>, frame| {
                there.send(board, frame);
                Ok(())
            };
            let receiver = Thread::new("receiver", || echo.process(&pass_on)).on(0, SERVICE);
            let sender = Thread::new("sender", || echo.sender(&back)).on(0, SERVICE);
            let other = || {
                while let Some(frame) = there.receive(board, bench.stall_ps) {
                    back.send(board, frame);
                }
            };
            let other = Thread::new("other process", other).on(0, OTHER);
            engine.run(vec![idle, receiver, sender, other]);
        }
    }
    match echo.failed.get() {
        Some(error) => Err(error),
        None => Ok(echo.ran.into_inner()),
    }
}
