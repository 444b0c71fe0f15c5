//! The Atmel SPI's registers as the manual lays them out.
//!
//! *Read first*: SAMA5D3 Series data sheet, chapter Serial Peripheral Interface, user interface.
//! This file is written from the manual only, not from a driver.

pub(super) const SPI_CR: u32 = 0x00;
pub(super) const SPI_MR: u32 = 0x04;
pub(super) const SPI_RDR: u32 = 0x08;
pub(super) const SPI_TDR: u32 = 0x0c;
pub(super) const SPI_SR: u32 = 0x10;
pub(super) const SPI_IER: u32 = 0x14;
pub(super) const SPI_IDR: u32 = 0x18;
pub(super) const SPI_IMR: u32 = 0x1c;
/// SPI_CSR0; the other three follow.
pub(super) const SPI_CSR0: u32 = 0x30;
pub(super) const SPI_CSR3: u32 = 0x3c;
pub(super) const SPI_WPMR: u32 = 0xe4;
pub(super) const SPI_WPSR: u32 = 0xe8;
/// The data sheet does not describe it; Linux's spi-atmel reads it, and takes a block below 0x212 for one with
/// a PDC.
pub(super) const VERSION: u32 = 0xfc;
pub(super) const VERSION_WITHOUT_PDC: u32 = 0x212;

/// The key "SPI", without which a write to SPI_WPMR has no effect.
pub(super) const WPKEY: u32 = 0x0053_5049;

/// The name of the register at `offset`, for reports; `None` if there is none.
pub(super) fn name(offset: u32) -> Option<&'static str> {
    Some(match offset {
        SPI_CR => "SPI_CR",
        SPI_MR => "SPI_MR",
        SPI_RDR => "SPI_RDR",
        SPI_TDR => "SPI_TDR",
        SPI_SR => "SPI_SR",
        SPI_IER => "SPI_IER",
        SPI_IDR => "SPI_IDR",
        SPI_IMR => "SPI_IMR",
        0x30 => "SPI_CSR0",
        0x34 => "SPI_CSR1",
        0x38 => "SPI_CSR2",
        0x3c => "SPI_CSR3",
        SPI_WPMR => "SPI_WPMR",
        SPI_WPSR => "SPI_WPSR",
        VERSION => "VERSION",
        _ => return None,
    })
}

/// SPI_CR's bits.
pub(super) mod cr {
    pub(in super::super) const SPIEN: u32 = 1 << 0;
    pub(in super::super) const SPIDIS: u32 = 1 << 1;
    pub(in super::super) const SWRST: u32 = 1 << 7;
    pub(in super::super) const LASTXFER: u32 = 1 << 24;
}

/// The NPCS line that `pcs` selects: the lowest bit that is 0, `None` for all ones.
pub(super) fn line(pcs: u32) -> Option<u8> {
    (0..4).find(|line| pcs >> line & 1 == 0)
}

/// SPI_MR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mr(pub(super) u32);

impl Mr {
    /// MSTR, PS, PCSDEC, MODFDIS, WDRBT, LLB, PCS, DLYBCS.
    pub(super) const WRITABLE: u32 = 0xff0f_00b7;

    fn bit(self, bit: u32) -> bool {
        self.0 >> bit & 1 != 0
    }

    /// MSTR: this block clocks.
    pub(super) fn mstr(self) -> bool {
        self.bit(0)
    }

    /// PS: SPI_TDR selects the NPCS.
    pub(super) fn ps(self) -> bool {
        self.bit(1)
    }

    /// PCSDEC: a decoder is connected to the NPCS lines.
    pub(super) fn pcsdec(self) -> bool {
        self.bit(2)
    }

    /// WDRBT: a transfer waits until SPI_RDR is read.
    pub(super) fn wdrbt(self) -> bool {
        self.bit(5)
    }

    pub(super) fn llb(self) -> bool {
        self.bit(7)
    }

    pub(super) fn pcs(self) -> u32 {
        self.0 >> 16 & 0xf
    }

    pub(super) fn dlybcs(self) -> u64 {
        u64::from(self.0 >> 24)
    }
}

/// SPI_TDR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tdr(pub(super) u32);

impl Tdr {
    pub(super) fn td(self) -> u32 {
        self.0 & 0xffff
    }

    pub(super) fn pcs(self) -> u32 {
        self.0 >> 16 & 0xf
    }

    pub(super) fn lastxfer(self) -> bool {
        self.0 >> 24 & 1 != 0
    }
}

/// One of SPI_CSR0 to 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Csr(pub(super) u32);

impl Csr {
    pub(super) fn cpol(self) -> bool {
        self.0 & 1 != 0
    }

    /// The inverse of NCPHA.
    pub(super) fn cpha(self) -> bool {
        self.0 >> 1 & 1 == 0
    }

    /// CPOL and NCPHA as an SPI mode.
    pub(super) fn mode(self) -> u8 {
        u8::from(self.cpol()) << 1 | u8::from(self.cpha())
    }

    /// CSNAAT: NPCS rises after each transfer.
    pub(super) fn csnaat(self) -> bool {
        self.0 >> 2 & 1 != 0
    }

    /// CSAAT: NPCS stays active after the last transfer.
    pub(super) fn csaat(self) -> bool {
        self.0 >> 3 & 1 != 0
    }

    /// BITS: 8 to 16; `None` for the reserved values.
    pub(super) fn word_bits(self) -> Option<u32> {
        let bits = self.0 >> 4 & 0xf;
        (bits <= 8).then_some(8 + bits)
    }

    /// SCBR: the period of SPCK in MCK periods; 0 is forbidden.
    pub(super) fn scbr(self) -> u64 {
        u64::from(self.0 >> 8 & 0xff)
    }

    pub(super) fn dlybs(self) -> u64 {
        u64::from(self.0 >> 16 & 0xff)
    }

    pub(super) fn dlybct(self) -> u64 {
        u64::from(self.0 >> 24)
    }
}

/// The bits of SPI_SR, and of SPI_IER, SPI_IDR and SPI_IMR.
pub(super) mod sr {
    pub(in super::super) const RDRF: u32 = 1 << 0;
    pub(in super::super) const TDRE: u32 = 1 << 1;
    pub(in super::super) const OVRES: u32 = 1 << 3;
    pub(in super::super) const TXEMPTY: u32 = 1 << 9;
    pub(in super::super) const SPIENS: u32 = 1 << 16;

    /// The bits that can interrupt: the four above, MODF, NSSR and UNDES.
    pub(in super::super) const INTERRUPTS: u32 = 0x70f;
}
