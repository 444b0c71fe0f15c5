//! ECSPI's driver on a block that behaves by each reading of what the manual leaves open, with
//! software that is late: right data, and CS after the last clock.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::reg::Registers;
use barewire::spi::{MODE_0, MODE_3, Mode, Settings, Transfer};
use barewire_conformance::{Clock, Options, run};
use barewire_sim::bring_up::any;
use barewire_sim::model::BlockOptions;
use barewire_sim::model::echo::Echo;
use barewire_sim::model::ecspi::Readings;
use barewire_sim::{Board, BoardOptions, BoardSpec};

use crate::blocks::ECSPI;
use crate::driver::{EACH, on_bus};

/// Three clocks at 5 MHz: longer than the driver takes from XCH to its first look.
const START_DELAY_PS: u64 = 600_000;
/// No jitter, and one in which a FIFO of 64 words is empty at 20 MHz after a few accesses.
const JITTERS_PS: [u64; 2] = [0, 20_000_000];
const GPIO: u8 = 0;
const NATIVE: u8 = 1;
/// The longest transfer of a native line.
const FIFO_BYTES: usize = 256;

fn each_board(judge: impl Fn(&Board, &str)) {
    for (number, ecspi) in Readings::each(START_DELAY_PS).into_iter().enumerate() {
        for jitter_ps in JITTERS_PS {
            let options = BoardOptions {
                blocks: BlockOptions::default().with(ecspi),
                jitter_ps,
                seed: number as u64,
                ..BoardOptions::default()
            };
            let board = Board::new(BoardSpec::find("imx8mp").expect("a board"), options);
            judge(&board, &format!("{ecspi:?}, {jitter_ps} ps of jitter"));
        }
    }
}

/// Exchanges `len` bytes with the echo behind `cs`, and nothing else happens on the wire.
fn exchange(
    bus: &Bus<dyn Controller + '_>,
    chip: &RefCell<Echo>,
    settings: &Settings,
    len: usize,
    what: &str,
) {
    let device = bus.device(settings).expect("opens");
    let (before, selections) = (chip.borrow().received().to_vec(), chip.borrow().selections());
    let tx: Vec<u8> = (0..len).map(|index| (index * 7 + len) as u8).collect();
    let mut rx = vec![0; len];
    device.sync(&mut [Transfer::exchange(&tx, &mut rx)]).unwrap_or_else(|error| {
        panic!("{error:?}: {len} bytes, {settings:?}, {what}");
    });
    let chip = chip.borrow();
    assert_eq!(chip.received()[before.len()..], tx, "what was sent");
    assert_eq!(rx[1..], tx[..len - 1], "what came in");
    assert_eq!(chip.selections(), selections + 1);
}

#[test]
fn every_length_arrives_under_every_reading_on_either_line() {
    let lengths = [1, 3, 4, 5, 15, 16, 17, 20, 64, 252, FIFO_BYTES];
    for waits in EACH {
        each_board(|board, what| {
            let chips = [GPIO, NATIVE].map(|cs| {
                let chip = Rc::new(RefCell::new(Echo::default()));
                board.attach(cs, chip.clone());
                chip
            });
            on_bus(ECSPI.usual().start, board, waits, |bus| {
                for (speed_hz, mode) in
                    [(40_000_000, MODE_3), (5_000_000, MODE_0), (400_000, MODE_3)]
                {
                    for (cs, chip) in [GPIO, NATIVE].into_iter().zip(&chips) {
                        let settings = Settings::new(cs, speed_hz).with_mode(mode);
                        for len in lengths {
                            exchange(bus, chip, &settings, len, what);
                        }
                    }
                    let settings = Settings::new(GPIO, speed_hz).with_mode(mode);
                    for len in [257, 512, 513, 1_100] {
                        exchange(bus, &chips[0], &settings, len, what);
                    }
                }
            });
            assert_eq!(board.harms_total(), 0, "{what}, {waits:?}: {:#?}", board.violations());
        });
    }
}

#[test]
fn the_conformance_suite_passes_under_every_reading() {
    for waits in EACH {
        each_board(|board, what| {
            on_bus(ECSPI.usual().start, board, waits, |bus| {
                let settings = Settings::new(GPIO, 40_000_000).with_mode(Mode::LOOP);
                let device = bus.device(&settings).expect("opens");
                let mut now_ns = || board.engine().now_ps() / 1_000;
                let options = Options { max_len: 300, loopback: true, ..Options::default() };
                let report = run(&device, &options, &mut Clock::Nanoseconds(&mut now_ns));
                assert!(report.failures.is_empty(), "{what}, {waits:?}: {:#?}", report.failures);
            });
            assert_eq!(board.harms_total(), 0, "{what}, {waits:?}: {:#?}", board.violations());
        });
    }
}

#[test]
fn an_active_high_line_is_idle_before_the_first_message() {
    let mut spec = BoardSpec::find("imx8mp").expect("a board").clone();
    let mut lines = spec.cs.to_vec();
    lines[usize::from(NATIVE)].active_high = true;
    spec.cs = lines.leak();
    let board = Board::new(Box::leak(Box::new(spec)), BoardOptions::default());
    let chip = Rc::new(RefCell::new(Echo::default()));
    board.attach(NATIVE, chip.clone());
    let other = Rc::new(RefCell::new(Echo::default()));
    board.attach(GPIO, other.clone());
    let bus = Bus::new(any(&board));
    // Another user selects another chip at once, through DR of the i.MX GPIO. If both were selected,
    // that would be a violation.
    let mut bank = board.gpio(0).expect("the other chip's line");
    bank.write(0, 0);
    bank.write(0, u32::MAX);
    exchange(&bus, &other, &Settings::new(GPIO, 20_000_000), 5, "the other chip");
    let before = chip.borrow().selections();
    let settings = Settings::new(NATIVE, 20_000_000).with_mode(Mode::CS_HIGH);
    exchange(&bus, &chip, &settings, 5, "active high");
    assert_eq!(chip.borrow().selections(), before + 1);
    assert_eq!(board.harms_total(), 0, "{:#?}", board.violations());
}

#[test]
fn a_late_refill_costs_time_and_no_stall_comes_without() {
    let stalls = |jitter_ps| {
        let options = BoardOptions { jitter_ps, ..BoardOptions::default() };
        let board = Board::new(BoardSpec::find("imx8mp").expect("a board"), options);
        board.attach(GPIO, Rc::new(RefCell::new(Echo::default())));
        let bus = Bus::new(any(&board));
        let device = bus.device(&Settings::new(GPIO, 20_000_000)).expect("opens");
        device.sync(&mut [Transfer::write(&[0; 4_096])]).expect("runs");
        assert_eq!(board.harms_total(), 0);
        board.violations_total()
    };
    assert_eq!(stalls(0), 0);
    assert!(stalls(JITTERS_PS[1]) > 0, "the jitter of these tests makes software late");
}
