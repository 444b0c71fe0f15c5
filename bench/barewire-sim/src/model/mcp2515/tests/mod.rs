//! The chip accessed byte by byte, without a driver.

mod errors;
mod frames;
mod modes;
mod spi;

use super::*;
use crate::chip::bytewise::selection;
use crate::model::can::{BitTimes, CanFrame, Script};

/// A bit of the bus at 250 kbit/s.
const BIT: Ps = 4_000_000;
const MS: Ps = 1_000_000_000;
/// 10 MHz.
const PERIOD: Ps = 100_000;
const BYTE: Ps = 8 * PERIOD;

/// CNF3, CNF2, CNF1: 16 quanta of 250 ns from 16 MHz: 1 + 2 + 7 + 6, SJW 2.
const BITS_250K: [u8; 3] = [0x05, 0xb1, 0x41];

const NORMAL: u8 = 0x00;
const LOOPBACK: u8 = 0x40;
const LISTEN: u8 = 0x60;
const CONFIGURATION: u8 = 0x80;

/// A chip on a bus, and another node.
struct Bench {
    bus: CanBus,
    chip: Mcp2515,
    far: Rc<RefCell<Script>>,
    at: Ps,
}

impl Bench {
    /// In Configuration mode, as after power-up.
    fn new() -> Self {
        let bus = CanBus::new(BitTimes::from_rates(250_000, 2_000_000));
        let chip = Mcp2515::new(&bus, OSCILLATOR_HZ);
        let far = Rc::new(RefCell::new(Script::new("far", [])));
        bus.attach(far.clone());
        Self { bus, chip, far, at: MS }
    }

    /// At 250 kbit/s; both receive buffers accept all frames, the first rolls over; Normal mode.
    fn running() -> Self {
        let mut bench = Self::new();
        bench.write(0x28, &BITS_250K);
        bench.write(0x60, &[0x64]);
        bench.write(0x70, &[0x60]);
        bench.mode(NORMAL);
        bench
    }

    /// Requests a mode and lets enough time pass for it.
    fn mode(&mut self, mode: u8) {
        self.write(0x0f, &[mode]);
        self.pass(20 * BIT);
        assert_eq!(self.read(0x0e, 1)[0] & 0xe0, mode, "OPMOD");
    }

    fn pass(&mut self, ps: Ps) {
        self.at += ps;
        self.chip.catch_up(self.at);
    }

    /// One selection. Sends `bytes` and returns as many.
    fn spi(&mut self, bytes: &[u8]) -> Vec<u8> {
        selection(&mut self.chip, &mut self.at, bytes, PERIOD, 100_000)
    }

    fn write(&mut self, address: u8, data: &[u8]) {
        self.spi(&[&[0x02, address], data].concat());
    }

    fn read(&mut self, address: u8, length: usize) -> Vec<u8> {
        let mut bytes = vec![0x03, address];
        bytes.resize(2 + length, 0);
        self.spi(&bytes).split_off(2)
    }

    fn modify(&mut self, address: u8, mask: u8, data: u8) {
        self.spi(&[0x05, address, mask, data]);
    }

    /// An instruction of one byte and its answer.
    fn ask(&mut self, code: u8) -> u8 {
        self.spi(&[code, 0])[1]
    }

    /// Writes a standard identifier and data to a transmit buffer, then RTS.
    fn send(&mut self, index: u8, id: u16, data: &[u8]) {
        let header = [(id >> 3) as u8, (id << 5) as u8, 0, 0, data.len() as u8];
        self.spi(&[&[0x40 + 2 * index], &header[..], data].concat());
        self.spi(&[0x80 | 1 << index]);
    }

    /// The other node now sends these frames.
    fn far_sends(&mut self, frames: impl IntoIterator<Item = CanFrame>) {
        frames.into_iter().for_each(|frame| self.far.borrow_mut().push(self.at, frame));
        self.bus.changed();
    }

    fn far_heard(&self) -> Vec<CanFrame> {
        self.far.borrow().received_frames().iter().map(|(_, frame)| *frame).collect()
    }

    fn complaints(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.chip.take_complaint()).collect()
    }

    fn assert_one_complaint(&mut self, part: &str) {
        let complaints = self.complaints();
        assert!(complaints.len() == 1 && complaints[0].contains(part), "{complaints:?}");
    }
}
