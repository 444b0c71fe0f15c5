//! The driver against a port that answers by a script.

mod any;
mod any_bytes;

use core::cell::Cell;
use core::ops::ControlFlow;
use std::collections::VecDeque;
use std::vec::Vec;

use super::*;
use crate::bus::Bus;
use crate::controller::null::Null;
use crate::spi::{Error, Error as SpiError, MessageError};
use crate::time::Timer;

const CONFIG: Config = Config { settle: 1, repeats: 3, ..Config::DEFAULT };
type Driver<'p> = Tsc2046<OnPort<&'p mut Scripted, { CONFIG.message_bytes() }>, 31>;

/// Answers each message with the scripted codes, and records the sent bytes.
#[derive(Default)]
struct Scripted {
    answers: VecDeque<Vec<u16>>,
    sent: Vec<Vec<u8>>,
}

impl Port for Scripted {
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        let [transfer] = message else { panic!("one transfer") };
        let words = self.answers.pop_front().ok_or(MessageError::refused(Error::Busy, 0))?;
        self.sent.push(transfer.data.tx().expect("sends").to_vec());
        let received = transfer.data.rx_mut().expect("receives");
        assert_eq!(received.len(), 2 * words.len() + 1);
        received[0] = 0;
        for (pair, word) in received[1..].chunks_exact_mut(2).zip(words) {
            pair.copy_from_slice(&word.to_be_bytes());
        }
        Ok(())
    }

    fn speed_hz(&self) -> u32 {
        1_000_000
    }
}

/// A timer that need not pass.
struct Leaps(u64);

impl Timer for Leaps {
    fn frequency_hz(&self) -> u32 {
        1_000_000
    }

    fn now_ticks(&mut self) -> u64 {
        self.0
    }

    fn sleep_ns(&mut self, ns: u64) {
        self.0 += ns / 1_000;
    }
}

fn scripted(answers: impl IntoIterator<Item = Vec<u16>>) -> Scripted {
    Scripted { answers: answers.into_iter().collect(), sent: Vec::new() }
}

fn driver(port: &mut Scripted) -> Driver<'_> {
    Driver::on_port(port, CONFIG).expect("in range")
}

/// The answers of 15 conversions; the discarded ones are far off.
fn answer(x: [u16; 3], y: [u16; 3], z1: [u16; 3], z2: [u16; 3]) -> Vec<u16> {
    let settling: [&[u16]; 7] = [&[4_000], &x, &[1], &y, &[4_095], &z1, &z2];
    settling.concat().iter().map(|code| code << 3).collect()
}

fn touched() -> Vec<u16> {
    answer([2_048, 2_050, 2_049], [1_000, 1_001, 999], [1_024; 3], [2_048; 3])
}

fn untouched() -> Vec<u16> {
    answer([0; 3], [4_095; 3], [0; 3], [4_095; 3])
}

#[test]
fn a_sample_is_one_message_that_powers_down_last() {
    let mut port = scripted([touched(), touched()]);
    let mut touch = driver(&mut port);
    let first = touch.sample().expect("answers");
    assert_eq!(touch.sample(), Ok(first));
    assert_eq!((first.x, first.y, first.z1, first.z2), (2_049, 1_000, 1_024, 2_048));
    assert_eq!(first.spread, [2, 2]);
    // S, A2-A0, 12 bits, differential; 01 keeps converter and drivers on, 00 powers down.
    let controls = [
        [0xd1; 4].as_slice(), // X
        &[0x91; 4],           // Y
        &[0xb1; 4],           // Z1
        &[0xc1, 0xc1, 0xc0],  // Z2
    ]
    .concat();
    let mut bytes: Vec<u8> = controls.iter().flat_map(|&control| [control, 0]).collect();
    bytes.push(0);
    assert_eq!(port.sent, [bytes.clone(), bytes]);
}

#[test]
fn on_a_bus_it_is_prepared() {
    let bus = Bus::new(Null::new());
    let device = bus.device(&Tsc2046::settings(0, 1_000_000).expect("in range")).expect("opens");
    let mut touch = Tsc2046::<_, 31>::new(device, CONFIG).expect("in range");
    assert_eq!(touch.sample(), Err(TouchError::StuckLow), "the null controller's zeros");
    let fast = bus.device(&Settings::new(0, 2_000_001)).expect("opens");
    let too_fast = TouchError::TooFast { speed_hz: 2_000_001, max_hz: 2_000_000 };
    assert_eq!(Tsc2046::<_, 31>::new(fast, CONFIG).map(drop), Err(too_fast));
}

#[test]
fn the_pen_is_down_by_its_pressure() {
    let mut port = scripted([touched(), untouched()]);
    let mut touch = driver(&mut port);
    // 500 Ω * 2049 / 4096 * (2048 / 1024 - 1), rounded down.
    assert_eq!(touch.read(), Ok(Touch { x: 2_049, y: 1_000, ohms: 250 }));
    assert_eq!(touch.read(), Err(TouchError::PenUp { z1: 0, z2: 4_095 }));
    let light = Sample { x: 4_000, y: 9, z1: 100, z2: 900, spread: [0; 2] };
    assert_eq!(light.touch_ohms(&CONFIG), Some(3_906));
    assert!(light.is_down(&CONFIG));
    assert!(!light.is_down(&Config { touch_max_ohms: 3_905, ..CONFIG }));
    let huge = Sample { x: 4_095, z1: 9, z2: 4_095, ..light };
    let megohms = Config { x_plate_ohms: u32::MAX, ..CONFIG };
    assert_eq!(huge.touch_ohms(&megohms), Some(u32::MAX));
    assert_eq!(Sample { z2: 50, ..light }.touch_ohms(&CONFIG), Some(0), "noise");
    let (z1, x) = (Sample { z1: 8, ..light }, Sample { x: 8, ..light });
    assert_eq!((z1.touch_ohms(&CONFIG), x.touch_ohms(&CONFIG)), (None, None));
    // No touch, a little noise, and a quotient that looks like a hard touch.
    let nobody = Sample { x: 1, y: 4_095, z1: 2, z2: 4_095, spread: [0; 2] };
    assert!(!nobody.is_down(&CONFIG));
}

#[test]
fn repeats_that_differ_are_inconsistent_where_they_are_positions() {
    let y = answer([9, 9, 9], [900, 933, 901], [1_024; 3], [2_048; 3]);
    let x = answer([500, 467, 500], [900; 3], [1_024; 3], [2_048; 3]);
    let z = answer([500; 3], [900, 932, 900], [1_000, 1_024, 1_100], [2_000, 2_048, 2_500]);
    let mut port = scripted([y, x, z]);
    let mut touch = driver(&mut port);
    let inconsistent = |axis| Err(TouchError::Inconsistent { axis, spread: 33, spread_max: 32 });
    assert_eq!(touch.read(), inconsistent(Axis::Y));
    assert_eq!(touch.read(), inconsistent(Axis::X));
    assert_eq!(
        touch.read().map(|touch| touch.y),
        Ok(900),
        "a difference of 32 is allowed, and Z is the pressure"
    );
}

#[test]
fn a_missing_chip_is_seen_in_every_frame() {
    let missing = |received| Err(TouchError::NoChip { received });
    let mut late = touched();
    late[14] |= 1;
    let mut busy = touched();
    busy[4] |= 0x8000;
    let mut port = scripted([std::vec![0xffff; 15], late, busy, std::vec![0; 15], std::vec![7]]);
    let mut touch = driver(&mut port);
    assert_eq!(touch.read(), missing(0xffff));
    assert_eq!(touch.read(), missing(2_048 << 3 | 1));
    assert_eq!(touch.read(), missing(1 << 3 | 0x8000));
    assert_eq!(touch.read(), Err(TouchError::StuckLow));
    assert_eq!(touch.power_down(), missing(7).map(drop));
    let busy = MessageError::refused(Error::Busy, 0);
    assert_eq!(touch.read(), Err(TouchError::Message(busy)));
    assert_eq!(port.sent[4], [0xc0, 0, 0], "one conversion that powers down");
}

#[test]
fn an_input_is_converted_once_the_reference_is_up() {
    const SLOW: Config = Config { reference_settle: 2, ..CONFIG };
    let mut port = scripted([[9, 90, 983, 4].map(|code| code << 3).to_vec()]);
    let mut touch = Tsc2046::<_, 31>::on_port(&mut port, SLOW).expect("in range");
    assert_eq!(touch.convert(Aux::Temp0), Ok(983));
    assert_eq!(port.sent, [[0x87, 0, 0x87, 0, 0x87, 0, 0x84, 0, 0]]);
    let controls = [Aux::Battery, Aux::Auxiliary, Aux::Temp1].map(|input| input.control(ALL_ON));
    assert_eq!(controls, [0xa7, 0xe7, 0xf7]);
    // 600 mV and 715.9 mV: 25 °C.
    assert_eq!(temperature_millikelvin(983, 1_173), 298_380);
    assert_eq!(temperature_millikelvin(9, 8), 0);
}

#[test]
fn settling_and_times_are_rounded_up() {
    assert_eq!(Config::settle_for(0, 1_000_000), 0);
    assert_eq!(Config::settle_for(3_000, 1_000_000), 0, "the clocks that sample");
    assert_eq!(Config::settle_for(3_001, 1_000_000), 1);
    assert_eq!(Config::settle_for(19_000, 1_000_000), 1);
    assert_eq!(Config::settle_for(19_001, 1_000_000), 2);
    assert_eq!(Config::settle_for(u32::MAX, 2_000_000), 255);
    assert_eq!(Config::DEFAULT.message_bytes(), 43, "344 µs at 1 MHz");
    let settings = |speed_hz| Tsc2046::settings(1, speed_hz).expect("in range");
    assert_eq!((settings(2_000_000).cs_setup_ns, settings(2_000_000).cs_hold_ns), (0, 10));
    assert_eq!(settings(1).chip_select, 1);
    assert!(Tsc2046::settings(1, 2_500_000).is_err());
}

#[test]
fn the_filter_is_a_median_or_a_mean() {
    let spike = || answer([100, 130, 101], [7, 8, 9], [1_024; 3], [2_048; 3]);
    let mut port = scripted([spike(), spike()]);
    assert_eq!(driver(&mut port).sample().map(|sample| sample.x), Ok(101));
    let mean = Config { filter: Filter::Mean, ..CONFIG };
    let mut touch = Tsc2046::<_, 31>::on_port(&mut port, mean).expect("in range");
    assert_eq!(touch.sample().map(|sample| (sample.x, sample.y)), Ok((110, 8)));
}

#[test]
fn a_configuration_out_of_range_is_refused() {
    let refused = |config: Config| {
        let mut port = Scripted::default();
        Tsc2046::<_, 31>::on_port(&mut port, config).map(drop).expect_err("is out of range")
    };
    let config = |repeats, settle| TouchError::Config { repeats, settle };
    assert_eq!(refused(Config { repeats: 0, ..CONFIG }), config(0, 8));
    assert_eq!(refused(Config { repeats: 9, ..CONFIG }), config(9, 8));
    assert_eq!(refused(Config { settle: 31, ..CONFIG }), config(3, 31));
    assert_eq!(refused(Config { reference_settle: 31, ..CONFIG }), config(3, 31));
}

#[test]
#[should_panic(expected = "message_bytes")]
fn another_configurations_bytes_are_a_mistake() {
    let mut port = Scripted::default();
    let _ = Tsc2046::<_, 29>::on_port(&mut port, CONFIG);
}

/// Serves the script; PENIRQ is low for a number of polls.
fn serve(port: &mut Scripted, low_looks: u32, stop_at: u32) -> (Result<Served, TouchError>, u64) {
    let (mut timer, looks, touches) = (Leaps(0), Cell::new(0), Cell::new(0));
    let served = driver(port).service(
        &mut timer,
        || {
            looks.set(looks.get() + 1);
            looks.get() <= low_looks
        },
        |touch| {
            assert_eq!((touch.x, touch.y), (2_049, 1_000));
            touches.set(touches.get() + 1);
            if touches.get() == stop_at {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        },
    );
    (served, timer.0)
}

fn blurred() -> Vec<u16> {
    answer([2_048, 0, 2_049], [1_000; 3], [1_024; 3], [2_048; 3])
}

#[test]
fn service_samples_until_the_pen_is_up() {
    let served = Served { samples: 4, touches: 2, inconsistent: 1, still_down: false };
    let script = || scripted([touched(), blurred(), touched(), untouched()]);
    let (interval, recheck) = (5_000, 200);
    assert_eq!(serve(&mut script(), 0, 9), (Ok(served), 2 * interval));
    assert_eq!(serve(&mut script(), 1, 9), (Ok(served), 2 * interval + recheck), "rises late");
    // The pen comes back while the line stays low.
    let mut port = scripted([untouched(), touched(), untouched()]);
    let served = Served { samples: 3, touches: 1, ..Served::default() };
    assert_eq!(serve(&mut port, 2, 9), (Ok(served), interval + recheck));
    let served = Served { samples: 1, touches: 1, still_down: true, ..Served::default() };
    assert_eq!(serve(&mut script(), 0, 1), (Ok(served), 0));
}

#[test]
fn service_gives_up_on_what_does_not_end() {
    let stuck = Err(TouchError::InterruptStuck { samples: 8 });
    let mut port = scripted((0..9).map(|_| untouched()));
    assert_eq!(serve(&mut port, u32::MAX, 9).0, stuck);
    assert_eq!(port.answers.len(), 1);
    let mut port = scripted((0..9).map(|_| blurred()));
    let blur = TouchError::Inconsistent { axis: Axis::X, spread: 2_049, spread_max: 32 };
    assert_eq!(serve(&mut port, u32::MAX, 9).0, Err(blur));
    assert_eq!(port.answers.len(), 1);
    // A touch in between restarts the count.
    let mixed = (0..20).map(|index| if index % 4 == 3 { touched() } else { blurred() });
    let mut port = scripted(mixed.chain([untouched()]));
    assert_eq!(serve(&mut port, 0, 9).0.map(|served| served.inconsistent), Ok(15));
    // Each kind restarts the other's count, and neither is a touch.
    let turns = |first: fn() -> Vec<u16>, last: fn() -> Vec<u16>| {
        (0..66).map(move |at| if at % 2 == 0 { first() } else { last() })
    };
    let mut port = scripted(turns(untouched, blurred));
    assert_eq!(serve(&mut port, u32::MAX, 9).0, Err(blur));
    assert_eq!(port.answers.len(), 2);
    let mut port = scripted(turns(blurred, untouched));
    let stuck = Err(TouchError::InterruptStuck { samples: 64 });
    assert_eq!(serve(&mut port, u32::MAX, 9).0, stuck);
    assert_eq!(port.answers.len(), 2);
    let busy = MessageError::refused(Error::Busy, 0);
    assert_eq!(serve(&mut Scripted::default(), 0, 9).0, Err(TouchError::Message(busy)));
}

#[test]
fn errors_name_the_remedy() {
    let spread = TouchError::Inconsistent { axis: Axis::Y, spread: 40, spread_max: 32 };
    for (error, part) in [
        (TouchError::TooFast { speed_hz: 2, max_hz: 1 }, "lower the clock"),
        (TouchError::Config { repeats: 9, settle: 3 }, "9 repeats"),
        (TouchError::NoChip { received: 0xffff }, "MISO"),
        (TouchError::StuckLow, "zeros"),
        (TouchError::PenUp { z1: 0, z2: 4_095 }, "Z2 is 4095"),
        (spread, "repeats of Y differ by 40"),
        (TouchError::InterruptStuck { samples: 8 }, "pull-up"),
    ] {
        let text = std::format!("{error}");
        assert!(text.contains(part), "{text}");
    }
}
