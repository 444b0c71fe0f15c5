//! Converters driven over their pins: the place of every bit, the time of sampling, and what the
//! wire reports about a host that is too fast.

use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;

use super::*;
use crate::check::{Faults, Rule};
use crate::wire::{Driver, Run, Wire};

/// 1 us: 1 MHz, which every part allows at every supply.
const PERIOD: Ps = 1_000_000;
const NS: Ps = 1_000;

const SINGLE: u32 = 1;

fn adc(part: AdcPart) -> Adc {
    Adc::new(part, 5_000, 5_000).unwrap()
}

/// Inputs with different codes, each half a code above its code.
fn labelled(part: AdcPart) -> (Adc, Vec<u16>) {
    let mut adc = adc(part);
    let codes: Vec<u16> = (0..part.channels()).map(|n| 0x155 ^ (u16::from(n) * 0x2b)).collect();
    for (channel, &code) in (0..).zip(&codes) {
        let level_uv = (i64::from(code) * 2 + 1) * 5_000_000 / (2 << part.bits());
        adc.set_input(channel, Signal::Constant { level_uv });
    }
    (adc, codes)
}

/// The configuration bits, start bit first, and their number.
fn request(part: AdcPart, single: u32, channel: u32, msbf: u32) -> (u64, u32) {
    match part {
        AdcPart::Mcp3002 => (u64::from(1 << 3 | single << 2 | channel << 1 | msbf), 4),
        _ => (u64::from(1 << 4 | single << 3 | channel), 5),
    }
}

/// One selection from 1 us on, in words of `width` without gaps. Returns the received bits.
fn clock(adc: &mut Adc, mode: u8, mosi: u64, bits: u32, width: u32) -> u64 {
    adc.select(0);
    adc.clocked_in(mode);
    let (mut done, mut miso) = (0, 0);
    while done < bits {
        let count = width.min(bits - done);
        let word = (mosi >> (bits - done - count)) as u32 & (u32::MAX >> (32 - count));
        let at = PERIOD + u64::from(done) * PERIOD;
        miso =
            miso << count | u64::from(adc.exchange(Clocking { at, period: PERIOD }, word, count));
        done += count;
    }
    adc.deselect(PERIOD + u64::from(bits) * PERIOD);
    miso
}

fn bytes(adc: &mut Adc, sent: &[u8]) -> Vec<u8> {
    let mosi = sent.iter().fold(0, |mosi, &byte| mosi << 8 | u64::from(byte));
    let bits = 8 * sent.len() as u32;
    let miso = clock(adc, 0, mosi, bits, 8);
    miso.to_be_bytes()[8 - sent.len()..].to_vec()
}

#[test]
fn the_bytes_that_clients_send() {
    let (mut adc, codes) = labelled(AdcPart::Mcp3008);
    // One start bit, then channel 0, single: the code is in the last ten bits.
    let code = codes[0];
    assert_eq!(bytes(&mut adc, &[0x01, 0x80, 0x00]), [0xff, 0xf8 | (code >> 8) as u8, code as u8]);
    // 0111 0100: channel 5; null bit at the first byte's end.
    let code = codes[5];
    let low = code << 6 | u16::from(code as u8).reverse_bits() >> 9 & 0x3f;
    assert_eq!(bytes(&mut adc, &[0x74, 0x00, 0x00]), [0xfe, (code >> 2) as u8, low as u8]);
    // 1101 0000: channel 2, and all of the second code and zeros after it.
    let code = codes[2];
    let back = bytes(&mut adc, &[0xd0, 0x00, 0x00, 0x00]);
    let back = u32::from_be_bytes(back.try_into().unwrap());
    let reversed = (code & 0x3fe).reverse_bits() >> 6;
    let expected = 0b11_1111 << 26 | u32::from(code) << 15 | u32::from(reversed) << 6;
    assert_eq!(back, expected, "{back:032b}");
    assert_eq!(adc.conversions(), 3);
    assert_eq!(adc.take_complaint(), None);

    let (mut adc, codes) = labelled(AdcPart::Mcp3208);
    // DS21298, figure 6-1: five leading zeros, D1 and D0 in the second byte.
    let code = codes[7];
    assert_eq!(bytes(&mut adc, &[0x07, 0xc0, 0x00]), [0xff, 0xe0 | (code >> 8) as u8, code as u8]);

    let (mut adc, codes) = labelled(AdcPart::Mcp3002);
    // DS21294, figure 6-1: one leading zero.
    let code = codes[1];
    assert_eq!(bytes(&mut adc, &[0x78, 0x00]), [0xf8 | (code >> 8) as u8, code as u8]);
}

/// The whole stream as drawn in the figures, from the start bit on.
fn figure(part: AdcPart, code: u16, msbf: bool, clocks: u32) -> u64 {
    let mut drawn: Vec<u64> = vec![1; part.null_clock() as usize];
    drawn.push(0);
    let bits = part.bits();
    drawn.extend((0..bits).rev().map(|bit| u64::from(code >> bit & 1)));
    if !(part == AdcPart::Mcp3002 && msbf) {
        drawn.extend((1..bits).map(|bit| u64::from(code >> bit & 1)));
    }
    drawn.resize(clocks as usize, 0);
    drawn.iter().fold(0, |stream, bit| stream << 1 | bit)
}

/// A stream of bits, written in groups.
fn drawn(groups: &str) -> u64 {
    groups.chars().filter_map(|bit| bit.to_digit(2)).fold(0, |bits, bit| bits << 1 | u64::from(bit))
}

#[test]
fn every_alignment_of_the_start_bit_in_both_modes_and_all_word_lengths() {
    for part in AdcPart::ALL {
        for zeros in 0..20 {
            for (mode, width) in [(0, 8), (3, 8), (0, 1), (3, 1), (0, 32), (3, 16), (0, 13)] {
                let (mut adc, codes) = labelled(part);
                let channel = (zeros + mode) % u32::from(part.channels());
                let msbf = zeros & 1;
                let (bits, count) = request(part, SINGLE, channel, msbf);
                let clocks = 40;
                let mosi = bits << (clocks - count);
                let miso = clock(&mut adc, mode as u8, mosi, zeros + clocks, width);
                let code = codes[channel as usize];
                let ones = ((1 << zeros) - 1) << clocks;
                let expected = ones | figure(part, code, msbf != 0, clocks);
                assert_eq!(miso, expected, "{part} after {zeros} zeros, mode {mode}, by {width}");
                let last = adc.last_conversion().unwrap();
                assert_eq!((last.input, last.code), (Input::Single(channel as u8), code));
            }
        }
    }
}

#[test]
fn figure_is_what_the_data_sheet_draws() {
    // DS21295, figure 5-2, of the code 1000000110b: 6 clocks, null, B9 to B0, B1 to B9.
    let stream = drawn("111111 0 1000000110 110000001 0000");
    assert_eq!(figure(AdcPart::Mcp3008, 0b10_0000_0110, false, 30), stream);
    // DS21294, figures 5-2 and 5-1.
    let stream = drawn("1111 0 1000000110 110000001 0000");
    assert_eq!(figure(AdcPart::Mcp3002, 0b10_0000_0110, false, 28), stream);
    let stream = drawn("1111 0 1000000110 000000000 0000");
    assert_eq!(figure(AdcPart::Mcp3002, 0b10_0000_0110, true, 28), stream);
}

#[test]
fn the_input_is_taken_at_the_falling_edge_that_ends_the_sample_period() {
    for part in AdcPart::ALL {
        for mode in [0, 3] {
            let mut adc = adc(part);
            // 5 V in 5 ms: a microvolt a nanosecond.
            adc.set_input(1, Signal::ramp(200_000_000, 0, 5_000_000));
            let (bits, count) = request(part, SINGLE, 1, 0);
            clock(&mut adc, mode, bits << (27 - count), 30, 8);
            let last = adc.last_conversion().unwrap();
            // The start bit is the cell 3; the falling edge is that of clock 5 (3).
            let start = PERIOD + 3 * PERIOD;
            let clocks = if part == AdcPart::Mcp3002 { 3 } else { 5 };
            assert_eq!(last.sampled_at_ps, start + (clocks + 1) * PERIOD, "{part} mode {mode}");
            // It began with the rising edge one and a half clocks before.
            assert_eq!(last.sampled_at_ps - last.sampling_from_ps, PERIOD + PERIOD / 2);
            let level_uv = last.sampled_at_ps / NS;
            let code = level_uv * (1 << part.bits()) / 5_000_000;
            assert_eq!(u64::from(last.code), code);
        }
    }
}

#[test]
fn in_a_pause_before_the_null_bit_mode_0_0_has_sampled_and_mode_1_1_has_not() {
    for (mode, sampled_at) in [(0, 106 * PERIOD), (3, 206 * PERIOD)] {
        let mut adc = adc(AdcPart::Mcp3008);
        adc.set_input(0, Signal::ramp(1_000_000_000, 0, 5_000_000));
        adc.select(0);
        adc.clocked_in(mode);
        let first = Clocking { at: 100 * PERIOD, period: PERIOD };
        assert_eq!(adc.exchange(first, 0b11_0000, 6), 0b11_1111);
        assert_eq!(adc.conversions(), u64::from(mode == 0));
        let then = Clocking { at: 206 * PERIOD, period: PERIOD };
        let code = adc.code_at(Input::Single(0), sampled_at);
        assert_eq!(adc.exchange(then, 0, 11), code.into());
        assert_eq!(adc.last_conversion().unwrap().sampled_at_ps, sampled_at);
        adc.deselect(300 * PERIOD);
        assert_eq!(adc.conversions(), 1);
    }
}

#[test]
fn a_selection_is_one_conversion() {
    let (mut adc, codes) = labelled(AdcPart::Mcp3008);
    // A second start bit is ignored.
    let miso = clock(&mut adc, 0, drawn("1 1000 0 0 0000000000 0 11001 000000 0000000000"), 39, 8);
    assert_eq!(miso, figure(AdcPart::Mcp3008, codes[0], false, 39));
    assert_eq!(adc.conversions(), 1);
    // Without a start bit, or with too few clocks, there is no conversion.
    assert_eq!(clock(&mut adc, 0, 0, 32, 8), u64::from(u32::MAX));
    assert_eq!(clock(&mut adc, 0, 0b1_1000, 5, 8), 0b1_1111);
    assert_eq!(adc.conversions(), 1);
    // An unfinished configuration is forgotten.
    assert_eq!(clock(&mut adc, 0, 0b1_1001 << 12, 17, 8) as u16 & 0x3ff, codes[1]);
    assert_eq!(adc.conversions(), 2);
    assert_eq!(adc.take_complaint(), None);
}

#[test]
fn d2_is_a_don_t_care_where_there_are_four_channels() {
    for part in [AdcPart::Mcp3004, AdcPart::Mcp3204] {
        let (mut adc, codes) = labelled(part);
        for channel in 0..8 {
            clock(&mut adc, 0, (1 << 4 | 1 << 3 | channel) << 14, 19, 8);
            let last = adc.last_conversion().unwrap();
            assert_eq!(last.input, Input::Single(channel as u8 & 3));
            assert_eq!(last.code, codes[channel as usize & 3]);
        }
    }
}

#[test]
fn pairs_are_as_the_tables_say_and_never_below_zero() {
    for part in AdcPart::ALL {
        let mut adc = adc(part);
        let levels_uv = [50_000, 1_050_000, 90_000, 90_000, 0, 5_000_000, -200_000, 20_000];
        for (channel, level_uv) in (0..part.channels()).zip(levels_uv) {
            adc.set_input(channel, Signal::Constant { level_uv });
        }
        // Configuration, IN+, IN-, and the difference.
        let rows = [
            (0, 0, 1, 0),
            (1, 1, 0, 1_000_000),
            (2, 2, 3, 0),
            (3, 3, 2, 0),
            (4, 4, 5, 0),
            (5, 5, 4, 5_000_000),
            (6, 6, 7, 0),
            (7, 7, 6, 220_000),
        ];
        for (channel, plus, minus, difference_uv) in rows.into_iter().take(part.channels().into()) {
            let (bits, count) = request(part, 0, channel, 0);
            clock(&mut adc, 0, bits << (24 - count), 24, 8);
            let last = adc.last_conversion().unwrap();
            assert_eq!(last.input, Input::Differential { plus, minus }, "{part} {channel}");
            let full = (1_u64 << part.bits()) - 1;
            let expected = (difference_uv << part.bits()) / 5_000_000;
            assert_eq!(u64::from(last.code), expected.min(full), "{part} {channel}");
        }
    }
}

#[test]
fn codes_step_at_whole_fractions_of_the_reference_and_end_at_the_last() {
    let mut adc = Adc::new(AdcPart::Mcp3008, 5_000, 4_096).unwrap();
    // A code is 4 mV.
    for (level_uv, code) in [
        (i64::MIN, 0),
        (-1, 0),
        (0, 0),
        (3_999, 0),
        (4_000, 1),
        (4_001, 1),
        (2_047_999, 511),
        (2_048_000, 512),
        (4_091_999, 1_022),
        (4_092_000, 1_023),
        (4_096_000, 1_023),
        (i64::MAX, 1_023),
    ] {
        adc.set_input(3, Signal::Constant { level_uv });
        assert_eq!(adc.code_at(Input::Single(3), 0), code, "{level_uv}");
    }
}

#[test]
fn a_supply_that_is_no_supply_is_refused() {
    let new = |part, supply_mv, vref_mv| Adc::new(part, supply_mv, vref_mv).map(|_| ());
    let part = AdcPart::Mcp3008;
    for (supply_mv, vref_mv) in [(2_700, 250), (2_700, 2_700), (5_500, 250), (5_500, 5_500)] {
        assert_eq!(new(part, supply_mv, vref_mv), Ok(()));
    }
    for actual_mv in [0, 2_699, 5_501] {
        assert_eq!(new(part, actual_mv, 2_500), Err(SupplyError::Supply { part, actual_mv }));
    }
    for actual_mv in [0, 249, 3_301] {
        let expected = SupplyError::Reference { part, max_mv: 3_300, actual_mv };
        assert_eq!(new(part, 3_300, actual_mv), Err(expected));
    }
    let error = new(AdcPart::Mcp3002, 5_000, 3_300).unwrap_err();
    assert_eq!(error.to_string(), "a MCP3002 has its supply (5000 mV) as reference, not 3300 mV");
    assert_eq!(new(AdcPart::Mcp3002, 5_000, 5_000), Ok(()));
}

#[test]
#[should_panic(expected = "a MCP3004 has no CH4, its last is CH3")]
fn an_input_that_the_part_lacks_panics() {
    adc(AdcPart::Mcp3004).set_input(4, Signal::GROUND);
}

#[test]
fn faults_answer_as_the_wire_would() {
    let (mut adc, codes) = labelled(AdcPart::Mcp3008);
    adc.set_faults(AdcFaults { absent: true, ..AdcFaults::default() });
    assert_eq!(bytes(&mut adc, &[0x01, 0x80, 0x00]), [0xff; 3]);
    assert_eq!(adc.conversions(), 0);
    adc.set_faults(AdcFaults { dout_stuck_low: true, ..AdcFaults::default() });
    assert_eq!(bytes(&mut adc, &[0x01, 0x80, 0x00]), [0; 3]);
    assert_eq!(adc.last_conversion().unwrap().code, codes[0]);
    adc.set_faults(AdcFaults::default());
    assert_eq!(bytes(&mut adc, &[0x01, 0x80, 0x00])[2], codes[0] as u8);
}

#[test]
fn a_charge_that_leaks_is_told() {
    for part in AdcPart::ALL {
        // From the falling edge to the rising edge of B0 there is half a clock more than the number
        // of bits.
        let clocks = 2 * u64::from(part.bits()) + 1;
        for (period, told) in [(2 * CHARGE_HOLDS_PS / clocks, false), (115_000_000, true)] {
            let period = period & !1;
            let mut adc = adc(part);
            let (bits, count) = request(part, SINGLE, 0, 0);
            adc.select(0);
            adc.exchange(Clocking { at: 0, period }, (bits << (32 - count)) as u32, 32);
            let complaint = adc.take_complaint();
            assert_eq!(complaint.is_some(), told, "{part} at {period} ps");
            assert_eq!(adc.take_complaint(), None);
        }
    }
    // A pause within a conversion, whatever the clock.
    let mut adc = adc(AdcPart::Mcp3008);
    adc.select(0);
    adc.exchange(Clocking { at: 0, period: PERIOD }, 0x01_80, 16);
    adc.exchange(Clocking { at: 1_300_000_000, period: PERIOD }, 0, 8);
    assert_eq!(
        adc.take_complaint().unwrap(),
        "B0 was read 1295 us after the sample, whose charge holds for 1200 us: clock it faster"
    );
}

/// A wire with one converter.
fn wire(part: AdcPart, supply_mv: u32) -> Wire {
    let mut wire = Wire::new(Faults::default());
    let cs = wire.add_line(Driver::Native(0), false);
    wire.attach(cs, Rc::new(RefCell::new(Adc::new(part, supply_mv, supply_mv).unwrap())));
    wire
}

/// Two conversions, with `lead` from CS to the first cell and CS high for `pause`. Returns the
/// broken rules.
fn broken(wire: &mut Wire, mode: u8, period: Ps, lead: Ps, pause: Ps) -> Vec<Rule> {
    let mut at = 1_000_000;
    wire.set_sck(mode & 2 != 0, 0);
    for _ in 0..2 {
        wire.set_line(0, false, at);
        at += lead;
        for mosi in [0x01, 0x80, 0x00] {
            let clocking = Clocking { at, period };
            wire.begin_run(Run { clocking, mode, bits: 8, mosi, loopback: false });
            wire.end_run();
            at += 8 * period;
        }
        wire.set_line(0, true, at);
        at += pause;
    }
    wire.violations(at).kept().iter().map(|violation| violation.rule).collect()
}

#[test]
fn the_wire_holds_each_part_to_its_times() {
    // Part, the clock at 5 V and at 2.7 V, tCSH.
    let rows = [
        (AdcPart::Mcp3002, 3_200_000, 1_200_000, 310),
        (AdcPart::Mcp3004, 3_600_000, 1_350_000, 270),
        (AdcPart::Mcp3008, 3_600_000, 1_350_000, 270),
        (AdcPart::Mcp3204, 2_000_000, 1_000_000, 500),
        (AdcPart::Mcp3208, 2_000_000, 1_000_000, 500),
    ];
    for (part, fast_hz, slow_hz, high_ns) in rows {
        for (supply_mv, limit_hz) in [
            (5_000, fast_hz),
            (5_500, fast_hz),
            (4_999, slow_hz),
            (3_300, slow_hz),
            (2_700, slow_hz),
        ] {
            let at_limit = 1_000_000_000_000 / limit_hz;
            for (mode, lead) in [(0, 100 * NS), (3, 0)] {
                let kept = broken(&mut wire(part, supply_mv), mode, at_limit, lead, high_ns * NS);
                assert_eq!(kept, [], "{part} {supply_mv} mV mode {mode}");
                let fast =
                    broken(&mut wire(part, supply_mv), mode, at_limit - 1, lead, high_ns * NS);
                assert_eq!(fast, [Rule::MaxClock; 2], "{part} {supply_mv} mV mode {mode}");
                let short =
                    broken(&mut wire(part, supply_mv), mode, at_limit, lead, high_ns * NS - 1);
                assert_eq!(short, [Rule::CsInactive], "{part} {supply_mv} mV mode {mode}");
            }
        }
    }
}

#[test]
fn the_set_up_time_ends_with_the_first_rising_edge() {
    // In mode 0,0 half a period is inside the first cell; in mode 1,1 too, after a falling edge. A
    // clock that is too fast makes the edge visible to the picosecond.
    for mode in [0, 3] {
        for (lead, rules) in [
            (50 * NS, vec![Rule::MaxClock; 2]),
            (50 * NS - 1, vec![Rule::CsSetup, Rule::MaxClock, Rule::CsSetup, Rule::MaxClock]),
        ] {
            let got = broken(&mut wire(AdcPart::Mcp3008, 5_000), mode, 100 * NS, lead, 300 * NS);
            assert_eq!(got, rules, "mode {mode}, {lead} ps");
        }
    }
    let mut wire = wire(AdcPart::Mcp3008, 5_000);
    broken(&mut wire, 3, 100 * NS, 0, 300 * NS);
    let violation = wire.violations(0).kept()[0].to_string();
    assert_eq!(
        violation,
        "1050 ns: cs_setup on cs0: SCK sampled too soon after CS became active \
         (required 100 ns, actual 50 ns)"
    );
}

#[test]
fn other_modes_are_not_understood() {
    for mode in [1, 2] {
        let got = broken(&mut wire(AdcPart::Mcp3208, 5_000), mode, PERIOD, PERIOD, PERIOD);
        assert_eq!(got, [Rule::Mode, Rule::Mode]);
    }
}

#[test]
fn on_the_wire_both_modes_read_the_same_and_the_complaint_is_the_wire_s() {
    for mode in [0, 3] {
        let mut wire = Wire::new(Faults::default());
        let cs = wire.add_line(Driver::Native(0), false);
        let (adc, codes) = labelled(AdcPart::Mcp3008);
        wire.attach(cs, Rc::new(RefCell::new(adc)));
        wire.set_sck(mode & 2 != 0, 0);
        wire.set_line(cs, false, PERIOD);
        let mut at = 2 * PERIOD;
        let mut read = 0;
        for mosi in [0x01, 0x90, 0x00] {
            let clocking = Clocking { at, period: PERIOD };
            wire.begin_run(Run { clocking, mode, bits: 8, mosi, loopback: false });
            read = read << 8 | wire.end_run();
            // Longer than the charge holds.
            at += 1_300 * PERIOD;
        }
        wire.set_line(cs, true, at);
        assert_eq!(read, 0xff_f8_00 | u32::from(codes[1]));
        let log = wire.violations(at);
        assert_eq!(log.kept().iter().map(|one| one.rule).collect::<Vec<_>>(), [Rule::Chip]);
        assert!(log.kept()[0].detail.starts_with("MCP3008: B0 was read"), "{}", log.kept()[0]);
    }
}

proptest! {
    /// For every alignment, channel, word length and signal, the code clocked out is the signal's
    /// at the moment of sampling.
    #[test]
    fn the_code_is_the_signal_s(
        part in prop::sample::select(AdcPart::ALL.to_vec()),
        zeros in 0_u32..30,
        width in 1_u32..=32,
        mode in prop::sample::select(vec![0_u8, 3]),
        channel in 0_u32..8,
        single in 0_u32..2,
        junk in any::<u32>(),
        vref_mv in 250_u32..=5_000,
        frequency_uhz in 1_000_000_u64..50_000_000_000,
        amplitude_uv in 0_i64..6_000_000,
        offset_uv in -1_000_000_i64..6_000_000,
        other_uv in -100_000_i64..3_000_000,
    ) {
        let vref_mv = if part == AdcPart::Mcp3002 { 5_000 } else { vref_mv };
        let mut adc = Adc::new(part, 5_000, vref_mv).unwrap();
        let channel = channel % u32::from(part.channels());
        let signal = Signal::sine(frequency_uhz, amplitude_uv, offset_uv);
        adc.set_input(channel as u8, signal.clone());
        adc.set_input(channel as u8 ^ 1, Signal::Constant { level_uv: other_uv });

        let (bits, count) = request(part, single, channel, junk & 1);
        // Bits after the configuration are ignored.
        let clocks = 32;
        let mosi = bits << (clocks - count) | u64::from(junk) >> count;
        let miso = clock(&mut adc, mode, mosi, zeros + clocks, width);

        let after_start = if part == AdcPart::Mcp3002 { 4 } else { 6 };
        let sampled_at = PERIOD + u64::from(zeros + after_start) * PERIOD;
        let input_uv = signal.at(sampled_at) - if single == 1 { 0 } else { other_uv };
        let full = (1_i64 << part.bits()) - 1;
        let expected = ((input_uv << part.bits()).max(0) / (i64::from(vref_mv) * 1_000)).min(full);
        let behind = clocks - after_start - 1 - part.bits();
        prop_assert_eq!((miso >> behind) as i64 & full, expected);
        prop_assert_eq!(miso >> (behind + part.bits()) & 1, 0, "null bit");
        prop_assert_eq!(adc.conversions(), 1);
    }
}
