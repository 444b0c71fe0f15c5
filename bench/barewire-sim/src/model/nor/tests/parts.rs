//! Properties specific to the W25Q32JV and the S25FL512S.

use super::*;

const KIB: usize = 1 << 10;

fn spansion() -> Bench {
    Bench::new(Part::s25fl512s())
}

#[test]
fn w25q32jv_answers_every_identification() {
    let mut b = Bench::new(Part::w25q32jv());
    assert_eq!(b.nor.content().len(), 4 << 20);
    assert_eq!(b.run(&[0x9f], 4), [0xef, 0x40, 0x16, 0xff]);
    assert_eq!(b.run(&[0x90, 0, 0, 0], 3), [0xef, 0x15, 0xef]);
    assert_eq!(b.run(&[0x90, 0, 0, 1], 2), [0x15, 0xef]);
    assert_eq!(b.run(&[0xab, 0, 0, 0], 2), [0x15, 0x15]);
    assert_eq!([0x05, 0x35, 0x15].map(|opcode| b.run(&[opcode], 1)[0]), [0x00, 0x02, 0x60]);
    assert_eq!(b.run(&[0x5a, 0, 0, 0, 0], 8), *b"SFDP\x05\x01\x00\xff");
    assert_eq!(b.run(&[0x5a, 0, 0, 0x84, 0], 4), [0xff, 0xff, 0xff, 0x01]);
    b.quiet();
}

#[test]
fn unique_id_comes_after_four_bytes_or_five_in_four_byte_mode() {
    for part in [Part::w25q32jv(), Part::w25q256jv()] {
        let mut b = Bench::new(part);
        let id = b.nor.part().unique_id.expect("both have one");
        let then_undriven = [&id[..], &[0xff, 0xff]].concat();
        assert_eq!(b.run(&[0x4b, 0, 0, 0, 0], 10), then_undriven);
        // MISO is not driven during dummy bytes, and a read may end at any bit.
        assert_eq!(b.run(&[0x4b], 6), [0xff, 0xff, 0xff, 0xff, id[0], id[1]]);
        b.quiet();
    }
    let mut b = Bench::winbond();
    let id = b.nor.part().unique_id.expect("it has one");
    b.send(&[0xb7]);
    assert_eq!(b.run(&[0x4b, 0, 0, 0, 0, 0], 8), id);
    assert_eq!(Bench::sst().run(&[0x4b, 0, 0, 0, 0], 2), [0xff, 0xff]);
}

#[test]
fn w25q32jv_has_no_four_byte_mode() {
    let mut b = Bench::new(Part::w25q32jv());
    b.nor.content[0x12_3456] = 0x42;
    b.send(&[0xb7]);
    assert_eq!(b.run(&[0x03, 0x12, 0x34, 0x56], 1), [0x42]);
    // Address bits above 4 MiB are not decoded.
    assert_eq!(b.run(&[0x0b, 0xd2, 0x34, 0x56, 0], 1), [0x42]);
    assert_eq!(b.run(&[0x13, 0, 0x12, 0x34, 0x56], 1), [0xff]);
    assert_eq!(b.run(&[0x15], 1), [0x60]);
    b.quiet();
}

/// The commands of a driver that writes, erases in each size, resets and sleeps.
#[test]
fn w25q32jv_serves_a_whole_driver() {
    let mut b = Bench::new(Part::w25q32jv());
    let times = b.nor.part().times;
    let page: Vec<u8> = (0..=255).collect();
    for (opcode, size, time) in [
        (0x20, 4 * KIB, times.sector_erase),
        (0x52, 32 * KIB, times.block32_erase),
        (0xd8, 64 * KIB, times.block64_erase),
        (0xc7, 4096 * KIB, times.chip_erase),
    ] {
        // The last page of the last unit.
        b.enabled(&[&[0x02, 0x3f, 0xff, 0x00][..], &page].concat());
        assert_eq!(b.status(), BUSY | WEL);
        b.wait();
        assert_eq!(b.run(&[0x03, 0x3f, 0xff, 0x00], 256), page);
        let unit = 0x40_0000 - size;
        let [_, high, middle, low] = (unit as u32).to_be_bytes();
        let erase = if opcode == 0xc7 { vec![0xc7] } else { vec![opcode, high, middle, low] };
        b.enabled(&erase);
        let began = b.now;
        b.wait();
        assert!(b.now - began + PERIOD >= time.typical_ps, "{opcode:02x}");
        assert!(b.nor.content().iter().all(|&byte| byte == 0xff), "{opcode:02x}");
    }
    assert_eq!(times.chip_erase.max_ps, 50 * PS_PER_S);
    b.quiet();
    b.send(&[0xb9]);
    b.send(&[0xab]);
    // The first command comes too early: tRES1 has not passed.
    assert_eq!(b.run(&[0x05], 1), [0xff]);
    assert!(b.complaint().contains("too soon"));
    b.now += times.release_power_down.typical_ps;
    assert_eq!(b.run(&[0x05], 1), [0]);
    b.send(&[0x06]);
    b.send(&[0x66]);
    b.send(&[0x99]);
    b.now += times.reset.typical_ps;
    assert_eq!(b.status(), 0);
    b.quiet();
}

#[test]
fn s25fl512s_answers_every_identification() {
    let mut b = spansion();
    assert_eq!(b.run(&[0x9f], 8), [0x01, 0x02, 0x20, 0x4d, 0x00, 0x80, 0xff, 0xff]);
    assert_eq!(b.run(&[0x90, 0, 0, 0], 3), [0x01, 0x19, 0x01]);
    assert_eq!(b.run(&[0xab, 0, 0, 0], 2), [0x19, 0x19]);
    assert_eq!([0x05, 0x07, 0x35, 0x16].map(|opcode| b.run(&[opcode], 1)[0]), [0; 4]);
    // No SFDP, no 4 KiB erase, no power-down.
    assert_eq!(b.run(&[0x5a, 0, 0, 0, 0], 4), [0xff; 4]);
    b.enabled(&[0x20, 0, 0, 0]);
    assert_eq!(b.status(), WEL);
    b.send(&[0xb9]);
    assert_eq!(b.status(), WEL);
    b.quiet();
}

#[test]
fn s25fl512s_reads_at_first_last_and_past_the_last() {
    let mut b = spansion();
    let size = b.nor.content().len();
    assert_eq!(size, 64 << 20);
    b.nor.content.copy_from_slice(&hashed(size));
    for at in [0, 1, (16 << 20) - 2, 16 << 20, size - 5, size - 4, size - 1] {
        let expected: Vec<u8> = (0..9).map(|n| b.nor.content[(at + n) % size]).collect();
        let address = (at as u32).to_be_bytes();
        assert_eq!(b.run(&[&[0x13][..], &address].concat(), 9), expected, "{at:x}");
        assert_eq!(b.run(&[&[0x0c][..], &address, &[0]].concat(), 9), expected, "{at:x}");
        // Three bytes in their bank.
        b.send(&[0x17, address[0]]);
        assert_eq!(b.run(&[0x16], 1), [address[0]]);
        assert_eq!(b.run(&[&[0x03][..], &address[1..]].concat(), 9), expected, "{at:x}");
        assert_eq!(b.run(&[&[0x0b][..], &address[1..], &[0]].concat(), 9), expected, "{at:x}");
        // Four bytes by EXTADD, whatever the bank.
        b.send(&[0x17, 0x81]);
        assert_eq!(b.run(&[0x16], 1), [0x81]);
        assert_eq!(b.run(&[&[0x03][..], &address].concat(), 9), expected, "{at:x}");
        // 4-byte commands ignore both.
        assert_eq!(b.run(&[&[0x13][..], &address].concat(), 9), expected, "{at:x}");
    }
    b.quiet();
    b.send(&[0x17]);
    assert!(b.complaint().contains("0 data bytes, 1 to 1 are taken"));
    b.nor.power_cycle();
    assert_eq!(b.run(&[0x16], 1), [0]);
}

#[test]
fn s25fl512s_programs_pages_of_512_and_erases_256_kib() {
    let mut b = spansion();
    b.nor.content.fill(0);
    let times = b.nor.part().times;
    let mut at_end = |command: &[u8], time: Span| {
        b.enabled(command);
        let end = b.now - PERIOD + time.typical_ps;
        b.now = end - 10 * PERIOD;
        assert_eq!(b.status(), BUSY | WEL);
        assert_eq!(b.status(), 0);
        b.quiet();
    };
    at_end(&[0xdc, 0x03, 0xff, 0x12, 0x34], times.block256_erase);
    at_end(&[0xd8, 0x0f, 0xff, 0xff], times.block256_erase);
    let wrapping = [&[0x12, 0x03, 0xff, 0xff, 0xfe][..], &[1, 2, 3]].concat();
    at_end(&wrapping, times.program);
    let content = b.nor.content();
    let (last, size) = (0x3fc_0000, content.len());
    assert_eq!(content[size - 512..size - 510], [3, 0xff]);
    assert_eq!(content[size - 2..], [1, 2]);
    assert!(content[last..size - 512].iter().all(|&byte| byte == 0xff));
    assert_eq!(content[last - 1], 0);
    // D8h with three bytes: in the first 16 MiB, its sector and no more.
    assert!(content[0xc_0000..0x10_0000].iter().all(|&byte| byte == 0xff));
    assert_eq!((content[0xb_ffff], content[0x10_0000]), (0, 0));
}

#[test]
fn s25fl512s_stays_busy_after_a_protected_target_until_clsr() {
    let mut b = spansion();
    b.change(&[0x01, 0x1c]); // Everything.
    assert_eq!(b.status(), 0x1c);
    let rows = [
        (&[0x12, 0, 0, 0, 0, 0][..], 0x40),
        (&[0xdc, 0x03, 0xff, 0xff, 0xff], 0x20),
        (&[0x02, 0, 0, 0, 0], 0x40),
    ];
    for (command, error) in rows {
        b.enabled(command);
        let failed = 0x1c | error | WEL | BUSY;
        assert_eq!(b.status(), failed, "{command:02x?}");
        b.now += 1_000 * PS_PER_S;
        assert_eq!(b.status(), failed, "{command:02x?}");
        assert_eq!(b.run(&[0x13, 0, 0, 0, 0], 1), [0xff]);
        assert!(b.complaint().contains("command 13h while BUSY"));
        // CLSR leaves WEL.
        b.send(&[0x30]);
        assert_eq!(b.status(), 0x1c | WEL, "{command:02x?}");
        b.send(&[0x04]);
        b.quiet();
    }
    // A bulk erase is ignored, without an error.
    b.enabled(&[0xc7]);
    assert_eq!(b.status(), 0x1c | WEL);
    assert!(b.nor.content().iter().all(|&byte| byte == 0xff));
    // A reset also ends the error.
    b.enabled(&[0x12, 0, 0, 0, 0, 0]);
    b.send(&[0xf0]);
    assert_eq!(b.run(&[0x05], 1), [0xff]);
    assert!(b.complaint().contains("too soon"));
    b.now += b.nor.part().times.reset.typical_ps;
    assert_eq!(b.status(), 0x1c);
    // Unprotected it starts, and CLSR during it has no effect.
    b.change(&[0x01, 0]);
    b.enabled(&[0x12, 0, 0, 0, 0, 0]);
    b.send(&[0x30]);
    assert_eq!(b.status(), BUSY | WEL);
    b.wait();
    assert_eq!(b.nor.content()[0], 0);
    b.quiet();
}

#[test]
fn s25fl512s_configuration_is_wrr_s_second_byte_and_tbprot_stays() {
    let mut b = spansion();
    b.change(&[0x01, 0x04, 0xff]);
    assert_eq!((b.status(), b.run(&[0x35], 1)[0]), (0x04, 0x22));
    // A WRSR with one byte does not change it.
    b.change(&[0x01, 0x04]);
    assert_eq!(b.run(&[0x35], 1), [0x22]);
    b.change(&[0x01, 0x04, 0x00]);
    assert_eq!(b.run(&[0x35], 1), [0x20]);
    // From the bottom: the first 64th.
    b.enabled(&[0x12, 0, 0x0f, 0xff, 0xff, 0]);
    assert_eq!(b.status() & 0x40, 0x40);
    b.send(&[0x30]);
    b.change(&[0x12, 0, 0x10, 0, 0, 0]);
    assert_eq!(b.nor.content()[0xf_ffff..=0x10_0000], [0xff, 0]);
    b.quiet();
}

#[test]
fn read_is_limited_to_50_mhz_in_all_its_forms() {
    for (part, opcodes) in [(Part::s25fl512s(), &[0x03, 0x13][..]), (Part::w25q32jv(), &[0x03])] {
        assert_eq!(part.limits.max_clock_hz, 133_000_000);
        let mut b = Bench::new(part);
        for &opcode in opcodes {
            b.period = PS_PER_S / 50_000_000;
            b.run(&[opcode, 0, 0, 0, 0], 4);
            b.quiet();
            b.period -= 1;
            b.run(&[opcode, 0, 0, 0, 0], 4);
            assert!(b.complaint().contains("its limit is 50000000 Hz"), "{opcode:02x}");
        }
        b.run(&[0x0b, 0, 0, 0, 0], 4);
        b.quiet();
    }
}
