//! Foreign drivers on the simulated board: the chip is what its datasheet says, and no checker of
//! the wire complains.

mod adc;
mod async_storage;
mod display;
mod flash;
mod oled;
mod words16;

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use barewire::bus::Bus;
use barewire::hal::HalDevice;
use barewire::spi::Settings;
use barewire_sim::board::shipped::kinds_without;
use barewire_sim::bring_up::{AnyController, Charged, await_woken, bus, handled_bus, run_handled};
use barewire_sim::chip::Chip;
use barewire_sim::engine::Thread;
use barewire_sim::{Board, BoardOptions, BoardSpec};
use embedded_hal::digital::{ErrorType, OutputPin};

/// A board for each controller; chip select 0 of each is a GPIO.
const BOARDS: [&str; 8] =
    ["beaglebone", "highbank", "imx8mp", "rpi3", "rpi5", "sama5d36", "unleashed", "zynq"];

type SimBus = Bus<Charged<AnyController>>;

/// Above this a transfer waits by interrupt, where there is a handler.
const HANDLED_ABOVE_NS: u32 = 1_000;

/// A board with one chip behind its GPIO chip select.
struct Bench<C> {
    board: Board,
    chip: Rc<RefCell<C>>,
    bus: SimBus,
}

impl<C: Chip + 'static> Bench<C> {
    fn new(board: &str, chip: C) -> Self {
        let spec = BoardSpec::find(board).expect("a board");
        let board = Board::new(spec, BoardOptions::default());
        let chip = Rc::new(RefCell::new(chip));
        assert!(board.attach(0, chip.clone()));
        let bus = bus(&board);
        Self { board, chip, bus }
    }

    /// One whose transfers of more than a byte or two are left to the bus's interrupt handler.
    fn handled(board: &str, chip: C) -> Self {
        let bench = Self::new(board, chip);
        Self { bus: handled_bus(&bench.board, HANDLED_ABOVE_NS), ..bench }
    }

    /// Runs `future` on the processor that the handler interrupts. Returns how often it was pending.
    fn await_handled<T>(&self, future: impl Future<Output = T>) -> (T, u64) {
        let ended = Cell::new(None);
        let app = Thread::new("app", || ended.set(Some(await_woken(&self.board, future))));
        let handled = run_handled(&self.board, &self.bus, vec![app.on(0, 1)]);
        assert_eq!(handled.in_vain, 0, "no interrupt without a flight");
        ended.into_inner().expect("it ended")
    }

    /// The chip's device at `speed_hz`, with the times its datasheet asks.
    fn device(&self, speed_hz: u32) -> HalDevice<'_, Charged<AnyController>> {
        let limits = self.chip.borrow().limits();
        let ns = |ns: u64| u32::try_from(ns).expect("a datasheet's time");
        let settings = Settings {
            cs_setup_ns: ns(limits.cs_setup_ns),
            cs_hold_ns: ns(limits.cs_hold_ns),
            cs_inactive_ns: ns(limits.cs_inactive_ns),
            ..Settings::new(0, speed_hz)
        };
        HalDevice::new(self.bus.device(&settings).expect("opens"))
    }

    fn assert_no_violations(&self) {
        let violations = self.board.violations();
        assert!(violations.is_empty(), "{:#?}", &violations[..violations.len().min(5)]);
    }
}

/// A pin that is wired to where the driver wants it.
#[derive(Debug)]
struct JumperedBoard;

impl ErrorType for JumperedBoard {
    type Error = Infallible;
}

impl OutputPin for JumperedBoard {
    fn set_low(&mut self) -> Result<(), Infallible> {
        panic!("the board wires the pin high");
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
    }
}

#[test]
fn the_boards_have_every_kind_of_controller() {
    assert_eq!(kinds_without(&BOARDS), [""; 0], "add a board to BOARDS");
}
