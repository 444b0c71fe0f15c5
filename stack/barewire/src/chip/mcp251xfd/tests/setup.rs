//! From power-up to the bus.

use super::*;
use crate::bus::Bus;
use crate::controller::null::Null;
use crate::spi::Settings;

#[track_caller]
fn refused(config: Config, steps: Vec<Step>, speed_hz: u32) -> CanError {
    let mut port = Script { speed_hz, ..Script::new() };
    port.steps.extend(steps);
    let error = Mcp251xfd::on_port(&mut port, Clock::default(), config).expect_err("is refused");
    assert_eq!(port.steps.len(), 0, "accesses that did not come");
    error
}

#[test]
fn a_classic_node_is_set_up_access_by_access() {
    hold_classic(vec![], |can| assert_eq!(can.part(), Part::Mcp2518fd));
}

#[test]
fn an_fd_node_has_the_data_sheets_reset_timing_for_its_rates() {
    hold(fd(), fd_up(), vec![], |can| assert_eq!(can.config().mode, Mode::CanFd));
}

#[test]
fn a_part_that_keeps_no_lpmen_is_the_elder() {
    let mut port = Script::new();
    port.steps.extend(classic_up());
    port.steps[6] = read(&[0x3e, 0x00], &[0x60, 0x04, 0x00, 0x00]);
    let can = Mcp251xfd::on_port(&mut port, Clock::default(), classic()).unwrap();
    assert_eq!(can.part(), Part::Mcp2517fd);
}

#[test]
fn priority_events_and_crc_change_what_is_set_up() {
    let config = Config {
        tx_order: TxOrder::Identifier,
        transmit_events: true,
        tx_objects: 32,
        rx_objects: 1,
        invalid_frames: false,
        ..classic()
    };
    let mut steps = proof();
    steps.extend([
        write(&[0x20, 0x04, 0x13, 0x13, 0x8a, 0x00]),
        write(&[0x20, 0x14, 0x27, 0x00, 0x01, 0x00]),
        write(&[0x20, 0x00, 0x60, 0x07, 0x98, 0x04]),
        write(&[0x20, 0x40, 0x21, 0x04, 0x00, 0x1f]),
        write(&[0x20, 0x5c, 0x29, 0x04, 0x00, 0x00]),
        write(&[0x20, 0x50, 0x80, 0x04, 0x60, 0x1f]),
    ]);
    steps.extend(open_filter());
    steps.extend(classic_joins());
    *steps.last_mut().unwrap() = write(&[0x20, 0x1c, 0x00, 0x00, 0x1a, 0x38]);
    hold(config, steps, vec![], |_| {});
}

#[test]
fn a_line_that_stands_still_is_no_chip() {
    for byte in [0x00, 0xff] {
        let word = [byte; 4];
        let mut steps = proof();
        steps.truncate(3);
        steps[1] = read(&[0x30, 0x00], &word);
        // 6 ms in steps of 50 µs: the first poll at once, the last after the timeout.
        steps.extend((0..=121).map(|_| read(&[0x3e, 0x00], &word)));
        let received = u32::from_le_bytes(word);
        assert_eq!(refused(classic(), steps, 1), CanError::NoChip { received });
    }
}

#[test]
fn another_chip_and_a_dead_oscillator_are_told() {
    let mut steps = proof();
    steps.truncate(5);
    steps[4] = read(&[0x30, 0x00], &[0x61, 0x07, 0x98, 0x04]);
    let unexpected = CanError::UnexpectedId { expected: 0x0498_0760, actual: 0x0498_0761 };
    assert_eq!(refused(classic(), steps, 1), unexpected);

    let mut steps = proof();
    steps.truncate(3);
    steps.extend((0..=121).map(|_| read(&[0x3e, 0x00], &[0x60, 0, 0, 0])));
    let not_ready = CanError::OscillatorNotReady { osc: 0x60, waited_us: 6_000 };
    assert_eq!(refused(classic(), steps, 1), not_ready);
}

#[test]
fn data_one_bit_late_or_early_is_told_from_another_chip() {
    use std::string::ToString as _;
    // C1CON's bytes after a reset are 60 07 98 04, OSC's 60 04 00 00.
    for (bytes, when) in [([0x30, 0x03, 0xcc, 0x02], "late"), ([0xc0, 0x0f, 0x30, 0x08], "early")] {
        let actual = u32::from_le_bytes(bytes);
        let text = CanError::UnexpectedId { expected: 0x0498_0760, actual }.to_string();
        assert!(text.contains(when) && text.contains("too fast"), "{text}");
    }
    for (bytes, when) in [([0xb0, 2, 0, 0], "late"), ([0xc0, 8, 0, 0], "early")] {
        let osc = u32::from_le_bytes(bytes);
        let text = CanError::OscillatorNotReady { osc, waited_us: 6_000 }.to_string();
        assert!(text.contains(when) && text.contains("too fast"), "{text}");
    }
    let dead = CanError::OscillatorNotReady { osc: 0x60, waited_us: 6_000 }.to_string();
    assert!(dead.contains("crystal"), "{dead}");
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_clocked() {
    let too_fast = CanError::SpiTooFast { speed_hz: 17_000_001, max_hz: 17_000_000 };
    assert_eq!(refused(classic(), vec![], 17_000_001), too_fast);
    let at_20_mhz = Config { oscillator: Oscillator::new(20_000_000), ..classic() };
    let too_fast = CanError::SpiTooFast { speed_hz: 8_500_001, max_hz: 8_500_000 };
    assert_eq!(refused(at_20_mhz, vec![], 8_500_001), too_fast);
    let pll = Oscillator { pll: true, ..Oscillator::new(4_000_000) };
    assert_eq!((pll.sysclk_hz(), pll.spi_max_hz()), (40_000_000, 1_700_000));
    let fast = Config { oscillator: Oscillator { pll: true, ..AT_40_MHZ }, ..classic() };
    assert_eq!(refused(fast, vec![], 1), CanError::Oscillator { sysclk_hz: 400_000_000 });
    let rate = Config { nominal: BitRate::new(30_000_000), ..classic() };
    assert!(matches!(refused(rate, vec![], 1), CanError::BitTiming(TimingError::BitRate { .. })));
    let deep = Config { rx_objects: 33, ..classic() };
    assert_eq!(refused(deep, vec![], 1), CanError::Depth { objects: 33 });
    let large = Config { rx_objects: 20, ..fd() };
    let (bytes, max_bytes) = (20 * 76 + 8 * 72, 2_048);
    assert_eq!(refused(large, vec![], 1), CanError::Ram { bytes, max_bytes });
}

#[test]
fn the_pll_and_the_divider_are_waited_for() {
    let oscillator = Oscillator { hz: 4_000_000, pll: true, halved: true };
    let mut port = Script { speed_hz: 1_700_000, ..Script::new() };
    let mut steps = proof();
    steps.truncate(5);
    steps.extend([
        write(&[0x2e, 0x00, 0x79, 0, 0, 0]),
        read(&[0x3e, 0x00], &[0x79, 0x04, 0, 0]),
        write(&[0x2e, 0x00, 0x71, 0, 0, 0]),
        read(&[0x3e, 0x00], &[0x71, 0x04, 0, 0]),
        read(&[0x3e, 0x00], &[0x71, 0x05, 0, 0]),
        read(&[0x3e, 0x00], &[0x71, 0x15, 0, 0]),
        write(&[0x20, 0x04, 0x09, 0x09, 0x44, 0x00]),
    ]);
    steps.extend(classic_up().into_iter().skip(10));
    port.steps.extend(steps);
    Mcp251xfd::on_port(&mut port, Clock::default(), Config { oscillator, ..classic() }).unwrap();
    assert_eq!(port.steps.len(), 0);
}

#[test]
fn a_bus_that_is_never_idle_is_not_joined() {
    let mut port = Script::new();
    port.steps.extend(classic_up());
    port.steps.push_back(write(&[0x20, 0x03, 0x06]));
    port.steps.extend((0..=2001).map(|_| read(&[0x30, 0x00], &[0x60, 0x07, 0x80, 0x06])));
    let mut can = Mcp251xfd::on_port(&mut port, Clock::default(), classic()).unwrap();
    let timeout = CanError::ModeTimeout { wanted: Mode::Classic, actual: Mode::Configuration };
    assert_eq!(can.start(), Err(timeout));
}

#[test]
fn stopping_begins_the_fifos_anew_and_disables_interrupts() {
    let script = vec![
        interrupts(0x02, 0x00),
        read(&[0x34, 0x00], &object(0)),
        write(&RX_DONE),
        write(&[0x20, 0x03, 0x0c]),
        read(&[0x30, 0x00], &[0x60, 0x07, 0x80, 0x0c]),
        write(&[0x20, 0x03, 0x04]),
        write(&[0x20, 0x1c, 0, 0, 0, 0]),
        read(&[0x30, 0x1c], &[0x08, 0x00, 0, 0]),
    ];
    let script = script.into_iter().chain(classic_joins()).chain([
        interrupts(0x02, 0x00),
        read(&[0x34, 0x00], &object(0)),
        write(&RX_DONE),
    ]);
    hold_classic(script.collect(), |can| {
        let mut received = Received::EMPTY;
        assert!(can.service(&mut received).unwrap().frame);
        can.stop().unwrap();
        assert!(can.service(&mut received).unwrap().is_nothing(), "MODIF is not enabled");
        can.start().unwrap();
        assert!(can.service(&mut received).unwrap().frame);
    });
}

#[test]
fn a_restart_sets_everything_up_again_with_its_filters() {
    let filter = [
        write(&[0x21, 0xd1, 0x00]),
        write(&[0x21, 0xf8, 0x3f, 0xa6, 0x91, 0x58]),
        write(&[0x21, 0xfc, 0xff, 0xff, 0xff, 0x5f]),
        write(&[0x21, 0xd1, 0x81]),
    ];
    let again = [
        write(&[0x21, 0xd1, 0x00]),
        write(&[0x21, 0xf8, 0x3f, 0xa6, 0x91, 0x58]),
        write(&[0x21, 0xfc, 0xff, 0xff, 0xff, 0x5f]),
        write(&[0x21, 0xd1, 0x81]),
    ];
    let script = filter.into_iter().chain(classic_up()).chain(again).chain(classic_joins());
    hold_classic(script.collect(), |can| {
        can.set_filter(1, Some(Filter::exactly(extended(0x18ff_1234)))).unwrap();
        assert_eq!(can.set_filter(32, None), Err(CanError::NoSuchFilter { index: 32 }));
        can.restart().unwrap();
    });
}

#[test]
fn standard_filters_and_masks_are_the_manuals() {
    let script = vec![
        write(&[0x21, 0xef, 0x00]),
        write(&[0x22, 0xe8, 0x00, 0x01, 0x00, 0x00]),
        write(&[0x22, 0xec, 0xf0, 0x07, 0x00, 0x40]),
        write(&[0x21, 0xef, 0x81]),
        write(&[0x21, 0xd4, 0x00]),
        write(&[0x22, 0x10, 0x00, 0x00, 0x00, 0x40]),
        write(&[0x22, 0x14, 0x01, 0x08, 0x00, 0x40]),
        write(&[0x21, 0xd4, 0x81]),
        write(&[0x21, 0xd0, 0x00]),
    ];
    hold_classic(script, |can| {
        can.set_filter(31, Some(Filter::masked(standard(0x100), 0xffff_fff0))).unwrap();
        // The lowest bit of the upper eleven, and of the lower eighteen.
        can.set_filter(4, Some(Filter::masked(extended(0), 0x0004_0001))).unwrap();
        can.set_filter(0, None).unwrap();
    });
}

#[test]
fn on_a_bus_nobody_answers_and_it_says_so() {
    let bus = Bus::new(Null::new());
    let device = bus.device(&Settings::new(0, 16_000_000)).unwrap();
    let none = CanError::NoChip { received: 0 };
    assert_eq!(Mcp251xfd::new(device, Clock::default(), classic()).map(drop), Err(none));
}
