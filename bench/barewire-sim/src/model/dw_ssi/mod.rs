//! Synopsys' DW_apb_ssi: registers, FIFOs and the exchange, in virtual time.
//!
//! *Read first*: the databook is not public; its register descriptions and its chapter on transfers
//! are reprinted in Raspberry Pi Ltd, *RP2040 Datasheet*, section 4.10, "SSI"
//! (<https://datasheets.raspberrypi.com/rp2040/rp2040-datasheet.pdf>), and in Intel, *Cyclone V Hard
//! Processor System Technical Reference Manual*, chapter "SPI Controller".
//!
//! # How it works
//! The model stands still between accesses. Each access first lets everything happen that is due
//! by then (by the rules in `shift`), frame by frame, and then acts on registers and FIFOs.
//!
//! The block is built to measure: [`Build`] says how many words the FIFOs hold and how long a frame
//! may be.
//!
//! Where the sources leave room the model takes the side that shows a driver's mistake:
//! - The block notices its first word a period of SCK after it was written, and sets BUSY only then.
//!   (The manuals say that it waits for an edge of its clock and that TFE has to be polled before
//!   BUSY.)
//! - A received word appears in the receive FIFO at its last capture, half a period before the frame
//!   ends, and BUSY clears half a period after that end, when the select line rises. So a chip select
//!   released as soon as the last word is there comes too early, and the wire says so.
//! - SCK takes the level of SCPOL when SSIENR becomes 1.
//! - CTRLR0, CTRLR1, MWCR and BAUDR written while SSIENR is 1, and SER written while BUSY is 1, are
//!   ignored and reported. So is a word that is written to a block that is disabled.
//! - DR of an empty receive FIFO reads a pattern.
//! - Clearing SSIENR stops the exchange at once, in the middle of a frame also, and empties both FIFOs.
//! - A threshold register keeps what it holds when a value is written that its FIFO cannot reach.
//!
//! # Ordering
//! 1. With SSIENR set, SER not 0, a divisor and a word in the transmit FIFO, the block notices the word
//!    after a period.
//! 2. The select lines that SER names fall, and BUSY is set; half a period later the first cell begins
//!    and the word leaves the transmit FIFO.
//! 3. At the last capture the word is in the receive FIFO, or lost: RXO.
//! 4. If there is a word, the next frame follows without a gap.
//! 5. Else the select lines rise half a period later, and BUSY clears. With SSTE and SCPH = 0 they do
//!    so after every frame.
//!
//! # Not supported
//! Target mode; Texas Instruments' and National Semiconductor's frame formats (FRF); transmit-only,
//! receive-only and EEPROM transfers (TMOD): with them nothing starts. DMA requests, Microwire and
//! RX_SAMPLE_DLY: the registers are kept. Dual and quad formats. Contention between two controllers
//! (MST).

mod regs;
mod shift;
#[cfg(test)]
mod tests;

use regs::{Ctrlr0, int, sr};

use crate::check::Rule;
use crate::chip::Ps;
use crate::model::ControllerKind;
use crate::model::block::{RegisterBlock, levels};
use crate::model::fifo::Fifo;
use crate::model::shifter::Shifter;
use crate::wire::Wire;

/// Synopsys' DW_apb_ssi as RP1 has it.
pub const KIND: ControllerKind = ControllerKind {
    name: "DW_apb_ssi",
    bytes: 0x130,
    registers: &[
        (0x00, "CTRLR0"),
        (0x08, "SSIENR"),
        (0x10, "SER"),
        (0x14, "BAUDR"),
        (0x18, "TXFTLR"),
        (0x1c, "RXFTLR"),
        (0x20, "TXFLR"),
        (0x24, "RXFLR"),
        (0x28, "SR"),
        (0x2c, "IMR"),
        (0x30, "ISR"),
        (0x34, "RISR"),
        (0x48, "ICR"),
        (0x4c, "DMACR"),
        (0x60, "DR"),
    ],
    model: |reference_hz, _| Box::new(DwSsi::new(reference_hz, Build::RP1)),
    #[cfg(test)]
    exchange: tests::exchange,
};

/// What DR reads while the receive FIFO is empty.
pub const UNDEFINED_DR: u32 = 0xa55a_a55a;

/// How a block was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    /// Words that the transmit FIFO holds, 2 to 256.
    pub tx_words: usize,
    /// Words that the receive FIFO holds, 2 to 256.
    pub rx_words: usize,
    /// Frames have up to 32 bits, set in DFS_32; else up to 16, set in DFS.
    pub wide: bool,
    /// Select lines, 1 to 16.
    pub lines: u8,
}

impl Build {
    /// SPI0 of RP1. Depth and frames as LinuxCNC's driver has them (B. Stultiens, `rp1dev.h` of
    /// hm2_spix, December 2024, <https://github.com/LinuxCNC/linuxcnc/pull/3209>); lines as in
    /// Raspberry Pi's device tree (`num-cs` of `rp1.dtsi`).
    pub const RP1: Self = Self { tx_words: 64, rx_words: 64, wide: true, lines: 2 };
}

/// One DW_apb_ssi.
#[derive(Debug)]
pub struct DwSsi {
    ssi_clk_hz: u64,
    build: Build,
    ctrlr0: Ctrlr0,
    ctrlr1: u32,
    enabled: bool,
    mwcr: u32,
    ser: u32,
    baudr: u32,
    txftlr: u32,
    rxftlr: u32,
    imr: u32,
    /// TXO, RXU, RXO.
    sticky: u32,
    dmacr: u32,
    dmatdlr: u32,
    dmardlr: u32,
    rx_sample_dly: u32,
    /// The words to send, without the one that is on the wire.
    tx: Fifo,
    rx: Fifo,
    shifter: Shifter,
}

impl DwSsi {
    /// The block at reset, ssi_clk at `ssi_clk_hz` (at least 1).
    ///
    /// # Panics
    /// If `build` is outside the bounds that its fields name.
    #[must_use]
    pub fn new(ssi_clk_hz: u64, build: Build) -> Self {
        let words = [build.tx_words, build.rx_words];
        assert!(words.iter().all(|words| (2..=256).contains(words)), "{build:?}");
        assert!((1..=16).contains(&build.lines), "{build:?}");
        Self {
            ssi_clk_hz: ssi_clk_hz.max(1),
            build,
            ctrlr0: Ctrlr0::kept(if build.wide { 7 << 16 } else { 7 }, build.wide),
            ctrlr1: 0,
            enabled: false,
            mwcr: 0,
            ser: 0,
            baudr: 0,
            txftlr: 0,
            rxftlr: 0,
            imr: 0x3f,
            sticky: 0,
            dmacr: 0,
            dmatdlr: 0,
            dmardlr: 0,
            rx_sample_dly: 0,
            tx: Fifo::new(build.tx_words),
            rx: Fifo::new(build.rx_words),
            shifter: Shifter::default(),
        }
    }

    fn status(&self) -> u32 {
        levels([
            (sr::BUSY, self.busy()),
            (sr::TFNF, !self.tx.is_full()),
            (sr::TFE, self.tx.is_empty()),
            (sr::RFNE, !self.rx.is_empty()),
            (sr::RFF, self.rx.is_full()),
        ])
    }

    /// RISR. TXE is set while the block is enabled only.
    fn raw_interrupts(&self) -> u32 {
        let levels = levels([
            (int::TXE, self.enabled && self.tx.count() <= self.txftlr as usize),
            (int::RXF, self.rx.count() > self.rxftlr as usize),
        ]);
        self.sticky | levels
    }

    fn pop_rx(&mut self, now: Ps, wire: &mut Wire) -> u32 {
        self.rx.pop().unwrap_or_else(|| {
            self.sticky |= int::RXU;
            wire.log().report(now, Rule::RxEmpty, None, "DR read while the receive FIFO is empty");
            UNDEFINED_DR
        })
    }

    fn push_tx(&mut self, value: u32, now: Ps, wire: &mut Wire) {
        if !self.enabled {
            let detail = format!("DR written while SSIENR = 0: {value:#x} is lost");
            wire.log().report(now, Rule::Disabled, None, detail);
        } else if !self.tx.push(value) {
            self.sticky |= int::TXO;
            let detail = format!("DR written while the transmit FIFO is full: {value:#x} is lost");
            wire.log().report(now, Rule::TxFull, None, detail);
        }
    }

    /// Reading one of the clear registers clears `bits`.
    fn clear(&mut self, bits: u32) -> u32 {
        let was = self.sticky & bits != 0;
        self.sticky &= !bits;
        was.into()
    }

    fn write_ssienr(&mut self, value: u32, now: Ps, wire: &mut Wire) {
        let enabled = value & 1 != 0;
        if self.enabled && !enabled {
            self.stop(now, wire);
        } else if enabled && !self.enabled {
            wire.set_sck(self.ctrlr0.scpol(), now);
        }
        self.enabled = enabled;
    }
}

impl RegisterBlock for DwSsi {
    const NAME: &'static str = "the SSI";

    fn stored(&mut self, offset: u32) -> Option<(&mut u32, u32)> {
        let ctrlr0 = Ctrlr0::kept(u32::MAX, self.build.wide).0;
        Some(match offset {
            regs::CTRLR0 => (&mut self.ctrlr0.0, ctrlr0),
            regs::CTRLR1 => (&mut self.ctrlr1, 0xffff),
            regs::MWCR => (&mut self.mwcr, 0x7),
            regs::SER => (&mut self.ser, (1 << self.build.lines) - 1),
            // Even numbers only: the least significant bit reads as zero.
            regs::BAUDR => (&mut self.baudr, 0xfffe),
            regs::IMR => (&mut self.imr, 0x3f),
            regs::DMACR => (&mut self.dmacr, 0x3),
            regs::RX_SAMPLE_DLY => (&mut self.rx_sample_dly, 0xff),
            _ => return None,
        })
    }

    fn get(&mut self, offset: u32, now: Ps, wire: &mut Wire) -> Option<u32> {
        Some(match offset {
            regs::SSIENR => self.enabled.into(),
            regs::TXFTLR => self.txftlr,
            regs::RXFTLR => self.rxftlr,
            regs::TXFLR => self.tx.count() as u32,
            regs::RXFLR => self.rx.count() as u32,
            regs::SR => self.status(),
            regs::ISR => self.raw_interrupts() & self.imr,
            regs::RISR => self.raw_interrupts(),
            regs::TXOICR => self.clear(int::TXO),
            regs::RXOICR => self.clear(int::RXO),
            regs::RXUICR => self.clear(int::RXU),
            regs::MSTICR => self.clear(int::MST),
            regs::ICR => self.clear(int::TXO | int::RXO | int::RXU | int::MST),
            regs::DMATDLR => self.dmatdlr,
            regs::DMARDLR => self.dmardlr,
            regs::IDR => regs::ID,
            regs::SSI_VERSION_ID => regs::VERSION,
            regs::DR0..=regs::DR35 if offset.is_multiple_of(4) => self.pop_rx(now, wire),
            _ => return None,
        })
    }

    fn set(&mut self, offset: u32, value: u32, now: Ps, wire: &mut Wire) -> bool {
        match offset {
            regs::SSIENR => self.write_ssienr(value, now, wire),
            regs::TXFTLR if (value as usize) < self.build.tx_words => self.txftlr = value,
            regs::RXFTLR if (value as usize) < self.build.rx_words => self.rxftlr = value,
            regs::DMATDLR if (value as usize) < self.build.tx_words => self.dmatdlr = value,
            regs::DMARDLR if (value as usize) < self.build.rx_words => self.dmardlr = value,
            regs::DR0..=regs::DR35 if offset.is_multiple_of(4) => self.push_tx(value, now, wire),
            // Refused above, or read-only.
            _ => return offset.is_multiple_of(4) && offset <= regs::RX_SAMPLE_DLY,
        }
        true
    }

    fn ignores(&mut self, offset: u32, _value: u32, now: Ps, wire: &mut Wire) -> bool {
        const ENABLED: &str = "SSIENR = 1";
        let (held, name, why) = match offset {
            regs::CTRLR0 => (self.enabled, "CTRLR0", ENABLED),
            regs::CTRLR1 => (self.enabled, "CTRLR1", ENABLED),
            regs::MWCR => (self.enabled, "MWCR", ENABLED),
            regs::BAUDR => (self.enabled, "BAUDR", ENABLED),
            regs::SER => (self.busy(), "SER", "BUSY = 1"),
            _ => return false,
        };
        if held {
            let detail = format!("{name} written while {why}: ignored");
            wire.log().report(now, Rule::Disabled, None, detail);
        }
        held
    }

    fn written(&mut self, now: Ps, _wire: &mut Wire) {
        self.start(now);
    }

    fn interrupts(&self) -> bool {
        self.raw_interrupts() & self.imr != 0
    }
}
