//! Instructions.

use super::*;

#[test]
fn registers_have_their_reset_values() {
    let mut bench = Bench::running();
    bench.write(0x2b, &[0xff]);
    bench.write(0x30, &[0x03]);
    bench.write(0x60, &[0x64]);
    bench.spi(&[0xc0]);
    bench.pass(MS);
    assert_eq!(bench.read(0x0c, 4), [0, 0, 0x80, 0x87]);
    assert_eq!(bench.read(0x1c, 2), [0, 0]);
    assert_eq!(bench.read(0x28, 6), [0; 6], "CNF3 to EFLG");
    assert_eq!(bench.read(0x20, 8), [0; 8], "masks");
    for ctrl in [0x30, 0x40, 0x50, 0x60, 0x70] {
        assert_eq!(bench.read(ctrl, 1), [0]);
    }
    assert!(bench.complaints().is_empty());
}

#[test]
fn nothing_is_heard_while_the_oscillator_starts() {
    let mut bench = Bench::new();
    bench.spi(&[0xc0]);
    // 128 clocks of 62.5 ns.
    bench.write(0x2b, &[0x12]);
    bench.assert_one_complaint("before the oscillator has started");
    bench.pass(8_000_000);
    assert_eq!(bench.read(0x2b, 1), [0]);
    bench.write(0x2b, &[0x12]);
    assert_eq!(bench.read(0x2b, 1), [0x12]);
    assert!(bench.complaints().is_empty());
}

#[test]
fn bytes_follow_each_other_and_run_around() {
    let mut bench = Bench::new();
    bench.write(0x28, &[0x47, 0xb1, 0x41, 0x03]);
    assert_eq!(bench.read(0x28, 4), [0x47, 0xb1, 0x41, 0x03]);
    bench.write(0x00, &[1, 2, 3, 4]);
    assert_eq!(bench.read(0x7e, 6), [0x80, 0x87, 1, 2, 3, 4]);
    // CANSTAT and CANCTRL end every row.
    for row in 0..8 {
        assert_eq!(bench.read(16 * row + 0xe, 2), [0x80, 0x87]);
    }
    bench.write(0x5f, &[LOOPBACK]);
    assert_eq!(bench.read(0x0f, 1), [LOOPBACK]);
    bench.spi(&[0x03, 0x80, 0]);
    bench.assert_one_complaint("no address 0x80");
}

#[test]
fn bits_are_modified_where_they_can_be() {
    let mut bench = Bench::new();
    bench.write(0x2b, &[0b1010_1010]);
    bench.modify(0x2b, 0b0000_1111, 0b1111_0101);
    assert_eq!(bench.read(0x2b, 1), [0b1010_0101]);
    for address in [0x0c, 0x0d, 0x0f, 0x28, 0x29, 0x2a, 0x2c, 0x2d, 0x30, 0x70] {
        let had = bench.read(address, 1);
        bench.modify(address, 0, 0xff);
        assert_eq!(bench.read(address, 1), had, "{address:#x}");
    }
    // A filter is written whole, whatever the mask.
    bench.write(0x00, &[0xf0]);
    bench.modify(0x00, 0x01, 0x0b);
    assert_eq!(bench.read(0x00, 1), [0x0b]);
    assert!(bench.complaints().is_empty());
}

#[test]
fn short_instructions_point_to_the_buffers() {
    let mut bench = Bench::new();
    for (code, place) in [(0x40, 0x31), (0x42, 0x41), (0x44, 0x51)] {
        bench.spi(&[code, code, 0xeb, 3, 4, 0x4f, 6]);
        assert_eq!(bench.read(place, 6), [code, 0xeb, 3, 4, 0x4f, 6]);
        bench.spi(&[code + 1, code + 1, 9]);
        assert_eq!(bench.read(place + 5, 2), [code + 1, 9]);
    }
    bench.spi(&[0x46]);
    bench.assert_one_complaint("no instruction is 0x46");
    let mut bench = Bench::running();
    bench.far_sends([CanFrame::new(0x123, &[1, 2]), CanFrame::new(0x456, &[3, 4])]);
    bench.pass(MS);
    assert_eq!(bench.read(0x2c, 1), [3]);
    let mut told = |code, length: usize| {
        let mut bytes = vec![code];
        bytes.resize(1 + length, 0);
        let back = bench.spi(&bytes).split_off(1);
        (back, bench.read(0x2c, 1)[0])
    };
    // Each instruction empties its buffer, and no other.
    assert_eq!(told(0x94, 7), (vec![0x8a, 0xc0, 0, 0, 2, 3, 4], 1));
    assert_eq!(told(0x96, 2), (vec![3, 4], 1));
    assert_eq!(told(0x92, 2), (vec![1, 2], 0));
    assert_eq!(told(0x90, 7), (vec![0x24, 0x60, 0, 0, 2, 1, 2], 0));
    assert!(bench.complaints().is_empty());
}

#[test]
fn status_is_what_the_registers_say() {
    let mut bench = Bench::running();
    assert_eq!((bench.ask(0xa0), bench.ask(0xb0)), (0, 0));
    bench.far_sends([CanFrame::remote(0x1234_5678, 3)]);
    bench.pass(MS);
    assert_eq!((bench.ask(0xa0), bench.ask(0xb0)), (1, 0b0101_1000));
    // The frame rolls over, which its filter number shows.
    bench.far_sends([CanFrame::new(0x7, &[])]);
    bench.pass(MS);
    assert_eq!((bench.ask(0xa0), bench.ask(0xb0)), (3, 0b1101_1000), "of RXB0 if both are full");
    bench.modify(0x2c, 1, 0);
    assert_eq!((bench.ask(0xa0), bench.ask(0xb0)), (2, 0b1000_0110));
    bench.modify(0x2c, 2, 0);
    bench.far_sends([CanFrame::new(0x1, &[0; 8])]);
    bench.pass(BIT);
    bench.send(1, 0x10, &[]);
    bench.send(2, 0x20, &[]);
    assert_eq!(bench.ask(0xa0), 0b0101_0000, "two wait");
    bench.pass(2 * MS);
    assert_eq!(bench.ask(0xa0), 0b1010_0001, "and went out");
    // While the chip is clocked, the answer repeats.
    assert_eq!(bench.spi(&[0xa0, 0, 0, 0])[1..], [0b1010_0001; 3]);
}

#[test]
fn instructions_are_held_to_their_form() {
    let mut bench = Bench::new();
    bench.spi(&[0x81, 0]);
    bench.assert_one_complaint("goes on after its end");
    bench.spi(&[0x03]);
    bench.assert_one_complaint("before its data");
    bench.spi(&[0x05, 0x2b, 0xff]);
    bench.assert_one_complaint("before its data");
    // Seven bits of a byte are no byte.
    bench.chip.select(bench.at);
    for (byte, bits) in [(0x02, 8), (0x2b, 8), (0x7f, 7)] {
        let clocking = Clocking { at: bench.at, period: PERIOD };
        bench.chip.exchange(clocking, byte, bits);
        bench.at += BYTE;
    }
    bench.chip.deselect(bench.at);
    bench.assert_one_complaint("7 bits into a byte");
    assert_eq!(bench.read(0x2b, 1), [0]);
    // Words longer than a byte are bytes.
    bench.chip.select(bench.at);
    let clocking = Clocking { at: bench.at, period: PERIOD };
    bench.chip.exchange(clocking, 0x0005_2bff, 24);
    bench.at += 3 * BYTE;
    bench.chip.exchange(Clocking { at: bench.at, period: PERIOD }, 0x5a, 8);
    bench.at += BYTE;
    bench.chip.deselect(bench.at);
    assert_eq!(bench.read(0x2b, 1), [0x5a]);
}
