//! The DW_apb_ssi's registers as the databook lays them out.
//!
//! *Read first*: the sources that [`super`] names. Written from there: nothing here comes from a
//! driver.

pub(super) const CTRLR0: u32 = 0x00;
pub(super) const CTRLR1: u32 = 0x04;
pub(super) const SSIENR: u32 = 0x08;
pub(super) const MWCR: u32 = 0x0c;
pub(super) const SER: u32 = 0x10;
pub(super) const BAUDR: u32 = 0x14;
pub(super) const TXFTLR: u32 = 0x18;
pub(super) const RXFTLR: u32 = 0x1c;
pub(super) const TXFLR: u32 = 0x20;
pub(super) const RXFLR: u32 = 0x24;
pub(super) const SR: u32 = 0x28;
pub(super) const IMR: u32 = 0x2c;
pub(super) const ISR: u32 = 0x30;
pub(super) const RISR: u32 = 0x34;
/// TXOICR, RXOICR, RXUICR, MSTICR: reading one clears its bit of RISR.
pub(super) const TXOICR: u32 = 0x38;
pub(super) const RXOICR: u32 = 0x3c;
pub(super) const RXUICR: u32 = 0x40;
pub(super) const MSTICR: u32 = 0x44;
/// Reading it clears all four.
pub(super) const ICR: u32 = 0x48;
pub(super) const DMACR: u32 = 0x4c;
pub(super) const DMATDLR: u32 = 0x50;
pub(super) const DMARDLR: u32 = 0x54;
pub(super) const IDR: u32 = 0x58;
pub(super) const SSI_VERSION_ID: u32 = 0x5c;
/// The data register, and the last of its 36 addresses.
pub(super) const DR0: u32 = 0x60;
pub(super) const DR35: u32 = 0xec;
pub(super) const RX_SAMPLE_DLY: u32 = 0xf0;

/// RP2040's IDR and SSI_VERSION_ID: 4.01a, in ASCII.
pub(super) const ID: u32 = 0x5153_5049;
pub(super) const VERSION: u32 = 0x3430_312a;

/// SR.
pub(super) mod sr {
    pub(in super::super) const BUSY: u32 = 1 << 0;
    pub(in super::super) const TFNF: u32 = 1 << 1;
    pub(in super::super) const TFE: u32 = 1 << 2;
    pub(in super::super) const RFNE: u32 = 1 << 3;
    pub(in super::super) const RFF: u32 = 1 << 4;
}

/// IMR, ISR, RISR.
pub(super) mod int {
    pub(in super::super) const TXE: u32 = 1 << 0;
    pub(in super::super) const TXO: u32 = 1 << 1;
    pub(in super::super) const RXU: u32 = 1 << 2;
    pub(in super::super) const RXO: u32 = 1 << 3;
    pub(in super::super) const RXF: u32 = 1 << 4;
    pub(in super::super) const MST: u32 = 1 << 5;
}

/// CTRLR0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ctrlr0(pub(super) u32);

impl Ctrlr0 {
    /// What a block keeps of `value`: frames of up to 32 bits are DFS_32's, of up to 16 bits DFS's.
    pub(super) fn kept(value: u32, wide: bool) -> Self {
        // SSTE, CFS, SRL, SLV_OE, TMOD, SCPOL, SCPH, FRF.
        let common = 1 << 24 | 0xfff0;
        Self(value & (common | if wide { 0x1f << 16 } else { 0xf }))
    }

    /// The bits of a frame, 4 to 32; `None` for the reserved values.
    pub(super) fn frame_bits(self, wide: bool) -> Option<u32> {
        let size = if wide { self.0 >> 16 & 0x1f } else { self.0 & 0xf };
        (size >= 3).then_some(size + 1)
    }

    /// SCPH: data is captured on the second edge.
    pub(super) fn scph(self) -> bool {
        self.0 >> 6 & 1 != 0
    }

    /// SCPOL: SCK rests high.
    pub(super) fn scpol(self) -> bool {
        self.0 >> 7 & 1 != 0
    }

    /// SCPOL and SCPH as an SPI mode.
    pub(super) fn mode(self) -> u8 {
        u8::from(self.scpol()) << 1 | u8::from(self.scph())
    }

    /// SRL: what is sent is received.
    pub(super) fn srl(self) -> bool {
        self.0 >> 11 & 1 != 0
    }

    /// SSTE: with SCPH = 0 the select line toggles between two frames.
    pub(super) fn toggles(self) -> bool {
        self.0 >> 24 & 1 != 0 && !self.scph()
    }

    /// FRF and TMOD: Motorola's frames, sent and received.
    pub(super) fn is_motorola_both_ways(self) -> bool {
        self.0 >> 4 & 3 == 0 && self.0 >> 8 & 3 == 0
    }
}
