//! Interrupt pins at their times, and the time base.

use super::*;
use crate::line::Source as _;

#[test]
fn int_is_low_while_a_flag_and_its_enable_are_set() {
    let mut bench = Bench::running(4, 4);
    let pin = bench.chip.int();
    bench.write(0x01e, &[0x02]);
    bench.chip.start_int_lows();
    assert_eq!(bench.chip.take_int_lows(), []);
    bench.others_send([CanFrame::new(0x077, &[0x55; 8])]);
    let due = pin.settle(bench.at);
    assert!(due < Ps::MAX && pin.asserted_since().is_none());
    bench.pass(200 * BIT);
    let eof = bench.bus.records()[0].eof;
    assert_eq!(pin.asserted_since(), Some(eof - BIT));
    bench.write(0x05d, &[1]);
    // The flag clears with the last bit of the written byte: one microsecond before `bench.at`.
    let cleared = bench.at - 1_000_000;
    assert_eq!(bench.chip.take_int_lows(), [(eof - BIT, Some(cleared))]);
    assert_eq!((pin.asserted_since(), bench.chip.take_int_lows()), (None, vec![]));
    assert!(pin.settle(bench.at) > bench.at + 1_000_000_000_000, "TBC overflows, no more");
}

#[test]
fn an_interrupt_that_goes_on_is_kept() {
    let mut bench = Bench::running(4, 4);
    bench.chip.start_int_lows();
    bench.write(0x01e, &[0x02]);
    bench.others_send([CanFrame::new(0x077, &[0x55; 8])]);
    bench.pass(200 * BIT);
    let low = bench.bus.records()[0].eof - BIT;
    assert_eq!(bench.chip.take_int_lows(), [(low, None)]);
    bench.write(0x05d, &[1]);
    assert_eq!(bench.chip.take_int_lows(), [(low, Some(bench.at - 1_000_000))]);
}

#[test]
fn int0_and_int1_are_of_one_direction_each() {
    let mut bench = Bench::running(4, 4);
    let (int0, int1) = (bench.chip.int0(), bench.chip.int1());
    bench.write(0x01e, &[0x03]);
    // FIFO 2's interrupt on empty: FIFO 2 is empty.
    bench.write(0x068, &[0x84]);
    let state = |bench: &Bench| {
        int0.settle(bench.at);
        (int0.asserted_since().is_some(), int1.asserted_since().is_some())
    };
    assert_eq!(state(&bench), (false, false), "both pins are GPIOs");
    bench.write(0xe07, &[0]);
    assert_eq!(state(&bench), (true, false));
    assert_eq!(bench.read32(0x024), 4);
    bench.others_send([CanFrame::new(0x077, &[])]);
    bench.pass(100 * BIT);
    assert_eq!(state(&bench), (true, true));
}

#[test]
fn a_pin_may_be_stuck_or_dead() {
    let mut bench = Bench::running(4, 4);
    let pin = bench.chip.int();
    bench.chip.set_faults(ChipFaults { int_stuck_low: true, ..ChipFaults::default() });
    assert!(pin.asserted_since().is_some());
    bench.chip.set_faults(ChipFaults { int_never: true, ..ChipFaults::default() });
    bench.write(0x01e, &[0x02]);
    bench.others_send([CanFrame::new(0x077, &[])]);
    bench.pass(100 * BIT);
    assert_eq!(bench.read32(0x01c) & 2, 2);
    assert!(pin.asserted_since().is_none());
}

#[test]
fn the_time_base_overflows() {
    let mut bench = Bench::new(Options::default());
    bench.write32(0x010, 0xffff_ff00);
    bench.write32(0x014, 1 << 16 | 39);
    let enabled = bench.at;
    assert_eq!(bench.read32(0x010) >> 8, 0x00ff_ffff);
    bench.pass(256_000_000 - (bench.at - enabled));
    assert_eq!(bench.read32(0x01c) >> 2 & 1, 1, "TBCIF, after 256 ticks of a microsecond");
    assert!(bench.read32(0x010) < 20);
    bench.write(0x01c, &[0xfb]);
    assert_eq!(bench.read32(0x01c) >> 2 & 1, 0);
    bench.write(0x016, &[0]);
    assert_eq!(bench.read32(0x010), 0, "stopped is reset");
}
