//! SiFive SPI: registers, FIFOs and the exchange, in virtual time.
//!
//! *Read first*: SiFive, *SiFive FU540-C000 Manual*, chapter "Serial Peripheral Interface (SPI)". For
//! what it leaves open: SiFive, *sifive-blocks*, 2016, the block's register-transfer source, as kept
//! in [Chipyard](https://github.com/ucb-bar/chipyard/tree/main/generators/rocket-chip-blocks/src/main/scala/devices/spi):
//! `SPIMedia` (select lines and delays), `SPIPhysical` (SCK, and when SCKDIV and FMT are taken over),
//! `SPIFIFO`, `TLSPI`.
//!
//! # How it works
//! The model does nothing between accesses. Each access first processes everything due by then,
//! frame by frame (by the rules in `shift`), and then acts on registers and FIFOs.
//!
//! "Selected" is a state of the block, not of a line: under OFF it is selected and no line is active.
//!
//! - Before a frame the block selects, if it is not selected. It takes CSID, CSDEF and CSMODE then.
//! - Under AUTO it is selected for one frame. Under HOLD and OFF it stays selected until CSMODE, or the
//!   line that CSID and CSDEF name, changes.
//! - SCKDIV and SCKMODE are taken over while it is not selected, and at the moment of release. FMT is
//!   taken over by each frame.
//! - A byte appears in the receive FIFO at its last capture, half a period before the frame ends. So a
//!   chip select that is released as soon as the last byte is received comes too early, and the
//!   wire reports it.
//! - A byte written to a full FIFO, and a byte received by one, is lost. No register tells. The model
//!   reports both.
//! - RXDATA of an empty FIFO reads a pattern, with its flag set.
//! - While FCTRL is set, the flash interface has the block: bytes stay in the transmit FIFO.
//!
//! # Ordering
//! 1. Assert: a cycle of the input clock after a byte was written, the line becomes active.
//! 2. Frame: `cssck` periods later the first cell begins.
//! 3. Capture: at the last sampling edge the byte goes to the receive FIFO.
//! 4. Boundary: the next frame follows `interxfr` periods later, if the block stays selected.
//! 5. Release: otherwise the line becomes inactive `sckcs` periods later, and stays so for `intercs`
//!    periods.
//!
//! # Not supported
//! Frames other than of 8 bits on single lines, which are reported and not sent; the flash interface
//! (FFMT is stored); the registers `extradel` and `sampledel` of later versions.

mod regs;
mod shift;
#[cfg(test)]
mod tests;

use regs::{AUTO, Clock, FIFO_BYTES, FLAG, OFF, RXWM, TXWM};

use crate::check::Rule;
use crate::chip::Ps;
use crate::model::ControllerKind;
use crate::model::block::{RegisterBlock, levels};
use crate::model::fifo::Fifo;
use crate::model::shifter::Shifter;
use crate::wire::Wire;

/// SiFive SPI, as the FU540-C000's SPI0: with the flash interface and one select line.
pub const KIND: ControllerKind = ControllerKind {
    name: "SiFive SPI",
    bytes: 0x1000,
    registers: &[
        (0x00, "sckdiv"),
        (0x04, "sckmode"),
        (0x10, "csid"),
        (0x14, "csdef"),
        (0x18, "csmode"),
        (0x28, "delay0"),
        (0x2c, "delay1"),
        (0x40, "fmt"),
        (0x48, "txdata"),
        (0x4c, "rxdata"),
        (0x50, "txmark"),
        (0x54, "rxmark"),
        (0x60, "fctrl"),
        (0x70, "ie"),
        (0x74, "ip"),
    ],
    model: |reference_hz, _| Box::new(SiFive::new(reference_hz, 1)),
    #[cfg(test)]
    exchange: tests::exchange,
};

/// What RXDATA holds beside its flag while the receive FIFO is empty.
pub const UNDEFINED_RXDATA: u32 = 0xa5;

/// The select line that was taken, and the level that makes it active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ActiveLine {
    line: u32,
    active: bool,
}

/// One block.
#[derive(Debug)]
pub struct SiFive {
    clk_hz: u64,
    lines: u32,
    sckdiv: u32,
    sckmode: u32,
    csid: u32,
    csdef: u32,
    csmode: u32,
    delay0: u32,
    delay1: u32,
    fmt: u32,
    txmark: u32,
    rxmark: u32,
    fctrl: u32,
    ffmt: u32,
    ie: u32,
    tx: Fifo,
    rx: Fifo,
    /// SCKDIV and SCKMODE as the shifter has taken them over.
    clock: Clock,
    taken: Option<ActiveLine>,
    /// The block is to be released after the frame.
    release: bool,
    /// The frame is received.
    receives: bool,
    shifter: Shifter,
}

impl SiFive {
    /// The block at reset, with an input clock of `clk_hz` (at least 1) and `lines` select lines, 1 to
    /// 32.
    ///
    /// # Panics
    /// If `lines` is not among those.
    #[must_use]
    pub fn new(clk_hz: u64, lines: u32) -> Self {
        assert!((1..=32).contains(&lines), "1 to 32 select lines, not {lines}");
        let (sckdiv, sckmode) = (3, 0);
        Self {
            clk_hz: clk_hz.max(1),
            lines,
            sckdiv,
            sckmode,
            csid: 0,
            csdef: u32::MAX >> (32 - lines),
            csmode: AUTO,
            delay0: 0x0001_0001,
            delay1: 0x0000_0001,
            fmt: 8 << 16,
            txmark: 0,
            rxmark: 0,
            fctrl: 1,
            ffmt: 0x0003_0007,
            ie: 0,
            tx: Fifo::new(FIFO_BYTES),
            rx: Fifo::new(FIFO_BYTES),
            clock: Clock { sckdiv, sckmode },
            taken: None,
            release: false,
            receives: true,
            shifter: Shifter::default(),
        }
    }

    fn pending(&self) -> u32 {
        levels([
            (TXWM, self.tx.count() < self.txmark as usize),
            (RXWM, self.rx.count() > self.rxmark as usize),
        ])
    }

    fn pop_rx(&mut self) -> u32 {
        // The manual defines what reading an empty FIFO means, so that is no complaint.
        self.rx.pop().unwrap_or(FLAG | UNDEFINED_RXDATA)
    }

    fn push_tx(&mut self, value: u32, now: Ps, wire: &mut Wire) {
        if !self.tx.push(value & 0xff) {
            let detail =
                format!("TXDATA written while the transmit FIFO is full: {value:#x} is lost");
            wire.log().report(now, Rule::TxFull, None, detail);
            return;
        }
        self.wake(now);
    }

    fn write_csmode(&mut self, value: u32, now: Ps) {
        if value == self.csmode {
            return;
        }
        self.csmode = value;
        self.release_wanted();
        self.wake(now);
    }
}

impl RegisterBlock for SiFive {
    const NAME: &'static str = "SiFive SPI";

    fn stored(&mut self, offset: u32) -> Option<(&mut u32, u32)> {
        let lines = u32::MAX >> (32 - self.lines);
        Some(match offset {
            regs::SCKDIV => (&mut self.sckdiv, 0xfff),
            regs::SCKMODE => (&mut self.sckmode, 3),
            // As wide as the number of lines needs.
            regs::CSID => (&mut self.csid, self.lines.next_power_of_two() - 1),
            regs::CSDEF => (&mut self.csdef, lines),
            regs::DELAY0 => (&mut self.delay0, 0x00ff_00ff),
            regs::DELAY1 => (&mut self.delay1, 0x00ff_00ff),
            regs::FMT => (&mut self.fmt, 0x000f_000f),
            regs::TXMARK => (&mut self.txmark, 0xf),
            regs::RXMARK => (&mut self.rxmark, 0xf),
            regs::FFMT => (&mut self.ffmt, u32::MAX),
            regs::IE => (&mut self.ie, TXWM | RXWM),
            _ => return None,
        })
    }

    fn get(&mut self, offset: u32, _now: Ps, _wire: &mut Wire) -> Option<u32> {
        Some(match offset {
            regs::CSMODE => self.csmode,
            regs::TXDATA if self.tx.is_full() => FLAG,
            regs::TXDATA => 0,
            regs::RXDATA => self.pop_rx(),
            regs::FCTRL => self.fctrl,
            regs::IP => self.pending(),
            _ => return None,
        })
    }

    fn set(&mut self, offset: u32, value: u32, now: Ps, wire: &mut Wire) -> bool {
        match offset {
            regs::CSMODE if value & 3 == 1 => {
                let detail = "CSMODE written with 1, which is reserved";
                wire.log().report(now, Rule::BadAccess, None, detail);
            }
            regs::CSMODE => self.write_csmode(value & OFF, now),
            regs::TXDATA => self.push_tx(value, now, wire),
            regs::FCTRL => {
                self.fctrl = value & 1;
                self.wake(now);
            }
            // Read-only.
            regs::RXDATA | regs::IP => {}
            _ => return false,
        }
        true
    }

    fn written(&mut self, now: Ps, wire: &mut Wire) {
        self.follow(now, wire);
    }

    fn interrupts(&self) -> bool {
        self.pending() & self.ie != 0
    }
}
