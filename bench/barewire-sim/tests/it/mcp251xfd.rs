//! The MCP2518FD's driver against the simulated chip, over the bus path and the ECSPI driver.

mod echo;
mod faults;
mod frames;
mod scripts;

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::chip::mcp251xfd::{
    BitRate, CanError, Config, Found, Frame, Mcp251xfd, Oscillator, Received, StandardId,
};
use barewire::regmap::OnDevice;
use barewire::spi::Settings;
use barewire_sim::bring_up::{AnyController, Charged};
use barewire_sim::chip::Ps;
use barewire_sim::model::can::{BitTimes, CanBus, CanFrame, Script};
use barewire_sim::model::mcp2518fd::{ChipFaults, Mcp2518Fd, Options};
use barewire_sim::{Board, IntLine, SimTimer};

type SimBus = Bus<Charged<AnyController>>;
type Driver<'b> = Mcp251xfd<OnDevice<'b, Charged<AnyController>, 6>, SimTimer>;

/// Where the board has its CAN controller.
const CS: u8 = 2;
const SPI_HZ: u32 = 16_000_000;
const OSCILLATOR: Oscillator = Oscillator::new(40_000_000);
const MS: Ps = 1_000_000_000;
/// At 250 kbit/s.
const BIT: Ps = 4_000_000;

fn classic() -> Config {
    Config::classic(OSCILLATOR, BitRate::new(250_000))
}

fn fd() -> Config {
    Config::fd(OSCILLATOR, BitRate::new(250_000), BitRate::new(2_000_000))
}

/// A board with the chip, and a node at the other end of its CAN bus.
struct Rig {
    board: Board,
    can: CanBus,
    chip: Rc<RefCell<Mcp2518Fd>>,
    line: IntLine,
    far: Rc<RefCell<Script>>,
}

impl Rig {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Options)) -> Self {
        let rig = Self::alone(change);
        rig.can.attach(rig.far.clone());
        rig
    }

    /// A rig whose chip is the only node of the CAN bus.
    fn alone(change: impl FnOnce(&mut Options)) -> Self {
        let board = crate::board("imx8mp");
        let can = CanBus::new(BitTimes::from_rates(250_000, 2_000_000));
        let mut options = board.can_options().expect("the board has one");
        change(&mut options);
        let (chip, line) = board.attach_can(&can, Some(options)).expect("the board has one");
        let far = Rc::new(RefCell::new(Script::new("far", [])));
        Self { board, can, chip, line, far }
    }

    fn bus(&self) -> SimBus {
        barewire_sim::bring_up::bus(&self.board)
    }

    fn driver<'b>(&self, spi: &'b SimBus, config: Config) -> Result<Driver<'b>, CanError> {
        let device = spi.device(&Settings::new(CS, SPI_HZ)).expect("opens");
        Mcp251xfd::new(device, self.board.timer(), config)
    }

    fn started<'b>(&self, spi: &'b SimBus, config: Config) -> Driver<'b> {
        let mut driver = self.driver(spi, config).expect("proves itself");
        driver.start().expect("joins");
        driver
    }

    fn set_faults(&self, faults: ChipFaults) {
        self.chip.borrow_mut().set_faults(faults);
    }

    /// The far node sends these, from now on.
    fn send(&self, frames: impl IntoIterator<Item = CanFrame>) {
        let now = self.board.engine().now_ps();
        frames.into_iter().for_each(|frame| self.far.borrow_mut().push(now, frame));
        self.can.changed();
    }

    fn pass(&self, ps: Ps) {
        self.board.engine().sleep_until(self.board.engine().now_ps() + ps);
        self.can.catch_up(self.board.engine().now_ps());
    }

    /// All events that the interrupt reports in that time.
    fn serve(&self, driver: &mut Driver<'_>, ps: Ps) -> Vec<(Received, Found)> {
        let mut told = Vec::new();
        let end = self.board.engine().now_ps() + ps;
        while let Some(left) = end.checked_sub(self.board.engine().now_ps()) {
            if !self.line.wait(Some(left)) {
                break;
            }
            let served = driver.serve(
                || self.line.is_high(),
                |_, received, found| {
                    told.push((*received, *found));
                    Ok(())
                },
            );
            served.expect("goes through");
        }
        told
    }

    /// Serves the chip and returns the frames; any other event fails the test.
    fn frames(&self, driver: &mut Driver<'_>, ps: Ps) -> Vec<Received> {
        let told = self.serve(driver, ps).into_iter();
        told.map(|(received, found)| {
            assert_eq!(found, Found { frame: true, ..Found::default() });
            received
        })
        .collect()
    }

    /// Asserts that the driver works again: it receives one frame and sends one.
    fn works(&self, driver: &mut Driver<'_>) {
        self.can.catch_up(self.board.engine().now_ps());
        self.send([CanFrame::new(0x123, &[1, 2, 3])]);
        let told = self.serve(driver, 3 * MS);
        let frames: Vec<_> = told.iter().filter(|(_, found)| found.frame).collect();
        assert_eq!(frames.len(), 1, "{told:?}");
        assert_eq!(frames[0].0.frame, frame(0x123, &[1, 2, 3]));
        let before = self.far.borrow().received_frames().len();
        driver.transmit(&frame(0x321, &[3, 2, 1])).expect("goes out");
        self.pass(3 * MS);
        let received = self.far.borrow().received_frames()[before..].to_vec();
        let received: Vec<_> = received.iter().map(|(_, frame)| *frame).collect();
        assert_eq!(received, [CanFrame::new(0x321, &[3, 2, 1])]);
    }

    fn assert_clean(&self) {
        assert!(self.board.violations().is_empty(), "{:#?}", self.board.violations());
    }
}

fn standard(id: u16) -> StandardId {
    StandardId::new(id).expect("11 bits")
}

fn frame(id: u16, data: &[u8]) -> Frame {
    Frame::classic(standard(id), data).expect("a frame")
}
