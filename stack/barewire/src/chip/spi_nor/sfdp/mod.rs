//! Serial flash discoverable parameters: the chip's description of itself.
//!
//! Read first: JESD216B (2014), the basic flash parameter table (BFPT), the 4-byte address instruction table
//! (4BAIT) and the sector map parameter table (SMPT). The first edition's BFPT has 9 words, without times or
//! page size. Missing values are replaced by values that are safe for any part, and marked by
//! [`Geometry::times_known`].
//!
//! The bytes are untrusted: whatever they are, parsing returns a consistent geometry or an error.
//!
//! `basic.rs` has the BFPT, `width.rs` the address widths (words 1 and 16, and the 4BAIT), and `map.rs` the
//! SMPT.

mod basic;
mod map;
#[cfg(test)]
mod tests;
mod width;

use super::assume::Assume;
use super::geometry::{Geometry, JedecId};
use super::part;

/// The first four bytes.
pub(super) const SIGNATURE: u32 = u32::from_le_bytes(*b"SFDP");
const BFPT_ID: u16 = 0xff00;
const ADDRESS_4B_ID: u16 = 0xff84;
const SECTOR_MAP_ID: u16 = 0xff81;
/// The number of BFPT words that are read.
const BFPT_WORDS: usize = 16;
/// The number of parameter headers that are read.
const HEADERS_MAX: usize = 16;

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

/// The reads that parsing needs of a chip. None of them changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Ask {
    /// Bytes of SFDP from an address.
    Sfdp {
        /// The address.
        address: u32,
    },
    /// A register, for which the sector map says how it is read.
    Register {
        /// The opcode: one of those that only read.
        opcode: u8,
        /// The address.
        address: u32,
        /// The number of address bytes; `None` is that of the chip's mode.
        address_bytes: Option<u8>,
        /// The number of dummy bytes.
        dummy_bytes: u8,
    },
}

/// Reads and parses the SFDP of the chip `id` through `read`, which fills a buffer from an SFDP
/// address.
///
/// # Errors
/// The outer error is `read`'s. The inner one says why the tables give no geometry.
pub fn parse<E>(
    id: JedecId,
    assume: &Assume,
    mut read: impl FnMut(Ask, &mut [u8]) -> Result<(), E>,
) -> Result<Result<Geometry, SfdpError>, E> {
    let mut header = [0; 2];
    words(&mut read, 0, &mut header)?;
    if header[0] != SIGNATURE {
        return Ok(Err(SfdpError::Signature { actual: header[0] }));
    }
    let count = ((header[1] >> 16 & 0xff) as usize + 1).min(HEADERS_MAX);
    let mut headers = [0; 2 * HEADERS_MAX];
    words(&mut read, 8, &mut headers[..2 * count])?;
    let mut bfpt = [0; BFPT_WORDS];
    let mut bfpt_words = 0;
    let mut address_4b = None;
    let mut sector_map = None;
    for header in headers[..2 * count].chunks_exact(2) {
        // Id least significant byte, minor, major, length; pointer, id most significant byte.
        let table = (header[1] >> 24 << 8 | header[0] & 0xff) as u16;
        let length = (header[0] >> 24) as usize;
        let pointer = header[1] & 0x00ff_ffff;
        match table {
            // Later revisions of the table may follow the first, so the longest one is used.
            BFPT_ID if length >= bfpt_words => {
                bfpt_words = length.min(BFPT_WORDS);
                words(&mut read, pointer, &mut bfpt[..bfpt_words])?;
            }
            ADDRESS_4B_ID if length >= 2 => {
                let mut table = [0; 2];
                words(&mut read, pointer, &mut table)?;
                address_4b = Some(table);
            }
            SECTOR_MAP_ID => sector_map = Some((pointer, length)),
            _ => {}
        }
    }
    if bfpt_words < 9 {
        return Ok(Err(SfdpError::NoBasicTable));
    }
    let basic = basic::Basic { bfpt: &bfpt, words: bfpt_words, address_4b, id };
    let size = match assume.size.map_or_else(|| basic.size(), Ok) {
        Ok(size) => size,
        Err(error) => return Ok(Err(error)),
    };
    let map = match sector_map {
        Some(table) => map::read(&mut read, table, size, part::map_bits_of(id))?,
        None => map::Map::None,
    };
    Ok(basic.geometry(size, &map, assume))
}

/// Fills `into` with SFDP's words from `address`.
fn words<E>(
    read: &mut impl FnMut(Ask, &mut [u8]) -> Result<(), E>,
    address: u32,
    into: &mut [u32],
) -> Result<(), E> {
    const PIECE: usize = 16;
    let mut bytes = [0; 4 * PIECE];
    for (piece, at) in into.chunks_mut(PIECE).zip((address..).step_by(4 * PIECE)) {
        let bytes = &mut bytes[..4 * piece.len()];
        read(Ask::Sfdp { address: at & 0x00ff_ffff }, bytes)?;
        for (word, bytes) in piece.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
    }
    Ok(())
}
