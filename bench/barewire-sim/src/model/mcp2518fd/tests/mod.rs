//! The chip accessed byte by byte, without a driver.

mod errors;
mod fifos;
mod modes;
mod pins;
mod spi;

use super::crc16::Crc16;
use super::*;
use crate::chip::bytewise::selection;
use crate::model::can::{BitTimes, Record, Script};

/// A bit of the bus at 250 kbit/s.
const BIT: Ps = 4_000_000;
/// 16 MHz.
const PERIOD: Ps = 62_500;
/// The duration of a byte.
const BYTE: Ps = 8 * PERIOD;

/// 250 kbit/s and 2 Mbit/s from 40 MHz: 160 and 20 quanta of one clock, sample points at 80 %.
const NBTCFG: u32 = 126 << 16 | 31 << 8 | 31;
const DBTCFG: u32 = 14 << 16 | 3 << 8 | 3;
/// The highest byte of C1CON: REQOP.
const NORMAL: u8 = 0;
const LOOPBACK: u8 = 2;
const CONFIGURATION: u8 = 4;

/// A chip on a bus, accessed byte by byte.
struct Bench {
    bus: CanBus,
    chip: Mcp2518Fd,
    at: Ps,
}

impl Bench {
    fn new(options: Options) -> Self {
        let bus = CanBus::new(BitTimes::from_rates(250_000, 2_000_000));
        let chip = Mcp2518Fd::new(&bus, options);
        // Not at time zero: some time has passed since power-up.
        Self { bus, chip, at: 1_000_000_000 }
    }

    /// A running chip in Normal mode, with another node that acknowledges. FIFO 1 holds `rx`
    /// received frames, and one filter accepts all frames for it. FIFO 2 holds `tx` messages. All
    /// have 8 bytes. The queue and the event FIFO hold 4 each.
    fn running(rx: u32, tx: u32) -> Self {
        let mut bench = Self::configured(Options::default(), rx, tx);
        bench.mode(NORMAL);
        bench
    }

    /// Beside a listener, still in Configuration mode.
    fn configured(options: Options, rx: u32, tx: u32) -> Self {
        let mut bench = Self::new(options);
        bench.bus.add_listener();
        bench.configure(rx, tx);
        bench
    }

    fn configure(&mut self, rx: u32, tx: u32) {
        self.write32(0x004, NBTCFG);
        self.write32(0x008, DBTCFG);
        self.write32(0x040, 3 << 24 | 1 << 5 | 1);
        self.write32(0x050, 3 << 24 | 3 << 21);
        self.write32(0x05c, (rx - 1) << 24 | 1 << 5 | 1 << 3 | 1);
        self.write32(0x068, (tx - 1) << 24 | 3 << 21 | 1 << 7);
        self.write32(0x1d0, 0x81);
        // The time base, a tick a clock.
        self.write32(0x014, 1 << 16);
    }

    /// Requests a mode and lets enough time pass for it.
    fn mode(&mut self, mode: u8) {
        self.write(0x003, &[mode]);
        self.pass(20 * BIT);
        assert_eq!(self.read32(0x000) >> 21 & 7, u32::from(mode), "OPMOD");
    }

    fn pass(&mut self, ps: Ps) {
        self.at += ps;
        self.chip.catch_up(self.at);
    }

    /// One selection. Sends `bytes` and returns as many.
    fn spi(&mut self, bytes: &[u8]) -> Vec<u8> {
        selection(&mut self.chip, &mut self.at, bytes, PERIOD, 500_000)
    }

    fn write(&mut self, address: u16, data: &[u8]) {
        let mut bytes = vec![0x20 | (address >> 8) as u8, address as u8];
        bytes.extend(data);
        self.spi(&bytes);
    }

    fn read(&mut self, address: u16, length: usize) -> Vec<u8> {
        let mut bytes = vec![0x30 | (address >> 8) as u8, address as u8];
        bytes.resize(2 + length, 0);
        self.spi(&bytes).split_off(2)
    }

    fn write32(&mut self, address: u16, value: u32) {
        self.write(address, &value.to_le_bytes());
    }

    fn read32(&mut self, address: u16) -> u32 {
        u32::from_le_bytes(self.read(address, 4).try_into().unwrap())
    }

    /// A READ_CRC of `units` bytes of registers or words of RAM. Returns the data, and whether the
    /// CRC matches.
    fn read_crc(&mut self, address: u16, units: u8) -> (Vec<u8>, bool) {
        let bytes =
            usize::from(units) * if address & 0xc00 == 0 || address >= 0xc00 { 1 } else { 4 };
        let mut out = vec![0xb0 | (address >> 8) as u8, address as u8, units];
        out.resize(3 + bytes + 2, 0);
        let back = self.spi(&out);
        let (data, crc) = back[3..].split_at(bytes);
        let summed = [&out[..3], data].concat();
        (data.to_vec(), Crc16::of(&summed).to_be_bytes() == crc)
    }

    /// Writes a message to FIFO `fifo` (0 is the queue) at its user address, then UINC and TXREQ.
    fn send(&mut self, fifo: u16, id: u32, data: &[u8]) {
        self.put(fifo, id, data.len() as u32, data);
        self.write(0x051 + 12 * fifo, &[3]);
    }

    /// Writes a message to the next free object of FIFO `fifo`.
    fn put(&mut self, fifo: u16, id: u32, control: u32, data: &[u8]) {
        let place = 0x400 + self.read32(0x058 + 12 * fifo) as u16;
        let mut object = [id.to_le_bytes(), control.to_le_bytes()].concat();
        object.extend(data);
        object.resize(object.len().next_multiple_of(4), 0);
        self.write(place, &object);
    }

    /// Reads the next object of FIFO `fifo`, then UINC.
    fn take(&mut self, fifo: u16, words: usize) -> Vec<u32> {
        let place = 0x400 + self.read32(0x058 + 12 * fifo) as u16;
        let bytes = self.read(place, 4 * words);
        self.write(0x051 + 12 * fifo, &[1]);
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
        bytes.chunks(4).map(word).collect()
    }

    /// Takes an object from the event FIFO.
    fn take_event(&mut self) -> Vec<u32> {
        let place = 0x400 + self.read32(0x048) as u16;
        let bytes = self.read(place, 12);
        self.write(0x041, &[1]);
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
        bytes.chunks(4).map(word).collect()
    }

    /// Another node now sends these frames.
    fn others_send(&mut self, frames: impl IntoIterator<Item = CanFrame>) {
        let frames: Vec<_> = frames.into_iter().map(|frame| (self.at, frame)).collect();
        self.bus.add(Script::new("other", frames));
    }

    fn sent_by_chip(&self) -> Vec<Record> {
        let node = self.chip.node();
        self.bus.records().into_iter().filter(|record| record.sender == node).collect()
    }

    fn complaints(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.chip.take_complaint()).collect()
    }
}
