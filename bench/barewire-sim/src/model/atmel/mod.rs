//! The SPI of Atmel's (now Microchip's) SAM and SAMA5 without FIFOs, as in SAMA5D3: registers, the
//! two words in its pipe and the exchange, in virtual time.
//!
//! *Read first*: SAMA5D3 Series data sheet, chapter Serial Peripheral Interface (master mode
//! operations, peripheral selection and deselection, the figures of transfer formats and delays).
//!
//! # How it works
//! The model does nothing between accesses. Each access first processes everything due by then,
//! word by word (by the rules in `shift`), and then acts on registers.
//!
//! Two words are in the pipe: one in SPI_TDR, one in the shift register. SPI_RDR holds one received
//! word. The next word replaces it even if it was not read (OVRES; the first is lost), unless WDRBT
//! = 1: then a transfer does not start before SPI_RDR is read. NPCS rises when a transfer ends with
//! SPI_TDR empty, so a write that is too late ends a selection in the middle of a message. CSAAT =
//! 1 keeps NPCS active until LASTXFER or a transfer to another NPCS.
//!
//! Where the manual is ambiguous, the model takes the reading that exposes a driver's mistake:
//! - A received word is in SPI_RDR at its last sampling edge, half a period before the end of its
//!   cell. TXEMPTY sets after that end and DLYBCT. So a chip select that is released as soon as the
//!   last word is received comes too early, and the wire reports it.
//! - SPI_TDR goes to the shift register when NPCS falls, not before DLYBCS has passed. A write
//!   before that loses the earlier word.
//! - SPI_RDR holds, above the data, the level of the NPCS lines, as the manual says.
//! - LASTXFER of SPI_CR acts after the last word in the pipe, and at once if there is none. (The
//!   family's data sheets differ in whether to set it before or after the last word is written.)
//! - SPCK idles at the CPOL of the NPCS that SPI_MR selects (with PS = 1: of the last transfer),
//!   and only while the block is enabled. Otherwise its pins are inputs.
//! - If DLYBCT is 0, NPCS rises one period of MCK after the last cell, never with the edge itself.
//! - DLYBCS separates any two NPCS edges, also of the same line, and is at least 6 MCK.
//! - SPIDIS finishes the word on the wire, drops the word in SPI_TDR and releases NPCS.
//!
//! # Ordering
//! 1. Select: SPCK takes the idle level of the NPCS's CPOL, then NPCS falls. SPI_TDR goes to the
//!    shift register: TDRE.
//! 2. Lead: DLYBS later (0: half a period of SPCK) comes the first edge of SPCK.
//! 3. Sample: at the last sampling edge RDRF is set, perhaps with OVRES.
//! 4. Gap: the last cell ends. 32 x DLYBCT periods of MCK later the next word follows, if SPI_TDR
//!    has one for the same NPCS and neither CSNAAT nor LASTXFER prevents it. Otherwise TXEMPTY is
//!    set.
//! 5. Release: NPCS rises, or stays with CSAAT. Step 1 is at least DLYBCS away.
//!
//! # Not supported
//! - Another controller that clocks (MSTR = 0, NSSR, UNDES).
//! - A decoder behind NPCS (PCSDEC).
//! - No line at all (PCS = 1111), SCBR = 0 and reserved BITS: with these no transfer starts.
//! - Mode faults: no other device drives NPCS0, so MODF is never set.
//! - DMA requests.

mod regs;
mod shift;
#[cfg(test)]
mod tests;

use regs::{Csr, Mr, Tdr, cr, sr};

use crate::check::Rule;
use crate::chip::Ps;
use crate::model::ControllerKind;
use crate::model::block::{RegisterBlock, levels};
use crate::model::shifter::Shifter;
use crate::wire::Wire;

/// SPI of Atmel's SAM and SAMA5, without FIFOs.
pub const KIND: ControllerKind = ControllerKind {
    name: "Atmel SPI",
    bytes: 0x100,
    registers: &[
        (0x00, "CR"),
        (0x04, "MR"),
        (0x08, "RDR"),
        (0x0c, "TDR"),
        (0x10, "SR"),
        (0x14, "IER"),
        (0x18, "IDR"),
        (0x1c, "IMR"),
        (0x30, "CSR0"),
        (0x34, "CSR1"),
        (0x38, "CSR2"),
        (0x3c, "CSR3"),
    ],
    model: |reference_hz, _| Box::new(AtmelSpi::new(reference_hz)),
    #[cfg(test)]
    exchange: tests::exchange,
};

/// One SPI.
#[derive(Debug)]
pub struct AtmelSpi {
    mck_hz: u64,
    enabled: bool,
    /// SPIDIS waits for the word on the wire.
    disabling: bool,
    mr: Mr,
    csr: [Csr; 4],
    imr: u32,
    tdr: Option<Tdr>,
    rdr: u32,
    rdrf: bool,
    ovres: bool,
    /// LASTXFER of SPI_CR waits for the last word in the pipe.
    lastxfer: bool,
    write_protected: bool,
    wpsr: u32,
    /// The NPCS that is active.
    active: Option<u8>,
    /// The NPCS of the current or last word.
    line: u8,
    /// The current or last word.
    shifting: Tdr,
    shifter: Shifter,
}

impl AtmelSpi {
    /// The block at reset, MCK at `mck_hz` (at least 1).
    #[must_use]
    pub fn new(mck_hz: u64) -> Self {
        Self {
            mck_hz: mck_hz.max(1),
            enabled: false,
            disabling: false,
            mr: Mr::default(),
            csr: [Csr::default(); 4],
            imr: 0,
            tdr: None,
            rdr: 0,
            rdrf: false,
            ovres: false,
            lastxfer: false,
            write_protected: false,
            wpsr: 0,
            active: None,
            line: 0,
            shifting: Tdr::default(),
            shifter: Shifter::default(),
        }
    }

    fn status(&self) -> u32 {
        let empty = self.enabled && self.tdr.is_none();
        levels([
            (sr::RDRF, self.rdrf),
            (sr::TDRE, empty),
            (sr::OVRES, self.ovres),
            (sr::TXEMPTY, empty && self.done()),
            (sr::SPIENS, self.enabled),
        ])
    }

    fn write_cr(&mut self, value: u32, now: Ps, wire: &mut Wire) {
        if value & cr::SWRST != 0 {
            wire.abort_run(now);
            self.deselect(now, wire);
            *self = Self::new(self.mck_hz);
            return;
        }
        if value & cr::SPIDIS != 0 {
            self.disable(now, wire);
        } else if value & cr::SPIEN != 0 {
            self.enabled = true;
            self.disabling = false;
        }
        if value & cr::LASTXFER != 0 {
            self.last_transfer(now, wire);
        }
    }

    fn write_tdr(&mut self, value: u32, now: Ps, wire: &mut Wire) {
        let tdr = Tdr(value);
        if !self.enabled || self.disabling {
            let detail = format!("SPI_TDR written while SPIENS = 0: {:#x} is lost", tdr.td());
            wire.log().report(now, Rule::Disabled, None, detail);
            return;
        }
        if let Some(lost) = self.tdr.replace(tdr) {
            let detail = format!("SPI_TDR written while TDRE = 0: {:#x} is lost", lost.td());
            wire.log().report(now, Rule::TxFull, None, detail);
        }
    }
}

impl RegisterBlock for AtmelSpi {
    const NAME: &'static str = "the SPI";

    fn stored(&mut self, offset: u32) -> Option<(&mut u32, u32)> {
        match offset {
            regs::SPI_MR => Some((&mut self.mr.0, Mr::WRITABLE)),
            regs::SPI_CSR0..=regs::SPI_CSR3 if offset.is_multiple_of(4) => {
                let csr = &mut self.csr[((offset - regs::SPI_CSR0) / 4) as usize];
                Some((&mut csr.0, u32::MAX))
            }
            _ => None,
        }
    }

    fn get(&mut self, offset: u32, now: Ps, wire: &mut Wire) -> Option<u32> {
        Some(match offset {
            regs::SPI_RDR => {
                self.rdrf = false;
                let word = self.rdr;
                self.start(now, wire);
                word
            }
            regs::SPI_SR => {
                let status = self.status();
                self.ovres = false;
                status
            }
            regs::SPI_IMR => self.imr,
            regs::SPI_WPMR => self.write_protected.into(),
            regs::SPI_WPSR => std::mem::take(&mut self.wpsr),
            regs::VERSION => regs::VERSION_WITHOUT_PDC,
            // Write-only.
            regs::SPI_CR | regs::SPI_TDR | regs::SPI_IER | regs::SPI_IDR => 0,
            _ => return None,
        })
    }

    fn set(&mut self, offset: u32, value: u32, now: Ps, wire: &mut Wire) -> bool {
        match offset {
            regs::SPI_CR => self.write_cr(value, now, wire),
            regs::SPI_TDR => self.write_tdr(value, now, wire),
            regs::SPI_IER => self.imr |= value & sr::INTERRUPTS,
            regs::SPI_IDR => self.imr &= !value,
            regs::SPI_WPMR if value >> 8 == regs::WPKEY => self.write_protected = value & 1 != 0,
            // SPI_WPMR without its key; read-only: SPI_RDR, SPI_SR, SPI_IMR, SPI_WPSR, VERSION.
            _ => return regs::name(offset).is_some(),
        }
        true
    }

    /// Write protection.
    fn ignores(&mut self, offset: u32, value: u32, now: Ps, wire: &mut Wire) -> bool {
        let guarded = matches!(offset, regs::SPI_MR | regs::SPI_CSR0..=regs::SPI_CSR3);
        let Some(name) = regs::name(offset).filter(|_| guarded && self.write_protected) else {
            return false;
        };
        if self.wpsr == 0 {
            self.wpsr = offset << 8 | 1;
        }
        let detail = format!("{name} written while WPEN = 1: {value:#010x} is ignored");
        wire.log().report(now, Rule::Disabled, None, detail);
        true
    }

    fn written(&mut self, now: Ps, wire: &mut Wire) {
        self.rest(now, wire);
        self.start(now, wire);
    }

    fn interrupts(&self) -> bool {
        self.status() & self.imr != 0
    }
}
