//! ECSPI as a kernel drives it: polled, by interrupts, or with SDMA.
//!
//! *Read first*: i.MX 6Dual/Quad reference manual, chapter ECSPI. The order of a kernel's accesses was read in Linux's
//! spi-imx; the registers are the manual's.
//!
//! # How it works
//! A transfer is one burst of up to 512 bytes: words of 32 bits, the burst's remainder in the first. Polled, the
//! processor fills the FIFO, starts the burst, and reads and refills until all words came back. By interrupts, a
//! handler does that each time the transmit FIFO is empty, and once more for the words still on the wire. With DMA, a
//! thread of its own stands for SDMA: it takes its time for each word and then raises its interrupt.
//!
//! # Not supported
//! SDMA beyond its set-up, its rate and its interrupt: no scripts, no descriptors, no memory.

use std::cell::RefCell;

use barewire::reg::Registers;
use barewire_sim::engine::Thread;
use barewire_sim::wire::Driver;
use barewire_sim::{Board, IntLine, SimRegisters};

use super::{Host, Waiting, Word, Xfer};
use crate::machine::Machine;

const RXDATA: u32 = 0x00;
const TXDATA: u32 = 0x04;
const CONREG: u32 = 0x08;
const CONFIGREG: u32 = 0x0c;
const INTREG: u32 = 0x10;
const DMAREG: u32 = 0x14;
const STATREG: u32 = 0x18;
const PERIODREG: u32 = 0x1c;

const EN: u32 = 1;
const XCH: u32 = 1 << 2;
/// CHANNEL_MODE: all channels clock.
const CLOCKS: u32 = 0xf << 4;
/// Of INTREG and STATREG: the transmit FIFO is empty.
const TE: u32 = 1;
/// Of INTREG and STATREG: a word was received.
const RR: u32 = 1 << 3;

const FIFO_WORDS: usize = 64;
/// The longest burst.
const BURST_BYTES: usize = 512;
/// A shorter transfer is not worth the DMA engine: the driver's own limit is its FIFO.
const DMA_BYTES: usize = FIFO_WORDS * 4;

/// GPIO: DR and GDIR.
const DR: u32 = 0x0;
const GDIR: u32 = 0x4;

/// The transfer under way.
#[derive(Default)]
struct Flight {
    words: Vec<u32>,
    sent: usize,
    received: Vec<u32>,
}

/// The driver.
pub struct Imx {
    board: Board,
    regs: RefCell<SimRegisters>,
    gpio: RefCell<SimRegisters>,
    bit: u8,
    dividers: u32,
    flight: RefCell<Flight>,
    done: Word,
    /// SDMA has something to do.
    request: IntLine,
    /// SDMA's interrupt.
    line: IntLine,
}

impl Imx {
    /// The board's ECSPI at up to `speed_hz`, with the chip select `cs` on a pin.
    ///
    /// # Panics
    /// If the board has no ECSPI, or `cs` is not on a pin.
    #[must_use]
    pub fn new(board: &Board, cs: u8, speed_hz: u64) -> Self {
        let Driver::Gpio { block, bit } = board.spec().cs[usize::from(cs)].driver else {
            panic!("chip select {cs} of {} is the controller's own", board.spec().name)
        };
        let mut gpio = board.gpio(block).expect("the block of the chip select");
        let (level, direction) = (gpio.read(DR) | 1 << bit, gpio.read(GDIR) | 1 << bit);
        gpio.write(DR, level);
        gpio.write(GDIR, direction);
        let host = Self {
            board: board.clone(),
            regs: RefCell::new(board.controller()),
            gpio: RefCell::new(gpio),
            bit,
            dividers: divided(board.profile().reference_hz.value, speed_hz).1,
            flight: RefCell::default(),
            done: Word::default(),
            request: board.line(),
            line: board.line(),
        };
        host.regs.borrow_mut().write(CONREG, EN | CLOCKS);
        host
    }

    fn read(&self, offset: u32) -> u32 {
        let mut regs = self.regs.borrow().clone();
        regs.read(offset)
    }

    fn write(&self, offset: u32, value: u32) {
        let mut regs = self.regs.borrow().clone();
        regs.write(offset, value);
    }

    fn control(&self, bytes: usize) -> u32 {
        EN | CLOCKS | self.dividers | (bytes as u32 * 8 - 1) << 20
    }

    /// Sends words while the FIFO has room.
    fn push(&self) {
        loop {
            let next = {
                let flight = self.flight.borrow();
                let room = flight.sent - flight.received.len() < FIFO_WORDS;
                flight.words.get(flight.sent).copied().filter(|_| room)
            };
            let Some(word) = next else { break };
            self.write(TXDATA, word);
            self.flight.borrow_mut().sent += 1;
        }
    }

    fn is_over(&self) -> bool {
        let flight = self.flight.borrow();
        flight.received.len() == flight.words.len()
    }

    /// Reads one word, if there is one.
    fn pull(&self) -> bool {
        let there = self.read(STATREG) & RR != 0;
        if there {
            let word = self.read(RXDATA);
            self.flight.borrow_mut().received.push(word);
        }
        there
    }

    fn start(&self, bytes: usize) {
        let control = self.read(CONREG);
        debug_assert_eq!(control, self.control(bytes), "the set-up stands");
        self.write(CONREG, control | XCH);
    }

    /// The controller's handler.
    fn handle(&self, machine: &Machine) {
        machine.charge("interrupt entry", &["interrupt-entry"]);
        let over = machine.step("handler", || {
            while !self.is_over() && self.pull() {}
            // What is sent now empties the FIFO once more.
            let all_sent = {
                let flight = self.flight.borrow();
                flight.sent == flight.words.len()
            };
            if !all_sent {
                self.push();
                return false;
            }
            if !self.is_over() {
                self.write(INTREG, RR);
                return false;
            }
            self.write(INTREG, 0);
            true
        });
        if over {
            machine.waking("complete", || self.done.raise(self.board.engine()));
        }
    }

    /// The threads that the driver needs beside its callers: the handlers on processor 0, and SDMA.
    pub fn threads<'a>(&'a self, machine: &'a Machine) -> Vec<Thread<'a>> {
        let handler = move || {
            while self.board.wait_interrupt(None) {
                self.handle(machine);
            }
        };
        let dma_handler = move || {
            while self.line.wait(None) {
                self.line.lower();
                machine.charge("interrupt entry", &["interrupt-entry"]);
                machine.charge("tasklet", &["tasklet"]);
                machine.waking("complete", || self.done.raise(self.board.engine()));
            }
        };
        let sdma = move || {
            while self.request.wait(None) {
                self.request.lower();
                self.move_words(machine);
            }
        };
        vec![
            Thread::new("spi interrupt", handler).interrupt(0),
            Thread::new("dma interrupt", dma_handler).interrupt(0),
            Thread::new("SDMA", sdma).interrupt(9),
        ]
    }

    /// SDMA moves the flight's words, both ways.
    fn move_words(&self, machine: &Machine) {
        let engine = self.board.engine();
        let word_ps = (machine.costs().get("sdma-word") * 1e3) as u64;
        machine.wait("DMA", false, || {
            let mut started = false;
            while !self.is_over() {
                engine.spend_ps(word_ps);
                let all = {
                    let (next, room) = {
                        let flight = self.flight.borrow();
                        let room = flight.sent - flight.received.len() < FIFO_WORDS;
                        (flight.words.get(flight.sent).copied(), room)
                    };
                    // A FIFO that is full makes no request.
                    if let Some(word) = next.filter(|_| room) {
                        self.write(TXDATA, word);
                        self.flight.borrow_mut().sent += 1;
                    }
                    next.is_none()
                };
                if !started {
                    started = true;
                    let control = self.read(CONREG);
                    self.write(CONREG, control | XCH);
                }
                self.pull();
                if all {
                    while !self.is_over() && self.pull() {}
                }
            }
            self.line.raise();
        });
    }
}

/// The fastest clock up to `speed_hz`, and the bits of CONREG for it: the reference divided by 1 to 16 and then by a power
/// of 2.
fn divided(reference_hz: u64, speed_hz: u64) -> (u64, u32) {
    let all = (0..16u32).flat_map(|post| (0..16u32).map(move |pre| (post, pre)));
    let hz = |&(post, pre): &(u32, u32)| (reference_hz / u64::from(pre + 1)) >> post;
    let pair = all.filter(|pair| hz(pair) <= speed_hz).max_by_key(hz).unwrap_or((15, 15));
    (hz(&pair), pair.0 << 8 | pair.1 << 12)
}

/// The clock that the board's ECSPI makes of `speed_hz`.
pub(crate) fn clock_hz(reference_hz: u64, speed_hz: u64) -> u64 {
    divided(reference_hz, speed_hz).0
}

/// Bytes as words, the remainder in the first.
fn words(bytes: &[u8]) -> Vec<u32> {
    let first = bytes.len() % 4;
    let word = |chunk: &[u8]| chunk.iter().fold(0, |word, &byte| word << 8 | u32::from(byte));
    let (head, rest) = bytes.split_at(first);
    let head = (!head.is_empty()).then(|| word(head));
    head.into_iter().chain(rest.chunks(4).map(word)).collect()
}

/// Words as `length` bytes.
fn bytes(words: &[u32], length: usize) -> Vec<u8> {
    let first = length % 4;
    let mut bytes = Vec::with_capacity(length);
    for (index, word) in words.iter().enumerate() {
        let taken = if index == 0 && first != 0 { first } else { 4 };
        bytes.extend(&word.to_be_bytes()[4 - taken..]);
    }
    bytes
}

impl Host for Imx {
    fn prepare(&self, machine: &Machine) {
        machine.charge("driver's preparation", &["prepare-imx"]);
        self.write(CONREG, EN | CLOCKS);
        let config = self.read(CONFIGREG);
        self.write(CONFIGREG, config);
        self.write(PERIODREG, 0);
    }

    fn unprepare(&self, machine: &Machine) {
        machine.charge("driver's end of a message", &["unprepare-imx"]);
    }

    fn set_cs(&self, _machine: &Machine, active: bool) {
        let mut gpio = self.gpio.borrow().clone();
        let level = gpio.read(DR);
        let bit = 1 << self.bit;
        gpio.write(DR, if active { level & !bit } else { level | bit });
    }

    fn transfer(&self, machine: &Machine, waiting: Waiting, xfer: &mut Xfer) {
        let (engine, length) = (self.board.engine(), xfer.tx.len());
        assert!((1..=BURST_BYTES).contains(&length), "one burst has 1 to 512 bytes");
        machine.charge("driver's set-up", &["driver-imx"]);
        machine.step("set up", || {
            self.write(CONREG, self.control(length));
            self.write(DMAREG, 0);
            *self.flight.borrow_mut() = Flight { words: words(&xfer.tx), ..Flight::default() };
        });
        let dma = waiting == Waiting::Dma && length >= DMA_BYTES;
        if dma {
            machine.charge("set up DMA", &["dma-setup"]);
            self.request.raise();
            machine.wait("DMA, its interrupt and wake-up", false, || self.done.wait(engine));
        } else if waiting == Waiting::Polling {
            machine.step("fill FIFO", || {
                self.push();
                self.start(length);
            });
            machine.wait("poll", true, || {
                while !self.is_over() {
                    if self.pull() {
                        self.push();
                    }
                }
            });
        } else {
            machine.step("fill FIFO", || {
                self.push();
                self.start(length);
                self.write(INTREG, TE);
            });
            machine.wait("interrupt, wake-up and switch", false, || self.done.wait(engine));
            machine.charge("completion", &["completion"]);
        }
        xfer.rx = bytes(&self.flight.borrow().received, length);
        if length > 64 {
            machine.charge_times("copy", length as f64, &["copy"]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_bytes_are_inverse() {
        for length in 1..=12_u8 {
            let sent: Vec<u8> = (1..=length).collect();
            assert_eq!(bytes(&words(&sent), sent.len()), sent);
        }
        assert_eq!(words(&[1, 2, 3, 4, 5]), [1, 0x0203_0405]);
    }

    #[test]
    fn the_clock_is_the_fastest_that_is_not_too_fast() {
        let made = |reference_hz: u64, speed_hz| {
            let (hz, bits) = divided(reference_hz, speed_hz);
            let by_bits = (reference_hz / u64::from((bits >> 12 & 0xf) + 1)) >> (bits >> 8 & 0xf);
            assert_eq!(by_bits, hz);
            by_bits
        };
        assert_eq!(
            [made(80_000_000, 17_000_000), made(60_000_000, 30_000_000)],
            [16_000_000, 30_000_000]
        );
        assert_eq!([made(60_000_000, 29_999_999), made(60_000_000, 1_000)], [20_000_000, 976]);
    }
}
