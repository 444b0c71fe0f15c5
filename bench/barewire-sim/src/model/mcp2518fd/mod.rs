//! Microchip's MCP2518FD and MCP2517FD: a CAN FD controller behind SPI.
//!
//! *Read first*: DS20006027 (MCP2518FD), chapters 3 (registers), 4 (SPI instructions) and 5 (oscillator);
//! DS20005678, the family reference manual, chapters 2 (modes) and 4 to 9 (message memory, sending, the
//! event FIFO, filters, receiving, interrupts); the errata DS80000789 (MCP2518FD) and DS80000792 (MCP2517FD).
//!
//! # How it works
//! The chip is a [`Chip`] on the SPI wire and a [`CanNode`](super::can::CanNode) on a [`CanBus`];
//! both share one state. Each byte on SPI first processes the bus up to the byte's time. A byte
//! that is read has the value at the time its first bit was clocked (a whole register is read with
//! its first byte). A byte is written with its last bit. RAM is written a word at a time.
//!
//! Its interrupt pins are [`Pin`]s, for [`Board::line_of`](crate::Board::line_of). INT is low while
//! a flag and its enable are set. The times at which INT was low are kept
//! [on request](Mcp2518Fd::start_int_lows).
//!
//! An access that breaks a rule of the manual is reported as a complaint: a clock above 0.85 x
//! SYSCLK / 2 (erratum: the data sheet's limit, 20 MHz, is too high for low SYSCLK), RAM not
//! accessed by words, registers written in a mode that does not allow it, a head or tail moved
//! beyond its FIFO, objects beyond RAM.
//!
//! # Assumptions
//! Where the manuals leave the behaviour open, or their exact text was not available, and a driver
//! could notice:
//! - Leaving a mode on the bus takes until the present frame is over, or else a bit time.
//! - A message is on the bus at the earliest [`TX_PREPARE_CLOCKS`] of SYSCLK after TXREQ.
//! - Of FIFOs with equal TXPRI the queue is first, then the lowest number. Equal identifiers in the
//!   queue are sent in the order of filling.
//! - The oscillator needs 3 ms after sleep, the PLL 1 ms more. At power-up both run already, unless
//!   [`Options::starts_cold`].
//! - A direct change between two modes on the bus is refused; Configuration or Sleep must come
//!   between.
//! - If a frame has more data than its FIFO's objects, the data is cut, and DLCMM and IVMIF are
//!   set.
//! - CERRIF is set whenever one of C1TREC's state bits changes. C1VEC.ICODE reports FIFOs first.
//! - DEVID of both parts reads 0 (as Linux prints it, rev0.0).
//! - CS set-up, hold and inactive times, see `limits` in the code.
//!
//! # Not supported
//! - Waking up by RXCAN, and the wake-up filter.
//! - CLKO and GPIO inputs.
//! - Transmitter delay compensation (registers only) and the edge filter.
//! - SID11.
//! - MAB overflows and so SERRIF and SERR2LOM.

mod clock;
mod core;
mod crc16;
mod fifo;
mod filter;
mod node;
mod options;
mod ram;
mod regs;
mod sfr;
mod spi;

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

pub use options::{ChipFaults, Errata, Options, PartKind};

use self::core::Core;
use self::spi::Instruction;
use super::can::{CanBus, CanFrame, Counters, NodeId};
use crate::chip::bytewise::{Bytewise, Partial};
use crate::chip::{Chip, Clocking, Pin as ChipPin, Ps, WireLimits};
use crate::line::Source;

/// The SYSCLK periods from TXREQ to the earliest SOF: an assumption, for some accesses of the
/// message RAM.
pub const TX_PREPARE_CLOCKS: u64 = 20;

/// The data sheet's limit of SCK.
const CLOCK_MAX_HZ: u64 = 20_000_000;

/// The pin's function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PinKind {
    Int,
    Int0,
    Int1,
}

/// An interrupt pin of the chip; it is asserted while it is low.
pub struct Pin {
    core: Rc<RefCell<Core>>,
    bus: CanBus,
    kind: PinKind,
}

impl Source for Pin {
    fn settle(&self, now: Ps) -> Ps {
        let bus_due = settle(&self.core, &self.bus, now);
        bus_due.min(self.core.borrow().pin_due())
    }

    fn asserted_since(&self) -> Option<Ps> {
        let core = self.core.borrow();
        match self.kind {
            PinKind::Int => core.int_low_since(),
            PinKind::Int0 => core.int0_low().then(|| core.now()),
            PinKind::Int1 => core.int1_low().then(|| core.now()),
        }
    }
}

/// Processes bus and chip up to `now`. Returns the time of the bus's next event.
fn settle(core: &RefCell<Core>, bus: &CanBus, now: Ps) -> Ps {
    loop {
        let at = core.borrow().due().min(now);
        let bus_due = bus.catch_up(at);
        if core.borrow_mut().catch_up(at) {
            // An event of the chip may concern the bus: the chip may join or leave it.
            bus.stir();
        } else if at == now {
            return bus_due;
        }
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pin").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// The chip on its bus.
pub struct Mcp2518Fd {
    core: Rc<RefCell<Core>>,
    bus: CanBus,
    node: NodeId,
    options: Options,
    spi: Instruction,
    /// The byte in progress: the number of bits received, and the byte being sent.
    partial: Partial,
    clock_reported: bool,
}

impl Mcp2518Fd {
    /// Creates a chip at power-up, attached to `bus`.
    #[must_use]
    pub fn new(bus: &CanBus, options: Options) -> Self {
        let core = Rc::new(RefCell::new(Core::new(options.clone())));
        let node = bus.attach(core.clone());
        Self {
            core,
            bus: bus.clone(),
            node,
            options,
            spi: Instruction::default(),
            partial: Partial::NONE,
            clock_reported: false,
        }
    }

    /// Its id on the bus.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Its bus.
    #[must_use]
    pub fn bus(&self) -> &CanBus {
        &self.bus
    }

    /// Its INT pin.
    #[must_use]
    pub fn int(&self) -> Rc<Pin> {
        self.pin(PinKind::Int)
    }

    /// Its INT0 pin: the transmit interrupt, if IOCON.PM0 is clear.
    #[must_use]
    pub fn int0(&self) -> Rc<Pin> {
        self.pin(PinKind::Int0)
    }

    /// Its INT1 pin: the receive interrupt, if IOCON.PM1 is clear.
    #[must_use]
    pub fn int1(&self) -> Rc<Pin> {
        self.pin(PinKind::Int1)
    }

    fn pin(&self, kind: PinKind) -> Rc<Pin> {
        Rc::new(Pin { core: self.core.clone(), bus: self.bus.clone(), kind })
    }

    /// Processes bus and chip up to `now`.
    pub fn catch_up(&self, now: Ps) {
        settle(&self.core, &self.bus, now);
    }

    /// Begins to keep the intervals in which INT is low, for [`Mcp2518Fd::take_int_lows`]. They take
    /// memory until they are taken.
    pub fn start_int_lows(&self) {
        self.core.borrow_mut().start_int_lows();
    }

    /// Keeps no more intervals, and drops those that were not taken.
    pub fn stop_int_lows(&self) {
        self.core.borrow_mut().stop_int_lows();
    }

    /// The intervals in which INT was low, since [`Mcp2518Fd::start_int_lows`] or the last call. The
    /// last interval may still be open; it is then returned again by the next call.
    #[must_use]
    pub fn take_int_lows(&self) -> Vec<(Ps, Option<Ps>)> {
        self.core.borrow_mut().take_int_lows()
    }

    /// Sets the faults from now on.
    pub fn set_faults(&mut self, faults: ChipFaults) {
        self.core.borrow_mut().set_faults(faults);
        self.options.faults = faults;
        self.bus.changed();
    }

    /// Its error counters.
    #[must_use]
    pub fn error_counters(&self) -> Counters {
        self.core.borrow().error_counters()
    }

    /// The value of a register or RAM word as SPI would read it now, without side effects. `None`
    /// if the address is not a word's.
    #[must_use]
    pub fn peek(&self, address: u16) -> Option<u32> {
        self.core.borrow().peek(address)
    }

    /// The number of frames stored in a FIFO, and of those dropped because the FIFO was full.
    #[must_use]
    pub fn taken_and_dropped(&self) -> (u64, u64) {
        self.core.borrow().taken_and_dropped()
    }

    /// The number of SPI instructions received.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.spi.count()
    }

    /// Flips a bit in RAM at `address`. With ECC on the chip sees one flip or, with `two`, two
    /// flips.
    pub fn flip_ram(&self, address: u16, two: bool) {
        self.core.borrow_mut().flip_ram(address, two);
    }

    /// The frame of the last message it sent.
    #[must_use]
    pub fn last_sent(&self) -> Option<CanFrame> {
        self.core.borrow().last_sent()
    }

    fn check_clock(&mut self, clocking: Clocking) {
        let mut core = self.core.borrow_mut();
        // 0.85 x SYSCLK / 2: DS80000789 and DS80000792, erratum on the SPI clock.
        let limit_hz = core.sysclk_hz() * 85 / 200;
        let too_fast = u128::from(clocking.period) * u128::from(limit_hz) < 1_000_000_000_000;
        core.clocked_too_fast(too_fast);
        if too_fast && !self.clock_reported {
            self.clock_reported = true;
            let actual_hz = 1_000_000_000_000_u64.checked_div(clocking.period).unwrap_or(u64::MAX);
            core.complain(|| {
                format!(
                    "SCK at {actual_hz} Hz, the limit is 0.85 x SYSCLK / 2 = {limit_hz} Hz (erratum)"
                )
            });
        }
    }
}

impl Bytewise for Mcp2518Fd {
    fn partial(&mut self) -> &mut Partial {
        &mut self.partial
    }

    fn begin_byte(&mut self, at: Ps) -> u8 {
        settle(&self.core, &self.bus, at);
        let mut core = self.core.borrow_mut();
        self.spi.out(&mut core)
    }

    fn end_byte(&mut self, byte: u8, at: Ps) {
        settle(&self.core, &self.bus, at);
        let mut core = self.core.borrow_mut();
        let wrote = self.spi.take(&mut core, byte);
        drop(core);
        if wrote {
            self.bus.changed();
        }
    }
}

impl Chip for Mcp2518Fd {
    fn name(&self) -> &'static str {
        self.options.part.name()
    }

    fn limits(&self) -> WireLimits {
        let sysclk_hz = u64::from(self.options.oscillator_hz);
        WireLimits {
            // 0,0 and 1,1.
            modes: 0b1001,
            // Assumption, to be read in DS20006027's table of SPI AC characteristics: a half and a whole
            // period of the fastest clock.
            cs_setup_ns: 25,
            cs_hold_ns: 25,
            cs_inactive_ns: 50,
            // With the PLL the oscillator does not decide the limit, and the chip checks each byte.
            max_clock_hz: match self.options.pll {
                true => CLOCK_MAX_HZ as u32,
                false => CLOCK_MAX_HZ.min(sysclk_hz * 85 / 200) as u32,
            },
        }
    }

    fn select(&mut self, at: Ps) {
        self.partial = Partial::NONE;
        self.clock_reported = false;
        if !self.options.faults.absent {
            settle(&self.core, &self.bus, at);
            let mut core = self.core.borrow_mut();
            core.selected(at);
            self.spi.begin();
        }
    }

    fn deselect(&mut self, at: Ps) {
        if self.options.faults.absent {
            return;
        }
        settle(&self.core, &self.bus, at);
        let mut core = self.core.borrow_mut();
        if self.partial.bits() != 0 {
            let bits = self.partial.bits();
            core.complain(|| format!("CS ended an instruction {bits} bits into a byte"));
        }
        let changed = self.spi.end(&mut core);
        drop(core);
        if changed {
            self.bus.changed();
        }
    }

    fn exchange(&mut self, clocking: Clocking, mosi: u32, bits: u32) -> u32 {
        if self.options.faults.absent {
            return u32::MAX >> (32 - bits);
        }
        self.check_clock(clocking);
        let miso = self.exchange_bits(clocking, mosi, bits);
        if self.options.faults.sdo_stuck_low { 0 } else { miso }
    }

    fn pins(&self) -> Vec<ChipPin> {
        vec![ChipPin::ActiveLow("INT", self.int())]
    }

    fn take_complaint(&mut self) -> Option<String> {
        self.core.borrow_mut().take_complaint()
    }
}

impl fmt::Debug for Mcp2518Fd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mcp2518Fd")
            .field("part", &self.options.part)
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}
