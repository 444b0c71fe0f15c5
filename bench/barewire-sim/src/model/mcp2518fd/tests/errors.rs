//! The effect of bus errors on counters, attempts and modes.

use super::*;
use crate::model::can::{Fault, Pattern, Traffic};

fn trec(bench: &mut Bench) -> u32 {
    bench.read32(0x034)
}

#[test]
fn without_an_acknowledge_the_chip_becomes_passive() {
    let mut bench = Bench::new(Options::default());
    bench.configure(4, 4);
    bench.mode(NORMAL);
    bench.send(2, 0x123, &[1]);
    bench.pass(70 * BIT);
    assert_eq!(trec(&mut bench), 8 << 8);
    assert_eq!(bench.read32(0x03c) >> 16, 1 << 2, "NACKERR");
    assert_eq!(bench.read32(0x038), 1 << 8, "NTERRCNT");
    assert_eq!(bench.read32(0x06c) >> 5 & 1, 1, "TXERR");
    bench.pass(12 * 65 * BIT);
    assert_eq!(trec(&mut bench) >> 16, 1 << 2 | 1, "TXWARN, EWARN");
    assert_eq!(bench.read32(0x01c) >> 13 & 1, 1, "CERRIF");
    bench.pass(100 * 80 * BIT);
    assert_eq!(trec(&mut bench), 1 << 20 | 128 << 8, "TXBP, and no bus off");
}

#[test]
fn attempts_end_where_they_are_limited() {
    for (txat, attempts) in [(0_u32, 1), (1, 3)] {
        let mut bench = Bench::new(Options::default());
        bench.configure(4, 4);
        bench.write(0x002, &[0x19]);
        bench.write(0x06a, &[(txat << 5) as u8]);
        bench.mode(NORMAL);
        bench.send(2, 0x123, &[1]);
        bench.pass(1_000 * BIT);
        assert_eq!(bench.sent_by_chip().len(), attempts);
        assert_eq!(bench.read32(0x06c) >> 4 & 1, 1, "TXATIF");
        assert_eq!(bench.read32(0x030), 0, "TXREQ");
        bench.write(0x068, &[0x90]);
        assert_eq!((bench.read32(0x02c), bench.read32(0x01c) >> 10 & 1), (4, 1));
        bench.write(0x06c, &[0]);
        assert_eq!((bench.read32(0x02c), bench.read32(0x01c) >> 10 & 1), (0, 0));
    }
}

#[test]
fn lost_arbitration_is_told_and_the_message_goes_next() {
    let mut bench = Bench::running(4, 4);
    bench.others_send([CanFrame::new(0x000, &[0x55; 8]), CanFrame::new(0x001, &[])]);
    bench.pass(20 * BIT);
    bench.send(2, 0x123, &[1]);
    bench.pass(130 * BIT);
    assert_eq!(bench.read32(0x06c) >> 6 & 1, 1, "TXLARB");
    bench.pass(200 * BIT);
    assert_eq!(bench.sent_by_chip().len(), 1);
    assert_eq!(trec(&mut bench) & 0xffff, 0);
}

#[test]
fn bus_off_and_back() {
    let mut bench = Bench::running(4, 4);
    // CERRIE.
    bench.write(0x01f, &[0x20]);
    bench.inject_all();
    bench.send(2, 0x123, &[1]);
    // 32 attempts of some 60 bits; passive ones wait 8 more.
    bench.pass(40 * 75 * BIT);
    let trec_off = trec(&mut bench);
    assert_eq!(trec_off >> 16, 1 << 5, "TXBO");
    assert_eq!(bench.read32(0x03c) >> 23 & 1, 1, "TXBOERR");
    assert_eq!(bench.sent_by_chip().len(), 32);
    let off_since = bench.sent_by_chip()[31].eof - 8 * BIT;
    bench.bus.clear_faults();
    bench.write(0x01d, &[0]);
    assert_eq!(bench.read32(0x01c) >> 13 & 1, 0);
    bench.at = off_since + 128 * 11 * BIT - 50_000_000;
    assert_eq!(trec(&mut bench) >> 16, 1 << 5);
    bench.pass(100_000_000);
    assert_eq!(trec(&mut bench), 0);
    assert_eq!(bench.read32(0x01c) >> 13 & 1, 1, "CERRIF");
    bench.pass(100 * BIT);
    assert!(bench.sent_by_chip()[32].is_taken(), "TXREQ was still set");
}

impl Bench {
    fn inject_all(&mut self) {
        self.bus.inject(Fault::ErrorFlags { first: self.bus.frames(), every: 1, bit: 30 });
    }
}

#[test]
fn configuration_mode_ends_bus_off() {
    let mut bench = Bench::running(4, 4);
    bench.inject_all();
    bench.send(2, 0x123, &[1]);
    bench.pass(40 * 75 * BIT);
    bench.bus.clear_faults();
    assert_eq!(trec(&mut bench) >> 16, 1 << 5);
    bench.mode(CONFIGURATION);
    assert_eq!(trec(&mut bench), 1 << 21, "not on the bus, counters clear");
    bench.mode(NORMAL);
    assert_eq!((trec(&mut bench), bench.read32(0x030)), (0, 0));
}

#[test]
fn errors_of_others_count_at_the_receiver() {
    let mut bench = Bench::running(4, 4);
    bench.bus.inject(Fault::Crc { frame: bench.bus.frames() });
    bench.others_send([CanFrame::new(0x077, &[1])]);
    bench.pass(75 * BIT);
    assert_eq!(trec(&mut bench), 1);
    assert_eq!(bench.read32(0x03c) >> 16, 1 << 5, "NCRCERR");
    assert_eq!(bench.read32(0x038), 1);
    assert_eq!(bench.read32(0x01c) >> 15 & 1, 1, "IVMIF");
    bench.pass(200 * BIT);
    assert_eq!(trec(&mut bench), 0, "it came through at last");
    assert_eq!(bench.read32(0x03c) & 0xffff, 1, "EFMSGCNT");
    bench.write32(0x03c, 0);
    assert_eq!(bench.read32(0x03c), 0);
}

#[test]
fn a_wrong_bit_rate_gets_no_frame_through() {
    let mut bench = Bench::new(Options::default());
    bench.configure(4, 4);
    bench.write32(0x004, 0x003e_0f0f);
    bench.mode(NORMAL);
    bench.bus.add_traffic(Traffic { id: Pattern::Fixed(1), ..Traffic::default() });
    bench.pass(10_000 * BIT);
    assert!(bench.bus.records().iter().all(|record| !record.is_taken()));
    assert_ne!(bench.read32(0x038), 0);
}
