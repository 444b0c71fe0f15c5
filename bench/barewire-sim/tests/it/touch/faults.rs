//! Single samples, the interrupt's service, and faults.

use super::*;

#[test]
fn a_sample_finds_the_pen_where_it_is() {
    let rig = Rig::new();
    let mut touch = driver(&rig.bus);
    assert!(matches!(touch.read(), Err(TouchError::PenUp { .. })), "nobody is there");
    for at in [[1_000, 3_000], [3_500, 200], [300, 4_000], [2_048, 2_048]] {
        let stroke = rig.press(at, 400, MS);
        rig.pass(20 * US);
        let before = rig.chip.borrow().conversions();
        let read = touch.read().expect("it is down");
        assert!(read.x.abs_diff(at[0]) <= 4 && read.y.abs_diff(at[1]) <= 4, "{read:?} {at:?}");
        assert!(read.ohms.abs_diff(400) <= 40, "{read:?}");
        assert_eq!(rig.chip.borrow().conversions() - before, CONFIG.conversions() as u64);
        rig.pass(stroke.up_ps + MS - rig.board.engine().now_ps());
        assert!(!rig.line.is_high(), "PENIRQ works again");
    }
    rig.assert_clean();
}

#[test]
fn a_sample_is_one_selection_as_long_as_its_clocks() {
    let rig = Rig::new();
    let mut touch = driver(&rig.bus);
    rig.board.start_selections();
    touch.sample().expect("answers");
    let selections = rig.board.take_selections();
    let [one] = selections[..] else { panic!("{selections:?}") };
    assert_eq!(one.last_clock_at - one.first_clock_at, BYTES as u64 * 8 * US);
    rig.assert_clean();
}

#[test]
fn without_settling_the_driver_says_so_or_is_wrong() {
    // With the repeats of one value spread out, the panel's charging shows.
    const HASTY: Config = Config { settle: 0, ..CONFIG };
    let rig = Rig::with(TouchOptions { tau_ps: 15 * US, ..TouchOptions::default() });
    let device = rig.bus.device(&Tsc2046::settings(CS, SPEED_HZ).expect("in range"));
    let device = device.expect("opens");
    let mut touch = Tsc2046::<_, { HASTY.message_bytes() }>::new(device, HASTY).expect("opens");
    rig.press([2_000, 2_000], 300, 10 * MS);
    rig.pass(20 * US);
    let read = touch.read();
    assert!(matches!(read, Err(TouchError::Inconsistent { axis: Axis::X, .. })), "{read:?}");
    let settle = Config::settle_for(9 * 15_000, SPEED_HZ);
    assert_eq!(settle, 9);
    const PATIENT: Config = Config { settle: 9, ..CONFIG };
    let device = rig.bus.device(&Tsc2046::settings(CS, SPEED_HZ).expect("in range"));
    let device = device.expect("opens");
    let mut touch = Tsc2046::<_, { PATIENT.message_bytes() }>::new(device, PATIENT).expect("opens");
    let read = touch.read().expect("settled");
    assert!(read.x.abs_diff(2_000) <= 4 && read.y.abs_diff(2_000) <= 4, "{read:?}");
}

/// A sample of 344 µs during which the pen is there from one time to another, from the sample's call.
fn read_with(from_us: Ps, to_us: Ps) -> Result<Touch, TouchError> {
    let rig = Rig::new();
    let now = rig.board.engine().now_ps();
    let at = [32_000, 20_000];
    let (down_ps, up_ps) = (now + from_us * US, now + to_us * US);
    rig.chip.borrow().add_stroke(Stroke { down_ps, up_ps, from: at, to: at, ohms: 300 });
    driver(&rig.bus).read()
}

#[test]
fn a_pen_that_leaves_or_lands_during_a_sample_is_told() {
    assert!(read_with(0, 400).is_ok());
    // X is kept from 50 µs on, Y from 150, Z1 from 240, Z2 from 290 to 344.
    for up_us in [20, 70, 120, 170, 200] {
        let read = read_with(0, up_us);
        assert!(matches!(read, Err(TouchError::PenUp { .. })), "{up_us}: {read:?}");
    }
    for down_us in [120, 150, 200] {
        // X was nowhere, which is no place to be pressed.
        let read = read_with(down_us, 400);
        assert!(matches!(read, Err(TouchError::PenUp { .. })), "{down_us}: {read:?}");
    }
    let read = read_with(75, 400);
    assert!(matches!(read, Err(TouchError::Inconsistent { axis: Axis::X, .. })), "{read:?}");
}

#[test]
fn service_follows_a_pen_until_it_is_up() {
    let rig = Rig::new();
    let mut touch = driver(&rig.bus);
    let stroke = rig.press([1_000, 1_000], 300, 9 * MS);
    let mut timer = rig.board.timer();
    for more in [true, false] {
        assert!(rig.line.wait(None) || !more);
        let mut positions = Vec::new();
        let served = touch.service(
            &mut timer,
            || rig.line.is_high(),
            |touch| {
                positions.push((touch.x, touch.y));
                if more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        let served = served.expect("goes through");
        let near = |&(x, y): &(u16, u16)| x.abs_diff(1_000) <= 4 && y.abs_diff(1_000) <= 4;
        assert!(positions.iter().all(near), "{positions:?}");
        assert_eq!(served.still_down, more);
        if !more {
            // In the remaining 9 ms there are four touches, one each 2.344 ms, and a last sample
            // that finds the pen up.
            let Served { samples, touches, inconsistent, .. } = served;
            assert_eq!((samples, touches, inconsistent), (5, 4, 0));
        }
    }
    assert!(rig.board.engine().now_ps() > stroke.up_ps);
    assert!(!rig.line.is_high());
    rig.assert_clean();
}

#[test]
fn a_missing_chip_and_stuck_wires_are_told() {
    let rig = Rig::new();
    rig.press([1_000, 1_000], 300, 3 * MS);
    rig.pass(20 * US);
    let absent = TouchFaults { absent: true, ..TouchFaults::default() };
    assert_eq!(rig.reads_with(absent), Err(TouchError::NoChip { received: 0xffff }));
    let low = TouchFaults { dout_stuck_low: true, ..TouchFaults::default() };
    assert_eq!(rig.reads_with(low), Err(TouchError::StuckLow));
    assert!(rig.reads_with(TouchFaults::default()).is_ok(), "and all is well again");
    let stuck = TouchFaults { pen_irq_stuck_low: true, ..TouchFaults::default() };
    rig.pass(4 * MS);
    rig.chip.borrow().set_faults(stuck);
    let mut touch = driver(&rig.bus);
    let mut serve = || {
        let mut timer = rig.board.timer();
        touch.service(&mut timer, || rig.line.is_high(), |_| ControlFlow::Continue(()))
    };
    assert_eq!(serve(), Err(TouchError::InterruptStuck { samples: 8 }));
    rig.chip.borrow().set_faults(TouchFaults::default());
    assert_eq!(serve(), Ok(Served { samples: 1, ..Served::default() }));
    rig.assert_clean();
}

#[test]
fn noise_beyond_the_spread_is_told_and_the_median_has_no_say_for_spikes() {
    let rig = Rig::with(TouchOptions { noise_codes: 200, ..TouchOptions::default() });
    let mut touch = driver(&rig.bus);
    rig.press([2_000, 2_000], 300, 3 * MS);
    rig.pass(20 * US);
    assert!(matches!(touch.read(), Err(TouchError::Inconsistent { .. })));
}

#[test]
fn the_other_inputs_are_converted_with_the_reference_up() {
    let options = TouchOptions { noise_codes: 0, ..TouchOptions::default() };
    let rig = Rig::with(TouchOptions { temperature_mk: 310_000, ..options });
    let mut touch = driver(&rig.bus);
    let mut mv = |input| u32::from(touch.convert(input).expect("answers")) * 2_500 / 4_096;
    assert_eq!((mv(Aux::Battery) + 1) * 4, 3_700);
    assert!(mv(Aux::Auxiliary).abs_diff(1_000) <= 1);
    let codes = [Aux::Temp0, Aux::Temp1].map(|input| touch.convert(input).expect("answers"));
    let [temp0, temp1] = codes;
    let mk = barewire::chip::tsc2046::temperature_millikelvin(temp0, temp1);
    assert!(mk.abs_diff(310_000) < 1_600, "{mk}: a code is 1.6 K");
    rig.pass(200 * US);
    assert!(!rig.line.is_high());
    // The reference settles while conversions are discarded; the model reports those.
    let complaints = rig.board.violations();
    assert!(complaints.iter().all(|one| one.detail.contains("of reference")), "{complaints:#?}");
    assert_eq!(complaints.len(), 4 * 2, "the first of each, and the one that powers down");
}
