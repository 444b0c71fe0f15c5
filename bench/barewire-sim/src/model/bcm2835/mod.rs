//! SPI0 of the BCM2835: registers, FIFOs and the exchange, in virtual time.
//!
//! *Read first*: BCM2835 ARM Peripherals, chapter 10, SPI, with its errata
//! (<https://elinux.org/BCM2835_datasheet_errata>): CDIV may be any even number, not only a power
//! of two. BCM2711 ARM Peripherals, chapter 9, is the same chapter corrected: there the interrupt
//! recipe moves 64 and 48 bytes at a time. The block is the same from BCM2835 to BCM2711; its core
//! clock is not.
//!
//! # How it works
//! The model does nothing between accesses. Each access first processes everything due by then,
//! byte by byte (by the rules in `shift`), and then acts on registers and FIFOs.
//!
//! A byte takes nine clocks: SCLK rests for one clock after its eight. The manual does not mention
//! this. A comment in Linux's driver does, and Scott Ellis saw it on an oscilloscope (*Analyzing
//! SPI driver performance on the Raspberry Pi*, 15 February 2017,
//! <http://jumpnowtek.com/rpi/Analyzing-raspberry-pi-spi-performance.html>). He left open whether
//! the last byte has the ninth clock too.
//!
//! Where the manual is ambiguous, the model takes the reading that exposes a driver's mistake:
//! - The last byte has its ninth clock too, and DONE sets after it.
//! - A received byte appears in RX FIFO at its last sampling edge, half a period before the end of
//!   its last cell. So a chip select that is released as soon as the last byte is received comes
//!   too early, and with CPHA = 0 the wire reports it.
//! - A byte keeps its place in TX FIFO until that edge. So there is room for 64 bytes at once in
//!   total, although one of them is in the shift register.
//! - TA = 0 ends a byte in its middle; its bits are lost. Both FIFOs keep their contents. So
//!   received bytes can still be read, as the manual's recipe does, and unsent bytes are sent first
//!   in the next transfer unless CLEAR drops them.
//! - A write to FIFO while TA = 0 is lost and reported. The manual says that such writes go into
//!   DLEN and CS, for DMA, and that bytes go to TX FIFO while TA = 1.
//! - A read of FIFO while RX FIFO is empty returns a pattern.
//! - CDIV = 1 is odd, so it is rounded down to 0, which means 65,536.
//! - A CE line is active high if either its CSPOLn or CSPOL says so: the manual has both bits and
//!   does not say how they combine.
//!
//! # Ordering
//! 1. Write to CS: it clears the FIFOs as asked; then SCLK takes the level of CPOL, whatever TA is;
//!    then the CE lines move. With TA = 1 the line of the field CS is active, with TA = 0 none is.
//! 2. Begin: a byte begins as soon as TA = 1, TX FIFO has one, RX FIFO has room for the received
//!    byte, and the previous byte's nine clocks are over. Its cell begins at that instant, without
//!    a lead after CE.
//! 3. Sample: at the last sampling edge the received byte is in RX FIFO, and a place in TX FIFO is
//!    free.
//! 4. End: after the ninth clock the next byte begins, or SCLK rests. DONE is set while TA = 1, no
//!    byte is on the wire and TX FIFO is empty. So it is set together with TA, before anything was
//!    written.
//!
//! # DONE
//! In the manual DONE is read-only. A comment in Linux's driver says that transmission sometimes
//! breaks unless DONE is written at the end of every transfer, and that DONE may be RW1C or the
//! block may have an erratum (Lukas Wunner, *spi: bcm2835: Work around DONE bit erratum*, August
//! 2019). How it breaks is not known. [`Done`] selects the model's reading. [`Done::ReadOnly`] is
//! the manual's. With [`Done::Needed`], a byte written while the block is at rest and RX FIFO is
//! empty does not clear DONE, unless a 1 was written to DONE since the last transfer. DONE then
//! stays set, and interrupts, until a 1 is written. A driver that trusts it reads an empty RX FIFO,
//! or moves CS in the middle of a byte.
//!
//! # Not supported
//! - DMA (DMAEN, DLEN, DC, ADCS) and LoSSI (LEN, LTOH, LEN_LONG, DMA_LEN): these registers and bits
//!   are stored. While DMAEN or LEN is set no byte begins.
//! - Bidirectional mode: REN is stored and has no effect.
//! - The pins' function select: SCLK, MOSI, MISO and the CE lines reach the wire whatever GPFSEL
//!   says.

mod regs;
mod shift;
#[cfg(test)]
mod tests;

use regs::{Cs, FIFO_BYTES, stat};

use crate::check::Rule;
use crate::chip::Ps;
use crate::model::ControllerKind;
use crate::model::block::{RegisterBlock, levels};
use crate::model::fifo::Fifo;
use crate::model::shifter::Shifter;
use crate::wire::{Driver, Wire};

/// SPI0 of BCM2835 and its successors up to BCM2711. Its option is [`Done`].
pub const KIND: ControllerKind = ControllerKind {
    name: "BCM2835 SPI0",
    bytes: 0x200,
    registers: &[(0x00, "CS"), (0x04, "FIFO"), (0x08, "CLK"), (0x0c, "DLEN")],
    model: |reference_hz, options| Box::new(Bcm2835Spi::new(reference_hz).with_done(options.get())),
    #[cfg(test)]
    exchange: tests::exchange,
};

/// The value of FIFO while RX FIFO is empty.
pub const UNDEFINED_FIFO: u32 = 0xa5;

/// The CE lines.
const LINES: u8 = 3;

/// How the block behaves if DONE is never written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Done {
    /// As in the manual: DONE is read-only.
    #[default]
    ReadOnly,
    /// The next transfer breaks: DONE stays set in it.
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
    /// Without the byte on the wire.
    tx: Fifo,
    rx: Fifo,
    shifter: Shifter,
    reading: Done,
    /// A byte was sent since a 1 was written to DONE.
    unacknowledged: bool,
    /// DONE is set regardless of the block's state.
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
            tx: Fifo::new(FIFO_BYTES),
            rx: Fifo::new(FIFO_BYTES),
            shifter: Shifter::default(),
            reading: Done::ReadOnly,
            unacknowledged: false,
            stuck: false,
        }
    }

    /// Selects another reading of DONE.
    #[must_use]
    pub fn with_done(self, reading: Done) -> Self {
        Self { reading, ..self }
    }

    fn tx_full(&self) -> bool {
        self.tx.count() + usize::from(self.busy()) >= FIFO_BYTES
    }

    fn at_rest(&self) -> bool {
        self.tx.is_empty() && self.shifter.is_idle()
    }

    fn done(&self) -> bool {
        self.cs.ta() && (self.stuck || self.at_rest())
    }

    fn rxr(&self) -> bool {
        self.cs.ta() && self.rx.count() >= regs::RXR_BYTES
    }

    fn status(&self) -> u32 {
        levels([
            (stat::DONE, self.done()),
            (stat::RXD, !self.rx.is_empty()),
            (stat::TXD, !self.tx_full()),
            (stat::RXR, self.rxr()),
            (stat::RXF, self.rx.is_full()),
        ])
    }

    fn pop_rx(&mut self, now: Ps, wire: &mut Wire) -> u32 {
        let Some(byte) = self.rx.pop() else {
            wire.log().report(now, Rule::RxEmpty, None, "FIFO read while RX FIFO is empty");
            return UNDEFINED_FIFO;
        };
        self.start(now, wire);
        byte
    }

    fn push_tx(&mut self, value: u32, now: Ps, wire: &mut Wire) {
        let byte = value & 0xff;
        if !self.cs.ta() {
            let detail = format!("FIFO written while TA = 0: {byte:#04x} is lost");
            wire.log().report(now, Rule::Disabled, None, detail);
            return;
        }
        let ended = self.at_rest() && self.rx.is_empty();
        if self.tx_full() || !self.tx.push(byte) {
            let detail = format!("FIFO written while TX FIFO is full: {byte:#04x} is lost");
            wire.log().report(now, Rule::TxFull, None, detail);
            return;
        }
        self.stuck |= self.reading == Done::Needed && self.unacknowledged && ended;
        self.unacknowledged = true;
    }

    fn write_cs(&mut self, value: u32, now: Ps, wire: &mut Wire) {
        if value & stat::DONE != 0 {
            self.stuck = false;
            // Written during a transfer, it does not acknowledge that transfer.
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
    }

    /// Ordering 1, write to CS: the lines take their levels. SCLK waits for the end of its byte.
    fn rest(&mut self, now: Ps, wire: &mut Wire) {
        if !self.busy() {
            wire.set_sck(self.cs.cpol(), now);
        }
        for line in 0..LINES {
            let active = self.cs.ta() && self.cs.chip_select() == line;
            wire.drive(Driver::Native(line), active == self.cs.active_high(line), now);
        }
    }
}

impl RegisterBlock for Bcm2835Spi {
    const NAME: &'static str = "SPI0";

    fn stored(&mut self, offset: u32) -> Option<(&mut u32, u32)> {
        Some(match offset {
            regs::CLK => (&mut self.clk, 0xffff),
            regs::DLEN => (&mut self.dlen, 0xffff),
            regs::LTOH => (&mut self.ltoh, 0xf),
            regs::DC => (&mut self.dc, u32::MAX),
            _ => return None,
        })
    }

    fn get(&mut self, offset: u32, now: Ps, wire: &mut Wire) -> Option<u32> {
        match offset {
            regs::CS => Some(self.cs.bits() | self.status()),
            regs::FIFO => Some(self.pop_rx(now, wire)),
            _ => None,
        }
    }

    fn set(&mut self, offset: u32, value: u32, now: Ps, wire: &mut Wire) -> bool {
        match offset {
            regs::CS => self.write_cs(value, now, wire),
            regs::FIFO => self.push_tx(value, now, wire),
            _ => return false,
        }
        true
    }

    fn written(&mut self, now: Ps, wire: &mut Wire) {
        self.start(now, wire);
    }

    fn interrupts(&self) -> bool {
        self.cs.intd() && self.done() || self.cs.intr() && self.rxr()
    }
}
