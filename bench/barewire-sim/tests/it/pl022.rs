//! The PL022 driver judged in simulation: the conformance suite by loopback and through a jumper,
//! random messages in front of a chip that is strict, the block's own select line, and what a
//! message costs, as a reviewed table.
//!
//! Set `BAREWIRE_BLESS=1` to write the table anew; the difference is then for a reviewer.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::reg::Registers;
use barewire::spi::{Error, MODE_0, MODE_1, MODE_2, MODE_3, Mode, Settings, Transfer};
use barewire_sim::bring_up::{pl022, pl022_interrupt};
use barewire_sim::chip::WireLimits;
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
    Board::new(BoardSpec::find("highbank").expect("a board"), options)
}

struct Pl022;

impl Driver for Pl022 {
    fn polled(&self, board: &Board) -> Bus<impl Controller> {
        Bus::new(pl022(board))
    }

    fn interrupted(&self, board: &Board, limit_ns: u32) -> impl Controller {
        pl022_interrupt(board, limit_ns)
    }
}

fn passes_every_case(waits: Waits, settings: Settings, lengths: Lengths) {
    let board = board();
    if !settings.mode.contains(Mode::LOOP) {
        assert!(board.attach(settings.chip_select, Rc::new(RefCell::new(Jumper))));
    }
    Pl022.on_bus(&board, waits, |bus| conforms::passes_every_case(&board, bus, &settings, lengths));
}

const FAST: Settings = Settings::new(0, 20_000_000);

#[test]
fn every_case_passes_in_loopback() {
    passes_every_case(Waits::Polling, FAST.with_mode(Mode::LOOP), Lengths::All);
}

#[test]
fn every_case_passes_through_a_jumper_where_frames_follow_at_once() {
    passes_every_case(Waits::Polling, FAST.with_mode(MODE_3), Lengths::Short);
}

#[test]
fn every_case_passes_asleep_until_it_interrupts() {
    passes_every_case(Waits::Asleep(0), FAST.with_mode(MODE_2), Lengths::All);
    passes_every_case(Waits::Asleep(0), FAST.with_mode(MODE_1 | Mode::LOOP), Lengths::Short);
}

#[test]
fn every_case_passes_by_its_handler() {
    passes_every_case(Waits::ByHandler(0), FAST, Lengths::All);
    passes_every_case(Waits::ByHandler(0), FAST.with_mode(MODE_3), Lengths::Short);
}

const ASKS: Asks = Asks {
    chip_select: &[(1, 0..=0)],
    speed_hz: &[
        (1, 3_600_000..=3_600_000),
        (1, 75_000_000..=75_000_000),
        (1, 400_000_000..=400_000_000),
        (1, 20_000..=99_999_999),
    ],
    bits: &[(2, 8..=8), (1, 16..=16)],
    words: &[(1, 0..=0), (1, 1..=9), (1, 4..=39), (1, 120..=139)],
    // Half a one before the first capture, half a one after the last.
    unwaited_clocks: 1,
    ..USUAL
};

fn run_all(messages: &[Message], waits: Waits, jitter_ns: u64) -> Result<u64, TestCaseError> {
    random::run(&ASKS, &Pl022, &late_board(jitter_ns), waits, messages)
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

/// What is taken on the block's own line is under one select, however slow the processor or long
/// an interrupt takes.
#[test]
fn what_is_taken_on_the_block_s_own_line_does_not_pulse() {
    for (mode, bits, most) in [(MODE_0, 8, 1), (MODE_2, 16, 2), (MODE_1, 8, 16), (MODE_3, 16, 16)] {
        for (speed_hz, jitter_ns) in [(1_000_000, 0), (75_000_000, 0), (75_000_000, 5_000)] {
            for waits in [Waits::Polling, Waits::Asleep(0), Waits::ByHandler(0)] {
                let board = late_board(jitter_ns);
                let chip = Rc::new(RefCell::new(Echo::default()));
                assert!(board.attach(1, chip.clone()));
                let settings = Settings {
                    cs_inactive_ns: 700,
                    ..Settings::new(1, speed_hz).with_mode(mode).with_bits_per_word(bits)
                };
                Pl022.on_bus(&board, waits, |bus| {
                    let device = bus.device(&settings).expect("opens");
                    let step = usize::from(bits / 8);
                    let sizes: Vec<usize> = (step..=most).step_by(step).collect();
                    let odd = |&len: &usize| bits == 8 && len % 2 == 1 && len > 8;
                    let taken: Vec<usize> = sizes.iter().copied().filter(|len| !odd(len)).collect();
                    for &len in &taken {
                        let bytes: Vec<u8> = (1..=len as u8).collect();
                        let mut message =
                            [Transfer::write(&bytes).with_cs_change(), Transfer::write(&bytes)];
                        assert_eq!(device.sync(&mut message), Ok(2 * len));
                    }
                    assert_eq!(chip.borrow().selections(), 2 * taken.len() as u64);
                    let mut beyond = [Transfer::write(&[0; 18])];
                    let max_bytes = most;
                    let error = device.sync(&mut beyond).expect_err("would pulse").error;
                    assert_eq!(error, Error::NativeCsWouldPulse { max_bytes });
                });
                assert!(board.violations().is_empty(), "{:#?}", board.violations());
            }
        }
    }
}

/// A delay asked between two selections by the block's own line is there at the chip.
#[test]
fn the_block_s_own_line_stays_inactive_as_long_as_asked() {
    for mode in [MODE_0, MODE_1, MODE_2, MODE_3] {
        let board = board();
        let limits = WireLimits { cs_inactive_ns: 2_000, ..barewire_sim::model::echo::NO_LIMITS };
        assert!(board.attach(1, Rc::new(RefCell::new(Echo::new(limits)))));
        let bus = Bus::new(pl022(&board));
        let settings =
            Settings { cs_inactive_ns: 2_000, ..Settings::new(1, 1_000_000).with_mode(mode) };
        let device = bus.device(&settings).expect("opens");
        for _ in 0..3 {
            let mut message = [Transfer::write(&[1]).with_cs_change(), Transfer::write(&[2])];
            assert_eq!(device.sync(&mut message), Ok(2));
        }
        assert!(board.violations().is_empty(), "{mode:?}: {:#?}", board.violations());
    }
}

/// A previous owner of the block died.
#[test]
fn whatever_was_left_in_the_block_no_chip_hears() {
    for (cr1, words) in [(0, 3), (2, 8), (0, 0), (2, 0)] {
        let board = board();
        let chip = Rc::new(RefCell::new(Echo::default()));
        assert!(board.attach(0, chip.clone()));
        // The previous owner left the chip select's pin an output, high.
        let mut pins = board.gpio(0).expect("a bank");
        pins.write(0x400, 1);
        pins.write(0x004, 1);
        let mut regs = board.controller();
        regs.write(0x10, 10);
        regs.write(0x00, 0x0f07);
        regs.write(0x04, cr1);
        regs.write(0x14, 0xf);
        regs.write(0x24, 3);
        (0..words).for_each(|word| regs.write(0x08, word));
        let bus = Bus::new(pl022(&board));
        let device = bus.device(&FAST.with_mode(MODE_3)).expect("opens");
        let mut bytes = [1, 2, 3, 4, 5];
        device.sync(&mut [Transfer::in_place(&mut bytes)]).expect("runs");
        assert_eq!(bytes, [0, 1, 2, 3, 4], "the chip's byte before, and nothing left over");
        assert_eq!(chip.borrow().received(), [1, 2, 3, 4, 5]);
        let rules: Vec<Rule> = board.violations().iter().map(|found| found.rule).collect();
        assert!(rules.iter().all(|&rule| rule == Rule::ClockWithoutCs), "{rules:?}");
    }
}

/// Words that overflow the FIFO are lost, and the message fails; the next one succeeds.
#[test]
fn an_overrun_is_told_and_drained() {
    for waits in [Waits::Polling, Waits::Asleep(0)] {
        let board = board();
        assert!(board.attach(0, Rc::new(RefCell::new(Jumper))));
        Pl022.on_bus(&board, waits, |bus| {
            let device = bus.device(&FAST).expect("opens");
            device.sync(&mut [Transfer::write(&[1])]).expect("runs");
            // Another program beside us, against all rules.
            let mut regs = board.controller();
            for _ in 0..2 {
                (0..8).for_each(|_| regs.write(0x08, 0xee));
                while regs.read(0x0c) & 0x10 != 0 {}
            }
            let mut bytes = [7; 20];
            let error = device.sync(&mut [Transfer::in_place(&mut bytes)]).expect_err("lost some");
            assert_eq!(error.error, Error::Overrun);
            let mut bytes = [7, 8, 9];
            device.sync(&mut [Transfer::in_place(&mut bytes)]).expect("runs");
            assert_eq!(bytes, [7, 8, 9]);
        });
    }
}

const HEADER: &str = "\
PL022 register accesses per message, simulated on highbank, the device's second message.
lead, clocks and lag are nanoseconds from CS to the first cell, to the last one's end, to CS. call
is virtual nanoseconds with the profile's costs. In mode 3 even lengths go two bytes a frame.

line    mode  speed_hz  bytes  writes   reads  barriers  lead   clocks  lag     call
";

fn row(cs: u8, mode: Mode, speed_hz: u32, bytes: usize) -> String {
    let board = board();
    let settings = Settings::new(cs, speed_hz).with_mode(mode);
    let it = selection::exchange(&board, pl022, &settings, bytes);
    format!(
        "{:<8}{:>4}{:>10}{:>7}{:>8}{:>8}{:>10}{:>6}{:>9}{:>5}{:>9}\n",
        if cs == 0 { "gpio" } else { "native" },
        mode.number(),
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
    for (cs, mode, speed_hz, lengths) in [
        (0, MODE_0, 3_600_000, &[1, 3, 16, 64, 256][..]),
        (0, MODE_0, 20_000_000, &[1, 3, 4, 16, 64, 256, 4096]),
        (0, MODE_3, 20_000_000, &[1, 3, 4, 16, 64, 256, 4096]),
        (0, MODE_3, 75_000_000, &[4, 256]),
        (1, MODE_0, 20_000_000, &[1]),
        (1, MODE_3, 20_000_000, &[1, 3, 4, 16]),
    ] {
        for &bytes in lengths {
            table += &row(cs, mode, speed_hz, bytes);
        }
    }
    snapshot::check("pl022_accesses.txt", &table);
}
