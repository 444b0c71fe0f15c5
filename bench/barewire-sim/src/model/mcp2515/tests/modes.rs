//! The modes, and the registers that may be written in each.

use super::*;

#[test]
fn bit_times_and_filters_are_configuration_modes() {
    let mut bench = Bench::running();
    for address in [0x00, 0x13, 0x20, 0x27, 0x28, 0x29, 0x2a, 0x0d] {
        let had = bench.read(address, 1);
        bench.write(address, &[0x3a]);
        bench.assert_one_complaint("outside Configuration mode");
        assert_eq!(bench.read(address, 1), had);
    }
    for address in [0x0e, 0x1c, 0x2e, 0x61, 0x7d] {
        bench.write(address, &[0x3a]);
        bench.assert_one_complaint("but only read");
    }
    bench.mode(CONFIGURATION);
    assert_eq!(bench.read(0x28, 3), BITS_250K);
    bench.write(0x20, &[0x12, 0xff]);
    assert_eq!(bench.read(0x20, 2), [0x12, 0xe3], "bits that there are not");
    bench.mode(NORMAL);
    assert_eq!(bench.read(0x20, 2), [0, 0], "masks and filters read 0");
}

#[test]
fn bit_times_are_held_to_their_rules() {
    for (cnf, told) in [
        ([0x00, 0xb1, 0x00], Some("PHSEG2 is at least 1")),
        ([0x07, 0x80, 0x00], Some("PropSeg 1 + PS1 1 are less than PS2 8")),
        ([0x01, 0x90, 0x40], Some("PS2 2 is not above SJW 2")),
        (BITS_250K, None),
    ] {
        let mut bench = Bench::new();
        bench.write(0x28, &cnf);
        bench.write(0x0f, &[NORMAL]);
        match told {
            Some(told) => {
                let complaints = bench.complaints();
                assert!(complaints.iter().any(|one| one.contains(told)), "{complaints:?}");
            }
            None => assert!(bench.complaints().is_empty()),
        }
    }
    let mut bench = Bench::new();
    bench.write(0x0f, &[0xe0]);
    bench.assert_one_complaint("no mode has REQOP 7");
    bench.write(0x60, &[0x20]);
    bench.assert_one_complaint("RXM 1 is reserved");
}

#[test]
fn joining_takes_eleven_recessive_bits() {
    let mut bench = Bench::new();
    bench.write(0x28, &BITS_250K);
    bench.far_sends([CanFrame::new(0x1, &[0; 8])]);
    bench.pass(BIT);
    bench.write(0x0f, &[NORMAL]);
    bench.pass(10 * BIT);
    assert_eq!(bench.read(0x0e, 1), [CONFIGURATION], "a frame is on the bus");
    assert!(!bench.bus.takes_part(bench.chip.node()));
    bench.pass(200 * BIT);
    assert_eq!(bench.read(0x0e, 1), [NORMAL]);
}

#[test]
fn loopback_is_within_the_chip() {
    let mut bench = Bench::running();
    bench.mode(LOOPBACK);
    bench.send(0, 0x123, &[1, 2, 3]);
    bench.pass(20 * BIT);
    assert_eq!(bench.read(0x2c, 1), [0], "it takes as long as on the bus");
    bench.pass(60 * BIT);
    assert_eq!(bench.read(0x2c, 1), [0x05], "TX0IF and RX0IF");
    assert_eq!(bench.read(0x61, 8), [0x24, 0x60, 0, 0, 3, 1, 2, 3]);
    bench.far_sends([CanFrame::new(0x1, &[])]);
    bench.pass(MS);
    assert_eq!(bench.read(0x2c, 1), [0x05], "the bus is not heard");
    assert!(bench.far_heard().is_empty());
    // The other node retries until a node acknowledges.
    bench.write(0x0f, &[NORMAL]);
    bench.pass(2 * MS);
    assert_eq!(bench.read(0x2c, 1), [0x07], "RX1IF, since RXB0 is full");
    assert!(bench.complaints().is_empty());
}

#[test]
fn listening_acknowledges_nothing() {
    let mut bench = Bench::running();
    bench.mode(LISTEN);
    bench.far_sends([CanFrame::new(0x123, &[1])]);
    bench.send(0, 0x1, &[]);
    bench.pass(MS);
    assert_eq!(bench.read(0x2c, 1)[0] & 3, 0);
    assert!(bench.bus.take_records().iter().all(|record| !record.is_taken()));
    bench.bus.add_listener();
    bench.pass(30 * MS);
    assert_eq!(bench.read(0x2c, 1)[0] & 3, 1, "now somebody does");
    assert!(bench.far_heard().is_empty(), "it sends nothing");
    bench.mode(NORMAL);
    bench.pass(MS);
    assert_eq!(bench.far_heard(), [CanFrame::new(0x1, &[])]);
}

#[test]
fn a_mode_is_left_when_nothing_waits_to_be_sent() {
    let mut bench = Bench::running();
    bench.far_sends([CanFrame::new(0x1, &[0; 8])]);
    bench.pass(BIT);
    bench.send(0, 0x100, &[]);
    bench.write(0x0f, &[CONFIGURATION]);
    bench.pass(120 * BIT);
    assert_eq!(bench.read(0x0e, 1), [NORMAL]);
    bench.pass(80 * BIT);
    assert_eq!(bench.read(0x0e, 1), [CONFIGURATION]);
    assert_eq!(bench.far_heard(), [CanFrame::new(0x100, &[])]);
    // A frame without acknowledgement is never sent successfully, but it can be aborted.
    let mut bench = Bench::running();
    bench.mode(NORMAL);
    bench.far.borrow_mut().set_link(crate::model::can::Link {
        role: crate::model::can::Role::Off,
        ..crate::model::can::Link::ACTIVE
    });
    bench.bus.changed();
    bench.send(0, 0x100, &[]);
    bench.write(0x0f, &[CONFIGURATION]);
    bench.pass(20 * MS);
    assert_eq!(bench.read(0x0e, 1), [NORMAL]);
    bench.write(0x0f, &[CONFIGURATION | 0x10]);
    bench.pass(MS);
    assert_eq!(bench.read(0x0e, 1), [CONFIGURATION]);
    assert_eq!(bench.read(0x30, 1)[0] & 0x48, 0x40, "ABTF");
}

#[test]
fn sleep_is_off_the_bus() {
    let mut bench = Bench::running();
    bench.mode(0x20);
    bench.far_sends([CanFrame::new(0x123, &[1])]);
    bench.pass(MS);
    assert_eq!(bench.read(0x2c, 1), [0]);
    bench.write(0x0f, &[NORMAL]);
    bench.assert_one_complaint("waking up");
    bench.spi(&[0xc0]);
    bench.pass(MS);
    assert_eq!(bench.read(0x0e, 1), [CONFIGURATION]);
}
