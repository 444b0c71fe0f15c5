//! The driver of SiFive SPI judged in simulation: the conformance suite through a jumper, random
//! messages in front of a chip that is strict, what a previous owner left, and what a message costs, as
//! a reviewed table.
//!
//! The block has no loopback. Set `BAREWIRE_BLESS=1` to write the table anew; the difference is then for
//! a reviewer.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::reg::Registers;
use barewire::spi::{Error, MODE_0, MODE_1, MODE_2, MODE_3, Settings, Transfer};
use barewire_sim::bring_up::{sifive, sifive_interrupt};
use barewire_sim::model::echo::Echo;
use barewire_sim::model::jumper::Jumper;
use barewire_sim::{Board, BoardOptions, BoardSpec, Rule};
use proptest::prelude::*;

use crate::conforms::{self, Lengths};
use crate::driver::{Driver, Waits};
use crate::random;
use crate::random::{Asks, Message, USUAL, cases, messages};
use crate::selection;
use crate::snapshot;

fn board() -> Board {
    late_board(0)
}

/// A board whose every access may take `jitter_ns` longer.
fn late_board(jitter_ns: u64) -> Board {
    let options = BoardOptions { jitter_ps: jitter_ns * 1_000, ..BoardOptions::default() };
    Board::new(BoardSpec::find("unleashed").expect("a board"), options)
}

struct SiFive;

impl Driver for SiFive {
    fn polled(&self, board: &Board) -> Bus<impl Controller> {
        Bus::new(sifive(board))
    }

    fn interrupted(&self, board: &Board, limit_ns: u32) -> impl Controller {
        sifive_interrupt(board, limit_ns)
    }
}

fn passes_every_case(waits: Waits, settings: Settings, lengths: Lengths) {
    let board = board();
    assert!(board.attach(settings.chip_select, Rc::new(RefCell::new(Jumper))));
    SiFive
        .on_bus(&board, waits, |bus| conforms::passes_every_case(&board, bus, &settings, lengths));
}

const GPIO: Settings = Settings::new(0, 20_000_000);

#[test]
fn every_case_passes_through_a_jumper() {
    passes_every_case(Waits::Polling, GPIO.with_mode(MODE_3), Lengths::All);
    passes_every_case(Waits::Polling, Settings::new(0, 50_000_000), Lengths::Short);
}

#[test]
fn every_case_passes_asleep_until_it_interrupts() {
    passes_every_case(Waits::Asleep(0), GPIO.with_mode(MODE_2), Lengths::All);
    passes_every_case(Waits::Asleep(0), GPIO.with_mode(MODE_1), Lengths::Short);
}

#[test]
fn every_case_passes_by_its_handler() {
    passes_every_case(Waits::ByHandler(0), GPIO, Lengths::All);
    passes_every_case(Waits::ByHandler(0), GPIO.with_mode(MODE_3), Lengths::Short);
}

const ASKS: Asks = Asks {
    speed_hz: &[
        (1, 3_600_000..=3_600_000),
        (1, 250_000_000..=250_000_000),
        (1, 62_000..=99_999_999),
    ],
    native: no_setup_and_one_speed,
    ..USUAL
};

/// What the block's own line can do.
fn no_setup_and_one_speed(message: &mut Message) {
    message.cs_setup_ns = 0;
    for piece in &mut message.pieces {
        piece.speed_hz = 0;
    }
}

fn run_all(messages: &[Message], waits: Waits, jitter_ns: u64) -> Result<u64, TestCaseError> {
    random::run(&ASKS, &SiFive, &late_board(jitter_ns), waits, messages)
}

proptest! {
    #![proptest_config(cases(48, 512))]

    #[test]
    fn random_messages_arrive_whole_and_in_time(
        messages in messages(&ASKS),
        limit_ns in prop_oneof![Just(0), 0_u32..200_000],
        jitter_ns in prop_oneof![Just(0), 0_u64..3_000],
    ) {
        let once = run_all(&messages, Waits::Polling, jitter_ns)?;
        let again = run_all(&messages, Waits::Polling, jitter_ns)?;
        prop_assert_eq!(once, again, "the same program has the same trace");
        run_all(&messages, Waits::Asleep(limit_ns), jitter_ns)?;
        run_all(&messages, Waits::ByHandler(limit_ns), jitter_ns)?;
    }
}

/// A byte arrives half a clock before its last clock is over: at a slow clock that is longer than any
/// access, and a chip select that moved before would be seen.
#[test]
fn a_slow_clock_is_over_before_its_chip_is_released() {
    for waits in [Waits::Polling, Waits::Asleep(0), Waits::ByHandler(0)] {
        for (cs, mode) in [(0, MODE_0), (0, MODE_1), (0, MODE_2), (0, MODE_3), (1, MODE_0)] {
            let board = board();
            assert!(board.attach(cs, Rc::new(RefCell::new(Jumper))));
            SiFive.on_bus(&board, waits, |bus| {
                let settings = Settings::new(cs, 62_000).with_mode(mode);
                let device = bus.device(&settings).expect("opens");
                for len in [1, 2, 8, 9] {
                    let mut bytes: Vec<u8> = (1..=len).collect();
                    let ran = device.sync(&mut [Transfer::in_place(&mut bytes)]);
                    assert_eq!((ran, bytes), (Ok(len.into()), (1..=len).collect()));
                }
            });
            assert!(board.violations().is_empty(), "{waits:?} {mode:?}: {:#?}", board.violations());
        }
    }
}

/// Messages alternate between a chip on the GPIO and one on the block's own line, at other clocks and
/// modes. Each hears its own bytes, each message under one select, and the block's line does not move
/// for the GPIO's chip.
#[test]
fn two_chips_take_turns() {
    for waits in [Waits::Polling, Waits::Asleep(0), Waits::ByHandler(0)] {
        let board = board();
        let chips = [0, 1].map(|cs| {
            let chip = Rc::new(RefCell::new(Echo::default()));
            assert!(board.attach(cs, chip.clone()));
            chip
        });
        SiFive.on_bus(&board, waits, |bus| {
            let settings = [GPIO.with_mode(MODE_3), Settings::new(1, 1_000_000)];
            let devices = settings.map(|settings| bus.device(&settings).expect("opens"));
            for turn in 0..4 {
                for (device, base) in devices.iter().zip([0, 100]) {
                    let bytes: Vec<u8> = (0..20).map(|byte| base + turn * 20 + byte).collect();
                    assert_eq!(device.sync(&mut [Transfer::write(&bytes)]), Ok(20));
                }
            }
        });
        for (chip, base) in chips.iter().zip([0, 100]) {
            let chip = chip.borrow();
            assert_eq!(chip.received(), (base..base + 80).collect::<Vec<u8>>());
            assert_eq!(chip.selections(), 4);
        }
        assert!(board.violations().is_empty(), "{waits:?}: {:#?}", board.violations());
    }
}

/// A previous owner of the block died in the middle of a message, or the boot code left the flash
/// interface on. A byte that was under way is cut off under its chip; those behind it reach no chip.
#[test]
fn what_was_left_in_the_fifos_no_chip_hears() {
    for (fctrl, csmode, bytes) in [(1, 0, 0), (1, 0, 8), (0, 2, 0), (0, 2, 8), (0, 0, 8), (0, 3, 8)]
    {
        let board = board();
        let chips = [0, 1].map(|cs| {
            let chip = Rc::new(RefCell::new(Echo::default()));
            assert!(board.attach(cs, chip.clone()));
            chip
        });
        let mut regs = board.controller();
        for (offset, value) in [(0x60, fctrl), (0x00, 100), (0x18, csmode), (0x70, 3), (0x50, 7)] {
            regs.write(offset, value);
        }
        (0..bytes).for_each(|byte| regs.write(0x48, 0x80 | byte));
        let bus = Bus::new(sifive(&board));
        assert_eq!(regs.read(0x70), 0, "it interrupts nobody");
        let stray = chips[1].borrow().received().len();
        assert!(stray <= 2, "{csmode}: {stray}");
        for (cs, chip) in chips.iter().enumerate() {
            let settings = Settings::new(cs as u8, 20_000_000);
            let device = bus.device(&settings).expect("opens");
            let before = chip.borrow().received().len();
            let mut bytes = [1, 2, 3, 4, 5];
            device.sync(&mut [Transfer::in_place(&mut bytes)]).expect("runs");
            assert_eq!(bytes[1..], [1, 2, 3, 4], "{csmode}: nothing left over");
            assert_eq!(chip.borrow().received()[before..], [1, 2, 3, 4, 5]);
        }
        let rules: Vec<Rule> = board.violations().iter().map(|found| found.rule).collect();
        assert!(rules.iter().all(|&rule| rule == Rule::ClockWithoutCs), "{csmode}: {rules:?}");
    }
}

#[test]
fn what_the_block_s_own_line_cannot_do_is_refused() {
    let board = board();
    let bus = Bus::new(sifive(&board));
    let native = Settings::new(1, 20_000_000);
    let refused = bus.device(&Settings { cs_setup_ns: 10, ..native }).expect_err("refused");
    assert_eq!(refused, Error::NativeCsDelay { asked_ns: 10, max_ns: 0 });
    let device = bus.device(&native).expect("opens");
    let mut slow = Transfer::write(&[1]);
    slow.speed_hz = 1_000_000;
    let refused = device.sync(&mut [slow]).expect_err("refused").error;
    assert_eq!(refused, Error::NativeCsSpeed { asked_hz: 1_000_000 });
}

const HEADER: &str = "\
SiFive SPI register accesses per message, simulated on unleashed, the device's second message.
lead, clocks and lag are nanoseconds from CS to the first cell, to the last one's end, to CS. call
is virtual nanoseconds with the profile's costs.

line    speed_hz  bytes  writes   reads  barriers  lead   clocks    lag     call
";

fn row(cs: u8, speed_hz: u32, bytes: usize) -> String {
    let board = board();
    let settings = Settings::new(cs, speed_hz);
    let it = selection::exchange(&board, sifive, &settings, bytes);
    format!(
        "{:<7}{:>9}{:>7}{:>8}{:>8}{:>10}{:>6}{:>9}{:>7}{:>9}\n",
        if cs == 0 { "gpio" } else { "native" },
        it.speed_hz,
        bytes,
        it.cost.writes,
        it.cost.reads,
        it.cost.barriers,
        it.lead_ns,
        it.clocks_ns,
        it.lag_ns,
        it.cost.call_ns,
    )
}

#[test]
fn accesses_per_message_are_as_reviewed() {
    let mut table = String::from(HEADER);
    for (cs, speed_hz, lengths) in [
        (0, 3_600_000, &[1, 3, 16, 256][..]),
        (0, 20_000_000, &[1, 3, 8, 9, 16, 64, 256, 4096]),
        (0, 50_000_000, &[1, 4, 256, 4096]),
        (1, 20_000_000, &[1, 3, 8, 16, 256, 4096]),
    ] {
        for &bytes in lengths {
            table += &row(cs, speed_hz, bytes);
        }
    }
    snapshot::check("sifive_accesses.txt", &table);
}
