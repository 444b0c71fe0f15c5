//! Signals at known times, and the syntax of command lines and files.

use super::*;

const MS: Ps = 1_000_000_000;
const HZ: u64 = 1_000_000;

#[test]
fn a_constant_stays() {
    let signal = Signal::constant_mv(-1_650);
    for at in [0, 1, MS, Ps::MAX] {
        assert_eq!(signal.at(at), -1_650_000);
    }
    assert_eq!(Signal::default().at(MS), 0);
}

#[test]
fn a_sine_has_its_zeros_and_peaks_where_they_belong() {
    let signal = Signal::sine(50 * HZ, 1_000_000, 1_650_000);
    let quarters = [1_650_000, 2_650_000, 1_650_000, 650_000];
    for turns in [0, 1, 2, 100_000] {
        for (quarter, expected) in (0..).zip(quarters) {
            assert_eq!(signal.at((turns * 4 + quarter) * 5 * MS), expected, "{turns} {quarter}");
        }
    }
    // sin 30 degrees.
    assert_eq!(Signal::sine(HZ, 1_000_000, 0).at(1_000 * MS / 12), 500_000);
    let late = Signal::Sine {
        frequency_uhz: 50 * HZ,
        amplitude_uv: 1_000_000,
        offset_uv: 0,
        phase_mdeg: 90_000,
    };
    assert_eq!([0, 5, 10, 15].map(|ms| late.at(ms * MS)), [1_000_000, 0, -1_000_000, 0]);
}

#[test]
fn the_polynomial_is_the_sine() {
    for step in 0..10_000_u128 {
        let turn = TURN / 10_000 * step;
        let expected = (step as f64 / 10_000.0 * std::f64::consts::TAU).sin();
        assert!((sine_of_turn(turn) - expected).abs() < 1e-11, "{step}");
    }
}

#[test]
fn time_that_is_long_does_not_blur_the_phase() {
    // 200 days after power-up a float of picoseconds would have steps of 2 ns.
    let days = 200 * 86_400 * 1_000 * MS;
    let signal = Signal::ramp(1_000_000 * HZ, 0, 1_000_000);
    assert_eq!(signal.at(days), 0);
    assert_eq!(signal.at(days + 1), 1);
    assert_eq!(signal.at(days + 999_999), 999_999);
    assert_eq!(signal.at(days + 1_000_000), 0);
}

#[test]
fn a_ramp_is_a_sawtooth_either_way() {
    let up = Signal::ramp(1_000 * HZ, 0, 3_300_000);
    let us = 1_000_000;
    assert_eq!(
        [0, 250, 500, 999, 1_000, 1_250].map(|at| up.at(at * us)),
        [0, 825_000, 1_650_000, 3_296_700, 0, 825_000]
    );
    let down = Signal::ramp(1_000 * HZ, 3_300_000, -100_000);
    assert_eq!([0, 500, 1_000].map(|at| down.at(at * us)), [3_300_000, 1_600_000, 3_300_000]);
    // Slower than a turn in all of time.
    assert_eq!(Signal::ramp(1, 0, 1_000_000).at(500_000_000_000_000_000), 500_000);
    assert_eq!(Signal::ramp(u64::MAX, i64::MIN, i64::MAX).at(0), i64::MIN);
}

#[test]
fn samples_are_held_and_the_last_one_stays() {
    let samples = Samples::parse("# volts\n0\n 1.5 \n\n-2.25e-1 # low\n3.3", 1_000 * HZ).unwrap();
    assert_eq!(samples.count(), 4);
    assert_eq!(format!("{samples:?}"), "Samples { rate_uhz: 1000000000, count: 4, .. }");
    let signal = Signal::Samples(samples);
    for (at, expected) in [
        (0, 0),
        (MS - 1, 0),
        (MS, 1_500_000),
        (2 * MS - 1, 1_500_000),
        (2 * MS, -225_000),
        (3 * MS, 3_300_000),
        (4 * MS, 3_300_000),
        (Ps::MAX, 3_300_000),
    ] {
        assert_eq!(signal.at(at), expected, "{at}");
    }
}

#[test]
fn a_file_s_errors_name_the_line() {
    let error = |text| Samples::parse(text, HZ).unwrap_err();
    assert_eq!(error("1.0\n2,0\n"), SamplesError::NotANumber { line: 2 });
    assert_eq!(error("1.0\r\n\r\nnan"), SamplesError::NotANumber { line: 3 });
    assert_eq!(error("1\n3300"), SamplesError::OutOfRange { line: 2 });
    assert_eq!(error("inf"), SamplesError::OutOfRange { line: 1 });
    assert_eq!(error("\n# nothing\n"), SamplesError::Empty);
    assert_eq!(error(""), SamplesError::Empty);
    assert_eq!(Samples::new(&[], HZ), None);
    assert_eq!(
        error("x").to_string(),
        "line 1 is not a number: each line is one voltage, as in 1.65"
    );
}

#[test]
fn a_command_line_says_each_kind() {
    let ready = |spec: &str| match spec.parse() {
        Ok(SignalSpec::Ready(signal)) => signal,
        other => panic!("{spec}: {other:?}"),
    };
    assert_eq!(ready("constant:1650"), Signal::constant_mv(1_650));
    assert_eq!(ready("constant:-0.5"), Signal::Constant { level_uv: -500 });
    assert_eq!(ready("sine:50:1000:1650"), Signal::sine(50 * HZ, 1_000_000, 1_650_000));
    assert_eq!(ready("sine:0.000001:1:2.5"), Signal::sine(1, 1_000, 2_500));
    assert_eq!(ready("ramp:1e3:3300:0"), Signal::ramp(1_000 * HZ, 3_300_000, 0));
    let spec: SignalSpec = "file:C:\\a:b.txt:44100".parse().unwrap();
    assert_eq!(spec, SignalSpec::File { path: "C:\\a:b.txt".into(), rate_uhz: 44_100 * HZ });
    let signal = spec.clone().with_file("1\n2").unwrap();
    assert_eq!(
        signal,
        Signal::Samples(Samples::new(&[1_000_000, 2_000_000], 44_100 * HZ).unwrap())
    );
    assert_eq!(spec.with_file(""), Err(SamplesError::Empty));
    let constant: SignalSpec = "constant:1".parse().unwrap();
    assert_eq!(constant.with_file(""), Ok(Signal::constant_mv(1)));
}

#[test]
fn a_command_line_s_errors_say_how_to_write_it() {
    let error = |spec: &str| spec.parse::<SignalSpec>().unwrap_err();
    let sine = "sine:FREQ_HZ:AMPLITUDE_MV:OFFSET_MV";
    assert_eq!(error("sinus:1:2:3"), SpecError::UnknownKind { near: Some("sine") });
    assert_eq!(error(""), SpecError::UnknownKind { near: None });
    assert_eq!(error("sine"), SpecError::FieldCount { form: sine, expected: 3, actual: 0 });
    assert_eq!(error("sine:1:2"), SpecError::FieldCount { form: sine, expected: 3, actual: 2 });
    assert_eq!(error("sine:1:2:3:4"), SpecError::FieldCount { form: sine, expected: 3, actual: 4 });
    assert_eq!(error("sine:1::3"), SpecError::NotANumber { form: sine, field: "AMPLITUDE_MV" });
    for frequency in ["0", "-1", "1e-7", "1e10", "inf"] {
        let expected = SpecError::FrequencyOutOfRange { form: sine, field: "FREQ_HZ" };
        assert_eq!(error(&format!("sine:{frequency}:1:1")), expected);
    }
    let constant = "constant:MV";
    assert_eq!(
        error("constant:"),
        SpecError::FieldCount { form: constant, expected: 1, actual: 0 }
    );
    assert_eq!(error("constant:3.3V"), SpecError::NotANumber { form: constant, field: "MV" });
    assert_eq!(error("constant:1e7"), SpecError::VoltageOutOfRange { form: constant, field: "MV" });
    let file = "file:PATH:RATE_HZ";
    assert_eq!(error("file"), SpecError::FieldCount { form: file, expected: 2, actual: 0 });
    assert_eq!(error("file:a.txt"), SpecError::FieldCount { form: file, expected: 2, actual: 1 });
    assert_eq!(error("file::100"), SpecError::NoPath);
    assert_eq!(error("file:a:b"), SpecError::NotANumber { form: file, field: "RATE_HZ" });
    assert_eq!(
        error("triangle:1").to_string(),
        "no such signal; there are constant:MV, sine:FREQ_HZ:AMPLITUDE_MV:OFFSET_MV, \
         ramp:FREQ_HZ:FROM_MV:TO_MV, file:PATH:RATE_HZ"
    );
    assert_eq!(
        error("sine:1:2").to_string(),
        "2 fields instead of 3; write sine:FREQ_HZ:AMPLITUDE_MV:OFFSET_MV"
    );
}
