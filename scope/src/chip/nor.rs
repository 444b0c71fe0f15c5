//! SPI NOR flash: opcodes by the names of JESD216 and of datasheets.
//!
//! *Read first*: JESD216 and the command table of Macronix's MX25L25645G and Winbond's W25Q256JV. An address has three bytes,
//! or four from EN4B to EX4B; the names that end in `_4B` always have four.

use super::{Told, hex};

/// What follows an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// Data, or nothing.
    Data,
    /// An address of three bytes or four, by mode, dummy bytes, data.
    Address(usize),
    /// The same with four bytes in any mode.
    Address4(usize),
    /// The same with three bytes in any mode.
    Address3(usize),
}
use Then::{Address, Address3, Address4, Data};

const OPCODES: &[(u8, &str, Then)] = &[
    (0x01, "WRSR", Data),
    (0x02, "PP", Address(0)),
    (0x03, "READ", Address(0)),
    (0x04, "WRDI", Data),
    (0x05, "RDSR", Data),
    (0x06, "WREN", Data),
    (0x0b, "FAST_READ", Address(1)),
    (0x0c, "FAST_READ_4B", Address4(1)),
    (0x11, "WRSR3", Data),
    (0x12, "PP_4B", Address4(0)),
    (0x13, "READ_4B", Address4(0)),
    (0x15, "RDSR3", Data),
    (0x20, "SE", Address(0)),
    (0x21, "SE_4B", Address4(0)),
    (0x31, "WRSR2", Data),
    (0x35, "RDSR2", Data),
    (0x3b, "DREAD", Address(1)),
    (0x50, "EWSR", Data),
    (0x52, "BE32K", Address(0)),
    (0x5a, "RDSFDP", Address3(1)),
    (0x5c, "BE32K_4B", Address4(0)),
    (0x60, "CE", Data),
    (0x66, "RSTEN", Data),
    (0x6b, "QREAD", Address(1)),
    (0x70, "RDFSR", Data),
    (0x90, "REMS", Address3(0)),
    (0x99, "RST", Data),
    (0x9f, "RDID", Data),
    (0xab, "RDP", Data),
    (0xad, "AAI_WP", Address(0)),
    (0xb7, "EN4B", Data),
    (0xb9, "DP", Data),
    (0xc5, "WREAR", Data),
    (0xc7, "CE", Data),
    (0xc8, "RDEAR", Data),
    (0xd8, "BE", Address(0)),
    (0xdc, "BE_4B", Address4(0)),
    (0xe9, "EX4B", Data),
];

/// A flash chip, as far as commands change how others are read.
#[derive(Clone, Debug, Default)]
pub(super) struct Nor {
    four_bytes: bool,
}

impl Nor {
    pub(super) fn tell(&mut self, mosi: &[u8], miso: &[u8], len: u64) -> Told {
        let Some(&opcode) = mosi.first() else { return Told::new("no words", "") };
        let count =
            |bytes: u64| if bytes == 1 { "1 byte".into() } else { format!("{bytes} bytes") };
        let Some(&(_, name, then)) = OPCODES.iter().find(|(known, ..)| *known == opcode) else {
            return Told::new(format!("{opcode:02x}, {}", count(len)), "");
        };
        match name {
            "EN4B" => self.four_bytes = true,
            "EX4B" | "RST" => self.four_bytes = false,
            _ => {}
        }
        let by_mode = if self.four_bytes { 4 } else { 3 };
        let (address_len, dummy) = match then {
            Data => (0, 0),
            Address(dummy) => (by_mode, dummy),
            Address4(dummy) => (4, dummy),
            Address3(dummy) => (3, dummy),
        };
        let Some(address) = mosi.get(1..1 + address_len) else {
            return Told::new(format!("{name}, cut"), "");
        };
        let data = len.saturating_sub((1 + address_len + dummy) as u64);
        let kind = if data == 0 { name.to_owned() } else { format!("{name}, {}", count(data)) };
        let detail = if address_len > 0 {
            let address =
                address.iter().fold(0_u32, |address, &byte| address << 8 | u32::from(byte));
            format!("0x{address:0width$x}", width = 2 * address_len)
        } else {
            let writes = name.starts_with('W');
            hex((if writes { mosi } else { miso }).get(1..).unwrap_or_default())
        };
        Told::new(kind, detail)
    }
}
