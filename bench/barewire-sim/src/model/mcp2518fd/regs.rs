//! Addresses and bits, as DS20006027 (MCP2518FD) names them, tables 3-1 to 3-3.

pub(super) const C1CON: u16 = 0x000;
pub(super) const C1NBTCFG: u16 = 0x004;
pub(super) const C1DBTCFG: u16 = 0x008;
pub(super) const C1TDC: u16 = 0x00c;
pub(super) const C1TBC: u16 = 0x010;
pub(super) const C1TSCON: u16 = 0x014;
pub(super) const C1VEC: u16 = 0x018;
pub(super) const C1INT: u16 = 0x01c;
pub(super) const C1RXIF: u16 = 0x020;
pub(super) const C1TXIF: u16 = 0x024;
pub(super) const C1RXOVIF: u16 = 0x028;
pub(super) const C1TXATIF: u16 = 0x02c;
pub(super) const C1TXREQ: u16 = 0x030;
pub(super) const C1TREC: u16 = 0x034;
pub(super) const C1BDIAG0: u16 = 0x038;
pub(super) const C1BDIAG1: u16 = 0x03c;
pub(super) const C1TEFCON: u16 = 0x040;
pub(super) const C1TEFSTA: u16 = 0x044;
pub(super) const C1TEFUA: u16 = 0x048;
pub(super) const C1TXQCON: u16 = 0x050;
pub(super) const C1FIFOUA31: u16 = 0x1cc;
pub(super) const C1FLTCON0: u16 = 0x1d0;
pub(super) const C1FLTOBJ0: u16 = 0x1f0;
pub(super) const C1MASK31: u16 = 0x2ec;
pub(super) const RAM: u16 = 0x400;
pub(super) const RAM_END: u16 = 0xc00;
pub(super) const OSC: u16 = 0xe00;
pub(super) const IOCON: u16 = 0xe04;
pub(super) const CRC: u16 = 0xe08;
pub(super) const ECCCON: u16 = 0xe0c;
pub(super) const ECCSTAT: u16 = 0xe10;
pub(super) const DEVID: u16 = 0xe14;

/// C1CON.
pub(super) mod con {
    pub(in super::super) const RESET: u32 = 0x0498_0760;
    pub(in super::super) const ABAT: u32 = 1 << 27;
    pub(in super::super) const REQOP: u32 = 24;
    pub(in super::super) const OPMOD: u32 = 21;
    pub(in super::super) const TXQEN: u32 = 1 << 20;
    pub(in super::super) const STEF: u32 = 1 << 19;
    pub(in super::super) const ESIGM: u32 = 1 << 17;
    pub(in super::super) const RTXAT: u32 = 1 << 16;
    pub(in super::super) const BRSDIS: u32 = 1 << 12;
    pub(in super::super) const BUSY: u32 = 1 << 11;
    pub(in super::super) const PXEDIS: u32 = 1 << 6;
    pub(in super::super) const DNCNT: u32 = 0x1f;
    /// TXBWS, REQOP, BRSDIS, DNCNT: writable in every mode. ABAT is handled separately.
    pub(in super::super) const ALWAYS: u32 = 0xf700_101f;
    /// TXQEN, STEF, SERR2LOM, ESIGM, RTXAT, WFT, WAKFIL, PXEDIS, ISOCRCEN.
    pub(in super::super) const CONFIGURATION: u32 = 0x001f_0760;
}

/// C1INT: the flags. Each enable is 16 bits higher.
pub(super) mod int {
    pub(in super::super) const IVMIF: u32 = 1 << 15;
    pub(in super::super) const WAKIF: u32 = 1 << 14;
    pub(in super::super) const CERRIF: u32 = 1 << 13;
    pub(in super::super) const SERRIF: u32 = 1 << 12;
    pub(in super::super) const RXOVIF: u32 = 1 << 11;
    pub(in super::super) const TXATIF: u32 = 1 << 10;
    pub(in super::super) const SPICRCIF: u32 = 1 << 9;
    pub(in super::super) const ECCIF: u32 = 1 << 8;
    pub(in super::super) const TEFIF: u32 = 1 << 4;
    pub(in super::super) const MODIF: u32 = 1 << 3;
    pub(in super::super) const TBCIF: u32 = 1 << 2;
    pub(in super::super) const RXIF: u32 = 1 << 1;
    pub(in super::super) const TXIF: u32 = 1 << 0;
    /// Set by hardware, cleared by writing 0. All others follow from other registers.
    pub(in super::super) const OWN: u32 = IVMIF | WAKIF | CERRIF | SERRIF | MODIF | TBCIF;
    pub(in super::super) const ENABLES: u32 = 0xff1f_0000;
}

/// C1TSCON.
pub(super) mod tscon {
    pub(in super::super) const TSRES: u32 = 1 << 18;
    pub(in super::super) const TSEOF: u32 = 1 << 17;
    pub(in super::super) const TBCEN: u32 = 1 << 16;
    pub(in super::super) const TBCPRE: u32 = 0x3ff;
    pub(in super::super) const ALL: u32 = 0x0007_03ff;
}

/// C1TXQCON and C1FIFOCONm; C1TEFCON has some of these bits.
pub(super) mod fifocon {
    pub(in super::super) const PLSIZE: u32 = 29;
    pub(in super::super) const FSIZE: u32 = 24;
    pub(in super::super) const TXAT: u32 = 21;
    pub(in super::super) const TXPRI: u32 = 16;
    pub(in super::super) const FRESET: u32 = 1 << 10;
    pub(in super::super) const TXREQ: u32 = 1 << 9;
    pub(in super::super) const UINC: u32 = 1 << 8;
    pub(in super::super) const TXEN: u32 = 1 << 7;
    pub(in super::super) const RTREN: u32 = 1 << 6;
    /// RXTSEN, and TEFTSEN.
    pub(in super::super) const TSEN: u32 = 1 << 5;
    pub(in super::super) const RESET: u32 = 0x0060_0000;
    /// PLSIZE, FSIZE, TXEN, RXTSEN: only in Configuration mode.
    pub(in super::super) const CONFIGURATION: u32 = 0xff00_00a0;
    /// TXAT, TXPRI, RTREN and the interrupt enables.
    pub(in super::super) const ALWAYS: u32 = 0x007f_005f;
    /// TXATIE, RXOVIE, TFERFFIE, TFHRFHIE, TFNRFNIE.
    pub(in super::super) const INTERRUPTS: u32 = 0x1f;
    /// Of C1TEFCON: FSIZE and TEFTSEN; the interrupt enables.
    pub(in super::super) const TEF_CONFIGURATION: u32 = 0x1f00_0020;
    pub(in super::super) const TEF_ALWAYS: u32 = 0x0000_000f;
}

/// C1TXQSTA, C1FIFOSTAm; C1TEFSTA has some of these bits.
pub(super) mod sta {
    pub(in super::super) const FIFOCI: u32 = 8;
    pub(in super::super) const TXABT: u32 = 1 << 7;
    pub(in super::super) const TXLARB: u32 = 1 << 6;
    pub(in super::super) const TXERR: u32 = 1 << 5;
    pub(in super::super) const TXATIF: u32 = 1 << 4;
    /// RXOVIF, and TEFOVIF.
    pub(in super::super) const OVIF: u32 = 1 << 3;
    /// TFERFFIF: empty (sending) or full (receiving).
    pub(in super::super) const ERFFIF: u32 = 1 << 2;
    pub(in super::super) const HRFHIF: u32 = 1 << 1;
    /// TFNRFNIF: not full (sending) or not empty (receiving).
    pub(in super::super) const NRFNIF: u32 = 1 << 0;
}

/// OSC.
pub(super) mod osc {
    pub(in super::super) const RESET: u32 = 0x60;
    pub(in super::super) const SCLKRDY: u32 = 1 << 12;
    pub(in super::super) const OSCRDY: u32 = 1 << 10;
    pub(in super::super) const PLLRDY: u32 = 1 << 8;
    pub(in super::super) const CLKODIV: u32 = 0x60;
    pub(in super::super) const SCLKDIV: u32 = 1 << 4;
    pub(in super::super) const LPMEN: u32 = 1 << 3;
    pub(in super::super) const OSCDIS: u32 = 1 << 2;
    pub(in super::super) const PLLEN: u32 = 1 << 0;
}

/// IOCON.
pub(super) mod iocon {
    pub(in super::super) const RESET: u32 = 0x0300_0003;
    pub(in super::super) const PM1: u32 = 1 << 25;
    pub(in super::super) const PM0: u32 = 1 << 24;
    pub(in super::super) const LATS: u32 = 0x0300;
    /// INTOD, SOF, TXCANOD, PM1, PM0, LAT1, LAT0, XSTBYEN, TRIS1, TRIS0.
    pub(in super::super) const ALL: u32 = 0x7300_0343;
}

/// CRC.
pub(super) mod crc {
    pub(in super::super) const ENABLES: u32 = 0x0300_0000;
    pub(in super::super) const FERRIF: u32 = 1 << 17;
    pub(in super::super) const CRCERRIF: u32 = 1 << 16;
}

/// ECCCON and ECCSTAT.
pub(super) mod ecc {
    pub(in super::super) const CON_ALL: u32 = 0x7f07;
    pub(in super::super) const ECCEN: u32 = 1 << 0;
    pub(in super::super) const SECIF: u32 = 1 << 1;
    pub(in super::super) const DEDIF: u32 = 1 << 2;
    pub(in super::super) const ERRADDR: u32 = 16;
}

/// The first word of a message object.
pub(super) mod object {
    /// Bits 28 to 11, over SID in 10 to 0.
    pub(in super::super) const EID: u32 = 11;
    pub(in super::super) const IDE: u32 = 1 << 4;
    pub(in super::super) const RTR: u32 = 1 << 5;
    pub(in super::super) const BRS: u32 = 1 << 6;
    pub(in super::super) const FDF: u32 = 1 << 7;
    pub(in super::super) const ESI: u32 = 1 << 8;
    pub(in super::super) const FILHIT: u32 = 11;
}
