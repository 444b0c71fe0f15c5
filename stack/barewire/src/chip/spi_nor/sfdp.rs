//! Serial flash discoverable parameters: the chip's description of itself.
//!
//! Read first: JESD216B (2014), the basic flash parameter table (BFPT) and the 4-byte address
//! instruction table (4BAIT). The first edition's BFPT has 9 words, without times or page size.
//! Missing values are replaced by values that are safe for any part, and marked by
//! [`Geometry::times_known`].
//!
//! The bytes are untrusted: whatever they are, parsing returns a consistent geometry or an error.

use super::geometry::{Addressing, EraseType, Geometry, Programming};
use super::protection::Layout;

pub(super) const SIGNATURE: u32 = u32::from_le_bytes(*b"SFDP");
const BFPT_ID: u16 = 0xff00;
const ADDRESS_4B_ID: u16 = 0xff84;
/// The number of BFPT words that are read.
const BFPT_WORDS: usize = 16;
/// The number of parameter headers that are read.
const HEADERS_MAX: u8 = 16;

/// For parts without times: a page's typical program time, and the ratio of maximum to typical
/// times.
const UNTIMED_PROGRAM_NS: u64 = 700 * US;
const UNTIMED_MULTIPLIER: u64 = 64;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// Why SFDP gave no geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum SfdpError {
    /// The first four bytes are not "SFDP": the part has no SFDP.
    Signature {
        /// These bytes.
        actual: u32,
    },
    /// There is no basic flash parameter table, or it is too short.
    NoBasicTable,
    /// The density is not a whole number of bytes, or beyond 4 GiB.
    Density {
        /// BFPT word 2.
        word: u32,
    },
    /// There is no erase type.
    NoEraseType,
}

impl core::fmt::Display for SfdpError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            SfdpError::Signature { actual } => {
                write!(f, "no SFDP signature ({actual:08x} instead of {SIGNATURE:08x})")
            }
            SfdpError::NoBasicTable => f.write_str("SFDP without a basic flash parameter table"),
            SfdpError::Density { word } => {
                write!(f, "SFDP gives a density of {word:#010x}, which is no size up to 4 GiB")
            }
            SfdpError::NoEraseType => f.write_str("SFDP lists no erase type"),
        }
    }
}

impl core::error::Error for SfdpError {}

/// Reads and parses a chip's SFDP through `read`, which fills a buffer from an SFDP address.
///
/// # Errors
/// The outer error is `read`'s. The inner one says why the tables give no geometry.
pub fn parse<E>(
    mut read: impl FnMut(u32, &mut [u8]) -> Result<(), E>,
) -> Result<Result<Geometry, SfdpError>, E> {
    let mut words = |address: u32, into: &mut [u32]| -> Result<(), E> {
        for (word, address) in into.iter_mut().zip((address..).step_by(4)) {
            let mut bytes = [0; 4];
            read(address & 0x00ff_ffff, &mut bytes)?;
            *word = u32::from_le_bytes(bytes);
        }
        Ok(())
    };
    let mut header = [0; 2];
    words(0, &mut header)?;
    if header[0] != SIGNATURE {
        return Ok(Err(SfdpError::Signature { actual: header[0] }));
    }
    let headers = ((header[1] >> 16) as u8).saturating_add(1).min(HEADERS_MAX);
    let mut bfpt = [0; BFPT_WORDS];
    let mut bfpt_words = 0;
    let mut address_4b = None;
    for index in 0..u32::from(headers) {
        let mut header = [0; 2];
        words(8 + 8 * index, &mut header)?;
        // Id least significant byte, minor, major, length; pointer, id most significant byte.
        let id = (header[1] >> 24 << 8 | header[0] & 0xff) as u16;
        let length = (header[0] >> 24) as usize;
        let pointer = header[1] & 0x00ff_ffff;
        match id {
            // Later revisions of the table may follow the first, so the longest one is used.
            BFPT_ID if length >= bfpt_words => {
                bfpt_words = length.min(BFPT_WORDS);
                words(pointer, &mut bfpt[..bfpt_words])?;
            }
            ADDRESS_4B_ID if length >= 2 => {
                let mut table = [0; 2];
                words(pointer, &mut table)?;
                address_4b = Some(table);
            }
            _ => {}
        }
    }
    if bfpt_words < 9 {
        return Ok(Err(SfdpError::NoBasicTable));
    }
    Ok(geometry(&bfpt, bfpt_words, address_4b))
}

fn geometry(
    bfpt: &[u32; BFPT_WORDS],
    bfpt_words: usize,
    address_4b: Option<[u32; 2]>,
) -> Result<Geometry, SfdpError> {
    let size = size(bfpt[1])?;
    // From JESD216A (16 words) on: times, page size, 4-byte mode.
    let timed = bfpt_words >= 11;
    let (erase_multiplier, program_multiplier) = if timed {
        (2 * (u64::from(bfpt[9] & 0xf) + 1), 2 * (u64::from(bfpt[10] & 0xf) + 1))
    } else {
        (UNTIMED_MULTIPLIER, UNTIMED_MULTIPLIER)
    };
    let addressing = addressing(bfpt, bfpt_words, address_4b, size);
    let mut erase_types = [None; 4];
    for (index, slot) in erase_types.iter_mut().enumerate() {
        let half = bfpt[7 + index / 2] >> (16 * (index % 2));
        let exponent = half & 0xff;
        // Parts have 2^12 to 2^24 bytes; another value is no erase type.
        if !(8..=24).contains(&exponent) {
            continue;
        }
        let opcode = match (addressing, address_4b) {
            (Addressing::FourByteOpcodes, Some([supported, opcodes])) => {
                if supported >> (9 + index) & 1 == 0 {
                    continue;
                }
                (opcodes >> (8 * index)) as u8
            }
            _ => (half >> 8) as u8,
        };
        let typical_ns = if timed {
            erase_time_ns(bfpt[9] >> (4 + 7 * index))
        } else {
            untimed_erase_ns(1 << exponent)
        };
        *slot = Some(EraseType {
            size: 1 << exponent,
            opcode,
            typical_ns,
            max_ns: typical_ns * erase_multiplier,
        });
    }
    erase_types.sort_unstable_by_key(|erase| erase.map_or(u32::MAX, |erase| erase.size));
    let smallest = erase_types[0].ok_or(SfdpError::NoEraseType)?.size;
    if u64::from(smallest) > size {
        return Err(SfdpError::NoEraseType);
    }
    let program_typical_ns = if timed { program_time_ns(bfpt[10]) } else { UNTIMED_PROGRAM_NS };
    let chip_erase_typical_ns = if timed { chip_erase_time_ns(bfpt[10]) } else { 100 * S };
    Ok(Geometry {
        size,
        programming: Programming::Page { size: page_size(bfpt, timed) },
        erase_types,
        addressing,
        program_typical_ns,
        program_max_ns: program_typical_ns * program_multiplier,
        chip_erase_typical_ns,
        times_known: timed,
        chip_erase_max_ns: chip_erase_typical_ns * erase_multiplier,
        // SFDP has no time for it; 40 ms is the maximum in common use.
        status_write_max_ns: 40 * MS,
        read_max_hz: 0,
        max_hz: None,
        protection: Layout::Unknown,
        name: None,
    })
}

/// BFPT word 2: the number of bits minus one, or with bit 31 its power of two.
fn size(word: u32) -> Result<u64, SfdpError> {
    let bits = if word >> 31 == 0 {
        u64::from(word) + 1
    } else {
        // 2^35 bits are 4 GiB, the reach of a 4-byte address.
        match word & 0x7fff_ffff {
            exponent @ 3..=35 => 1 << exponent,
            _ => return Err(SfdpError::Density { word }),
        }
    };
    if bits % 8 == 0 && bits >= 8 { Ok(bits / 8) } else { Err(SfdpError::Density { word }) }
}

fn page_size(bfpt: &[u32; BFPT_WORDS], timed: bool) -> u32 {
    let exponent = bfpt[10] >> 4 & 0xf;
    if timed && exponent > 0 {
        1 << exponent
    } else if bfpt[0] >> 2 & 1 == 1 {
        // The first edition only says "64 bytes or more", and part of a page is always right.
        64
    } else {
        1
    }
}

fn addressing(
    bfpt: &[u32; BFPT_WORDS],
    bfpt_words: usize,
    address_4b: Option<[u32; 2]>,
    size: u64,
) -> Addressing {
    if size <= 16 << 20 {
        return Addressing::ThreeByte;
    }
    // READ, FAST_READ, page program and at least one erase type with 4-byte opcodes.
    let wanted = 1 << 0 | 1 << 1 | 1 << 6;
    if let Some([supported, _]) = address_4b
        && supported & wanted == wanted
        && supported >> 9 & 0xf != 0
    {
        return Addressing::FourByteOpcodes;
    }
    // Word 16, bits 31:24: bit 24 is EN4B without WREN, bit 25 is WREN before it. Without the word
    // WREN is sent, which some parts require (N25Q256A) and the others tolerate.
    let enter = if bfpt_words >= 16 { bfpt[15] >> 24 } else { 2 };
    Addressing::FourByteMode { write_enable: enter & 3 == 2 }
}

/// The erase time of a block on parts of the first edition's time: 50 ms for 4 KiB, 150 ms for 64
/// KiB, and so on in proportion.
fn untimed_erase_ns(size: u32) -> u64 {
    match size {
        ..=0x1000 => 50 * MS,
        0x1001..=0x1_0000 => 150 * MS,
        _ => 150 * MS * u64::from(size >> 16),
    }
}

/// Seven bits: a count and its unit.
fn erase_time_ns(field: u32) -> u64 {
    let unit_ns = [MS, 16 * MS, 128 * MS, S][(field >> 5 & 3) as usize];
    (u64::from(field & 0x1f) + 1) * unit_ns
}

fn program_time_ns(word: u32) -> u64 {
    let unit_ns = [8 * US, 64 * US][(word >> 13 & 1) as usize];
    (u64::from(word >> 8 & 0x1f) + 1) * unit_ns
}

fn chip_erase_time_ns(word: u32) -> u64 {
    let unit_ns = [16 * MS, 256 * MS, 4 * S, 64 * S][(word >> 29 & 3) as usize];
    (u64::from(word >> 24 & 0x1f) + 1) * unit_ns
}

#[cfg(test)]
mod tests {
    use core::convert::Infallible;
    use std::vec::Vec;

    use super::*;

    /// The chip's answer: these bytes at their addresses, ones elsewhere.
    fn parse_pieces(pieces: &[(usize, &str)]) -> Result<Geometry, SfdpError> {
        let mut image = std::vec![0xff_u8; 512];
        for &(at, hex) in pieces {
            let bytes: Vec<u8> = (0..hex.len())
                .step_by(2)
                .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hex"))
                .collect();
            image[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        parse_image(&image)
    }

    fn parse_image(image: &[u8]) -> Result<Geometry, SfdpError> {
        let Ok(parsed) = parse(|address, into: &mut [u8]| {
            for (offset, byte) in into.iter_mut().enumerate() {
                *byte = image.get(address as usize + offset).copied().unwrap_or(0xff);
            }
            Ok::<(), Infallible>(())
        });
        parsed
    }

    // Answers of real chips, as published by their owners (Linux's mailing lists and trackers).
    #[test]
    fn a_w25q512jv_is_64_mib_with_4_byte_opcodes() {
        let chip = parse_pieces(&[
            (0, "53464450060101ff00060110800000ff84000102d00000ff"),
            (0x80, "e520fbffffffff1f44eb086b083b42bbfeffffffffff0000ffff40eb0c200f5210d800003602a60082ea14e2e96376337a757a75f7a2d55c19f74dffe970f9a5"),
            (0xd0, "ff0af0ff21ffdcff"),
        ])
        .expect("parses");
        assert_eq!(chip.size, 64 << 20);
        assert_eq!(chip.addressing, Addressing::FourByteOpcodes);
        assert_eq!(chip.programming, Programming::Page { size: 256 });
        let erase: Vec<_> = chip.erase_types().map(|erase| (erase.size, erase.opcode)).collect();
        assert_eq!(erase, [(4096, 0x21), (65536, 0xdc)], "32 KiB has no 4-byte opcode");
        let times: Vec<_> =
            chip.erase_types().map(|erase| (erase.typical_ns / MS, erase.max_ns / MS)).collect();
        assert_eq!(times, [(64, 896), (160, 2240)]);
        assert!(chip.times_known);
        assert_eq!((chip.program_typical_ns, chip.program_max_ns), (704 * US, 6 * 704 * US));
    }

    #[test]
    fn a_w25q64jw_has_three_byte_addresses() {
        let chip = parse_pieces(&[
            (0, "53464450060101ff00060110800000ff84000102d00000ff"),
            (0x80, "e520f9ffffffff0344eb086b083b42bbfeffffffffff0000ffff40eb0c200f5210d800003602a60082ea14c4e96376337a757a75f7bdd55c19f75dffe930f880"),
            (0xd0, "0000f0ffffffffff"),
        ])
        .expect("parses");
        assert_eq!(chip.size, 8 << 20);
        assert_eq!(chip.addressing, Addressing::ThreeByte);
        let erase: Vec<_> = chip.erase_types().map(|erase| (erase.size, erase.opcode)).collect();
        assert_eq!(erase, [(4096, 0x20), (32768, 0x52), (65536, 0xd8)]);
    }

    #[test]
    fn a_first_edition_table_gets_safe_values() {
        // MX25L25635E: nine words, 32 MiB, no 4BAIT.
        let chip = parse_pieces(&[
            (0, "53464450000101ff00000109300000ffc2000104600000ff"),
            (0x30, "e520f3ffffffff0f44eb086b083b04bbeeffffffffff00ffffff00ff0c200f5210d800ff"),
        ])
        .expect("parses");
        assert_eq!(chip.size, 32 << 20);
        assert_eq!(chip.addressing, Addressing::FourByteMode { write_enable: true });
        assert_eq!(chip.programming, Programming::Page { size: 64 });
        assert!(!chip.times_known);
        let times: Vec<_> =
            chip.erase_types().map(|erase| (erase.typical_ns / MS, erase.max_ns / MS)).collect();
        assert_eq!(times, [(50, 3_200), (150, 9_600), (150, 9_600)]);
        assert_eq!(chip.erase_size(), 4096);
    }

    #[test]
    fn a_part_with_256_byte_blocks() {
        // PUYA P25D40SH: the fourth erase type is the smallest.
        let chip = parse_pieces(&[
            (0, "53464450000101ff00000109300000ff85000103600000ff"),
            (0x30, "e520f1ffffff3f0044eb086b083b80bbfeffffffffff00ffffff44eb0c200f5210d80881"),
        ])
        .expect("parses");
        assert_eq!(chip.size, 512 << 10);
        let erase: Vec<_> = chip.erase_types().map(|erase| (erase.size, erase.opcode)).collect();
        assert_eq!(erase, [(256, 0x81), (4096, 0x20), (32768, 0x52), (65536, 0xd8)]);
    }

    #[test]
    fn what_is_no_sfdp_says_so() {
        assert_eq!(parse_image(&[]), Err(SfdpError::Signature { actual: u32::MAX }));
        assert_eq!(parse_image(&[0; 64]), Err(SfdpError::Signature { actual: 0 }));
        let header_only = parse_pieces(&[(0, "53464450060101ff")]);
        assert_eq!(header_only, Err(SfdpError::NoBasicTable));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_end_in_a_sensible_geometry_or_an_error(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..256),
            signed in proptest::bool::ANY,
        ) {
            let mut image = bytes;
            if signed && image.len() >= 24 {
                image[..8].copy_from_slice(b"SFDP\x06\x01\x01\xff");
                image[8..16].copy_from_slice(&[0, 6, 1, 16, 24, 0, 0, 0xff]);
            }
            if let Ok(chip) = parse_image(&image) {
                proptest::prop_assert!(chip.size > 0 && chip.size <= 4 << 30);
                proptest::prop_assert!(chip.page_size().is_power_of_two());
                proptest::prop_assert!(u64::from(chip.erase_size()) <= chip.size);
                for erase in chip.erase_types() {
                    proptest::prop_assert!(erase.size.is_power_of_two());
                    proptest::prop_assert!(erase.typical_ns > 0 && erase.max_ns >= erase.typical_ns);
                }
            }
        }
    }
}
