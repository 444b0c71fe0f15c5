//! Addresses and bits, as in DS20001801's register map.

/// The number of addresses; a longer access wraps around.
pub(super) const SPACE: u8 = 0x80;

pub(super) const BFPCTRL: u8 = 0x0c;
pub(super) const TXRTSCTRL: u8 = 0x0d;
/// These two registers are at the end of every row of 16.
pub(super) const CANSTAT: u8 = 0x0e;
pub(super) const CANCTRL: u8 = 0x0f;
pub(super) const TEC: u8 = 0x1c;
pub(super) const REC: u8 = 0x1d;
/// The masks; the filters are at lower addresses.
pub(super) const RXM0: u8 = 0x20;
pub(super) const CNF3: u8 = 0x28;
pub(super) const CNF1: u8 = 0x2a;
pub(super) const CANINTE: u8 = 0x2b;
pub(super) const CANINTF: u8 = 0x2c;
pub(super) const EFLG: u8 = 0x2d;
/// The first transmit buffer's control register. The others are 16 and 32 higher. A buffer follows
/// each.
pub(super) const TXB0CTRL: u8 = 0x30;
/// The first receive buffer's control register; the other is 16 higher.
pub(super) const RXB0CTRL: u8 = 0x60;

/// Bytes of a buffer: identifier, DLC, data.
pub(super) const BUFFER: usize = 13;
/// Offset in a buffer.
pub(super) const DLC: usize = 4;
pub(super) const DATA: usize = 5;

pub(super) mod canctrl {
    pub(crate) const RESET: u8 = 0x87;
    pub(crate) const REQOP_SHIFT: u32 = 5;
    pub(crate) const ABAT: u8 = 1 << 4;
    pub(crate) const OSM: u8 = 1 << 3;
}

pub(super) mod sidl {
    pub(crate) const SRR: u8 = 1 << 4;
    /// EXIDE of a transmitted frame and of a filter, IDE of a received frame.
    pub(crate) const EXIDE: u8 = 1 << 3;
    /// The bits that exist in a buffer or filter, and in a mask.
    pub(crate) const USED: u8 = 0xeb;
    pub(crate) const MASK_USED: u8 = 0xe3;
}

pub(super) mod dlc {
    pub(crate) const RTR: u8 = 1 << 6;
}

pub(super) mod txctrl {
    pub(crate) const ABTF: u8 = 1 << 6;
    pub(crate) const MLOA: u8 = 1 << 5;
    pub(crate) const TXERR: u8 = 1 << 4;
    pub(crate) const TXREQ: u8 = 1 << 3;
    pub(crate) const TXP: u8 = 3;
}

pub(super) mod rxctrl {
    pub(crate) const RXM: u8 = 3 << 5;
    pub(crate) const RXRTR: u8 = 1 << 3;
    /// Only RXB0 has it.
    pub(crate) const BUKT: u8 = 1 << 2;
    pub(crate) const BUKT1: u8 = 1 << 1;
    pub(crate) const FILHIT0: u8 = 1;
    /// Only RXB1 has it.
    pub(crate) const FILHIT: u8 = 7;
}

/// CANINTF, and CANINTE alike.
pub(super) mod int {
    pub(crate) const RX0: u8 = 1;
    pub(crate) const TX0: u8 = 1 << 2;
    pub(crate) const ERR: u8 = 1 << 5;
    pub(crate) const WAK: u8 = 1 << 6;
    pub(crate) const MERR: u8 = 1 << 7;
}

pub(super) mod eflg {
    pub(crate) const RX1OVR: u8 = 1 << 7;
    pub(crate) const RX0OVR: u8 = 1 << 6;
    pub(crate) const TXBO: u8 = 1 << 5;
    pub(crate) const TXEP: u8 = 1 << 4;
    pub(crate) const RXEP: u8 = 1 << 3;
    pub(crate) const TXWAR: u8 = 1 << 2;
    pub(crate) const RXWAR: u8 = 1 << 1;
    pub(crate) const EWARN: u8 = 1;
}

/// Whether BIT MODIFY changes single bits there. Elsewhere it writes the byte.
pub(super) fn is_bit_modifiable(address: u8) -> bool {
    let row = address & 0xf0;
    match address & 0xf {
        0xf => true,
        0x0 => matches!(row, 0x30..=0x70),
        0xc | 0xd => matches!(row, 0x00 | 0x20),
        0x8..=0xb => row == 0x20,
        _ => false,
    }
}
