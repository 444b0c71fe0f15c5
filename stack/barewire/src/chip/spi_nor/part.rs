//! Parts known by their id: limits that SFDP does not have, times that it may not have, and parts
//! without SFDP.
//!
//! A part is listed here only if the driver was run against a model of it.

use super::geometry::{Addressing, EraseType, Geometry, JedecId, Programming};
use super::protection::Layout;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// READ's maximum clock for an unknown part: the slowest in common use.
const READ_MAX_HZ_UNKNOWN: u32 = 20_000_000;

/// The data that SFDP does not have, or may not have.
struct Known {
    id: JedecId,
    /// Whether this is the part whose SFDP has times; `None` if all parts with that id are alike.
    sfdp_has_times: Option<bool>,
    name: &'static str,
    read_max_hz: u32,
    max_hz: u32,
    protection: Layout,
    page_size: u32,
    /// Typical and maximum.
    program_ns: [u64; 2],
    /// Size, typical, maximum.
    erase: &'static [(u32, u64, u64)],
    chip_erase_ns: [u64; 2],
    status_write_max_ns: u64,
}

/// W25Q32JV and W25Q256JV datasheets, AC characteristics: tSE, tBE1, tBE2.
const W25Q_ERASE: &[(u32, u64, u64)] = &[
    (4 << 10, 45 * MS, 400 * MS),
    (32 << 10, 120 * MS, 1_600 * MS),
    (64 << 10, 150 * MS, 2_000 * MS),
];

/// W25Q256JV datasheet, AC characteristics: fR (03h, 13h) 50 MHz, FR 133 MHz, tPP, tCE, tW; status
/// register 1: BP3..BP0 and TB.
const W25Q256JV: Known = Known {
    id: JedecId([0xef, 0x40, 0x19]),
    sfdp_has_times: Some(true),
    name: "W25Q256JV",
    read_max_hz: 50_000_000,
    max_hz: 133_000_000,
    protection: Layout::WinbondBp4,
    page_size: 256,
    program_ns: [400 * US, 3 * MS],
    erase: W25Q_ERASE,
    chip_erase_ns: [80_000 * MS, 400_000 * MS],
    status_write_max_ns: 15 * MS,
};

const KNOWN: &[Known] = &[
    // W25Q32JV datasheet, AC characteristics. Its SEC bit selects sectors instead of blocks. The
    // protected range is not computed, only whether anything is protected.
    Known {
        id: JedecId([0xef, 0x40, 0x16]),
        sfdp_has_times: None,
        name: "W25Q32JV",
        protection: Layout::Unknown,
        chip_erase_ns: [10_000 * MS, 50_000 * MS],
        ..W25Q256JV
    },
    W25Q256JV,
    // The same id, SFDP of the first edition, 4-byte opcodes for reads only. (Linux's
    // drivers/mtd/spi-nor/winbond.c distinguishes the two parts in this way.) Its datasheet gives
    // 104 MHz.
    Known { sfdp_has_times: Some(false), name: "W25Q256FV", max_hz: 104_000_000, ..W25Q256JV },
];

/// Adds the table's data for `id` to a geometry from SFDP.
///
/// Times that SFDP does not have come from the table. SFDP's maximum times are typical times
/// multiplied by a coarse factor, so they are limited to the datasheet's.
pub(super) fn refine(id: JedecId, geometry: Geometry) -> Geometry {
    let times = geometry.times_known;
    let is = |part: &&Known| part.id == id && part.sfdp_has_times.is_none_or(|has| has == times);
    let Some(part) = KNOWN.iter().find(is) else {
        return Geometry { read_max_hz: READ_MAX_HZ_UNKNOWN, max_hz: None, ..geometry };
    };
    let choose = |[typical_ns, max_ns]: [u64; 2], sfdp_ns: [u64; 2]| {
        if times { [sfdp_ns[0], sfdp_ns[1].min(max_ns)] } else { [typical_ns, max_ns] }
    };
    let mut refined = Geometry {
        name: Some(part.name),
        read_max_hz: part.read_max_hz,
        max_hz: Some(part.max_hz),
        protection: part.protection,
        status_write_max_ns: part.status_write_max_ns,
        times_known: true,
        ..geometry
    };
    let program = choose(part.program_ns, [geometry.program_typical_ns, geometry.program_max_ns]);
    [refined.program_typical_ns, refined.program_max_ns] = program;
    let sfdp_ns = [geometry.chip_erase_typical_ns, geometry.chip_erase_max_ns];
    [refined.chip_erase_typical_ns, refined.chip_erase_max_ns] =
        choose(part.chip_erase_ns, sfdp_ns);
    for erase in refined.erase_types.iter_mut().flatten() {
        let listed = part.erase.iter().find(|(size, ..)| *size == erase.size);
        if let Some(&(_, typical_ns, max_ns)) = listed {
            [erase.typical_ns, erase.max_ns] =
                choose([typical_ns, max_ns], [erase.typical_ns, erase.max_ns]);
        }
    }
    if !times {
        refined.programming = Programming::Page { size: part.page_size };
        if let Addressing::FourByteMode { write_enable } = &mut refined.addressing {
            *write_enable = false;
        }
    }
    refined
}

/// The ids of all parts that are known here.
pub(super) fn ids() -> impl Iterator<Item = JedecId> {
    KNOWN.iter().map(|part| part.id).chain([SST25VF016B, S25FL512S])
}

const SST25VF016B: JedecId = JedecId([0xbf, 0x25, 0x41]);
const S25FL512S: JedecId = JedecId([0x01, 0x02, 0x20]);

/// The geometry of a part that has no SFDP.
pub(super) fn without_sfdp(id: JedecId) -> Option<Geometry> {
    match id {
        // SST25VF016B datasheet: command table; AC characteristics FCLK 25 MHz for READ, 50 MHz
        // else; TBP 10 us, TSE and TBE 25 ms, TSCE 50 ms at most.
        SST25VF016B => {
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
                times_known: true,
                status_write_max_ns: 10 * US,
                read_max_hz: 25_000_000,
                max_hz: Some(50_000_000),
                protection: Layout::SstBp3,
                name: Some("SST25VF016B"),
            })
        }
        // S25FL512S datasheet: command summary; SDR AC characteristics FSCK,R 50 MHz for READ, FSCK,C
        // 133 MHz else; embedded algorithm performance tPP, tSE, tBE, tW.
        S25FL512S => Some(Geometry {
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
            times_known: true,
            status_write_max_ns: 2_000 * MS,
            read_max_hz: 50_000_000,
            max_hz: Some(133_000_000),
            protection: Layout::SpansionBp3,
            name: Some("S25FL512S"),
        }),
        _ => None,
    }
}
