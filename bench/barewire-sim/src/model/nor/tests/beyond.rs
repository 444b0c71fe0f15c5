//! Behaviour of parts that their SFDP does not describe, tested with raw bytes.

use super::*;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// A part whose array holds zeros.
fn zeroed(part: Part) -> Bench {
    let mut bench = Bench::new(part);
    bench.nor.content.fill(0);
    bench
}

/// Erases by `command` and returns the range that became blank.
fn erased(b: &mut Bench, command: &[u8]) -> std::ops::Range<usize> {
    b.nor.content.fill(0);
    b.change(command);
    let blank = |byte: &u8| *byte == 0xff;
    let Some(first) = b.nor.content().iter().position(blank) else {
        return 0..0;
    };
    let end = b.nor.content().iter().rposition(blank).map_or(first, |last| last + 1);
    assert!(b.nor.content()[first..end].iter().all(blank), "with a hole");
    first..end
}

fn address_3(at: usize) -> [u8; 3] {
    let [_, high, middle, low] = (at as u32).to_be_bytes();
    [high, middle, low]
}

#[test]
fn sst26_is_locked_until_98h_and_wel_stays_after_what_is_ignored() {
    let mut b = zeroed(Part::sst26vf064b());
    let locked = b.run(&[0x72], 18);
    assert_eq!(locked[..2], [0x55, 0x55]);
    assert!(locked[2..].iter().all(|&byte| byte == 0xff) && b.nor.locked(0x12_3456));
    for command in [&[0xd8, 0x10, 0, 0][..], &[0x20, 0, 0, 0], &[0xc7], &[0x02, 0, 0, 0, 0x55]] {
        b.enabled(command);
        assert_eq!(b.status(), WEL, "{command:02x?}");
    }
    assert!(b.nor.content().iter().all(|&byte| byte == 0));
    b.send(&[0x04]);
    b.send(&[0x98]);
    assert!(b.complaint().contains("without write enable"));
    b.enabled(&[0x98]);
    assert_eq!((b.status(), b.run(&[0x72], 18)), (0, vec![0; 18]));
    assert_eq!(erased(&mut b, &[0x20, 0x10, 0, 0]), MIB..MIB + 4 * KIB);
    b.nor.power_cycle();
    assert!(b.nor.locked(0));
}

#[test]
fn sst26_locks_each_block_by_its_own_bit() {
    let mut b = zeroed(Part::sst26vf064b());
    // Bit 142 locks the last 8 KiB, 128 the first, 127 and 126 the 32 KiB blocks, 0 the first 64 KiB block.
    for (bit, block) in [
        (142, 0x7f_e000..0x80_0000),
        (136, 0x7f_8000..0x7f_a000),
        (134, 0x6000..0x8000),
        (128, 0..0x2000),
        (127, 0x7f_0000..0x7f_8000),
        (126, 0x8000..0x1_0000),
        (125, 0x7e_0000..0x7f_0000),
        (0, 0x1_0000..0x2_0000),
    ] {
        let mut register = [0; 18];
        register[17 - bit / 8] = 1 << (bit % 8);
        b.enabled(&[&[0x42][..], &register].concat());
        assert_eq!(b.run(&[0x72], 18), register);
        let locked: Vec<usize> =
            (0..8 * MIB).step_by(4 * KIB).filter(|&at| b.nor.locked(at)).collect();
        assert_eq!(locked.first(), Some(&block.start), "bit {bit}");
        assert_eq!(locked.len(), block.len() / (4 * KIB), "bit {bit}");
        assert_eq!(b.nor.block_at(block.start).len(), 4 * KIB);
        b.enabled(&[&[0xd8][..], &address_3(block.start)].concat());
        assert_eq!(b.status(), WEL);
    }
    b.quiet();
}

#[test]
fn sst26_erases_8_32_or_64_kib_by_d8h_as_the_place_has_it() {
    let mut b = zeroed(Part::sst26vf064b());
    b.enabled(&[0x98]);
    for (at, block) in [
        (0, 0..0x2000),
        (0x3fff, 0x2000..0x4000),
        (0x6000, 0x6000..0x8000),
        (0x8000, 0x8000..0x1_0000),
        (0x1_0000, 0x1_0000..0x2_0000),
        (0x11_2345, 0x11_0000..0x12_0000),
        (0x7e_ffff, 0x7e_0000..0x7f_0000),
        (0x7f_0000, 0x7f_0000..0x7f_8000),
        (0x7f_8000, 0x7f_8000..0x7f_a000),
        (0x7f_ffff, 0x7f_e000..0x80_0000),
    ] {
        assert_eq!(erased(&mut b, &[&[0xd8][..], &address_3(at)].concat()), block, "{at:x}");
        let expected = [(0x20, at & !0xfff..(at & !0xfff) + 0x1000), (0xd8, block)];
        assert_eq!(b.nor.blocks_at(at), expected, "{at:x}");
    }
    // There is no 32 KiB opcode.
    assert_eq!(erased(&mut b, &[0x52, 0x10, 0, 0]), 0..0);
    assert_eq!(b.status(), WEL);
}

#[test]
fn s25fs_s_has_4_kib_sectors_at_the_end_that_its_registers_say() {
    let mut b = zeroed(Part::s25fs512s());
    let four = |opcode, at: usize| [&[opcode][..], &(at as u32).to_be_bytes()].concat();
    assert_eq!(erased(&mut b, &four(0x21, 0x7fff)), 0x7000..0x8000);
    // 20h where there is no such sector: ignored, no error, WEL stays.
    assert_eq!(erased(&mut b, &four(0x21, 0x8000)), 0..0);
    assert_eq!(b.status(), WEL);
    assert!(b.complaint().contains("no such sector"));
    // A block erase under the 4 KiB sectors: it erases only the part that they do not cover.
    assert_eq!(erased(&mut b, &four(0xdc, 0)), 0x8000..0x4_0000);
    assert_eq!(erased(&mut b, &four(0xdc, 0x3ff_ffff)), 0x3fc_0000..0x400_0000);
    // TBPARM: at the top. It is bit 2 of configuration register 1, by 71h at 2.
    b.change(&[0x71, 0, 0, 2, 0x04]);
    assert_eq!(b.run(&[0x65, 0, 0, 2, 0], 2), [0x04, 0x04]);
    assert_eq!(erased(&mut b, &four(0x21, 0x3ff_8000)), 0x3ff_8000..0x3ff_9000);
    assert_eq!(erased(&mut b, &four(0xdc, 0x3ff_8000)), 0x3fc_0000..0x3ff_8000);
    assert_eq!(erased(&mut b, &four(0xdc, 0)), 0..0x4_0000);
    // Configuration register 3, bit 3: none.
    b.change(&[0x71, 0x80, 0, 4, 0x08]);
    assert_eq!(b.run(&[0x65, 0x80, 0, 4, 0], 1), [0x08]);
    assert_eq!(erased(&mut b, &four(0xdc, 0x3ff_8000)), 0x3fc_0000..0x400_0000);
    assert_eq!(erased(&mut b, &four(0x21, 0x3ff_8000)), 0..0);
    let mut b = zeroed(Part::s25fs128s());
    assert_eq!(erased(&mut b, &[0xd8, 0, 0x80, 0]), 0x8000..0x1_0000);
    b.nor.leave(&Left { configuration: [None, Some(0x02)], ..Left::default() });
    assert_eq!(erased(&mut b, &[0xd8, 0, 0x80, 0]), 0x8000..0x4_0000);
}

#[test]
fn s25fs_s_tells_512_bytes_a_page_and_wraps_at_256() {
    let mut b = Bench::new(Part::s25fs512s());
    // Word 11, bits 7:4: 2 to the ninth.
    assert_eq!(b.run(&[0x5a, 0, 0x11, 0x48, 0], 1)[0] >> 4, 9);
    let data: Vec<u8> = [0x11; 256].into_iter().chain(0..=255).collect();
    b.change(&[&[0x12, 0, 0, 0, 0][..], &data].concat());
    assert_eq!(b.nor.content()[..256], data[256..]);
    assert!(b.nor.content()[256..512].iter().all(|&byte| byte == 0xff));
    b.quiet();
}

#[test]
fn s25fs256t_starts_in_four_byte_mode_and_leaves_it_by_b8h_alone() {
    let mut b = zeroed(Part::s25fs256t());
    b.nor.content[0x112_3456] = 0x42;
    assert_eq!(b.run(&[0x03, 0x01, 0x12, 0x34, 0x56], 1), [0x42]);
    assert_eq!(b.run(&[0x5a, 0, 0, 0, 0], 4), *b"SFDP", "three address bytes");
    b.send(&[0xe9]);
    assert!(b.nor.four_byte_mode());
    b.send(&[0xb8]);
    assert!(!b.nor.four_byte_mode());
    assert_eq!(b.run(&[0x03, 0x12, 0x34, 0x56], 1), [0]);
    // A volatile register has no dummy byte: the address length, bit 7.
    assert_eq!(b.run(&[0x65, 0x80, 0, 3], 1), [0]);
    b.send(&[0xb7]);
    assert_eq!(b.run(&[0x65, 0, 0x80, 0, 3], 1), [0x80]);
    assert_eq!(b.run(&[0x65, 0, 0, 0, 6, 0], 1), [0], "the architecture, after a dummy byte");
    // Both sizes of its table have one opcode. It erases 128 KiB.
    assert_eq!(erased(&mut b, &[0xd8, 0x01, 0x03, 0, 0]), 0x102_0000..0x104_0000);
    assert_eq!(erased(&mut b, &[0xdc, 0x01, 0x01, 0, 0]), 0x100_0000..0x102_0000);
    // 0Ch is not obeyed.
    assert_eq!(b.run(&[0x0c, 0x01, 0x12, 0x34, 0x56, 0], 1), [0xff]);
    // Error bits stay, with WIP, until 82h.
    b.nor.leave(&Left { status: [Some(0x1c), None, None], ..Left::default() });
    b.enabled(&[0x12, 0, 0, 0, 0, 0]);
    assert_eq!(b.status(), 0x1c | 0x40 | WEL | BUSY);
    b.send(&[0x82]);
    assert_eq!(b.status(), 0x1c | WEL);
}

#[test]
fn is25wp256_leaves_four_byte_mode_by_29h_or_its_bank_register_and_not_by_e9h() {
    let mut b = Bench::new(Part::is25wp256());
    let enter = |b: &mut Bench| {
        b.send(&[0xb7]);
        b.send(&[0xe9]);
        assert!(b.nor.four_byte_mode());
        assert_eq!(b.run(&[0x16], 1), [0x80]);
    };
    enter(&mut b);
    b.send(&[0x29]);
    assert!(!b.nor.four_byte_mode());
    enter(&mut b);
    b.send(&[0x17, 0x00]);
    assert!(!b.nor.four_byte_mode());
    b.send(&[0x17, 0x01]);
    assert_eq!((b.nor.extended_address(), b.nor.four_byte_mode()), (1, false));
    b.nor.content[0x100_0000] = 0x42;
    assert_eq!(b.run(&[0x03, 0, 0, 0], 1), [0x42]);
    // A second byte makes 01h void, and WEL stays.
    b.enabled(&[0x01, 0x3c, 0]);
    assert!(b.complaint().contains("2 data bytes"));
    assert_eq!(b.status(), WEL);
    b.change(&[0x01, 0x60]);
    // BP3 is bit 5: 2 to the seventh blocks. QE, bit 6, protects nothing.
    assert_eq!((b.status(), b.nor.protected()), (0x60, 24 * MIB..32 * MIB));
    b.quiet();
}

#[test]
fn w25q256fv_reads_its_second_half_after_e9h_until_c5h() {
    let mut b = zeroed(Part::w25q256fv());
    b.nor.content[0x100_0000] = 0x42;
    assert_eq!((b.run(&[0xc8], 1), b.run(&[0x03, 0, 0, 0], 1)), (vec![0], vec![0]));
    b.send(&[0xb7]);
    b.send(&[0xe9]);
    assert_eq!((b.run(&[0xc8], 1), b.run(&[0x03, 0, 0, 0], 1)), (vec![1], vec![0x42]));
    b.send(&[0xc5, 0]);
    assert!(b.complaint().contains("without write enable"));
    b.enabled(&[0xc5, 0]);
    assert_eq!(b.run(&[0x03, 0, 0, 0], 1), [0]);
    assert_eq!(b.status(), WEL, "C5h does not clear it");
    // Of the dedicated opcodes it has only the reads.
    assert_eq!(b.run(&[0x13, 1, 0, 0, 0], 1), [0x42]);
    b.enabled(&[0x21, 1, 0, 0, 0]);
    assert_eq!(b.status(), WEL);
    b.quiet();
    let mut later = Bench::winbond();
    later.send(&[0xb7]);
    later.send(&[0xe9]);
    assert_eq!(later.run(&[0xc8], 1), [0]);
    later.enabled(&[0xc5, 0x03]);
    assert_eq!(
        (later.run(&[0xc8], 1), later.nor.extended_address()),
        (vec![1], 1),
        "the part keeps only one bit"
    );
}

#[test]
fn micron_needs_wel_for_its_mode_and_70h_after_each_change() {
    let mut b = Bench::new(Part::mt25qu256a());
    b.send(&[0xb7]);
    assert!(b.complaint().contains("without WEL") && !b.nor.four_byte_mode());
    b.enabled(&[0xb7]);
    assert_eq!(b.run(&[0x70], 1), [0x81]);
    b.enabled(&[0xe9]);
    assert_eq!(b.run(&[0x70], 1), [0x80]);
    b.enabled(&[0x02, 0, 0, 0, 0]);
    assert_eq!(b.run(&[0x70], 1), [0x00], "busy");
    b.wait();
    b.enabled(&[0x02, 0, 0, 1, 0]);
    assert!(b.complaint().contains("before the flag status register"));
    assert_eq!((b.status(), b.nor.content()[1]), (WEL, 0xff));
    assert_eq!(b.run(&[0x70], 1), [0x80]);
    b.send(&[0x02, 0, 0, 1, 0]);
    b.wait();
    assert_eq!((b.run(&[0x70], 1), b.nor.content()[1]), (vec![0x80], 0));
    // A protected target: bits 4 or 5 with 1, WEL stays, until 50h. BP3 is bit 6, TB bit 5.
    b.change(&[0x01, 0x60]);
    assert_eq!(b.nor.protected(), 0..8 * MIB);
    b.enabled(&[0x02, 0, 0, 2, 0]);
    assert_eq!((b.run(&[0x70], 1), b.status()), (vec![0x92], 0x60 | WEL));
    b.enabled(&[0x20, 0, 0, 0]);
    assert_eq!(b.run(&[0x70], 1), [0xb2]);
    b.send(&[0x50]);
    assert_eq!((b.run(&[0x70], 1), b.status()), (vec![0x80], 0x60 | WEL));
    b.quiet();
}

#[test]
fn micron_powers_up_in_four_byte_mode_if_its_register_says_so() {
    let mut b = Bench::new(Part::mt25qu256a());
    assert_eq!(b.run(&[0xb5], 2), [0xff, 0xff]);
    b.change(&[0xb1, 0xfe, 0xff]);
    assert_eq!((b.run(&[0xb5], 2), b.nor.four_byte_mode()), (vec![0xfe, 0xff], false));
    b.nor.power_cycle();
    assert!(b.nor.four_byte_mode());
    b.quiet();
}

#[test]
fn a_stack_ignores_c7h_and_erases_a_die_by_c4h() {
    let mut b = zeroed(Part::mt25ql02g());
    for opcode in [0xc7, 0x60] {
        assert_eq!(erased(&mut b, &[opcode]), 0..0);
        assert_eq!(b.status(), WEL);
    }
    b.enabled(&[0xb7]);
    assert_eq!(erased(&mut b, &[0xc4, 0x05, 0, 0, 0]), 64 * MIB..128 * MIB);
    b.quiet();
}

#[test]
fn the_second_register_is_written_as_each_part_has_it() {
    let rows = [
        // Opcode 01h with two bytes, then with one: some parts keep the second register, some clear
        // it.
        (Part::w25q256jv(), 0x35, Some(0x42)),
        (Part::bh25q128as(), 0x35, Some(0x00)),
        (Part::mx25l3233f(), 0x15, Some(0x02)),
        // One byte only.
        (Part::gd25lb512me(), 0x35, None),
    ];
    for (part, read, after) in rows {
        let name = part.name;
        let mut b = Bench::new(part);
        let before = b.run(&[read], 1)[0];
        b.enabled(&[0x01, 0x04, 0x42]);
        let Some(after) = after else {
            assert_eq!(b.status(), WEL, "{name}");
            b.send(&[0x31, 0x40]);
            b.wait();
            assert_eq!((before, b.run(&[read], 1)[0]), (0x02, 0x40), "{name}");
            continue;
        };
        b.wait();
        b.change(&[0x01, 0x00]);
        assert_eq!(b.run(&[read], 1), [after], "{name}");
        assert_eq!(b.nor.status_registers()[..2], [0, after]);
    }
}

#[test]
fn protection_bits_are_where_each_vendor_has_them() {
    let rows = [
        // Macronix: bit 5 is BP3, bit 6 is QE. 4 MiB: level 8 is more than all.
        (Part::mx25l3233f(), 0x20, 0, 0..4 * MIB),
        (Part::mx25l3233f(), 0x40, 0, 4 * MIB..4 * MIB),
        (Part::mx25r6435f(), 0x1c, 0x08, 0..4 * MIB),
        // Micron: bit 6 is BP3, bit 5 is TB.
        (Part::mt25qu256a(), 0x40, 0, 24 * MIB..32 * MIB),
        (Part::mt25qu256a(), 0x20, 0, 0..0),
        // Winbond from 256 Mbit and GigaDevice: bit 5 is BP3, bit 6 TB, CMP in the second register.
        (Part::w25q01nw(), 0x24, 0, 112 * MIB..128 * MIB),
        (Part::gd25lb512me(), 0x44, 0x40, 64 * KIB..64 * MIB),
        // Those with SEC at bit 6 and TB at bit 5.
        (Part::bh25q128as(), 0x64, 0, 0..4 * KIB),
        (Part::zd25q128c(), 0x04, 0x40, 0..16 * MIB - 256 * KIB),
        // Spansion: bits 5 and 6 report errors.
        (Part::s25fs128s(), 0x64, 0, 16 * MIB - 256 * KIB..16 * MIB),
        (Part::sst26vf064b(), 0x3c, 0, 8 * MIB..8 * MIB),
    ];
    for (part, one, two, range) in rows {
        assert_eq!(part.protected(one, two), range, "{} {one:02x} {two:02x}", part.name);
        let mut b = Bench::new(part);
        b.nor.leave(&Left { status: [Some(one), Some(two), None], ..Left::default() });
        let writable = b.nor.status();
        assert_eq!(b.nor.protected(), b.nor.part().protected(writable, two));
    }
}

#[test]
fn sfdp_reads_as_published_with_three_or_four_address_bytes() {
    for part in Part::all() {
        let bytes = part.sfdp_bytes();
        if bytes.is_empty() {
            continue;
        }
        let name = part.name;
        let mut b = Bench::new(part);
        let last = bytes.len() - 1;
        let [_, high, middle, low] = (last as u32).to_be_bytes();
        assert_eq!(b.run(&[0x5a, 0, 0, 0, 0], bytes.len()), bytes, "{name}");
        assert_eq!(b.run(&[0x5a, high, middle, low, 0], 1), bytes[last..], "{name}");
        b.quiet();
    }
    // Beyond the published bytes.
    let mut b = Bench::new(Part::mx25l3233f());
    assert_eq!(b.run(&[0x5a, 0, 0x12, 0, 0], 2), [0xff, 0xff]);
    // Four address bytes in 4-byte mode: a driver that sends three sees the signature a byte late.
    let mut b = Bench::new(Part::s25fl064l());
    b.send(&[0xb7]);
    assert_eq!(b.run(&[0x5a, 0, 0, 0, 0], 4), *b"\xffSFD");
    assert_eq!(b.run(&[0x5a, 0, 0, 0, 0, 0], 4), *b"SFDP");
}

#[test]
fn atxp032_has_four_address_bytes_and_no_other_mode() {
    let mut b = zeroed(Part::atxp032());
    b.nor.content[0x12_3456] = 0x42;
    for opcode in [0xe9, 0x29, 0xb8] {
        b.send(&[opcode]);
        assert_eq!(b.run(&[0x03, 0, 0x12, 0x34, 0x56], 1), [0x42]);
    }
    assert_eq!(erased(&mut b, &[0x20, 0, 0x12, 0x34, 0x56]), 0x12_3000..0x12_4000);
    b.quiet();
}

#[test]
fn mx25r6435f_has_none_of_what_its_all_ones_grant() {
    let mut b = zeroed(Part::mx25r6435f());
    b.send(&[0xb7]);
    assert!(!b.nor.four_byte_mode());
    assert_eq!(b.run(&[0x13, 0, 0, 0, 0], 1), [0xff]);
    b.enabled(&[0x21, 0, 0, 0, 0]);
    assert_eq!(b.status(), WEL);
    b.send(&[0x04]);
    b.quiet();
}

#[test]
fn zd25q128c_is_16_mib() {
    let mut b = zeroed(Part::zd25q128c());
    assert_eq!(b.run(&[0x5a, 0, 0, 0x34, 0], 4), [0xff, 0xff, 0xff, 0x00]);
    assert_eq!(erased(&mut b, &[0xd8, 0xff, 0xff, 0xff]), 16 * MIB - 64 * KIB..16 * MIB);
    assert_eq!(erased(&mut b, &[0x81, 0x20, 0, 0]), 2 * MIB..2 * MIB + 256);
    b.quiet();
}

#[test]
fn a_chip_is_left_as_another_user_leaves_it() {
    let mut b = Bench::winbond();
    b.nor.leave(&Left {
        four_byte_mode: Some(true),
        extended_address: Some(1),
        status: [Some(0x3c), Some(0x40), None],
        busy_for_ps: PS_PER_S,
        ..Left::default()
    });
    assert_eq!(b.status(), 0x3c | BUSY | WEL);
    b.now += PS_PER_S;
    assert_eq!((b.status(), b.run(&[0x35], 1)[0]), (0x3c, 0x40));
    assert_eq!((b.run(&[0xc8], 1), b.nor.four_byte_mode()), (vec![1], true));
    b.nor.leave(&Left::default());
    assert_eq!((b.nor.extended_address(), b.nor.four_byte_mode()), (1, true));
    b.quiet();
    let mut s = Bench::new(Part::s25fl512s());
    s.nor.leave(&Left { failed: 0x20, write_enabled: Some(true), ..Left::default() });
    assert_eq!(s.status(), 0x20 | BUSY | WEL);
    s.send(&[0x30]);
    assert_eq!(s.status(), WEL);
    let mut m = Bench::new(Part::mt25qu256a());
    m.nor.leave(&Left { flag_status_unread: true, ..Left::default() });
    m.enabled(&[0x02, 0, 0, 0, 0]);
    assert!(m.complaint().contains("before the flag status register"));
    let mut locked = Bench::new(Part::sst26vf064b());
    locked.nor.leave(&Left { locked: Some(false), ..Left::default() });
    assert!(!locked.nor.locked(0));
    locked.nor.leave(&Left { locked: Some(true), ..Left::default() });
    assert!(locked.nor.locked(0));
}
