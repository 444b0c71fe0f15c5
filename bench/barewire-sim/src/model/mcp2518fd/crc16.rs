//! The CRC of the SPI instructions: DS20006027, 4.3.

/// The remainder so far: polynomial 0x8005, starting with all ones, most significant bit first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Crc16(pub(super) u16);

impl Crc16 {
    pub(super) const START: Self = Self(0xffff);

    pub(super) fn add(&mut self, byte: u8) {
        self.0 ^= u16::from(byte) << 8;
        for _ in 0..8 {
            let carry = self.0 & 0x8000 != 0;
            self.0 <<= 1;
            if carry {
                self.0 ^= 0x8005;
            }
        }
    }

    #[cfg(test)]
    pub(super) fn of(bytes: &[u8]) -> u16 {
        let mut crc = Self::START;
        bytes.iter().for_each(|&byte| crc.add(byte));
        crc.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the check value for CRC-16/CMS in Greg Cook's catalogue of CRCs.
    #[test]
    fn it_has_its_published_check_value() {
        assert_eq!(Crc16::of(b"123456789"), 0xaee7);
    }
}
