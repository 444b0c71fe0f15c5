//! FIFOs, filters and the objects in RAM.

use std::num::NonZeroU32;

use super::*;

/// The address of FIFO 1 with the sizes of [`Bench::configure`]: events of 12 bytes, queued
/// messages of 16.
const FIFO1: u16 = 4 * 12 + 4 * 16;

#[test]
fn objects_lie_in_ram_in_order() {
    let mut bench = Bench::running(4, 4);
    assert_eq!(bench.read32(0x048), 0);
    assert_eq!(bench.read32(0x058), 4 * 12);
    assert_eq!(bench.read32(0x064), FIFO1.into());
    // FIFO 1's objects have a time stamp.
    assert_eq!(bench.read32(0x070), u32::from(FIFO1) + 4 * 20);
    assert_eq!(bench.read32(0x07c), u32::from(FIFO1) + 4 * 20 + 4 * 16);
    let mut bench = Bench::new(Options::default());
    bench.write(0x002, &[0x00]);
    bench.write32(0x05c, 7 << 29 | 5 << 24);
    assert_eq!(bench.read32(0x064), 0, "neither events nor queue");
    assert_eq!(bench.read32(0x070), 6 * 72);
}

#[test]
fn a_frame_received_is_an_object() {
    let mut bench = Bench::running(4, 4);
    let frame = CanFrame::new(0x1234_5678, &[1, 2, 3, 4, 5]);
    bench.others_send([frame]);
    bench.pass(200 * BIT);
    let record = bench.bus.records()[0];
    assert_eq!(bench.read32(0x060), 1 << 8 | 1, "FIFOCI 1, not empty");
    assert_eq!(bench.read32(0x020), 1 << 1);
    assert_eq!(bench.read32(0x018), 0x0140_0001);
    let tbc_begun = bench.read32(0x010);
    let now = bench.at;
    let object = bench.take(1, 5);
    // SID in bits 10 to 0, EID in 28 to 11.
    assert_eq!(object[0], 0x1234_5678 >> 18 | (0x1234_5678 & 0x3_ffff) << 11);
    assert_eq!(object[1], 5 | 1 << 4);
    assert_eq!(object[3..], [0x0403_0201, 5]);
    // The stamp is of SOF's sample point, 128 of 160 quanta; TBC was read 3.5 us before `now`.
    let age_ps = u64::from(tbc_begun - object[2]) * 25_000;
    let sampled = now - 500_000 - 500_000 - 4 * BYTE - age_ps;
    let expected = record.sof + 128 * 25_000;
    assert!(sampled.abs_diff(expected) <= 25_000, "{sampled} {expected}");
    assert_eq!(bench.read32(0x060), 1 << 8);
    assert!(bench.complaints().is_empty());
}

#[test]
fn frames_of_can_fd_have_64_bytes() {
    let mut bench = Bench::configured(Options::default(), 1, 1);
    bench.write32(0x05c, 7 << 29 | 3 << 24 | 1);
    bench.write32(0x068, 7 << 29 | 1 << 24 | 3 << 21 | 1 << 7);
    bench.mode(NORMAL);
    let data: Vec<u8> = (0..64).collect();
    bench.others_send([CanFrame::fd(0x077, &data, true)]);
    bench.pass(400 * BIT);
    let object = bench.take(1, 18);
    assert_eq!(object[..3], [0x077, 15 | 1 << 7 | 1 << 6, 0x0302_0100]);
    assert_eq!(object[17], 0x3f3e_3d3c);
    bench.put(2, 0x123, 15 | 1 << 7 | 1 << 6, &data);
    bench.write(0x069, &[3]);
    bench.pass(400 * BIT);
    let record = bench.sent_by_chip()[0];
    assert_eq!(record.frame, CanFrame::fd(0x123, &data, true));
    assert!(record.is_taken());
}

#[test]
fn a_fifo_wraps_and_overflows() {
    let mut bench = Bench::running(3, 4);
    bench.others_send((0..3).map(|id| CanFrame::new(id, &[id as u8])));
    bench.pass(300 * BIT);
    assert_eq!(bench.read32(0x060) & 0x1f07, 7, "full, its index wrapped");
    assert_eq!((bench.take(1, 4)[0], bench.take(1, 4)[0]), (0, 1));
    bench.others_send((3..7).map(|id| CanFrame::new(id, &[id as u8])));
    bench.pass(400 * BIT);
    assert_eq!(bench.chip.taken_and_dropped(), (5, 2));
    assert_eq!(bench.read32(0x060), 2 << 8 | 0xf, "RXOVIF, full");
    assert_eq!(bench.read32(0x028), 2);
    assert_eq!(bench.read32(0x01c) >> 11 & 1, 1);
    let objects: Vec<u32> = (0..3).map(|_| bench.take(1, 4)[3]).collect();
    assert_eq!(objects, [2, 3, 4], "by their data");
    bench.write(0x060, &[0xf7]);
    assert_eq!((bench.read32(0x060), bench.read32(0x028)), (2 << 8, 0));
    assert!(bench.complaints().is_empty());
    bench.write(0x05d, &[1]);
    assert_eq!(bench.complaints(), ["UINC of FIFO 1, which is empty"]);
}

#[test]
fn filters_choose_the_fifo() {
    let mut bench = Bench::configured(Options::default(), 4, 4);
    // FIFO 3 for frames, filter 0 to it: identifiers 0x120 to 0x12f; filter 5 to FIFO 1: extended ones.
    bench.write32(0x074, 3 << 24);
    bench.write(0x1d0, &[0x00]);
    bench.write32(0x1f0, 0x120);
    bench.write32(0x1f4, 0x7f0 | 1 << 30);
    bench.write(0x1d0, &[0x83]);
    bench.write32(0x218, 1 << 30);
    bench.write32(0x21c, 1 << 30);
    bench.write(0x1d5, &[0x81]);
    bench.mode(NORMAL);
    let frames = [
        CanFrame::new(0x12a, &[1]),
        CanFrame::new(0x13a, &[2]),
        CanFrame::new(0x12a, &[3]).extended(),
        CanFrame::new(0x12f, &[4]),
    ];
    bench.others_send(frames);
    bench.pass(500 * BIT);
    assert_eq!(bench.read32(0x060) >> 8 & 0x1f, 1);
    assert_eq!(bench.read32(0x078) >> 8 & 0x1f, 2);
    let object = bench.take(1, 4);
    assert_eq!(object[1] >> 11, 5, "FILHIT");
    assert_eq!(object[0], 0x12a << 11);
    assert_eq!((bench.take(3, 3)[0], bench.take(3, 3)[0]), (0x12a, 0x12f));
    assert!(bench.complaints().is_empty());
    bench.write32(0x1f0, 0);
    assert_eq!(bench.complaints().len(), 4, "a byte each");
}

#[test]
fn data_bits_are_compared_where_dncnt_says() {
    let mut bench = Bench::configured(Options::default(), 4, 4);
    bench.write(0x000, &[0x60 | 8]);
    bench.write(0x1d0, &[0x00]);
    // Data bit 7 of byte 0 is EID0: 0x81 has EID0 and EID7.
    bench.write32(0x1f0, 0x123 | 0x81 << 11);
    bench.write32(0x1f4, 0x7ff | 0xff << 11);
    bench.write(0x1d0, &[0x81]);
    bench.mode(NORMAL);
    bench.others_send([CanFrame::new(0x123, &[0x01]), CanFrame::new(0x123, &[0x81, 9])]);
    bench.pass(300 * BIT);
    assert_eq!(bench.chip.taken_and_dropped().0, 1);
    assert_eq!(bench.take(1, 4)[3], 0x0981);
}

#[test]
fn messages_are_sent_and_told_in_the_event_fifo() {
    let mut bench = Bench::running(4, 2);
    bench.put(2, 0x123, 2 | 0x12_3456 << 9, &[1, 2]);
    bench.write(0x069, &[3]);
    let requested = bench.at - 1_000_000;
    assert_eq!(bench.read32(0x030), 4, "TXREQ");
    assert_eq!(bench.read32(0x06c) & 7, 3, "room, half empty");
    bench.pass(100 * BIT);
    let record = bench.sent_by_chip()[0];
    assert_eq!(record.frame, CanFrame::new(0x123, &[1, 2]));
    assert_eq!(record.sof, requested + 20 * 25_000);
    assert_eq!((bench.read32(0x030), bench.read32(0x06c)), (0, 1 << 8 | 7));
    assert_eq!(bench.read32(0x044), 1);
    assert_eq!(bench.read32(0x01c) >> 4 & 1, 1, "TEFIF");
    let event = bench.take_event();
    assert_eq!(event[..2], [0x123, 2 | 0x12_3456 << 9]);
    assert_eq!(bench.read32(0x044), 0);
    // Both parts: sequence numbers of 23 and of 7 bits.
    let mut bench =
        Bench::configured(Options { part: PartKind::Mcp2517Fd, ..Options::default() }, 4, 2);
    bench.mode(NORMAL);
    bench.put(2, 0x123, 2 | 0x12_3456 << 9, &[1, 2]);
    bench.write(0x069, &[3]);
    bench.pass(100 * BIT);
    assert_eq!(bench.take_event()[1], 2 | 0x56 << 9);
}

#[test]
fn a_ring_of_messages_wraps() {
    let mut bench = Bench::running(4, 3);
    for round in 0..7_u32 {
        bench.send(2, 0x100 + round, &[round as u8]);
        bench.pass(80 * BIT);
        bench.take_event();
    }
    let ids: Vec<u32> = bench.sent_by_chip().iter().map(|record| record.frame.id).collect();
    assert_eq!(ids, (0x100..0x107).collect::<Vec<_>>());
    assert!(bench.complaints().is_empty());
}

#[test]
fn events_overflow() {
    let mut bench = Bench::running(4, 8);
    for id in 0..6 {
        bench.send(2, id, &[]);
    }
    bench.pass(600 * BIT);
    assert_eq!(bench.read32(0x044), 0xf, "overflow, full, half full, not empty");
    let ids: Vec<u32> = (0..4).map(|_| bench.take_event()[0]).collect();
    assert_eq!(ids, [0, 1, 2, 3]);
    bench.write(0x044, &[0]);
    assert_eq!(bench.read32(0x044), 0);
}

#[test]
fn the_queue_goes_by_identifier_and_fifos_by_priority() {
    let mut bench = Bench::running(4, 4);
    // All messages wait while a long frame is on the bus.
    bench.others_send([CanFrame::new(0x000, &[0x55; 8])]);
    bench.pass(20 * BIT);
    for id in [0x300, 0x100, 0x200, 0x100] {
        bench.send(0, id, &[]);
    }
    assert_eq!(bench.read32(0x054), 1 << 8, "full; place 1 is next, of 0x100");
    bench.send(2, 0x050, &[]);
    bench.pass(500 * BIT);
    let ids: Vec<u32> = bench.sent_by_chip().iter().map(|record| record.frame.id).collect();
    assert_eq!(ids, [0x100, 0x100, 0x200, 0x300, 0x050]);
    // FIFO 2 before the queue.
    bench.write(0x06a, &[0x61]);
    bench.others_send([CanFrame::new(0x000, &[0x55; 8])]);
    bench.pass(20 * BIT);
    bench.send(0, 0x001, &[]);
    bench.send(2, 0x050, &[]);
    bench.pass(300 * BIT);
    let ids: Vec<u32> = bench.sent_by_chip()[5..].iter().map(|record| record.frame.id).collect();
    assert_eq!(ids, [0x050, 0x001]);
}

#[test]
fn what_waits_is_aborted_and_what_is_on_the_bus_is_not() {
    let mut bench = Bench::running(4, 4);
    bench.others_send([CanFrame::new(0x000, &[0x55; 8])]);
    bench.pass(20 * BIT);
    bench.send(2, 0x100, &[]);
    bench.write(0x069, &[0]);
    assert_eq!(bench.read32(0x06c) >> 7 & 1, 1, "TXABT");
    assert_eq!(bench.read32(0x030), 0);
    bench.pass(300 * BIT);
    assert!(bench.sent_by_chip().is_empty());
    // After another request it is sent. If it is aborted while on the bus, it is sent all the same.
    bench.write(0x069, &[2]);
    bench.pass(20 * BIT);
    bench.write(0x003, &[0x08]);
    assert_eq!(bench.read32(0x000) >> 27 & 1, 1, "ABAT");
    bench.pass(100 * BIT);
    assert_eq!(bench.sent_by_chip().len(), 1);
    assert_eq!(bench.read32(0x000) >> 27 & 1, 0, "ABAT");
}

#[test]
fn a_remote_frame_fetches_an_answer() {
    let mut bench = Bench::configured(Options::default(), 4, 4);
    bench.write(0x068, &[0xc0]);
    bench.write(0x1d0, &[0]);
    bench.write(0x1d0, &[0x82]);
    bench.mode(NORMAL);
    bench.put(2, 0x123, 1, &[7]);
    bench.write(0x069, &[1]);
    bench.pass(100 * BIT);
    assert!(bench.sent_by_chip().is_empty());
    bench.others_send([CanFrame::remote(0x123, 1)]);
    bench.pass(200 * BIT);
    assert_eq!(bench.sent_by_chip()[0].frame, CanFrame::new(0x123, &[7]));
}

#[test]
fn objects_beyond_ram_are_told() {
    let mut bench = Bench::configured(Options::default(), 4, 4);
    // 32 objects of 76 bytes: RAM has room for 25 after the events and the queue.
    bench.write32(0x05c, 7 << 29 | 31 << 24 | 1 << 5 | 1);
    bench.mode(NORMAL);
    bench.others_send((0..26).map(|id| CanFrame::new(id, &[])));
    bench.pass(26 * 55 * BIT);
    assert_eq!(bench.complaints(), ["a message object ends at RAM byte 2088, RAM has 2048"]);
}

#[test]
fn longer_data_than_an_object_is_cut_and_told() {
    let mut bench = Bench::running(4, 4);
    bench.others_send([CanFrame::fd(0x077, &[7; 12], false)]);
    bench.pass(300 * BIT);
    assert_eq!(bench.read32(0x03c) >> 31, 1, "DLCMM");
    assert_eq!(bench.read32(0x01c) >> 15 & 1, 1, "IVMIF");
    assert_eq!(bench.take(1, 5)[1], 9 | 1 << 7);
}

#[test]
fn the_index_erratum_names_an_object_too_many_for_a_while() {
    let errata = Errata { fifoci_wrong_for_ps: 50_000_000, ..Errata::default() };
    let mut bench = Bench::configured(Options { errata, ..Options::default() }, 4, 4);
    bench.mode(NORMAL);
    bench.others_send([CanFrame::new(0x077, &[1])]);
    let received = bench.at + 500_000_000;
    while bench.chip.taken_and_dropped().0 == 0 && bench.at < received {
        bench.pass(BIT);
    }
    assert_eq!(bench.read32(0x060) >> 8 & 0x1f, 2);
    bench.pass(50_000_000);
    assert_eq!(bench.read32(0x060) >> 8 & 0x1f, 1);
}

#[test]
fn ecc_finds_words_that_were_never_written_with_it() {
    let mut bench = Bench::new(Options::default());
    bench.write(0xe0c, &[7]);
    bench.write32(0x400, 1);
    bench.read32(0x400);
    assert_eq!(bench.read32(0xe10), 0);
    bench.read32(0x404);
    assert_eq!(bench.read32(0xe10), 0x404 << 16 | 4);
    assert_eq!(bench.read32(0x01c) >> 8 & 1, 1, "ECCIF");
    bench.write(0xe10, &[0]);
    assert_eq!(bench.read32(0x01c) >> 8 & 1, 0);
    bench.chip.flip_ram(0x400, false);
    assert_eq!((bench.read32(0x400), bench.read32(0xe10)), (1, 0x400 << 16 | 2), "corrected");
}

#[test]
fn every_third_word_is_flipped_if_asked_and_corrected_with_ecc() {
    let faults = ChipFaults { ram_flip_every: NonZeroU32::new(3), ..ChipFaults::default() };
    let mut bench = Bench::new(Options { faults, ..Options::default() });
    bench.write32(0x400, 8);
    assert_eq!([0; 4].map(|_| bench.read32(0x400)), [8, 8, 9, 8], "without ECC");
    bench.write(0xe0c, &[7]);
    bench.write32(0x400, 8);
    assert_eq!((bench.read32(0x400), bench.read32(0xe10)), (8, 0));
    assert_eq!((bench.read32(0x400), bench.read32(0xe10)), (8, 0x400 << 16 | 2), "SECIF");
}

#[test]
fn ecc_errors_interrupt_only_where_enabled() {
    let mut bench = Bench::new(Options::default());
    for (ecccon, eccif) in [(1, 0), (3, 1)] {
        bench.write(0xe0c, &[ecccon]);
        bench.write32(0x400, 1);
        bench.chip.flip_ram(0x400, false);
        assert_eq!(bench.read32(0xe10) & 2, 2, "SECIF");
        assert_eq!(bench.read32(0x01c) >> 8 & 1, eccif, "ECCIF with {ecccon}");
        bench.write(0xe10, &[0]);
    }
}

#[test]
fn a_fifo_is_half_full_at_half() {
    let mut bench = Bench::running(4, 4);
    for (frames, flags) in [(1, 1), (2, 3), (3, 3), (4, 7)] {
        bench.others_send([CanFrame::new(frames, &[])]);
        bench.pass(200 * BIT);
        assert_eq!(bench.read32(0x060) & 7, flags, "{frames} of 4 frames");
    }
}

#[test]
fn an_object_has_its_eight_bytes_and_the_payload() {
    for (plsize, bytes) in (0..).zip([8, 12, 16, 20, 24, 32, 48, 64]) {
        let mut bench = Bench::new(Options::default());
        bench.write(0x002, &[0x00]);
        // One object in FIFO 1, so FIFO 2 begins behind it.
        bench.write32(0x05c, plsize << 29);
        assert_eq!(bench.read32(0x070), 8 + bytes, "PLSIZE {plsize}");
    }
}
