//! Tables of real parts, and bytes that are no table.

use core::convert::Infallible;
use std::vec::Vec;

use super::*;
use crate::chip::spi_nor::{
    Addressing, Enter, Exit, Layout, Note, Programming, Region, StatusForm,
};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// Of no maker that the driver knows.
const ID: JedecId = JedecId([0x77, 0x70, 0x20]);

/// The chip's answer: these bytes at their addresses, ones elsewhere.
fn image(pieces: &[(usize, &str)]) -> Vec<u8> {
    let mut image = std::vec![0xff_u8; 512];
    for &(at, hex) in pieces {
        let bytes: Vec<u8> = (0..hex.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hex"))
            .collect();
        image[at..at + bytes.len()].copy_from_slice(&bytes);
    }
    image
}

fn parse_pieces(pieces: &[(usize, &str)]) -> Result<Geometry, SfdpError> {
    parse_image(&image(pieces))
}

fn parse_image(image: &[u8]) -> Result<Geometry, SfdpError> {
    parse_as(ID, &Assume::default(), image, &mut |ask| panic!("{ask:?} of a part without maps"))
}

/// `register` answers what a sector map asks.
fn parse_as(
    id: JedecId,
    assume: &Assume,
    image: &[u8],
    register: &mut dyn FnMut(Ask) -> u8,
) -> Result<Geometry, SfdpError> {
    let Ok(parsed) = parse(id, assume, |ask, into: &mut [u8]| {
        match ask {
            Ask::Sfdp { address } => {
                for (offset, byte) in into.iter_mut().enumerate() {
                    *byte = image.get(address as usize + offset).copied().unwrap_or(0xff);
                }
            }
            Ask::Register { .. } => into.fill(register(ask)),
        }
        Ok::<(), Infallible>(())
    });
    parsed
}

fn erases(chip: &Geometry) -> Vec<(u32, u8)> {
    chip.erase_types().map(|erase| (erase.size, erase.opcode)).collect()
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
    assert_eq!(erases(&chip), [(4096, 0x21), (65536, 0xdc)], "32 KiB has no 4-byte opcode");
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
    assert_eq!(erases(&chip), [(4096, 0x20), (32768, 0x52), (65536, 0xd8)]);
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
    assert_eq!(chip.addressing, Addressing::ThreeByte);
    assert_eq!(chip.reach, 16 << 20, "no way into 4-byte mode is known of another maker's part");
    let notes: Vec<_> = chip.notes.iter().collect();
    assert_eq!(
        notes,
        [Note::Density { sfdp: 32 << 20, id: 64 << 20 }, Note::Reach { reach: 16 << 20 }]
    );
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
    assert_eq!(erases(&chip), [(256, 0x81), (4096, 0x20), (32768, 0x52), (65536, 0xd8)]);
}

#[test]
fn what_is_no_sfdp_says_so() {
    assert_eq!(parse_image(&[]), Err(SfdpError::Signature { actual: u32::MAX }));
    assert_eq!(parse_image(&[0; 64]), Err(SfdpError::Signature { actual: 0 }));
    let header_only = parse_pieces(&[(0, "53464450060101ff")]);
    assert_eq!(header_only, Err(SfdpError::NoBasicTable));
}

const MX25L25635E: [(usize, &str); 2] = [
    (0, "53464450000101ff00000109300000ffc2000104600000ff"),
    (0x30, "e520f3ffffffff0f44eb086b083b04bbeeffffffffff00ffffff00ff0c200f5210d800ff"),
];

#[test]
fn where_word_16_is_missing_the_maker_names_the_way_or_somebody_gives_it() {
    let of = |id, assume: &Assume| {
        parse_as(JedecId(id), assume, &image(&MX25L25635E), &mut |_| 0).expect("parses")
    };
    let none = Assume::default();
    let ways = |chip: Geometry| (chip.addressing, chip.exit, chip.reach >> 20);
    let mode = |enter| Addressing::FourByteMode { enter };
    let en4b = (mode(Enter::En4b), Some(Exit::Ex4b), 32);
    assert_eq!(ways(of([0xc2, 0x20, 0x19], &none)), en4b);
    let wren = (mode(Enter::WrenEn4b), Some(Exit::WrenEx4b), 32);
    assert_eq!(ways(of([0x20, 0xba, 0x19], &none)), wren);
    let bank = (mode(Enter::Bank), Some(Exit::Bank), 32);
    assert_eq!(ways(of([0x9d, 0x60, 0x19], &none)), bank);
    assert!(of([0xef, 0x40, 0x19], &none).extended_address, "it holds 1 after E9h");
    assert_eq!(ways(of([0x68, 0x40, 0x19], &none)), (Addressing::ThreeByte, None, 16));
    let given = Assume { four_byte_mode: Enter::named("b7"), ..none };
    assert_eq!(ways(of([0x68, 0x40, 0x19], &given)), en4b);
}

/// An SST26VF064B: 8K, 32K and 64K by one opcode, and a map of where each is.
const SST26VF064B: [(usize, &str); 3] = [
    (0, "53464450060102ff00060110300000ff81000106000100ffbf00011800020001"),
    (
        0x30,
        "fd20f1ffffffff0344eb086b083b80bbfeffffffffff00ffffff440b0c200dd80fd810d820914824806f1d81ed0f773830b030b0f7ffffff29c25cfff030c080",
    ),
    (0x100, "ff0004fff37f0000f57f0000f9ff7d00f57f0000f37f0000"),
];
const SST: JedecId = JedecId([0xbf, 0x26, 0x43]);

#[test]
fn a_sector_map_says_where_each_erase_type_is() {
    const KIB: u64 = 1 << 10;
    let none = Assume::default();
    let chip = parse_as(SST, &none, &image(&SST26VF064B), &mut |_| 0).expect("parses");
    let regions: Vec<_> = chip
        .regions()
        .map(|region| {
            let sizes: Vec<_> = chip.erase_types_of(region).map(|erase| erase.size >> 10).collect();
            (region.start / KIB, region.end / KIB, sizes)
        })
        .collect();
    let expected = [
        (0, 32, std::vec![4, 8]),
        (32, 64, std::vec![4, 32]),
        (64, 8128, std::vec![4, 64]),
        (8128, 8160, std::vec![4, 32]),
        (8160, 8192, std::vec![4, 8]),
    ];
    assert_eq!(regions, expected);
    assert_eq!(chip.notes.iter().count(), 0);
    assert_eq!((chip.protection, chip.status_form), (Layout::SstBlocks, StatusForm::Both));
    let largest = |at| chip.blocks_at(at).next_back().map(|block| (block.start, block.len));
    assert_eq!(largest(0x11_2000), Some((0x11_0000, 64 * KIB)));
    assert_eq!(largest(0x2000), Some((0x2000, 8 * KIB)));
    assert!(chip.erases_multiples_of(4 * KIB) && chip.erases_multiples_of(8 * KIB));
}

#[test]
fn two_types_by_one_opcode_without_a_map_are_not_used_unless_one_is_given() {
    // The same table, its map's header made another table's.
    let mut unmapped = image(&SST26VF064B);
    unmapped[16] = 0x80;
    let none = Assume::default();
    let chip = parse_as(SST, &none, &unmapped, &mut |_| 0).expect("parses");
    assert_eq!(erases(&chip), [(4096, 0x20)]);
    let shared = |smaller, larger| Note::SharedOpcode { opcode: 0xd8, smaller, larger };
    let notes: Vec<_> = chip.notes.iter().collect();
    assert_eq!(notes, [shared(8192, 32768), shared(8192, 65536), shared(32768, 65536)]);
    let given = Assume { erase_size: Some(65536), ..none };
    let chip = parse_as(SST, &given, &unmapped, &mut |_| 0).expect("parses");
    assert_eq!(erases(&chip), [(4096, 0x20), (65536, 0xd8)]);
}

/// A part with eight sectors of 4 KiB at one end, the top if a bit of its configuration is set, and uniform if
/// another one is: the structure of the S25FS-S family's map.
fn by_configuration(opcode: u32) -> Vec<u8> {
    let mut bytes = image(&[
        (0, "53464450060101ff00060110300000ff81000110000100ff"),
        (
            0x30,
            "e720f1ffffffff0744eb086b083b80bbfeffffffffff00ffffff44eb0c2010d80000000048249000910dd8",
        ),
    ]);
    // The bit that counts, a variable number of address bytes and of dummy clocks.
    let read = |address: u32| [8 << 24 | 3 << 22 | 15 << 16 | opcode << 8, address];
    let kib = |kib: u32, types: u32| (kib * 4 - 1) << 8 | types;
    let map = |last: u32, id: u32, regions: u32| (regions - 1) << 16 | id << 8 | 2 | last;
    let mut table: Vec<u32> = Vec::new();
    table.extend([read(2), read(4)].concat());
    table.extend([map(0, 0, 3), kib(32, 1), kib(32, 2), kib(16 * 1024 - 64, 2)]);
    table.extend([map(0, 2, 3), kib(16 * 1024 - 64, 2), kib(32, 2), kib(32, 1)]);
    table.extend([map(1, 1, 1), kib(16 * 1024, 2)]);
    for (index, word) in table.iter().enumerate() {
        bytes[0x100 + 4 * index..][..4].copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

#[test]
fn a_map_that_depends_on_a_configuration_is_chosen_by_reading_it() {
    let of = |registers: [u8; 2]| {
        let mut asked = Vec::new();
        let chip = parse_as(ID, &Assume::default(), &by_configuration(0x65), &mut |ask| {
            asked.push(ask);
            let Ask::Register { opcode: 0x65, address, address_bytes: None, dummy_bytes: 1 } = ask
            else {
                panic!("{ask:?}")
            };
            registers[usize::from(address == 4)]
        });
        assert_eq!(asked.len(), 4, "each twice");
        chip.expect("parses")
    };
    let bottom = of([0, 0]);
    assert_eq!(bottom.regions().count(), 3);
    let block =
        |chip: &Geometry, at| chip.blocks_at(at).next().map(|block| (block.start, block.len));
    assert_eq!(block(&bottom, 0x7fff), Some((0x7000, 0x1000)));
    assert_eq!(
        block(&bottom, 0x8000),
        Some((0x8000, 0x8000)),
        "the part of the block that the sectors leave"
    );
    assert_eq!(block(&bottom, 0x1_0000), Some((0x1_0000, 0x1_0000)));
    assert_eq!(bottom.scratch_size(), 0x1_0000);
    assert!(!bottom.erases_multiples_of(4096) && bottom.erases_multiples_of(65536));
    let top = of([8, 0]);
    assert_eq!(block(&top, 0xff_7fff), Some((0xff_0000, 0x8000)));
    assert_eq!(block(&top, 0xff_8000), Some((0xff_8000, 0x1000)));
    let uniform = of([0, 8]);
    assert_eq!(uniform.regions().collect::<Vec<_>>().len(), 1);
    let none = of([8, 8]);
    assert!(none.notes.iter().any(|note| note == Note::SectorMap));
    assert!(none.regions().eq([Region { start: 0, end: 16 << 20, erase_types: 0 }]));
}

#[test]
fn a_map_that_would_be_read_by_a_command_that_changes_something_is_not() {
    for opcode in [0x06, 0xc7, 0x01, 0x35, 0x9f] {
        let chip = parse_as(ID, &Assume::default(), &by_configuration(opcode), &mut |ask| {
            panic!("{ask:?} was sent")
        });
        let chip = chip.expect("parses");
        assert!(chip.notes.iter().any(|note| note == Note::SectorMap), "{opcode:02x}");
        let given = Assume { erase_size: Some(65536), ..Assume::default() };
        let chip = parse_as(ID, &given, &by_configuration(opcode), &mut |_| 0).expect("parses");
        assert!(chip.erases_multiples_of(65536), "{opcode:02x}");
    }
}

#[test]
fn opcodes_with_4_byte_addresses_are_used_one_by_one() {
    // An S25FS256T: 13h and 12h without 0Ch; 128K and 64K by one opcode.
    let tables = image(&[
        (0, "53464450080101ff00000114000100ff84000102500100ff"),
        (
            0x100,
            "e7ffe2ffffffff0f48eb086bffffffffeeffffffffff00ffffff00ff11d810d800ff00ff321cfeff71e9ffe1ec031c607a757a75f766805c00d65dfff938c0a1000000000000000000000000ffffffff710600fedcdcffff",
        ),
    ]);
    let id = JedecId([0x34, 0x2b, 0x19]);
    let none = Assume::default();
    let chip = parse_as(id, &none, &tables, &mut |_| 0).expect("parses");
    assert_eq!((chip.addressing, chip.has_fast_read), (Addressing::FourByteOpcodes, false));
    assert_eq!((erases(&chip), chip.reach), (std::vec![], 32 << 20));
    let shared = Note::SharedOpcode { opcode: 0xdc, smaller: 65536, larger: 131_072 };
    assert_eq!(chip.notes.iter().last(), Some(shared));
    let given = Assume { erase_size: Some(131_072), ..none };
    assert_eq!(
        erases(&parse_as(id, &given, &tables, &mut |_| 0).expect("parses")),
        [(131_072, 0xdc)]
    );
}

#[test]
fn a_bank_register_and_four_bytes_only() {
    // An IS25WP256: B7h in, the bank register out, not E9h.
    let chip = parse_as(JedecId([0x9d, 0x70, 0x19]), &Assume::default(), &image(&[
        (0, "53464450060101ff00060110300000ff9d05010380000002"),
        (0x30, "e520f9ffffffff0f44eb086b083b80bbfeffffffffff00ffffff44eb0c200f5210d800ff234ac90082d811cecccd68467a757a75f7aed55c4a422cfff030faa9"),
    ]), &mut |_| 0).expect("parses");
    assert_eq!(chip.addressing, Addressing::FourByteMode { enter: Enter::En4b });
    assert_eq!((chip.exit, chip.protection), (Some(Exit::Bank), Layout::Bp3AtBit5));
    // An ATXP032: 4 MiB, and four address bytes.
    let chip = parse_as(JedecId([0x1f, 0xa7, 0]), &Assume::default(), &image(&[
        (0, "53464450070103fc00070114280000ff05000105780000ff8700011c8c0000ff0a000104d40000fffd208cffffffff010000000000000000eeffffffffff0000ffff00000c200f5210d800ff904a4e0180bf94e220610644d0b0d0b0f7a7d55c000000ff82000040000000000000fc0121001000"),
    ]), &mut |_| 0).expect("parses");
    assert_eq!((chip.size, chip.addressing), (4 << 20, Addressing::FourByteOnly));
    assert!(chip.volatile_protection);
}

/// A W25Q512JV without its 4BAIT, and with this word 16.
fn with_word_16(word: u32) -> Geometry {
    let mut bytes = image(&[
        (0, "53464450060100ff00060110800000ff"),
        (
            0x80,
            "e520fbffffffff1f44eb086b083b42bbfeffffffffff0000ffff40eb0c200f5210d800003602a60082ea14e2e96376337a757a75f7a2d55c19f74dff",
        ),
    ]);
    bytes[0xbc..0xc0].copy_from_slice(&word.to_le_bytes());
    parse_as(ID, &Assume::default(), &bytes, &mut |_| 0).expect("parses")
}

#[test]
fn each_way_that_word_16_names_is_used_and_no_other() {
    let (enter, exit) = (|bit: u32| 1 << (24 + bit), |bit: u32| 1 << (14 + bit));
    let mode = |enter| Addressing::FourByteMode { enter };
    let out_of_reach = (Addressing::ThreeByte, 16);
    let rows = [
        (enter(0) | exit(0), (mode(Enter::En4b), 64), Some(Exit::Ex4b)),
        (enter(1) | exit(1), (mode(Enter::WrenEn4b), 64), Some(Exit::WrenEx4b)),
        (enter(3) | exit(3), (mode(Enter::Bank), 64), Some(Exit::Bank)),
        (enter(0) | exit(3), (mode(Enter::En4b), 64), Some(Exit::Bank)),
        (enter(3) | exit(0) | exit(3), (mode(Enter::Bank), 64), Some(Exit::Bank)),
        // A reset, by the opcodes that bits 12 and 11 name.
        (enter(0) | exit(6) | 1 << 12, (mode(Enter::En4b), 64), Some(Exit::Reset)),
        (enter(0) | exit(6) | 1 << 11, (mode(Enter::En4b), 64), Some(Exit::ResetF0)),
        (enter(2) | exit(2), (Addressing::ExtendedAddress, 64), None),
        (enter(6), (Addressing::FourByteOnly, 64), None),
        // Ways into 4-byte mode that are not used: one that only a power cycle leaves, a non-volatile
        // register, opcodes that no table lists, none at all.
        (enter(0) | exit(7), out_of_reach, None),
        (enter(4) | exit(4), out_of_reach, None),
        (enter(5), out_of_reach, None),
        (0, out_of_reach, None),
    ];
    for (word, (addressing, reach), way_out) in rows {
        let chip = with_word_16(word);
        assert_eq!((chip.addressing, chip.reach >> 20), (addressing, reach), "{word:08x}");
        assert_eq!(chip.exit, way_out, "{word:08x}");
        let told = chip.notes.iter().any(|note| matches!(note, Note::Reach { .. }));
        assert_eq!(told, reach == 16, "{word:08x}");
    }
}

#[test]
fn a_size_that_contradicts_the_id_is_noted_and_can_be_given() {
    // A ZD25Q128C.
    let tables = image(&[
        (0, "53464450000101ff00000109300000ffb3000103600000ff"),
        (0x30, "e520f9ffffffff0044eb086b083b80bbeeffffffffff00ffffff00ff0c200f5210d80881"),
    ]);
    let of = |assume: &Assume| {
        parse_as(JedecId([0xef, 0x40, 0x18]), assume, &tables, &mut |_| 0).expect("parses")
    };
    let chip = of(&Assume::default());
    let note = Note::Density { sfdp: 2 << 20, id: 16 << 20 };
    assert_eq!((chip.size, chip.notes.iter().collect::<Vec<_>>()), (2 << 20, std::vec![note]));
    let chip = of(&Assume { size: Some(16 << 20), ..Assume::default() });
    assert_eq!((chip.size, chip.reach, chip.notes.iter().count()), (16 << 20, 16 << 20, 0));
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
        let parsed = parse_as(ID, &Assume::default(), &image, &mut |_| 0);
        if let Ok(chip) = parsed {
            proptest::prop_assert!(chip.size > 0 && chip.size <= 4 << 30);
            proptest::prop_assert!(chip.page_size().is_power_of_two());
            for erase in chip.erase_types() {
                proptest::prop_assert!(erase.size.is_power_of_two());
                proptest::prop_assert!(u64::from(erase.size) <= chip.size);
                proptest::prop_assert!(erase.typical_ns > 0 && erase.max_ns >= erase.typical_ns);
            }
            let ends: Vec<_> = chip.regions().flat_map(|region| [region.start, region.end]).collect();
            proptest::prop_assert_eq!((ends[0], ends[ends.len() - 1]), (0, chip.size));
            proptest::prop_assert!(ends[1..ends.len() - 1].chunks(2).all(|pair| pair[0] == pair[1]));
        }
    }
}
