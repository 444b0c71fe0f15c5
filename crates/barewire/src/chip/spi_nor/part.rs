//! Parts known by their id: limits SFDP does not carry, and parts without SFDP.
//!
//! A part stands here only if the driver has been run against a model of it.

use super::geometry::{Addressing, EraseType, Geometry, JedecId, Programming};
use super::protection::Layout;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// READ's clock limit for a part nobody described: the slowest in common use.
const READ_MAX_HZ_UNKNOWN: u32 = 20_000_000;

/// What SFDP does not say.
pub(super) struct Limits {
    id: JedecId,
    name: &'static str,
    read_max_hz: u32,
    max_hz: u32,
    protection: Layout,
}

const LIMITS: &[Limits] = &[
    // W25Q32JV datasheet, AC characteristics: fR (03h) 50 MHz, FR 133 MHz. Its SEC bit makes blocks
    // of sectors: what is protected is not worked out, only that something is.
    Limits {
        id: JedecId([0xef, 0x40, 0x16]),
        name: "W25Q32JV",
        read_max_hz: 50_000_000,
        max_hz: 133_000_000,
        protection: Layout::Unknown,
    },
    // W25Q256JV datasheet, AC characteristics: fR (03h, 13h) 50 MHz, FR 133 MHz; status
    // register 1: BP3..BP0 and TB.
    Limits {
        id: JedecId([0xef, 0x40, 0x19]),
        name: "W25Q256JV",
        read_max_hz: 50_000_000,
        max_hz: 133_000_000,
        protection: Layout::WinbondBp4,
    },
];

/// Puts what the table knows of `id` into a geometry that SFDP described.
pub(super) fn refine(id: JedecId, geometry: Geometry) -> Geometry {
    match LIMITS.iter().find(|part| part.id == id) {
        Some(part) => Geometry {
            name: Some(part.name),
            read_max_hz: part.read_max_hz,
            max_hz: Some(part.max_hz),
            protection: part.protection,
            ..geometry
        },
        None => Geometry { read_max_hz: READ_MAX_HZ_UNKNOWN, max_hz: None, ..geometry },
    }
}

/// The geometry of a part that has no SFDP.
pub(super) fn without_sfdp(id: JedecId) -> Option<Geometry> {
    match id.0 {
        // SST25VF016B datasheet: command table; AC characteristics FCLK 25 MHz for READ, 50 MHz
        // else; TBP 10 us, TSE and TBE 25 ms, TSCE 50 ms at most.
        [0xbf, 0x25, 0x41] => {
            let erase = |size, opcode| {
                Some(EraseType { size, opcode, typical_ns: 18 * MS, max_ns: 25 * MS })
            };
            Some(Geometry {
                size: 2 << 20,
                programming: Programming::AaiWord,
                erase_types: [
                    erase(4 << 10, 0x20),
                    erase(32 << 10, 0x52),
                    erase(64 << 10, 0xd8),
                    None,
                ],
                addressing: Addressing::ThreeByte,
                program_typical_ns: 7 * US,
                program_max_ns: 10 * US,
                chip_erase_typical_ns: 35 * MS,
                chip_erase_max_ns: 50 * MS,
                status_write_max_ns: 10 * US,
                read_max_hz: 25_000_000,
                max_hz: Some(50_000_000),
                protection: Layout::SstBp3,
                name: Some("SST25VF016B"),
            })
        }
        // S25FL512S datasheet: command summary; SDR AC characteristics FSCK,R 50 MHz for READ, FSCK,C
        // 133 MHz else; embedded algorithm performance tPP, tSE, tBE, tW.
        [0x01, 0x02, 0x20] => Some(Geometry {
            size: 64 << 20,
            programming: Programming::Page { size: 512 },
            erase_types: [
                Some(EraseType {
                    size: 256 << 10,
                    opcode: 0xdc,
                    typical_ns: 520 * MS,
                    max_ns: 2_600 * MS,
                }),
                None,
                None,
                None,
            ],
            addressing: Addressing::FourByteOpcodes,
            program_typical_ns: 340 * US,
            program_max_ns: 750 * US,
            chip_erase_typical_ns: 103_000 * MS,
            chip_erase_max_ns: 460_000 * MS,
            status_write_max_ns: 2_000 * MS,
            read_max_hz: 50_000_000,
            max_hz: Some(133_000_000),
            protection: Layout::SpansionBp3,
            name: Some("S25FL512S"),
        }),
        _ => None,
    }
}
