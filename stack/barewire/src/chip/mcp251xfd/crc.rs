//! The CRC of an exchange: polynomial 0x8005, initial value 0xffff, over command, length and data
//! (DS20006027, chapter "CRC").

/// Continues `crc` over `bytes`.
pub(super) fn crc16(crc: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(crc, |crc, &byte| TABLE[usize::from((crc >> 8) as u8 ^ byte)] ^ crc << 8)
}

/// The initial value.
pub(super) const INIT: u16 = 0xffff;

const POLYNOMIAL: u16 = 0x8005;

static TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { crc << 1 ^ POLYNOMIAL } else { crc << 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};
