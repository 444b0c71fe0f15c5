//! The sector map: which erase types hold where.
//!
//! Read first: JESD216B, sector map parameter table.
//!
//! The table has commands, each of which reads one bit of the chip's configuration, and then maps. The bits are
//! the number of the map that holds, the first one most significant.

use super::{Ask, words};
use crate::chip::spi_nor::geometry::{REGIONS_MAX, Region};

/// The opcodes that only read a register on every part: status and configuration registers, any register
/// (65h). If a table names any other opcode, it is not sent. (For example, 35h enters quad mode on some
/// parts.)
const READS: [u8; 8] = [0x05, 0x07, 0x15, 0x16, 0x65, 0x85, 0xb5, 0xc8];
/// Dummy clocks as configured: the default of the parts with such a table (S25FS-S datasheet, CR2V).
const VARIABLE_DUMMY_CLOCKS: u32 = 8;
/// The count of dummy clocks that means "as configured".
const VARIABLE: u32 = 15;

/// The content of a chip's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is no heap, and one of it at a time")]
pub(super) enum Map {
    /// There is no map: all erase types apply to the whole array.
    None,
    /// Erase types by their number in the BFPT.
    Regions([Option<Region>; REGIONS_MAX]),
    /// No map of it can be followed.
    Unclear,
}

/// Reads the table of `length` words at `pointer`, for a chip of `size` bytes. `set` has bits of the map's number
/// that are set whatever the chip's configuration reads.
pub(super) fn read<E>(
    read: &mut impl FnMut(Ask, &mut [u8]) -> Result<(), E>,
    (pointer, length): (u32, usize),
    size: u64,
    set: u32,
) -> Result<Map, E> {
    let mut map = 0_u32;
    let mut at = 0;
    let mut commands = 0;
    while at < length {
        let mut descriptor = [0; 2];
        words(read, pointer + 4 * at as u32, &mut descriptor)?;
        let [first, second] = descriptor;
        let (last, is_map) = (first & 1 == 1, first & 2 == 2);
        if !is_map {
            let Some(ask) = command(first, second) else {
                return Ok(Map::Unclear);
            };
            // Asked twice: a disturbed bit would select another map.
            let (mut one, mut other) = ([0], [0]);
            read(ask, &mut one)?;
            read(ask, &mut other)?;
            if one != other {
                return Ok(Map::Unclear);
            }
            map = map << 1 | u32::from(u32::from(one[0]) & first >> 24 != 0);
            commands += 1;
            at += 2;
            continue;
        }
        let count = (first >> 16 & 0xff) as usize + 1;
        if first >> 8 & 0xff == map | set && at + 1 + count <= length {
            return regions(read, pointer + 4 * (at as u32 + 1), count, size);
        }
        if last || commands > 8 {
            break;
        }
        at += 1 + count;
    }
    Ok(Map::Unclear)
}

/// How a bit of the configuration is read, if that is safe.
fn command(first: u32, address: u32) -> Option<Ask> {
    let opcode = (first >> 8) as u8;
    let clocks = match first >> 16 & 0xf {
        VARIABLE => VARIABLE_DUMMY_CLOCKS,
        clocks => clocks,
    };
    let address_bytes = match first >> 22 & 3 {
        0 => Some(0),
        1 => Some(3),
        2 => Some(4),
        _ => None,
    };
    let whole = clocks % 8 == 0;
    (whole && READS.contains(&opcode)).then_some(Ask::Register {
        opcode,
        address,
        address_bytes,
        dummy_bytes: (clocks / 8) as u8,
    })
}

fn regions<E>(
    read: &mut impl FnMut(Ask, &mut [u8]) -> Result<(), E>,
    pointer: u32,
    count: usize,
    size: u64,
) -> Result<Map, E> {
    let mut regions = [None; REGIONS_MAX];
    let mut listed = [0; REGIONS_MAX];
    if count > REGIONS_MAX {
        return Ok(Map::Unclear);
    }
    words(read, pointer, &mut listed[..count])?;
    let mut start = 0;
    for (slot, word) in regions.iter_mut().zip(&listed[..count]) {
        // Units of 256 bytes, less one.
        let end = start + (u64::from(word >> 8) + 1) * 256;
        *slot = Some(Region { start, end, erase_types: (word & 0xf) as u8 });
        start = end;
    }
    Ok(if start == size { Map::Regions(regions) } else { Map::Unclear })
}
