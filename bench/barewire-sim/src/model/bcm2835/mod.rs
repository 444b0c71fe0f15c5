//! SPI0 of the BCM2835: registers, FIFOs and the exchange, in virtual time.
//!
//! *Read first*: BCM2835 ARM Peripherals, chapter 10, SPI, with its errata
//! (elinux.org/BCM2835_datasheet_errata): CDIV need not be a power of two, any even number does.
//! BCM2711 ARM Peripherals, chapter 9, is the same chapter corrected: there the interrupt recipe
//! moves 64 and 48 bytes at a time. The block is the same from BCM2835 to BCM2711; its core clock
//! is not.
//!
//! # How it works
//! The model stands still between accesses. Each access first lets everything happen that is due
//! by then (`run_to`, in `shift`), byte by byte, and then acts on registers and FIFOs.
//!
//! A byte takes nine clocks: SCLK rests for one after its eight. The manual does not say so; Linux's
//! driver comments it, and Ellis saw it on an oscilloscope (*Analyzing SPI driver performance on
//! the Raspberry Pi*, 2017), who left open whether the last byte has one too.
//!
//! Where the manual leaves room the model takes the side that shows a driver's mistake:
//! - The last byte has its ninth clock as well, and DONE sets after it.
//! - A received byte appears in RX FIFO at its last sampling edge, half a period before the end of
//!   its last cell. So a chip select released as soon as the last byte is there comes too early, and
//!   with CPHA = 0 the wire says so.
//! - A byte keeps its place in TX FIFO until that edge. So 64 bytes at once are all there is room
//!   for, although the shift register has one of them.
//! - TA = 0 ends a byte in its middle, its bits lost, and leaves both FIFOs as they are: received
//!   bytes can still be read, as the manual's recipe does, and bytes that were never sent lead the
//!   next transfer unless CLEAR drops them.
//! - FIFO written while TA = 0 is lost and reported. Of such writes the manual says that they go into
//!   DLEN and CS, for the sake of DMA, and of bytes only that they go to TX FIFO while TA = 1.
//! - FIFO read while RX FIFO is empty gives a pattern.
//! - CDIV = 1 is an odd number, rounded down to 0, which is 65,536.
//! - A CE line is active high if either its CSPOLn or CSPOL says so: the manual has both and does not
//!   say what they make of each other.
//!
//! # Ordering
//! 1. A write to CS clears the FIFOs it asks to; then SCLK takes the level of CPOL, whatever TA is;
//!    then CE lines move. With TA = 1 the line of the field CS is active, with TA = 0 none is.
//! 2. A byte begins as soon as TA = 1, TX FIFO has one, RX FIFO has room for its answer and the byte
//!    before has had its nine clocks. Its cell begins at that instant: no lead after CE.
//! 3. At its last sampling edge the answer is in RX FIFO and its place in TX FIFO is free.
//! 4. After the ninth clock the next byte begins, or SCLK rests; DONE is set while TA = 1, no byte is
//!    on the wire and TX FIFO is empty: thus with TA itself, before anything was written.
//!
//! # DONE
//! The manual has DONE read-only. Linux's driver comments that transmission sometimes breaks unless it
//! is written at the end of every transfer, and that it may be RW1C or the block have an erratum (Lukas
//! Wunner, *spi: bcm2835: Work around DONE bit erratum*, August 2019). What breaks is not known.
//! [`Done`] is what the model makes of it: [`Done::ReadOnly`] is the manual's; with [`Done::Needed`] a
//! byte written to a block at rest, all it received being read, does not clear DONE unless a 1 was
//! written to it before. It then stays set, and interrupts, until a 1 is written: a driver that
//! believes it finds RX FIFO empty, or moves CS in the middle of a byte.
//!
//! # Not supported
//! DMA (DMAEN, DLEN, DC, ADCS) and LoSSI (LEN, LTOH, LEN_LONG, DMA_LEN): these registers and bits are
//! kept; while DMAEN or LEN is set no byte begins. Bidirectional mode: REN is kept and does nothing.
//! The pins' function select: SCLK, MOSI, MISO and the CE lines reach the wire whatever GPFSEL says.

mod regs;
mod shift;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use regs::{Cs, FIFO_BYTES, stat};

use crate::check::Rule;
use crate::chip::Ps;
use crate::model::ControllerBlock;
use crate::wire::{Driver, Wire};
use shift::Shifter;

/// What FIFO reads while RX FIFO is empty.
pub const UNDEFINED_FIFO: u32 = 0xa5;

/// The CE lines.
const LINES: u8 = 3;

/// What becomes of a block whose DONE nobody writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Done {
    /// Nothing: DONE is read-only, as in the manual.
    #[default]
    ReadOnly,
    /// The transfer after it breaks: DONE stays set in it.
    Needed,
}

/// One SPI0.
#[derive(Debug)]
pub struct Bcm2835Spi {
    core_hz: u64,
    cs: Cs,
    clk: u32,
    dlen: u32,
    ltoh: u32,
    dc: u32,
    /// Without the byte that is on the wire.
    tx: VecDeque<u8>,
    rx: VecDeque<u8>,
    shifter: Shifter,
    reading: Done,
    /// A byte was sent since a 1 was written to DONE.
    unacknowledged: bool,
    /// DONE is set whatever the block does.
    stuck: bool,
}

impl Bcm2835Spi {
    /// The block at reset, its core clock at `core_hz` (at least 1).
    #[must_use]
    pub fn new(core_hz: u64) -> Self {
        Self {
            core_hz: core_hz.max(1),
            cs: Cs::reset(),
            clk: 0,
            dlen: 0,
            ltoh: 1,
            dc: 0x3020_1020,
            tx: VecDeque::with_capacity(FIFO_BYTES),
            rx: VecDeque::with_capacity(FIFO_BYTES),
            shifter: Shifter::IDLE,
            reading: Done::ReadOnly,
            unacknowledged: false,
            stuck: false,
        }
    }

    /// The same with another reading of DONE.
    #[must_use]
    pub fn with_done(self, reading: Done) -> Self {
        Self { reading, ..self }
    }

    fn tx_full(&self) -> bool {
        self.tx.len() + usize::from(self.shifter.busy()) >= FIFO_BYTES
    }

    fn at_rest(&self) -> bool {
        self.tx.is_empty() && self.shifter.idle()
    }

    fn done(&self) -> bool {
        self.cs.ta() && (self.stuck || self.at_rest())
    }

    fn rxr(&self) -> bool {
        self.cs.ta() && self.rx.len() >= regs::RXR_BYTES
    }

    fn status(&self) -> u32 {
        let set = |bit: u32, condition: bool| if condition { bit } else { 0 };
        set(stat::DONE, self.done())
            | set(stat::RXD, !self.rx.is_empty())
            | set(stat::TXD, !self.tx_full())
            | set(stat::RXR, self.rxr())
            | set(stat::RXF, self.rx.len() == FIFO_BYTES)
    }

    fn pop_rx(&mut self, now: Ps, wire: &mut Wire) -> u32 {
        let Some(byte) = self.rx.pop_front() else {
            wire.log().report(now, Rule::RxEmpty, None, "FIFO read while RX FIFO is empty");
            return UNDEFINED_FIFO;
        };
        self.start(now, wire);
        byte.into()
    }

    fn push_tx(&mut self, value: u32, now: Ps, wire: &mut Wire) {
        let byte = value as u8;
        if !self.cs.ta() {
            let detail = format!("FIFO written while TA = 0: {byte:#04x} is lost");
            wire.log().report(now, Rule::Disabled, None, detail);
            return;
        }
        if self.tx_full() {
            let detail = format!("FIFO written while TX FIFO is full: {byte:#04x} is lost");
            wire.log().report(now, Rule::TxFull, None, detail);
            return;
        }
        let ended = self.at_rest() && self.rx.is_empty();
        self.stuck |= self.reading == Done::Needed && self.unacknowledged && ended;
        self.unacknowledged = true;
        self.tx.push_back(byte);
        self.start(now, wire);
    }

    fn write_cs(&mut self, value: u32, now: Ps, wire: &mut Wire) {
        if value & stat::DONE != 0 {
            self.stuck = false;
            // Of a transfer that goes on it is no end.
            self.unacknowledged &= !self.at_rest();
        }
        self.cs = Cs::new(value);
        if value & regs::CLEAR_TX != 0 {
            self.tx.clear();
        }
        if value & regs::CLEAR_RX != 0 {
            self.rx.clear();
        }
        if !self.cs.ta() {
            self.stop(now, wire);
        }
        self.rest(now, wire);
        self.start(now, wire);
    }

    /// Ordering 1: the lines take the levels CS gives them, SCLK not before its byte is over.
    fn rest(&mut self, now: Ps, wire: &mut Wire) {
        if !self.shifter.busy() {
            wire.set_sck(self.cs.cpol(), now);
        }
        for line in 0..LINES {
            let active = self.cs.ta() && self.cs.chip_select() == line;
            wire.drive(Driver::Native(line), active == self.cs.active_high(line), now);
        }
    }
}

impl ControllerBlock for Bcm2835Spi {
    fn read(&mut self, offset: u32, now: Ps, wire: &mut Wire) -> u32 {
        self.run_to(now, wire);
        match offset {
            regs::CS => self.cs.bits() | self.status(),
            regs::FIFO => self.pop_rx(now, wire),
            regs::CLK => self.clk,
            regs::DLEN => self.dlen,
            regs::LTOH => self.ltoh,
            regs::DC => self.dc,
            _ => {
                let detail = format!("read of offset {offset:#x}, where SPI0 has no register");
                wire.log().report(now, Rule::BadAccess, None, detail);
                0
            }
        }
    }

    fn write(&mut self, offset: u32, value: u32, now: Ps, wire: &mut Wire) {
        self.run_to(now, wire);
        match offset {
            regs::CS => self.write_cs(value, now, wire),
            regs::FIFO => self.push_tx(value, now, wire),
            regs::CLK => self.clk = value & 0xffff,
            regs::DLEN => self.dlen = value & 0xffff,
            regs::LTOH => self.ltoh = value & 0xf,
            regs::DC => self.dc = value,
            _ => {
                let detail = format!("write to offset {offset:#x}, where SPI0 has no register");
                wire.log().report(now, Rule::BadAccess, None, detail);
            }
        }
    }

    fn catch_up(&mut self, now: Ps, wire: &mut Wire) {
        self.run_to(now, wire);
    }

    fn due(&self) -> Ps {
        self.shifter.due()
    }

    fn interrupt(&self) -> bool {
        self.cs.intd() && self.done() || self.cs.intr() && self.rxr()
    }
}
