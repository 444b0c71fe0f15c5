//! Facts that the driver knows by the JEDEC id. Of parts: limits that SFDP does not have, times that it may
//! not have, and everything if the part has no SFDP. Of makers: properties that SFDP cannot express.
//!
//! A part is listed here only if the driver was run against a model of it. Makers' rules are from the datasheets
//! named at each.

use super::address::{Addressing, Enter, Exit, THREE_BYTE_REACH, Ways};
use super::fault::Report;
use super::geometry::{EraseType, Geometry, JedecId, Programming};
use super::layout::Layout;
use super::notes::Notes;
use super::status::StatusForm;

/// JEDEC manufacturer ids.
mod id {
    pub(super) const SPANSION: u8 = 0x01;
    pub(super) const XTX: u8 = 0x0b;
    pub(super) const ADESTO: u8 = 0x1f;
    /// Parts of Micron, and XMC's, which the second byte tells apart.
    pub(super) const MICRON: u8 = 0x20;
    pub(super) const MICRON_OCTAL: u8 = 0x2c;
    pub(super) const INFINEON: u8 = 0x34;
    pub(super) const ZBIT: u8 = 0x5e;
    pub(super) const BOYA: u8 = 0x68;
    pub(super) const PUYA: u8 = 0x85;
    pub(super) const ISSI: u8 = 0x9d;
    pub(super) const FUDAN: u8 = 0xa1;
    pub(super) const ZETTA: u8 = 0xba;
    pub(super) const SST: u8 = 0xbf;
    pub(super) const MACRONIX: u8 = 0xc2;
    pub(super) const GIGADEVICE: u8 = 0xc8;
    pub(super) const WINBOND: u8 = 0xef;
}

/// The common properties of a maker's parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Maker {
    pub(super) protection: Layout,
    pub(super) form: StatusForm,
    pub(super) report: Report,
}

impl Maker {
    /// The form of a volatile register.
    pub(super) fn volatile(self) -> StatusForm {
        match self.form {
            StatusForm::One | StatusForm::Unknown => StatusForm::Volatile,
            form => form,
        }
    }
}

/// The protection bits, the form of status writes, and how failures are told, of a part of `size` bytes with
/// SFDP's quad enable requirement.
pub(super) fn of_maker(JedecId(id): JedecId, size: u64, requirement: Option<u8>) -> Maker {
    let large = size > THREE_BYTE_REACH;
    let form = StatusForm::of_requirement(requirement);
    let silent = |protection, form| Maker { protection, form, report: Report::None };
    let two_registers = if large { Layout::Bp4 } else { Layout::Bp2Sec };
    match id {
        // S25FL-S and S25FS-S datasheets: status register 1, WRR with two bytes. (S25FL-L, 01 60, and S25FL1-K,
        // 01 40, are as the last row but one.)
        [id::SPANSION, 0x02 | 0x20, _] => Maker {
            protection: Layout::SpansionBp3,
            form: StatusForm::Both,
            report: Report::StatusBits,
        },
        // S25HS-T and S25FS256T datasheets: LBPROT, PRGERR, ERSERR, CLPEF.
        [id::INFINEON, ..] => Maker {
            protection: Layout::SpansionBp3,
            form: StatusForm::Both,
            report: Report::StatusBitsClpef,
        },
        // N25Q, MT25Q and MT35X datasheets: status register, flag status register.
        [id::MICRON, 0xba | 0xbb, _] | [id::MICRON_OCTAL, ..] => Maker {
            protection: Layout::Bp3AtBit6,
            form: StatusForm::One,
            report: Report::FlagStatus,
        },
        [id::MACRONIX | id::ISSI, ..] => silent(Layout::Bp3AtBit5, StatusForm::One),
        [id::SST, 0x25, _] => silent(Layout::SstBp3, StatusForm::One),
        [id::SST, 0x26, _] => silent(Layout::SstBlocks, form),
        // AT25DF and EcoXiP datasheets: sector protection registers.
        [id::ADESTO, 0x43..=0x48 | 0xa7..=0xaa, _] => {
            silent(Layout::AdestoSectors, StatusForm::One)
        }
        // W25Q datasheets: 01h takes two bytes in every generation, and in the first ones one clears the second.
        [id::WINBOND, ..] => {
            let layout = if large { Layout::WinbondBp4 } else { Layout::Bp2Sec };
            silent(layout, if requirement == Some(6) { form } else { StatusForm::Both })
        }
        // GD25LB512ME datasheet: 01h and 31h with one byte each; its SFDP has the reserved value.
        [id::GIGADEVICE, ..] if requirement == Some(7) => {
            silent(two_registers, StatusForm::Separate)
        }
        // Their second register is at 35h, with CMP.
        [id::GIGADEVICE | id::BOYA | id::PUYA | id::XTX | id::ZBIT | id::FUDAN | id::ZETTA, ..] => {
            silent(two_registers, form)
        }
        // Macronix's place for QE, or a second register.
        _ if requirement == Some(2) => silent(Layout::Bp3AtBit5, StatusForm::One),
        _ if matches!(requirement, Some(1 | 4 | 5 | 6)) => silent(two_registers, form),
        _ => silent(Layout::Unknown, form),
    }
}

/// The ways into and out of 4-byte mode of a maker's parts whose SFDP does not name them.
pub(super) fn ways_of_maker(JedecId(id): JedecId) -> Ways {
    let (enter, exit) = match id {
        // MX25L25635E and GD25Q256C datasheets.
        [id::MACRONIX | id::GIGADEVICE, ..] => (Enter::En4b, Exit::Ex4b),
        // W25Q256FV datasheet; its extended address register is not 0 after E9h.
        [id::WINBOND, ..] => (Enter::En4b, Exit::Ex4b),
        // N25Q256A datasheet: write enable before either.
        [id::MICRON, 0xba | 0xbb, _] => (Enter::WrenEn4b, Exit::WrenEx4b),
        // IS25LP256D and S25FL-S datasheets: bank address register.
        [id::ISSI, ..] | [id::SPANSION, 0x02 | 0x20, _] => (Enter::Bank, Exit::Bank),
        _ => return Ways::default(),
    };
    let extended_address = id[0] == id::WINBOND;
    Ways { enter: Some(enter), exit: Some(exit), extended_address, ..Ways::default() }
}

/// A way out of 4-byte mode that SFDP's words cannot name.
pub(super) fn exit_of_maker(JedecId(id): JedecId) -> Option<Exit> {
    // S25HS-T, S28HS-T and S25FS256T datasheets: EX4BA.
    (id[0] == id::INFINEON).then_some(Exit::Ex4bInfineon)
}

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// READ's maximum clock for an unknown part: the slowest in common use.
const READ_MAX_HZ_UNKNOWN: u32 = 20_000_000;

/// Bits of a sector map's number that a part's table takes for set, though its configuration reads otherwise:
/// bit 1 of the S25FS512S's register 3 is reserved, and reads 0 on newer chips (linux-mtd, *spi-nor: spansion: Add
/// SMPT fixup for S25FS512S*, October 2025).
pub(super) fn map_bits_of(id: JedecId) -> u32 {
    u32::from(id == S25FL512S)
}

/// The data that SFDP does not have, or may not have.
struct PartData {
    id: JedecId,
    /// Whether this is the part whose SFDP has times; `None` if all parts with that id are alike.
    sfdp_has_times: Option<bool>,
    name: &'static str,
    read_max_hz: u32,
    max_hz: u32,
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

/// W25Q256JV datasheet, AC characteristics: fR (03h, 13h) 50 MHz, FR 133 MHz, tPP, tCE, tW.
const W25Q256JV: PartData = PartData {
    id: JedecId([0xef, 0x40, 0x19]),
    sfdp_has_times: Some(true),
    name: "W25Q256JV",
    read_max_hz: 50_000_000,
    max_hz: 133_000_000,
    page_size: 256,
    program_ns: [400 * US, 3 * MS],
    erase: W25Q_ERASE,
    chip_erase_ns: [80_000 * MS, 400_000 * MS],
    status_write_max_ns: 15 * MS,
};

const KNOWN: &[PartData] = &[
    // W25Q32JV datasheet, AC characteristics.
    PartData {
        id: JedecId([0xef, 0x40, 0x16]),
        sfdp_has_times: None,
        name: "W25Q32JV",
        chip_erase_ns: [10_000 * MS, 50_000 * MS],
        ..W25Q256JV
    },
    W25Q256JV,
    // The same id, SFDP of the first edition, 4-byte opcodes for reads only. (Linux's
    // drivers/mtd/spi-nor/winbond.c distinguishes the two parts in this way.) Its datasheet gives
    // 104 MHz.
    PartData { sfdp_has_times: Some(false), name: "W25Q256FV", max_hz: 104_000_000, ..W25Q256JV },
];

/// Adds the table's data for `id` to a geometry from SFDP.
///
/// Times that SFDP does not have come from the table. SFDP's maximum times are typical times
/// multiplied by a coarse factor, so they are limited to the datasheet's.
pub(super) fn refine(id: JedecId, geometry: Geometry) -> Geometry {
    let times = geometry.times_known;
    let is = |part: &&PartData| part.id == id && part.sfdp_has_times.is_none_or(|has| has == times);
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
    }
    refined
}

/// The ids of all parts that are known here.
pub(super) fn ids() -> impl Iterator<Item = JedecId> {
    KNOWN.iter().map(|part| part.id).chain([SST25VF016B, S25FL512S, N25Q128])
}

const SST25VF016B: JedecId = JedecId([0xbf, 0x25, 0x41]);
const S25FL512S: JedecId = JedecId([0x01, 0x02, 0x20]);
const N25Q128: JedecId = JedecId([0x20, 0xba, 0x18]);

/// The geometry of a part that has no SFDP and whose id is no other's.
pub(super) fn never_with_sfdp(id: JedecId) -> Option<Geometry> {
    match id {
        // SST25VF016B datasheet: command table; AC characteristics FCLK 25 MHz for READ, 50 MHz
        // else; TBP 10 us, TSE and TBE 25 ms, TSCE 50 ms at most.
        SST25VF016B => {
            let erase = |size, opcode| {
                Some(EraseType { size, opcode, typical_ns: 18 * MS, max_ns: 25 * MS })
            };
            let erase_types =
                [erase(4 << 10, 0x20), erase(32 << 10, 0x52), erase(64 << 10, 0xd8), None];
            Some(Geometry {
                programming: Programming::AaiWord,
                addressing: Addressing::ThreeByte,
                program_typical_ns: 7 * US,
                program_max_ns: 10 * US,
                chip_erase_typical_ns: 35 * MS,
                chip_erase_max_ns: 50 * MS,
                times_known: true,
                status_write_max_ns: 10 * US,
                read_max_hz: 25_000_000,
                max_hz: Some(50_000_000),
                name: Some("SST25VF016B"),
                ..plain(id, 2 << 20, erase_types)
            })
        }
        _ => None,
    }
}

/// The geometry of a part that may have no SFDP. A part with the same id that has SFDP, S25FS512S, is read by
/// its SFDP instead.
pub(super) fn perhaps_without_sfdp(id: JedecId) -> Option<Geometry> {
    match id {
        // S25FL512S datasheet: command summary; SDR AC characteristics FSCK,R 50 MHz for READ, FSCK,C
        // 133 MHz else; embedded algorithm performance tPP, tSE, tBE, tW.
        S25FL512S => {
            let (typical_ns, max_ns) = (520 * MS, 2_600 * MS);
            let erase = EraseType { size: 256 << 10, opcode: 0xdc, typical_ns, max_ns };
            Some(Geometry {
                programming: Programming::Page { size: 512 },
                addressing: Addressing::FourByteOpcodes,
                program_typical_ns: 340 * US,
                program_max_ns: 750 * US,
                chip_erase_typical_ns: 103_000 * MS,
                chip_erase_max_ns: 460_000 * MS,
                status_write_max_ns: 2_000 * MS,
                read_max_hz: 50_000_000,
                max_hz: Some(133_000_000),
                name: Some("S25FL512S"),
                ..plain(id, 64 << 20, [Some(erase), None, None, None])
            })
        }
        // N25Q128A datasheet: command set; AC characteristics fR 54 MHz for READ, fC 108 MHz else, tPP, tSSE, tSE, tBE,
        // tW. Silicon of today has SFDP; QEMU's model of the part has none.
        N25Q128 => {
            let erase = |size, opcode, [typical_ns, max_ns]: [u64; 2]| {
                Some(EraseType { size, opcode, typical_ns, max_ns })
            };
            let small = erase(4 << 10, 0x20, [250 * MS, 800 * MS]);
            let large = erase(64 << 10, 0xd8, [700 * MS, 3_000 * MS]);
            Some(Geometry {
                programming: Programming::Page { size: 256 },
                program_typical_ns: 500 * US,
                program_max_ns: 5 * MS,
                chip_erase_typical_ns: 170_000 * MS,
                chip_erase_max_ns: 250_000 * MS,
                status_write_max_ns: 8 * MS,
                read_max_hz: 54_000_000,
                max_hz: Some(108_000_000),
                name: Some("N25Q128"),
                ..plain(id, 16 << 20, [small, large, None, None])
            })
        }
        _ => None,
    }
}

/// The common properties of parts without SFDP, and values that each part replaces.
fn plain(id: JedecId, size: u64, erase_types: [Option<EraseType>; 4]) -> Geometry {
    let Maker { protection, form, report } = of_maker(id, size, None);
    Geometry {
        size,
        reach: size,
        programming: Programming::Page { size: 1 },
        erase_types,
        regions: Geometry::one_region(size, &erase_types),
        addressing: Addressing::ThreeByte,
        exit: None,
        extended_address: false,
        has_fast_read: true,
        chip_erase: true,
        program_typical_ns: 0,
        program_max_ns: 0,
        chip_erase_typical_ns: 0,
        chip_erase_max_ns: 0,
        times_known: true,
        status_write_max_ns: 0,
        read_max_hz: 0,
        max_hz: None,
        protection,
        volatile_protection: false,
        quad_enable: None,
        status_form: form,
        report,
        name: None,
        notes: Notes::default(),
    }
}
