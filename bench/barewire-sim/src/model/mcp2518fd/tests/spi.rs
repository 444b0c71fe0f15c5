//! SPI instructions, their CRCs, and their faults.

use std::num::NonZeroU32;

use super::*;

#[test]
fn registers_are_as_at_reset() {
    let mut bench = Bench::new(Options::default());
    let resets = [
        (0x000, 0x0498_0760),
        (0x004, 0x003e_0f0f),
        (0x008, 0x000e_0303),
        (0x00c, 0x0002_1000),
        (0x010, 0),
        (0x014, 0),
        (0x018, 0x4040_0040),
        (0x01c, 0),
        (0x034, 0x0020_0000),
        (0x040, 0x0000_0400),
        (0x050, 0x0060_0480),
        (0x054, 0x0000_0005),
        (0x05c, 0x0060_0400),
        (0x1c4, 0x0060_0400),
        (0xe00, 0x0000_0460),
        (0xe04, 0x0300_0003),
        (0xe08, 0),
        (0xe0c, 0),
        (0xe14, 0),
        (0x3fc, 0),
    ];
    for (address, value) in resets {
        assert_eq!(bench.read32(address), value, "{address:#x}");
    }
    assert!(bench.complaints().is_empty());
}

#[test]
fn bytes_and_bursts_reach_their_registers() {
    let mut bench = Bench::new(Options::default());
    bench.write(0x1f0, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(bench.read(0x1f2, 5), [3, 4, 5, 6, 7]);
    assert_eq!(bench.read32(0x1f8) & 0xff, 9);
    bench.write(0x1f5, &[0xaa]);
    assert_eq!(bench.read32(0x1f4), 0x0807_aa05);
    // Bits that do not exist stay clear.
    bench.write32(0x008, u32::MAX);
    assert_eq!(bench.read32(0x008), 0xff1f_0f0f);
}

#[test]
fn bits_come_in_any_grouping() {
    let mut bench = Bench::new(Options::default());
    bench.write32(0x1f0, 0x1234_5678);
    for bits in [1, 3, 5, 7, 16, 32] {
        let out: u64 = 0x31f0_0000_0000;
        let mut back = 0_u64;
        bench.chip.select(bench.at);
        let mut left = 48;
        while left > 0 {
            let now = bits.min(left);
            left -= now;
            let clocking = Clocking { at: bench.at, period: PERIOD };
            bench.at += u64::from(now) * PERIOD;
            let piece = (out >> left) as u32 & (u32::MAX >> (32 - now));
            back = back << now | u64::from(bench.chip.exchange(clocking, piece, now));
        }
        bench.chip.deselect(bench.at);
        assert_eq!(back & 0xffff_ffff, 0x7856_3412, "{bits} bits at a time");
    }
}

#[test]
fn ram_is_written_by_words() {
    let mut bench = Bench::new(Options::default());
    bench.write(0x400, &[1, 2, 3, 4, 5, 6]);
    assert_eq!(bench.read(0x400, 8)[..4], [1, 2, 3, 4]);
    assert_ne!(bench.read(0x400, 8)[4..], [5, 6, 0, 0]);
    assert_ne!(bench.read32(0x404) & 0xffff, 0x0605);
    let complaints = bench.complaints();
    assert_eq!(complaints, ["6 bytes of RAM are no words"]);
    bench.write(0xbfc, &[9, 8, 7, 6]);
    assert_eq!(bench.read32(0xbfc), 0x0607_0809);
    bench.read(0x402, 4);
    assert_eq!(bench.complaints(), ["RAM is accessed from 0x402, which begins no word"]);
}

#[test]
fn reads_with_crc_have_the_crc_of_instruction_and_data() {
    let mut bench = Bench::new(Options::default());
    bench.write32(0x1f0, 0x1234_5678);
    assert_eq!(bench.read_crc(0x1f0, 4), (vec![0x78, 0x56, 0x34, 0x12], true));
    bench.write(0x410, &[1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(bench.read_crc(0x410, 2), (vec![1, 2, 3, 4, 5, 6, 7, 8], true));
    // Too short: a format error, reported by SPICRCIF if it is enabled.
    bench.spi(&[0xb1, 0xf0, 4, 0, 0]);
    assert_eq!(bench.read32(0xe08) >> 16 & 3, 2);
    assert_eq!(bench.read32(0x01c) >> 9 & 1, 0);
    bench.write(0xe0b, &[2]);
    assert_eq!(bench.read32(0x01c) >> 9 & 1, 1);
    bench.write(0xe0a, &[0]);
    assert_eq!(bench.read32(0xe08), 0x0200_0000);
}

fn with_crc(bytes: &[u8]) -> Vec<u8> {
    [bytes, &Crc16::of(bytes).to_be_bytes()].concat()
}

#[test]
fn writes_with_crc_are_done_and_checked() {
    let mut bench = Bench::new(Options::default());
    bench.spi(&with_crc(&[0xa1, 0xf0, 4, 1, 2, 3, 4]));
    assert_eq!(bench.read32(0x1f0), 0x0403_0201);
    bench.spi(&with_crc(&[0xa4, 0x00, 2, 1, 2, 3, 4, 5, 6, 7, 8]));
    assert_eq!(bench.read32(0x404), 0x0807_0605);
    assert_eq!(bench.read32(0xe08), 0);
    // A wrong CRC is detected after the data was written.
    let mut wrong = with_crc(&[0xa1, 0xf0, 1, 0x55]);
    let right = Crc16::of(&[0xa1, 0xf0, 1, 0x55]);
    *wrong.last_mut().unwrap() ^= 1;
    bench.spi(&wrong);
    assert_eq!(bench.read32(0x1f0) & 0xff, 0x55);
    assert_eq!(bench.read32(0xe08), 1 << 16 | u32::from(right));
    // One byte less than announced.
    bench.spi(&[0xa1, 0xf0, 4, 9, 9, 9]);
    assert_eq!(bench.read32(0xe08) >> 16, 3);
    bench.write(0xe0a, &[0]);
    assert_eq!(bench.read32(0xe08) >> 16, 0);
}

#[test]
fn a_safe_write_with_a_wrong_crc_writes_nothing() {
    let mut bench = Bench::new(Options::default());
    bench.spi(&with_crc(&[0xc1, 0xf0, 0x11]));
    bench.spi(&with_crc(&[0xc4, 0x00, 1, 2, 3, 4]));
    assert_eq!((bench.read32(0x1f0), bench.read32(0x400)), (0x11, 0x0403_0201));
    let mut wrong = with_crc(&[0xc1, 0xf0, 0x22]);
    wrong[4] ^= 0x40;
    bench.spi(&wrong);
    wrong = with_crc(&[0xc4, 0x00, 5, 6, 7, 8]);
    wrong[7] ^= 0x40;
    bench.spi(&wrong);
    assert_eq!((bench.read32(0x1f0), bench.read32(0x400)), (0x11, 0x0403_0201));
    assert_eq!(bench.read32(0xe08) >> 16, 1);
}

#[test]
fn reset_is_for_configuration_mode() {
    let mut bench = Bench::new(Options::default());
    bench.write32(0x004, NBTCFG);
    bench.write32(0x400, 7);
    bench.spi(&[0, 0]);
    assert_eq!(bench.read32(0x004), 0x003e_0f0f);
    assert_eq!(bench.read32(0x400), 7, "RAM stays");
    assert!(bench.complaints().is_empty());
    let mut bench = Bench::running(4, 4);
    bench.spi(&[0, 0]);
    assert_eq!(bench.complaints(), ["RESET outside Configuration mode"]);
    assert_eq!(bench.read32(0x000), 0x0498_0760);
    bench.spi(&[0x55, 0]);
    assert_eq!(bench.complaints().len(), 1, "no such instruction");
}

#[test]
fn a_clock_above_the_erratums_limit_is_told() {
    let mut bench = Bench::new(Options::default());
    let clocked = |bench: &mut Bench, period: Ps| {
        bench.chip.select(bench.at);
        for byte in [0x24, 0x00, 1, 2, 3, 4] {
            bench.chip.exchange(Clocking { at: bench.at, period }, byte, 8);
            bench.at += 8 * period;
        }
        bench.chip.deselect(bench.at);
        bench.complaints()
    };
    assert!(clocked(&mut bench, 58_824).is_empty(), "17 MHz");
    assert_eq!(
        clocked(&mut bench, 58_800),
        ["SCK at 17006802 Hz, the limit is 0.85 x SYSCLK / 2 = 17000000 Hz (erratum)"]
    );
    assert_eq!(bench.chip.limits().max_clock_hz, 17_000_000);
    // Half the SYSCLK, half the limit.
    bench.write(0xe00, &[0x70]);
    bench.complaints();
    assert_eq!(clocked(&mut bench, 100_000).len(), 1);
    let errata = Errata { fast_clock_corrupts_ram: true, ..Errata::default() };
    let mut bench = Bench::new(Options { errata, ..Options::default() });
    clocked(&mut bench, 50_000);
    assert_eq!(bench.read32(0x400), 0x0403_0200, "the erratum's wrong word");
}

#[test]
fn faults_of_the_wire_are_seen_by_their_crcs() {
    let every = NonZeroU32::new(3);
    let faults = ChipFaults { read_crc_corrupt_every: every, ..ChipFaults::default() };
    let mut bench = Bench::new(Options { faults, ..Options::default() });
    let right: Vec<bool> = (0..7).map(|_| bench.read_crc(0x1f0, 4).1).collect();
    assert_eq!(right, [true, true, false, true, true, false, true]);
    let faults = ChipFaults { write_crc_corrupt_every: every, ..ChipFaults::default() };
    let mut bench = Bench::new(Options { faults, ..Options::default() });
    for value in 1..=3 {
        bench.spi(&with_crc(&[0xc1, 0xf0, value]));
    }
    assert_eq!((bench.read32(0x1f0), bench.read32(0xe08) >> 16), (2, 1));
}

#[test]
fn the_crc_erratum_is_of_registers_that_change_alone() {
    let errata = Errata { read_crc_every: NonZeroU32::new(2), ..Errata::default() };
    let mut bench = Bench::new(Options { errata, ..Options::default() });
    for _ in 0..3 {
        assert!(bench.read_crc(0x1f0, 4).1);
    }
    let reads: Vec<_> = (0..4).map(|_| bench.read_crc(0x010, 4)).collect();
    assert_eq!(reads.iter().map(|read| read.1).collect::<Vec<_>>(), [true, false, true, false]);
    // The data is right. The CRC is that of the data with the first byte's top bit inverted.
    assert_eq!(reads[1].0, [0; 4]);
}

#[test]
fn a_chip_that_is_not_there_says_nothing() {
    let faults = ChipFaults { absent: true, ..ChipFaults::default() };
    let mut bench = Bench::new(Options { faults, ..Options::default() });
    assert_eq!(bench.read32(0xe00), u32::MAX);
    bench.write32(0x004, NBTCFG);
    bench.chip.set_faults(ChipFaults::default());
    assert_eq!(bench.read32(0x004), 0x003e_0f0f);
}

#[test]
fn a_chip_whose_sdo_is_at_ground_still_hears() {
    let faults = ChipFaults { sdo_stuck_low: true, ..ChipFaults::default() };
    let mut bench = Bench::new(Options { faults, ..Options::default() });
    assert_eq!(bench.read32(0xe00), 0);
    bench.write32(0x004, NBTCFG);
    bench.chip.set_faults(ChipFaults::default());
    assert_eq!(bench.read32(0x004), NBTCFG);
}

#[test]
fn the_parts_differ_in_lpmen_and_devid() {
    for (part, lpmen, devid) in [(PartKind::Mcp2517Fd, 0, 0), (PartKind::Mcp2518Fd, 8, 0x12)] {
        let mut bench = Bench::new(Options { part, devid: 0x12, ..Options::default() });
        bench.write(0xe00, &[0x68]);
        assert_eq!(bench.read32(0xe00) & 8, lpmen, "{part:?}");
        assert_eq!(bench.read32(0xe14), devid);
    }
}

#[test]
fn a_write_of_several_bytes_of_iocon_loses_its_latches() {
    for (iocon_clears_latches, latches) in [(false, 3), (true, 0)] {
        let errata = Errata { iocon_clears_latches, ..Errata::default() };
        let mut bench = Bench::new(Options { errata, ..Options::default() });
        bench.write(0xe05, &[3]);
        assert_eq!(bench.read32(0xe04) >> 8 & 3, 3, "by single bytes all is well");
        bench.write32(0xe04, 0x0300_0300);
        assert_eq!(bench.read32(0xe04) >> 8 & 3, latches);
    }
}
