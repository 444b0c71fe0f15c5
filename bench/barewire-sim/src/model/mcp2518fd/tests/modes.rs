//! Modes of operation, and the clocks they need.

use super::*;

fn opmod(bench: &mut Bench) -> u32 {
    bench.read32(0x000) >> 21 & 7
}

#[test]
fn normal_mode_comes_after_eleven_recessive_bits() {
    let mut bench = Bench::configured(Options::default(), 4, 4);
    bench.write(0x003, &[NORMAL]);
    // The byte's end, half a microsecond before CS rose and one before now.
    let requested = bench.at - 1_000_000;
    bench.chip.catch_up(requested + 11 * BIT - 1);
    assert_eq!(bench.chip.peek(0x000).unwrap() >> 21 & 7, 4);
    assert_eq!(bench.chip.peek(0x01c).unwrap() >> 3 & 1, 0, "MODIF");
    bench.chip.catch_up(requested + 11 * BIT);
    assert_eq!(bench.chip.peek(0x000).unwrap() >> 21 & 7, 0);
    assert_eq!(bench.chip.peek(0x01c).unwrap() >> 3 & 1, 1, "MODIF");
    bench.at = requested + 12 * BIT;
    bench.write(0x01c, &[0xf7]);
    assert_eq!(bench.read32(0x01c) >> 3 & 1, 0, "cleared by writing 0");
}

#[test]
fn a_busy_bus_delays_normal_mode_until_a_frame_is_over() {
    let mut bench = Bench::configured(Options::default(), 4, 4);
    bench.others_send([CanFrame::new(0x077, &[0x55; 8])]);
    bench.pass(50 * BIT);
    bench.write(0x003, &[NORMAL]);
    bench.pass(20 * BIT);
    assert_eq!(opmod(&mut bench), 4);
    bench.pass(60 * BIT);
    assert_eq!(opmod(&mut bench), 0);
    assert_eq!(bench.chip.taken_and_dropped(), (0, 0), "the mode changed too late for that frame");
}

#[test]
fn configuration_mode_comes_when_the_frame_has_passed() {
    let mut bench = Bench::running(4, 4);
    bench.write(0x003, &[CONFIGURATION]);
    bench.pass(2 * BIT);
    assert_eq!(opmod(&mut bench), 4, "at once, nearly, on an idle bus");
    bench.mode(NORMAL);
    bench.others_send([CanFrame::new(0x077, &[0x55; 8])]);
    bench.pass(50 * BIT);
    bench.write(0x003, &[CONFIGURATION]);
    bench.pass(20 * BIT);
    assert_eq!(opmod(&mut bench), 0);
    assert_eq!(bench.read32(0x000) >> 11 & 1, 1, "BUSY");
    bench.pass(60 * BIT);
    assert_eq!(opmod(&mut bench), 4);
    let (taken, _) = bench.chip.taken_and_dropped();
    assert_eq!(taken, 1);
    assert_eq!(bench.read32(0x060) & 1, 0, "the FIFOs are reset, though");
    assert!(bench.complaints().is_empty());
}

#[test]
fn every_mode_is_reached_and_left() {
    for mode in [NORMAL, LOOPBACK, 3, 5, 6, 7] {
        let mut bench = Bench::configured(Options::default(), 4, 4);
        bench.mode(mode);
        bench.mode(CONFIGURATION);
        assert!(bench.complaints().is_empty(), "{mode}");
        bench.mode(mode);
        bench.write(0x003, &[if mode == NORMAL { 6 } else { NORMAL }]);
        bench.pass(20 * BIT);
        assert_eq!(opmod(&mut bench), mode.into(), "not without Configuration mode between");
        assert_eq!(bench.complaints().len(), 1);
    }
}

#[test]
fn internal_loopback_is_a_bus_of_its_own() {
    let mut bench = Bench::new(Options::default());
    bench.configure(4, 4);
    bench.mode(LOOPBACK);
    bench.send(2, 0x123, &[1, 2, 3]);
    bench.pass(100 * BIT);
    assert_eq!(bench.take(1, 4)[..2], [0x123, 3]);
    assert_eq!(bench.read32(0x06c) & 4, 4, "FIFO 2 is empty");
    assert_eq!(bench.take_event()[..2], [0x123, 3]);
    assert!(bench.bus.records().is_empty());
}

#[test]
fn external_loopback_needs_nobody() {
    let mut bench = Bench::new(Options::default());
    bench.configure(4, 4);
    bench.mode(5);
    bench.send(2, 0x123, &[1, 2, 3]);
    bench.pass(100 * BIT);
    assert_eq!(bench.take(1, 4)[..2], [0x123, 3]);
    assert!(bench.sent_by_chip()[0].is_taken());
    assert_eq!(bench.read32(0x034) & 0xffff, 0);
}

#[test]
fn listening_sends_nothing_and_acknowledges_nothing() {
    for (mode, acknowledged) in [(3, false), (7, true)] {
        let mut bench = Bench::new(Options::default());
        bench.configure(4, 4);
        bench.mode(mode);
        bench.others_send([CanFrame::new(0x077, &[1])]);
        bench.send(2, 0x001, &[1]);
        bench.pass(200 * BIT);
        assert_eq!(bench.bus.records()[0].is_taken(), acknowledged);
        assert_eq!(bench.chip.taken_and_dropped().0, u64::from(acknowledged));
        assert!(bench.sent_by_chip().is_empty());
    }
}

#[test]
fn can_2_mode_sends_classic_frames_and_destroys_others() {
    let mut bench = Bench::configured(Options::default(), 4, 4);
    bench.mode(6);
    // FDF and BRS.
    bench.put(2, 0x123, 3 | 1 << 7 | 1 << 6, &[1, 2, 3]);
    bench.write(0x069, &[3]);
    bench.pass(100 * BIT);
    assert_eq!(bench.sent_by_chip()[0].frame, CanFrame::new(0x123, &[1, 2, 3]));
    bench.others_send([CanFrame::fd(0x077, &[1], false)]);
    bench.pass(100 * BIT);
    assert!(!bench.bus.records().last().unwrap().is_taken());
}

#[test]
fn what_belongs_to_configuration_mode_is_not_written_elsewhere() {
    let mut bench = Bench::running(4, 4);
    for address in [0x004, 0x008, 0x00c] {
        let before = bench.read32(address);
        bench.write32(address, 0x0101_0101);
        assert_eq!(bench.read32(address), before, "{address:#x}");
        assert!(!bench.complaints().is_empty());
    }
    for (address, value) in [(0x002, 0x00), (0x05f, 0x1f), (0x06b, 0xff), (0x053, 0), (0x043, 1)] {
        let before = bench.read(address, 1);
        bench.write(address, &[value]);
        assert_eq!(bench.read(address, 1), before, "{address:#x}");
        assert_eq!(bench.complaints().len(), 1, "{address:#x}");
    }
    bench.write(0xe00, &[0x61]);
    assert_eq!(bench.complaints().len(), 1, "PLLEN");
}

#[test]
fn sleep_stops_the_clock_and_waking_takes_the_oscillators_time() {
    let mut bench = Bench::running(4, 4);
    bench.write(0x003, &[1]);
    bench.pass(2 * BIT);
    assert_eq!(bench.read32(0xe00) & (1 << 10 | 1 << 2), 1 << 2, "OSCDIS, and not OSCRDY");
    assert_eq!(opmod(&mut bench), 1);
    assert_eq!(bench.read32(0x004), NBTCFG, "registers stay");
    bench.write(0xe00, &[0x60]);
    bench.pass(2_900_000_000);
    assert_eq!(bench.read32(0xe00) >> 10 & 1, 0);
    bench.pass(200_000_000);
    assert_eq!(bench.read32(0xe00) >> 10 & 1, 1);
    assert_eq!(opmod(&mut bench), 4);
    bench.mode(NORMAL);
}

#[test]
fn low_power_mode_forgets_and_wakes_up_with_cs() {
    let mut bench = Bench::running(4, 4);
    bench.write(0xe00, &[0x68]);
    bench.write(0x003, &[1]);
    bench.pass(2 * BIT);
    bench.read(0xe00, 1);
    assert_eq!(bench.read32(0xe00) >> 10 & 1, 0);
    bench.pass(3_000_000_000);
    assert_eq!(bench.read32(0xe00), 0x0460);
    assert_eq!(bench.read32(0x004), 0x003e_0f0f);
    assert_eq!(opmod(&mut bench), 4);
}

#[test]
fn the_pll_takes_its_time_and_its_clock_counts() {
    let options = Options { oscillator_hz: 4_000_000, pll: true, ..Options::default() };
    let mut bench = Bench::new(options);
    let mut slow = |bytes: &[u8]| {
        bench.chip.select(bench.at);
        let mut back = Vec::new();
        for &byte in bytes {
            let clocking = Clocking { at: bench.at, period: 1_000_000 };
            back.push(bench.chip.exchange(clocking, byte.into(), 8) as u8);
            bench.at += 8_000_000;
        }
        bench.chip.deselect(bench.at);
        bench.at += 1_000_000_000;
        back
    };
    slow(&[0x2e, 0x00, 0x61]);
    assert_eq!(slow(&[0x3e, 0x01, 0])[2], 0x05, "PLLRDY and OSCRDY");
    slow(&[0x20, 0x16, 1]);
    let first = slow(&[0x30, 0x10, 0, 0, 0, 0]);
    let second = slow(&[0x30, 0x10, 0, 0, 0, 0]);
    let value = |back: &[u8]| u32::from_le_bytes(back[2..].try_into().unwrap());
    // A read and a millisecond at 40 MHz.
    assert_eq!(value(&second) - value(&first), 40 * (48 + 1_000));
    assert!(bench.complaints().is_empty());
}

#[test]
fn a_dead_oscillator_changes_no_mode() {
    let faults = ChipFaults { oscillator_dead: true, ..ChipFaults::default() };
    let mut bench = Bench::new(Options { faults, ..Options::default() });
    assert_eq!(bench.read32(0xe00) >> 10 & 1, 0);
    bench.configure(4, 4);
    bench.write(0x003, &[NORMAL]);
    bench.pass(100 * BIT);
    assert_eq!(opmod(&mut bench), 4);
}

#[test]
fn a_cold_chip_waits_for_its_oscillator() {
    let mut bench = Bench::new(Options { starts_cold: true, ..Options::default() });
    bench.bus.add_listener();
    bench.at = 2_000_000_000;
    assert_eq!(bench.read32(0xe00) >> 10 & 1, 0);
    bench.configure(4, 4);
    bench.write(0x003, &[NORMAL]);
    bench.pass(20 * BIT);
    assert_eq!(opmod(&mut bench), 4);
    bench.at = 3_000_000_000;
    bench.pass(20 * BIT);
    assert_eq!(opmod(&mut bench), 0);
}
