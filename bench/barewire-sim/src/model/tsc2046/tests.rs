//! The model, clocked bit by bit, compared with the data sheet's figures.

use super::*;

const NS: Ps = 1_000;
const US: Ps = 1_000_000;
const MS: Ps = 1_000 * US;
const START: Ps = MS;

/// Power-down, and converter on, differential, 12 bits.
const X: u8 = 0xd0;
const Y: u8 = 0x90;
const Z1: u8 = 0xb0;
const Z2: u8 = 0xc0;
const ON: u8 = 1;

fn quiet() -> TouchOptions {
    TouchOptions { noise_codes: 0, ..TouchOptions::default() }
}

/// A pen at a quarter and five eighths of the panel, from 1 ms on.
fn stroke() -> Stroke {
    let at = [16_384, 40_960];
    Stroke { down_ps: START, up_ps: 50 * MS, from: at, to: at, ohms: 300 }
}

fn touched(options: TouchOptions) -> Tsc2046 {
    let chip = Tsc2046::new(options);
    chip.add_stroke(stroke());
    chip
}

/// Sends bytes in one selection from `at` on. Returns the received bytes, and the end of the last
/// bit.
fn exchange_at(chip: &mut Tsc2046, at: Ps, period: Ps, bytes: &[u8]) -> (Vec<u8>, Ps) {
    chip.select(at - US);
    let mut at = at;
    let mut back = Vec::new();
    for &byte in bytes {
        back.push(chip.exchange(Clocking { at, period }, byte.into(), 8) as u8);
        at += 8 * period;
    }
    chip.deselect(at + US);
    (back, at)
}

/// The codes of several conversions, 16 clocks each at 1 MHz.
fn codes(chip: &mut Tsc2046, at: Ps, controls: &[u8]) -> Vec<u16> {
    let mut bytes: Vec<u8> = controls.iter().flat_map(|&control| [control, 0]).collect();
    bytes.push(0);
    let (back, _) = exchange_at(chip, at, US, &bytes);
    let word = |pair: &[u8]| u16::from_be_bytes([pair[0], pair[1]]);
    back[1..].chunks_exact(2).map(|pair| word(pair) >> 3).collect()
}

fn assert_no_complaint(chip: &mut Tsc2046) {
    assert_eq!(chip.take_complaint(), None);
}

#[test]
fn a_code_stands_behind_busy_wherever_the_start_is() {
    let mut chip = touched(TouchOptions { tau_ps: 1, ..quiet() });
    let (back, _) = exchange_at(&mut chip, 2 * MS, US, &[X, 0, 0]);
    // A quarter is 1024 of 4096: BUSY, 0100_0000_0000, zeros.
    assert_eq!(back, [0, 0b0010_0000, 0]);
    // Three clocks later.
    let (back, _) = exchange_at(&mut chip, 3 * MS, US, &[X >> 3, X << 5, 0, 0]);
    assert_eq!(back, [0, 0b0000_0100, 0, 0]);
    let (back, _) = exchange_at(&mut chip, 4 * MS, US, &[Y, 0, 0]);
    assert_eq!(back, [0, 0b0101_0000, 0], "five eighths");
    assert_eq!(chip.conversions(), 3);
    let held = chip.last_held().expect("one was");
    assert_eq!((held.input, held.code, held.at_ps), (Input::Y, 2_560, 4 * MS + 8 * US));
    assert_no_complaint(&mut chip);
}

#[test]
fn eight_bits_come_sooner() {
    let mut chip = touched(TouchOptions { tau_ps: 1, ..quiet() });
    // MODE: a quarter is 64 of 256. 12 clocks on, over the end, the next.
    let next = Y | 0x08;
    let controls = [X | 0x08 | ON, next >> 4, next << 4, 0, 0];
    let (back, _) = exchange_at(&mut chip, 2 * MS, US, &controls);
    let bits = back.iter().fold(0_u64, |bits, &byte| bits << 8 | u64::from(byte));
    // After each control byte a BUSY, then 8 bits.
    assert_eq!(bits >> (40 - 17) & 0xff, 64);
    assert_eq!(bits >> (40 - 12 - 17) & 0xff, 160, "{bits:040b}");
    assert_no_complaint(&mut chip);
}

#[test]
fn a_plate_takes_time_to_settle() {
    let mut chip = touched(quiet());
    // Each is held 16 us after the one before; the time constant is 4 us.
    let x = codes(&mut chip, 2 * MS, &[X | ON, X | ON, X | ON, X | ON, X]);
    // From a grounded Y plate, three clocks: 1 - exp(-3/4) of 1024.
    assert_eq!(x[0], 540);
    assert!(x[1] > 1_000 && x[1] < 1_020, "{x:?}");
    assert_eq!(x[3..], [1_023, 1_023], "just below 1024");
    // Powered down in between, each starts from the beginning.
    let x = codes(&mut chip, 3 * MS, &[X, X, X]);
    assert!(x.iter().all(|&code| code < 950), "{x:?}");
    // Z2 is there when Z1 has settled.
    let z = codes(&mut chip, 4 * MS, &[Z1 | ON, Z1 | ON, Z1 | ON, Z2]);
    // 150 Ω + 300 Ω + 125 Ω: Z1 is 125 of 575, Z2 425 of 575.
    assert!(z[2].abs_diff(890) <= 1 && z[3].abs_diff(3_027) <= 1, "{z:?}");
    assert_no_complaint(&mut chip);
}

#[test]
fn the_pen_moves_evenly() {
    let chip_at = |at| {
        let chip = Tsc2046::new(TouchOptions { tau_ps: 1, ..quiet() });
        let (down_ps, up_ps) = (START, START + 16 * MS);
        let stroke = Stroke { down_ps, up_ps, from: [0, 65_535], to: [65_535, 0], ohms: 9 };
        chip.add_stroke(stroke);
        let mut chip = chip;
        codes(&mut chip, at, &[X | ON, Y])
    };
    for (at, quarter) in [(START + 4 * MS, 1_u16), (START + 8 * MS, 2), (START + 12 * MS, 3)] {
        let codes = chip_at(at);
        assert!(codes[0].abs_diff(quarter * 1_024) < 8, "{codes:?}");
        assert!(codes[1].abs_diff(4_096 - quarter * 1_024) < 8, "{codes:?}");
    }
}

#[test]
fn without_a_pen_x_reads_low_y_high_and_no_current_flows() {
    let mut chip = Tsc2046::new(quiet());
    let all = codes(&mut chip, 2 * MS, &[X | ON, X | ON, Y | ON, Z1 | ON, Z1 | ON, Z1 | ON, Z2]);
    assert_eq!((all[0], all[1], all[2]), (0, 0, 4_095));
    assert!(all[5] < 2 && all[6] > 4_093, "{all:?}");
}

fn pin(chip: &Tsc2046, at: Ps) -> (Option<Ps>, Ps) {
    let pin = chip.pen_irq();
    let due = pin.settle(at);
    (pin.asserted_since(), due)
}

#[test]
fn pen_irq_follows_the_pen_and_rises_late() {
    let options = quiet();
    let chip = touched(options.clone());
    assert_eq!(pin(&chip, 0), (None, START));
    assert_eq!(pin(&chip, START - 1), (None, START));
    assert_eq!(pin(&chip, START), (Some(START), 50 * MS));
    let up = 50 * MS + options.release_ps;
    assert_eq!(pin(&chip, 50 * MS), (Some(START), up));
    assert_eq!(pin(&chip, up - 1), (Some(START), up));
    assert_eq!(pin(&chip, up), (None, Ps::MAX));
    // Too light: 20 kΩ and the plates are too much.
    let light = Tsc2046::new(options);
    light.add_stroke(Stroke { ohms: 20_500, ..stroke() });
    assert_eq!(pin(&light, 2 * MS).0, None);
}

#[test]
fn pen_irq_is_held_by_a_conversion() {
    let mut chip = Tsc2046::new(quiet());
    let at = 2 * MS;
    chip.select(at - US);
    chip.exchange(Clocking { at, period: US }, X.into(), 8);
    // From the fall of the fifth clock on.
    assert_eq!(
        pin(&chip, at + 8 * US).0,
        Some(at + 5 * US),
        "PENIRQ is low while a position is converted, pen or not"
    );
    chip.exchange(Clocking { at: at + 8 * US, period: US }, 0, 16);
    // Bit 1 falls with the end of clock 19: from there on the pull-up charges.
    let over = at + 20 * US + TouchOptions::default().release_ps;
    assert_eq!(pin(&chip, at + 24 * US), (Some(at + 5 * US), over));
    assert_eq!(pin(&chip, over).0, None);
    chip.deselect(over);
    // High for another input, though the pen comes; PD0 keeps it so.
    chip.add_stroke(Stroke { down_ps: 5 * MS, ..stroke() });
    exchange_at(&mut chip, 4 * MS, US, &[0x87, 0, 0]);
    assert_eq!(pin(&chip, 6 * MS).0, None);
    // PD0 clear releases it.
    let (_, end) = exchange_at(&mut chip, 7 * MS, US, &[0x84, 0, 0]);
    assert_eq!(pin(&chip, end).0, Some(end - 4 * US));
}

#[test]
fn inputs_are_converted_against_the_reference() {
    let mut chip = Tsc2046::new(quiet());
    for (control, mv) in [(0x87, 600.0), (0xa7, 925.0), (0xe7, 1_000.0), (0xf7, 715.877)] {
        let code = codes(&mut chip, 2 * MS, &[control; 8])[7];
        let expected = (mv * 4_096.0 / 2_500.0) as u16;
        assert!(code.abs_diff(expected) <= 1, "{control:#x}: {code}, {expected}");
        while chip.take_complaint().is_some() {}
    }
    codes(&mut chip, 3 * MS, &[0xa4, 0xa4]);
    let complaint = chip.take_complaint().expect("the reference is off");
    assert!(complaint.contains("Battery") && complaint.contains("reference"), "{complaint}");
}

#[test]
fn what_breaks_a_rule_is_told() {
    let told = |bytes: &[u8], period| {
        let mut chip = touched(quiet());
        exchange_at(&mut chip, 2 * MS, period, bytes);
        chip.take_complaint()
    };
    assert_eq!(told(&[X, 0, 0], 500 * NS), None);
    assert!(told(&[X, 0, 0], 499 * NS).expect("too short").contains("1497000 ps"));
    assert!(told(&[X, 0x04, 0], US).expect("too early").contains("clock 13"));
    assert_eq!(told(&[X | ON, 0x01, 0xa0, 0, 0], US), None, "in clock 15 it is heard");
    assert!(told(&[X, 0], US).expect("cut").contains("after clock 15"));
    assert!(told(&[X >> 1], US).expect("cut").contains("after clock 6"));
    assert_eq!(told(&[0], US), None);
    assert!(std::panic::catch_unwind(|| touched(quiet()).add_stroke(stroke())).is_err());
}

#[test]
fn faults_are_as_they_say() {
    let chip = |faults| touched(TouchOptions { faults, ..quiet() });
    let mut absent = chip(TouchFaults { absent: true, ..TouchFaults::default() });
    assert_eq!(exchange_at(&mut absent, 2 * MS, US, &[X, 0, 0]).0, [0xff; 3]);
    assert_eq!((pin(&absent, 3 * MS).0, absent.conversions()), (None, 0));
    let mut low = chip(TouchFaults { dout_stuck_low: true, ..TouchFaults::default() });
    assert_eq!(exchange_at(&mut low, 2 * MS, US, &[X, 0, 0]).0, [0; 3]);
    assert_eq!(low.conversions(), 1);
    let stuck = chip(TouchFaults { pen_irq_stuck_low: true, ..TouchFaults::default() });
    assert_eq!(pin(&stuck, 60 * MS).0, Some(0));
    stuck.set_faults(TouchFaults::default());
    assert_eq!(pin(&stuck, 60 * MS).0, None);
}

#[test]
fn noise_is_bounded_and_the_same_each_time() {
    let run = |seed| {
        let mut chip = touched(TouchOptions { noise_codes: 3, seed, ..quiet() });
        codes(&mut chip, 2 * MS, &[X | ON; 64])
    };
    let one = run(1);
    assert_eq!(one, run(1));
    assert_ne!(one, run(2));
    let settled = &one[24..];
    assert_eq!((settled.iter().min(), settled.iter().max()), (Some(&1_021), Some(&1_027)));
}
