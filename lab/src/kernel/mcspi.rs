//! McSPI as Linux's spi-omap2-mcspi drives it: byte by byte, polled, or with DMA.
//!
//! *Read first*: TI, *AM335x and AMIC110 Sitara Processors Technical Reference Manual* (SPRUH73), chapter 24. The order of a
//! kernel's accesses was read in Linux's spi-omap2-mcspi; the registers are the manual's.
//!
//! # How it works
//! The driver disables the channel, writes its configuration and enables it. A transfer of fewer than 160 bytes (the driver's own
//! limit for DMA) goes through the transmit and the receive register: a byte is written when TXS is set, and read when RXS
//! is. The next byte is written after that, so the clock rests between two. The driver reads back each write to the
//! configuration and the control of the channel, since writes are posted. Chip select is FORCE of the channel, or a pin.
//!
//! # Not supported
//! Words of more than 8 bits; the FIFO, which this driver uses with DMA alone.

use std::cell::RefCell;

use barewire::reg::Registers;
use barewire_sim::chip::Ps;
use barewire_sim::engine::Thread;
use barewire_sim::wire::Driver;
use barewire_sim::{Board, SimRegisters};

use super::dma::Dma;
use super::{Host, Waiting, Xfer};
use crate::machine::Machine;

const MODULCTRL: u32 = 0x128;
/// Channel 0's registers; a channel's are `STEP` apart.
const CHCONF: u32 = 0x12c;
const CHSTAT: u32 = 0x130;
const CHCTRL: u32 = 0x134;
const TX: u32 = 0x138;
const RX: u32 = 0x13c;
const STEP: u32 = 0x14;

/// MODULCTRL: one channel, which FORCE selects for.
const SINGLE: u32 = 1;
/// CHCONF: the select line is active low.
const EPOL: u32 = 1 << 6;
/// CHCONF: words of 8 bits.
const WL_8: u32 = 7 << 7;
/// CHCONF: nothing is sent on SPIDAT\[0\].
const DPE0: u32 = 1 << 16;
const FORCE: u32 = 1 << 20;
/// CHCONF: the divisor is any number.
const CLKG: u32 = 1 << 29;
const RXS: u32 = 1;
const TXS: u32 = 1 << 1;
const EN: u32 = 1;
const DIVISOR_MAX: u64 = 4_096;

/// GPIO: the direction, and the lines that a write clears or sets.
const OE: u32 = 0x134;
const CLEARDATAOUT: u32 = 0x190;
const SETDATAOUT: u32 = 0x194;

/// The driver uses DMA from here on.
pub(crate) const DMA_BYTES: usize = 160;

/// The transfer under way.
#[derive(Default)]
struct Flight {
    tx: Vec<u8>,
    sent: usize,
    rx: Vec<u8>,
}

/// The driver.
pub struct Mcspi {
    regs: RefCell<SimRegisters>,
    /// The block and the bit of a chip select on a pin.
    pin: Option<(RefCell<SimRegisters>, u32)>,
    /// Offset of the channel's registers from channel 0's.
    channel: u32,
    conf: u32,
    ctrl: u32,
    divisor: u64,
    reference_hz: u64,
    flight: RefCell<Flight>,
    dma: Option<Dma>,
}

impl Mcspi {
    /// The board's McSPI at up to `speed_hz`, with its chip select `cs`; a DMA engine has a set-up and a time for each byte, in
    /// picoseconds.
    ///
    /// # Panics
    /// If the board has no McSPI, or `speed_hz` is 0.
    #[must_use]
    pub fn new(board: &Board, cs: u8, speed_hz: u64, dma: Option<(Ps, Ps)>) -> Self {
        let spec = board.spec();
        assert_eq!(spec.kind.name, "McSPI", "{} has another controller", spec.name);
        let reference_hz = board.profile().reference_hz.value;
        let divisor = divisor(reference_hz, speed_hz);
        let (line, pin) = match spec.cs[usize::from(cs)].driver {
            Driver::Native(line) => (line, None),
            Driver::Gpio { block, bit } => {
                let mut gpio = board.gpio(block).expect("the block of the chip select");
                gpio.write(SETDATAOUT, 1 << bit);
                let inputs = gpio.read(OE);
                gpio.write(OE, inputs & !(1 << bit));
                // Its channel is one whose own line is no chip's.
                let of_chips = |line| spec.cs.iter().any(|cs| cs.driver == Driver::Native(line));
                let line = (0..4).find(|&line| !of_chips(line)).unwrap_or(0);
                (line, Some((RefCell::new(gpio), 1 << bit)))
            }
        };
        let host = Self {
            regs: RefCell::new(board.controller()),
            pin,
            channel: u32::from(line) * STEP,
            conf: EPOL | WL_8 | DPE0 | CLKG | ((divisor - 1) as u32 & 0xf) << 2,
            ctrl: ((divisor - 1) as u32 >> 4) << 8,
            divisor,
            reference_hz,
            flight: RefCell::default(),
            dma: dma.map(|(setup_ps, byte_ps)| Dma::new(board, setup_ps, byte_ps)),
        };
        for channel in 0..4 {
            host.regs.borrow_mut().write(CHCONF + channel * STEP, EPOL | WL_8 | DPE0);
        }
        host.configure(0);
        host.regs.borrow_mut().write(MODULCTRL, SINGLE);
        host
    }

    /// The clock that is made.
    #[must_use]
    pub fn clock_hz(&self) -> u64 {
        self.reference_hz / self.divisor
    }

    fn read(&self, offset: u32) -> u32 {
        let mut regs = self.regs.borrow().clone();
        regs.read(offset + self.channel)
    }

    fn write(&self, offset: u32, value: u32) {
        let mut regs = self.regs.borrow().clone();
        regs.write(offset + self.channel, value);
    }

    /// Writes the channel's configuration, and reads it back.
    fn configure(&self, force: u32) {
        self.write(CHCONF, self.conf | force);
        self.read(CHCONF);
    }

    /// Enables or disables the channel, and reads that back.
    fn enable(&self, enabled: u32) {
        self.write(CHCTRL, self.ctrl | enabled);
        self.read(CHCTRL);
    }

    /// Moves a byte through the registers where one can be moved, and says whether all are.
    fn exchange(&self) -> bool {
        let (next, length) = {
            let flight = self.flight.borrow();
            // The next byte waits until the one before it was read.
            let next = flight.tx.get(flight.sent).filter(|_| flight.sent == flight.rx.len());
            (next.copied(), flight.tx.len())
        };
        if let Some(byte) = next {
            if self.read(CHSTAT) & TXS != 0 {
                self.write(TX, byte.into());
                self.flight.borrow_mut().sent += 1;
            }
        } else if self.read(CHSTAT) & RXS != 0 {
            let byte = self.read(RX) as u8;
            self.flight.borrow_mut().rx.push(byte);
        }
        self.flight.borrow().rx.len() == length
    }

    /// The threads of the DMA engine, where there is one.
    pub fn threads<'a>(&'a self, machine: &'a Machine) -> Vec<Thread<'a>> {
        let threads = |dma: &'a Dma| dma.threads(machine, move || self.exchange());
        self.dma.as_ref().map(threads).unwrap_or_default()
    }
}

/// The smallest divisor that is not too fast.
///
/// # Panics
/// If `speed_hz` is 0.
fn divisor(reference_hz: u64, speed_hz: u64) -> u64 {
    reference_hz.div_ceil(speed_hz).clamp(1, DIVISOR_MAX)
}

impl Host for Mcspi {
    fn prepare(&self, _machine: &Machine) {}

    fn set_cs(&self, _machine: &Machine, active: bool) {
        match &self.pin {
            Some((gpio, bit)) => {
                let mut gpio = gpio.borrow().clone();
                gpio.write(if active { CLEARDATAOUT } else { SETDATAOUT }, *bit);
            }
            None => self.configure(if active { FORCE } else { 0 }),
        }
    }

    fn transfer(&self, machine: &Machine, waiting: Waiting, xfer: &mut Xfer) {
        machine.charge("driver's set-up", &["driver-mcspi"]);
        *self.flight.borrow_mut() = Flight { tx: xfer.tx.clone(), ..Flight::default() };
        machine.step("set up", || {
            self.enable(0);
            // The block clocks under FORCE alone, whatever line selects the chip.
            self.configure(FORCE);
            self.enable(EN);
        });
        match &self.dma {
            Some(dma) if waiting == Waiting::Dma && xfer.tx.len() >= DMA_BYTES => {
                dma.transfer(machine);
            }
            _ => machine.wait("poll", true, || while !self.exchange() {}),
        }
        machine.step("end of transfer", || {
            self.enable(EN);
            self.enable(0);
        });
        xfer.rx.clone_from(&self.flight.borrow().rx);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use barewire_sim::model::echo::Echo;

    use super::*;
    use crate::cost::Costs;

    #[test]
    fn the_clock_is_the_fastest_that_is_not_too_fast() {
        let all =
            [2_000_000, 48_000_000, 100_000_000, 47_999_999, 1].map(|hz| divisor(48_000_000, hz));
        assert_eq!(all, [24, 1, 1, 2, 4_096]);
    }

    #[test]
    fn bytes_come_back_on_a_native_line_and_on_a_pin_polled_and_by_dma() {
        for (cs, length, dma) in [
            (1, 1, None),
            (1, 4, None),
            (0, 4, None),
            (1, 159, Some((1, 1))),
            (1, 200, Some((5_000_000, 1))),
        ] {
            let costs = Rc::new(Costs::assumed().with_drivers());
            let machine = crate::workload::machine("beaglebone", &costs, &Rc::default());
            let machine = machine.expect("a board");
            let board = machine.board();
            board.attach(cs, Rc::new(RefCell::new(Echo::default())));
            let host = Mcspi::new(board, cs, 2_000_000, dma);
            assert_eq!(host.clock_hz(), 2_000_000);
            let mut xfer = Xfer::new(&(0..length).map(|byte| byte as u8).collect::<Vec<u8>>());
            machine.start();
            let waiting = if dma.is_some() { Waiting::Dma } else { Waiting::Polling };
            let body = || {
                host.set_cs(&machine, true);
                host.transfer(&machine, waiting, &mut xfer);
                host.set_cs(&machine, false);
            };
            let mut threads = host.threads(&machine);
            threads.push(Thread::new("caller", body).on(0, 10));
            board.engine().run(threads);
            assert!(board.violations().is_empty(), "{cs} {length}: {:#?}", board.violations());
            assert_eq!((xfer.rx.len(), &xfer.rx[1..]), (length, &xfer.tx[..length - 1]), "{cs}");
            let record = machine.finish();
            assert_eq!(record.times_of("set up DMA").len(), usize::from(length >= DMA_BYTES));
            // The clock rests after each byte: it is written when the one before it was read.
            let [one] = record.wire() else { panic!("one selection: {:?}", record.wire()) };
            let clocks_ps = one.last_clock_at - one.first_clock_at;
            assert!(clocks_ps > length as Ps * 4_000_000 || length == 1, "{clocks_ps}");
        }
    }
}
