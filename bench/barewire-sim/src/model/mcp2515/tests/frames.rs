//! Sending and receiving.

use super::*;

#[test]
fn frames_of_all_kinds_go_out() {
    let mut bench = Bench::running();
    let data = [1, 2, 3, 4, 5, 6, 7, 8];
    // 0x123, 0x1235_5678, 0x123 remote, 0x1fff_ffff remote, and a DLC above the data.
    let buffers: [&[u8]; 5] = [
        &[0x24, 0x60, 0xff, 0xff, 8, 1, 2, 3, 4, 5, 6, 7, 8],
        &[0x91, 0xa9, 0x56, 0x78, 3, 1, 2, 3],
        &[0x24, 0x60, 0, 0, 0x46],
        &[0xff, 0xeb, 0xff, 0xff, 0x40],
        &[0x24, 0x60, 0, 0, 15, 1, 2, 3, 4, 5, 6, 7, 8],
    ];
    for buffer in buffers {
        bench.spi(&[&[0x40], buffer].concat());
        bench.spi(&[0x81]);
        bench.pass(MS);
        assert_eq!(bench.read(0x30, 1), [0], "TXREQ");
        assert_eq!(bench.read(0x2c, 1), [1 << 2], "TX0IF");
        bench.modify(0x2c, 1 << 2, 0);
    }
    let long = CanFrame::new(0x123, &[]).with_dlc(15, &data);
    let expected = [
        CanFrame::new(0x123, &data),
        CanFrame::new(0x1235_5678, &data[..3]),
        CanFrame::remote(0x123, 6),
        CanFrame::remote(0x1fff_ffff, 0),
        long,
    ];
    assert_eq!(bench.far_heard(), expected);
    assert!(bench.complaints().is_empty());
}

#[test]
fn frames_of_all_kinds_come_in() {
    let mut bench = Bench::running();
    let mut take = |frame| {
        bench.far_sends([frame]);
        bench.pass(MS);
        assert_eq!(bench.read(0x2c, 1), [1]);
        let header = bench.read(0x60, 6);
        let data = bench.spi(&[0x92, 0, 0, 0, 0, 0, 0, 0, 0]).split_off(1);
        (header, data)
    };
    let data = [1, 2, 3, 4, 5, 6, 7, 8];
    let (header, got) = take(CanFrame::new(0x7ab, &data));
    assert_eq!((header, got), (vec![0x66, 0xf5, 0x60, 0, 0, 8], data.to_vec()));
    let (header, got) = take(CanFrame::new(0x1236_5678, &[9, 9]));
    assert_eq!(header, [0x66, 0x91, 0xaa, 0x56, 0x78, 2]);
    assert_eq!(got, [9, 9, 3, 4, 5, 6, 7, 8], "bytes beyond the frame's data stay");
    let (header, _) = take(CanFrame::remote(0x7ab, 5));
    assert_eq!(header, [0x6e, 0xf5, 0x70, 0, 0, 5], "RXRTR and SRR, not DLC.RTR");
    let (header, _) = take(CanFrame::remote(0x1236_5678, 5));
    assert_eq!(header, [0x6e, 0x91, 0xaa, 0x56, 0x78, 0x45], "RXRTR and DLC.RTR, not SRR");
    assert_eq!(bench.chip.taken_and_dropped(), (4, 0));
}

#[test]
fn the_highest_priority_and_then_number_goes_first() {
    for (priorities, order) in
        [([0, 0, 0], [2, 1, 0]), ([3, 1, 2], [0, 2, 1]), ([1, 1, 0], [1, 0, 2])]
    {
        let mut bench = Bench::running();
        for (index, priority) in priorities.into_iter().enumerate() {
            bench.write(0x30 + 16 * index as u8, &[priority]);
        }
        // The bus is busy while the buffers are filled.
        bench.far_sends([CanFrame::new(0x1, &[0; 8])]);
        bench.pass(BIT);
        (0..3).for_each(|index| bench.send(index, 0x100 + u16::from(index), &[]));
        bench.pass(3 * MS);
        let sent: Vec<_> = bench.far_heard().iter().map(|frame| frame.id - 0x100).collect();
        assert_eq!(sent, order);
    }
}

#[test]
fn lost_arbitration_is_told_and_tried_again() {
    for one_shot in [false, true] {
        let mut bench = Bench::running();
        bench.modify(0x0f, 0x08, if one_shot { 0x08 } else { 0 });
        bench.far_sends([CanFrame::new(0x001, &[0; 8]), CanFrame::new(0x002, &[])]);
        bench.pass(BIT);
        bench.send(0, 0x400, &[]);
        bench.pass(130 * BIT);
        // The second one has begun and won arbitration.
        let ctrl = bench.read(0x30, 1)[0];
        assert_eq!(ctrl, if one_shot { 0x20 } else { 0x28 }, "MLOA");
        bench.pass(MS);
        assert_eq!(bench.far_heard().len(), usize::from(!one_shot));
        assert_eq!(bench.read(0x2c, 1)[0] >> 2 & 1, u8::from(!one_shot), "TX0IF");
    }
}

#[test]
fn what_waits_is_aborted_and_what_is_on_the_bus_is_not() {
    for all in [false, true] {
        let mut bench = Bench::running();
        bench.send(0, 0x100, &[0; 8]);
        bench.pass(10 * BIT);
        bench.send(1, 0x200, &[]);
        match all {
            true => bench.modify(0x0f, 0x10, 0x10),
            false => {
                bench.modify(0x30, 0x08, 0);
                bench.modify(0x40, 0x08, 0);
            }
        }
        assert_eq!(bench.read(0x30, 1), [0x08], "on the bus");
        // Only ABAT sets ABTF.
        assert_eq!(bench.read(0x40, 1), [if all { 0x40 } else { 0 }]);
        bench.pass(MS);
        assert_eq!(bench.far_heard(), [CanFrame::new(0x100, &[0; 8])]);
        assert_eq!(bench.read(0x30, 1), [0]);
        if all {
            bench.send(1, 0x200, &[]);
            bench.assert_one_complaint("while ABAT is set");
            bench.modify(0x0f, 0x10, 0);
        }
        bench.send(1, 0x200, &[]);
        bench.pass(MS);
        assert_eq!(bench.far_heard()[1..], [CanFrame::new(0x200, &[])]);
    }
}

#[test]
fn a_buffer_that_waits_is_not_written() {
    let mut bench = Bench::running();
    bench.far_sends([CanFrame::new(0x1, &[0; 8])]);
    bench.pass(BIT);
    bench.send(0, 0x100, &[7]);
    bench.spi(&[0x41, 8]);
    bench.assert_one_complaint("0x36 is written while its buffer's TXREQ is set");
    bench.pass(2 * MS);
    assert_eq!(bench.far_heard(), [CanFrame::new(0x100, &[7])]);
}

/// Filters in their registers' layout, each with its EXIDE.
fn with_filters(mode: u8) -> Bench {
    let mut bench = Bench::new();
    bench.write(0x28, &BITS_250K);
    bench.write(0x60, &[mode]);
    // RXF0 0x123, RXF1 extended 0x1234_5678; RXB0's mask compares all.
    bench.write(0x00, &[0x24, 0x60, 0, 0, 0x91, 0xa8, 0x56, 0x78]);
    bench.write(0x20, &[0xff, 0xe3, 0xff, 0xff]);
    // RXF2 0x200 to 0x2ff, RXF3 extended likewise, RXF4 0x123, RXF5 0x7ff; RXM1 compares 3 bits.
    bench.write(0x08, &[0x40, 0, 0, 0]);
    bench.write(0x10, &[0x40, 0x08, 0, 0, 0x24, 0x60, 0, 0, 0xff, 0xe0, 0, 0]);
    bench.write(0x24, &[0xe0, 0, 0, 0]);
    bench.mode(NORMAL);
    bench
}

#[test]
fn filters_say_where_frames_go() {
    let cases = [
        // RXF0's EID bits are compared with the first two bytes of data: they are 0.
        (CanFrame::new(0x123, &[0, 0, 5]), Some((0, 0))),
        (CanFrame::new(0x123, &[]), Some((0, 0))),
        (CanFrame::new(0x123, &[0]), Some((0, 0))),
        (CanFrame::new(0x123, &[0, 1]), Some((1, 4))),
        (CanFrame::new(0x123, &[1]), Some((1, 4))),
        (CanFrame::new(0x1234_5678, &[9, 9]), Some((0, 1))),
        (CanFrame::new(0x1234_5679, &[]), None),
        (CanFrame::new(0x2ff, &[1, 2]), Some((1, 2))),
        (CanFrame::new(0x2ff << 18 | 0x2_1234, &[]), Some((1, 3))),
        (CanFrame::new(0x7fe, &[]), Some((1, 5))),
        (CanFrame::new(0x4ff, &[]), None),
    ];
    for (frame, place) in cases {
        let mut bench = with_filters(0);
        bench.far_sends([frame]);
        bench.pass(MS);
        let flags = bench.read(0x2c, 1)[0];
        match place {
            None => assert_eq!(flags, 0, "{frame:?}"),
            Some((index, filter)) => {
                assert_eq!(flags, 1 << index, "{frame:?}");
                let ctrl = bench.read(0x60 + 16 * index, 1)[0];
                assert_eq!(ctrl & if index == 0 { 1 } else { 7 }, filter, "{frame:?}");
                assert_eq!(bench.ask(0xb0) & 7, filter, "{frame:?}");
            }
        }
    }
}

#[test]
fn a_full_buffer_rolls_over_if_it_may() {
    for rolls in [false, true] {
        let mut bench = with_filters(if rolls { 0x04 } else { 0 });
        bench.write(0x2b, &[0x20]);
        let frame = |byte| CanFrame::new(0x1234_5678, &[byte]);
        bench.far_sends([frame(1), frame(2)]);
        bench.pass(2 * MS);
        assert_eq!(bench.read(0x2c, 1), [if rolls { 0x03 } else { 0x21 }]);
        assert_eq!(bench.read(0x2d, 1), [if rolls { 0 } else { 0x40 }], "RX0OVR");
        if rolls {
            assert_eq!(bench.read(0x76, 1), [2]);
            assert_eq!(bench.read(0x70, 1)[0] & 7, 1, "FILHIT is RXF1");
            bench.far_sends([frame(3)]);
            bench.pass(MS);
            assert_eq!(bench.read(0x2d, 1), [0x80], "RX1OVR");
        }
        assert_eq!(bench.read(0x66, 1), [1], "the first stays");
        assert_eq!(bench.read(0x0e, 1), [0x02], "ICOD is the error");
        assert_eq!(bench.chip.taken_and_dropped().1, 1);
        bench.write(0x2d, &[0]);
        assert_eq!(bench.read(0x2d, 1), [0]);
    }
}

#[test]
fn the_time_of_a_bit_is_that_of_its_segments() {
    // A bus at the same rate accepts the chip's frames, another does not.
    for (cnf, bps) in [
        (BITS_250K, 250_000),
        ([0x82, 0xd0, 0x00], 1_000_000),
        ([0x86, 0xf0, 0x03], 125_000),
        // PS2 from PS1: 1 + 1 + 7 + 7.
        ([0x00, 0x30, 0x00], 500_000),
        // PS2 from the information processing time: 1 + 1 + 1 + 2 quanta of 800 ns.
        ([0x00, 0x00, 0x05], 266_667),
    ] {
        for other in [false, true] {
            let bus =
                CanBus::new(BitTimes::from_rates(if other { 50_000 } else { bps }, 2_000_000));
            let far = Rc::new(RefCell::new(Script::new("far", [])));
            bus.attach(far.clone());
            let chip = Mcp2515::new(&bus, OSCILLATOR_HZ);
            let mut bench = Bench { bus, chip, far, at: MS };
            bench.write(0x28, &cnf);
            bench.write(0x0f, &[NORMAL]);
            bench.pass(MS);
            bench.send(0, 0x55, &[1]);
            bench.pass(5 * MS);
            assert_eq!(bench.far_heard().len(), usize::from(!other), "{cnf:x?}");
        }
    }
}
