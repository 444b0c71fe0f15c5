//! The ARM PrimeCell SSP PL022: registers, FIFOs and the exchange, in virtual time.
//!
//! *Read first*: ARM DDI 0194, chapter 2 (Motorola SPI frame format, the four timing figures;
//! interrupts) and chapter 3 (registers).
//!
//! # How it works
//! The model does nothing between accesses. Each access first processes everything due by then,
//! word by word (by the rules in `shift`), and then acts on registers and FIFOs.
//!
//! With SPH = 0 SSPFSSOUT is high for a period of SSPCLKOUT between two words, so a word of n bits
//! takes n + 2 periods. With SPH = 1 it stays low, and words follow without a gap while the
//! transmit FIFO has them. (Measured on RP2040's PL022: a gap of about two clocks in mode 0, none
//! in mode 1; <https://github.com/raspberrypi/pico-examples/issues/285>.)
//!
//! Where the manual is ambiguous, the model takes the reading that exposes a driver's mistake:
//! - A received word appears in the receive FIFO at its last capture, a period before SSPFSSOUT
//!   rises and BSY clears. So a chip select that is released as soon as the last word is received
//!   comes too early, and the wire reports it.
//! - SSPCLKOUT takes the level of SPO when SSE becomes 1. A write to SPO while SSE = 1 moves it
//!   only with the next word, while the chip is selected (observed on RP2040: pico-sdk issue 868,
//!   Zephyr pull request 91353).
//! - SSPDR of an empty receive FIFO reads a pattern.
//! - SSE = 0 stops at once, even in the middle of a word, which is then in neither FIFO. The FIFOs
//!   keep their contents. So BSY, which is set while the transmit FIFO has words, may stay set.
//! - SSPCPSR's reset value 0 is no divisor: there is no clock until it is at least 2.
//! - The receive timeout counts from the end of the exchange or the last read of SSPDR, whichever
//!   is later ("no read prior to timeout period"), and only while SSE = 1. After RTIC it is set
//!   again only after another read or word.
//!
//! # Ordering
//! 1. Select: SSPFSSOUT falls. Half a period later the first cell begins, with SPH = 1 also the
//!    first edge.
//! 2. Capture: at the last capture the word goes to the receive FIFO, or is lost: ROR.
//! 3. Boundary: with SPH = 1 the next word follows, if there is one.
//! 4. Release: otherwise SSPFSSOUT rises a period after that capture, for at least a period. Step 1
//!    follows if there are words; otherwise BSY clears.
//! 5. Timeout: after 32 periods without a word or a read, with words in the receive FIFO: RT.
//!
//! # Not supported
//! - Another controller that clocks (MS, SOD).
//! - The frame formats of Texas Instruments and National Semiconductor (FRF), and reserved values
//!   of DSS: with them no transfer starts.
//! - DMA requests (SSPDMACR is stored).
//! - The test registers.
//! - Synchronization between PCLK and SSPCLK.

mod regs;
mod shift;
#[cfg(test)]
mod tests;

use regs::{FIFO_WORDS, HALF_FIFO_WORDS, Sspcr0, Sspcr1, int, sr};

use crate::check::Rule;
use crate::chip::Ps;
use crate::model::ControllerKind;
use crate::model::block::{RegisterBlock, levels};
use crate::model::fifo::Fifo;
use crate::model::shifter::Shifter;
use crate::wire::{Driver, Wire};

/// ARM PrimeCell SSP PL022.
pub const KIND: ControllerKind = ControllerKind {
    name: "PL022",
    bytes: 0x1000,
    registers: &[
        (0x00, "SSPCR0"),
        (0x04, "SSPCR1"),
        (0x08, "SSPDR"),
        (0x0c, "SSPSR"),
        (0x10, "SSPCPSR"),
        (0x14, "SSPIMSC"),
        (0x18, "SSPRIS"),
        (0x20, "SSPICR"),
        (0x24, "SSPDMACR"),
    ],
    model: |reference_hz, _| Box::new(Pl022::new(reference_hz)),
    #[cfg(test)]
    exchange: tests::exchange,
};

/// The value of SSPDR while the receive FIFO is empty.
pub const UNDEFINED_SSPDR: u32 = 0xa55a;

/// One PL022.
#[derive(Debug)]
pub struct Pl022 {
    sspclk_hz: u64,
    sspcr0: Sspcr0,
    sspcr1: Sspcr1,
    sspcpsr: u32,
    sspimsc: u32,
    sspdmacr: u32,
    /// ROR and RT.
    sticky: u32,
    tx: Fifo,
    rx: Fifo,
    shifter: Shifter,
    /// The time at which RT is set; [`Ps::MAX`] for never.
    timeout_at: Ps,
}

impl Pl022 {
    /// The block at reset, SSPCLK at `sspclk_hz` (at least 1).
    #[must_use]
    pub fn new(sspclk_hz: u64) -> Self {
        Self {
            sspclk_hz: sspclk_hz.max(1),
            sspcr0: Sspcr0::default(),
            sspcr1: Sspcr1::default(),
            sspcpsr: 0,
            sspimsc: 0,
            sspdmacr: 0,
            sticky: 0,
            tx: Fifo::new(FIFO_WORDS),
            rx: Fifo::new(FIFO_WORDS),
            shifter: Shifter::default(),
            timeout_at: Ps::MAX,
        }
    }

    fn status(&self) -> u32 {
        levels([
            (sr::TFE, self.tx.is_empty()),
            (sr::TNF, !self.tx.is_full()),
            (sr::RNE, !self.rx.is_empty()),
            (sr::RFF, self.rx.is_full()),
            (sr::BSY, !self.tx.is_empty() || self.busy()),
        ])
    }

    /// SSPRIS. TX is not qualified by SSE: it is set at reset.
    fn raw_interrupts(&self) -> u32 {
        let levels = levels([
            (int::RX, self.rx.count() >= HALF_FIFO_WORDS),
            (int::TX, self.tx.count() <= HALF_FIFO_WORDS),
        ]);
        self.sticky | levels
    }

    fn pop_rx(&mut self, now: Ps, wire: &mut Wire) -> u32 {
        let Some(word) = self.rx.pop() else {
            let detail = "SSPDR read while the receive FIFO is empty";
            wire.log().report(now, Rule::RxEmpty, None, detail);
            return UNDEFINED_SSPDR;
        };
        if self.rx.is_empty() {
            self.sticky &= !int::RT;
        }
        self.arm_timeout(now);
        word
    }

    fn push_tx(&mut self, value: u32, now: Ps, wire: &mut Wire) {
        // Words have 16 bits.
        if !self.tx.push(value & 0xffff) {
            let detail =
                format!("SSPDR written while the transmit FIFO is full: {value:#x} is lost");
            wire.log().report(now, Rule::TxFull, None, detail);
        }
    }

    fn write_sspcr1(&mut self, value: u32, now: Ps, wire: &mut Wire) {
        let before = self.sspcr1;
        // MS can be modified while SSE = 0 only.
        let kept = if before.sse() { Sspcr1::MS } else { 0 };
        self.sspcr1 = Sspcr1(value & 0xf & !kept | before.0 & kept);
        match (before.sse(), self.sspcr1.sse()) {
            (false, true) => {
                wire.set_sck(self.sspcr0.spo(), now);
                wire.set_mosi(false, now);
                self.arm_timeout(now);
            }
            (true, false) => self.stop(now, wire),
            _ => {}
        }
    }

    fn stop(&mut self, now: Ps, wire: &mut Wire) {
        wire.abort_run(now);
        self.shifter = Shifter::default();
        self.timeout_at = Ps::MAX;
        wire.drive(Driver::Native(0), true, now);
    }
}

impl RegisterBlock for Pl022 {
    const NAME: &'static str = "the PL022";

    fn stored(&mut self, offset: u32) -> Option<(&mut u32, u32)> {
        Some(match offset {
            regs::SSPCR0 => (&mut self.sspcr0.0, 0xffff),
            // Even numbers only: the least significant bit reads as zero.
            regs::SSPCPSR => (&mut self.sspcpsr, 0xfe),
            regs::SSPIMSC => (&mut self.sspimsc, 0xf),
            regs::SSPDMACR => (&mut self.sspdmacr, 0x3),
            _ => return None,
        })
    }

    fn get(&mut self, offset: u32, now: Ps, wire: &mut Wire) -> Option<u32> {
        Some(match offset {
            regs::SSPCR1 => self.sspcr1.0,
            regs::SSPDR => self.pop_rx(now, wire),
            regs::SSPSR => self.status(),
            regs::SSPRIS => self.raw_interrupts(),
            regs::SSPMIS => self.raw_interrupts() & self.sspimsc,
            // Write-only.
            regs::SSPICR => 0,
            regs::SSP_PERIPH_ID0..=regs::SSP_PCELL_ID3 if offset.is_multiple_of(4) => {
                regs::IDS[((offset - regs::SSP_PERIPH_ID0) / 4) as usize]
            }
            _ => return None,
        })
    }

    fn set(&mut self, offset: u32, value: u32, now: Ps, wire: &mut Wire) -> bool {
        match offset {
            regs::SSPDR => self.push_tx(value, now, wire),
            regs::SSPCR1 => self.write_sspcr1(value, now, wire),
            regs::SSPICR => {
                if value & int::RT != 0 {
                    self.timeout_at = Ps::MAX;
                }
                self.sticky &= !value;
            }
            // Read-only.
            regs::SSPSR | regs::SSPRIS | regs::SSPMIS => {}
            regs::SSP_PERIPH_ID0..=regs::SSP_PCELL_ID3 if offset.is_multiple_of(4) => {}
            _ => return false,
        }
        true
    }

    fn written(&mut self, now: Ps, _wire: &mut Wire) {
        self.start(now);
    }

    fn interrupts(&self) -> bool {
        self.raw_interrupts() & self.sspimsc != 0
    }
}
