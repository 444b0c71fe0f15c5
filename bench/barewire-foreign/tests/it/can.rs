//! Foreign CAN drivers on the simulated chips, and on one CAN bus with ours: each receives every frame
//! that the other sends.
//!
//! Both chips are on one board and so on one SPI bus too. The frames are also compared with the CAN
//! bus's own records, so that no test relies on a driver's report alone. Where a foreign driver breaks
//! its chip's data sheet, a test says so and shows it.

#[path = "can/mcp2517.rs"]
mod mcp2517_crate;
#[path = "can/mcp25xx.rs"]
mod mcp25xx_crate;

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::chip::mcp251xfd::{
    BitRate, Config, ExtendedId, Found, Frame, Id, Mcp251xfd, Oscillator, Received, StandardId,
};
use barewire::hal::HalDevice;
use barewire::regmap::OnDevice;
use barewire::spi::Settings;
use barewire_sim::bring_up::{AnyController, Charged, bus};
use barewire_sim::chip::{Chip, Ps};
use barewire_sim::model::can::{BitTimes, CanBus, CanFrame};
use barewire_sim::{Board, BoardOptions, BoardSpec, SimTimer};

type SimBus = Bus<Charged<AnyController>>;
type SimHalDevice<'b> = HalDevice<'b, Charged<AnyController>>;
type Ours<'b> = Mcp251xfd<OnDevice<'b, Charged<AnyController>, 6>, SimTimer>;

const MS: Ps = 1_000_000_000;
/// Where the board has its CAN controller: our driver's.
const OUR_CS: u8 = 2;
/// The foreign driver's chip stands in the flash's place.
const FOREIGN_CS: u8 = 0;

/// A board with two CAN controllers on one CAN bus.
struct Rig<C> {
    board: Board,
    can: CanBus,
    foreign: Rc<RefCell<C>>,
    spi: SimBus,
}

impl<C: Chip + 'static> Rig<C> {
    fn new(nominal_bps: u32, make: impl FnOnce(&Board, &CanBus) -> C) -> Self {
        let board =
            Board::new(BoardSpec::find("imx8mp").expect("a board"), BoardOptions::default());
        let can = CanBus::new(BitTimes::from_rates(nominal_bps, 2_000_000));
        board.attach_can(&can, None).expect("the board has one");
        let foreign = Rc::new(RefCell::new(make(&board, &can)));
        assert!(board.attach(FOREIGN_CS, foreign.clone()));
        let spi = bus(&board);
        Self { board, can, foreign, spi }
    }

    /// The foreign driver's device, with the times its chip's data sheet asks.
    fn device(&self, speed_hz: u32) -> SimHalDevice<'_> {
        let limits = self.foreign.borrow().limits();
        let ns = |ns: u64| u32::try_from(ns).expect("a data sheet's time");
        let settings = Settings {
            cs_setup_ns: ns(limits.cs_setup_ns),
            cs_hold_ns: ns(limits.cs_hold_ns),
            cs_inactive_ns: ns(limits.cs_inactive_ns),
            ..Settings::new(FOREIGN_CS, speed_hz)
        };
        HalDevice::new(self.spi.device(&settings).expect("opens"))
    }

    /// Our driver on its chip, on the bus.
    fn ours(&self, config: Config) -> Ours<'_> {
        let device = self.spi.device(&Settings::new(OUR_CS, 16_000_000)).expect("opens");
        let mut driver = Mcp251xfd::new(device, self.board.timer(), config).expect("proves itself");
        driver.start().expect("joins");
        driver
    }

    fn pass(&self, ps: Ps) {
        self.board.engine().sleep_until(self.board.engine().now_ps() + ps);
        self.can.catch_up(self.board.engine().now_ps());
    }

    /// The frames on the CAN bus since the last call. Asserts that every one was transmitted whole.
    fn on_the_wire(&self) -> Vec<CanFrame> {
        let records = self.can.take_records();
        assert!(records.iter().all(|record| record.is_taken()), "{records:?}");
        records.iter().map(|record| record.frame).collect()
    }

    /// The rules of the wire that were broken, but for `known` ones of the foreign driver.
    fn assert_no_violations_but(&self, known: impl Fn(&str) -> bool) {
        let violations = self.board.violations();
        let new: Vec<_> = violations
            .iter()
            .filter(|violation| violation.cs != Some(FOREIGN_CS) || !known(&violation.detail))
            .collect();
        assert!(new.is_empty(), "{:#?}", &new[..new.len().min(5)]);
    }
}

/// Everything our driver has received.
fn received(ours: &mut Ours<'_>) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut received = Received::EMPTY;
    loop {
        let found = ours.service(&mut received).expect("goes through");
        if found.is_nothing() {
            return frames;
        }
        assert_eq!(found, Found { frame: true, ..Found::default() });
        frames.push(received.frame);
    }
}

fn classic(nominal_bps: u32) -> Config {
    Config::classic(Oscillator::new(40_000_000), BitRate::new(nominal_bps))
}

fn standard(id: u16) -> Id {
    StandardId::new(id).expect("11 bits").into()
}

fn extended(id: u32) -> Id {
    ExtendedId::new(id).expect("29 bits").into()
}

/// Bytes that differ from each other and from frame to frame.
fn bytes(seed: u8, len: usize) -> Vec<u8> {
    (0..len).map(|place| (place as u8).wrapping_mul(37).wrapping_add(seed)).collect()
}

/// Identifiers at both ends of both kinds.
fn ids() -> [Id; 7] {
    [
        standard(0),
        standard(0x123),
        standard(0x7ff),
        extended(0),
        extended(0x5),
        extended(0x1234_5678),
        extended(0x1fff_ffff),
    ]
}

/// Data frames of each classic length under each identifier.
fn classic_data() -> Vec<Frame> {
    let frames = ids().into_iter().enumerate().flat_map(|(index, id)| {
        (0..=8).map(move |len| {
            Frame::classic(id, &bytes((16 * index + len) as u8, len)).expect("a frame")
        })
    });
    frames.collect()
}

/// Converts the frame to one of the simulated bus.
fn as_on_wire(frame: &Frame) -> CanFrame {
    let (id, is_extended) = match frame.id() {
        Id::Standard(id) => (u32::from(id.as_raw()), false),
        Id::Extended(id) => (id.as_raw(), true),
    };
    let made = match (frame.is_remote(), frame.is_fd()) {
        (true, _) => CanFrame::remote(id, frame.dlc()),
        (false, true) => CanFrame::fd(id, frame.data(), frame.has_bit_rate_switch()),
        (false, false) => CanFrame::new(id, frame.data()),
    };
    if is_extended { made.extended() } else { made }
}

fn all_on_wire(frames: &[Frame]) -> Vec<CanFrame> {
    frames.iter().map(as_on_wire).collect()
}
