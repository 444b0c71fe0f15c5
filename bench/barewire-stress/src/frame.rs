//! What every message of a stress run carries on the wire: the context that submitted it, its
//! number, its length and a checksum.
//!
//! # How it works
//! | byte | holds |
//! |---|---|
//! | 0 | `0b10` and the context |
//! | 1 to 4 | the message's number within its context |
//! | 5, 6 | its length in bytes |
//! | 7 | how many selections it has (`cs_change` between them) |
//! | 8 … | six bits each |
//! | last | the checksum of all before |
//!
//! Where CS drops inside the message, the first byte of each further selection is `0b01` and the
//! context: a selection that begins with neither belongs to no message.

/// Bytes before the payload. The first transfer of a message holds them all.
pub(super) const HEADER: usize = 8;
/// The shortest message.
pub(super) const LEN_MIN: usize = HEADER + 1;
/// Contexts that fit the first byte.
pub(super) const CONTEXTS_MAX: usize = 64;

const BEGINS: u8 = 0x80;
const GOES_ON: u8 = 0x40;
const KIND: u8 = 0xc0;

/// A message's first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) context: usize,
    pub(super) number: u32,
    pub(super) len: usize,
    pub(super) parts: usize,
}

impl Header {
    /// Where selection `part` begins, in bytes of the message.
    pub(super) fn part_at(&self, part: usize) -> usize {
        self.len * part / self.parts
    }

    /// Reads a message's first bytes; `None` if no message begins so.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEADER] = bytes.get(..HEADER)?.try_into().ok()?;
        let [first, n0, n1, n2, n3, l0, l1, parts] = *bytes;
        let len = usize::from(u16::from_le_bytes([l0, l1]));
        let good = first & KIND == BEGINS && len >= LEN_MIN && (1..=4).contains(&parts);
        good.then(|| Self {
            context: usize::from(first & !KIND),
            number: u32::from_le_bytes([n0, n1, n2, n3]),
            len,
            parts: usize::from(parts),
        })
    }

    /// Writes the message's head, and the first bytes of its further selections.
    pub(super) fn write(&self, bytes: &mut [u8]) {
        let context = self.context as u8;
        bytes[0] = BEGINS | context;
        bytes[1..5].copy_from_slice(&self.number.to_le_bytes());
        bytes[5..7].copy_from_slice(&(self.len as u16).to_le_bytes());
        bytes[7] = self.parts as u8;
        for part in 1..self.parts {
            bytes[self.part_at(part)] = GOES_ON | context;
        }
    }

    /// Whether a further selection of this message may begin with `byte`.
    pub(super) fn goes_on(&self, byte: u8) -> bool {
        byte == GOES_ON | self.context as u8
    }
}

/// A byte that no selection begins with.
pub(super) fn payload(random: u64) -> u8 {
    random as u8 & !KIND
}

/// Continues the checksum of the preceding bytes over `bytes`.
pub(super) fn checksum(before: u8, bytes: &[u8]) -> u8 {
    bytes.iter().fold(before, |sum, byte| sum.rotate_left(1) ^ byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let header = Header { context: 63, number: 70_000, len: 40, parts: 3 };
        let mut bytes = [0; 40];
        header.write(&mut bytes);
        assert_eq!(Header::read(&bytes), Some(header));
        assert!(header.goes_on(bytes[13]) && header.goes_on(bytes[26]));
        assert_eq!(Header::read(&bytes[..7]), None);
        for broken in [(0, 0x40), (5, 8), (7, 0), (7, 5)] {
            let mut bytes = bytes;
            bytes[broken.0] = broken.1;
            assert_eq!(Header::read(&bytes), None, "{broken:?}");
        }
        assert_ne!(checksum(0, &[1, 2]), checksum(0, &[2, 1]));
    }
}
