//! Microchip's MCP2515: a CAN 2.0B controller behind SPI, the MCP2518FD's ancestor.
//!
//! *Read first*: DS20001801, chapters 3 (sending), 4 (receiving, filters), 5 (bit timing), 7
//! (interrupts), 10 (modes), 11 (register map) and 12 (SPI).
//!
//! # How it works
//! Registers of a byte at 128 addresses; three transmit buffers, of which the highest TXP and then the
//! highest number goes first; two receive buffers, of which the first may roll over into the second. The chip
//! is a [`Chip`] on the SPI wire and a [`CanNode`](super::can::CanNode) on a [`CanBus`], both the same
//! state: each byte on SPI first lets the bus catch up to its time. INT is a [`Pin`], low while a flag
//! of CANINTF and its enable are set.
//!
//! What breaks a rule of the data sheet is told as a complaint and has no effect: filters, masks and bit
//! times written outside Configuration mode, a transmit buffer while its TXREQ is set, bytes that are only
//! read, instructions there are not, and anything within 128 clocks of the RESET instruction, while the
//! oscillator starts: such a selection is not heard.
//!
//! # Assumptions
//! Where the data sheet leaves room, and a driver could notice:
//! - A frame is on the bus [`TX_PREPARE_CLOCKS`] clocks after its request at the earliest.
//! - Leaving a mode takes a bit time, once nothing is on the bus or waits to be sent.
//! - ABTF is set by ABAT alone, not where TXREQ was cleared.
//! - RXBnDLC.RTR, which counts for extended frames alone, is 0 in standard ones. Data bytes beyond a
//!   frame's own keep what was there before.
//! - A standard frame's data bytes that it has not are not compared with a filter.
//! - A buffer that takes any frame tells its first filter.
//! - ERRIF is set when a bit of EFLG is, and clears though that bit stays.
//! - What is behind an address with no register reads 0.
//!
//! # Not supported
//! Waking up, and leaving Sleep mode but by RESET; the pins TXnRTS, RXnBF, CLKOUT and RESET; what RXM 11
//! takes of broken frames.

mod core;
mod filter;
mod node;
mod regs;
mod sfr;
mod spi;

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use self::core::Core;
use self::spi::Instruction;
use super::bytewise::{Bytewise, Partial};
use super::can::{CanBus, Counters, NodeId};
use crate::chip::{Chip, Clocking, Ps, WireLimits};
use crate::line::Source;

/// Clocks that the oscillator takes to start after RESET: chapter 8.1, the start-up timer.
pub const OST_CLOCKS: u64 = 128;

/// Clocks from a request to the earliest SOF: assumption.
pub const TX_PREPARE_CLOCKS: u64 = 32;

/// The crystal that most boards have.
pub const OSCILLATOR_HZ: u32 = 16_000_000;

/// The INT pin, asserted when it is low.
pub struct Pin {
    core: Rc<RefCell<Core>>,
    bus: CanBus,
}

impl Source for Pin {
    fn settle(&self, now: Ps) -> Ps {
        settle(&self.core, &self.bus, now).min(self.core.borrow().due())
    }

    fn asserted_since(&self) -> Option<Ps> {
        self.core.borrow().int_low_since()
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pin").finish_non_exhaustive()
    }
}

/// Lets bus and chip catch up; when something happens next on the bus.
fn settle(core: &RefCell<Core>, bus: &CanBus, now: Ps) -> Ps {
    loop {
        let at = core.borrow().due().min(now);
        let bus_due = bus.catch_up(at);
        if core.borrow_mut().catch_up(at) {
            // What the chip does by itself may concern the bus: it comes or goes.
            bus.stir();
        } else if at == now {
            return bus_due;
        }
    }
}

/// The chip on its bus.
pub struct Mcp2515 {
    core: Rc<RefCell<Core>>,
    bus: CanBus,
    node: NodeId,
    /// None while it is not selected, or does not hear.
    spi: Option<Instruction>,
    /// The byte in progress: bits in so far, those bits, the byte that goes out.
    partial: Partial,
}

impl Mcp2515 {
    /// A chip at power-up, its oscillator running, attached to `bus`.
    ///
    /// # Panics
    /// If the oscillator does not run at 1 to 40 MHz.
    #[must_use]
    pub fn new(bus: &CanBus, oscillator_hz: u32) -> Self {
        assert!(
            (1_000_000..=40_000_000).contains(&oscillator_hz),
            "the oscillator runs at 1 to 40 MHz, not at {oscillator_hz} Hz"
        );
        let core = Rc::new(RefCell::new(Core::new(oscillator_hz)));
        let node = bus.attach(core.clone());
        Self { core, bus: bus.clone(), node, spi: None, partial: Partial::NONE }
    }

    /// Its place on the bus.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Its INT pin, to be given to [`Board::line_of`](crate::Board::line_of).
    #[must_use]
    pub fn int(&self) -> Rc<Pin> {
        Rc::new(Pin { core: self.core.clone(), bus: self.bus.clone() })
    }

    /// Lets bus and chip catch up with `now`.
    pub fn catch_up(&self, now: Ps) {
        settle(&self.core, &self.bus, now);
    }

    /// The byte that SPI would read at an address, of those up to 0x7f.
    #[must_use]
    pub fn peek(&self, address: u8) -> u8 {
        self.core.borrow().read(address)
    }

    /// Its error counters.
    #[must_use]
    pub fn error_counters(&self) -> Counters {
        self.core.borrow().counters
    }

    /// How many frames it took into a buffer, and how many it dropped because one was full.
    #[must_use]
    pub fn taken_and_dropped(&self) -> (u64, u64) {
        let core = self.core.borrow();
        (core.taken, core.dropped)
    }
}

impl Bytewise for Mcp2515 {
    fn partial(&mut self) -> &mut Partial {
        &mut self.partial
    }

    fn begin_byte(&mut self, at: Ps) -> u8 {
        settle(&self.core, &self.bus, at);
        self.spi.map_or(0xff, |spi| spi.out(&self.core.borrow()))
    }

    fn end_byte(&mut self, byte: u8, at: Ps) {
        settle(&self.core, &self.bus, at);
        if let Some(spi) = self.spi {
            self.spi = Some(spi.take(&mut self.core.borrow_mut(), byte));
            self.bus.changed();
        }
    }
}

impl Chip for Mcp2515 {
    fn name(&self) -> &'static str {
        "MCP2515"
    }

    fn limits(&self) -> WireLimits {
        WireLimits {
            // 0,0 and 1,1.
            modes: 0b1001,
            // Table 13-6, SPI AC characteristics: parameters 1 to 3 and FCLK.
            cs_setup_ns: 50,
            cs_hold_ns: 50,
            cs_inactive_ns: 50,
            max_clock_hz: 10_000_000,
        }
    }

    fn select(&mut self, at: Ps) {
        self.partial = Partial::NONE;
        settle(&self.core, &self.bus, at);
        let mut core = self.core.borrow_mut();
        self.spi = (at >= core.starts_until).then_some(Instruction::Begun);
        if let Some(left_ps) = core.starts_until.checked_sub(at).filter(|&left| left > 0) {
            core.complain(|| {
                format!("selected {} ns before the oscillator has started", left_ps / 1_000)
            });
        }
    }

    fn deselect(&mut self, at: Ps) {
        settle(&self.core, &self.bus, at);
        let mut core = self.core.borrow_mut();
        if self.partial.bits() != 0 {
            let bits = self.partial.bits();
            core.complain(|| format!("CS ended an instruction {bits} bits into a byte"));
        }
        if let Some(spi) = self.spi.take() {
            spi.end(&mut core);
            drop(core);
            self.bus.changed();
        }
    }

    fn exchange(&mut self, clocking: Clocking, mosi: u32, bits: u32) -> u32 {
        self.exchange_bits(clocking, mosi, bits)
    }

    fn take_complaint(&mut self) -> Option<String> {
        self.core.borrow_mut().take_complaint()
    }
}

impl fmt::Debug for Mcp2515 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mcp2515").field("node", &self.node).finish_non_exhaustive()
    }
}
