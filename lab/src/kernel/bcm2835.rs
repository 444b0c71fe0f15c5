//! SPI0 of the BCM2835 as Linux 4.4's driver uses it: polled if a transfer is short, else by interrupts.
//!
//! *Read first*: BCM2835 ARM Peripherals, chapter 10 (SPI) and chapter 6 (GPIO). The order of a kernel's accesses was
//! read in Linux 4.4's spi-bcm2835; the registers are the manual's.
//!
//! # How it works
//! Chip select is a pin, moved by GPSET0 and GPCLR0; the block's own lines stay out of it. A transfer sets the clock,
//! then TA, fills the FIFO and reads until all bytes came back. If nine clocks a byte take less than the polling
//! limit, the processor polls. Otherwise INTD and INTR wake a handler, which moves bytes until the last is received.
//! At its end TA falls and both FIFOs are cleared.
//!
//! When a byte is found depends on the phase of the polls against the clocks. On silicon that phase drifts
//! (assumption: no two transfers find the bus and the caches alike). Here the phase would be the same in every
//! transfer, and a change of a cost by a per cent would move the end of each by up to half a read. So the first poll
//! of a transfer waits for 0 to 7 eighths of a read, in turn.
//!
//! Every write has a barrier before it and every read one after it, as `writel` and `readl` have on Arm. So a write
//! waits until the write before it is acknowledged.
//!
//! # Not supported
//! DMA, which the driver uses from 96 bytes on, but as set-up and rate ([`Bcm2835::with_dma`]).

use std::cell::{Cell, RefCell};

use barewire::reg::Registers;
use barewire_sim::chip::Ps;
use barewire_sim::engine::Thread;
use barewire_sim::wire::Driver;
use barewire_sim::{Board, SimRegisters};

use super::dma::Dma;
use super::{Host, Waiting, Word, Xfer};
use crate::machine::Machine;

const CS: u32 = 0x00;
const FIFO: u32 = 0x04;
const CLK: u32 = 0x08;
const DLEN: u32 = 0x0c;

/// Of CS: no line of the block's own.
const NO_LINE: u32 = 3;
/// Of CS: CLEAR, both FIFOs.
const CLEAR: u32 = 3 << 4;
const TA: u32 = 1 << 7;
const INTD: u32 = 1 << 9;
const INTR: u32 = 1 << 10;
const RXD: u32 = 1 << 17;
const TXD: u32 = 1 << 18;

/// GPIO: three bits of GPFSEL for each of ten pins.
const GPFSEL0: u32 = 0x00;
const OUTPUT: u32 = 1;
const GPSET0: u32 = 0x1c;
const GPCLR0: u32 = 0x28;

/// Clocks of a byte: the block rests for one after its eight.
const BYTE_CLOCKS: u64 = 9;
/// Phases of polling.
const PHASES: u64 = 8;
/// The driver polls for less.
pub const POLL_LIMIT_NS: u64 = 30_000;
/// The driver uses DMA from here on.
pub(crate) const DMA_BYTES: usize = 96;

/// The transfer under way.
#[derive(Default)]
struct Flight {
    tx: Vec<u8>,
    sent: usize,
    rx: Vec<u8>,
}

/// The driver.
pub struct Bcm2835 {
    board: Board,
    regs: RefCell<SimRegisters>,
    gpio: RefCell<SimRegisters>,
    bit: u8,
    active_high: bool,
    divider: u64,
    poll_limit_ns: u64,
    flight: RefCell<Flight>,
    done: Word,
    dma: Option<Dma>,
    /// The phase of the next poll relative to the clocks.
    phase: Cell<u64>,
}

impl Bcm2835 {
    /// The board's SPI0 at up to `speed_hz`, with the chip select `cs` on a pin; a transfer whose clocks take
    /// `poll_limit_ns` or longer waits by interrupts.
    ///
    /// # Panics
    /// If the board has no BCM2835 SPI0, or `cs` is not on a pin.
    #[must_use]
    pub fn new(board: &Board, cs: u8, speed_hz: u64, poll_limit_ns: u64) -> Self {
        let spec = board.spec();
        assert_eq!(spec.kind.name, "BCM2835 SPI0", "{} has another controller", spec.name);
        let line = spec.cs[usize::from(cs)];
        let Driver::Gpio { block, bit } = line.driver else {
            panic!("chip select {cs} of {} is the controller's own", spec.name)
        };
        let host = Self {
            board: board.clone(),
            regs: RefCell::new(board.controller()),
            gpio: RefCell::new(board.gpio(block).expect("the block of the chip select")),
            bit,
            active_high: line.active_high,
            divider: divider(board.profile().reference_hz.value, speed_hz),
            poll_limit_ns,
            flight: RefCell::default(),
            done: Word::default(),
            dma: None,
            phase: Cell::new(0),
        };
        host.drive(false);
        let mut gpio = host.gpio.borrow().clone();
        let (register, field) = (GPFSEL0 + u32::from(bit) / 10 * 4, u32::from(bit) % 10 * 3);
        let functions = gpio.read(register) & !(0b111 << field);
        gpio.write(register, functions | OUTPUT << field);
        host
    }

    /// The same with a DMA engine of that set-up and that time for a byte, in picoseconds.
    #[must_use]
    pub fn with_dma(self, setup_ps: Ps, byte_ps: Ps) -> Self {
        Self { dma: Some(Dma::new(&self.board, setup_ps, byte_ps)), ..self }
    }

    /// The clock that is made.
    #[must_use]
    pub fn clock_hz(&self) -> u64 {
        self.board.profile().reference_hz.value / self.divider
    }

    fn read(&self, offset: u32) -> u32 {
        let mut regs = self.regs.borrow().clone();
        let value = regs.read(offset);
        regs.barrier();
        value
    }

    fn write(&self, offset: u32, value: u32) {
        let mut regs = self.regs.borrow().clone();
        regs.barrier();
        regs.write(offset, value);
    }

    fn drive(&self, active: bool) {
        let mut gpio = self.gpio.borrow().clone();
        gpio.barrier();
        gpio.write(if active == self.active_high { GPSET0 } else { GPCLR0 }, 1 << self.bit);
    }

    fn push(&self) {
        while self.push_one() {}
    }

    /// Sends a byte, if there is one and room for it.
    fn push_one(&self) -> bool {
        let next = {
            let flight = self.flight.borrow();
            flight.tx.get(flight.sent).copied()
        };
        let Some(byte) = next.filter(|_| self.read(CS) & TXD != 0) else { return false };
        self.write(FIFO, byte.into());
        self.flight.borrow_mut().sent += 1;
        true
    }

    fn is_over(&self) -> bool {
        let flight = self.flight.borrow();
        flight.rx.len() == flight.tx.len()
    }

    fn pull(&self) {
        while !self.is_over() && self.read(CS) & RXD != 0 {
            let byte = self.read(FIFO) as u8;
            self.flight.borrow_mut().rx.push(byte);
        }
    }

    /// Takes the next phase.
    fn dephase(&self) {
        let profile = self.board.profile();
        let instructions = profile.instructions_per_access.value + 1;
        let read_ps = profile.register_read_ps.value + profile.instructions_ps(instructions);
        let phase = self.phase.get();
        // Three and eight have no common divisor: eight transfers have all phases, two in a row differ by much.
        self.phase.set((phase + 3) % PHASES);
        self.board.engine().spend_ps(read_ps * phase / PHASES);
    }

    /// Ends a transfer.
    fn reset(&self) {
        let cs = self.read(CS);
        self.write(CS, cs & !(INTR | INTD | TA) | CLEAR);
        self.write(DLEN, 0);
    }

    /// Whether a transfer of `length` bytes is polled.
    fn polls(&self, waiting: Waiting, length: usize) -> bool {
        let clocks_ns = length as u64 * BYTE_CLOCKS * 1_000_000_000 / self.clock_hz();
        waiting == Waiting::Polling && clocks_ns < self.poll_limit_ns
    }

    /// The controller's handler.
    fn handle(&self, machine: &Machine) {
        machine.charge("interrupt entry", &["interrupt-entry"]);
        let over = machine.step("handler", || {
            self.pull();
            self.push();
            let over = self.is_over();
            if over {
                self.reset();
            }
            over
        });
        if over {
            machine.waking("complete", || self.done.raise(self.board.engine()));
        }
    }

    /// The handler, on processor 0.
    pub fn threads<'a>(&'a self, machine: &'a Machine) -> Vec<Thread<'a>> {
        let handler = move || {
            while self.board.wait_interrupt(None) {
                self.handle(machine);
            }
        };
        let step = move || {
            self.push_one();
            self.pull();
            self.is_over()
        };
        let mut threads = vec![Thread::new("spi interrupt", handler).interrupt(0)];
        threads.extend(self.dma.iter().flat_map(|dma| dma.threads(machine, step)));
        threads
    }
}

/// CLK's value: the reference divided by the next even number that is not too fast.
///
/// # Panics
/// If `speed_hz` is 0.
fn divider(reference_hz: u64, speed_hz: u64) -> u64 {
    reference_hz.div_ceil(speed_hz).next_multiple_of(2).clamp(2, 65_534)
}

impl Host for Bcm2835 {
    fn prepare(&self, _machine: &Machine) {
        // Mode 0: CPOL and CPHA are clear.
        let cs = self.read(CS) & !0b1100;
        self.write(CS, cs);
    }

    fn set_cs(&self, _machine: &Machine, active: bool) {
        self.drive(active);
    }

    fn transfer(&self, machine: &Machine, waiting: Waiting, xfer: &mut Xfer) {
        machine.charge("driver's set-up", &["driver-bcm2835"]);
        let cs = machine.step("set up", || {
            let cs = self.read(CS);
            self.write(CLK, self.divider as u32);
            *self.flight.borrow_mut() = Flight { tx: xfer.tx.clone(), ..Flight::default() };
            cs | NO_LINE | TA
        });
        let by_dma = waiting == Waiting::Dma && xfer.tx.len() >= DMA_BYTES;
        if let Some(dma) = self.dma.as_ref().filter(|_| by_dma) {
            machine.step("start", || self.write(CS, cs));
            dma.transfer(machine);
            machine.step("end of transfer", || self.reset());
            xfer.rx.clone_from(&self.flight.borrow().rx);
            return;
        }
        machine.step("fill FIFO", || {
            self.write(CS, cs);
            self.push();
        });
        if self.polls(waiting, xfer.tx.len()) {
            machine.wait("poll", true, || {
                self.dephase();
                while !self.is_over() {
                    self.push();
                    self.pull();
                }
            });
            machine.step("end of transfer", || self.reset());
        } else {
            machine.step("enable interrupts", || self.write(CS, cs | INTR | INTD));
            machine.wait("interrupt, wake-up and switch", false, || {
                self.done.wait(self.board.engine());
            });
            machine.charge("completion", &["completion"]);
        }
        xfer.rx.clone_from(&self.flight.borrow().rx);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::rc::Rc;

    use barewire_sim::Rule;
    use barewire_sim::model::echo::Echo;

    use super::*;
    use crate::cost::Costs;

    #[test]
    fn the_clock_is_the_fastest_that_is_not_too_fast() {
        assert_eq!(divider(400_000_000, 3_600_000), 112);
        assert_eq!(divider(400_000_000, 400_000_000), 2);
        assert_eq!(divider(400_000_000, 200_000_001), 2);
        assert_eq!(divider(400_000_000, 199_999_999), 4);
        assert_eq!(divider(400_000_000, 1), 65_534);
    }

    /// Runs one transfer: the bytes sent, the bytes received, and how often the interrupt handler
    /// ran.
    fn exchange(waiting: Waiting, length: usize, limit_ns: u64) -> (Vec<u8>, Vec<u8>, usize) {
        let (tx, rx, record) = exchanged(waiting, length, limit_ns, None);
        (tx, rx, record.times_of("handler").len())
    }

    fn exchanged(
        waiting: Waiting,
        length: usize,
        limit_ns: u64,
        dma: Option<(Ps, Ps)>,
    ) -> (Vec<u8>, Vec<u8>, crate::machine::Record) {
        let costs = Rc::new(Costs::assumed());
        let machine =
            crate::workload::machine("rpi3", &costs, &Rc::new(BTreeSet::new())).expect("a board");
        let board = machine.board();
        board.attach(0, Rc::new(RefCell::new(Echo::default())));
        let mut host = Bcm2835::new(board, 0, 3_600_000, limit_ns);
        if let Some((setup_ps, byte_ps)) = dma {
            host = host.with_dma(setup_ps, byte_ps);
        }
        let mut xfer = Xfer::new(&(1..=length as u8).collect::<Vec<u8>>());
        machine.start();
        let mut threads = host.threads(&machine);
        let body = || {
            host.prepare(&machine);
            host.set_cs(&machine, true);
            host.transfer(&machine, waiting, &mut xfer);
            host.set_cs(&machine, false);
        };
        threads.push(Thread::new("caller", body).on(0, 10));
        board.engine().run(threads);
        assert_eq!(host.read(CS) & (TA | INTD | INTR | RXD), 0, "the block is at rest");
        let rules: Vec<Rule> = board.violations().iter().map(|one| one.rule).collect();
        assert_eq!(rules, []);
        assert_eq!(machine.board().wire_use().bits, 8 * length as u64);
        (xfer.tx, xfer.rx, machine.finish())
    }

    #[test]
    fn dma_moves_96_bytes_and_more_at_its_rate() {
        // A byte has 9 clocks of 280 ns on the wire, or 5 us by a slow engine.
        for (length, byte_ps, least_us) in
            [(96, 1, 96.0 * 2.52), (200, 5_000_000, 199.0 * 5.0), (95, 1, 0.0)]
        {
            let dma = Some((7_000_000, byte_ps));
            let (tx, rx, record) = exchanged(Waiting::Dma, length, 0, dma);
            assert_eq!((rx.len(), &rx[1..]), (length, &tx[..length - 1]));
            assert_eq!(record.times_of("handler").is_empty(), length >= DMA_BYTES);
            let set_up = record.times_of("set up DMA");
            assert!(set_up.iter().all(|(from, to)| to - from == 7_000_000));
            assert_eq!(set_up.len(), usize::from(length >= DMA_BYTES));
            let [one] = record.wire() else { panic!("one selection") };
            let us = (one.last_clock_at - one.first_clock_at) as f64 / 1e6;
            assert!(us > least_us - 3.0 && (least_us == 0.0 || us < 1.1 * least_us), "{us}");
        }
    }

    #[test]
    fn bytes_come_back_polled_and_by_interrupts() {
        for length in [1, 3, 64, 65, 200] {
            for waiting in [Waiting::Polling, Waiting::Interrupts] {
                let (tx, rx, handled) = exchange(waiting, length, u64::MAX);
                // The chip sends what it got, a byte later.
                assert_eq!((rx.len(), &rx[1..]), (length, &tx[..length - 1]), "{waiting:?}");
                assert_eq!(handled > 0, waiting == Waiting::Interrupts, "{length} {waiting:?}");
            }
        }
    }

    #[test]
    fn the_driver_polls_below_its_limit_only() {
        // 11 bytes are 99 clocks of 280 ns: 27.72 us. 12 are 30.24 us.
        assert_eq!(exchange(Waiting::Polling, 11, POLL_LIMIT_NS).2, 0);
        assert!(exchange(Waiting::Polling, 12, POLL_LIMIT_NS).2 > 0);
    }

    #[test]
    #[should_panic(expected = "another controller")]
    fn another_board_is_refused() {
        let costs = Rc::new(Costs::assumed());
        let machine =
            crate::workload::machine("imx8mp", &costs, &Rc::new(BTreeSet::new())).expect("a board");
        let _ = Bcm2835::new(machine.board(), 0, 1_000_000, POLL_LIMIT_NS);
    }
}
