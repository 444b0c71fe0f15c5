//! Bytes to FIFO words and back.
//!
//! [`pack`] and [`unpack`] serve every controller: bytes go most significant first; words of 16 and 32
//! bits are in memory in the CPU's byte order and are sent whole. A FIFO word that is wider carries
//! several of them, the earliest in its upper part.
//!
//! [`first_word_bytes`] is for ECSPI, whose burst is a string of bits that the FIFO cuts into 32-bit
//! words from its *end*: a burst of 5 bytes is a word with 1 byte in its low bits, then a word of 4.

/// How many bytes (1 to 4) the first FIFO word of a burst of `len` bytes carries.
#[inline]
pub(super) const fn first_word_bytes(len: usize) -> usize {
    match len % 4 {
        0 => 4,
        rest => rest,
    }
}

/// The FIFO word of `bytes` (1 to 4 of them, whole words of `word_bytes`).
#[inline(always)]
pub(super) fn pack(bytes: &[u8], word_bytes: u8) -> u32 {
    if let (Ok(&bytes), 1) = (<&[u8; 4]>::try_from(bytes), word_bytes) {
        return u32::from_be_bytes(bytes);
    }
    match (bytes, word_bytes) {
        (&[a, b, c, d], 2) => {
            u32::from(u16::from_ne_bytes([a, b])) << 16 | u32::from(u16::from_ne_bytes([c, d]))
        }
        (&[a, b, c, d], 4) => u32::from_ne_bytes([a, b, c, d]),
        (&[a, b], 2) => u16::from_ne_bytes([a, b]).into(),
        _ => bytes.iter().fold(0, |word, &byte| word << 8 | u32::from(byte)),
    }
}

/// The reverse of [`pack`], into `bytes`.
#[inline(always)]
pub(super) fn unpack(word: u32, bytes: &mut [u8], word_bytes: u8) {
    if let Ok(bytes) = <&mut [u8; 4]>::try_from(&mut *bytes) {
        if word_bytes == 1 {
            *bytes = word.to_be_bytes();
            return;
        }
    }
    match (bytes.len(), word_bytes) {
        (4, 2) => {
            bytes[..2].copy_from_slice(&((word >> 16) as u16).to_ne_bytes());
            bytes[2..].copy_from_slice(&(word as u16).to_ne_bytes());
        }
        (4, 4) => bytes.copy_from_slice(&word.to_ne_bytes()),
        (2, 2) => bytes.copy_from_slice(&(word as u16).to_ne_bytes()),
        // The last byte is the lowest. Must not panic: a caller's guard would then have to be in
        // memory.
        _ => {
            let mut rest = word;
            for byte in bytes.iter_mut().rev() {
                *byte = rest as u8;
                rest >>= 8;
            }
        }
    }
}

/// The FIFO's word of `N` bytes.
#[inline(always)]
pub(super) fn word_of<const N: usize>(bytes: &[u8; N]) -> u32 {
    pack(bytes, 1)
}

/// The reverse of [`word_of`], into `bytes`.
#[inline(always)]
pub(super) fn put_frame<const N: usize>(bytes: &mut [u8; N], word: u32) {
    unpack(word, bytes, 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_fill_a_word_from_its_low_end() {
        assert_eq!(pack(&[0x9f], 1), 0x9f);
        assert_eq!(pack(&[0x03, 0x01, 0x02], 1), 0x03_01_02);
        assert_eq!(pack(&[1, 2, 3, 4], 1), 0x01_02_03_04);
    }

    #[test]
    fn wider_words_keep_their_value() {
        let mut bytes = [0; 4];
        bytes[..2].copy_from_slice(&0x1234_u16.to_ne_bytes());
        bytes[2..].copy_from_slice(&0x5678_u16.to_ne_bytes());
        assert_eq!(pack(&bytes, 2), 0x1234_5678);
        assert_eq!(pack(&bytes[..2], 2), 0x1234);
        assert_eq!(pack(&0x89ab_cdef_u32.to_ne_bytes(), 4), 0x89ab_cdef);
    }

    #[test]
    fn what_is_packed_unpacks() {
        let bytes = [0xde, 0xad, 0xbe, 0xef];
        for (len, word_bytes) in [(1, 1), (2, 1), (3, 1), (4, 1), (2, 2), (4, 2), (4, 4)] {
            let mut back = [0; 4];
            unpack(pack(&bytes[..len], word_bytes), &mut back[..len], word_bytes);
            assert_eq!(back[..len], bytes[..len], "{len} bytes in words of {word_bytes}");
        }
    }

    #[test]
    fn a_burst_is_cut_from_its_end() {
        assert_eq!([1, 2, 3, 4, 5, 8, 9].map(first_word_bytes), [1, 2, 3, 4, 1, 4, 1]);
    }
}
