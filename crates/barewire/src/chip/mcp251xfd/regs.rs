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

/// Message memory: 2 KiB from here.
pub(super) const RAM: u16 = 0x400;
/// Its length in bytes.
pub(super) const RAM_BYTES: u16 = 2048;

macro_rules! fields {
    ($($name:ident: $lsb:literal, $width:literal;)*) => {
        $(pub(in crate::chip::mcp251xfd) const $name: Field =
            Field::new(stringify!($name), $lsb, $width);)*
        pub(super) const ALL: &[Field] = &[$($name),*];
    };
}

/// CAN control.
#[rustfmt::skip]
pub(super) mod con {
    use super::Field;
    fields! {
        DNCNT: 0, 5; ISOCRCEN: 5, 1; PXEDIS: 6, 1; WAKFIL: 8, 1; WFT: 9, 2; BUSY: 11, 1; BRSDIS: 12, 1;
        RTXAT: 16, 1; ESIGM: 17, 1; SERR2LOM: 18, 1; STEF: 19, 1; TXQEN: 20, 1; OPMOD: 21, 3;
        REQOP: 24, 3; ABAT: 27, 1; TXBWS: 28, 4;
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
    fields! { TDCV: 0, 6; TDCO: 8, 7; TDCMOD: 16, 2; SID11EN: 24, 1; EDGFLTEN: 25, 1; }
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
        TXIF: 0, 1; RXIF: 1, 1; TBCIF: 2, 1; MODIF: 3, 1; TEFIF: 4, 1; ECCIF: 8, 1; SPICRCIF: 9, 1;
        TXATIF: 10, 1; RXOVIF: 11, 1; SERRIF: 12, 1; CERRIF: 13, 1; WAKIF: 14, 1; IVMIF: 15, 1;
        TXIE: 16, 1; RXIE: 17, 1; TBCIE: 18, 1; MODIE: 19, 1; TEFIE: 20, 1; ECCIE: 24, 1;
        SPICRCIE: 25, 1; TXATIE: 26, 1; RXOVIE: 27, 1; SERRIE: 28, 1; CERRIE: 29, 1; WAKIE: 30, 1;
        IVMIE: 31, 1;
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
pub(super) mod bdiag0 {
    use super::Field;
    fields! { NRERRCNT: 0, 8; NTERRCNT: 8, 8; DRERRCNT: 16, 8; DTERRCNT: 24, 8; }
}

/// Errors by kind, and error-free messages.
#[rustfmt::skip]
pub(super) mod bdiag1 {
    use super::Field;
    fields! {
        EFMSGCNT: 0, 16; NBIT0ERR: 16, 1; NBIT1ERR: 17, 1; NACKERR: 18, 1; NFORMERR: 19, 1;
        NSTUFERR: 20, 1; NCRCERR: 21, 1; TXBOERR: 23, 1; DBIT0ERR: 24, 1; DBIT1ERR: 25, 1;
        DFORMERR: 27, 1; DSTUFERR: 28, 1; DCRCERR: 29, 1; ESI: 30, 1; DLCMM: 31, 1;
    }
}

/// Transmit event FIFO.
#[rustfmt::skip]
pub(super) mod tefcon {
    use super::Field;
    fields! {
        TEFNEIE: 0, 1; TEFHIE: 1, 1; TEFFIE: 2, 1; TEFOVIE: 3, 1; TEFTSEN: 5, 1; UINC: 8, 1;
        FRESET: 10, 1; FSIZE: 24, 5;
    }
}

/// Its state.
pub(super) mod tefsta {
    use super::Field;
    fields! { TEFNEIF: 0, 1; TEFHIF: 1, 1; TEFFIF: 2, 1; TEFOVIF: 3, 1; }
}

/// Transmit queue.
#[rustfmt::skip]
pub(super) mod txqcon {
    use super::Field;
    fields! {
        TXQNIE: 0, 1; TXQEIE: 2, 1; TXATIE: 4, 1; TXEN: 7, 1; UINC: 8, 1; TXREQ: 9, 1; FRESET: 10, 1;
        TXPRI: 16, 5; TXAT: 21, 2; FSIZE: 24, 5; PLSIZE: 29, 3;
    }
}

/// Its state.
#[rustfmt::skip]
pub(super) mod txqsta {
    use super::Field;
    fields! {
        TXQNIF: 0, 1; TXQEIF: 2, 1; TXATIF: 4, 1; TXERR: 5, 1; TXLARB: 6, 1; TXABT: 7, 1; TXQCI: 8, 5;
    }
}

/// FIFOs 1 to 31.
#[rustfmt::skip]
pub(super) mod fifocon {
    use super::Field;
    fields! {
        TFNRFNIE: 0, 1; TFHRFHIE: 1, 1; TFERFFIE: 2, 1; RXOVIE: 3, 1; TXATIE: 4, 1; RXTSEN: 5, 1;
        RTREN: 6, 1; TXEN: 7, 1; UINC: 8, 1; TXREQ: 9, 1; FRESET: 10, 1; TXPRI: 16, 5; TXAT: 21, 2;
        FSIZE: 24, 5; PLSIZE: 29, 3;
    }
}

/// Their state.
#[rustfmt::skip]
pub(super) mod fifosta {
    use super::Field;
    fields! {
        TFNRFNIF: 0, 1; TFHRFHIF: 1, 1; TFERFFIF: 2, 1; RXOVIF: 3, 1; TXATIF: 4, 1; TXERR: 5, 1;
        TXLARB: 6, 1; TXABT: 7, 1; FIFOCI: 8, 5;
    }
}

/// Four filters' enables and FIFOs.
#[rustfmt::skip]
pub(super) mod fltcon {
    use super::Field;
    fields! {
        F0BP: 0, 5; FLTEN0: 7, 1; F1BP: 8, 5; FLTEN1: 15, 1; F2BP: 16, 5; FLTEN2: 23, 1; F3BP: 24, 5;
        FLTEN3: 31, 1;
    }
}

/// What a filter compares with.
pub(super) mod fltobj {
    use super::Field;
    fields! { SID: 0, 11; EID: 11, 18; SID11: 29, 1; EXIDE: 30, 1; }
}

/// Which bits of it count.
pub(super) mod mask {
    use super::Field;
    fields! { MSID: 0, 11; MEID: 11, 18; MSID11: 29, 1; MIDE: 30, 1; }
}

/// Oscillator.
#[rustfmt::skip]
pub(super) mod osc {
    use super::Field;
    fields! {
        PLLEN: 0, 1; OSCDIS: 2, 1; LPMEN: 3, 1; SCLKDIV: 4, 1; CLKODIV: 5, 2; PLLRDY: 8, 1;
        OSCRDY: 10, 1; SCLKRDY: 12, 1;
    }
}

/// Pins.
#[rustfmt::skip]
pub(super) mod iocon {
    use super::Field;
    fields! {
        TRIS0: 0, 1; TRIS1: 1, 1; XSTBYEN: 6, 1; LAT0: 8, 1; LAT1: 9, 1; GPIO0: 16, 1; GPIO1: 17, 1;
        PM0: 24, 1; PM1: 25, 1; TXCANOD: 28, 1; SOF: 29, 1; INTOD: 30, 1;
    }
}

/// The CRC of the last exchange that had one.
pub(super) mod crc {
    use super::Field;
    fields! { CRC: 0, 16; CRCERRIF: 16, 1; FERRIF: 17, 1; CRCERRIE: 24, 1; FERRIE: 25, 1; }
}

/// Error correction of the message memory.
pub(super) mod ecccon {
    use super::Field;
    fields! { ECCEN: 0, 1; SECIE: 1, 1; DEDIE: 2, 1; PARITY: 8, 7; }
}

/// Its findings.
pub(super) mod eccstat {
    use super::Field;
    fields! { SECIF: 1, 1; DEDIF: 2, 1; ERRADDR: 16, 12; }
}

/// MCP2518FD's identity; MCP2517FD reads zero here.
pub(super) mod devid {
    use super::Field;
    fields! { REV: 0, 4; ID: 4, 4; }
}

pub(super) static C1CON: Register = Register::new("C1CON", 0x000).volatile().fields(con::ALL);
pub(super) static C1NBTCFG: Register = Register::new("C1NBTCFG", 0x004).fields(nbtcfg::ALL);
pub(super) static C1DBTCFG: Register = Register::new("C1DBTCFG", 0x008).fields(dbtcfg::ALL);
pub(super) static C1TDC: Register = Register::new("C1TDC", 0x00c).volatile().fields(tdc::ALL);
pub(super) static C1TBC: Register = Register::new("C1TBC", 0x010).volatile();
pub(super) static C1TSCON: Register = Register::new("C1TSCON", 0x014).fields(tscon::ALL);
pub(super) static C1VEC: Register =
    Register::new("C1VEC", 0x018).read_only().volatile().fields(vec::ALL);
pub(super) static C1INT: Register = Register::new("C1INT", 0x01c).volatile().fields(int::ALL);
pub(super) static C1RXIF: Register = Register::new("C1RXIF", 0x020).read_only().volatile();
pub(super) static C1TXIF: Register = Register::new("C1TXIF", 0x024).read_only().volatile();
pub(super) static C1RXOVIF: Register = Register::new("C1RXOVIF", 0x028).read_only().volatile();
pub(super) static C1TXATIF: Register = Register::new("C1TXATIF", 0x02c).read_only().volatile();
pub(super) static C1TXREQ: Register = Register::new("C1TXREQ", 0x030).volatile();
pub(super) static C1TREC: Register =
    Register::new("C1TREC", 0x034).read_only().volatile().fields(trec::ALL);
pub(super) static C1BDIAG0: Register =
    Register::new("C1BDIAG0", 0x038).volatile().fields(bdiag0::ALL);
pub(super) static C1BDIAG1: Register =
    Register::new("C1BDIAG1", 0x03c).volatile().fields(bdiag1::ALL);
pub(super) static C1TEFCON: Register =
    Register::new("C1TEFCON", 0x040).volatile().fields(tefcon::ALL);
pub(super) static C1TEFSTA: Register =
    Register::new("C1TEFSTA", 0x044).volatile().fields(tefsta::ALL);
pub(super) static C1TEFUA: Register = Register::new("C1TEFUA", 0x048).read_only().volatile();
pub(super) static C1TXQCON: Register =
    Register::new("C1TXQCON", 0x050).volatile().fields(txqcon::ALL);
pub(super) static C1TXQSTA: Register =
    Register::new("C1TXQSTA", 0x054).volatile().fields(txqsta::ALL);
pub(super) static C1TXQUA: Register = Register::new("C1TXQUA", 0x058).read_only().volatile();
/// Element 0 is FIFO 1.
pub(super) static C1FIFOCON: Register =
    Register::new("C1FIFOCON", 0x05c).array(31, 12).volatile().fields(fifocon::ALL);
pub(super) static C1FIFOSTA: Register =
    Register::new("C1FIFOSTA", 0x060).array(31, 12).volatile().fields(fifosta::ALL);
pub(super) static C1FIFOUA: Register =
    Register::new("C1FIFOUA", 0x064).array(31, 12).read_only().volatile();
pub(super) static C1FLTCON: Register =
    Register::new("C1FLTCON", 0x1d0).array(8, 4).fields(fltcon::ALL);
pub(super) static C1FLTOBJ: Register =
    Register::new("C1FLTOBJ", 0x1f0).array(32, 8).fields(fltobj::ALL);
pub(super) static C1MASK: Register = Register::new("C1MASK", 0x1f4).array(32, 8).fields(mask::ALL);
pub(super) static OSC: Register = Register::new("OSC", 0xe00).volatile().fields(osc::ALL);
pub(super) static IOCON: Register = Register::new("IOCON", 0xe04).volatile().fields(iocon::ALL);
pub(super) static CRC: Register = Register::new("CRC", 0xe08).volatile().fields(crc::ALL);
pub(super) static ECCCON: Register = Register::new("ECCCON", 0xe0c).fields(ecccon::ALL);
pub(super) static ECCSTAT: Register =
    Register::new("ECCSTAT", 0xe10).volatile().fields(eccstat::ALL);
pub(super) static DEVID: Register = Register::new("DEVID", 0xe14).read_only().fields(devid::ALL);

/// Every special function register.
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
