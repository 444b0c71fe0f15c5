//! MCP2517FD and MCP2518FD: instructions, and registers by the names of the driver's map.
//!
//! *Read first*: Microchip DS20006027, chapter 4. Four bits of instruction, twelve of address; registers are little-endian.

use barewire::chip::mcp251xfd::{MAP, MAP_2517FD};
use barewire::regmap::Map;

use super::{Told, hex};

/// RAM's place among the addresses.
const RAM: std::ops::Range<u32> = 0x400..0xc00;

#[derive(Clone, Debug)]
pub(super) struct Can {
    map: &'static Map,
}

impl Can {
    pub(super) fn new(name: &str) -> Self {
        Self { map: if name == "mcp2517fd" { &MAP_2517FD } else { &MAP } }
    }

    pub(super) fn tell(&mut self, mosi: &[u8], miso: &[u8]) -> Told {
        let &[first, second, ref sent @ ..] = mosi else { return Told::new("cut", hex(mosi)) };
        let address = u32::from(first & 0xf) << 8 | u32::from(second);
        // Bytes between address and data, and behind the data.
        let (name, reads, before, behind) = match first >> 4 {
            0x0 => return Told::new("RESET", ""),
            0x2 => ("WRITE", false, 0, 0),
            0x3 => ("READ", true, 0, 0),
            0xa => ("WRITE_CRC", false, 1, 2),
            0xb => ("READ_CRC", true, 1, 2),
            0xc => ("WRITE_SAFE", false, 0, 2),
            other => return Told::new(format!("instruction {other:x}"), hex(mosi)),
        };
        let data = if reads { miso.get(2..).unwrap_or_default() } else { sent };
        let data = data.get(before..data.len().saturating_sub(behind)).unwrap_or_default();
        let value = || data.iter().rev().fold(0_u32, |value, &byte| value << 8 | u32::from(byte));
        let word = self.map.at(address & !3).map(|register| register.to_string());
        match (word, data.len()) {
            (Some(register), 4) if address.is_multiple_of(4) => {
                Told::new(format!("{name} {register}"), format!("0x{:08x}", value()))
            }
            (Some(register), 1) => {
                Told::new(format!("{name} {register}, byte {}", address & 3), hex(data))
            }
            (Some(register), len) => {
                Told::new(format!("{name} from {register}, {len} bytes"), hex(data))
            }
            (None, len) => {
                let place = if RAM.contains(&address) { "RAM" } else { "no register" };
                Told::new(
                    format!("{name} {place}, {len} bytes"),
                    format!("0x{address:03x}: {}", hex(data)),
                )
            }
        }
    }
}
