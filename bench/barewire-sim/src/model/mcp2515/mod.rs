//! Microchip's MCP2515: a CAN 2.0B controller on SPI, the predecessor of the MCP2518FD.
//!
//! *Read first*: DS20001801, chapters 3 (sending), 4 (receiving, filters), 5 (bit timing), 7
//! (interrupts), 10 (modes), 11 (register map) and 12 (SPI).
//!
//! # How it works
//! The chip has byte registers at 128 addresses, three transmit buffers and two receive buffers. Of
//! the transmit buffers the one with the highest TXP is sent first, of equals the highest number.
//! The first receive buffer may roll over into the second. The chip is a [`Chip`] on the SPI wire
//! and a [`CanNode`](super::can::CanNode) on a [`CanBus`]; both share one state. Each byte on SPI
//! first processes the bus up to the byte's time. INT is a [`Pin`], low while a flag of CANINTF and
//! its enable are set.
//!
//! An access that breaks a rule of the data sheet is reported as a complaint and has no effect:
//! - filters, masks and bit times written outside Configuration mode;
//! - a transmit buffer written while its TXREQ is set;
//! - writes to read-only bytes, and unknown instructions;
//! - anything within 128 clocks of the RESET instruction, while the oscillator starts: the whole
//!   selection is ignored.
//!
//! # Assumptions
//! Where the data sheet leaves the behaviour open and a driver could notice:
//! - A frame is on the bus at the earliest [`TX_PREPARE_CLOCKS`] clocks after its request.
//! - Leaving a mode takes a bit time, after all frames on the bus or waiting were sent.
//! - Only ABAT sets ABTF, not clearing TXREQ.
//! - RXBnDLC.RTR is defined for extended frames only and is 0 for standard ones. Data bytes beyond
//!   a frame's length keep their old value.
//! - Data bytes that a standard frame does not have are not compared with a filter.
//! - A buffer that accepts any frame reports its first filter.
//! - ERRIF is set when a bit of EFLG is set, and can be cleared while that bit stays.
//! - An address without a register reads 0.
//!
//! # Not supported
//! - Waking up, and leaving Sleep mode other than by RESET.
//! - The pins TXnRTS, RXnBF, CLKOUT and RESET.
//! - Parts of broken frames, which RXM 11 accepts.

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
use super::can::{CanBus, Counters, NodeId};
use crate::chip::bytewise::{Bytewise, Partial};
use crate::chip::{Chip, Clocking, Pin as ChipPin, Ps, WireLimits};
use crate::line::Source;

/// The clocks the oscillator takes to start after RESET: chapter 8.1, the start-up timer.
pub const OST_CLOCKS: u64 = 128;

/// The clocks from a request to the earliest SOF: an assumption.
pub const TX_PREPARE_CLOCKS: u64 = 32;

/// The crystal on most boards.
pub const OSCILLATOR_HZ: u32 = 16_000_000;

/// The INT pin; it is asserted while it is low.
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

/// The chip on its bus.
pub struct Mcp2515 {
    core: Rc<RefCell<Core>>,
    bus: CanBus,
    node: NodeId,
    /// `None` while the chip is not selected, or ignores the selection.
    spi: Option<Instruction>,
    /// The byte in progress: the number of bits received, the bits, and the byte being sent.
    partial: Partial,
}

impl Mcp2515 {
    /// Creates a chip at power-up with its oscillator running, attached to `bus`.
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

    /// Its id on the bus.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Its INT pin, for [`Board::line_of`](crate::Board::line_of).
    #[must_use]
    pub fn int(&self) -> Rc<Pin> {
        Rc::new(Pin { core: self.core.clone(), bus: self.bus.clone() })
    }

    /// Processes bus and chip up to `now`.
    pub fn catch_up(&self, now: Ps) {
        settle(&self.core, &self.bus, now);
    }

    /// The byte that SPI would read at an address up to 0x7f.
    #[must_use]
    pub fn peek(&self, address: u8) -> u8 {
        self.core.borrow().read(address)
    }

    /// Its error counters.
    #[must_use]
    pub fn error_counters(&self) -> Counters {
        self.core.borrow().counters
    }

    /// The number of frames stored in a buffer, and of those dropped because the buffer was full.
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

    fn pins(&self) -> Vec<ChipPin> {
        vec![ChipPin::ActiveLow("INT", self.int())]
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
