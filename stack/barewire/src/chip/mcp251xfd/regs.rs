//! The special function registers, by the data sheet's names (DS20006027, register summary).

use crate::regmap::{Endian, Field, Format, Map, Register};

/// READ: the command nibble in front of a 12-bit address.
pub(super) const READ: u16 = 0x3000;
/// WRITE.
pub(super) const WRITE: u16 = 0x2000;
/// READ_CRC: a length byte follows the address, a CRC the data.
pub(super) const READ_CRC: u16 = 0xb000;
/// WRITE_CRC: the same.
pub(super) const WRITE_CRC: u16 = 0xa000;

/// A command nibble, 12 bits of address, 4 bytes least significant first; the address counts up.
pub(super) const FORMAT: Format = Format {
    read_flag_mask: READ as u32,
    write_flag_mask: WRITE as u32,
    reg_stride: 4,
    val_format_endian: Endian::Little,
    increments: true,
    ..Format::new(16, 32)
};

/// The bytes of a register's exchange in [`FORMAT`].
pub(super) const FRAME_BYTES: usize = FORMAT.frame_bytes();

/// C1CON after a reset, in both parts.
pub(super) const C1CON_AFTER_RESET: u32 = 0x0498_0760;
/// OSC after a reset, once the oscillator runs.
pub(super) const OSC_AFTER_RESET: u32 = 0x0000_0460;

/// Message memory: 2 KiB from here.
pub(super) const RAM: u16 = 0x400;
/// Its length in bytes.
pub(super) const RAM_BYTES: u16 = 2048;

/// `NAME: lowest bit, width`; and `read_only`, or `volatile` for what the chip sets or clears.
macro_rules! fields {
    ($($name:ident: $lsb:literal, $width:literal $(, $kind:ident)?;)*) => {
        $(pub(in crate::chip::mcp251xfd) const $name: Field =
            Field::new(stringify!($name), $lsb, $width)$(.$kind())?;)*
        pub(super) const ALL: &[Field] = &[$($name),*];
    };
}

/// CAN control.
#[rustfmt::skip]
pub(super) mod con {
    use super::Field;
    fields! {
        DNCNT: 0, 5; ISOCRCEN: 5, 1; PXEDIS: 6, 1; WAKFIL: 8, 1; WFT: 9, 2; BUSY: 11, 1, read_only;
        BRSDIS: 12, 1; RTXAT: 16, 1; ESIGM: 17, 1; SERR2LOM: 18, 1; STEF: 19, 1; TXQEN: 20, 1;
        OPMOD: 21, 3, read_only; REQOP: 24, 3; ABAT: 27, 1, volatile; TXBWS: 28, 4;
    }
}

/// Nominal bit time.
pub(super) mod nbtcfg {
    use super::Field;
    fields! { SJW: 0, 7; TSEG2: 8, 7; TSEG1: 16, 8; BRP: 24, 8; }
}

/// Data bit time.
pub(super) mod dbtcfg {
    use super::Field;
    fields! { SJW: 0, 4; TSEG2: 8, 4; TSEG1: 16, 5; BRP: 24, 8; }
}

/// Transmitter delay compensation.
pub(super) mod tdc {
    use super::Field;
    fields! { TDCV: 0, 6, volatile; TDCO: 8, 7; TDCMOD: 16, 2; SID11EN: 24, 1; EDGFLTEN: 25, 1; }
}

/// Time stamps.
pub(super) mod tscon {
    use super::Field;
    fields! { TBCPRE: 0, 10; TBCEN: 16, 1; TSEOF: 17, 1; TSRES: 18, 1; }
}

/// Interrupt codes.
pub(super) mod vec {
    use super::Field;
    fields! { ICODE: 0, 7; FILHIT: 8, 5; TXCODE: 16, 7; RXCODE: 24, 7; }
}

/// Interrupts: flags below, enables above.
#[rustfmt::skip]
pub(super) mod int {
    use super::Field;
    fields! {
        TXIF: 0, 1, read_only; RXIF: 1, 1, read_only; TBCIF: 2, 1, volatile; MODIF: 3, 1, volatile;
        TEFIF: 4, 1, read_only; ECCIF: 8, 1, read_only; SPICRCIF: 9, 1, read_only;
        TXATIF: 10, 1, read_only; RXOVIF: 11, 1, read_only; SERRIF: 12, 1, volatile;
        CERRIF: 13, 1, volatile; WAKIF: 14, 1, volatile; IVMIF: 15, 1, volatile; TXIE: 16, 1;
        RXIE: 17, 1; TBCIE: 18, 1; MODIE: 19, 1; TEFIE: 20, 1; ECCIE: 24, 1; SPICRCIE: 25, 1;
        TXATIE: 26, 1; RXOVIE: 27, 1; SERRIE: 28, 1; CERRIE: 29, 1; WAKIE: 30, 1; IVMIE: 31, 1;
    }
}

/// Error counters.
#[rustfmt::skip]
pub(super) mod trec {
    use super::Field;
    fields! {
        REC: 0, 8; TEC: 8, 8; EWARN: 16, 1; RXWARN: 17, 1; TXWARN: 18, 1; RXBP: 19, 1; TXBP: 20, 1;
        TXBO: 21, 1;
    }
}

/// Errors by kind of bit time.
#[rustfmt::skip]
pub(super) mod bdiag0 {
    use super::Field;
    fields! {
        NRERRCNT: 0, 8, volatile; NTERRCNT: 8, 8, volatile; DRERRCNT: 16, 8, volatile;
        DTERRCNT: 24, 8, volatile;
    }
}

/// Errors by kind, and error-free messages.
#[rustfmt::skip]
pub(super) mod bdiag1 {
    use super::Field;
    fields! {
        EFMSGCNT: 0, 16, volatile; NBIT0ERR: 16, 1, volatile; NBIT1ERR: 17, 1, volatile;
        NACKERR: 18, 1, volatile; NFORMERR: 19, 1, volatile; NSTUFERR: 20, 1, volatile;
        NCRCERR: 21, 1, volatile; TXBOERR: 23, 1, volatile; DBIT0ERR: 24, 1, volatile;
        DBIT1ERR: 25, 1, volatile; DFORMERR: 27, 1, volatile; DSTUFERR: 28, 1, volatile;
        DCRCERR: 29, 1, volatile; ESI: 30, 1, volatile; DLCMM: 31, 1, volatile;
    }
}

/// Transmit event FIFO.
#[rustfmt::skip]
pub(super) mod tefcon {
    use super::Field;
    fields! {
        TEFNEIE: 0, 1; TEFHIE: 1, 1; TEFFIE: 2, 1; TEFOVIE: 3, 1; TEFTSEN: 5, 1;
        UINC: 8, 1, volatile; FRESET: 10, 1, volatile; FSIZE: 24, 5;
    }
}

/// Its state.
#[rustfmt::skip]
pub(super) mod tefsta {
    use super::Field;
    fields! {
        TEFNEIF: 0, 1, read_only; TEFHIF: 1, 1, read_only; TEFFIF: 2, 1, read_only;
        TEFOVIF: 3, 1, volatile;
    }
}

/// Transmit queue.
#[rustfmt::skip]
pub(super) mod txqcon {
    use super::Field;
    fields! {
        TXQNIE: 0, 1; TXQEIE: 2, 1; TXATIE: 4, 1; TXEN: 7, 1, read_only; UINC: 8, 1, volatile;
        TXREQ: 9, 1, volatile; FRESET: 10, 1, volatile; TXPRI: 16, 5; TXAT: 21, 2; FSIZE: 24, 5;
        PLSIZE: 29, 3;
    }
}

/// Its state.
#[rustfmt::skip]
pub(super) mod txqsta {
    use super::Field;
    fields! {
        TXQNIF: 0, 1, read_only; TXQEIF: 2, 1, read_only; TXATIF: 4, 1, volatile;
        TXERR: 5, 1, read_only; TXLARB: 6, 1, read_only; TXABT: 7, 1, read_only;
        TXQCI: 8, 5, read_only;
    }
}

/// FIFOs 1 to 31.
#[rustfmt::skip]
pub(super) mod fifocon {
    use super::Field;
    fields! {
        TFNRFNIE: 0, 1; TFHRFHIE: 1, 1; TFERFFIE: 2, 1; RXOVIE: 3, 1; TXATIE: 4, 1; RXTSEN: 5, 1;
        RTREN: 6, 1; TXEN: 7, 1; UINC: 8, 1, volatile; TXREQ: 9, 1, volatile;
        FRESET: 10, 1, volatile; TXPRI: 16, 5; TXAT: 21, 2; FSIZE: 24, 5; PLSIZE: 29, 3;
    }
}

/// Their state.
#[rustfmt::skip]
pub(super) mod fifosta {
    use super::Field;
    fields! {
        TFNRFNIF: 0, 1, read_only; TFHRFHIF: 1, 1, read_only; TFERFFIF: 2, 1, read_only;
        RXOVIF: 3, 1, volatile; TXATIF: 4, 1, volatile; TXERR: 5, 1, read_only;
        TXLARB: 6, 1, read_only; TXABT: 7, 1, read_only; FIFOCI: 8, 5, read_only;
    }
}

/// Four filters' enables and FIFOs.
#[rustfmt::skip]
pub(super) mod fltcon {
    use super::Field;
    fields! {
        F0BP: 0, 5; FLTEN0: 7, 1; F1BP: 8, 5; FLTEN1: 15, 1; F2BP: 16, 5; FLTEN2: 23, 1;
        F3BP: 24, 5; FLTEN3: 31, 1;
    }
}

/// The value a filter compares with.
pub(super) mod fltobj {
    use super::Field;
    fields! { SID: 0, 11; EID: 11, 18; SID11: 29, 1; EXIDE: 30, 1; }
}

/// The bits that are compared.
pub(super) mod mask {
    use super::Field;
    fields! { MSID: 0, 11; MEID: 11, 18; MSID11: 29, 1; MIDE: 30, 1; }
}

/// Oscillator.
#[rustfmt::skip]
pub(super) mod osc {
    use super::Field;
    fields! {
        PLLEN: 0, 1; OSCDIS: 2, 1, volatile; LPMEN: 3, 1; SCLKDIV: 4, 1; CLKODIV: 5, 2;
        PLLRDY: 8, 1, read_only; OSCRDY: 10, 1, read_only; SCLKRDY: 12, 1, read_only;
    }
}

/// Pins. Writing the register whole clears LAT0 and LAT1, a single byte does not (errata DS80000789 and
/// DS80000792, on IOCON).
#[rustfmt::skip]
pub(super) mod iocon {
    use super::Field;
    fields! {
        TRIS0: 0, 1; TRIS1: 1, 1; XSTBYEN: 6, 1; LAT0: 8, 1, volatile; LAT1: 9, 1, volatile;
        GPIO0: 16, 1, volatile; GPIO1: 17, 1, volatile; PM0: 24, 1; PM1: 25, 1; TXCANOD: 28, 1;
        SOF: 29, 1; INTOD: 30, 1;
    }
}

/// The CRC of the last exchange that had one.
#[rustfmt::skip]
pub(super) mod crc {
    use super::Field;
    fields! {
        CRC: 0, 16, read_only; CRCERRIF: 16, 1, volatile; FERRIF: 17, 1, volatile; CRCERRIE: 24, 1;
        FERRIE: 25, 1;
    }
}

/// Error correction of the message memory.
pub(super) mod ecccon {
    use super::Field;
    fields! { ECCEN: 0, 1; SECIE: 1, 1; DEDIE: 2, 1; PARITY: 8, 7; }
}

/// Its results.
pub(super) mod eccstat {
    use super::Field;
    fields! { SECIF: 1, 1, volatile; DEDIF: 2, 1, volatile; ERRADDR: 16, 12, read_only; }
}

/// MCP2518FD's identity; MCP2517FD reads zero here.
pub(super) mod devid {
    use super::Field;
    fields! { REV: 0, 4; ID: 4, 4; }
}

pub(super) static C1CON: Register =
    Register::new("C1CON", 0x000).reset(C1CON_AFTER_RESET).volatile().fields(con::ALL);
pub(super) static C1NBTCFG: Register =
    Register::new("C1NBTCFG", 0x004).reset(0x003e_0f0f).fields(nbtcfg::ALL);
pub(super) static C1DBTCFG: Register =
    Register::new("C1DBTCFG", 0x008).reset(0x000e_0303).fields(dbtcfg::ALL);
pub(super) static C1TDC: Register =
    Register::new("C1TDC", 0x00c).reset(0x0002_1000).volatile().fields(tdc::ALL);
pub(super) static C1TBC: Register = Register::new("C1TBC", 0x010).reset(0).volatile();
pub(super) static C1TSCON: Register = Register::new("C1TSCON", 0x014).reset(0).fields(tscon::ALL);
pub(super) static C1VEC: Register =
    Register::new("C1VEC", 0x018).reset(0x4040_0040).read_only().volatile().fields(vec::ALL);
pub(super) static C1INT: Register =
    Register::new("C1INT", 0x01c).reset(0).volatile().fields(int::ALL);
pub(super) static C1RXIF: Register = Register::new("C1RXIF", 0x020).reset(0).read_only().volatile();
pub(super) static C1TXIF: Register = Register::new("C1TXIF", 0x024).reset(0).read_only().volatile();
pub(super) static C1RXOVIF: Register =
    Register::new("C1RXOVIF", 0x028).reset(0).read_only().volatile();
pub(super) static C1TXATIF: Register =
    Register::new("C1TXATIF", 0x02c).reset(0).read_only().volatile();
pub(super) static C1TXREQ: Register = Register::new("C1TXREQ", 0x030).reset(0).volatile();
pub(super) static C1TREC: Register =
    Register::new("C1TREC", 0x034).reset(0x0020_0000).read_only().volatile().fields(trec::ALL);
pub(super) static C1BDIAG0: Register =
    Register::new("C1BDIAG0", 0x038).reset(0).volatile().fields(bdiag0::ALL);
pub(super) static C1BDIAG1: Register =
    Register::new("C1BDIAG1", 0x03c).reset(0).volatile().fields(bdiag1::ALL);
pub(super) static C1TEFCON: Register =
    Register::new("C1TEFCON", 0x040).reset(0x0000_0400).volatile().fields(tefcon::ALL);
pub(super) static C1TEFSTA: Register =
    Register::new("C1TEFSTA", 0x044).reset(0).volatile().fields(tefsta::ALL);
pub(super) static C1TEFUA: Register = Register::new("C1TEFUA", 0x048).read_only().volatile();
pub(super) static C1TXQCON: Register =
    Register::new("C1TXQCON", 0x050).reset(0x0060_0480).volatile().fields(txqcon::ALL);
pub(super) static C1TXQSTA: Register =
    Register::new("C1TXQSTA", 0x054).reset(0x0000_0005).volatile().fields(txqsta::ALL);
pub(super) static C1TXQUA: Register = Register::new("C1TXQUA", 0x058).read_only().volatile();
pub(super) static C1FIFOCON: Register = Register::new("C1FIFOCON", 0x05c)
    .array(31, 12)
    .numbered_from(1)
    .reset(0x0060_0400)
    .volatile()
    .fields(fifocon::ALL);
pub(super) static C1FIFOSTA: Register = Register::new("C1FIFOSTA", 0x060)
    .array(31, 12)
    .numbered_from(1)
    .reset(0)
    .volatile()
    .fields(fifosta::ALL);
pub(super) static C1FIFOUA: Register =
    Register::new("C1FIFOUA", 0x064).array(31, 12).numbered_from(1).read_only().volatile();
pub(super) static C1FLTCON: Register =
    Register::new("C1FLTCON", 0x1d0).array(8, 4).numbered_from(0).reset(0).fields(fltcon::ALL);
pub(super) static C1FLTOBJ: Register =
    Register::new("C1FLTOBJ", 0x1f0).array(32, 8).numbered_from(0).reset(0).fields(fltobj::ALL);
pub(super) static C1MASK: Register =
    Register::new("C1MASK", 0x1f4).array(32, 8).numbered_from(0).reset(0).fields(mask::ALL);
pub(super) static OSC: Register =
    Register::new("OSC", 0xe00).reset(OSC_AFTER_RESET).volatile().fields(osc::ALL);
pub(super) static IOCON: Register = Register::new("IOCON", 0xe04).volatile().fields(iocon::ALL);
pub(super) static CRC: Register = Register::new("CRC", 0xe08).reset(0).volatile().fields(crc::ALL);
pub(super) static ECCCON: Register = Register::new("ECCCON", 0xe0c).reset(0).fields(ecccon::ALL);
pub(super) static ECCSTAT: Register =
    Register::new("ECCSTAT", 0xe10).reset(0).volatile().fields(eccstat::ALL);
pub(super) static DEVID: Register = Register::new("DEVID", 0xe14).read_only().fields(devid::ALL);

/// As in MCP2517FD, which has no low power mode.
static OSC_2517FD: Register =
    Register::new("OSC", 0xe00).reset(OSC_AFTER_RESET).volatile().fields(&[
        osc::PLLEN,
        osc::OSCDIS,
        osc::SCLKDIV,
        osc::CLKODIV,
        osc::PLLRDY,
        osc::OSCRDY,
        osc::SCLKRDY,
    ]);

/// Every special function register of MCP2518FD.
pub static MAP: Map = Map::new(
    "MCP2518FD",
    FORMAT,
    &[
        C1CON, C1NBTCFG, C1DBTCFG, C1TDC, C1TBC, C1TSCON, C1VEC, C1INT, C1RXIF, C1TXIF, C1RXOVIF,
        C1TXATIF, C1TXREQ, C1TREC, C1BDIAG0, C1BDIAG1, C1TEFCON, C1TEFSTA, C1TEFUA, C1TXQCON,
        C1TXQSTA, C1TXQUA, C1FIFOCON, C1FIFOSTA, C1FIFOUA, C1FLTCON, C1FLTOBJ, C1MASK, OSC, IOCON,
        CRC, ECCCON, ECCSTAT, DEVID,
    ],
);

/// Every special function register of MCP2517FD: no DEVID, no LPMEN.
pub static MAP_2517FD: Map = Map::new(
    "MCP2517FD",
    FORMAT,
    &[
        C1CON, C1NBTCFG, C1DBTCFG, C1TDC, C1TBC, C1TSCON, C1VEC, C1INT, C1RXIF, C1TXIF, C1RXOVIF,
        C1TXATIF, C1TXREQ, C1TREC, C1BDIAG0, C1BDIAG1, C1TEFCON, C1TEFSTA, C1TEFUA, C1TXQCON,
        C1TXQSTA, C1TXQUA, C1FIFOCON, C1FIFOSTA, C1FIFOUA, C1FLTCON, C1FLTOBJ, C1MASK, OSC_2517FD,
        IOCON, CRC, ECCCON, ECCSTAT,
    ],
);
