//! SD cards in SPI mode: commands, their arguments and first responses.
//!
//! *Read first*: SD Association, *Physical Layer Simplified Specification*, chapter 7. A command is six bytes that begin with
//! the bits 01; its response comes within eight bytes, and begins with a 0.

use super::Told;

const NAMES: &[(u8, &str)] = &[
    (0, "GO_IDLE_STATE"),
    (1, "SEND_OP_COND"),
    (6, "SWITCH_FUNC"),
    (8, "SEND_IF_COND"),
    (9, "SEND_CSD"),
    (10, "SEND_CID"),
    (12, "STOP_TRANSMISSION"),
    (13, "SEND_STATUS"),
    (16, "SET_BLOCKLEN"),
    (17, "READ_SINGLE_BLOCK"),
    (18, "READ_MULTIPLE_BLOCK"),
    (24, "WRITE_BLOCK"),
    (25, "WRITE_MULTIPLE_BLOCK"),
    (32, "ERASE_WR_BLK_START"),
    (33, "ERASE_WR_BLK_END"),
    (38, "ERASE"),
    (41, "SD_SEND_OP_COND"),
    (55, "APP_CMD"),
    (58, "READ_OCR"),
    (59, "CRC_ON_OFF"),
];

/// The first command of a message.
pub(super) fn tell(mosi: &[u8], miso: &[u8]) -> Told {
    let begin = mosi.iter().position(|byte| *byte != 0xff);
    let Some(begin) = begin.filter(|&begin| mosi[begin] & 0xc0 == 0x40) else {
        return Told::new(format!("no command, {} bytes", mosi.len()), "");
    };
    let number = mosi[begin] & 0x3f;
    let name = NAMES.iter().find(|(known, _)| *known == number).map_or("", |(_, name)| name);
    let kind = format!("CMD{number} {name}");
    let Some(argument) = mosi.get(begin + 1..begin + 5) else {
        return Told::new(kind.trim_end(), "cut");
    };
    let argument = argument.iter().fold(0_u32, |argument, &byte| argument << 8 | u32::from(byte));
    let response = miso.iter().skip(begin + 6).take(9).find(|byte| **byte & 0x80 == 0);
    let response = response.map_or_else(String::new, |response| format!(" → R1 {response:02x}"));
    Told::new(kind.trim_end(), format!("0x{argument:08x}{response}"))
}
